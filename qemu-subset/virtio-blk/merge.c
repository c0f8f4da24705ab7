/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Request merging: neighbours within one batch travel through the block layer as one. Runs in the home of the queue. */
#include "virtio-blk/internal.h"

#define FILTER_BITS 1024
#define MAX_BYTES ((uint64_t)VIRTIO_BLK_MAX_SECTORS << 9)

static unsigned int hash(uint64_t offset)
{
    return (unsigned int)((offset >> 9) * 0x9e3779b97f4a7c15ull >> 54) % FILTER_BITS;
}

static bool begins_at(const VirtIOBlkPending *p, uint64_t offset)
{
    for (unsigned int i = 0; i < p->n; i++) {
        if (p->reqs[i]->blk.offset == offset) {
            return true;
        }
    }
    return false;
}

/*
 * Are there neighbours at all? A filter answers for most requests of random access, which so cost a few instructions and no
 * sorting.
 */
static bool have_neighbours(const VirtIOBlkPending *p)
{
    uint64_t starts[FILTER_BITS / 64] = {0};

    for (unsigned int i = 0; i < p->n; i++) {
        unsigned int h = hash(p->reqs[i]->blk.offset);

        starts[h / 64] |= 1ull << (h % 64);
    }
    for (unsigned int i = 0; i < p->n; i++) {
        uint64_t end = p->reqs[i]->blk.offset + p->reqs[i]->blk.bytes;
        unsigned int h = hash(end);

        if ((starts[h / 64] >> (h % 64) & 1) && begins_at(p, end)) {
            return true;
        }
    }
    return false;
}

/* Few elements, often in order already. */
static void sort_by_offset(VirtIOBlkPending *p)
{
    for (unsigned int i = 1; i < p->n; i++) {
        VirtIOBlkReq *req = p->reqs[i];
        unsigned int k = i;

        for (; k > 0 && p->reqs[k - 1]->blk.offset > req->blk.offset; k--) {
            p->reqs[k] = p->reqs[k - 1];
        }
        p->reqs[k] = req;
    }
}

/* How many of the sorted requests from @reqs[0] on, of @n, can be one. */
static unsigned int run_length(VirtIOBlkReq *const *reqs, unsigned int n)
{
    uint64_t bytes = reqs[0]->blk.bytes;
    unsigned int niov = reqs[0]->blk.niov, i;

    for (i = 1; i < n; i++) {
        const BlockRequest *blk = &reqs[i]->blk;

        bytes += blk->bytes;
        niov += blk->niov;
        if (blk->offset != reqs[i - 1]->blk.offset + reqs[i - 1]->blk.bytes || bytes > MAX_BYTES ||
            niov > VIRTQUEUE_MAX_SIZE) {
            break;
        }
    }
    return i;
}

/* Make the first of @n neighbours ask for all. False if there is no memory to describe that. */
static bool join(VirtIOBlkQueue *q, VirtIOBlkReq **reqs, unsigned int n)
{
    VirtIOBlkReq *first = reqs[0];
    struct iovec *iov = virtqueue_element_spare(q->vq, &first->elem);
    unsigned int niov = 0;
    uint64_t bytes = 0;

    if (!iov) {
        return false;
    }
    for (unsigned int i = 0; i < n; i++) {
        const BlockRequest *blk = &reqs[i]->blk;

        memcpy(iov + niov, blk->iov, blk->niov * sizeof(*iov));
        niov += blk->niov;
        bytes += blk->bytes;
        reqs[i]->merged = i + 1 < n ? reqs[i + 1] : NULL;
    }
    first->own_iov = first->blk.iov;
    first->own_niov = first->blk.niov;
    first->own_bytes = first->blk.bytes;
    first->blk.iov = iov;
    first->blk.niov = niov;
    first->blk.bytes = bytes;
    return true;
}

void virtio_blk_unmerge(VirtIOBlkReq *first, int ret)
{
    unsigned int others = 0;

    for (VirtIOBlkReq *req = first->merged; req; req = req->merged) {
        others++;
    }
    first->blk.iov = first->own_iov;
    first->blk.niov = first->own_niov;
    first->blk.bytes = first->own_bytes;
    blk_account_merged(first->q->channel, first->blk.op, others, ret);
}

void virtio_blk_merge_flush(VirtIOBlkQueue *q)
{
    VirtIOBlkPending *p = &q->pending;
    bool touch = p->n > 1 && have_neighbours(p);

    if (G_UNLIKELY(touch)) {
        sort_by_offset(p);
    }
    for (unsigned int i = 0, len; i < p->n; i += len) {
        len = touch ? run_length(p->reqs + i, p->n - i) : 1;
        if (len > 1 && !join(q, p->reqs + i, len)) {
            len = 1;
        }
        virtio_blk_submit(p->reqs[i]);
    }
    p->n = 0;
}

void virtio_blk_merge_add(VirtIOBlkQueue *q, VirtIOBlkReq *req)
{
    VirtIOBlkPending *p = &q->pending;

    if (p->n && (p->n == VIRTIO_BLK_MERGE_MAX || p->reqs[0]->blk.op != req->blk.op)) {
        virtio_blk_merge_flush(q);
    }
    p->reqs[p->n++] = req;
}
