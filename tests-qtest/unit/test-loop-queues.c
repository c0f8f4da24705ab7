/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The io_uring ring of a context, over all monitors. */
#include "loop-test.h"

#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
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

static void case_shutdown_waits(AioContext *ctx)
{
    Nop n = {.ctx = ctx};

    if (aio_uring_get(ctx, NULL)) {
        nop_submit(&n);
        loop_test_free(ctx);
        g_assert_cmpint(n.done, ==, 1);
    }
}

static const LoopCaseEntry cases[] = {
    {"ring/requests-and-descriptors", case_ring_requests},
    {"ring/completion-ends-sleep", case_ring_wakes_sleeper},
    {"ring/callbacks-submit", case_ring_callback_submits},
    {"ring/shutdown-waits-for-requests", case_shutdown_waits},
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
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
