/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the ring to the block layer: taking requests in batches and submitting them. Runs in the home of the queue. */
#include "virtio-blk/internal.h"

#include "base/iov.h"

bool virtio_blk_queue_init(VirtIOBlock *s, unsigned int index)
{
    VirtIOBlkQueue *q = &s->queues[index];

    q->dev = s;
    q->vioq = &s->vdev.queues[index];
    q->vq = q->vioq->vq;
    q->pool_size = virtqueue_max_size(q->vq) + 1;
    q->pool = g_try_new0(VirtIOBlkReq, q->pool_size);
    q->idle = g_try_new0(VirtQueueElement *, q->pool_size);
    q->idle_from = q->pool_size;
    fifo_init(&q->parked);
    fifo_init(&q->retry);
    return q->pool && q->idle;
}

void virtio_blk_queue_cleanup(VirtIOBlkQueue *q)
{
    g_free(q->pool);
    g_free(q->idle);
}

static VirtIOBlkReq *req_of(VirtQueueElement *elem)
{
    return container_of(elem, VirtIOBlkReq, elem);
}

/* Have at least @n idle requests, as far as the pool goes. Returns how many there are, at most @n. */
static unsigned int idle_requests(VirtIOBlkQueue *q, unsigned int n)
{
    unsigned int idle = q->pool_size - q->idle_from;

    while (idle < n && q->made < q->pool_size) {
        VirtIOBlkReq *req = &q->pool[q->made];

        req->q = q;
        req->blk.done = virtio_blk_done;
        virtqueue_element_init(q->vq, &req->elem, q->made);
        q->made++;
        q->idle[--q->idle_from] = &req->elem;
        idle++;
    }
    return MIN(idle, n);
}

void virtio_blk_submit(VirtIOBlkReq *req)
{
    if (blk_submit(req->q->channel, &req->blk) == BLOCK_DONE) {
        virtio_blk_complete(req, req->blk.ret);
    }
}

static void get_id(VirtIOBlkReq *req, const VirtIOBlkCommand *cmd)
{
    const char *serial = req->q->dev->serial ? req->q->dev->serial : "";
    size_t len = MIN(strlen(serial) + 1, VIRTIO_BLK_ID_BYTES);

    iov_from_buf(cmd->iov, cmd->niov, 0, serial, MIN(len, cmd->bytes));
    virtio_blk_finish(req, VIRTIO_BLK_S_OK);
}

/* What is neither read nor write. False if the device is broken now. */
static bool dispatch_other(VirtIOBlkReq *req, const VirtIOBlkCommand *cmd)
{
    VirtIOBlkQueue *q = req->q;

    /* A flush stands for the writes before it. */
    virtio_blk_merge_flush(q);
    switch (cmd->kind) {
    case VIRTIO_BLK_FLUSH:
        req->blk.op = BLOCK_FLUSH;
        break;
    case VIRTIO_BLK_DISCARD:
        req->blk.op = BLOCK_DISCARD;
        break;
    case VIRTIO_BLK_WRITE_ZEROES:
        req->blk.op = BLOCK_WRITE_ZEROES;
        req->blk.flags = cmd->may_unmap ? BLOCK_F_MAY_UNMAP : 0;
        break;
    case VIRTIO_BLK_GET_ID:
        get_id(req, cmd);
        return true;
    case VIRTIO_BLK_REJECTED:
        if (cmd->invalid) {
            blk_account_invalid(q->channel, cmd->is_write ? BLOCK_WRITE : BLOCK_READ);
        }
        virtio_blk_finish(req, cmd->result);
        return true;
    default:
        virtio_error(&q->dev->vdev, "%s", cmd->text);
        return false;
    }
    virtio_blk_submit(req);
    return true;
}

static bool dispatch(VirtIOBlkReq *req)
{
    VirtIOBlkCommand cmd;

    virtio_blk_parse(&cmd, req->elem.iov, req->elem.out_num, req->elem.in_num, &req->q->dev->limits);
    req->status = cmd.status;
    req->blk.flags = 0;
    req->blk.iov = cmd.iov;
    req->blk.niov = cmd.niov;
    req->blk.offset = cmd.offset;
    req->blk.bytes = cmd.bytes;
    if (G_UNLIKELY(cmd.kind > VIRTIO_BLK_WRITE)) {
        return dispatch_other(req, &cmd);
    }
    if (G_UNLIKELY(!cmd.bytes)) {
        virtio_blk_finish(req, VIRTIO_BLK_S_OK);
        return true;
    }
    req->blk.op = cmd.kind == VIRTIO_BLK_READ ? BLOCK_READ : BLOCK_WRITE;
    if (req->q->dev->request_merging) {
        virtio_blk_merge_add(req->q, req);
    } else {
        virtio_blk_submit(req);
    }
    return true;
}

/* One batch off the ring. Returns its size. */
static unsigned int take_batch(VirtIOBlkQueue *q, unsigned int max)
{
    VirtQueueElement *batch[VIRTIO_BLK_POP_BATCH];
    unsigned int n = idle_requests(q, MIN(max, VIRTIO_BLK_POP_BATCH));

    n = virtqueue_pop_batch(q->vq, q->idle + q->idle_from, n);
    /* A copy: requests that end at once are put back where the array is. */
    memcpy(batch, q->idle + q->idle_from, n * sizeof(batch[0]));
    q->idle_from += n;
    for (unsigned int i = 0; i < n; i++) {
        if (!dispatch(req_of(batch[i]))) {
            /* Broken: what was taken behind it is not looked at any more. The reset makes the ring forget it. */
            while (i < n) {
                q->idle[--q->idle_from] = batch[i++];
            }
            n = 0;
            break;
        }
    }
    virtio_blk_merge_flush(q);
    virtqueue_flush(q->vq);
    return n;
}

void virtio_blk_submit_retry(VirtIOBlkQueue *q)
{
    Fifo again = q->retry;
    FifoNode *node;

    if (fifo_empty(&q->retry)) {
        return;
    }
    fifo_init(&q->retry);
    while ((node = fifo_pop(&again))) {
        virtio_blk_submit(container_of(node, VirtIOBlkReq, link));
    }
}

void virtio_blk_handle_queue(VirtIODevice *vdev, unsigned int index)
{
    VirtIOBlkQueue *q = &((VirtIOBlock *)vdev)->queues[index];
    /* A bound for one call, so that a driver that never lets the ring run dry leaves time for the other queues. */
    unsigned int budget = MAX(virtqueue_size(q->vq), VIRTIO_BLK_POP_BATCH), n;
    /* While the loop polls the ring it has switched notifications off, and looks again by itself. */
    bool toggle = virtqueue_notification(q->vq);

    if (blk_channel_quiesced(q->channel)) {
        /* Started within a drained section: left in place, the handler would find the ring not empty in pass after pass. */
        virtio_queue_unwatch(vdev, index);
        return;
    }
    aio_plug(q->ctx);
    q->serving = true;
    virtio_blk_submit_retry(q);
    do {
        if (toggle) {
            virtqueue_disable_notification(q->vq);
        }
        while (budget && !virtio_is_broken(vdev) && (n = take_batch(q, budget))) {
            budget -= n;
        }
    } while (toggle && virtqueue_enable_notification(q->vq) && budget && !virtio_is_broken(vdev));
    virtqueue_flush(q->vq);
    q->serving = false;
    aio_unplug(q->ctx);
    if (!budget && !virtqueue_empty(q->vq)) {
        virtio_queue_serve_soon(vdev, index);
    }
}
