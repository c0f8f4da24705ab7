/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Linux AIO context of a loop, over all monitors. */
#include "loop-test.h"

#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <libaio.h>
#include <string.h>

typedef struct Disk {
    AioCompletion c;
    struct iocb iocb;
    int done;
    int64_t res;
    char *buf;
} Disk;

static void disk_done(AioCompletion *c, int64_t res, uint32_t flags)
{
    Disk *d = container_of(c, Disk, c);

    d->done++;
    d->res = res;
}

static int disk_file(void)
{
    g_autofree char *name = NULL;
    int fd = g_file_open_tmp(NULL, &name, NULL);

    unlink(name);
    g_assert_cmpint(ftruncate(fd, 1 << 20), ==, 0);
    return fd;
}

static void disk_prepare(Disk *d, int fd, bool write, uint64_t offset)
{
    if (!d->buf) {
        d->buf = g_malloc0(512);
    }
    if (write) {
        io_prep_pwrite(&d->iocb, fd, d->buf, 512, (long long)offset);
    } else {
        io_prep_pread(&d->iocb, fd, d->buf, 512, (long long)offset);
    }
    d->c.fn = disk_done;
    d->iocb.data = &d->c;
    d->done = 0;
}

static bool get_kaio(AioContext *ctx)
{
    g_autoptr(Error) err = NULL;

    if (!aio_kaio_get(ctx, &err)) {
        g_test_skip(error_get_pretty(err));
        return false;
    }
    return true;
}

static void run_disk(AioContext *ctx, int rounds)
{
    enum { N = 32 };
    Disk d[N] = {0};
    struct iocb *iocbs[N];
    int fd = disk_file();

    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < N; i++) {
            if (d[i].buf && r % 2 == 0) {
                memset(d[i].buf, r + i, 512);
            }
            disk_prepare(&d[i], fd, r % 2 == 0, (uint64_t)i * 512);
            iocbs[i] = &d[i].iocb;
        }
        g_assert_cmpint(aio_kaio_submit(ctx, iocbs, N), ==, N);
        for (int i = 0; i < N; i++) {
            while (!d[i].done) {
                aio_poll(ctx, true);
            }
            g_assert_cmpint(d[i].done, ==, 1);
            g_assert_cmpint(d[i].res, ==, 512);
            if (r % 2 && r > 2) {
                g_assert_true(d[i].buf[511] == (char)(r - 1 + i));
            }
        }
        g_assert_cmpuint(aio_kaio_in_flight(ctx), ==, 0);
    }
    for (int i = 0; i < N; i++) {
        g_free(d[i].buf);
    }
    close(fd);
}

static void case_kaio_requests(AioContext *ctx)
{
    if (get_kaio(ctx)) {
        run_disk(ctx, 20);
        /* What their completions did to the notifier must not keep the loop awake, nor hide a wake-up. */
        aio_poll(ctx, false);
        aio_poll(ctx, false);
        g_assert_false(aio_poll(ctx, false));
    }
}

static void case_kaio_unknown_ring(AioContext *ctx)
{
    /* As a kernel with another layout would have it: everything must go through io_getevents(2). */
    if (get_kaio(ctx)) {
        aio_kaio_forget_ring(ctx);
        run_disk(ctx, 20);
    }
}

static void case_kaio_with_descriptors(AioContext *ctx)
{
    Pipe p;

    if (!get_kaio(ctx)) {
        return;
    }
    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    for (int i = 1; i <= 10; i++) {
        run_disk(ctx, 1);
        pipe_put(&p);
        while (p.reads < i) {
            aio_poll(ctx, true);
        }
    }
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_kaio_resize(AioContext *ctx)
{
    Pipe p;
    g_autoptr(Error) err = NULL;

    if (!get_kaio(ctx)) {
        return;
    }
    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    g_assert_cmpuint(aio_kaio_free_events(ctx), ==, 1024);
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpint(aio_context_set_max_events(ctx, 64, &error_abort), ==, 0);
    g_assert_cmpuint(aio_context_max_events(ctx), ==, 64);
    g_assert_cmpuint(aio_kaio_free_events(ctx), ==, 64);
    /* Descriptors are watched in the new context. */
    pipe_put(&p);
    while (!p.reads) {
        aio_poll(ctx, true);
    }
    run_disk(ctx, 4);
    /* No kernel has so many: the old context stays. */
    g_assert_cmpint(aio_context_set_max_events(ctx, 0x7fffff00, &err), <, 0);
    g_assert_nonnull(err);
    g_assert_cmpuint(aio_context_max_events(ctx), ==, 64);
    run_disk(ctx, 4);
    forget(&p, p.r);
    pipe_close(&p);
}

static void case_kaio_resize_busy(AioContext *ctx)
{
    Disk d = {0};
    struct iocb *iocb = &d.iocb;
    g_autoptr(Error) err = NULL;
    int fd = disk_file();

    if (get_kaio(ctx)) {
        disk_prepare(&d, fd, false, 0);
        g_assert_cmpint(aio_kaio_submit(ctx, &iocb, 1), ==, 1);
        g_assert_cmpint(aio_context_set_max_events(ctx, 64, &err), ==, -EBUSY);
        g_assert_cmpstr(error_get_pretty(err), ==,
                        "Cannot change the number of AIO events of 'test' to 64 while 1 requests are in flight");
        g_assert_cmpuint(aio_context_max_events(ctx), ==, 1024);
        while (!d.done) {
            aio_poll(ctx, true);
        }
        g_free(d.buf);
    }
    close(fd);
}

/* A request that completes when a pipe becomes readable: within io_submit(2) if it is, else when somebody writes. */
static void pipe_request(Disk *d, Pipe *p)
{
    *d = (Disk){.c.fn = disk_done};
    io_prep_poll(&d->iocb, p->r, POLLIN);
    d->iocb.data = &d->c;
}

#define PAIR 2

static void submit_pair(AioContext *ctx, Disk *d, Pipe *first, Pipe *second)
{
    struct iocb *iocbs[PAIR] = {&d[0].iocb, &d[1].iocb};

    pipe_request(&d[0], first);
    pipe_request(&d[1], second);
    g_assert_cmpint(aio_kaio_submit(ctx, iocbs, PAIR), ==, PAIR);
}

static void finish_pair(AioContext *ctx, Disk *d)
{
    while (!d[0].done || !d[1].done) {
        aio_poll(ctx, true);
    }
}

/* Each request signals the notifier, until for long all were over when the call returned. */
static void case_kaio_signals_no_more(AioContext *ctx)
{
    Disk d[PAIR];
    Pipe p;

    if (!get_kaio(ctx)) {
        return;
    }
    pipe_open(&p, ctx);
    pipe_put(&p);
    submit_pair(ctx, d, &p, &p);
    g_assert_cmpint(event_notifier_test_and_clear(&ctx->notifier), ==, ctx->monitor != AIO_MONITOR_LINUX_AIO);
    finish_pair(ctx, d);
    for (int i = 0; i < 100; i++) {
        submit_pair(ctx, d, &p, &p);
        finish_pair(ctx, d);
    }
    event_notifier_test_and_clear(&ctx->notifier);
    submit_pair(ctx, d, &p, &p);
    g_assert_false(event_notifier_test_and_clear(&ctx->notifier));
    finish_pair(ctx, d);
    pipe_close(&p);
}

static void *put_later(void *opaque)
{
    g_usleep(20000);
    pipe_put(opaque);
    return NULL;
}

/*
 * Calls that completed everything at once for long make the loop do without signals; a request that then takes its time must
 * end all the same, though nothing else happens.
 */
static void case_kaio_unexpected_wait(AioContext *ctx)
{
    Disk d[PAIR];
    Pipe p, never;
    pthread_t writer;
    char c;

    if (!get_kaio(ctx)) {
        return;
    }
    pipe_open(&p, ctx);
    pipe_open(&never, ctx);
    for (int round = 0; round < 3; round++) {
        pipe_put(&p);
        for (int i = 0; i < 100; i++) {
            submit_pair(ctx, d, &p, &p);
            finish_pair(ctx, d);
        }
        g_assert_cmpint(read(p.r, &c, 1), ==, 1);
        submit_pair(ctx, d, &p, &never);
        g_assert_cmpint(pthread_create(&writer, NULL, put_later, &p), ==, 0);
        while (!d[0].done) {
            aio_poll(ctx, true);
        }
        pthread_join(writer, NULL);
        g_assert_cmpint(read(p.r, &c, 1), ==, 1);
        g_assert_false(d[1].done);
        pipe_put(&never);
        while (!d[1].done) {
            aio_poll(ctx, true);
        }
        g_assert_cmpint(read(never.r, &c, 1), ==, 1);
    }
    pipe_close(&p);
    pipe_close(&never);
}

static void case_shutdown_waits(AioContext *ctx)
{
    Disk d = {0};
    struct iocb *iocb = &d.iocb;
    int fd = disk_file();

    if (get_kaio(ctx)) {
        disk_prepare(&d, fd, true, 0);
        g_assert_cmpint(aio_kaio_submit(ctx, &iocb, 1), ==, 1);
        loop_test_free(ctx);
        g_assert_cmpint(d.done, ==, 1);
        g_free(d.buf);
    }
    close(fd);
}

static void test_aio_max_nr(void)
{
    AioContextConfig cfg = {.monitor = AIO_MONITOR_POLL, .max_events = 0x7fffff00};
    AioContext *ctx = aio_context_new(&cfg, &error_abort);
    g_autoptr(Error) err = NULL;

    g_assert_false(aio_kaio_get(ctx, &err));
    g_assert_nonnull(strstr(error_get_pretty(err), "2147483392 events"));
    if (strstr(error_get_pretty(err), "Resource temporarily unavailable")) {
        g_assert_nonnull(strstr(error_get_hint(err), "fs.aio-max-nr = "));
    }
    loop_test_free(ctx);
}

static const LoopCaseEntry cases[] = {
    {"kaio/requests-complete", case_kaio_requests},
    {"kaio/unknown-ring-layout-uses-getevents", case_kaio_unknown_ring},
    {"kaio/requests-and-descriptors", case_kaio_with_descriptors},
    {"kaio/at-once-for-long-signals-no-more", case_kaio_signals_no_more},
    {"kaio/unexpected-wait-ends", case_kaio_unexpected_wait},
    {"kaio/resize-keeps-descriptors", case_kaio_resize},
    {"kaio/resize-refused-while-busy", case_kaio_resize_busy},
    {"kaio/shutdown-waits-for-requests", case_shutdown_waits},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/kaio-limit/message-names-sysctl", test_aio_max_nr);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
