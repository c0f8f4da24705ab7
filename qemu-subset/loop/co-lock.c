/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waking coroutines in their context, and what suspends them: queue, mutex, sleep. */
#include "loop/coroutine-int.h"
#include "loop/timer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* --- Scheduling --- */

static void enter_scheduled(AioWork *work)
{
    Coroutine *co = container_of(work, Coroutine, work);

    atomic_store_explicit(&co->scheduled, false, memory_order_relaxed);
    coroutine_enter(co);
}

void aio_co_schedule(AioContext *ctx, Coroutine *co)
{
    if (atomic_exchange_explicit(&co->scheduled, true, memory_order_relaxed)) {
        fprintf(stderr, "coroutine %p: scheduled while an earlier wake-up is still to come\n",
                (void *)co);
        abort();
    }
    aio_work_init(&co->work, enter_scheduled);
    aio_work_schedule(ctx, &co->work);
}

void aio_co_wake(Coroutine *co)
{
    /* Written by the thread that entered @co, before @co told anybody that it will sleep. */
    AioContext *ctx = co->ctx;

    if (ctx == aio_context_current() && !in_coroutine()) {
        coroutine_enter(co);
    } else {
        assert(ctx); /* a coroutine outside of any context can only be entered by hand */
        aio_co_schedule(ctx, co);
    }
}

void coroutine_fn aio_co_reschedule_self(AioContext *ctx)
{
    if (aio_context_current() != ctx) {
        coroutine_yield_to(ctx);
    }
}

/* --- Queue --- */

void co_queue_init(CoQueue *q)
{
    fifo_init(&q->entries);
}

void coroutine_fn co_queue_wait(CoQueue *q, CoMutex *m)
{
    fifo_push(&q->entries, &coroutine_self()->link);
    if (m) {
        co_mutex_unlock(m);
    }
    coroutine_yield();
    if (m) {
        co_mutex_lock(m);
    }
}

bool co_queue_wake_next(CoQueue *q)
{
    FifoNode *node = fifo_pop(&q->entries);

    if (!node) {
        return false;
    }
    aio_co_wake(container_of(node, Coroutine, link));
    return true;
}

void co_queue_wake_all(CoQueue *q)
{
    Fifo all;

    /* A woken coroutine that runs at once may queue again; it is not woken a second time. */
    fifo_init(&all);
    if (!fifo_empty(&q->entries)) {
        all = q->entries;
        fifo_init(&q->entries);
    }
    for (FifoNode *node = all.first, *next; node; node = next) {
        next = node->next;
        aio_co_wake(container_of(node, Coroutine, link));
    }
}

bool co_queue_empty(const CoQueue *q)
{
    return fifo_empty(&q->entries);
}

/*
 * --- Mutex ---
 * The state is MUTEX_FREE, MUTEX_HELD, or the address of the waiter that came last, whose "before" is the state that it
 * found. Only the holder takes waiters off: it swaps the whole stack for MUTEX_HELD and turns it round into @waiters, which
 * belongs to the holder. The lock is handed over, never dropped while somebody waits, so nobody is overtaken twice.
 */
enum { MUTEX_FREE = 0, MUTEX_HELD = 1 };

typedef struct CoWaiter {
    Coroutine *co;
    uintptr_t before; /* the older waiter, or MUTEX_HELD */
    struct CoWaiter *after;
} CoWaiter;

static inline bool held_by(CoMutex *m, Coroutine *co)
{
    return atomic_load_explicit(&m->holder, memory_order_relaxed) == co;
}

void co_mutex_init(CoMutex *m)
{
    atomic_init(&m->state, MUTEX_FREE);
    m->waiters = NULL;
    atomic_init(&m->holder, NULL);
}

void coroutine_fn co_mutex_lock(CoMutex *m)
{
    Coroutine *self = coroutine_self();
    CoWaiter waiter = {.co = self};
    uintptr_t state = MUTEX_FREE;

    assert(self && !held_by(m, self));
    for (;;) {
        if (state == MUTEX_FREE) {
            if (atomic_compare_exchange_weak_explicit(&m->state, &state, MUTEX_HELD,
                                                      memory_order_acquire, memory_order_relaxed)) {
                break;
            }
        } else {
            waiter.before = state;
            if (atomic_compare_exchange_weak_explicit(&m->state, &state, (uintptr_t)&waiter,
                                                      memory_order_release, memory_order_relaxed)) {
                coroutine_yield(); /* woken as the holder */
                break;
            }
        }
    }
    atomic_store_explicit(&m->holder, self, memory_order_relaxed);
}

/* Take the stack of waiters and return it as a list, the oldest first; NULL if the mutex is now free. */
static CoWaiter *collect_waiters(CoMutex *m)
{
    uintptr_t state = MUTEX_HELD;
    CoWaiter *oldest = NULL;

    if (atomic_compare_exchange_strong_explicit(&m->state, &state, MUTEX_FREE, memory_order_release,
                                                memory_order_relaxed)) {
        return NULL;
    }
    state = atomic_exchange_explicit(&m->state, MUTEX_HELD, memory_order_acquire);
    while (state != MUTEX_HELD) {
        CoWaiter *w = (CoWaiter *)state;

        w->after = oldest;
        oldest = w;
        state = w->before;
    }
    return oldest;
}

void coroutine_fn co_mutex_unlock(CoMutex *m)
{
    CoWaiter *next = m->waiters;

    assert(held_by(m, coroutine_self()));
    atomic_store_explicit(&m->holder, NULL, memory_order_relaxed);
    if (!next) {
        next = collect_waiters(m);
        if (!next) {
            return;
        }
    }
    m->waiters = next->after;
    aio_co_wake(next->co);
}

/* --- Sleep --- */

static void sleep_over(void *opaque)
{
    aio_co_wake(opaque);
}

void coroutine_fn co_sleep_ns(int64_t ns)
{
    AioTimer timer;

    aio_timer_init(&timer, aio_context_current(), CLOCK_TYPE_REALTIME, sleep_over, coroutine_self());
    aio_timer_mod_ns(&timer, clock_get_ns(CLOCK_TYPE_REALTIME) + ns);
    coroutine_yield();
}
