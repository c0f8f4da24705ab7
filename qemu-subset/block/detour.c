/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests that need more than handing on, each in a coroutine: misaligned, too large, or for a driver that wants one. */
#include "block/internal.h"

#include "base/iov.h"
#include "loop/coroutine.h"

#include <string.h>

#define MAX_BOUNCE_BYTES (1u << 20)

/* --- One request that suits the driver --- */

typedef struct LeafRequest {
    BlockRequest req;
    Coroutine *co;
    bool over;
} LeafRequest;

static void leaf_finish(BlockRequest *req)
{
    LeafRequest *leaf = container_of(req, LeafRequest, req);

    leaf->over = true;
    aio_co_wake(leaf->co);
}

static int coroutine_fn leaf_submit(BlockNode *node, BlockRequest *proto, bool serial_held)
{
    LeafRequest leaf = { .req = *proto, .co = coroutine_self() };
    bool is_write = proto->op != BLOCK_READ && proto->op != BLOCK_FLUSH;

    leaf.req.finish = leaf_finish;
    if (is_write && !serial_held && node->limits.request_alignment > 1) {
        if (block_serialising(node)) {
            block_serial_wait(node, leaf.req.offset, leaf.req.bytes);
        }
        block_track(node, &leaf.req);
    }
    if (node->drv->submit(node, &leaf.req) == BLOCK_DONE) {
        if (leaf.req.tracked_by) {
            block_untrack(&leaf.req);
        }
        return leaf.req.ret;
    }
    while (!leaf.over) {
        coroutine_yield();
    }
    return leaf.req.ret;
}

static int coroutine_fn leaf_co(BlockNode *node, const BlockRequest *r)
{
    const BlockDriver *drv = node->drv;

    switch (r->op) {
    case BLOCK_READ:
        return drv->co_preadv ? drv->co_preadv(node, r->offset, r->bytes, r->iov, r->niov) : -ENOTSUP;
    case BLOCK_WRITE:
        return drv->co_pwritev ? drv->co_pwritev(node, r->offset, r->bytes, r->iov, r->niov, r->flags) : -ENOTSUP;
    case BLOCK_WRITE_ZEROES:
        return drv->co_pwrite_zeroes ? drv->co_pwrite_zeroes(node, r->offset, r->bytes, r->flags) : -ENOTSUP;
    case BLOCK_DISCARD:
        return drv->co_pdiscard ? drv->co_pdiscard(node, r->offset, r->bytes) : -ENOTSUP;
    default:
        return drv->co_flush ? drv->co_flush(node) : 0;
    }
}

static int coroutine_fn leaf(BlockNode *node, BlockOp op, unsigned int flags, uint64_t offset, uint64_t bytes,
                             const struct iovec *iov, unsigned int niov, bool serial_held)
{
    BlockRequest r = {
        .op = op, .flags = (uint8_t)flags, .offset = offset, .bytes = bytes, .iov = iov, .niov = niov,
    };

    if (node->no_flush) {
        r.flags &= (uint8_t)~BLOCK_F_FUA;
    }
    return node->drv->submit ? leaf_submit(node, &r, serial_held) : leaf_co(node, &r);
}

/* --- Reads and writes --- */

static uint64_t align_down(uint64_t value, uint64_t align)
{
    return value & ~(align - 1);
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return align_down(value + align - 1, align);
}

/* The largest transfer that is allowed at once, aligned. */
static uint64_t max_transfer(const BlockNode *node, uint64_t bound)
{
    uint64_t max = node->limits.max_transfer ? MIN(node->limits.max_transfer, bound) : bound;

    return MAX(align_down(max, node->limits.request_alignment), node->limits.request_alignment);
}

static int coroutine_fn read_block(BlockNode *node, uint64_t offset, void *buf, uint64_t bytes)
{
    struct iovec v = { buf, bytes };

    return leaf(node, BLOCK_READ, 0, offset, bytes, &v, 1, true);
}

/* Read [offset, offset + bytes) through @buf, which holds the aligned range from @start to @end. */
static int coroutine_fn bounced_read(BlockNode *node, char *buf, uint64_t start, uint64_t end, uint64_t offset,
                                     uint64_t bytes, const struct iovec *iov, unsigned int niov, size_t iov_offset)
{
    int ret = read_block(node, start, buf, end - start);

    if (ret >= 0) {
        iov_from_buf(iov, niov, iov_offset, buf + (offset - start), bytes);
    }
    return ret;
}

/* Fill in the parts of the first and last block that are not to be written. */
static int coroutine_fn read_edges(BlockNode *node, char *buf, uint64_t start, uint64_t end, uint64_t offset,
                                   uint64_t bytes)
{
    uint64_t align = node->limits.request_alignment;
    bool head = offset != start, tail = offset + bytes != end;
    int ret = 0;

    if (head || (tail && end - start == align)) {
        ret = read_block(node, start, buf, align);
        tail = tail && end - start > align;
    }
    if (ret >= 0 && tail) {
        ret = read_block(node, end - align, buf + (end - align - start), align);
    }
    return ret;
}

static int coroutine_fn bounced_write(BlockNode *node, unsigned int flags, char *buf, uint64_t start, uint64_t end,
                                      uint64_t offset, uint64_t bytes, const struct iovec *iov, unsigned int niov,
                                      size_t iov_offset)
{
    bool partial = offset != start || offset + bytes != end;
    struct iovec v = { buf, end - start };
    SerialRange range;
    int ret = 0;

    if (partial) {
        block_serial_begin(node, &range, start, end - start);
        ret = read_edges(node, buf, start, end, offset, bytes);
    }
    if (ret >= 0) {
        iov_to_buf(iov, niov, iov_offset, buf + (offset - start), bytes);
        ret = leaf(node, BLOCK_WRITE, flags, start, end - start, &v, 1, partial);
    }
    if (partial) {
        block_serial_end(node, &range);
    }
    return ret;
}

/* Through aligned memory of our own, piece by piece. */
static int coroutine_fn rw_bounced(BlockNode *node, BlockOp op, unsigned int flags, uint64_t offset, uint64_t bytes,
                                   const struct iovec *iov, unsigned int niov)
{
    uint64_t align = node->limits.request_alignment, max = max_transfer(node, MAX_BOUNCE_BYTES);
    uint64_t first = align_down(offset, align), last = align_up(offset + bytes, align);
    char *buf = block_buffer_alloc(node, MIN(last - first, max));
    size_t done = 0;
    int ret = buf ? 0 : -ENOMEM;

    while (ret >= 0 && done < bytes) {
        uint64_t pos = offset + done, start = align_down(pos, align), end = MIN(start + max, last);
        uint64_t n = MIN(end, offset + bytes) - pos;

        ret = op == BLOCK_READ ? bounced_read(node, buf, start, end, pos, n, iov, niov, done)
                               : bounced_write(node, flags, buf, start, end, pos, n, iov, niov, done);
        done += n;
    }
    free(buf);
    return MIN(ret, 0);
}

/* In place, in pieces that are not too large. */
static int coroutine_fn rw_split(BlockNode *node, BlockOp op, unsigned int flags, uint64_t offset, uint64_t bytes,
                                 const struct iovec *iov, unsigned int niov)
{
    uint64_t max = max_transfer(node, bytes);
    g_autofree struct iovec *part = g_new(struct iovec, niov);
    uint64_t done = 0;
    int ret = 0;

    while (ret >= 0 && done < bytes) {
        uint64_t n = MIN(max, bytes - done);
        int parts = iov_slice(iov, niov, done, n, part, niov);

        if (parts < 0) {
            return -EINVAL;
        }
        ret = leaf(node, op, flags, offset + done, n, part, (unsigned int)parts, false);
        done += n;
    }
    return MIN(ret, 0);
}

static int coroutine_fn co_rw(BlockNode *node, BlockOp op, unsigned int flags, uint64_t offset, uint64_t bytes,
                              const struct iovec *iov, unsigned int niov)
{
    const BlockLimits *l = &node->limits;
    bool misplaced = ((offset | bytes) & (l->request_alignment - 1)) != 0;

    if (misplaced || niov > l->max_iov ||
        (l->required_mem_alignment > 1 && !iov_aligned(iov, niov, l->required_mem_alignment))) {
        return rw_bounced(node, op, flags, offset, bytes, iov, niov);
    }
    if (l->max_transfer && bytes > l->max_transfer) {
        return rw_split(node, op, flags, offset, bytes, iov, niov);
    }
    return leaf(node, op, flags, offset, bytes, iov, niov, false);
}

/* --- Zeroes and discards --- */

static int coroutine_fn write_zero_buffer(BlockNode *node, unsigned int flags, uint64_t offset, uint64_t bytes)
{
    size_t size = (size_t)MIN(align_up(bytes, node->limits.request_alignment), max_transfer(node, MAX_BOUNCE_BYTES));
    char *buf = block_buffer_alloc(node, size);
    int ret = buf ? 0 : -ENOMEM;

    if (buf) {
        memset(buf, 0, size);
    }
    while (ret >= 0 && bytes) {
        struct iovec v = { buf, MIN(size, bytes) };

        ret = co_rw(node, BLOCK_WRITE, flags, offset, v.iov_len, &v, 1);
        offset += v.iov_len;
        bytes -= v.iov_len;
    }
    free(buf);
    return MIN(ret, 0);
}

static int coroutine_fn zero_piece(BlockNode *node, unsigned int flags, uint64_t offset, uint64_t bytes)
{
    int ret = leaf(node, BLOCK_WRITE_ZEROES, flags, offset, bytes, NULL, 0, false);

    if (ret == -ENOTSUP && !(flags & BLOCK_F_NO_FALLBACK)) {
        ret = write_zero_buffer(node, flags & BLOCK_F_FUA, offset, bytes);
    }
    return ret;
}

static int coroutine_fn co_write_zeroes(BlockNode *node, unsigned int flags, uint64_t offset, uint64_t bytes)
{
    const BlockLimits *l = &node->limits;
    uint64_t align = MAX(l->request_alignment, l->pwrite_zeroes_alignment), end = offset + bytes;
    uint64_t first = MIN(align_up(offset, align), end), last = MAX(align_down(end, align), first);
    uint64_t max = l->max_pwrite_zeroes ? MAX(align_down(l->max_pwrite_zeroes, align), align) : UINT64_MAX;
    int ret = 0;

    if (first > offset) {
        ret = write_zero_buffer(node, flags & BLOCK_F_FUA, offset, first - offset);
    }
    while (ret >= 0 && first < last) {
        uint64_t n = MIN(max, last - first);

        ret = zero_piece(node, flags, first, n);
        first += n;
    }
    if (ret >= 0 && last < end) {
        ret = write_zero_buffer(node, flags & BLOCK_F_FUA, last, end - last);
    }
    return MIN(ret, 0);
}

/* A hint: what cannot be discarded, for its place or because the driver knows no way, stays as it is. */
static int coroutine_fn co_discard(BlockNode *node, uint64_t offset, uint64_t bytes)
{
    const BlockLimits *l = &node->limits;
    uint64_t align = MAX(l->request_alignment, l->pdiscard_alignment);
    uint64_t pos = align_up(offset, align), last = align_down(offset + bytes, align);
    uint64_t max = l->max_pdiscard ? MAX(align_down(l->max_pdiscard, align), align) : UINT64_MAX;

    while (pos < last) {
        uint64_t n = MIN(max, last - pos);
        int ret = leaf(node, BLOCK_DISCARD, 0, pos, n, NULL, 0, false);

        if (ret == -ENOTSUP) {
            return 0;
        }
        if (ret < 0) {
            return ret;
        }
        pos += n;
    }
    return 0;
}

int coroutine_fn block_co_rw(BlockNode *node, BlockOp op, unsigned int flags, uint64_t offset, uint64_t bytes,
                             const struct iovec *iov, unsigned int niov)
{
    switch (op) {
    case BLOCK_WRITE_ZEROES:
        return co_write_zeroes(node, flags, offset, bytes);
    case BLOCK_DISCARD:
        return co_discard(node, offset, bytes);
    case BLOCK_FLUSH:
        return leaf(node, op, 0, 0, 0, NULL, 0, false);
    default:
        return co_rw(node, op, flags, offset, bytes, iov, niov);
    }
}

/* --- From a request to a coroutine and back --- */

typedef struct Detour {
    BlockNode *node;
    BlockRequest *req;
    bool over, submitted; /* whether the end came before block_detour() returned */
} Detour;

static void coroutine_fn detour_entry(void *opaque)
{
    Detour *d = opaque;
    BlockRequest *req = d->req;
    int ret = block_co_rw(d->node, req->op, req->flags, req->offset, req->bytes, req->iov, req->niov);

    d->over = true;
    if (!d->submitted) {
        req->ret = ret;
        return;
    }
    g_free(d);
    block_request_end(req, ret);
}

BlockResult block_detour(BlockNode *node, BlockRequest *req)
{
    Detour *d = g_new0(Detour, 1);

    d->node = node;
    d->req = req;
    coroutine_enter(coroutine_create(detour_entry, d));
    if (d->over) {
        g_free(d);
        return BLOCK_DONE;
    }
    d->submitted = true;
    return BLOCK_QUEUED;
}
