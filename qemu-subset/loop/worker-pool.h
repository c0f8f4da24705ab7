/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Worker threads of one event loop for calls that block. */
#ifndef LOOP_WORKER_POOL_H
#define LOOP_WORKER_POOL_H

#include "loop/aio.h"

typedef struct WorkerPool WorkerPool;
typedef struct WorkItem WorkItem;

/* Embedded in the caller's request; owned by the pool from submit until done() is called. */
struct WorkItem {
    int (*func)(WorkItem *item);           /* in a worker thread; its result goes to done() */
    void (*done)(WorkItem *item, int ret); /* in the home, dispatch phase; exactly once */
    FifoNode link;                         /* private */
    int ret;
};

/* The pool of @ctx, made on first use. Grows with need up to the context's maximum; idle workers end after 10 s. Home. */
WorkerPool *aio_worker_pool(AioContext *ctx);
/* Queue one item, or a chain of @n items at once: one lock, as many wake-ups as workers can use. Home. */
void worker_pool_submit(WorkerPool *pool, WorkItem *item);
void worker_pool_submit_many(WorkerPool *pool, Fifo *items, unsigned int n);
/* Apply the context's bounds after a change: spawns up to the minimum, lets surplus workers end. Home. */
void worker_pool_update(WorkerPool *pool);
/* [any] For tests and statistics. */
int worker_pool_threads(const WorkerPool *pool);
/* Home, nothing in flight: ends all workers. */
void worker_pool_free(WorkerPool *pool);

#endif
