/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Timers of a context: one 4-ary heap for each clock. */
#include "loop/context.h"
#include "loop/fence.h"

#include <glib.h>

/* AioTimer.index of a timer in AioTimerHeap.later. */
#define INDEX_LATER UINT_MAX

static void heap_place(AioTimerHeap *heap, unsigned int i, AioTimer *t)
{
    heap->timers[i] = t;
    t->index = i + 1;
}

static void heap_up(AioTimerHeap *heap, unsigned int i, AioTimer *t)
{
    while (i > 0 && heap->timers[(i - 1) / 4]->expire_ns > t->expire_ns) {
        heap_place(heap, i, heap->timers[(i - 1) / 4]);
        i = (i - 1) / 4;
    }
    heap_place(heap, i, t);
}

static void heap_down(AioTimerHeap *heap, unsigned int i, AioTimer *t)
{
    for (;;) {
        unsigned int first = 4 * i + 1, last = MIN(first + 4, heap->count), best = first;

        if (first >= heap->count) {
            break;
        }
        for (unsigned int c = first + 1; c < last; c++) {
            if (heap->timers[c]->expire_ns < heap->timers[best]->expire_ns) {
                best = c;
            }
        }
        if (heap->timers[best]->expire_ns >= t->expire_ns) {
            break;
        }
        heap_place(heap, i, heap->timers[best]);
        i = best;
    }
    heap_place(heap, i, t);
}

static void heap_insert(AioTimerHeap *heap, AioTimer *t)
{
    if (heap->count == heap->size) {
        heap->size = heap->size ? heap->size * 2 : 16;
        heap->timers = g_renew(AioTimer *, heap->timers, heap->size);
    }
    heap_up(heap, heap->count++, t);
}

static void heap_remove(AioTimerHeap *heap, AioTimer *t)
{
    unsigned int i = t->index - 1;
    AioTimer *last = heap->timers[--heap->count];

    t->index = 0;
    if (last == t) {
        return;
    }
    if (i > 0 && heap->timers[(i - 1) / 4]->expire_ns > last->expire_ns) {
        heap_up(heap, i, last);
    } else {
        heap_down(heap, i, last);
    }
}

/* Let clock_virtual_set_ns() know what it has to wake this context for. */
static void publish_deadline(AioContext *ctx, ClockType clock)
{
    AioTimerHeap *heap = &ctx->heaps[clock];
    int64_t deadline;

    if (clock != CLOCK_TYPE_VIRTUAL) {
        return;
    }
    deadline = heap->count ? heap->timers[0]->expire_ns : INT64_MAX;
    for (AioTimer *t = heap->later; t; t = t->later) {
        deadline = MIN(deadline, t->expire_ns);
    }
    if (deadline != atomic_load_explicit(&ctx->virtual_deadline, memory_order_relaxed)) {
        atomic_store_explicit(&ctx->virtual_deadline, deadline, memory_order_relaxed);
        /* Pairs with the fence in virtual_store(). */
        aio_full_fence();
    }
}

void aio_timer_init(AioTimer *t, AioContext *ctx, ClockType clock, AioTimerFn *fn, void *opaque)
{
    *t = (AioTimer){.ctx = ctx, .clock = clock, .fn = fn, .opaque = opaque};
}

static void timer_disarm(AioTimer *t)
{
    AioTimerHeap *heap = &t->ctx->heaps[t->clock];

    t->ctx->n_timers -= t->index != 0;
    if (t->index == INDEX_LATER) {
        AioTimer **pos = &heap->later;

        while (*pos != t) {
            pos = &(*pos)->later;
        }
        *pos = t->later;
        t->index = 0;
    } else if (t->index) {
        heap_remove(heap, t);
    }
}

void aio_timer_mod_ns(AioTimer *t, int64_t expire_ns)
{
    AioTimerHeap *heap = &t->ctx->heaps[t->clock];

    assert(in_home(t->ctx));
    timer_disarm(t);
    t->ctx->n_timers++;
    t->expire_ns = expire_ns;
    if (heap->running && expire_ns <= heap->now_ns) {
        /* In the heap it would run in this pass again, and could keep others from running for ever. */
        t->index = INDEX_LATER;
        t->later = heap->later;
        heap->later = t;
    } else {
        heap_insert(heap, t);
    }
    publish_deadline(t->ctx, t->clock);
}

void aio_timer_del(AioTimer *t)
{
    if (t->index) {
        assert(in_home(t->ctx));
        timer_disarm(t);
        publish_deadline(t->ctx, t->clock);
    }
}

int64_t aio_timers_timeout(AioContext *ctx)
{
    int64_t timeout = -1;

    if (!ctx->n_timers) {
        return -1;
    }
    for (int c = 0; c < CLOCK_TYPES; c++) {
        AioTimerHeap *heap = &ctx->heaps[c];
        int64_t left;

        if (heap->later) {
            return 0;
        }
        if (!heap->count) {
            continue;
        }
        left = heap->timers[0]->expire_ns - clock_get_ns(c);
        if (left <= 0) {
            return 0;
        }
        if (aio_clock_runs(c) && (timeout < 0 || left < timeout)) {
            timeout = left;
        }
    }
    return timeout;
}

static void put_later_back(AioTimerHeap *heap)
{
    AioTimer *later = heap->later;

    heap->later = NULL;
    while (later) {
        AioTimer *t = later;

        later = t->later;
        t->index = 0;
        heap_insert(heap, t);
    }
}

static bool heap_run(AioContext *ctx, ClockType clock)
{
    AioTimerHeap *heap = &ctx->heaps[clock];
    bool progress = false;
    bool nested = heap->running;

    if (nested) {
        put_later_back(heap);
    }
    heap->now_ns = clock_get_ns(clock);
    heap->running = true;
    while (heap->count && heap->timers[0]->expire_ns <= heap->now_ns) {
        AioTimer *t = heap->timers[0];

        timer_disarm(t);
        publish_deadline(ctx, clock);
        t->fn(t->opaque);
        progress = true;
    }
    heap->running = nested;
    put_later_back(heap);
    return progress;
}

bool aio_timers_run(AioContext *ctx)
{
    bool progress = false;

    if (!ctx->n_timers) {
        return false;
    }
    for (int c = 0; c < CLOCK_TYPES; c++) {
        /* Those of "later" run in a pass that is nested in the one which put them aside: its callback may be waiting for one. */
        if (ctx->heaps[c].count || ctx->heaps[c].later) {
            progress |= heap_run(ctx, c);
        }
    }
    return progress;
}

void aio_timers_destroy(AioContext *ctx)
{
    for (int c = 0; c < CLOCK_TYPES; c++) {
        AioTimerHeap *heap = &ctx->heaps[c];

        /* Their owners may still call aio_timer_del(). */
        while (heap->count) {
            timer_disarm(heap->timers[0]);
        }
        g_clear_pointer(&heap->timers, g_free);
        heap->size = 0;
    }
    publish_deadline(ctx, CLOCK_TYPE_VIRTUAL);
}
