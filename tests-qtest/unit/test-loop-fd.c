/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every monitor must do with descriptors, as one table of cases. */
#include "loop-test.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>

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
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
