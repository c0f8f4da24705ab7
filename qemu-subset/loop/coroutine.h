/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stackful coroutines, and the locks and queues that suspend them. */
#ifndef LOOP_COROUTINE_H
#define LOOP_COROUTINE_H

#include "loop/aio.h"

#define coroutine_fn /* may suspend: called from a coroutine only */

typedef struct Coroutine Coroutine;
typedef void coroutine_fn CoroutineFn(void *opaque);

/* Made in any thread; taken from a pool. It runs in the thread that enters it and is recycled when @fn returns. */
Coroutine *coroutine_create(CoroutineFn *fn, void *opaque);
/* Run @co until it yields or ends. From a coroutine or not; a running coroutine must not be entered. */
void coroutine_enter(Coroutine *co);
/* Give control back to whoever entered. */
void coroutine_fn coroutine_yield(void);
/* The running coroutine; NULL outside of any. */
Coroutine *coroutine_self(void);
static inline bool in_coroutine(void)
{
    return coroutine_self() != NULL;
}

/* [any] Enter @co in the home of @ctx, from its bottom half phase. */
void aio_co_schedule(AioContext *ctx, Coroutine *co);
/* [any] Enter @co where it last ran: at once if that is this thread and no coroutine runs here, else scheduled. */
void aio_co_wake(Coroutine *co);
/* Move the running coroutine to @ctx. */
void coroutine_fn aio_co_reschedule_self(AioContext *ctx);

/* FIFO of suspended coroutines; protected by the caller (a CoMutex or being home-only). */
typedef struct CoQueue {
    Fifo entries;
} CoQueue;
typedef struct CoMutex {
    _Atomic(uintptr_t) state; /* private */
    void *waiters;
    _Atomic(Coroutine *) holder; /* for assertions */
} CoMutex;

void co_queue_init(CoQueue *q);
/* Release @m (may be NULL), sleep until woken, take @m again. */
void coroutine_fn co_queue_wait(CoQueue *q, CoMutex *m);
bool co_queue_wake_next(CoQueue *q);
void co_queue_wake_all(CoQueue *q);
bool co_queue_empty(const CoQueue *q);

/* Fair between threads; coroutines of any thread. */
void co_mutex_init(CoMutex *m);
void coroutine_fn co_mutex_lock(CoMutex *m);
void coroutine_fn co_mutex_unlock(CoMutex *m);

/* Sleep on the realtime clock of the current context. */
void coroutine_fn co_sleep_ns(int64_t ns);

#endif
