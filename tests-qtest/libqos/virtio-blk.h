/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtio-blk driver for tests: start-up, requests in any framing. Main thread only. */
#ifndef LIBQOS_VIRTIO_BLK_H
#define LIBQOS_VIRTIO_BLK_H

#include "virtio.h"

enum {
    BLK_F_SEG_MAX = 2,
    BLK_F_GEOMETRY = 4,
    BLK_F_RO = 5,
    BLK_F_BLK_SIZE = 6,
    BLK_F_SCSI = 7,
    BLK_F_FLUSH = 9,
    BLK_F_TOPOLOGY = 10,
    BLK_F_CONFIG_WCE = 11,
    BLK_F_MQ = 12,
    BLK_F_DISCARD = 13,
    BLK_F_WRITE_ZEROES = 14,
};

enum {
    BLK_T_IN = 0,
    BLK_T_OUT = 1,
    BLK_T_SCSI = 2,
    BLK_T_FLUSH = 4,
    BLK_T_GET_ID = 8,
    BLK_T_DISCARD = 11,
    BLK_T_WRITE_ZEROES = 13,
    BLK_T_SECURE_ERASE = 14,
    BLK_S_OK = 0,
    BLK_S_IOERR = 1,
    BLK_S_UNSUPP = 2,
    BLK_S_NONE = 0xff, /* what the driver puts there beforehand */
};

typedef struct VblkOpts {
    int devfn;               /* 0: slot 4 */
    VirtioVia via;
    uint64_t without;        /* feature bits not to accept; RING_RESET and PACKED never are */
    unsigned int queues;     /* 0: one */
    uint16_t queue_size;     /* 0: what is offered; smaller only on the modern interface */
    bool msix;               /* vector 0 for configuration, n + 1 for queue n */
} VblkOpts;

typedef struct Vblk {
    QTest *t;
    VirtioPci *v;
    Vq **vq;
    unsigned int nqueues;
    uint64_t offered, features;
    uint64_t sectors;
    bool page_aligned; /* data of requests begins on a page, otherwise 16 bytes past one */
    bool indirect; /* put chains into indirect tables (needs the feature); a test may clear it */
    GHashTable *reqs; /* queue << 16 | head -> VblkReq */
} Vblk;

/* How a request is laid out in descriptors. All zero: one for the header, one for the data, one for the status. */
typedef struct VblkFraming {
    unsigned int header_parts; /* split the 16 header bytes over so many descriptors, 0: one */
    uint32_t data_seg;         /* bytes of data a descriptor, 0: all in one */
    bool join_header;          /* writes: header and first data share a descriptor */
    bool join_status;          /* reads: status shares the last data descriptor */
} VblkFraming;

typedef struct VblkReq {
    Vblk *b;
    unsigned int queue;
    uint32_t type;
    uint16_t head;
    uint64_t memory, header, data, status_addr;
    size_t data_len;
    bool done;
    uint8_t status;    /* valid once done */
    uint32_t used_len; /* valid once done */
} VblkReq;

/* Reset, negotiate, set up the queues, DRIVER_OK. Dies on a refusal. */
Vblk *vblk_new(QTest *t, const VblkOpts *opts);
/* Reset the device and free everything. */
void vblk_free(Vblk *b);
/* Free our side only: the device runs on with whatever is in flight. */
void vblk_abandon(Vblk *b);

/*
 * Add a request. @data goes to the device for writing types; reading types reserve @len bytes. It is not kicked.
 * The request is freed by vblk_finish().
 */
VblkReq *vblk_add(Vblk *b, unsigned int queue, uint32_t type, uint64_t sector, const void *data,
                  size_t len, const VblkFraming *framing);
void vblk_kick(Vblk *b, unsigned int queue);
/* Reap whatever is used on @queue; returns how many ended. */
unsigned int vblk_reap(Vblk *b, unsigned int queue);
/* Wait until @r is done. */
void vblk_wait(VblkReq *r);
/* Wait, copy the data of a reading request to @buf (may be NULL), free @r, return its status. */
uint8_t vblk_finish(VblkReq *r, void *buf);
/* As vblk_finish(), and tells the used length. */
uint8_t vblk_finish_len(VblkReq *r, void *buf, uint32_t *used_len);

/* One request, kicked and waited for; returns the status. */
uint8_t vblk_rw(Vblk *b, unsigned int queue, uint32_t type, uint64_t sector, void *data, size_t len);

#endif
