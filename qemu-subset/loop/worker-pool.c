/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Worker threads of one event loop: a queue in, a stack of finished items out. */
#include "base/signals.h"
#include "loop/worker-pool.h"

#include <assert.h>
#include <errno.h>
#include <glib.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* QEMU's workers wait as long. */
#define IDLE_SECONDS 10

/*
 * Waking is a chain. The submitter wakes one worker; a worker that takes an item while more are queued wakes the next one,
 * and only one wake-up is under way at a time. Items that block get a thread each after a few microseconds, while a batch of
 * short ones is done by one or two threads without a storm of wake-ups.
 *
 * Idle workers wait on a futex of their own and the one that fell idle last is woken first: its cache is warm, and those
 * below it reach their time-out when the load falls.
 */
typedef struct Worker {
    WorkerPool *pool;
    ListNode idle_link;
    _Atomic uint32_t woken;
} Worker;

struct WorkerPool {
    AioSource source;
    pthread_mutex_t lock;
    pthread_cond_t ended; /* threads became 0 */
    Fifo queue;
    unsigned int queued;
    ListNode idle;
    int nidle;
    _Atomic int threads; /* written under the lock */
    int min, max;
    bool wake_under_way;
    bool stopping;

    /* Workers push, the home takes all. */
    _Atomic(FifoNode *) finished __attribute__((aligned(64)));

    /* Home only. */
    Fifo ending; /* taken from @finished, done() still to be called */
    unsigned int in_flight;
};

typedef enum Wake { WAKE_NOBODY, WAKE_IDLE, WAKE_NEW } Wake;

static void futex_wait(_Atomic uint32_t *word, uint32_t expected, int seconds)
{
    struct timespec ts = {.tv_sec = seconds};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &ts, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *worker_main(void *opaque);

/* Under the lock: decide whether another worker is wanted; an idle one is taken off the list into *@worker. */
static Wake choose_wake(WorkerPool *pool, Worker **worker)
{
    if (!pool->queued || pool->wake_under_way) {
        return WAKE_NOBODY;
    }
    if (pool->nidle) {
        *worker = list_first(&pool->idle, Worker, idle_link);
        list_remove(&(*worker)->idle_link);
        pool->nidle--;
        pool->wake_under_way = true;
        return WAKE_IDLE;
    }
    if (pool->threads < pool->max) {
        pool->threads++;
        pool->wake_under_way = true;
        return WAKE_NEW;
    }
    return WAKE_NOBODY;
}

static int start_thread(WorkerPool *pool)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t old;
    int ret;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    /* Signals are for the main thread. */
    signals_block(&old);
    ret = pthread_create(&thread, &attr, worker_main, pool);
    signals_restore(&old);
    pthread_attr_destroy(&attr);
    return ret;
}

static void finish(WorkerPool *pool, WorkItem *item)
{
    FifoNode *head = atomic_load_explicit(&pool->finished, memory_order_relaxed);

    do {
        item->link.next = head;
    } while (!atomic_compare_exchange_weak_explicit(&pool->finished, &head, &item->link,
                                                    memory_order_release, memory_order_relaxed));
    if (!head) {
        aio_notify(pool->source.ctx);
    }
}

static void run_item(WorkerPool *pool, WorkItem *item)
{
    item->ret = item->func(item);
    finish(pool, item);
}

/*
 * No thread can be had and none exists that would come to the queue: the home does the work. Slow, but nothing is lost;
 * this happens at the limits of the machine only.
 */
static void run_queue_here(void *opaque)
{
    WorkerPool *pool = opaque;
    FifoNode *node;

    do {
        pthread_mutex_lock(&pool->lock);
        node = pool->threads ? NULL : fifo_pop(&pool->queue);
        if (node) {
            pool->queued--;
        }
        pthread_mutex_unlock(&pool->lock);
        if (node) {
            run_item(pool, container_of(node, WorkItem, link));
        }
    } while (node);
}

static void do_wake(WorkerPool *pool, Wake wake, Worker *worker)
{
    bool alone;

    switch (wake) {
    case WAKE_NOBODY:
        break;
    case WAKE_IDLE:
        atomic_store_explicit(&worker->woken, 1, memory_order_release);
        futex_wake(&worker->woken);
        break;
    case WAKE_NEW:
        if (start_thread(pool)) {
            pthread_mutex_lock(&pool->lock);
            pool->wake_under_way = false;
            alone = --pool->threads == 0;
            pthread_mutex_unlock(&pool->lock);
            if (alone) {
                aio_bh_schedule_oneshot(pool->source.ctx, run_queue_here, pool);
            }
        }
        break;
    }
}

/* Under the lock, which is dropped meanwhile. False: this worker is to end. */
static bool wait_for_work(WorkerPool *pool, Worker *self)
{
    bool woken;

    if (pool->stopping || pool->threads > pool->max) {
        return false;
    }
    atomic_store_explicit(&self->woken, 0, memory_order_relaxed);
    list_prepend(&pool->idle, &self->idle_link);
    pool->nidle++;
    pthread_mutex_unlock(&pool->lock);
    futex_wait(&self->woken, 0, IDLE_SECONDS);
    pthread_mutex_lock(&pool->lock);
    woken = !list_linked(&self->idle_link);
    if (!woken) {
        /* Time-out, or a spurious return, which costs no more than a thread. */
        list_remove(&self->idle_link);
        pool->nidle--;
        return pool->queued || pool->threads <= pool->min;
    }
    /* The waker took this worker off the list but may still be on its way to the futex, which is on this stack. */
    while (!atomic_load_explicit(&self->woken, memory_order_acquire)) {
        pthread_mutex_unlock(&pool->lock);
        futex_wait(&self->woken, 0, IDLE_SECONDS);
        pthread_mutex_lock(&pool->lock);
    }
    return true;
}

static void *worker_main(void *opaque)
{
    WorkerPool *pool = opaque;
    Worker self = {.pool = pool}, *other;
    bool answering_wake = true; /* a new thread is the answer to a wake-up */

    pthread_setname_np(pthread_self(), "worker");
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        FifoNode *node = fifo_pop(&pool->queue);
        Wake wake;

        if (answering_wake) {
            answering_wake = false;
            pool->wake_under_way = false;
        }
        if (!node) {
            if (!wait_for_work(pool, &self)) {
                break;
            }
            answering_wake = atomic_load_explicit(&self.woken, memory_order_relaxed);
            continue;
        }
        pool->queued--;
        wake = choose_wake(pool, &other);
        pthread_mutex_unlock(&pool->lock);
        do_wake(pool, wake, other);
        run_item(pool, container_of(node, WorkItem, link));
        pthread_mutex_lock(&pool->lock);
    }
    if (--pool->threads == 0) {
        pthread_cond_signal(&pool->ended);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* --- Home --- */

static bool pool_ready(AioSource *src)
{
    WorkerPool *pool = container_of(src, WorkerPool, source);

    return !fifo_empty(&pool->ending) ||
           atomic_load_explicit(&pool->finished, memory_order_relaxed);
}

/* Append what the workers finished, in the order in which they did. */
static void take_finished(WorkerPool *pool)
{
    FifoNode *node = atomic_exchange_explicit(&pool->finished, NULL, memory_order_acquire);
    FifoNode *oldest = NULL;

    while (node) {
        FifoNode *next = node->next;

        node->next = oldest;
        oldest = node;
        node = next;
    }
    while (oldest) {
        FifoNode *next = oldest->next;

        fifo_push(&pool->ending, oldest);
        oldest = next;
    }
}

/* What is still to be done is kept in the pool: a callback that polls the context in turn finds it there. */
static unsigned int pool_reap(AioSource *src)
{
    WorkerPool *pool = container_of(src, WorkerPool, source);
    unsigned int n = 0;
    FifoNode *node;

    take_finished(pool);
    aio_plug(src->ctx);
    while ((node = fifo_pop(&pool->ending))) {
        WorkItem *item = container_of(node, WorkItem, link);

        pool->in_flight--;
        n++;
        item->done(item, item->ret);
    }
    if (n) {
        aio_stat_reap(aio_context_stats(src->ctx), n);
    }
    aio_unplug(src->ctx);
    return n;
}

static void pool_flush(AioSource *src)
{
}

static bool pool_busy(AioSource *src)
{
    return container_of(src, WorkerPool, source)->in_flight != 0;
}

static void pool_params_changed(AioSource *src)
{
    worker_pool_update(container_of(src, WorkerPool, source));
}

static void pool_destroy(AioSource *src)
{
    worker_pool_free(container_of(src, WorkerPool, source));
}

static const AioSourceOps pool_ops = {
    .name = "workers",
    .flush = pool_flush,
    .ready = pool_ready,
    .reap = pool_reap,
    .busy = pool_busy,
    .params_changed = pool_params_changed,
    .destroy = pool_destroy,
};

WorkerPool *aio_worker_pool(AioContext *ctx)
{
    AioSource *src = aio_source_get(ctx, AIO_SLOT_WORKERS);
    WorkerPool *pool;

    if (src) {
        return container_of(src, WorkerPool, source);
    }
    pool = g_aligned_alloc0(1, sizeof(*pool), 64);
    pool->source.ops = &pool_ops;
    pool->source.ctx = ctx;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->ended, NULL);
    fifo_init(&pool->queue);
    fifo_init(&pool->ending);
    list_init(&pool->idle);
    aio_context_thread_pool(ctx, &pool->min, &pool->max);
    aio_source_attach(ctx, AIO_SLOT_WORKERS, &pool->source);
    worker_pool_update(pool);
    return pool;
}

void worker_pool_submit_many(WorkerPool *pool, Fifo *items, unsigned int n)
{
    Worker *worker = NULL;
    Wake wake;

    if (fifo_empty(items)) {
        return;
    }
    pool->in_flight += n;
    pthread_mutex_lock(&pool->lock);
    *pool->queue.last = items->first;
    pool->queue.last = items->last;
    pool->queued += n;
    wake = choose_wake(pool, &worker);
    pthread_mutex_unlock(&pool->lock);
    fifo_init(items);
    do_wake(pool, wake, worker);
}

void worker_pool_submit(WorkerPool *pool, WorkItem *item)
{
    Fifo one;

    fifo_init(&one);
    fifo_push(&one, &item->link);
    worker_pool_submit_many(pool, &one, 1);
}

void worker_pool_update(WorkerPool *pool)
{
    int missing = 0;

    pthread_mutex_lock(&pool->lock);
    aio_context_thread_pool(pool->source.ctx, &pool->min, &pool->max);
    if (pool->threads < pool->min) {
        missing = pool->min - pool->threads;
        pool->threads += missing;
    }
    for (int surplus = pool->threads - pool->max; surplus > 0 && pool->nidle; surplus--) {
        /* Woken with nothing to do, it sees that there are too many. */
        Worker *w = list_last(&pool->idle, Worker, idle_link);

        list_remove(&w->idle_link);
        pool->nidle--;
        atomic_store_explicit(&w->woken, 1, memory_order_release);
        futex_wake(&w->woken);
    }
    pthread_mutex_unlock(&pool->lock);
    while (missing && !start_thread(pool)) {
        missing--;
    }
    if (missing) {
        /* Fewer than asked for: the next submission tries again. */
        pthread_mutex_lock(&pool->lock);
        pool->threads -= missing;
        pthread_mutex_unlock(&pool->lock);
    }
}

int worker_pool_threads(const WorkerPool *pool)
{
    return atomic_load_explicit((_Atomic int *)&pool->threads, memory_order_relaxed);
}

void worker_pool_free(WorkerPool *pool)
{
    assert(!pool->in_flight);
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    while (pool->threads) {
        while (pool->nidle) {
            Worker *w = list_first(&pool->idle, Worker, idle_link);

            list_remove(&w->idle_link);
            pool->nidle--;
            atomic_store_explicit(&w->woken, 1, memory_order_release);
            futex_wake(&w->woken);
        }
        pthread_cond_wait(&pool->ended, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->lock);
    g_aligned_free(pool);
}
