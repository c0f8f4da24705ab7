/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps a read-modify-write from overlapping other writes, at no cost in locks for those that it does not concern. */
#include "block/internal.h"

#include "loop/coroutine.h"

/*
 * Each thread lists its own writes in flight, on nodes whose request alignment makes read-modify-write possible; nobody
 * else looks at that list. A serialising write enters its range in the node's list (under the lock), raises
 * serial.active, and then asks each thread that may submit to the node, by a bottom half, to report when the overlapping
 * writes on its list have ended. Having run that bottom half, a thread sees serial.active raised, so a later write of it
 * meets the range and waits. Writes that wait are not yet listed, and ranges wait only for older ranges: no cycle.
 */
static __thread ListNode writes_in_flight;
static __thread ListNode end_waiters; /* LocalWaiter */

typedef struct LocalWaiter {
    ListNode link;
    Coroutine *co;
} LocalWaiter;

typedef struct RangeWaiter {
    ListNode link;
    Coroutine *co;
} RangeWaiter;

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

void block_track(BlockNode *node, BlockRequest *req)
{
    if (G_UNLIKELY(!writes_in_flight.next)) {
        list_init(&writes_in_flight);
        list_init(&end_waiters);
    }
    req->tracked_by = node;
    list_append(&writes_in_flight, &req->tracked);
}

void block_untrack(BlockRequest *req)
{
    ListNode woken;
    LocalWaiter *w, *next;

    req->tracked_by = NULL;
    list_remove(&req->tracked);
    if (list_empty(&end_waiters)) {
        return;
    }
    list_init(&woken);
    list_splice(&woken, &end_waiters);
    list_for_each_safe(w, next, &woken, link) {
        Coroutine *co = w->co;

        list_remove(&w->link);
        aio_co_wake(co);
    }
}

static bool overlaps_in_flight(const BlockNode *node, uint64_t offset, uint64_t bytes)
{
    BlockRequest *req;

    if (!writes_in_flight.next) {
        return false;
    }
    list_for_each(req, &writes_in_flight, tracked) {
        if (req->tracked_by == node && overlap(req->offset, req->bytes, offset, bytes)) {
            return true;
        }
    }
    return false;
}

/* Until this thread has no overlapping write in flight. */
static void coroutine_fn wait_in_flight(const BlockNode *node, uint64_t offset, uint64_t bytes)
{
    while (overlaps_in_flight(node, offset, bytes)) {
        LocalWaiter w = { .co = coroutine_self() };

        list_append(&end_waiters, &w.link);
        coroutine_yield();
    }
}

/* --- Ranges of the node --- */

/* Wait for the first overlapping range, up to @self if that is in the list. The lock is held, also on return. */
static bool coroutine_fn wait_range(BlockNode *node, uint64_t offset, uint64_t bytes, const SerialRange *self)
{
    RangeWaiter w = { .co = coroutine_self() };
    SerialRange *r;

    list_for_each(r, &node->serial.ranges, link) {
        if (r == self) {
            return false;
        }
        if (overlap(r->offset, r->bytes, offset, bytes)) {
            list_append(&r->waiters, &w.link);
            pthread_mutex_unlock(&node->serial.lock);
            coroutine_yield();
            pthread_mutex_lock(&node->serial.lock);
            return true;
        }
    }
    return false;
}

void coroutine_fn block_serial_wait(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    pthread_mutex_lock(&node->serial.lock);
    while (wait_range(node, offset, bytes, NULL)) {
    }
    pthread_mutex_unlock(&node->serial.lock);
}

/* --- Asking the other threads --- */

typedef struct Inquiry {
    BlockNode *node;
    uint64_t offset, bytes;
    Coroutine *asker;
    atomic_int pending; /* threads that have not answered, and the asker itself until it waits */
} Inquiry;

/* True for the last answer; @inq may be gone after any other. */
static bool inquiry_answer(Inquiry *inq)
{
    return atomic_fetch_sub(&inq->pending, 1) == 1;
}

static void coroutine_fn inquiry_entry(void *opaque)
{
    Inquiry *inq = opaque;
    Coroutine *asker = inq->asker;

    wait_in_flight(inq->node, inq->offset, inq->bytes);
    if (inquiry_answer(inq)) {
        aio_co_wake(asker);
    }
}

static void inquiry_bh(void *opaque)
{
    coroutine_enter(coroutine_create(inquiry_entry, opaque));
}

void coroutine_fn block_serial_begin(BlockNode *node, SerialRange *r, uint64_t offset, uint64_t bytes)
{
    Inquiry inq = { .node = node, .offset = offset, .bytes = bytes, .asker = coroutine_self(), .pending = 1 };

    r->offset = offset;
    r->bytes = bytes;
    list_init(&r->waiters);
    pthread_mutex_lock(&node->serial.lock);
    list_append(&node->serial.ranges, &r->link);
    atomic_fetch_add(&node->serial.active, 1);
    while (wait_range(node, offset, bytes, r)) {
    }
    /* A thread that is added later finds the range, because it is added under the same lock. */
    for (guint i = 0; i < node->contexts->len; i++) {
        AioContext *ctx = g_array_index(node->contexts, BlockNodeContext, i).ctx;

        if (ctx != aio_context_current()) {
            atomic_fetch_add(&inq.pending, 1);
            aio_bh_schedule_oneshot(ctx, inquiry_bh, &inq);
        }
    }
    pthread_mutex_unlock(&node->serial.lock);
    wait_in_flight(node, offset, bytes);
    if (!inquiry_answer(&inq)) {
        coroutine_yield();
    }
}

void block_serial_end(BlockNode *node, SerialRange *r)
{
    ListNode woken;
    RangeWaiter *w, *next;

    list_init(&woken);
    pthread_mutex_lock(&node->serial.lock);
    list_remove(&r->link);
    atomic_fetch_sub(&node->serial.active, 1);
    list_splice(&woken, &r->waiters);
    pthread_mutex_unlock(&node->serial.lock);
    list_for_each_safe(w, next, &woken, link) {
        Coroutine *co = w->co;

        list_remove(&w->link);
        aio_co_wake(co);
    }
}
