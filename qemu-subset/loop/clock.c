/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The clocks; the virtual one runs with the VM or is moved by qtest. */
#include "loop/context.h"
#include "loop/fence.h"

#include <time.h>

/*
 * The virtual clock in one word, so that readers need no lock: while it runs, what to add to the monotonic time, doubled,
 * plus 1; while it stands, its time, doubled. Only the main thread writes it.
 */
static _Atomic int64_t virtual_word;
static bool virtual_taken_over;

static int64_t host_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static int64_t virtual_ns(int64_t word)
{
    /* An arithmetic shift: the offset of a clock that was started late is negative. */
    return word & 1 ? aio_now_ns() + (word >> 1) : word >> 1;
}

int64_t clock_get_ns(ClockType type)
{
    switch (type) {
    case CLOCK_TYPE_REALTIME:
        return aio_now_ns();
    case CLOCK_TYPE_HOST:
        return host_ns();
    default:
        return virtual_ns(atomic_load_explicit(&virtual_word, memory_order_relaxed));
    }
}

bool aio_clock_runs(ClockType type)
{
    return type != CLOCK_TYPE_VIRTUAL || (atomic_load_explicit(&virtual_word, memory_order_relaxed) & 1);
}

/* @opaque: the new time; NULL: all that have virtual timers must compute their timeout again. */
static void wake_if_due(AioContext *ctx, void *opaque)
{
    int64_t deadline = atomic_load_explicit(&ctx->virtual_deadline, memory_order_relaxed);

    if (deadline != INT64_MAX && (!opaque || deadline <= *(int64_t *)opaque)) {
        aio_notify(ctx);
    }
}

static void virtual_store(int64_t word, int64_t *due)
{
    atomic_store_explicit(&virtual_word, word, memory_order_relaxed);
    /*
     * Pairs with the fence after a change of ctx->virtual_deadline in timer.c: either we see the new deadline here, or the
     * home sees the new time when it computes how long it may sleep.
     */
    aio_full_fence();
    aio_context_for_each(wake_if_due, due);
}

void clock_virtual_enable(bool on)
{
    int64_t word = atomic_load_explicit(&virtual_word, memory_order_relaxed);
    int64_t now;

    if (virtual_taken_over || (word & 1) == on) {
        return;
    }
    now = virtual_ns(word);
    virtual_store(on ? (now - aio_now_ns()) * 2 + 1 : now * 2, NULL);
}

void clock_virtual_take_over(void)
{
    virtual_taken_over = true;
    virtual_store(0, NULL);
}

void clock_virtual_set_ns(int64_t ns)
{
    assert(virtual_taken_over && ns >= 0 && ns <= INT64_MAX / 2);
    virtual_store(ns * 2, &ns);
}

typedef struct Earliest {
    int64_t now, deadline;
} Earliest;

static void find_earliest(AioContext *ctx, void *opaque)
{
    Earliest *e = opaque;
    int64_t deadline = atomic_load_explicit(&ctx->virtual_deadline, memory_order_relaxed);

    /* What is due in another thread's loop is on its way to run there: nothing to advance to. */
    if ((deadline > e->now || in_home(ctx)) && deadline < e->deadline) {
        e->deadline = deadline;
    }
}

int64_t clock_virtual_deadline_ns(void)
{
    Earliest e = {.now = clock_get_ns(CLOCK_TYPE_VIRTUAL), .deadline = INT64_MAX};

    aio_context_for_each(find_earliest, &e);
    return e.deadline == INT64_MAX ? -1 : e.deadline;
}
