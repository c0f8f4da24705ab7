/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a loop tells about itself to another thread, and where its time goes. */
#include "loop-test.h"

#include <pthread.h>
#include <semaphore.h>

/* A loop in another thread, with a handler that waits until it is let go. */
typedef struct Other {
    AioMonitor monitor;
    AioContext *ctx;
    AioSource source;
    Pipe pipe;
    sem_t ready, entered, leave;
    bool stop;
    pthread_t thread;
} Other;

static void stuck_read(void *opaque)
{
    Other *o = opaque;

    take_read(&o->pipe);
    sem_post(&o->entered);
    sem_wait(&o->leave);
}

static void no_flush(AioSource *src)
{
}

static const AioSourceOps source_ops = {.name = "test", .flush = no_flush};

static void *other_main(void *opaque)
{
    Other *o = opaque;
    AioContextConfig cfg = {.name = "other", .monitor = o->monitor, .uring_flags = AIO_URING_AUTO};

    o->ctx = aio_context_new(&cfg, &error_abort);
    o->source.ops = &source_ops;
    aio_source_attach(o->ctx, AIO_SLOT_TEST, &o->source);
    pipe_open(&o->pipe, o->ctx);
    aio_set_fd_handler(o->ctx, o->pipe.r, stuck_read, NULL, NULL, NULL, o);
    sem_post(&o->ready);
    while (!o->stop) {
        aio_poll(o->ctx, true);
    }
    forget(&o->pipe, o->pipe.r);
    pipe_close(&o->pipe);
    aio_context_shutdown(o->ctx);
    return NULL;
}

static void other_stop(void *opaque)
{
    ((Other *)opaque)->stop = true;
}

static Other *other_new(AioContext *ctx)
{
    Other *o = g_new0(Other, 1);

    o->monitor = aio_context_monitor(ctx);
    sem_init(&o->ready, 0, 0);
    sem_init(&o->entered, 0, 0);
    sem_init(&o->leave, 0, 0);
    g_assert_cmpint(pthread_create(&o->thread, NULL, other_main, o), ==, 0);
    sem_wait(&o->ready);
    return o;
}

static void other_free(Other *o)
{
    aio_bh_schedule_oneshot(o->ctx, other_stop, o);
    pthread_join(o->thread, NULL);
    aio_context_unref(o->ctx);
    sem_destroy(&o->ready);
    sem_destroy(&o->entered);
    sem_destroy(&o->leave);
    g_free(o);
}

static void case_asleep(AioContext *ctx)
{
    Other *o = other_new(ctx);
    AioContextState s;
    int64_t before = aio_now_ns();

    do {
        aio_context_state(o->ctx, &s);
    } while (s.phase != AIO_PHASE_WAIT || !s.since_ns);
    g_assert_cmpint(s.since_ns, >, before - INT64_C(60000000000));
    g_assert_cmpint(s.since_ns, <=, aio_now_ns());
    g_assert_cmpuint(s.n_sources, ==, 0);
    other_free(o);
}

static void case_stuck(AioContext *ctx)
{
    Other *o = other_new(ctx);
    AioContextState s;

    pipe_put(&o->pipe);
    sem_wait(&o->entered);
    aio_context_state(o->ctx, &s);
    g_assert_cmpint(s.phase, ==, AIO_PHASE_HANDLERS);
    g_assert_cmpint(s.handler_fd, ==, o->pipe.r);
    sem_post(&o->leave);
    other_free(o);
}

/* The four values of a request are seen together or not at all, however fast they change. */
#define CHANGES 20000

static void change_oldest(void *opaque)
{
    Other *o = opaque;

    aio_stat_add(&o->source.in_flight.count, 1);
    for (uint64_t i = 1; i <= CHANGES; i++) {
        aio_source_set_oldest(&o->source, i & 1 ? "odd" : "even", i, i * 2, (int64_t)i * 3);
    }
}

static void case_oldest(AioContext *ctx)
{
    Other *o = other_new(ctx);
    AioContextState s = {0};

    aio_bh_schedule_oneshot(o->ctx, change_oldest, o);
    while (s.source[0].offset != CHANGES || !s.source[0].what) {
        aio_context_state(o->ctx, &s);
        if (s.n_sources && s.source[0].what && s.source[0].offset) {
            AioSourceState *q = &s.source[0];

            g_assert_cmpstr(q->what, ==, q->offset & 1 ? "odd" : "even");
            g_assert_cmpuint(q->bytes, ==, q->offset * 2);
            g_assert_cmpint(q->since_ns, ==, (int64_t)q->offset * 3);
            g_assert_cmpstr(q->name, ==, "test");
            g_assert_cmpuint(q->count, ==, 1);
        }
    }
    other_free(o);
}

#define NAP_US 2000

static void nap(void *opaque)
{
    g_usleep(NAP_US);
}

static void case_times(AioContext *ctx)
{
    AioStats *st = aio_context_stats(ctx);
    uint64_t sum = 0;

    aio_bh_schedule_oneshot(ctx, nap, NULL);
    aio_poll(ctx, false);
    for (int i = 0; i < AIO_PHASES; i++) {
        sum += aio_stat_get(&st->phase_ns[i]);
    }
    g_assert_cmpuint(sum, ==, 0);

    aio_context_set_phase_times(ctx, true);
    g_assert_true(aio_context_phase_times(ctx));
    aio_bh_schedule_oneshot(ctx, nap, NULL);
    aio_poll(ctx, false);
    g_assert_cmpuint(aio_stat_get(&st->phase_ns[AIO_PHASE_BOTTOM_HALVES]), >=, NAP_US * 1000);

    aio_context_set_phase_times(ctx, false);
    aio_poll(ctx, false);
    sum = aio_stat_get(&st->phase_ns[AIO_PHASE_BOTTOM_HALVES]);
    aio_bh_schedule_oneshot(ctx, nap, NULL);
    aio_poll(ctx, false);
    g_assert_cmpuint(aio_stat_get(&st->phase_ns[AIO_PHASE_BOTTOM_HALVES]), ==, sum);
}

static void poll_inside(void *opaque)
{
    aio_bh_schedule_oneshot(opaque, nap, NULL);
    aio_poll(opaque, false);
}

/* A nap in a pass inside another counts once. */
static void case_times_nested(AioContext *ctx)
{
    AioStats *st = aio_context_stats(ctx);
    int64_t start = aio_now_ns();
    uint64_t sum = 0;

    aio_context_set_phase_times(ctx, true);
    aio_bh_schedule_oneshot(ctx, poll_inside, ctx);
    aio_poll(ctx, false);
    for (int i = 0; i < AIO_PHASES; i++) {
        sum += aio_stat_get(&st->phase_ns[i]);
    }
    g_assert_cmpuint(sum, >=, NAP_US * 1000);
    g_assert_cmpint((int64_t)sum, <=, aio_now_ns() - start);
}

/* --- The clock of a pass --- */

typedef struct Readings {
    AioContext *ctx;
    int64_t first, second;
} Readings;

static void let_time_pass(void)
{
    int64_t start = aio_now_ns();

    while (aio_now_ns() == start) {
    }
}

static void read_twice(void *opaque)
{
    Readings *r = opaque;

    r->first = aio_pass_ns(r->ctx);
    let_time_pass();
    r->second = aio_pass_ns(r->ctx);
}

static void case_one_clock_read_a_pass(AioContext *ctx)
{
    Readings a = {.ctx = ctx}, b = {.ctx = ctx};
    int64_t before = aio_now_ns();

    aio_bh_schedule_oneshot(ctx, read_twice, &a);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(a.first, >=, before);
    g_assert_cmpint(a.second, ==, a.first);
    let_time_pass();
    aio_bh_schedule_oneshot(ctx, read_twice, &b);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(b.first, >, a.first);
    g_assert_cmpint(b.second, ==, b.first);
    /* Outside there is no pass to last: each reading is a new one. */
    read_twice(&a);
    g_assert_cmpint(a.first, >, b.first);
    g_assert_cmpint(a.second, >, a.first);
}

static const LoopCaseEntry cases[] = {
    {"pass/one-clock-read", case_one_clock_read_a_pass},
    {"state/asleep-says-so", case_asleep},
    {"state/stuck-handler-is-named", case_stuck},
    {"state/oldest-request-is-seen-whole", case_oldest},
    {"phase-times/only-while-on", case_times},
    {"phase-times/nested-passes-count-once", case_times_nested},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
