/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Four loops that schedule in each other while a fifth thread turns their parameters; for ThreadSanitizer above all. */
#include "loop-test.h"
#include "loop-thread.h"

#include "loop/context.h"
#include "loop/event-notifier.h"

#include <stdlib.h>

enum { LOOPS = 4, TOKENS = 16 };

typedef struct Stress Stress;

/* Hops from loop to loop; whoever loses it makes the count come out wrong. */
typedef struct Token {
    Stress *s;
    unsigned int seed;
    int left;
    AioBH *bh[LOOPS];
} Token;

struct Stress {
    LoopThread *loops[LOOPS];
    EventNotifier kicks[LOOPS];
    Token tokens[TOKENS];
    _Atomic int64_t fd_hops, bh_hops, oneshot_hops, done;
    int hops;
};

typedef struct Watch {
    Stress *s;
    int loop;
} Watch;

static void token_hop(void *opaque)
{
    Token *t = opaque;
    Stress *s = t->s;
    unsigned int to;

    if (t->left-- == 0) {
        atomic_fetch_add(&s->done, 1);
        aio_wait_kick();
        return;
    }
    to = (unsigned int)rand_r(&t->seed) % LOOPS;
    if (rand_r(&t->seed) % 8 == 0) {
        event_notifier_set(&s->kicks[rand_r(&t->seed) % LOOPS]);
    }
    if (rand_r(&t->seed) % 2) {
        atomic_fetch_add_explicit(&s->bh_hops, 1, memory_order_relaxed);
        aio_bh_schedule(t->bh[to]);
    } else {
        atomic_fetch_add_explicit(&s->oneshot_hops, 1, memory_order_relaxed);
        aio_bh_schedule_oneshot(s->loops[to]->ctx, token_hop, t);
    }
}

static void kicked(void *opaque)
{
    Watch *w = opaque;

    if (event_notifier_test_and_clear(&w->s->kicks[w->loop])) {
        atomic_fetch_add_explicit(&w->s->fd_hops, 1, memory_order_relaxed);
    }
}

static void watch_kick(void *opaque)
{
    Watch *w = opaque;

    aio_set_fd_handler(aio_context_current(), w->s->kicks[w->loop].fd, kicked, NULL, NULL, NULL, w);
}

static void unwatch_kick(void *opaque)
{
    Watch *w = opaque;

    aio_set_fd_handler(aio_context_current(), w->s->kicks[w->loop].fd, NULL, NULL, NULL, NULL, NULL);
}

static void *turn_parameters(void *opaque)
{
    Stress *s = opaque;
    unsigned int seed = 7;

    while (atomic_load(&s->done) < TOKENS) {
        AioContext *ctx = s->loops[rand_r(&seed) % LOOPS]->ctx;
        AioPollParams p = {rand_r(&seed) % 3 * 20000, 1 + rand_r(&seed) % 3, 1 + rand_r(&seed) % 3, rand_r(&seed) % 6,
                           rand_r(&seed) % 3 * 500};
        int min, max;

        aio_context_set_poll_params(ctx, &p);
        aio_context_set_max_batch(ctx, rand_r(&seed) % 64);
        aio_context_set_thread_pool(ctx, 0, 1 + rand_r(&seed) % 8);
        aio_context_thread_pool(ctx, &min, &max);
        g_assert_cmpint(max, >, 0);
        aio_notify(ctx);
        g_usleep(100);
    }
    return NULL;
}

static void run_stress(AioContext *ctx, int hops)
{
    AioContextConfig cfg = {.name = "loop", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    g_autofree Stress *s = g_new0(Stress, 1);
    Watch watch[LOOPS];
    pthread_t turner;
    int64_t sum;

    for (int i = 0; i < LOOPS; i++) {
        s->loops[i] = loop_thread_new(&cfg);
        g_assert_cmpint(event_notifier_init(&s->kicks[i]), ==, 0);
        watch[i] = (Watch){s, i};
        aio_run_in_home(s->loops[i]->ctx, watch_kick, &watch[i]);
    }
    g_assert_cmpint(pthread_create(&turner, NULL, turn_parameters, s), ==, 0);
    for (int i = 0; i < TOKENS; i++) {
        Token *t = &s->tokens[i];

        *t = (Token){.s = s, .seed = (unsigned int)i, .left = hops};
        for (int l = 0; l < LOOPS; l++) {
            t->bh[l] = aio_bh_new(s->loops[l]->ctx, token_hop, t);
        }
        aio_bh_schedule(t->bh[i % LOOPS]);
    }
    AIO_WAIT_WHILE(atomic_load(&s->done) < TOKENS);
    pthread_join(turner, NULL);
    for (int i = 0; i < TOKENS; i++) {
        for (int l = 0; l < LOOPS; l++) {
            aio_bh_delete(s->tokens[i].bh[l]);
        }
    }
    for (int i = 0; i < LOOPS; i++) {
        aio_run_in_home(s->loops[i]->ctx, unwatch_kick, &watch[i]);
        loop_thread_free(s->loops[i]);
        event_notifier_cleanup(&s->kicks[i]);
    }
    sum = atomic_load(&s->bh_hops) + atomic_load(&s->oneshot_hops);
    g_assert_cmpint(sum, ==, (int64_t)TOKENS * hops);
}

static void case_short(AioContext *ctx)
{
    run_stress(ctx, 500);
}

/* A minute with each monitor, however fast the machine or slow the sanitizer. */
#define LONG_NS INT64_C(60000000000)

static void case_long(AioContext *ctx)
{
    int64_t end = aio_now_ns() + LONG_NS;

    do {
        run_stress(ctx, 10000);
    } while (aio_now_ns() < end);
}

static const LoopCaseEntry short_cases[] = {{"stress/no-token-is-lost", case_short}};
static const LoopCaseEntry long_cases[] = {{"stress/no-token-is-lost-for-long", case_long}};

int main(int argc, char **argv)
{
    bool is_long = argc > 1 && g_str_equal(argv[1], "long");

    g_test_init(&argc, &argv, NULL);
    loop_test_add(is_long ? long_cases : short_cases, 1);
    return g_test_run();
}
