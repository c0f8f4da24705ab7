/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How sleep ends, over all monitors: timeouts, signals, other threads, and the end of a context. */
#include "loop-test.h"

#include "loop/timer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

/* --- Timeouts and signals --- */

static void case_timeout_not_early(AioContext *ctx)
{
    static const int64_t delays[] = {1, 1000, 400000, 1300000, 5000000};
    AioTimer t;
    int fired = 0;

    aio_timer_init(&t, ctx, CLOCK_TYPE_REALTIME, bump, &fired);
    for (unsigned int i = 0; i < G_N_ELEMENTS(delays); i++) {
        int64_t due = clock_get_ns(CLOCK_TYPE_REALTIME) + delays[i];

        aio_timer_mod_ns(&t, due);
        while (fired == (int)i) {
            aio_poll(ctx, true);
        }
        g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME), >=, due);
    }
}

static void case_timeout_does_not_dangle(AioContext *ctx)
{
    Pipe p;
    AioTimer t;
    int fired = 0;
    uint64_t sleeps;

    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    aio_timer_init(&t, ctx, CLOCK_TYPE_REALTIME, bump, &fired);
    aio_timer_mod_ns(&t, clock_get_ns(CLOCK_TYPE_REALTIME) + 20000000);
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    aio_timer_del(&t);
    /* The next sleep is ended by its own timer and not by what is left of the wait before. */
    aio_timer_mod_ns(&t, clock_get_ns(CLOCK_TYPE_REALTIME) + 60000000);
    sleeps = aio_stat_get(&aio_context_stats(ctx)->sleeps);
    while (!fired) {
        aio_poll(ctx, true);
    }
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(ctx)->sleeps) - sleeps, <=, 2);
    forget(&p, p.r);
    pipe_close(&p);
}

static volatile sig_atomic_t signals;

static void on_alarm(int sig)
{
    signals++;
}

static void case_signal_interrupts_wait(AioContext *ctx)
{
    struct itimerval every = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000}, off = {0};
    struct sigaction sa = {.sa_handler = on_alarm}, old;
    AioTimer t;
    int fired = 0;
    int64_t due = clock_get_ns(CLOCK_TYPE_REALTIME) + 30000000;

    signals = 0;
    sigaction(SIGALRM, &sa, &old);
    aio_timer_init(&t, ctx, CLOCK_TYPE_REALTIME, bump, &fired);
    aio_timer_mod_ns(&t, due);
    setitimer(ITIMER_REAL, &every, NULL);
    while (!fired) {
        aio_poll(ctx, true);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &old, NULL);
    g_assert_cmpint(signals, >, 0);
    g_assert_cmpint(clock_get_ns(CLOCK_TYPE_REALTIME), >=, due);
}

static AioContext *notify_from_signal;

static void on_alarm_notify(int sig)
{
    signals++;
    aio_notify(notify_from_signal);
}

static void case_notify_from_signal_handler(AioContext *ctx)
{
    struct itimerval every = {.it_interval.tv_usec = 100, .it_value.tv_usec = 100}, off = {0};
    struct sigaction sa = {.sa_handler = on_alarm_notify, .sa_flags = SA_RESTART}, old;

    signals = 0;
    notify_from_signal = ctx;
    sigaction(SIGALRM, &sa, &old);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int i = 0; i < 200; i++) {
        aio_poll(ctx, true);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &old, NULL);
    g_assert_cmpint(signals, >, 0);
}

/* --- Other threads --- */

typedef struct Peer {
    AioContext *ctx;
    pthread_t thread;
    int rounds;
    _Atomic int sent;
    _Atomic int *seen;
    _Atomic int *go;
} Peer;

static void *notify_many(void *opaque)
{
    Peer *peer = opaque;

    for (int i = 0; i < peer->rounds; i++) {
        /* One after the other: each must wake the loop, which may just be falling asleep. */
        while (atomic_load(peer->go) <= i) {
            sched_yield();
        }
        atomic_fetch_add(&peer->sent, 1);
        aio_notify(peer->ctx);
    }
    return NULL;
}

static void case_notify_from_many_threads(AioContext *ctx)
{
    enum { THREADS = 4, ROUNDS = 300 };
    Peer peers[THREADS];
    _Atomic int go = 0;

    for (int i = 0; i < THREADS; i++) {
        peers[i] = (Peer){.ctx = ctx, .rounds = ROUNDS, .go = &go};
        g_assert_cmpint(pthread_create(&peers[i].thread, NULL, notify_many, &peers[i]), ==, 0);
    }
    for (int r = 1; r <= ROUNDS; r++) {
        int sum;

        atomic_store(&go, r);
        do {
            sum = 0;
            for (int i = 0; i < THREADS; i++) {
                sum += atomic_load(&peers[i].sent);
            }
            if (sum < r * THREADS) {
                aio_poll(ctx, true);
            }
        } while (sum < r * THREADS);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(peers[i].thread, NULL);
    }
}

static void *set_one_shot(void *opaque)
{
    Peer *peer = opaque;

    g_usleep(1000);
    aio_notify(peer->ctx);
    return NULL;
}

static void case_wakes_from_sleep(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);

    for (int i = 0; i < 5; i++) {
        Peer peer = {.ctx = ctx};
        uint64_t sent = aio_stat_get(&s->notify_sent);

        g_assert_cmpint(pthread_create(&peer.thread, NULL, set_one_shot, &peer), ==, 0);
        aio_poll(ctx, true);
        pthread_join(peer.thread, NULL);
        g_assert_cmpuint(aio_stat_get(&s->notify_sent) - sent, <=, 1);
    }
    /* No stale wake-up is left that would keep the loop from sleeping twice. */
    aio_poll(ctx, false);
    g_assert_false(aio_poll(ctx, false));
}

/* --- End with work pending --- */

static void case_shutdown_runs_pending(AioContext *ctx)
{
    AioMonitor m = aio_context_monitor(ctx);
    AioContext *other;
    AioContextConfig cfg = {.name = "second", .monitor = m, .uring_flags = AIO_URING_AUTO};
    Pipe p;
    AioTimer t;
    AioBH *bh;
    int n = 0, timer_ran = 0;

    /* A thread has one context: this one takes the place of the runner's. */
    loop_test_free(ctx);
    other = aio_context_new(&cfg, &error_abort);
    pipe_open(&p, other);
    watch_read(&p, count_read);
    aio_timer_init(&t, other, CLOCK_TYPE_REALTIME, bump, &timer_ran);
    aio_timer_mod_ns(&t, INT64_MAX);
    bh = aio_bh_new(other, bump, &n);
    aio_bh_schedule(bh);
    aio_bh_schedule_oneshot(other, bump, &n);
    aio_context_shutdown(other);
    g_assert_cmpint(n, ==, 2);
    g_assert_cmpint(timer_ran, ==, 0);
    g_assert_false(aio_timer_pending(&t));
    aio_timer_del(&t);
    aio_bh_delete(bh);
    aio_context_unref(other);
    pipe_close(&p);
}

static const LoopCaseEntry cases[] = {
    {"timeout/never-early", case_timeout_not_early},
    {"timeout/does-not-dangle", case_timeout_does_not_dangle},
    {"signal/interrupted-wait-keeps-deadline", case_signal_interrupts_wait},
    {"signal/notify-from-handler-is-not-lost", case_notify_from_signal_handler},
    {"notify/from-many-threads-none-lost", case_notify_from_many_threads},
    {"notify/from-other-thread-wakes", case_wakes_from_sleep},
    {"shutdown/runs-what-is-pending", case_shutdown_runs_pending},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
