/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtqueues: one interface over the ring formats; the only place where descriptors are checked. */
#ifndef VIRTIO_QUEUE_H
#define VIRTIO_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define VIRTQUEUE_MAX_SIZE 1024
/* Segments that an element holds without touching the queue's overflow memory. */
#define VIRTQUEUE_INLINE_IOV 6
/* Bytes of a request that may lie at addresses without RAM behind them: read as zero, written to nowhere. */
#define VIRTQUEUE_MAX_UNMAPPED 4096

/*
 * A queue is set up by the main thread while it is stopped; from virtqueue_start() to virtqueue_stop() it belongs to one
 * thread, its home. Functions marked [any] may be called by others meanwhile.
 */
typedef struct VirtQueue VirtQueue;

/*
 * One buffer of the driver, taken off the ring. The memory belongs to the caller and is tied to a queue once by
 * virtqueue_element_init(). iov[0..out_num) is to be read, iov[out_num..out_num+in_num) to be written; they point into
 * guest RAM, and the caller may change them as he likes.
 */
typedef struct VirtQueueElement {
    struct iovec *iov;
    uint16_t out_num, in_num;
    uint16_t head;     /* handed back to the driver */
    uint16_t ring_len; /* places in a packed ring */
    uint32_t out_bytes, in_bytes;
    uint32_t slot; /* which part of the overflow memory is its own */
    uint16_t turn; /* place among those taken, if they are to be handed back in order */
    struct iovec small[VIRTQUEUE_INLINE_IOV];
} VirtQueueElement;

typedef struct VirtQueueOps {
    /* The driver wants an interrupt for what was just made visible. Home. */
    void (*interrupt)(VirtQueue *vq, void *opaque);
    /* The ring breaks the rules as @text says. The queue is broken from here on until it is reset. Home or main thread. */
    void (*broken)(VirtQueue *vq, void *opaque, const char *text);
} VirtQueueOps;

/* What was negotiated, as far as rings are concerned. */
typedef struct VirtQueueFeatures {
    bool event_idx, notify_on_empty, packed, in_order;
} VirtQueueFeatures;

/* --- Set-up; main thread, stopped --- */

/* @max_size: what the device offers, 0..VIRTQUEUE_MAX_SIZE; 0 makes a queue that does not exist. */
VirtQueue *virtqueue_new(unsigned int index, unsigned int max_size, const VirtQueueOps *ops, void *opaque);
void virtqueue_free(VirtQueue *vq);
/* As after power-on: offered size, no addresses, indexes at zero, not broken. */
void virtqueue_reset(VirtQueue *vq);
unsigned int virtqueue_index(const VirtQueue *vq);
unsigned int virtqueue_max_size(const VirtQueue *vq);
unsigned int virtqueue_size(const VirtQueue *vq);
/* Ignored unless 0 < @size <= the largest; a queue that does not exist stays so. */
void virtqueue_set_size(VirtQueue *vq, unsigned int size);
/* Guest physical addresses; kept as they are and looked at by virtqueue_start(). */
void virtqueue_set_rings(VirtQueue *vq, uint64_t desc, uint64_t avail, uint64_t used);
void virtqueue_rings(const VirtQueue *vq, uint64_t *desc, uint64_t *avail, uint64_t *used);
/* Places of the three areas of a split ring of @size that begins at @base, the used ring aligned to @align (legacy). */
void virtqueue_legacy_layout(uint64_t base, unsigned int size, unsigned int align, uint64_t *avail, uint64_t *used);
bool virtqueue_has_rings(const VirtQueue *vq);

/*
 * Translate the addresses and give the queue to the thread that will serve it; indexes go on where they stood. False, and
 * broken() called, if an area is not RAM throughout. Notifications from the driver are enabled.
 */
bool virtqueue_start(VirtQueue *vq, const VirtQueueFeatures *features);
void virtqueue_stop(VirtQueue *vq);
/* Where the queue stands, for introspection. Home, or stopped. */
typedef struct VirtQueueState {
    uint16_t last_avail, seen_avail, used_idx, in_use, signalled_used;
    bool signalled_valid, packed;
} VirtQueueState;
void virtqueue_state(const VirtQueue *vq, VirtQueueState *state);
/* [any] */
bool virtqueue_is_broken(const VirtQueue *vq);
/* Elements taken and not yet filled. Home. */
unsigned int virtqueue_in_use(const VirtQueue *vq);

/* Tie @elem to @vq as number @slot: 0 to the offered size (one more than can be in use), one element a number. */
void virtqueue_element_init(VirtQueue *vq, VirtQueueElement *elem, unsigned int slot);

/*
 * Memory for VIRTQUEUE_MAX_SIZE segments that belongs to @elem until it is filled, for a caller who wants to describe more
 * than the element does. NULL if the element uses it itself, or there is none.
 */
struct iovec *virtqueue_element_spare(VirtQueue *vq, const VirtQueueElement *elem);

/* --- Serving it; home --- */

/*
 * Take up to @max (at least 1) buffers in ring order into @elems. Returns their number: 0 when the ring is empty or the
 * queue broken. When the ring turns out to be broken midway, the buffers before the bad one are returned.
 */
unsigned int virtqueue_pop_batch(VirtQueue *vq, VirtQueueElement **elems, unsigned int max);
/*
 * Write the used entry of @elem, @written bytes long; invisible to the driver until virtqueue_flush(). With in_order it is held
 * back until all that were taken before it are filled.
 */
void virtqueue_fill(VirtQueue *vq, const VirtQueueElement *elem, uint32_t written);
/* Make filled entries visible, and interrupt once if the driver wants it. Harmless when there are none. */
void virtqueue_flush(VirtQueue *vq);
/* Fill and flush. @written[i] belongs to @elems[i]. */
void virtqueue_push_batch(VirtQueue *vq, VirtQueueElement *const *elems, const uint32_t *written, unsigned int n);
/* Filled entries that wait for a flush. */
unsigned int virtqueue_unflushed(const VirtQueue *vq);

/* Looks at the ring without side effect; for user-space polling. A broken queue is empty. */
bool virtqueue_empty(const VirtQueue *vq);
/* Ask the driver to leave out its notifications. */
void virtqueue_disable_notification(VirtQueue *vq);
/* Ask for them again. True if buffers came in meanwhile: the driver will not notify about those. */
bool virtqueue_enable_notification(VirtQueue *vq);
bool virtqueue_notification(const VirtQueue *vq);

#endif
