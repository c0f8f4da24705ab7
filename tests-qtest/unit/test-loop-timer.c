/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timers on the three clocks, and the virtual clock under qtest's control. */
#include "loop-test.h"
#include "loop-thread.h"

#include "loop/context.h"

#include <stdlib.h>
#include <string.h>

typedef struct Tick {
    AioTimer t;
    GString *log;
    char c;
    int fired;
    int64_t again; /* re-arm for this time, INT64_MAX: no */
    struct Tick *victim;
} Tick;

static void tick(void *opaque)
{
    Tick *k = opaque;

    k->fired++;
    if (k->log) {
        g_string_append_c(k->log, k->c);
    }
    if (k->again != INT64_MAX) {
        aio_timer_mod_ns(&k->t, k->again);
    }
    if (k->victim) {
        aio_timer_del(&k->victim->t);
    }
}

static void tick_init(Tick *k, AioContext *ctx, ClockType clock, GString *log, char c)
{
    *k = (Tick){.log = log, .c = c, .again = INT64_MAX};
    aio_timer_init(&k->t, ctx, clock, tick, k);
}

static AioContext *plain_context(void)
{
    AioContextConfig cfg = {.name = "timers", .monitor = AIO_MONITOR_EPOLL};

    return aio_context_new(&cfg, &error_abort);
}

static void check_clock(ClockType clock)
{
    AioContext *ctx = plain_context();
    g_autoptr(GString) log = g_string_new(NULL);
    Tick a, b, c;
    int64_t now = clock_get_ns(clock);

    tick_init(&a, ctx, clock, log, 'a');
    tick_init(&b, ctx, clock, log, 'b');
    tick_init(&c, ctx, clock, log, 'c');
    aio_timer_mod_ns(&c.t, now + 3000000);
    aio_timer_mod_ns(&a.t, now + 1000000);
    aio_timer_mod_ns(&b.t, now + 2000000);
    g_assert_true(aio_timer_pending(&a.t));
    while (log->len < 3) {
        aio_poll(ctx, true);
    }
    g_assert_cmpstr(log->str, ==, "abc");
    g_assert_cmpint(clock_get_ns(clock), >=, now + 3000000);
    g_assert_false(aio_timer_pending(&a.t));
    loop_test_free(ctx);
}

static void test_realtime(void)
{
    check_clock(CLOCK_TYPE_REALTIME);
}

static void test_host(void)
{
    check_clock(CLOCK_TYPE_HOST);
}

static void test_virtual_runs(void)
{
    clock_virtual_enable(true);
    check_clock(CLOCK_TYPE_VIRTUAL);
    clock_virtual_enable(false);
}

static void test_past_fires_without_sleep(void)
{
    AioContext *ctx = plain_context();
    Tick a;

    tick_init(&a, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    aio_timer_mod_ns(&a.t, 0);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(a.fired, ==, 1);
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(ctx)->sleeps), ==, 0);
    loop_test_free(ctx);
}

static void test_mod_and_del(void)
{
    AioContext *ctx = plain_context();
    Tick a, b;

    tick_init(&a, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    tick_init(&b, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    aio_timer_mod_ns(&a.t, INT64_MAX);
    aio_timer_mod_ns(&b.t, INT64_MAX - 1);
    aio_timer_mod_ns(&a.t, 0);
    aio_timer_del(&b.t);
    aio_timer_del(&b.t);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(a.fired, ==, 1);
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpint(b.fired, ==, 0);
    loop_test_free(ctx);
}

static void test_rearming_in_the_past_starves_nobody(void)
{
    AioContext *ctx = plain_context();
    g_autoptr(GString) log = g_string_new(NULL);
    Tick a, b;

    tick_init(&a, ctx, CLOCK_TYPE_REALTIME, log, 'a');
    tick_init(&b, ctx, CLOCK_TYPE_REALTIME, log, 'b');
    a.again = 0;
    aio_timer_mod_ns(&a.t, 0);
    aio_timer_mod_ns(&b.t, 1);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpstr(log->str, ==, "ab");
    g_assert_true(aio_timer_pending(&a.t));
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpstr(log->str, ==, "aba");
    aio_timer_del(&a.t);
    g_assert_false(aio_poll(ctx, false));
    loop_test_free(ctx);
}

typedef struct Waiter {
    AioTimer t;
    Tick awaited;
} Waiter;

static void arm_and_wait(void *opaque)
{
    Waiter *w = opaque;

    aio_timer_mod_ns(&w->awaited.t, 0);
    for (int i = 0; i < 10 && !w->awaited.fired; i++) {
        aio_poll(w->t.ctx, true);
    }
}

/* A callback arms a timer that is due already and polls until it has fired. */
static void test_callback_waits_for_another(void)
{
    AioContext *ctx = plain_context();
    Waiter w;

    aio_timer_init(&w.t, ctx, CLOCK_TYPE_REALTIME, arm_and_wait, &w);
    tick_init(&w.awaited, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    aio_timer_mod_ns(&w.t, 1);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(w.awaited.fired, ==, 1);
    g_assert_false(aio_poll(ctx, false));
    loop_test_free(ctx);
}

static void test_deleted_by_other(void)
{
    AioContext *ctx = plain_context();
    Tick a, b, c;

    tick_init(&a, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    tick_init(&b, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    tick_init(&c, ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    a.victim = &b;
    aio_timer_mod_ns(&a.t, 1);
    aio_timer_mod_ns(&b.t, 2);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(a.fired, ==, 1);
    g_assert_cmpint(b.fired, ==, 0);
    /* One that has re-armed itself for the next pass is deleted before that. */
    b.again = 0;
    c.victim = &b;
    aio_timer_mod_ns(&b.t, 1);
    aio_timer_mod_ns(&c.t, 2);
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_timer_pending(&b.t));
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpint(b.fired, ==, 1);
    loop_test_free(ctx);
}

static void test_many_in_order(void)
{
    enum { N = 2000 };
    AioContext *ctx = plain_context();
    g_autofree Tick *k = g_new0(Tick, N);
    int64_t last = 0;

    srand(1);
    for (int i = 0; i < N; i++) {
        tick_init(&k[i], ctx, CLOCK_TYPE_REALTIME, NULL, 0);
    }
    for (int round = 0; round < 3 * N; round++) {
        Tick *one = &k[rand() % N];

        if (rand() % 4 == 0) {
            aio_timer_del(&one->t);
        } else {
            aio_timer_mod_ns(&one->t, rand());
        }
    }
    /* The heap property, all the way down: taken out one by one they come in order. */
    while (ctx->heaps[CLOCK_TYPE_REALTIME].count) {
        AioTimer *first = ctx->heaps[CLOCK_TYPE_REALTIME].timers[0];

        g_assert_cmpint(first->expire_ns, >=, last);
        last = first->expire_ns;
        aio_timer_del(first);
    }
    g_assert_cmpint(last, >, 0);
    loop_test_free(ctx);
}

/* --- The virtual clock; once taken over it stays so, hence last --- */

static void test_virtual_stops(void)
{
    AioContext *ctx = plain_context();
    int64_t a, b;
    Tick k;

    clock_virtual_enable(true);
    a = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    clock_virtual_enable(false);
    b = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    g_assert_cmpint(b, >=, a);
    g_usleep(2000);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, b);
    tick_init(&k, ctx, CLOCK_TYPE_VIRTUAL, NULL, 0);
    aio_timer_mod_ns(&k.t, b + 1000000);
    g_usleep(2000);
    g_assert_false(aio_poll(ctx, false));
    clock_virtual_enable(true);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), <, b + 1000000000);
    while (!k.fired) {
        aio_poll(ctx, true);
    }
    clock_virtual_enable(false);
    loop_test_free(ctx);
}

static void arm_in_home(void *opaque)
{
    Tick *k = opaque;

    k->t.ctx = aio_context_current();
    aio_timer_mod_ns(&k->t, 5000);
}

static void read_fired(void *opaque)
{
    int *copy = ((void **)opaque)[1];

    *copy = ((Tick *)((void **)opaque)[0])->fired;
}

static void test_qtest_moves_it(void)
{
    AioContext *ctx = plain_context();
    AioContextConfig cfg = {.name = "io", .monitor = AIO_MONITOR_EPOLL};
    LoopThread *t = loop_thread_new(&cfg);
    Tick a, b, io;
    int seen = 0;

    clock_virtual_enable(true);
    clock_virtual_take_over();
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, 0);
    clock_virtual_enable(true);
    g_usleep(1000);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_VIRTUAL), ==, 0);
    g_assert_cmpint(clock_virtual_deadline_ns(), ==, -1);

    tick_init(&a, ctx, CLOCK_TYPE_VIRTUAL, NULL, 0);
    tick_init(&b, ctx, CLOCK_TYPE_VIRTUAL, NULL, 0);
    tick_init(&io, t->ctx, CLOCK_TYPE_VIRTUAL, NULL, 0);
    aio_timer_mod_ns(&a.t, 1000);
    aio_timer_mod_ns(&b.t, 20000);
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpint(clock_virtual_deadline_ns(), ==, 1000);
    clock_virtual_set_ns(999);
    g_assert_false(aio_poll(ctx, false));
    clock_virtual_set_ns(1000);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(a.fired, ==, 1);

    /* The IOThread's timer counts and fires, though its loop sleeps without a deadline. */
    aio_run_in_home(t->ctx, arm_in_home, &io);
    g_assert_cmpint(clock_virtual_deadline_ns(), ==, 5000);
    clock_virtual_set_ns(5000);
    while (!seen) {
        void *args[2] = {&io, &seen};

        aio_run_in_home(t->ctx, read_fired, args);
    }
    g_assert_cmpint(clock_virtual_deadline_ns(), ==, 20000);
    clock_virtual_set_ns(INT64_C(3000000000));
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(b.fired, ==, 1);
    g_assert_cmpint(clock_virtual_deadline_ns(), ==, -1);
    loop_thread_free(t);
    loop_test_free(ctx);
}

typedef struct Stepper {
    LoopThread *t;
    Tick tick;
    _Atomic int fired;
} Stepper;

static void count_and_rearm(void *opaque)
{
    Stepper *s = opaque;

    /* The next one: the main thread may be setting the clock to it at this moment. */
    aio_timer_mod_ns(&s->tick.t, s->tick.t.expire_ns + 100);
    atomic_fetch_add(&s->fired, 1);
}

static void start_stepper(void *opaque)
{
    Stepper *s = opaque;

    aio_timer_init(&s->tick.t, aio_context_current(), CLOCK_TYPE_VIRTUAL, count_and_rearm, s);
    aio_timer_mod_ns(&s->tick.t, clock_get_ns(CLOCK_TYPE_VIRTUAL) + 100);
}

static void test_no_step_is_missed(void)
{
    AioContext *ctx = plain_context();
    AioContextConfig cfg = {.name = "io", .monitor = AIO_MONITOR_EPOLL};
    Stepper s = {.t = loop_thread_new(&cfg)};
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL);

    aio_run_in_home(s.t->ctx, start_stepper, &s);
    for (int i = 1; i <= 3000; i++) {
        now += 100;
        clock_virtual_set_ns(now);
        while (atomic_load(&s.fired) < i) {
            sched_yield();
        }
    }
    loop_thread_free(s.t);
    loop_test_free(ctx);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/timer/realtime-fires-in-order", test_realtime);
    g_test_add_func("/loop/timer/host-fires-in-order", test_host);
    g_test_add_func("/loop/timer/virtual-fires-in-order", test_virtual_runs);
    g_test_add_func("/loop/timer/past-fires-without-sleep", test_past_fires_without_sleep);
    g_test_add_func("/loop/timer/modified-and-deleted", test_mod_and_del);
    g_test_add_func("/loop/timer/re-arming-in-the-past-starves-nobody", test_rearming_in_the_past_starves_nobody);
    g_test_add_func("/loop/timer/callback-waits-for-another", test_callback_waits_for_another);
    g_test_add_func("/loop/timer/deleted-by-another", test_deleted_by_other);
    g_test_add_func("/loop/timer/heap-keeps-order", test_many_in_order);
    g_test_add_func("/loop/virtual-clock/stops-and-goes-on", test_virtual_stops);
    g_test_add_func("/loop/virtual-clock/taken-over-moves-by-command-only", test_qtest_moves_it);
    g_test_add_func("/loop/virtual-clock/iothread-misses-no-step", test_no_step_is_missed);
    return g_test_run();
}
