/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of requests: error policy, status byte, used ring. Runs in the home of the queue. */
#include "virtio-blk/internal.h"

#include "virtio/ring-access.h"

void virtio_blk_finish(VirtIOBlkReq *req, uint8_t status)
{
    VirtIOBlkQueue *q = req->q;

    ring_store8(req->status, status);
    virtqueue_fill(q->vq, &req->elem, req->elem.in_bytes);
    q->idle[--q->idle_from] = &req->elem;
    if (!q->serving) {
        virtio_queue_flush_soon(q->vioq);
    }
}

static void fail(VirtIOBlkReq *req, int error)
{
    VirtIOBlkQueue *q = req->q;
    BlockBackend *blk = q->dev->blk;
    bool is_read = req->blk.op == BLOCK_READ;
    BlockErrorAction action = blk_error_action(blk, is_read, error);

    if (action == BLOCK_ERROR_STOP) {
        fifo_push(&q->parked, &req->link);
    } else {
        virtio_blk_finish(req, action == BLOCK_ERROR_IGNORE ? VIRTIO_BLK_S_OK : VIRTIO_BLK_S_IOERR);
    }
    blk_error_apply(blk, action, is_read, error);
}

static void complete_one(VirtIOBlkReq *req, int ret)
{
    if (G_LIKELY(ret >= 0)) {
        virtio_blk_finish(req, VIRTIO_BLK_S_OK);
    } else {
        fail(req, -ret);
    }
}

void virtio_blk_complete(VirtIOBlkReq *req, int ret)
{
    if (G_UNLIKELY(req->merged)) {
        virtio_blk_unmerge(req, ret);
        while (req->merged) {
            VirtIOBlkReq *next = req->merged;

            req->merged = NULL;
            complete_one(req, ret);
            req = next;
        }
    }
    complete_one(req, ret);
}

void virtio_blk_done(BlockRequest *blk)
{
    virtio_blk_complete(container_of(blk, VirtIOBlkReq, blk), blk->ret);
}

void virtio_blk_drop_parked(VirtIOBlkQueue *q)
{
    FifoNode *node;

    while ((node = fifo_pop(&q->parked)) || (node = fifo_pop(&q->retry))) {
        q->idle[--q->idle_from] = &container_of(node, VirtIOBlkReq, link)->elem;
    }
}
