/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a request enters a node: bounds, alignment, and the choice between the straight way and the detour. */
#include "block/internal.h"

#include "base/iov.h"
#include "block/inspect.h"

static inline BlockResult over(BlockRequest *req, int ret)
{
    req->ret = ret;
    return BLOCK_DONE;
}

static inline bool in_bounds(const BlockNode *node, const BlockRequest *req)
{
    return req->offset <= node->total_bytes && req->bytes <= node->total_bytes - req->offset;
}

/* Can the driver take @req, a read or write, as it is? */
static inline bool suits(const BlockNode *node, const BlockRequest *req)
{
    const BlockLimits *l = &node->limits;

    return node->drv->submit && ((req->offset | req->bytes) & (l->request_alignment - 1)) == 0 && req->niov <= l->max_iov &&
           (!l->max_transfer || req->bytes <= l->max_transfer) &&
           (l->required_mem_alignment <= 1 || iov_aligned(req->iov, req->niov, l->required_mem_alignment));
}

/* A flush, discard or write of zeroes. */
static BlockResult submit_other(BlockNode *node, BlockRequest *req)
{
    if (req->op == BLOCK_FLUSH) {
        if (node->read_only) {
            return over(req, 0);
        }
        if (node->drv->forwards) {
            return node->drv->submit(node, req);
        }
        if (node->no_flush) {
            return over(req, 0);
        }
        return node->drv->submit ? node->drv->submit(node, req) : block_detour(node, req);
    }
    if (req->op != BLOCK_DISCARD && req->op != BLOCK_WRITE_ZEROES) {
        return over(req, -ENOTSUP);
    }
    if (!in_bounds(node, req)) {
        return over(req, -EIO);
    }
    if (node->read_only) {
        return over(req, -EPERM);
    }
    if (req->bytes == 0 || (req->op == BLOCK_DISCARD && !node->discard_unmap)) {
        return over(req, 0);
    }
    if (!node->discard_unmap) {
        req->flags &= (uint8_t)~BLOCK_F_MAY_UNMAP;
    }
    return node->drv->forwards ? node->drv->submit(node, req) : block_detour(node, req);
}

BlockResult block_submit(BlockNode *node, BlockRequest *req)
{
    if (G_UNLIKELY(req->op > BLOCK_WRITE)) {
        return submit_other(node, req);
    }
    if (G_UNLIKELY(!in_bounds(node, req))) {
        return over(req, -EIO);
    }
    if (req->op == BLOCK_WRITE) {
        if (G_UNLIKELY(node->read_only)) {
            return over(req, -EPERM);
        }
        if (G_UNLIKELY(node->detect_zeroes || node->probed)) {
            int ret = block_inspect_write(node, req);

            if (ret < 0) {
                return over(req, ret);
            }
            if (req->op != BLOCK_WRITE) {
                return submit_other(node, req);
            }
        }
    }
    if (node->drv->forwards) {
        return node->drv->submit(node, req);
    }
    if (G_UNLIKELY(req->bytes == 0)) {
        return over(req, 0);
    }
    if (G_UNLIKELY(!suits(node, req))) {
        return block_detour(node, req);
    }
    if (req->op == BLOCK_WRITE) {
        if (node->no_flush) {
            req->flags &= (uint8_t)~BLOCK_F_FUA;
        }
        if (node->limits.request_alignment > 1) {
            BlockResult result;

            if (G_UNLIKELY(block_serialising(node))) {
                return block_detour(node, req);
            }
            block_track(node, req);
            result = node->drv->submit(node, req);
            if (result == BLOCK_DONE) {
                block_untrack(req);
            }
            return result;
        }
    }
    return node->drv->submit(node, req);
}

/* --- Requests that a caller waits for --- */

typedef struct WaitedRequest {
    BlockRequest req;
    Coroutine *co; /* NULL: the caller polls */
    bool over;
} WaitedRequest;

static void waited_finish(BlockRequest *req)
{
    WaitedRequest *w = container_of(req, WaitedRequest, req);

    w->over = true;
    if (w->co) {
        aio_co_wake(w->co);
    }
}

int block_rw(BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov, unsigned int niov,
             unsigned int flags)
{
    AioContext *ctx = aio_context_current();
    WaitedRequest w = {
        .req = { .op = op, .flags = (uint8_t)flags, .niov = niov, .iov = iov, .offset = offset, .bytes = bytes,
                 .finish = waited_finish },
        .co = coroutine_self(),
    };

    if (!block_node_has_context(node, ctx)) {
        int ret;

        g_assert(ctx == aio_context_main());
        ret = block_attach_context(node, ctx, NULL);
        if (ret < 0) {
            return ret;
        }
    }
    if (block_submit(node, &w.req) == BLOCK_DONE) {
        return w.req.ret;
    }
    while (!w.over) {
        if (w.co) {
            coroutine_yield();
        } else {
            aio_poll(ctx, true);
        }
    }
    return w.req.ret;
}
