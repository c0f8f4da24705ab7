/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ring formats share: the queue's state, address translation, building elements. */
#ifndef VIRTIO_QUEUE_INTERNAL_H
#define VIRTIO_QUEUE_INTERNAL_H

#include "guest/memory.h"
#include "virtio/queue.h"
#include "virtio/ring-access.h"

#include <stdatomic.h>

#define VRING_DESC_F_NEXT 1
#define VRING_DESC_F_WRITE 2
#define VRING_DESC_F_INDIRECT 4
#define VRING_DESC_SIZE 16

#define VRING_AVAIL_F_NO_INTERRUPT 1
#define VRING_USED_F_NO_NOTIFY 1

#define VIRTQUEUE_INLINE_MAX (1u << 28)

typedef struct VirtQueueRing VirtQueueRing;

/* A buffer that was taken off a ring whose driver wants its buffers back in order. */
typedef struct VirtQueueTurn {
    uint16_t head, ring_len;
    bool filled;
    uint32_t written;
} VirtQueueTurn;

struct VirtQueue {
    /* Read with every request. */
    const VirtQueueRing *ring;
    uint8_t *desc, *avail, *used; /* host addresses; NULL while stopped */
    uint64_t ram_start, ram_size; /* the stretch of guest RAM that was translated last */
    uint8_t *ram_host;
    uint16_t num;       /* entries */
    uint16_t mask;      /* num - 1 if that is a power of two, else 0 */
    uint16_t last_avail; /* next entry to take */
    uint16_t seen_avail; /* the driver's index as read last; entries up to it may be taken without looking again */
    uint16_t used_idx;   /* as the driver sees it; packed: where the next used entry goes */
    uint16_t unflushed;
    uint16_t in_use; /* taken and not yet filled */
    uint16_t signalled_used;
    bool signalled_valid;
    bool event_idx, notify_on_empty;
    bool notification;
    /* Packed rings: wrap counters, places taken off the ring, and the entry that makes filled ones visible. */
    bool avail_wrap, used_wrap;
    uint16_t places_in_use, first_filled, first_flags;
    bool started;
    uint16_t used_flags;
    /* Hand back in the order of taking: who was taken, in a ring of VIRTQUEUE_MAX_SIZE; NULL: any order. */
    VirtQueueTurn *turns;
    uint16_t first_turn, next_turn;
    atomic_bool broken;

    /* Set-up. */
    const VirtQueueOps *ops;
    void *opaque;
    unsigned int index, max_size;
    uint64_t desc_addr, avail_addr, used_addr;
    VirtQueueTurn *turn_memory; /* made when a driver first wants order */
    uint8_t *overflow; /* made when a chain longer than the inline vector is first seen */
};

/* A ring format. */
struct VirtQueueRing {
    /* Bytes of the three areas for vq->num entries; desc, avail and used are translated afterwards. */
    void (*area_sizes)(const VirtQueue *vq, uint64_t sizes[3]);
    void (*start)(VirtQueue *vq);
    unsigned int (*pop_batch)(VirtQueue *vq, VirtQueueElement **elems, unsigned int max);
    void (*fill)(VirtQueue *vq, uint16_t head, uint16_t ring_len, uint32_t written);
    void (*flush)(VirtQueue *vq);
    bool (*empty)(const VirtQueue *vq);
    void (*disable_notification)(VirtQueue *vq);
    bool (*enable_notification)(VirtQueue *vq);
};

extern const VirtQueueRing virtqueue_split_ring, virtqueue_packed_ring;

/* Mark @vq broken and tell the device why. */
void virtqueue_break(VirtQueue *vq, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* Slow halves of what follows. */
bool virtqueue_find_ram(VirtQueue *vq, uint64_t addr);
bool virtqueue_add_segment_slow(VirtQueue *vq, VirtQueueElement *elem, uint64_t addr, uint32_t len, bool in,
                                uint32_t *unmapped);

/* The host address of @len bytes of RAM that lie in one stretch, or NULL. */
static inline uint8_t *virtqueue_translate(VirtQueue *vq, uint64_t addr, uint64_t len)
{
    uint64_t off = addr - vq->ram_start;

    if (__builtin_expect(off >= vq->ram_size, 0)) {
        if (!virtqueue_find_ram(vq, addr)) {
            return NULL;
        }
        off = addr - vq->ram_start;
    }
    return len <= vq->ram_size - off ? vq->ram_host + off : NULL;
}

static inline void virtqueue_element_begin(VirtQueueElement *elem)
{
    elem->iov = elem->small;
    elem->out_num = elem->in_num = 0;
    elem->out_bytes = elem->in_bytes = 0;
}

/*
 * Append what a descriptor describes. The order rule and the sizes that a request may have are checked here. @unmapped
 * counts the bytes of the element that have no RAM. False: the queue is broken now.
 */
static inline bool virtqueue_add_segment(VirtQueue *vq, VirtQueueElement *elem, uint64_t addr, uint32_t len, bool in,
                                         uint32_t *unmapped)
{
    unsigned int n = elem->out_num + elem->in_num;
    uint8_t *host;

    if (!in && elem->in_num) {
        virtqueue_break(vq, "Incorrect order for descriptors");
        return false;
    }
    host = virtqueue_translate(vq, addr, len);
    /* Huge segments go the slow way too, which keeps the byte counts from wrapping. */
    if (__builtin_expect(!host || len - 1 >= VIRTQUEUE_INLINE_MAX || n >= VIRTQUEUE_INLINE_IOV, 0)) {
        return virtqueue_add_segment_slow(vq, elem, addr, len, in, unmapped);
    }
    elem->iov[n].iov_base = host;
    elem->iov[n].iov_len = len;
    if (in) {
        elem->in_num++;
        elem->in_bytes += len;
    } else {
        elem->out_num++;
        elem->out_bytes += len;
    }
    return true;
}

#endif
