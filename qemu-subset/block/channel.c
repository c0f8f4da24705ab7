/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Channels: a backend as one thread uses it. Submission, completion, accounting and coming to rest. */
#include "block/internal.h"

/* --- Life; main thread --- */

static bool subtree_has(const BlockNode *node, const BlockNode *wanted)
{
    BlockChild *c;

    if (node == wanted) {
        return true;
    }
    list_for_each(c, &node->children, in_parent) {
        if (subtree_has(c->node, wanted)) {
            return true;
        }
    }
    return false;
}

static bool subtrees_meet(const BlockNode *a, const BlockNode *b)
{
    BlockChild *c;

    if (subtree_has(b, a)) {
        return true;
    }
    list_for_each(c, &a->children, in_parent) {
        if (subtrees_meet(c->node, b)) {
            return true;
        }
    }
    return false;
}

/* The thread that the device of @blk first asked for; the main loop until then. */
static AioContext *device_context(const BlockBackend *blk)
{
    BlockChannel *c;

    list_for_each(c, &blk->channels, link) {
        if (c != blk->main_channel || c->users > 1) {
            return c->ctx;
        }
    }
    return aio_context_main();
}

/*
 * Nothing here keeps a node from being served in several threads, but clients know that devices which share a node through
 * backends of their own cannot have different iothreads.
 */
static bool binding_allowed(const BlockBackend *blk, const AioContext *ctx, Error **errp)
{
    BlockBackend *other;

    if (!blk->root || !blk->dev || ctx == aio_context_main() || device_context(blk) != aio_context_main()) {
        return true;
    }
    list_for_each(other, &blk_all, all) {
        if (other != blk && other->dev && other->root && device_context(other) != ctx &&
            subtrees_meet(blk->root->node, other->root->node)) {
            error_setg(errp, "Cannot change iothread of active block backend");
            return false;
        }
    }
    return true;
}

/* Home: do as the main thread asks, and answer which of its requests that was. */
static void apply_quiesce(void *opaque)
{
    BlockChannel *c = opaque;
    unsigned int asked = atomic_load(&c->quiesce_asked);
    bool want = asked & 1;

    if (want != c->quiesced) {
        c->quiesced = want;
        if (want && c->blk->ops && c->blk->ops->channel_quiesce) {
            c->blk->ops->channel_quiesce(c->blk->dev, c);
        } else if (!want && c->blk->ops && c->blk->ops->channel_resume) {
            c->blk->ops->channel_resume(c->blk->dev, c);
        }
    }
    atomic_store(&c->quiesce_answered, asked);
    aio_wait_kick();
}

BlockChannel *blk_channel_get(BlockBackend *blk, AioContext *ctx, Error **errp)
{
    BlockChannel *c;

    list_for_each(c, &blk->channels, link) {
        if (c->ctx == ctx) {
            c->users++;
            return c;
        }
    }
    if (!binding_allowed(blk, ctx, errp)) {
        return NULL;
    }
    if (blk->root && block_attach_context(blk->root->node, ctx, errp) < 0) {
        return NULL;
    }
    c = g_new0(BlockChannel, 1);
    c->blk = blk;
    c->ctx = aio_context_ref(ctx);
    c->users = 1;
    c->node = blk->root ? blk->root->node : NULL;
    c->fua = !blk->write_cache;
    c->quiesced = blk->quiesce > 0;
    c->quiesce_asked = c->quiesce_answered = c->quiesced;
    c->quiesce_bh = aio_bh_new(ctx, apply_quiesce, c);
    list_append(&blk->channels, &c->link);
    return c;
}

/* Add what @c counted to @r. */
static void collect(BlockChannel *c, BlockAccounting *r)
{
    for (int op = 0; op < BLOCK_OPS; op++) {
        r->bytes[op] += aio_stat_get(&c->bytes[op]);
        r->ops[op] += aio_stat_get(&c->ops[op]);
        r->failed[op] += aio_stat_get(&c->failed[op]);
        r->invalid[op] += aio_stat_get(&c->invalid[op]);
        r->merged[op] += aio_stat_get(&c->merged[op]);
        r->total_ns[op] += aio_stat_get(&c->total_ns[op]);
    }
    r->wr_highest_offset = MAX(r->wr_highest_offset, aio_stat_get(&c->wr_highest_offset));
    r->last_access_ns = MAX(r->last_access_ns, (int64_t)aio_stat_get(&c->last_access_ns));
}

static void delete_bh(void *opaque)
{
    BlockChannel *c = opaque;

    aio_bh_cancel(c->quiesce_bh);
    aio_bh_delete(c->quiesce_bh);
}

void blk_channel_put(BlockChannel *c)
{
    if (!c || --c->users > 0) {
        return;
    }
    g_assert(blk_channel_in_flight(c) == 0);
    list_remove(&c->link);
    if (c->node) {
        block_detach_context(c->node, c->ctx);
    }
    /* In the home, so that it cannot be running there. */
    aio_run_in_home(c->ctx, delete_bh, c);
    collect(c, &c->blk->retired);
    aio_context_unref(c->ctx);
    g_free(c);
}

AioContext *blk_channel_context(const BlockChannel *c)
{
    return c->ctx;
}

void blk_channels_update(BlockBackend *blk)
{
    BlockChannel *c;

    list_for_each(c, &blk->channels, link) {
        c->node = blk->root ? blk->root->node : NULL;
    }
}

/* --- I/O; home --- */

static inline void account(BlockChannel *c, const BlockRequest *req)
{
    uint8_t op = req->orig_op;
    int64_t now = aio_pass_ns(c->ctx);

    if (G_LIKELY(req->ret >= 0)) {
        aio_stat_add(&c->ops[op], 1);
        aio_stat_add(&c->bytes[op], req->bytes);
        if (op != BLOCK_READ && op != BLOCK_FLUSH && req->orig_offset + req->bytes > aio_stat_get(&c->wr_highest_offset)) {
            atomic_store_explicit(&c->wr_highest_offset, req->orig_offset + req->bytes, memory_order_relaxed);
        }
    } else {
        aio_stat_add(&c->failed[op], 1);
        if (!c->blk->account_failed) {
            return;
        }
    }
    aio_stat_add(&c->total_ns[op], (uint64_t)(now - req->start_ns));
    atomic_store_explicit(&c->last_access_ns, (uint64_t)now, memory_order_relaxed);
}

static inline void restore(BlockRequest *req)
{
    req->op = req->orig_op;
    req->flags = req->orig_flags;
    req->offset = req->orig_offset;
}

/* Last access to the channel for a request that is over: the main thread may be waiting to free it. */
static inline void leave(BlockChannel *c)
{
    uint64_t left = aio_stat_get(&c->in_flight) - 1;

    if (G_UNLIKELY(left == 0 && c->quiesced)) {
        atomic_store_explicit(&c->in_flight, 0, memory_order_release);
        aio_wait_kick();
        return;
    }
    atomic_store_explicit(&c->in_flight, left, memory_order_release);
}

static void channel_finish(BlockRequest *req)
{
    BlockChannel *c = req->channel;

    account(c, req);
    restore(req);
    req->done(req);
    leave(c);
}

BlockResult blk_submit(BlockChannel *c, BlockRequest *req)
{
    req->channel = c;
    req->finish = channel_finish;
    req->tracked_by = NULL;
    req->orig_op = req->op;
    req->orig_flags = req->flags;
    req->orig_offset = req->offset;
    req->start_ns = aio_pass_ns(c->ctx);
    if (G_UNLIKELY(!c->node)) {
        req->ret = -ENOMEDIUM;
        account(c, req);
        return BLOCK_DONE;
    }
    if (G_UNLIKELY(atomic_load_explicit(&c->fua, memory_order_relaxed)) &&
        (req->op == BLOCK_WRITE || req->op == BLOCK_WRITE_ZEROES)) {
        req->flags |= BLOCK_F_FUA;
    }
    aio_stat_add(&c->in_flight, 1);
    if (block_submit(c->node, req) == BLOCK_DONE) {
        account(c, req);
        restore(req);
        leave(c);
        return BLOCK_DONE;
    }
    return BLOCK_QUEUED;
}

unsigned int blk_channel_in_flight(const BlockChannel *c)
{
    return (unsigned int)atomic_load_explicit((AioCounter *)&c->in_flight, memory_order_acquire);
}

bool blk_channel_quiesced(const BlockChannel *c)
{
    return c->quiesced;
}

void blk_account_invalid(BlockChannel *c, BlockOp op)
{
    aio_stat_add(&c->invalid[op], 1);
    if (!c->blk->account_invalid) {
        return;
    }
    atomic_store_explicit(&c->last_access_ns, (uint64_t)aio_pass_ns(c->ctx), memory_order_relaxed);
}

void blk_account_merged(BlockChannel *c, BlockOp op, unsigned int n, int ret)
{
    aio_stat_add(&c->merged[op], n);
    aio_stat_add(ret < 0 ? &c->failed[op] : &c->ops[op], n);
}

/* --- Coming to rest; main thread --- */

void blk_channels_quiesce(BlockBackend *blk, bool on)
{
    BlockChannel *c;

    list_for_each(c, &blk->channels, link) {
        if ((c->quiesce_asked & 1) == (unsigned int)on) {
            continue;
        }
        atomic_fetch_add(&c->quiesce_asked, 1);
        if (aio_context_in_home(c->ctx)) {
            apply_quiesce(c);
        } else {
            aio_bh_schedule(c->quiesce_bh);
        }
    }
}

bool blk_channels_busy(const BlockBackend *blk)
{
    BlockChannel *c;

    list_for_each(c, &blk->channels, link) {
        if (atomic_load(&c->quiesce_answered) != atomic_load(&c->quiesce_asked) || blk_channel_in_flight(c) > 0) {
            return true;
        }
    }
    return false;
}

void blk_stats(const BlockBackend *blk, BlockAccounting *out)
{
    BlockChannel *c;

    *out = blk->retired;
    list_for_each(c, &blk->channels, link) {
        collect(c, out);
    }
}
