/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wake-up protocol: one atomic word carries work, notifications and the fact that the home sleeps. */
#include "loop/context.h"
#include "loop/fence.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * ctx->inbox is 0 while the home is awake and nothing is there for it. The home goes from 0 to SLEEP before it waits and
 * takes whatever the word holds, SLEEP included, with one exchange after it. Other threads push work or set NOTIFIED with
 * one compare-and-swap each; the one that replaces SLEEP writes the eventfd, nobody else does. As everything is in one
 * word there is no store on one side and load of another location on the other, thus no full fence and no way for "is
 * about to sleep" and "has sent something" to miss each other: either the sender's operation comes first in the word's
 * modification order and aio_inbox_sleep() fails, or it comes second and finds SLEEP. docs/notify.pml checks that.
 *
 * Ordering of the payload: the release in inbox_send() pairs with the acquire in aio_inbox_take(), so the home sees what
 * the sender wrote before it sent. The word is a push-only stack that is emptied as a whole: no ABA.
 */

int event_notifier_init(EventNotifier *e)
{
    e->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return e->fd < 0 ? -errno : 0;
}

void event_notifier_cleanup(EventNotifier *e)
{
    if (e->fd >= 0) {
        close(e->fd);
    }
    e->fd = -1;
}

void event_notifier_set(EventNotifier *e)
{
    static const uint64_t one = 1;
    ssize_t n;

    do {
        n = write(e->fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    /* EAGAIN: the counter is at its maximum, so it is readable, which is all that is wanted. */
    assert(n == sizeof(one) || errno == EAGAIN);
}

bool event_notifier_test_and_clear(EventNotifier *e)
{
    uint64_t value;
    ssize_t n;

    do {
        n = read(e->fd, &value, sizeof(value));
    } while (n < 0 && errno == EINTR);
    return n == sizeof(value);
}

/* Replace the inbox by @add on top of its pointer and its NOTIFIED bit; wake the home if that ended its sleep. */
static void inbox_send(AioContext *ctx, AioWork *work)
{
    uintptr_t old = atomic_load_explicit(&ctx->inbox, memory_order_relaxed);
    uintptr_t new;

    do {
        if (old & AIO_INBOX_CLOSED) {
            /* A wake-up that comes too late is harmless; work would be lost. */
            assert(!work);
            return;
        }
        if (work) {
            work->next = (AioWork *)(old & ~AIO_INBOX_BITS);
            new = (uintptr_t)work | (old & AIO_INBOX_NOTIFIED);
        } else {
            new = (old & ~AIO_INBOX_SLEEP) | AIO_INBOX_NOTIFIED;
        }
        /* Release even when nothing changes (NOTIFIED is set already): the home must see what came before this call. */
    } while (!atomic_compare_exchange_weak_explicit(&ctx->inbox, &old, new, memory_order_release,
                                                    memory_order_relaxed));
    if (old & AIO_INBOX_SLEEP) {
        event_notifier_set(&ctx->notifier);
        /* After the write, and the last access to @ctx: see aio_inbox_close(). */
        atomic_fetch_add_explicit(&ctx->stats.notify_sent, 1, memory_order_release);
    }
}

/*
 * Uses the inbox in the home too, where it never writes: so a signal handler that interrupts the home's wait, or the code
 * just before it, may call this.
 */
void aio_notify(AioContext *ctx)
{
    inbox_send(ctx, NULL);
}

void aio_work_schedule(AioContext *ctx, AioWork *work)
{
    if (in_home(ctx)) {
        aio_work_schedule_home(ctx, work);
    } else {
        inbox_send(ctx, work);
    }
}

bool aio_inbox_sleep(AioContext *ctx)
{
    uintptr_t expected = 0;

    /* Relaxed: the word itself decides; the payload is acquired by aio_inbox_take(). */
    return atomic_compare_exchange_strong_explicit(&ctx->inbox, &expected, AIO_INBOX_SLEEP, memory_order_relaxed,
                                                   memory_order_relaxed);
}

bool aio_inbox_take(AioContext *ctx, bool slept)
{
    uintptr_t word;
    AioWork *w, *next, *fifo = NULL;
    unsigned int n = 0;

    if (aio_inbox_empty(ctx)) {
        return false;
    }
    /* Acquire pairs with the release in inbox_send(). */
    word = atomic_exchange_explicit(&ctx->inbox, 0, memory_order_acquire);
    if (word == AIO_INBOX_SLEEP) {
        return false;
    }
    ctx->writes_due += slept;
    for (w = (AioWork *)(word & ~AIO_INBOX_BITS); w; w = next) {
        next = w->next;
        w->next = fifo;
        fifo = w;
        n++;
    }
    for (w = fifo; w; w = next) {
        next = w->next;
        list_append(&ctx->work, &w->link);
    }
    n += !!(word & AIO_INBOX_NOTIFIED);
    /* The first one after the home fell asleep had to write, the others did not. */
    aio_stat_add(&ctx->stats.notify_saved, n - slept);
    return true;
}

bool aio_inbox_close(AioContext *ctx)
{
    uintptr_t empty = 0;

    /*
     * A thread that ended our sleep may not have come to its write yet, though its work has run: something else woke us. The
     * eventfd must not be closed under it. Acquire pairs with the release in inbox_send().
     */
    while (atomic_load_explicit(&ctx->stats.notify_sent, memory_order_acquire) != ctx->writes_due) {
        sched_yield();
    }
    /* Acquire: what another thread did before its last notification is done. */
    return atomic_compare_exchange_strong_explicit(&ctx->inbox, &empty, AIO_INBOX_CLOSED, memory_order_acq_rel,
                                                   memory_order_acquire);
}

void aio_notifier_clear(AioContext *ctx)
{
    if (ctx->notifier_readable) {
        ctx->notifier_readable = false;
        ctx->resfd_signalled = false;
        aio_stat_add(&ctx->stats.notify_cleared, 1);
        event_notifier_test_and_clear(&ctx->notifier);
    }
}

/* --- AIO_WAIT_WHILE() --- */

#ifdef AIO_FENCE_BY_RMW
_Atomic unsigned int aio_fence_word;
#endif

static _Atomic unsigned int waiters;

void aio_wait_begin(void)
{
    AioContext *ctx = aio_current;

    assert(ctx);
    if (!ctx->waiting++) {
        atomic_store_explicit(&ctx->waited, true, memory_order_relaxed);
        atomic_fetch_add(&waiters, 1);
    }
    /* Pairs with the fence in aio_wait_kick(): either the kick sees a waiter or the waiter sees the new condition. */
    aio_full_fence();
}

void aio_wait_end(void)
{
    AioContext *ctx = aio_current;

    assert(ctx->waiting > 0);
    if (!--ctx->waiting) {
        atomic_fetch_sub(&waiters, 1);
        atomic_store_explicit(&ctx->waited, false, memory_order_relaxed);
    }
}

static void notify_waiter(AioContext *ctx, void *opaque)
{
    if (atomic_load_explicit(&ctx->waited, memory_order_relaxed)) {
        aio_notify(ctx);
    }
}

void aio_wait_kick(void)
{
    /* Pairs with the fence in aio_wait_begin(). */
    aio_full_fence();
    if (atomic_load_explicit(&waiters, memory_order_acquire)) {
        aio_context_for_each(notify_waiter, NULL);
    }
}

/* --- aio_run_in_home() --- */

typedef struct HomeCall {
    AioWork work;
    AioBHFn *fn;
    void *opaque;
    AioContext *caller;
    _Atomic bool done;
} HomeCall;

static void home_call_run(AioWork *work)
{
    HomeCall *call = container_of(work, HomeCall, work);
    AioContext *caller = call->caller;

    call->fn(call->opaque);
    /* From here on *call may be gone: it is on the caller's stack. The caller's reference keeps its context. */
    atomic_store_explicit(&call->done, true, memory_order_release);
    aio_notify(caller);
    aio_context_unref(caller);
}

void aio_run_in_home(AioContext *ctx, AioBHFn *fn, void *opaque)
{
    HomeCall call = {.fn = fn, .opaque = opaque};

    if (in_home(ctx)) {
        fn(opaque);
        return;
    }
    assert(aio_current);
    call.caller = aio_context_ref(aio_current);
    aio_work_init(&call.work, home_call_run);
    aio_work_schedule(ctx, &call.work);
    while (!atomic_load_explicit(&call.done, memory_order_acquire)) {
        aio_poll(aio_current, true);
    }
}
