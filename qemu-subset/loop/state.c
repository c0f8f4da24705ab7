/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a loop is doing, looked at from another thread. */
#include "loop/context.h"

/* A reader that meets so many changes in a row looks at a loop that works. */
#define ATTEMPTS 16

static bool source_state(AioSource *src, AioSourceState *s)
{
    AioInFlight *f = &src->in_flight;

    *s = (AioSourceState){.name = src->ops->name, .count = aio_stat_get(&f->count)};
    for (int i = 0; s->count && i < ATTEMPTS; i++) {
        /* Acquire pairs with the releases in aio_source_set_oldest(); see there. */
        uint64_t version = atomic_load_explicit(&f->version, memory_order_acquire);
        const char *what = atomic_load_explicit(&f->what, memory_order_acquire);

        s->offset = atomic_load_explicit(&f->offset, memory_order_acquire);
        s->bytes = atomic_load_explicit(&f->bytes, memory_order_acquire);
        s->since_ns = (int64_t)atomic_load_explicit(&f->since_ns, memory_order_acquire);
        if (!(version & 1) && aio_stat_get(&f->version) == version) {
            s->what = what;
            break;
        }
    }
    return s->count;
}

void aio_context_state(AioContext *ctx, AioContextState *state)
{
    /* Sources stay until shutdown, which the caller prevents. */
    unsigned int n = atomic_load_explicit(&ctx->n_attached, memory_order_acquire);

    *state = (AioContextState){
        .phase = (AioPhase)atomic_load_explicit(&ctx->stats.phase, memory_order_relaxed),
        .handler_fd = atomic_load_explicit(&ctx->stats.handler_fd, memory_order_relaxed),
        .since_ns = (int64_t)aio_stat_get(&ctx->stats.since_ns),
    };
    for (unsigned int i = 0; i < n; i++) {
        state->n_sources += source_state(ctx->attached[i], &state->source[state->n_sources]);
    }
}
