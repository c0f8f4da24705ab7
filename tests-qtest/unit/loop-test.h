/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers of the loop's tests: one context a test, the same cases over all monitors. */
#ifndef UNIT_LOOP_TEST_H
#define UNIT_LOOP_TEST_H

#include "loop/aio.h"

#include <fcntl.h>
#include <glib.h>
#include <unistd.h>

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

/* --- A pipe with a handler that counts --- */

typedef struct Pipe {
    AioContext *ctx;
    int r, w;
    int reads, writes;
    struct Pipe *other;
} Pipe;

static inline void pipe_open(Pipe *p, AioContext *ctx)
{
    int fds[2];

    g_assert_cmpint(pipe2(fds, O_NONBLOCK | O_CLOEXEC), ==, 0);
    *p = (Pipe){.ctx = ctx, .r = fds[0], .w = fds[1]};
}

static inline void pipe_close(Pipe *p)
{
    close(p->r);
    close(p->w);
}

static inline void pipe_put(Pipe *p)
{
    g_assert_cmpint(write(p->w, "x", 1), ==, 1);
}

static inline void forget(Pipe *p, int fd)
{
    aio_set_fd_handler(p->ctx, fd, NULL, NULL, NULL, NULL, NULL);
}

static inline void count_read(void *opaque)
{
    ((Pipe *)opaque)->reads++;
}

static inline void take_read(void *opaque)
{
    Pipe *p = opaque;
    char c;

    p->reads++;
    g_assert_cmpint(read(p->r, &c, 1), ==, 1);
}

static inline void count_write(void *opaque)
{
    ((Pipe *)opaque)->writes++;
}

static inline void watch_read(Pipe *p, AioHandlerFn *fn)
{
    aio_set_fd_handler(p->ctx, p->r, fn, NULL, NULL, NULL, p);
}

static inline void bump(void *opaque)
{
    ++*(int *)opaque;
}

#endif
