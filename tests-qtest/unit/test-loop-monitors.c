/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every monitor must do, as one table of cases. */
#include "loop-test.h"

#include "loop/event-notifier.h"
#include "loop/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct Pipe {
    AioContext *ctx;
    int r, w;
    int reads, writes;
    struct Pipe *other;
} Pipe;

static void pipe_open(Pipe *p, AioContext *ctx)
{
    int fds[2];

    g_assert_cmpint(pipe2(fds, O_NONBLOCK | O_CLOEXEC), ==, 0);
    *p = (Pipe){.ctx = ctx, .r = fds[0], .w = fds[1]};
}

static void pipe_close(Pipe *p)
{
    close(p->r);
    close(p->w);
}

static void pipe_put(Pipe *p)
{
    g_assert_cmpint(write(p->w, "x", 1), ==, 1);
}

static void forget(Pipe *p, int fd)
{
    aio_set_fd_handler(p->ctx, fd, NULL, NULL, NULL, NULL, NULL);
}

static void count_read(void *opaque)
{
    ((Pipe *)opaque)->reads++;
}

static void take_read(void *opaque)
{
    Pipe *p = opaque;
    char c;

    p->reads++;
    g_assert_cmpint(read(p->r, &c, 1), ==, 1);
}

static void count_write(void *opaque)
{
    ((Pipe *)opaque)->writes++;
}

static void watch_read(Pipe *p, AioHandlerFn *fn)
{
    aio_set_fd_handler(p->ctx, p->r, fn, NULL, NULL, NULL, p);
}

static void bump(void *opaque)
{
    ++*(int *)opaque;
}

/* --- Levels --- */

static void case_readable(AioContext *ctx)
{
    Pipe p;

    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    g_assert_false(aio_poll(ctx, false));
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 1);
    g_assert_false(aio_poll(ctx, false));
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_level_repeats(AioContext *ctx)
{
    Pipe p;

    pipe_open(&p, ctx);
    pipe_put(&p);
    watch_read(&p, count_read);
    for (int i = 1; i <= 10; i++) {
        g_assert_true(aio_poll(ctx, i % 2));
        g_assert_cmpint(p.reads, ==, i);
    }
    watch_read(&p, take_read);
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_poll(ctx, false));
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_partial_read_repeats(AioContext *ctx)
{
    Pipe p;

    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    for (int i = 0; i < 5; i++) {
        pipe_put(&p);
    }
    while (p.reads < 5) {
        g_assert_true(aio_poll(ctx, true));
    }
    g_assert_false(aio_poll(ctx, false));
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_writable(AioContext *ctx)
{
    Pipe p;
    char buf[4096] = {0};

    pipe_open(&p, ctx);
    aio_set_fd_handler(ctx, p.w, NULL, count_write, NULL, NULL, &p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.writes, ==, 1);
    while (write(p.w, buf, sizeof(buf)) > 0) {
    }
    g_assert_cmpint(errno, ==, EAGAIN);
    g_assert_false(aio_poll(ctx, false));
    while (read(p.r, buf, sizeof(buf)) > 0) {
    }
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.writes, ==, 2);
    forget(&p, p.w);
    g_assert_false(aio_poll(ctx, false));
    pipe_close(&p);
}

static void case_both_directions(AioContext *ctx)
{
    int fds[2];
    Pipe p = {.ctx = ctx};

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), ==, 0);
    p.r = fds[0];
    p.w = fds[1];
    aio_set_fd_handler(ctx, p.r, take_read, count_write, NULL, NULL, &p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 0);
    g_assert_cmpint(p.writes, ==, 1);
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 1);
    g_assert_cmpint(p.writes, ==, 2);
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_change_events(AioContext *ctx)
{
    int fds[2];
    Pipe p = {.ctx = ctx};

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), ==, 0);
    p.r = fds[0];
    p.w = fds[1];
    watch_read(&p, take_read);
    g_assert_false(aio_poll(ctx, false));
    for (int i = 1; i <= 3; i++) {
        aio_set_fd_handler(ctx, p.r, take_read, count_write, NULL, NULL, &p);
        g_assert_true(aio_poll(ctx, false));
        g_assert_cmpint(p.writes, ==, i);
        watch_read(&p, take_read);
        g_assert_false(aio_poll(ctx, false));
        pipe_put(&p);
        aio_set_fd_handler(ctx, p.r, NULL, count_write, NULL, NULL, &p);
        watch_read(&p, take_read);
        g_assert_true(aio_poll(ctx, false));
        g_assert_cmpint(p.reads, ==, i);
    }
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_hang_up(AioContext *ctx)
{
    Pipe p;

    pipe_open(&p, ctx);
    watch_read(&p, count_read);
    g_assert_false(aio_poll(ctx, false));
    close(p.w);
    g_assert_true(aio_poll(ctx, true));
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 2);
    forget(&p, p.r);
    g_assert_false(aio_poll(ctx, false));
    close(p.r);
}

static void case_error_to_writer(AioContext *ctx)
{
    Pipe p;
    char buf[4096] = {0};

    pipe_open(&p, ctx);
    while (write(p.w, buf, sizeof(buf)) > 0) {
    }
    aio_set_fd_handler(ctx, p.w, NULL, count_write, NULL, NULL, &p);
    g_assert_false(aio_poll(ctx, false));
    close(p.r);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.writes, ==, 1);
    forget(&p, p.w);
    close(p.w);
}

static void case_hang_up_without_reader(AioContext *ctx)
{
    int fds[2];
    Pipe p = {.ctx = ctx};
    char buf[4096] = {0};

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), ==, 0);
    p.r = fds[0];
    while (write(p.r, buf, sizeof(buf)) > 0) {
    }
    aio_set_fd_handler(ctx, p.r, NULL, count_write, NULL, NULL, &p);
    g_assert_false(aio_poll(ctx, false));
    close(fds[1]);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.writes, ==, 1);
    forget(&p, p.r);
    close(p.r);
}

static void case_regular_file(AioContext *ctx)
{
    g_autofree char *name = NULL;
    Pipe p = {.ctx = ctx};
    int n = 0;

    p.r = g_file_open_tmp(NULL, &name, NULL);
    g_assert_cmpint(p.r, >=, 0);
    unlink(name);
    watch_read(&p, count_read);
    /* poll(2) says that a regular file is always readable; a console redirected from one relies on that. */
    for (int i = 1; i <= 3; i++) {
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpint(p.reads, ==, i);
    }
    aio_bh_schedule_oneshot(ctx, bump, &n);
    aio_poll(ctx, true);
    g_assert_cmpint(n, ==, 1);
    forget(&p, p.r);
    g_assert_false(aio_poll(ctx, false));
    close(p.r);
}

/* --- Removal --- */

static void remove_self(void *opaque)
{
    Pipe *p = opaque;

    p->reads++;
    forget(p, p->r);
}

static void case_remove_in_own_callback(AioContext *ctx)
{
    Pipe p;

    pipe_open(&p, ctx);
    watch_read(&p, remove_self);
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpint(p.reads, ==, 1);
    pipe_close(&p);
}

static void remove_self_before_write(void *opaque)
{
    remove_self(opaque);
}

static void case_removed_by_read_does_not_write(AioContext *ctx)
{
    int fds[2];
    Pipe p = {.ctx = ctx};

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), ==, 0);
    p.r = fds[0];
    p.w = fds[1];
    aio_set_fd_handler(ctx, p.r, remove_self_before_write, count_write, NULL, NULL, &p);
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 1);
    g_assert_cmpint(p.writes, ==, 0);
    pipe_close(&p);
}

static void remove_other(void *opaque)
{
    Pipe *p = opaque;

    p->reads++;
    forget(p->other, p->other->r);
}

static void case_remove_in_others_callback(AioContext *ctx)
{
    Pipe a, b;

    pipe_open(&a, ctx);
    pipe_open(&b, ctx);
    a.other = &b;
    b.other = &a;
    watch_read(&a, remove_other);
    watch_read(&b, remove_other);
    g_assert_false(aio_poll(ctx, false));
    pipe_put(&a);
    pipe_put(&b);
    g_assert_true(aio_poll(ctx, true));
    /* Whichever came first has removed the other, which was ready too. */
    g_assert_cmpint(a.reads + b.reads, ==, 1);
    forget(&a, a.r);
    forget(&b, b.r);
    g_assert_false(aio_poll(ctx, false));
    pipe_close(&a);
    pipe_close(&b);
}

static void case_fd_reuse(AioContext *ctx)
{
    Pipe a, b;

    for (int i = 0; i < 20; i++) {
        pipe_open(&a, ctx);
        watch_read(&a, count_read);
        g_assert_false(aio_poll(ctx, false));
        if (i % 2) {
            pipe_put(&a);
        }
        forget(&a, a.r);
        pipe_close(&a);
        pipe_open(&b, ctx);
        g_assert_cmpint(a.r, ==, b.r);
        watch_read(&b, take_read);
        g_assert_false(aio_poll(ctx, false));
        pipe_put(&b);
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpint(a.reads, ==, 0);
        g_assert_cmpint(b.reads, ==, 1);
        forget(&b, b.r);
        pipe_close(&b);
    }
}

static void reopen_in_callback(void *opaque)
{
    Pipe *p = opaque, fresh;

    forget(p, p->r);
    pipe_close(p);
    pipe_open(&fresh, p->ctx);
    g_assert_cmpint(fresh.r, ==, p->r);
    p->w = fresh.w;
    p->reads += 100;
    watch_read(p, take_read);
}

static void case_fd_reuse_in_callback(AioContext *ctx)
{
    Pipe p;

    pipe_open(&p, ctx);
    watch_read(&p, reopen_in_callback);
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 100);
    g_assert_false(aio_poll(ctx, false));
    pipe_put(&p);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(p.reads, ==, 101);
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_close_after_removal_reaches_peer(AioContext *ctx)
{
    int fds[2];
    char c;
    Pipe p = {.ctx = ctx};

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    p.r = fds[0];
    watch_read(&p, count_read);
    g_assert_false(aio_poll(ctx, false));
    forget(&p, p.r);
    close(p.r);
    /* A monitor that kept a reference to the file would make this wait for ever. */
    g_assert_cmpint(read(fds[1], &c, 1), ==, 0);
    close(fds[1]);
}

static void case_many_handlers(AioContext *ctx)
{
    enum { N = 1500 };
    g_autofree Pipe *p = g_new(Pipe, N);
    struct rlimit lim;
    int total = 0;

    getrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_cur < 2 * N + 100) {
        lim.rlim_cur = MIN(lim.rlim_max, 2 * N + 100);
        setrlimit(RLIMIT_NOFILE, &lim);
    }
    if (lim.rlim_cur < 2 * N + 100) {
        g_test_skip("not enough file descriptors");
        return;
    }
    for (int i = 0; i < N; i++) {
        pipe_open(&p[i], ctx);
        watch_read(&p[i], take_read);
    }
    g_assert_false(aio_poll(ctx, false));
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < N; i += round) {
            pipe_put(&p[i]);
            total++;
        }
        for (int got = 0; got < total;) {
            g_assert_true(aio_poll(ctx, true));
            got = 0;
            for (int i = 0; i < N; i++) {
                got += p[i].reads;
            }
        }
        g_assert_false(aio_poll(ctx, false));
    }
    for (int i = 0; i < N; i += 2) {
        forget(&p[i], p[i].r);
        pipe_put(&p[i]);
    }
    g_assert_false(aio_poll(ctx, false));
    pipe_put(&p[N - 1]);
    g_assert_true(aio_poll(ctx, true));
    for (int i = 1; i < N; i += 2) {
        forget(&p[i], p[i].r);
    }
    for (int i = 0; i < N; i++) {
        pipe_close(&p[i]);
    }
}

/* --- Nesting --- */

static void nested_read(void *opaque)
{
    Pipe *p = opaque;

    take_read(p);
    if (p->other->reads == 0) {
        pipe_put(p->other);
        while (p->other->reads == 0) {
            aio_poll(p->ctx, true);
        }
        /* Removing in a nested pass must keep what the outer pass still uses. */
        forget(p, p->r);
        aio_poll(p->ctx, false);
    }
}

static void case_nested_poll(AioContext *ctx)
{
    Pipe a, b;

    pipe_open(&a, ctx);
    pipe_open(&b, ctx);
    a.other = &b;
    watch_read(&a, nested_read);
    watch_read(&b, take_read);
    pipe_put(&a);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(a.reads, ==, 1);
    g_assert_cmpint(b.reads, ==, 1);
    g_assert_false(aio_poll(ctx, false));
    forget(&b, b.r);
    pipe_close(&a);
    pipe_close(&b);
}

/* --- Bottom halves that compete with descriptors --- */

typedef struct Spinner {
    AioBH *bh;
    uint64_t runs;
} Spinner;

static void spin(void *opaque)
{
    Spinner *s = opaque;

    s->runs++;
    aio_bh_schedule(s->bh);
}

static void case_bh_does_not_starve_fd(AioContext *ctx)
{
    Pipe p;
    Spinner s = {0};

    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    s.bh = aio_bh_new(ctx, spin, &s);
    aio_bh_schedule(s.bh);
    for (int i = 0; i < 100; i++) {
        uint64_t before = s.runs;

        pipe_put(&p);
        while (p.reads <= i) {
            aio_poll(ctx, true);
        }
        g_assert_cmpuint(s.runs - before, <=, 20);
    }
    aio_bh_delete(s.bh);
    forget(&p, p.r);
    pipe_close(&p);
}

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
    {"fd/readable-is-reported", case_readable},
    {"fd/level-repeats-until-read", case_level_repeats},
    {"fd/partial-read-repeats", case_partial_read_repeats},
    {"fd/writable-is-reported", case_writable},
    {"fd/both-directions-in-one-pass", case_both_directions},
    {"fd/events-change-at-once", case_change_events},
    {"fd/hang-up-goes-to-reader", case_hang_up},
    {"fd/hang-up-goes-to-writer-without-reader", case_hang_up_without_reader},
    {"fd/error-goes-to-writer", case_error_to_writer},
    {"fd/regular-file-is-always-ready", case_regular_file},
    {"fd/removal-in-own-callback", case_remove_in_own_callback},
    {"fd/removal-in-read-stops-write", case_removed_by_read_does_not_write},
    {"fd/removal-in-others-callback", case_remove_in_others_callback},
    {"fd/reuse-of-number", case_fd_reuse},
    {"fd/reuse-of-number-in-callback", case_fd_reuse_in_callback},
    {"fd/close-after-removal-reaches-peer", case_close_after_removal_reaches_peer},
    {"fd/thousands-of-handlers", case_many_handlers},
    {"poll/nested", case_nested_poll},
    {"poll/bottom-half-does-not-starve-fd", case_bh_does_not_starve_fd},
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
