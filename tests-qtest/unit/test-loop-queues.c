/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel queues of a context, the io_uring ring and the Linux AIO context, over all monitors. */
#include "loop-test.h"

#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <libaio.h>
#include <liburing.h>
#include <string.h>
#include <sys/syscall.h>

#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif

/* --- The set-up call of the ring, with a kernel that does not know some flags --- */

static unsigned int refused_flags;
static int setup_errno;
static unsigned int setup_calls;

int aio_uring_setup_call(unsigned int entries, struct io_uring_params *p)
{
    int fd;

    setup_calls++;
    if (setup_errno) {
        return -setup_errno;
    }
    if (p->flags & refused_flags) {
        return -EINVAL;
    }
    fd = (int)syscall(__NR_io_uring_setup, entries, p);
    return fd < 0 ? -errno : fd;
}

static AioContext *context_with_flags(unsigned int flags, bool is_main)
{
    AioContextConfig cfg = {.name = "ring", .monitor = AIO_MONITOR_IO_URING, .uring_flags = flags, .is_main = is_main};
    g_autoptr(Error) err = NULL;
    AioContext *ctx = aio_context_new(&cfg, &err);

    if (!ctx) {
        g_test_skip(error_get_pretty(err));
    }
    return ctx;
}

typedef struct Nop {
    AioCompletion c;
    int done;
    int64_t res;
    AioContext *ctx;
    int again; /* submit so many more from the callback */
} Nop;

static void nop_submit(Nop *n);

static void nop_done(AioCompletion *c, int64_t res, uint32_t flags)
{
    Nop *n = container_of(c, Nop, c);

    n->done++;
    n->res = res;
    if (n->again > 0) {
        n->again--;
        nop_submit(n);
    }
}

static void nop_submit(Nop *n)
{
    struct io_uring_sqe *sqe = aio_uring_sqe(n->ctx, &n->c);
    uint64_t data;

    g_assert_nonnull(sqe);
    data = sqe->user_data;
    n->c.fn = nop_done;
    io_uring_prep_nop(sqe);
    sqe->user_data = data;
}

/* The ring works, however it was set up: more requests than it has places, and a descriptor. */
static void use_ring(AioContext *ctx)
{
    enum { N = 700 };
    g_autofree Nop *nops = g_new0(Nop, N);
    Pipe p;

    for (int i = 0; i < N; i++) {
        nops[i].ctx = ctx;
        nop_submit(&nops[i]);
    }
    for (int i = 0; i < N; i++) {
        while (!nops[i].done) {
            aio_poll(ctx, true);
        }
        g_assert_cmpint(nops[i].done, ==, 1);
        g_assert_cmpint(nops[i].res, ==, 0);
    }
    g_assert_cmpuint(aio_uring_in_flight(ctx), ==, 0);
    pipe_open(&p, ctx);
    watch_read(&p, take_read);
    g_assert_false(aio_poll(ctx, false));
    pipe_put(&p);
    while (!p.reads) {
        aio_poll(ctx, true);
    }
    forget(&p, p.r);
    pipe_close(&p);
}

typedef struct FlagCase {
    const char *name;
    unsigned int ask, refused, expected;
} FlagCase;

#define ALL                                                                                                            \
    (AIO_URING_SINGLE_ISSUER | AIO_URING_COOP_TASKRUN | AIO_URING_NO_SQARRAY | AIO_URING_DEFER_TASKRUN |              \
     AIO_URING_REGISTERED_RING)

static const FlagCase flag_cases[] = {
    {"none-asked-none-set", 0, 0, 0},
    {"no-sqarray-alone-refused", ALL, IORING_SETUP_NO_SQARRAY, ALL & ~AIO_URING_NO_SQARRAY},
    {"defer-taskrun-alone-refused", ALL, IORING_SETUP_DEFER_TASKRUN, ALL & ~AIO_URING_DEFER_TASKRUN},
    {"kernel-6.0", ALL, IORING_SETUP_NO_SQARRAY | IORING_SETUP_DEFER_TASKRUN,
     ALL & ~(AIO_URING_NO_SQARRAY | AIO_URING_DEFER_TASKRUN)},
    {"kernel-5.19", ALL, IORING_SETUP_NO_SQARRAY | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER,
     AIO_URING_COOP_TASKRUN | AIO_URING_REGISTERED_RING},
    {"kernel-5.18", ALL,
     IORING_SETUP_NO_SQARRAY | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
         IORING_SETUP_TASKRUN_FLAG,
     AIO_URING_REGISTERED_RING},
    {"kernel-5.17-without-submit-all", ALL,
     IORING_SETUP_NO_SQARRAY | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
         IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
     AIO_URING_REGISTERED_RING},
};

static void test_flags(gconstpointer data)
{
    const FlagCase *c = data;
    AioContext *ctx;

    refused_flags = c->refused;
    ctx = context_with_flags(c->ask, false);
    refused_flags = 0;
    if (ctx) {
        g_assert_cmphex(aio_context_uring_flags(ctx), ==, c->expected);
        use_ring(ctx);
        loop_test_free(ctx);
    }
}

/* Each flag alone, and all that the kernel takes: whatever it says is in force must work. */
static void test_each_flag_works(void)
{
    static const unsigned int sets[] = {
        AIO_URING_SINGLE_ISSUER, AIO_URING_COOP_TASKRUN, AIO_URING_NO_SQARRAY,
        AIO_URING_SINGLE_ISSUER | AIO_URING_DEFER_TASKRUN, AIO_URING_REGISTERED_RING, ALL,
    };

    for (unsigned int i = 0; i < G_N_ELEMENTS(sets); i++) {
        AioContext *ctx = context_with_flags(sets[i], false);

        if (!ctx) {
            return;
        }
        g_assert_cmphex(aio_context_uring_flags(ctx) & ~sets[i], ==, 0);
        use_ring(ctx);
        loop_test_free(ctx);
    }
}

static void test_auto_flags(void)
{
    AioContext *ctx = context_with_flags(AIO_URING_AUTO, false);
    unsigned int io, main;

    if (!ctx) {
        return;
    }
    io = aio_context_uring_flags(ctx);
    loop_test_free(ctx);
    ctx = context_with_flags(AIO_URING_AUTO, true);
    main = aio_context_uring_flags(ctx);
    use_ring(ctx);
    loop_test_free(ctx);
    g_assert_cmphex(main & (AIO_URING_SINGLE_ISSUER | AIO_URING_DEFER_TASKRUN), ==, 0);
    g_assert_cmphex(main & ~io, ==, 0);
}

static void test_refused_names_the_errno(void)
{
    AioContextConfig cfg = {.monitor = AIO_MONITOR_IO_URING, .uring_flags = ALL};
    g_autoptr(Error) err = NULL;

    setup_errno = EPERM;
    setup_calls = 0;
    g_assert_null(aio_context_new(&cfg, &err));
    setup_errno = 0;
    g_assert_cmpuint(setup_calls, ==, 1);
    g_assert_cmpstr(error_get_pretty(err), ==, "Failed to set up an io_uring ring: Operation not permitted");
    g_assert_null(aio_context_current());
}

static void test_auto_monitor_falls_back(void)
{
    AioContextConfig cfg = {.monitor = AIO_MONITOR_AUTO, .uring_flags = AIO_URING_AUTO};
    g_autoptr(Error) err = NULL;
    AioContext *ctx;

    setup_errno = ENOSYS;
    ctx = aio_context_new(&cfg, &error_abort);
    g_assert_cmpint(aio_context_monitor(ctx), ==, AIO_MONITOR_EPOLL);
    g_assert_cmphex(aio_context_uring_flags(ctx), ==, 0);
    g_assert_null(aio_uring_get(ctx, &err));
    g_assert_nonnull(err);
    setup_errno = 0;
    loop_test_free(ctx);
}

/* --- The ring under each monitor --- */

static void case_ring_requests(AioContext *ctx)
{
    g_autoptr(Error) err = NULL;

    if (!aio_uring_get(ctx, &err)) {
        g_test_skip(error_get_pretty(err));
        return;
    }
    use_ring(ctx);
}

static void case_ring_wakes_sleeper(AioContext *ctx)
{
    struct __kernel_timespec ts = {.tv_nsec = 3000000};
    struct io_uring_sqe *sqe;
    Nop n = {.ctx = ctx};
    g_autoptr(Error) err = NULL;
    uint64_t data;

    if (!aio_uring_get(ctx, &err)) {
        g_test_skip(error_get_pretty(err));
        return;
    }
    for (int i = 1; i <= 3; i++) {
        sqe = aio_uring_sqe(ctx, &n.c);
        data = sqe->user_data;
        n.c.fn = nop_done;
        io_uring_prep_timeout(sqe, &ts, 0, 0);
        sqe->user_data = data;
        while (n.done < i) {
            aio_poll(ctx, true);
        }
        g_assert_cmpint(n.res, ==, -ETIME);
    }
}

static void case_ring_callback_submits(AioContext *ctx)
{
    Nop n = {.ctx = ctx, .again = 5000};
    g_autoptr(Error) err = NULL;

    if (!aio_uring_get(ctx, &err)) {
        g_test_skip(error_get_pretty(err));
        return;
    }
    nop_submit(&n);
    while (n.done < 5001) {
        aio_poll(ctx, true);
    }
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(ctx)->requests), ==, 5001);
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(ctx)->completions), ==, 5001);
}

/* --- Linux AIO under each monitor --- */

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
                g_assert_cmpint(d[i].buf[511], ==, (char)(r - 1 + i));
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

static void *put_later(void *opaque)
{
    g_usleep(20000);
    pipe_put(opaque);
    return NULL;
}

/*
 * Calls that completed everything at once for long make the loop do without signals; a request that then takes its time must
 * end all the same, though nothing else happens and the one that would signal never completes.
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
            while (!d[0].done || !d[1].done) {
                aio_poll(ctx, true);
            }
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
    Nop n = {.ctx = ctx};
    int fd = disk_file();

    if (get_kaio(ctx) && aio_uring_get(ctx, NULL)) {
        disk_prepare(&d, fd, true, 0);
        g_assert_cmpint(aio_kaio_submit(ctx, &iocb, 1), ==, 1);
        nop_submit(&n);
        loop_test_free(ctx);
        g_assert_cmpint(d.done, ==, 1);
        g_assert_cmpint(n.done, ==, 1);
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
    {"ring/requests-and-descriptors", case_ring_requests},
    {"ring/completion-ends-sleep", case_ring_wakes_sleeper},
    {"ring/callbacks-submit", case_ring_callback_submits},
    {"kaio/requests-complete", case_kaio_requests},
    {"kaio/unknown-ring-layout-uses-getevents", case_kaio_unknown_ring},
    {"kaio/requests-and-descriptors", case_kaio_with_descriptors},
    {"kaio/unexpected-wait-ends", case_kaio_unexpected_wait},
    {"kaio/resize-keeps-descriptors", case_kaio_resize},
    {"kaio/resize-refused-while-busy", case_kaio_resize_busy},
    {"shutdown/waits-for-requests", case_shutdown_waits},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned int i = 0; i < G_N_ELEMENTS(flag_cases); i++) {
        g_autofree char *path = g_strdup_printf("/loop/ring-flags/%s", flag_cases[i].name);

        g_test_add_data_func(path, &flag_cases[i], test_flags);
    }
    g_test_add_func("/loop/ring-flags/each-works", test_each_flag_works);
    g_test_add_func("/loop/ring-flags/auto-spares-main", test_auto_flags);
    g_test_add_func("/loop/ring-flags/refusal-names-errno", test_refused_names_the_errno);
    g_test_add_func("/loop/monitor/auto-falls-back-visibly", test_auto_monitor_falls_back);
    g_test_add_func("/loop/kaio-limit/message-names-sysctl", test_aio_max_nr);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
