/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One pass of the event loop, phase by phase. */
#include "loop/context.h"
#include "loop/kernel-queue.h"

#include <time.h>

/* In units of AIO_PASSES_WITHOUT_LOOK: a pass that reaps is longer, and what comes through descriptors is often the next request. */
#define COST_OF_COMPLETIONS 4

/* A coarse clock read takes 7 ns, a pass for one bottom half 20. */
#define PASSES_A_CLOCK_READ 64

int64_t aio_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* A tenth of what the precise clock costs; a few milliseconds do not matter to who asks why a loop is stuck. */
static int64_t coarse_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void since(AioContext *ctx, int64_t now)
{
    atomic_store_explicit(&ctx->stats.since_ns, (uint64_t)now, memory_order_relaxed);
}

/* Returns the phase before. The time of a pass inside another one is counted in its own phases only. */
static inline unsigned int enter_phase(AioContext *ctx, unsigned int phase)
{
    unsigned int old = atomic_load_explicit(&ctx->stats.phase, memory_order_relaxed);

    atomic_store_explicit(&ctx->stats.phase, phase, memory_order_relaxed);
    if (__builtin_expect(ctx->timing, 0)) {
        int64_t now = aio_now_ns();

        aio_stat_add(&ctx->stats.phase_ns[old], (uint64_t)(now - ctx->phase_ns));
        ctx->phase_ns = now;
    }
    return old;
}

/* The switch may be turned at any time; a pass measures from its start to its end or not at all. */
static void refresh_timing(AioContext *ctx)
{
    ctx->timing = aio_context_phase_times(ctx);
    ctx->phase_ns = ctx->timing ? aio_now_ns() : 0;
}

static bool work_is_here(const AioContext *ctx)
{
    return !list_empty(&ctx->work) || !aio_inbox_empty(ctx) || !list_empty(&ctx->ready);
}

/* Nanoseconds that this pass may sleep; -1: until something happens. */
static int64_t pass_timeout(AioContext *ctx)
{
    return work_is_here(ctx) || !list_empty(&ctx->always) ? 0 : aio_timers_timeout(ctx);
}

static void wait_for_events(AioContext *ctx, int64_t timeout_ns)
{
    ctx->skipped = 0;
    enter_phase(ctx, AIO_PHASE_WAIT);
    ctx->mon->wait(ctx, timeout_ns);
    if (!list_empty(&ctx->always)) {
        AioHandler *h;

        list_for_each(h, &ctx->always, mon_link) {
            aio_handler_ready(ctx, h, h->events);
        }
    }
}

/* What was prepared in the ring must not wait for a pass that does not enter the kernel on its behalf. */
static void submit_ring(AioContext *ctx)
{
    if (!ctx->uring || !aio_uring_unsubmitted(ctx)) {
        return;
    }
    if (ctx->monitor == AIO_MONITOR_IO_URING) {
        /* As a system call is due anyway, it takes the polls along. */
        wait_for_events(ctx, 0);
    } else {
        aio_uring_submit(ctx);
    }
}

/* There is work in user space: look at descriptors only now and then. */
static void look_at_times(AioContext *ctx, bool completions)
{
    ctx->skipped += completions ? COST_OF_COMPLETIONS : 1;
    if (ctx->skipped >= AIO_PASSES_WITHOUT_LOOK) {
        wait_for_events(ctx, 0);
    } else {
        submit_ring(ctx);
    }
}

/* What the kernel refused to take from the ring for lack of resources is offered again before sleep, and soon after. */
#define RETRY_SUBMIT_NS 1000000

/* Completions of Linux AIO that, against expectation, have to be waited for without a signal. */
#define SILENT_NS 50000

/* Monitors other than io_uring do not submit by waiting. Returns how long they may wait. */
static int64_t submit_before_sleep(AioContext *ctx, int64_t timeout_ns)
{
    if (aio_kaio_silent(ctx) && (timeout_ns < 0 || timeout_ns > SILENT_NS)) {
        timeout_ns = SILENT_NS;
    }
    if (ctx->uring && ctx->monitor != AIO_MONITOR_IO_URING && aio_uring_unsubmitted(ctx)) {
        aio_uring_submit(ctx);
        if (aio_uring_unsubmitted(ctx) && (timeout_ns < 0 || timeout_ns > RETRY_SUBMIT_NS)) {
            return RETRY_SUBMIT_NS;
        }
    }
    return timeout_ns;
}

/* Sleep unless something has come up. Returns whether sleep was announced, so that taking the inbox ends it. */
static bool sleep_for_events(AioContext *ctx, int64_t timeout_ns)
{
    if (aio_adaptive_end(ctx)) {
        timeout_ns = 0;
    }
    timeout_ns = submit_before_sleep(ctx, timeout_ns);
    if (ctx->resfd_signalled && !ctx->mon->notifier_edge) {
        /*
         * Completions that were reaped by looking at the ring have left the eventfd set; to sleep on it would take a second
         * call. Those that came since are still in the ring: look once more, after the read.
         */
        ctx->notifier_readable = true;
        aio_notifier_clear(ctx);
        if (aio_sources_ready(ctx)) {
            timeout_ns = 0;
        }
    }
    if (timeout_ns == 0 || !aio_inbox_sleep(ctx)) {
        wait_for_events(ctx, 0);
        return false;
    }
    aio_stat_add(&ctx->stats.sleeps, 1);
    since(ctx, coarse_now_ns());
    wait_for_events(ctx, timeout_ns);
    return true;
}

/* Poll if that may help, else sleep. The wait began at *@start, if that is not 0. Returns whether sleep was announced. */
static bool poll_or_sleep(AioContext *ctx, int64_t timeout, int64_t *start)
{
    if (*start && ctx->poll_ns > 0) {
        submit_ring(ctx);
        enter_phase(ctx, AIO_PHASE_POLL);
        if (aio_adaptive_poll(ctx, timeout, start)) {
            look_at_times(ctx, true);
            return false;
        }
        if (timeout > 0) {
            timeout = aio_timers_timeout(ctx);
        }
    }
    return sleep_for_events(ctx, timeout);
}

/*
 * Deadline, polling and waiting. Returns how long the wait took; -1 if there was nothing to wait for, or if nobody wants to
 * know. *@now is set to when it ended, roughly unless it was measured.
 */
static int64_t pass_wait(AioContext *ctx, bool blocking, int64_t *now)
{
    int64_t start = 0, timeout = blocking ? pass_timeout(ctx) : 0;
    bool here = work_is_here(ctx), slept = false;
    bool completions;

    if (ctx->monitor != AIO_MONITOR_IO_URING) {
        submit_ring(ctx); /* that one submits and waits in one call */
    }
    completions = aio_adaptive_look(ctx);
    /* A due timer is work as well. */
    here |= blocking && timeout == 0 && list_empty(&ctx->always);
    if (here || completions) {
        look_at_times(ctx, completions);
    } else if (timeout == 0) {
        wait_for_events(ctx, 0);
    } else {
        start = ctx->poll.max_ns ? aio_now_ns() : 0;
        slept = poll_or_sleep(ctx, timeout, &start);
    }
    if (aio_inbox_take(ctx, slept)) {
        ctx->inner[AIO_POLL_NOTIFIER].hit = true;
    }
    if (start) {
        *now = ctx->pass_ns = aio_now_ns();
        since(ctx, *now);
        return *now - start;
    }
    /*
     * Passes that find their work here are short, and their number is what counts: the clock is not read for each. Should
     * one get stuck, the few before it are counted along.
     */
    if (!here || aio_stat_get(&ctx->stats.passes) % PASSES_A_CLOCK_READ == 0) {
        *now = coarse_now_ns();
        since(ctx, *now);
    }
    return -1;
}

int64_t aio_pass_ns(AioContext *ctx)
{
    if (!ctx->depth) {
        return aio_now_ns();
    }
    if (!ctx->pass_ns) {
        ctx->pass_ns = aio_now_ns();
    }
    return ctx->pass_ns;
}

bool aio_poll_is_nested(const AioContext *ctx)
{
    return ctx->depth > 1;
}

void aio_poll_look_next(AioContext *ctx)
{
    assert(in_home(ctx));
    ctx->skipped = AIO_PASSES_WITHOUT_LOOK;
}

bool aio_poll(AioContext *ctx, bool blocking)
{
    bool progress;
    unsigned int outer;
    int64_t block_ns, now = ctx->last_ns;

    assert(in_home(ctx));
    ctx->depth++;
    ctx->pass_ns = 0;
    aio_stat_add(&ctx->stats.passes, 1);
    if (atomic_load_explicit(&ctx->params_gen, memory_order_relaxed) != ctx->poll_gen) {
        aio_adaptive_refresh(ctx);
    }
    if (__builtin_expect(aio_context_phase_times(ctx) != ctx->timing, 0)) {
        refresh_timing(ctx);
    }
    outer = enter_phase(ctx, AIO_PHASE_SUBMIT);
    /* Whatever a caller further up the stack keeps plugged: this pass may wait for it. */
    aio_sources_flush(ctx);

    block_ns = pass_wait(ctx, blocking, &now);
    ctx->last_ns = now;

    /* Everything that the callbacks of one pass submit goes out together. */
    aio_plug(ctx);
    enter_phase(ctx, AIO_PHASE_COMPLETIONS);
    progress = aio_sources_reap(ctx) > 0;
    enter_phase(ctx, AIO_PHASE_HANDLERS);
    progress |= aio_handlers_dispatch(ctx);
    aio_notifier_clear(ctx);
    if (ctx->poll.max_ns) {
        aio_adaptive_account(ctx, block_ns, now);
    }
    if (!aio_inbox_empty(ctx)) {
        aio_inbox_take(ctx, false);
    }
    enter_phase(ctx, AIO_PHASE_BOTTOM_HALVES);
    progress |= aio_work_run(ctx);
    enter_phase(ctx, AIO_PHASE_TIMERS);
    progress |= aio_timers_run(ctx);
    enter_phase(ctx, AIO_PHASE_SUBMIT);
    aio_unplug(ctx);

    if (!--ctx->depth && !list_empty(&ctx->deleted)) {
        aio_handlers_free_deleted(ctx);
    }
    enter_phase(ctx, outer);
    return progress;
}
