/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sources: the slots where engines attach, and the submission sections that batch what they queue. */
#include "loop/context.h"
#include "loop/kernel-queue.h"

static unsigned int n_attached(const AioContext *ctx)
{
    return atomic_load_explicit(&((AioContext *)ctx)->n_attached, memory_order_relaxed);
}

AioSource *aio_source_get(AioContext *ctx, AioSlot slot)
{
    assert(in_home(ctx));
    return ctx->sources[slot];
}

void aio_source_attach(AioContext *ctx, AioSlot slot, AioSource *src)
{
    unsigned int n = n_attached(ctx);

    assert(in_home(ctx) && !ctx->sources[slot]);
    src->ctx = ctx;
    ctx->sources[slot] = src;
    ctx->attached_slot[n] = (uint8_t)slot;
    ctx->attached[n] = src;
    /* Pairs with the acquire in aio_context_state(). */
    atomic_store_explicit(&ctx->n_attached, n + 1, memory_order_release);
}

void aio_source_set_oldest(AioSource *src, const char *what, uint64_t offset, uint64_t bytes, int64_t since_ns)
{
    AioInFlight *f = &src->in_flight;
    uint64_t version = aio_stat_get(&f->version);

    /*
     * One writer, so no locked instruction. A reader that sees one of the new values acquires it, hence sees the odd version
     * in its second look; a reader that sees the even version in its first look sees all values that go with it.
     */
    atomic_store_explicit(&f->version, version + 1, memory_order_relaxed);
    atomic_store_explicit(&f->what, what, memory_order_release);
    atomic_store_explicit(&f->offset, offset, memory_order_release);
    atomic_store_explicit(&f->bytes, bytes, memory_order_release);
    atomic_store_explicit(&f->since_ns, (uint64_t)since_ns, memory_order_release);
    atomic_store_explicit(&f->version, version + 2, memory_order_release);
}

void aio_plug(AioContext *ctx)
{
    assert(in_home(ctx));
    ctx->plugged++;
}

void aio_unplug(AioContext *ctx)
{
    assert(in_home(ctx) && ctx->plugged > 0);
    if (!--ctx->plugged) {
        aio_sources_flush(ctx);
    }
}

bool aio_plugged(const AioContext *ctx)
{
    return ctx->plugged;
}

void aio_sources_flush(AioContext *ctx)
{
    for (unsigned int i = 0; i < n_attached(ctx); i++) {
        AioSource *src = ctx->attached[i];

        if (src->pending) {
            src->ops->flush(src);
        }
    }
}

bool aio_sources_ready(AioContext *ctx)
{
    if ((ctx->kaio && aio_kaio_ready(ctx)) || (ctx->uring && aio_uring_ready(ctx))) {
        return true;
    }
    for (unsigned int i = 0; i < n_attached(ctx); i++) {
        AioSource *src = ctx->attached[i];

        if (src->ops->ready && src->ops->ready(src)) {
            return true;
        }
    }
    return false;
}

static unsigned int reaped(AioContext *ctx, unsigned int which, unsigned int n)
{
    ctx->inner[which].hit |= n != 0;
    return n;
}

unsigned int aio_sources_reap(AioContext *ctx)
{
    unsigned int n = 0;

    if (ctx->kaio) {
        n += reaped(ctx, AIO_POLL_KAIO, aio_kaio_reap(ctx));
    }
    /*
     * Linux AIO signals the notifier, whose poll in the ring then wants the kernel to be entered, only to say what is known
     * already. So a ring that has nothing but that to offer is passed over while Linux AIO has completions, until the pass
     * that looks at descriptors again.
     */
    if (ctx->uring && (!n || !ctx->skipped || aio_uring_posted(ctx))) {
        n += reaped(ctx, AIO_POLL_URING, aio_uring_reap(ctx));
    }
    for (unsigned int i = 0; i < n_attached(ctx); i++) {
        AioSource *src = ctx->attached[i];

        if (src->ops->reap && (!src->ops->ready || src->ops->ready(src))) {
            n += reaped(ctx, AIO_POLL_SLOT0 + ctx->attached_slot[i], src->ops->reap(src));
        }
    }
    return n;
}

bool aio_sources_busy(AioContext *ctx)
{
    for (unsigned int i = 0; i < n_attached(ctx); i++) {
        AioSource *src = ctx->attached[i];

        if (src->pending || (src->ops->busy && src->ops->busy(src))) {
            return true;
        }
    }
    return false;
}

void aio_sources_params_changed(AioContext *ctx)
{
    for (unsigned int i = 0; i < n_attached(ctx); i++) {
        AioSource *src = ctx->attached[i];

        if (src->ops->params_changed) {
            src->ops->params_changed(src);
        }
    }
}

void aio_sources_destroy(AioContext *ctx)
{
    while (n_attached(ctx)) {
        unsigned int last = n_attached(ctx) - 1;
        AioSource *src = ctx->attached[last];

        atomic_store_explicit(&ctx->n_attached, last, memory_order_relaxed);
        ctx->sources[ctx->attached_slot[last]] = NULL;
        if (src->ops->destroy) {
            src->ops->destroy(src);
        }
    }
}
