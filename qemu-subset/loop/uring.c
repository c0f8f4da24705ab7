/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The io_uring ring of a context, shared by its monitor and its engine. */
#include "loop/uring-int.h"

#include <errno.h>
#include <glib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Newer than liburing 2.3. */
#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif

/*
 * The ring of SQEs is written round and round: 16 KiB stay in the first-level cache beside the rest. Completions may pile up
 * for longer; beyond that the kernel keeps them (IORING_FEAT_NODROP).
 */
#define SQ_ENTRIES 256
#define CQ_ENTRIES 2048

typedef struct SetupFlag {
    unsigned int aio, setup;
} SetupFlag;

/* Newest first, which is the order in which an old kernel is asked to do without. */
static const SetupFlag setup_flags[] = {
    {AIO_URING_NO_SQARRAY, IORING_SETUP_NO_SQARRAY},
    {AIO_URING_DEFER_TASKRUN, IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG},
    {AIO_URING_SINGLE_ISSUER, IORING_SETUP_SINGLE_ISSUER},
    {AIO_URING_COOP_TASKRUN, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG},
    {0, IORING_SETUP_SUBMIT_ALL},
};
#define N_FLAGS G_N_ELEMENTS(setup_flags)
#define FEATURES (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG)

__attribute__((weak)) int aio_uring_setup_call(unsigned int entries, struct io_uring_params *p)
{
    int fd = (int)syscall(__NR_io_uring_setup, entries, p);

    return fd < 0 ? -errno : fd;
}

/* @set: bits that index setup_flags. */
static int setup_with(unsigned int set, struct io_uring_params *p)
{
    *p = (struct io_uring_params){.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP, .cq_entries = CQ_ENTRIES};
    for (unsigned int i = 0; i < N_FLAGS; i++) {
        if (set & (1u << i)) {
            p->flags |= setup_flags[i].setup;
        }
    }
    return aio_uring_setup_call(SQ_ENTRIES, p);
}

/*
 * Ask for all; when the kernel says EINVAL, find the one flag that it does not like, else give up the newest and go on with
 * the rest. *@set tells what was accepted.
 */
static int setup_with_fallback(unsigned int *set, struct io_uring_params *p)
{
    int fd = setup_with(*set, p);

    while (fd == -EINVAL && *set) {
        for (unsigned int i = 0; i < N_FLAGS && fd == -EINVAL; i++) {
            if (*set & (1u << i)) {
                fd = setup_with(*set & ~(1u << i), p);
                if (fd >= 0) {
                    *set &= ~(1u << i);
                }
            }
        }
        if (fd == -EINVAL) {
            *set &= *set - 1;
        }
    }
    return fd;
}

static unsigned int wanted_flags(const AioContext *ctx)
{
    unsigned int want = ctx->uring_want;

    if (want & AIO_URING_AUTO) {
        want &= AIO_URING_REGISTERED;
        want |= AIO_URING_COOP_TASKRUN | AIO_URING_NO_SQARRAY | AIO_URING_REGISTERED_RING;
        /* The main thread may fork and go on in the child, which is another issuer. */
        if (!ctx->is_main) {
            want |= AIO_URING_SINGLE_ISSUER | AIO_URING_DEFER_TASKRUN;
        }
    }
    if (ctx->monitor != AIO_MONITOR_IO_URING) {
        /* Deferred completions wake who waits in io_uring_enter(2), not who polls the ring's descriptor. */
        want &= ~AIO_URING_DEFER_TASKRUN;
    }
    return want;
}

static void report_setup_error(Error **errp, int err)
{
    g_autofree char *disabled = NULL;

    error_setg_errno(errp, err, "Failed to set up an io_uring ring");
    if (g_file_get_contents("/proc/sys/kernel/io_uring_disabled", &disabled, NULL, NULL) && *disabled != '0') {
        error_append_hint(errp, "The sysctl kernel.io_uring_disabled is %s; 0 allows io_uring.\n", g_strchomp(disabled));
    }
}

/* Map the rings of @fd, which @p describes, and lay out the SQ so that entry i of its array is SQE i for ever. */
static int map_ring(AioUring *u, int fd, struct io_uring_params *p)
{
    int ret = io_uring_queue_mmap(fd, p, &u->ring);

    if (ret < 0) {
        return ret;
    }
    u->ring.features = p->features;
    if (p->flags & IORING_SETUP_NO_SQARRAY) {
        /* liburing 2.3 does not know: it would write indexes to the offset 0 that the kernel reports, the ring's head. */
        u->no_array = g_new0(unsigned int, u->ring.sq.ring_entries);
        u->ring.sq.array = u->no_array;
    }
    for (unsigned int i = 0; i < u->ring.sq.ring_entries; i++) {
        u->ring.sq.array[i] = i;
    }
    return 0;
}

/* Monitors other than io_uring learn from the ring's descriptor that there are completions; the pass reaps them anyway. */
static void ring_readable(void *opaque)
{
}

struct io_uring *aio_uring_get(AioContext *ctx, Error **errp)
{
    AioUring *u = ctx->uring;
    struct io_uring_params p;
    unsigned int want = wanted_flags(ctx), got = 0, set = 0;
    int fd, ret;

    assert(in_home(ctx));
    if (u) {
        return &u->ring;
    }
    for (unsigned int i = 0; i < N_FLAGS; i++) {
        if (!setup_flags[i].aio || (want & setup_flags[i].aio)) {
            set |= 1u << i;
        }
    }
    fd = setup_with_fallback(&set, &p);
    if (fd < 0) {
        report_setup_error(errp, -fd);
        return NULL;
    }
    if ((p.features & FEATURES) != FEATURES) {
        error_setg(errp, "The kernel's io_uring is too old: features 0x%x, needed 0x%x", p.features, FEATURES);
        close(fd);
        return NULL;
    }
    u = g_new0(AioUring, 1);
    ret = map_ring(u, fd, &p);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "Failed to map the io_uring ring");
        close(fd);
        g_free(u);
        return NULL;
    }
    for (unsigned int i = 0; i < N_FLAGS; i++) {
        got |= set & (1u << i) ? setup_flags[i].aio : 0;
    }
    if ((want & AIO_URING_REGISTERED_RING) && io_uring_register_ring_fd(&u->ring) == 1) {
        u->registered = true;
        got |= AIO_URING_REGISTERED_RING;
    }
    ctx->uring = u;
    atomic_store_explicit(&ctx->uring_flags, got, memory_order_relaxed);
    aio_uring_tables_init(ctx);
    if (ctx->monitor != AIO_MONITOR_IO_URING) {
        aio_set_fd_handler(ctx, u->ring.ring_fd, ring_readable, NULL, NULL, NULL, ctx);
    }
    return &u->ring;
}

bool aio_uring_exists(const AioContext *ctx)
{
    return ctx->uring;
}

void aio_uring_destroy(AioContext *ctx)
{
    AioUring *u = ctx->uring;

    if (u) {
        aio_uring_tables_destroy(ctx);
        ctx->uring = NULL;
        io_uring_queue_exit(&u->ring);
        g_free(u->no_array);
        g_free(u);
    }
}

unsigned int aio_uring_in_flight(const AioContext *ctx)
{
    return ctx->uring ? ((AioUring *)ctx->uring)->in_flight : 0;
}

/* --- Submission --- */

unsigned int aio_uring_queued(AioContext *ctx)
{
    AioUring *u = ctx->uring;

    return u->ring.sq.sqe_tail - io_uring_smp_load_acquire(u->ring.sq.khead);
}

bool aio_uring_unsubmitted(const AioContext *ctx)
{
    return aio_uring_queued((AioContext *)ctx) != 0;
}

unsigned int aio_uring_space(AioContext *ctx)
{
    return io_uring_sq_space_left(&((AioUring *)ctx->uring)->ring);
}

static bool kernel_has_more(AioUring *u)
{
    /* Completions that the kernel posts only when it is entered: deferred task work, or an overflown ring. */
    return IO_URING_READ_ONCE(*u->ring.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW);
}

/*
 * Count what the kernel has taken from place @head on, whatever it answered. SQEs of the loop itself are told by what they
 * hand back; nothing has been written over them yet.
 */
static void count_submitted(AioContext *ctx, AioUring *u, unsigned int head)
{
    unsigned int n = io_uring_smp_load_acquire(u->ring.sq.khead) - head, own = 0;

    for (unsigned int i = 0; i < n && own < u->own_queued; i++) {
        uintptr_t data = u->ring.sq.sqes[(head + i) & u->ring.sq.ring_mask].user_data;

        own += !data || (data & AIO_COMPLETION_OWN);
    }
    u->own_queued -= own;
    n -= own;
    assert(n <= u->requests_queued);
    u->requests_queued -= n;
    if (n) {
        aio_stat_batch(&ctx->stats, n);
    }
}

static int enter(AioContext *ctx, unsigned int submit, unsigned int flags, unsigned int min, int64_t timeout_ns)
{
    AioUring *u = ctx->uring;
    struct io_uring_sq *sq = &u->ring.sq;
    struct __kernel_timespec ts;
    struct io_uring_getevents_arg arg = {0};
    bool limited = min && timeout_ns >= 0;
    int ret;

    if (submit) {
        sq->sqe_head = sq->sqe_tail;
        /* The kernel, on seeing the new tail, sees the SQEs. */
        io_uring_smp_store_release(sq->ktail, sq->sqe_tail);
    }
    if (u->registered) {
        flags |= IORING_ENTER_REGISTERED_RING;
    }
    if (limited) {
        ts = (struct __kernel_timespec){.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
        arg.ts = (uintptr_t)&ts;
        flags |= IORING_ENTER_EXT_ARG;
    }
    ret = io_uring_enter2(u->ring.enter_ring_fd, submit, min, flags, limited ? (void *)&arg : NULL,
                          limited ? sizeof(arg) : 0);
    if (submit) {
        count_submitted(ctx, u, sq->sqe_tail - submit);
    }
    if (flags & IORING_ENTER_GETEVENTS) {
        u->refused = aio_uring_refused(ret);
    }
    return ret;
}

int aio_uring_enter(AioContext *ctx, unsigned int min, int64_t timeout_ns)
{
    unsigned int submit = aio_uring_queued(ctx);
    int ret = enter(ctx, submit, IORING_ENTER_GETEVENTS, min, timeout_ns);

    if (submit && aio_uring_refused(ret)) {
        /* Then it has not looked at completions either, which may be what it is short of. */
        enter(ctx, 0, IORING_ENTER_GETEVENTS, 0, -1);
    }
    return ret;
}

void aio_uring_rest(AioContext *ctx, int64_t ns)
{
    struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    aio_stat_add(&ctx->stats.wait_calls, 1);
    if (aio_uring_refused(enter(ctx, 0, IORING_ENTER_GETEVENTS, 1, ns))) {
        nanosleep(&ts, NULL);
    }
}

int aio_uring_submit(AioContext *ctx)
{
    int ret;

    if (!aio_uring_queued(ctx)) {
        return 0;
    }
    do {
        ret = enter(ctx, aio_uring_queued(ctx), 0, 0, -1);
    } while (ret == -EINTR);
    return ret;
}

void aio_uring_submit_soon(AioContext *ctx)
{
    if (ctx->monitor != AIO_MONITOR_IO_URING || !ctx->depth) {
        aio_uring_submit(ctx);
    }
}

unsigned int aio_uring_requests_queued(AioContext *ctx)
{
    return ((AioUring *)ctx->uring)->requests_queued;
}

static struct io_uring_sqe *free_sqe(AioContext *ctx, AioUring *u)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

    if (!sqe) {
        aio_uring_submit(ctx);
        sqe = io_uring_get_sqe(&u->ring);
    }
    return sqe;
}

struct io_uring_sqe *aio_uring_sqe_own(AioContext *ctx, AioCompletion *c)
{
    AioUring *u = ctx->uring;
    struct io_uring_sqe *sqe = free_sqe(ctx, u);

    if (sqe) {
        io_uring_sqe_set_data64(sqe, c ? (uintptr_t)c | AIO_COMPLETION_OWN : 0);
        u->own_queued++;
    }
    return sqe;
}

struct io_uring_sqe *aio_uring_sqe(AioContext *ctx, AioCompletion *c)
{
    AioUring *u = ctx->uring;
    struct io_uring_sqe *sqe = free_sqe(ctx, u);

    if (sqe) {
        io_uring_sqe_set_data(sqe, c);
        u->in_flight++;
        u->requests_queued++;
    }
    return sqe;
}

/* --- Completion --- */

bool aio_uring_posted(const AioContext *ctx)
{
    return io_uring_cq_ready(&((AioUring *)ctx->uring)->ring);
}

bool aio_uring_ready(AioContext *ctx)
{
    AioUring *u = ctx->uring;

    /* What the kernel does not give is no reason not to sleep. */
    return io_uring_cq_ready(&u->ring) || (kernel_has_more(u) && !u->refused);
}

unsigned int aio_uring_reap(AioContext *ctx)
{
    AioUring *u = ctx->uring;
    unsigned int left = io_uring_cq_ready(&u->ring), requests = 0;

    if (!left && kernel_has_more(u)) {
        aio_stat_add(&ctx->stats.wait_calls, 1);
        aio_uring_enter(ctx, 0, -1);
        left = io_uring_cq_ready(&u->ring);
    }
    /*
     * Not more than there are now, so that requests which complete at once and submit others do not hold up the pass. Each
     * is taken out before its callback runs, which may poll the context and reap the rest.
     */
    while (left-- && io_uring_cq_ready(&u->ring)) {
        struct io_uring_cqe *cqe = &u->ring.cq.cqes[*u->ring.cq.khead & u->ring.cq.ring_mask];
        uintptr_t data = cqe->user_data;
        int32_t res = cqe->res;
        uint32_t flags = cqe->flags;
        AioCompletion *c = (AioCompletion *)(data & ~AIO_COMPLETION_BITS);

        io_uring_cq_advance(&u->ring, 1);
        if (!c) {
            continue;
        }
        if (!(data & AIO_COMPLETION_OWN)) {
            u->in_flight -= !(flags & IORING_CQE_F_MORE);
            requests++;
            if (G_UNLIKELY(data & AIO_COMPLETION_REGISTERED)) {
                aio_uring_registered_done(ctx);
            }
        }
        c->fn(c, res, flags);
    }
    if (requests) {
        aio_stat_reap(&ctx->stats, requests);
    }
    return requests;
}
