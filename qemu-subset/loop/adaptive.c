/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Polling in user space before the loop sleeps, for a time that adapts to how long waits turn out to be. */
#include "loop/context.h"

#include <glib.h>
#include <sched.h>

/* QEMU's value. Something that was not dispatched for so long stops to be polled until it is dispatched again. */
#define POLL_IDLE_NS INT64_C(7000000000)

/*
 * Where polling does catch events, to poll for about as long as a sleep costs, the driver's notification included, is never
 * twice as dear as the best choice would have been; that waits are much shorter as a rule is no reason to sleep as soon as one
 * is not. With 4 us or 8 us one run in ten of "virtio-blk-bench --backend null-co --queues 4 --vs" stayed at a fifth of the
 * speed of the others, with 16 us none.
 */
#define POLL_WORTH_NS 16384

/*
 * A wait that ends with a notification includes what that took. So a driver that would have been caught by polling may look
 * too slow for it once polling has stopped: try, after so many waits. Where that is in vain it costs poll-max-ns once in
 * PROBE_MAX waits in the end.
 */
#define PROBE_MIN 8
#define PROBE_MAX 1024

/*
 * Where threads are more than processors, a loop that polls may keep from running just those that it waits for: workers, the
 * kernel's included, or the driver of a device. So after AioPollParams.yield_ns it offers them the processor between two
 * looks: each time while they take it, and that is their time, not counted as polling; if it took less than
 * YIELD_ALONE_NS nobody wanted it, and the next offer waits twice as long.
 * Who takes it for long is no such thread: the wait ends in a sleep, from which an event wakes the loop at once, and
 * nothing is offered for YIELD_REST times as long. "virtio-blk-bench --aio io_uring --backend file --queues 4" makes 1.4
 * times the requests with 10 that it makes without yields, 1.1 times with 1000; beside two programs that never sleep, 2.0
 * times with 10 and 1.3 times with 100. With yields from the start instead of after 1000 ns, "--aio native --depth 1" makes
 * 0.87 times as many.
 */
#define YIELD_ALONE_NS 2000
#define YIELD_LONG_NS 500000
#define YIELD_REST 10
#define YIELD_REST_MAX_NS INT64_C(10000000000)

void aio_poll_state_update(AioPollState *ps, const AioPollParams *p, int64_t block_ns)
{
    if (ps->hit) {
        ps->ns = ps->ns ? ps->ns - (ps->ns >> p->weight) + (block_ns >> p->weight) : block_ns;
    } else if (ps->ns) {
        ps->ns = block_ns > INT64_MAX - ps->ns ? INT64_MAX : ps->ns + block_ns;
    }
    /* Polling could not have caught that. */
    if (ps->ns > p->max_ns) {
        ps->ns = 0;
    }
}

int64_t aio_poll_next(int64_t poll_ns, int64_t longest, const AioPollParams *p)
{
    int64_t grown;

    if (longest > poll_ns) {
        grown = poll_ns > p->max_ns / p->grow ? p->max_ns : poll_ns * p->grow;
        grown = longest > grown ? longest : grown;
        return grown < p->max_ns ? grown : p->max_ns;
    }
    if (longest < poll_ns / p->shrink) {
        return poll_ns / p->shrink;
    }
    return poll_ns;
}

/*
 * After a wait that polling could have caught or, @caught being false, not. The rule shrinks the time until it is below
 * poll-shrink.
 */
static void probe(AioContext *ctx, bool caught)
{
    ctx->poll_pays = caught;
    if (caught) {
        ctx->probe_after = ctx->probe_in = PROBE_MIN;
        ctx->probing = false;
    } else if (ctx->probing) {
        ctx->probe_after = ctx->probe_in = MIN(2 * ctx->probe_after, PROBE_MAX);
        ctx->probing = false;
        ctx->poll_ns = 0;
    } else if (ctx->poll_ns < ctx->poll.shrink && !--ctx->probe_in) {
        ctx->probing = true;
        ctx->poll_ns = ctx->poll.max_ns;
    }
}

void aio_adaptive_refresh(AioContext *ctx)
{
    AioHandler *h;

    pthread_mutex_lock(&ctx->params_lock);
    ctx->poll = ctx->params;
    ctx->poll_gen = atomic_load_explicit(&ctx->params_gen, memory_order_relaxed);
    pthread_mutex_unlock(&ctx->params_lock);
    ctx->poll_ns = 0;
    probe(ctx, true);
    list_for_each(h, &ctx->polled, poll_link) {
        h->ps.ns = 0;
    }
    for (int i = 0; i < AIO_POLL_INNER; i++) {
        ctx->inner[i].ns = 0;
    }
}

/* Ask the polled handlers; all of them, as each must get its turn. */
static bool look_at_handlers(AioContext *ctx)
{
    AioHandler *h;
    bool found = false;

    list_for_each(h, &ctx->polled, poll_link) {
        if (!list_linked(&h->ready_link) && h->poll(h->opaque)) {
            h->poll_said_yes = true;
            aio_handler_ready(ctx, h, 0);
            found = true;
        }
    }
    return found;
}

bool aio_adaptive_look(AioContext *ctx)
{
    /* Handlers that are in polling mode have switched their notifications off, so they must be looked at in each pass. */
    bool found = ctx->poll_begun && look_at_handlers(ctx);

    return aio_sources_ready(ctx) || found;
}

static void begin_polling(AioContext *ctx)
{
    AioHandler *h;

    list_for_each(h, &ctx->polled, poll_link) {
        if (!h->begun) {
            h->begun = true;
            ctx->poll_begun = true;
            if (h->begin) {
                h->begin(h->opaque);
            }
        }
    }
}

bool aio_adaptive_end(AioContext *ctx)
{
    AioHandler *h;

    if (!ctx->poll_begun) {
        return false;
    }
    ctx->poll_begun = false;
    list_for_each(h, &ctx->polled, poll_link) {
        if (h->begun) {
            h->begun = false;
            if (h->end) {
                h->end(h->opaque);
            }
        }
    }
    /* What came before notifications were on again sent none. */
    return look_at_handlers(ctx);
}

__attribute__((weak)) void aio_poll_yield_call(void)
{
    sched_yield();
}

/* Returns for how long, from @now on, others had the processor; 0 if none wanted it. */
static int64_t give_way(AioContext *ctx, int64_t now)
{
    int64_t away;

    if (now < ctx->no_yield_until) {
        return 0;
    }
    aio_stat_add(&ctx->stats.poll_yields, 1);
    aio_poll_yield_call();
    away = aio_now_ns() - now;
    if (away > YIELD_LONG_NS) {
        ctx->no_yield_until = now + MIN(away, YIELD_REST_MAX_NS / YIELD_REST) * YIELD_REST;
    }
    return away > YIELD_ALONE_NS ? away : 0;
}

static bool look(AioContext *ctx)
{
    bool found = look_at_handlers(ctx);

    found |= aio_sources_ready(ctx);
    return found | !aio_inbox_empty(ctx);
}

/* Looks at least once, and once after each offer of the processor. */
static bool look_until(AioContext *ctx, int64_t limit, int64_t timeout_ns, int64_t *start)
{
    const int64_t began = *start;
    int64_t now, polled, given = 0, pause = ctx->poll.yield_ns, next_yield = pause ? pause : INT64_MAX;

    while (!look(ctx)) {
        now = aio_now_ns();
        polled = now - began - given;
        if (polled >= limit || given > YIELD_LONG_NS || (timeout_ns >= 0 && now - began >= timeout_ns) ||
            atomic_load_explicit(&ctx->params_gen, memory_order_relaxed) != ctx->poll_gen) {
            return false;
        }
        if (polled >= next_yield) {
            int64_t away = give_way(ctx, now);

            given += away;
            pause = away ? 0 : MAX(2 * pause, ctx->poll.yield_ns);
            next_yield = polled + pause;
        }
    }
    if (given <= YIELD_LONG_NS) {
        *start += given;
    }
    return true;
}

bool aio_adaptive_poll(AioContext *ctx, int64_t timeout_ns, int64_t *start)
{
    int64_t limit = ctx->poll_pays ? MIN(MAX(ctx->poll_ns, POLL_WORTH_NS), ctx->poll.max_ns) : ctx->poll_ns;
    bool found;

    aio_stat_add(&ctx->stats.polls, 1);
    begin_polling(ctx);
    found = look_until(ctx, limit, timeout_ns, start);
    if (found) {
        aio_stat_add(&ctx->stats.polls_success, 1);
    }
    return found;
}

static int64_t account_one(AioContext *ctx, AioPollState *ps, int64_t block_ns, int64_t now)
{
    int64_t ns = -1;

    if (block_ns >= 0) {
        aio_poll_state_update(ps, &ctx->poll, block_ns);
    }
    if (ps->hit) {
        ps->hit = false;
        ps->last_ns = now;
        ns = ps->ns;
    }
    return ns;
}

void aio_adaptive_account(AioContext *ctx, int64_t block_ns, int64_t now)
{
    int64_t ns, longest = -1;
    AioHandler *h, *next;

    for (int i = 0; i < AIO_POLL_INNER; i++) {
        AioPollState *ps = &ctx->inner[i];

        ps->listed |= ps->hit;
        if (ps->listed) {
            ns = account_one(ctx, ps, block_ns, now);
            longest = ns > longest ? ns : longest;
            if (now - ps->last_ns > POLL_IDLE_NS) {
                *ps = (AioPollState){0};
            }
        }
    }
    list_for_each_safe(h, next, &ctx->polled, poll_link) {
        ns = account_one(ctx, &h->ps, block_ns, now);
        longest = ns > longest ? ns : longest;
        if (now - h->ps.last_ns > POLL_IDLE_NS && !h->begun) {
            list_remove(&h->poll_link);
            h->ps = (AioPollState){0};
        }
    }
    if (block_ns >= 0 && longest >= 0) {
        ctx->poll_ns = aio_poll_next(ctx->poll_ns, longest, &ctx->poll);
        probe(ctx, longest > 0);
    }
}
