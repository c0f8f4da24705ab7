/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers of the loop's tests: one context a test, the same cases over all monitors. */
#ifndef UNIT_LOOP_TEST_H
#define UNIT_LOOP_TEST_H

#include "loop/aio.h"

#include <glib.h>

typedef void LoopCase(AioContext *ctx);

typedef struct LoopCaseEntry {
    const char *name;
    LoopCase *fn;
    AioMonitor monitor;
} LoopCaseEntry;

/* Make a context for the calling thread; NULL after g_test_skip() when this machine has no such monitor. */
static inline AioContext *loop_test_context(AioMonitor monitor)
{
    AioContextConfig cfg = {.name = "test", .monitor = monitor, .uring_flags = AIO_URING_AUTO};
    g_autoptr(Error) err = NULL;
    AioContext *ctx = aio_context_new(&cfg, &err);

    if (!ctx) {
        g_test_skip(error_get_pretty(err));
    }
    return ctx;
}

static inline void loop_test_free(AioContext *ctx)
{
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
}

static inline void loop_test_run(gconstpointer data)
{
    const LoopCaseEntry *e = data;
    AioContext *ctx = loop_test_context(e->monitor);

    if (ctx) {
        e->fn(ctx);
        /* A case may have put another one in its place, or none. */
        if (aio_context_current()) {
            loop_test_free(aio_context_current());
        }
    }
}

/* Add every case as /loop/MONITOR/NAME. */
static inline void loop_test_add(const LoopCaseEntry *cases, unsigned int n)
{
    for (int m = AIO_MONITOR_POLL; m < AIO_MONITOR__MAX; m++) {
        for (unsigned int i = 0; i < n; i++) {
            LoopCaseEntry *e = g_memdup2(&cases[i], sizeof(cases[i]));
            g_autofree char *path = g_strdup_printf("/loop/%s/%s", aio_monitor_name(m), e->name);

            e->monitor = m;
            g_test_add_data_func_full(path, e, (GTestDataFunc)loop_test_run, g_free);
        }
    }
}

#endif
