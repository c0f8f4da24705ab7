/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Linux AIO context of a loop, shared by its engine and the linux-aio monitor; completions are reaped in user space. */
#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <libaio.h>

/* The head of what io_setup(2) maps; fixed by the kernel's ABI as far as the magic vouches for it. */
typedef struct KernelRing {
    uint32_t id, nr;
    _Atomic uint32_t head, tail;
    uint32_t magic, compat_features, incompat_features, header_length;
    struct io_event events[];
} KernelRing;
/* In <linux/aio_abi.h>, which cannot be had together with <libaio.h>. */
#ifndef IOCB_FLAG_RESFD
#define IOCB_FLAG_RESFD (1 << 0)
#endif

#define KERNEL_RING_MAGIC 0xa10a10a1u

/* Room for descriptors besides the engine's events; those that find none are watched by an epoll in the monitor. */
#define WATCHED_EVENTS 256
#define BUFFERED 64

/*
 * IOCB_FLAG_RESFD costs a request 0.1 us, and then the monitor wants to be entered to say what the ring has said. Where the
 * file completes everything within io_submit(2) (memory behind it), the loop finds all in the ring before it could sleep, so
 * after some calls in a row that ended so nothing signals. Should that turn out wrong, the loop sleeps in short pieces until
 * those that do not signal are over, and twice as many calls are needed before it is believed again.
 */
#define QUIET_AFTER_MIN 8
#define QUIET_AFTER_MAX 65536

typedef struct AioKaio {
    io_context_t id;
    KernelRing *ring;       /* NULL: unknown layout, so events are fetched by io_getevents(2) */
    unsigned int in_flight; /* requests */
    unsigned int silent;    /* ... of which so many do not signal */
    unsigned int at_once, quiet_after; /* calls in a row that left nothing to wait for, and how many make a rule */
    /* Events fetched by a system call, next to run at @first. */
    struct io_event buffer[BUFFERED];
    unsigned int first, buffered;
} AioKaio;

static int64_t read_number(const char *path)
{
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? g_ascii_strtoll(text, NULL, 10) : -1;
}

static void report_setup_error(Error **errp, int err, unsigned int events)
{
    int64_t max = read_number("/proc/sys/fs/aio-max-nr"), used = read_number("/proc/sys/fs/aio-nr");

    error_setg_errno(errp, err, "Failed to create a Linux AIO context of %u events", events);
    if (err == EAGAIN) {
        error_append_hint(errp,
                          "All processes together may have fs.aio-max-nr = %" PRId64 " events, of which %" PRId64
                          " are in use; raise it with 'sysctl fs.aio-max-nr=N'.\n",
                          max, used);
    }
}

static KernelRing *known_ring(io_context_t id)
{
    KernelRing *ring = (KernelRing *)id;

    return ring->magic == KERNEL_RING_MAGIC && ring->incompat_features == 0 && ring->header_length == sizeof(*ring) ? ring
                                                                                                                    : NULL;
}

static int kernel_setup(AioContext *ctx, unsigned int max_events, io_context_t *id, Error **errp)
{
    unsigned int n = max_events + (ctx->monitor == AIO_MONITOR_LINUX_AIO ? WATCHED_EVENTS : 0);
    int ret;

    *id = NULL;
    ret = io_setup((int)MIN(n, INT_MAX), id);
    if (ret < 0) {
        report_setup_error(errp, -ret, n);
    }
    return ret;
}

bool aio_kaio_get(AioContext *ctx, Error **errp)
{
    AioKaio *k;
    io_context_t id;

    assert(in_home(ctx));
    if (ctx->kaio) {
        return true;
    }
    if (kernel_setup(ctx, aio_context_max_events(ctx), &id, errp) < 0) {
        return false;
    }
    k = g_new0(AioKaio, 1);
    k->quiet_after = QUIET_AFTER_MIN;
    k->id = id;
    k->ring = known_ring(id);
    ctx->kaio = k;
    return true;
}

void aio_kaio_forget_ring(AioContext *ctx)
{
    ((AioKaio *)ctx->kaio)->ring = NULL;
}

bool aio_kaio_exists(const AioContext *ctx)
{
    return ctx->kaio;
}

void aio_kaio_destroy(AioContext *ctx)
{
    AioKaio *k = ctx->kaio;

    if (k) {
        ctx->kaio = NULL;
        io_destroy(k->id);
        g_free(k);
    }
}

int aio_kaio_resize(AioContext *ctx, unsigned int max_events, Error **errp)
{
    AioKaio *k = ctx->kaio;
    io_context_t id;
    int ret = kernel_setup(ctx, max_events, &id, errp);

    if (ret < 0) {
        return ret;
    }
    if (ctx->mon->queue_replaced) {
        /* Events of descriptors that are still in the old ring are of no use: the level is looked at again. */
        ctx->mon->queue_replaced(ctx);
    }
    io_destroy(k->id);
    *k = (AioKaio){.id = id, .ring = known_ring(id), .quiet_after = QUIET_AFTER_MIN};
    return 0;
}

unsigned int aio_kaio_in_flight(AioContext *ctx)
{
    return ((AioKaio *)ctx->kaio)->in_flight;
}

unsigned int aio_kaio_free_events(AioContext *ctx)
{
    unsigned int max = aio_context_max_events(ctx), used = aio_kaio_in_flight(ctx);

    return used < max ? max - used : 0;
}

int aio_kaio_submit_own(AioContext *ctx, struct iocb **iocbs, unsigned int n)
{
    return io_submit(((AioKaio *)ctx->kaio)->id, n, iocbs);
}

int aio_kaio_cancel_own(AioContext *ctx, struct iocb *iocb)
{
    struct io_event unused;

    return io_cancel(((AioKaio *)ctx->kaio)->id, iocb, &unused);
}

static unsigned int ring_count(KernelRing *ring)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    /* Acquire pairs with the kernel's barrier between filling an event and moving the tail. */
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

    return tail >= head ? tail - head : ring->nr - head + tail;
}

static bool signals(const struct iocb *iocb)
{
    return iocb->u.c.flags & IOCB_FLAG_RESFD;
}

/* Ask for the notifier to be signalled by @iocbs, unless that is thought to be needless. */
static void set_signals(AioContext *ctx, AioKaio *k, struct iocb **iocbs, unsigned int n)
{
    if (k->at_once < k->quiet_after) {
        for (unsigned int i = 0; i < n; i++) {
            io_set_eventfd(iocbs[i], ctx->notifier.fd);
        }
    }
}

static void submitted(AioKaio *k, struct iocb **iocbs, unsigned int n)
{
    k->in_flight += n;
    for (unsigned int i = 0; i < n && !signals(iocbs[i]); i++) {
        k->silent++;
    }
    if (k->ring && ring_count(k->ring) + k->buffered >= k->in_flight) {
        k->at_once = MIN(k->at_once + 1, QUIET_AFTER_MAX);
        return;
    }
    if (k->at_once >= k->quiet_after) {
        k->quiet_after = MIN(2 * k->quiet_after, QUIET_AFTER_MAX);
    }
    k->at_once = 0;
}

int aio_kaio_submit(AioContext *ctx, struct iocb **iocbs, unsigned int n)
{
    AioKaio *k = ctx->kaio;
    int ret;

    if (ctx->monitor != AIO_MONITOR_LINUX_AIO) {
        set_signals(ctx, k, iocbs, n);
    }
    ret = io_submit(k->id, n, iocbs);
    if (ret > 0) {
        aio_stat_batch(&ctx->stats, (unsigned int)ret);
        if (ctx->monitor != AIO_MONITOR_LINUX_AIO) {
            submitted(k, iocbs, (unsigned int)ret);
        } else {
            k->in_flight += (unsigned int)ret;
        }
    }
    return ret;
}

bool aio_kaio_silent(const AioContext *ctx)
{
    return ctx->kaio && ((AioKaio *)ctx->kaio)->silent;
}

/* --- Completion --- */

static void fetch(AioContext *ctx, AioKaio *k, long min, struct timespec *ts)
{
    int n;

    aio_stat_add(&ctx->stats.wait_calls, 1);
    n = io_getevents(k->id, min, BUFFERED, k->buffer, ts);
    k->first = 0;
    k->buffered = n > 0 ? (unsigned int)n : 0;
}

bool aio_kaio_ready(AioContext *ctx)
{
    AioKaio *k = ctx->kaio;
    struct timespec zero = {0};

    if (k->buffered) {
        return true;
    }
    if (k->ring) {
        return ring_count(k->ring) != 0;
    }
    if (k->in_flight || ctx->monitor == AIO_MONITOR_LINUX_AIO) {
        fetch(ctx, k, 0, &zero);
    }
    return k->buffered;
}

void aio_kaio_wait(AioContext *ctx, int64_t timeout_ns)
{
    AioKaio *k = ctx->kaio;
    struct timespec ts = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};

    /* Events that are there already end the wait; it takes some along, as the call cannot leave all in the ring. */
    if (!k->buffered && !(k->ring && ring_count(k->ring))) {
        fetch(ctx, k, 1, timeout_ns < 0 ? NULL : &ts);
    }
}

static bool next_event(AioKaio *k, struct io_event *ev)
{
    uint32_t head;

    if (k->buffered) {
        *ev = k->buffer[k->first++];
        k->buffered--;
        return true;
    }
    if (!k->ring || !ring_count(k->ring)) {
        return false;
    }
    head = atomic_load_explicit(&k->ring->head, memory_order_relaxed);
    *ev = k->ring->events[head];
    /* Release: the kernel may fill the place again once it sees this. */
    atomic_store_explicit(&k->ring->head, head + 1 < k->ring->nr ? head + 1 : 0, memory_order_release);
    return true;
}

unsigned int aio_kaio_reap(AioContext *ctx)
{
    AioKaio *k = ctx->kaio;
    unsigned int requests = 0;
    unsigned int left = aio_kaio_ready(ctx) ? k->buffered + (k->ring ? ring_count(k->ring) : 0) : 0;
    bool watched_by_notifier = ctx->monitor != AIO_MONITOR_LINUX_AIO, signalled = false;
    struct io_event ev;

    /* As in aio_uring_reap(): only what is there now, each taken out before its callback runs. */
    while (left-- && next_event(k, &ev)) {
        uintptr_t data = (uintptr_t)ev.data;
        AioCompletion *c = (AioCompletion *)(data & ~AIO_COMPLETION_OWN);

        if (!(data & AIO_COMPLETION_OWN)) {
            bool loud = signals(ev.obj);

            k->in_flight--;
            k->silent -= watched_by_notifier && !loud;
            signalled |= loud;
            requests++;
        }
        c->fn(c, (int64_t)ev.res, 0);
    }
    if (requests) {
        ctx->resfd_signalled |= signalled;
        aio_stat_reap(&ctx->stats, requests);
    }
    return requests;
}
