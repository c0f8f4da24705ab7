/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of virtio-blk. */
#ifndef VIRTIO_BLK_INTERNAL_H
#define VIRTIO_BLK_INTERNAL_H

#include "block/backend.h"
#include "object/iothread.h"
#include "virtio-blk/parse.h"
#include "virtio-blk/virtio-blk.h"
#include "virtio/virtio.h"

/* Buffers taken off the ring at once. */
#define VIRTIO_BLK_POP_BATCH 64

typedef struct VirtIOBlock VirtIOBlock;
typedef struct VirtIOBlkQueue VirtIOBlkQueue;

typedef struct VirtIOBlkReq {
    BlockRequest blk;
    VirtIOBlkQueue *q;
    uint8_t *status; /* where the result goes */
    FifoNode link;   /* parked or retried */
    struct VirtIOBlkReq *merged; /* the next of those that travel as one; NULL: none */
    /* What the first of them asks for itself, while blk describes all. */
    const struct iovec *own_iov;
    unsigned int own_niov;
    uint64_t own_bytes;
    VirtQueueElement elem;
} VirtIOBlkReq;

/* Reads or writes that wait for neighbours. */
#define VIRTIO_BLK_MERGE_MAX 32
typedef struct VirtIOBlkPending {
    VirtIOBlkReq *reqs[VIRTIO_BLK_MERGE_MAX];
    unsigned int n;
} VirtIOBlkPending;

/* Everything about a queue; the home of the queue alone touches it while the queue runs. */
struct VirtIOBlkQueue {
    VirtIOBlock *dev;
    VirtIOQueue *vioq;
    VirtQueue *vq;
    BlockChannel *channel;
    AioContext *ctx;
    /*
     * The request pool, one larger than the ring. Idle requests are idle[idle_from..pool_size); requests from made on have
     * never been used, so that a shallow queue touches little memory.
     */
    VirtIOBlkReq *pool;
    VirtQueueElement **idle;
    unsigned int pool_size, idle_from, made;
    bool serving; /* completions are flushed by the loop that takes requests */
    VirtIOBlkPending pending; /* of the batch that is being taken */
    Fifo parked;  /* failed, and the policy says to stop: wait for "cont" */
    Fifo retry;   /* parked when the machine went on: to be submitted again */
};

/* Properties, and what realize makes of them. */
struct VirtIOBlock {
    VirtIODevice vdev;
    /* Properties. */
    BlockBackend *blk;
    char *serial;
    Object *iothread; /* IOThread; a reference */
    json_t *vq_mapping; /* list as given, NULL: none */
    uint16_t num_queues, queue_size;
    uint32_t logical_block_size, physical_block_size, min_io_size, opt_io_size, discard_granularity;
    uint32_t max_discard_sectors, max_write_zeroes_sectors;
    uint32_t cyls, heads, secs, lcyls, lheads, lsecs;
    int32_t bootindex;
    bool discard, write_zeroes, config_wce, seg_max_adjust, request_merging, report_discard_granularity, share_rw;
    bool x_enable_wce;
    int write_cache, account_invalid, account_failed, backend_defaults; /* DeviceOnOffAuto */
    int rerror, werror; /* BlockdevOnError */

    bool original_wce;
    VirtIOBlkLimits limits; /* changes while the backend is drained */
    VirtIOBlkQueue *queues;
    GPtrArray *used_iothreads; /* marked in use */
};

/* submit.c; home of the queue. */
void virtio_blk_handle_queue(VirtIODevice *vdev, unsigned int index);
bool virtio_blk_queue_init(VirtIOBlock *s, unsigned int index);
void virtio_blk_queue_cleanup(VirtIOBlkQueue *q);
void virtio_blk_submit_retry(VirtIOBlkQueue *q);
void virtio_blk_submit(VirtIOBlkReq *req);

/* merge.c; home of the queue. A read or write is held back until its batch is complete or of another kind. */
void virtio_blk_merge_add(VirtIOBlkQueue *q, VirtIOBlkReq *req);
/* Submit what was held back. */
void virtio_blk_merge_flush(VirtIOBlkQueue *q);
/* Undo what was done to @first when it has ended with @ret, and account for the others. */
void virtio_blk_unmerge(VirtIOBlkReq *first, int ret);

/* complete.c; home of the queue. */
void virtio_blk_done(BlockRequest *blk);
/* The request ended with @ret (0 or -errno): policy, then status. */
void virtio_blk_complete(VirtIOBlkReq *req, int ret);
/* The one way a request leaves us: status byte, used ring, back to the pool. */
void virtio_blk_finish(VirtIOBlkReq *req, uint8_t status);
/* Quiesced, main thread: forget parked requests. */
void virtio_blk_drop_parked(VirtIOBlkQueue *q);

/* vq-mapping.c; main thread. */
bool virtio_blk_mapping_set(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp);
json_t *virtio_blk_mapping_get(Object *obj, const ObjectProperty *prop, Error **errp);
/* Decide who serves each queue and mark iothreads as in use. */
bool virtio_blk_mapping_apply(VirtIOBlock *s, Error **errp);
void virtio_blk_mapping_release(VirtIOBlock *s);

/* config.c; main thread. */
uint16_t virtio_blk_config_len(const VirtIOBlock *s);
void virtio_blk_get_config(VirtIODevice *vdev, uint8_t *config);
void virtio_blk_set_config(VirtIODevice *vdev, const uint8_t *config);
uint64_t virtio_blk_get_features(VirtIODevice *vdev, uint64_t features);
/* Checks of properties that describe the disk, with defaults filled in. */
bool virtio_blk_check_geometry(VirtIOBlock *s, Error **errp);
bool virtio_blk_check_sizes(VirtIOBlock *s, Error **errp);

/* properties.c */
extern const ObjectProperty virtio_blk_properties[];
void virtio_blk_init_properties(VirtIOBlock *s);

#endif
