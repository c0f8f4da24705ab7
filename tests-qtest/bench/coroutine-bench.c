/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What coroutines, their locks and the worker pool cost, in nanoseconds an operation. */
#include "loop/coroutine.h"
#include "loop/worker-pool.h"

#include <glib.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CROWD = 512, MAX_ROUNDS = 101 };

static AioContext *ctx;

static void coroutine_fn nothing(void *opaque)
{
}

static void coroutine_fn yield_n(void *opaque)
{
    for (unsigned int i = 0, n = *(unsigned int *)opaque; i < n; i++) {
        coroutine_yield();
    }
}

static void bench_create(unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        coroutine_enter(coroutine_create(nothing, NULL));
    }
}

static void bench_switch(unsigned int n)
{
    Coroutine *co = coroutine_create(yield_n, &n);

    for (unsigned int i = 0; i <= n; i++) {
        coroutine_enter(co);
    }
}

/* As a disk with many requests in flight does: always another one. */
static void bench_switch_crowd(unsigned int n)
{
    unsigned int each = n / CROWD;
    Coroutine *co[CROWD];

    for (unsigned int i = 0; i < CROWD; i++) {
        co[i] = coroutine_create(yield_n, &each);
    }
    for (unsigned int k = 0; k <= each; k++) {
        for (unsigned int i = 0; i < CROWD; i++) {
            coroutine_enter(co[i]);
        }
    }
}

/* Ever more than the pools hold, so that stacks are made and freed. */
static void bench_stack(unsigned int n)
{
    unsigned int one = 1;

    for (unsigned int done = 0; done < n; done += 1024) {
        Coroutine *co[1024];

        for (int i = 0; i < 1024; i++) {
            co[i] = coroutine_create(yield_n, &one);
            coroutine_enter(co[i]);
        }
        for (int i = 0; i < 1024; i++) {
            coroutine_enter(co[i]);
        }
    }
}

static void coroutine_fn lock_n(void *opaque)
{
    CoMutex m;

    co_mutex_init(&m);
    for (unsigned int i = 0, n = *(unsigned int *)opaque; i < n; i++) {
        co_mutex_lock(&m);
        co_mutex_unlock(&m);
    }
}

static void bench_mutex(unsigned int n)
{
    coroutine_enter(coroutine_create(lock_n, &n));
}

static CoMutex handed;
static unsigned int hands;

static void coroutine_fn hand_over_n(void *opaque)
{
    for (unsigned int i = 0, n = *(unsigned int *)opaque; i < n; i++) {
        co_mutex_lock(&handed);
        /* The other queues for it meanwhile. */
        aio_co_schedule(ctx, coroutine_self());
        coroutine_yield();
        co_mutex_unlock(&handed);
    }
    hands--;
}

static void bench_mutex_handed(unsigned int n)
{
    unsigned int half = n / 2;

    co_mutex_init(&handed);
    hands = 2;
    coroutine_enter(coroutine_create(hand_over_n, &half));
    coroutine_enter(coroutine_create(hand_over_n, &half));
    while (hands) {
        aio_poll(ctx, true);
    }
}

static void coroutine_fn reschedule_n(void *opaque)
{
    for (unsigned int i = 0, n = *(unsigned int *)opaque; i < n; i++) {
        aio_co_schedule(ctx, coroutine_self());
        coroutine_yield();
    }
    hands--;
}

static void bench_schedule(unsigned int n)
{
    hands = 1;
    coroutine_enter(coroutine_create(reschedule_n, &n));
    while (hands) {
        aio_poll(ctx, true);
    }
}

static unsigned int items_left;

static int item_func(WorkItem *item)
{
    return 0;
}

static void item_done(WorkItem *item, int ret)
{
    items_left--;
}

static void submit_items(WorkItem *items, unsigned int n)
{
    Fifo chain;

    fifo_init(&chain);
    items_left = n;
    for (unsigned int i = 0; i < n; i++) {
        items[i] = (WorkItem){.func = item_func, .done = item_done};
        fifo_push(&chain, &items[i].link);
    }
    worker_pool_submit_many(aio_worker_pool(ctx), &chain, n);
    while (items_left) {
        aio_poll(ctx, true);
    }
}

static void bench_worker_one(unsigned int n)
{
    WorkItem item;

    for (unsigned int i = 0; i < n; i++) {
        submit_items(&item, 1);
    }
}

static void bench_worker_batch(unsigned int n)
{
    WorkItem items[32];

    for (unsigned int i = 0; i < n; i += 32) {
        submit_items(items, 32);
    }
}

static const struct {
    const char *name;
    void (*fn)(unsigned int n);
    unsigned int n;
} benches[] = {
    {"create-enter-end", bench_create, 1000000},
    {"enter-yield", bench_switch, 1000000},
    {"enter-yield-512", bench_switch_crowd, CROWD * 1000},
    {"create-beyond-pools", bench_stack, 8192},
    {"mutex-lock-unlock", bench_mutex, 1000000},
    {"mutex-hand-over", bench_mutex_handed, 100000},
    {"schedule-self", bench_schedule, 200000},
    {"worker-item", bench_worker_one, 2000},
    {"worker-item-of-32", bench_worker_batch, 32000},
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static const AioContextConfig cfg = {.name = "bench"};
    static double ns[G_N_ELEMENTS(benches)][MAX_ROUNDS];
    g_autofree char *json = NULL;
    int rounds = 9;
    GOptionEntry entries[] = {
        {"rounds", 0, 0, G_OPTION_ARG_INT, &rounds, "interleaved rounds (default 9)", "N"},
        {"json", 0, 0, G_OPTION_ARG_FILENAME, &json, "write results there", "FILE"},
        {NULL},
    };
    g_autoptr(GOptionContext) options = g_option_context_new("- cost of coroutines and of the worker pool");
    g_autoptr(GError) gerr = NULL;
    json_t *results = json_array();

    g_option_context_add_main_entries(options, entries, NULL);
    if (!g_option_context_parse(options, &argc, &argv, &gerr)) {
        fprintf(stderr, "coroutine-bench: %s\n", gerr->message);
        return 1;
    }
    rounds = CLAMP(rounds, 1, MAX_ROUNDS);
    ctx = aio_context_new(&cfg, &error_abort);
    for (int r = 0; r < rounds; r++) {
        for (size_t i = 0; i < G_N_ELEMENTS(benches); i++) {
            int64_t start = aio_now_ns();

            benches[i].fn(benches[i].n);
            ns[i][r] = (double)(aio_now_ns() - start) / benches[i].n;
        }
    }
    for (size_t i = 0; i < G_N_ELEMENTS(benches); i++) {
        double low, median, high;

        qsort(ns[i], (size_t)rounds, sizeof(double), by_value);
        low = ns[i][rounds / 10];
        median = ns[i][rounds / 2];
        high = ns[i][rounds - 1 - rounds / 10];
        printf("%-22s %9.1f ns  [%8.1f %8.1f]\n", benches[i].name, median, low, high);
        json_array_append_new(results, json_pack("{s:s, s:f, s:f, s:f}", "name", benches[i].name, "ns", median, "low", low,
                                                 "high", high));
    }
    if (json && json_dump_file(results, json, JSON_INDENT(2))) {
        fprintf(stderr, "coroutine-bench: cannot write '%s'\n", json);
    }
    json_decref(results);
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return 0;
}
