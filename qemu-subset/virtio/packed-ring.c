/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packed rings: one ring of descriptors that driver and device hand to and fro, and an event structure of each. */
#include "virtio/queue-internal.h"

#define DESC_F_AVAIL (1u << 7)
#define DESC_F_USED (1u << 15)

/* Event structures: off_wrap u16 (position, wrap counter in the top bit), flags u16. */
#define EVENT_FLAGS 2
#define EVENT_SIZE 4
#define EVENT_ENABLE 0
#define EVENT_DISABLE 1
#define EVENT_DESC 2
#define WRAP_BIT 15

static void packed_area_sizes(const VirtQueue *vq, uint64_t sizes[3])
{
    sizes[0] = (uint64_t)VRING_DESC_SIZE * vq->num;
    sizes[1] = sizes[2] = EVENT_SIZE;
}

static inline uint8_t *place(const VirtQueue *vq, unsigned int i)
{
    return vq->desc + (size_t)VRING_DESC_SIZE * i;
}

/* A descriptor is ours to take when its AVAIL bit equals the wrap counter and its USED bit does not. */
static inline bool is_available(uint16_t flags, bool wrap)
{
    return !!(flags & DESC_F_AVAIL) == wrap && !!(flags & DESC_F_USED) != wrap;
}

static inline uint16_t load_flags(const VirtQueue *vq, unsigned int i)
{
    return ring_load16(place(vq, i) + 14);
}

static void set_device_event(VirtQueue *vq, uint16_t flags)
{
    if (flags == EVENT_DESC) {
        ring_store16(vq->used, vq->last_avail | vq->avail_wrap << WRAP_BIT);
        /* The position is in place before the driver is told to look at it. */
        atomic_thread_fence(memory_order_release);
    }
    ring_store16(vq->used + EVENT_FLAGS, flags);
}

static void packed_start(VirtQueue *vq)
{
    vq->signalled_valid = false;
    set_device_event(vq, vq->event_idx ? EVENT_DESC : EVENT_ENABLE);
}

/* One descriptor, each half read once. */
typedef struct PackedDesc {
    uint64_t addr;
    uint32_t len;
    uint16_t id, flags;
} PackedDesc;

static inline PackedDesc load_desc(const uint8_t *p)
{
    uint64_t hi = ring_load64(p + 8);

    /* Pairs with the driver's barrier before it writes the flags: the address is read after them. */
    atomic_thread_fence(memory_order_acquire);
    return (PackedDesc){ring_load64(p), (uint32_t)hi, (uint16_t)(hi >> 32), (uint16_t)(hi >> 48)};
}

static bool walk_indirect(VirtQueue *vq, VirtQueueElement *elem, const PackedDesc *d)
{
    const uint8_t *table;
    uint32_t unmapped = 0;

    if (!d->len || d->len % VRING_DESC_SIZE) {
        virtqueue_break(vq, "Invalid size for indirect buffer table");
        return false;
    }
    table = virtqueue_translate(vq, d->addr, d->len);
    if (!table) {
        virtqueue_break(vq, "Cannot map indirect buffer");
        return false;
    }
    /* Tables have no links: every entry belongs to the buffer. */
    for (unsigned int i = 0; i < d->len / VRING_DESC_SIZE; i++) {
        PackedDesc e = load_desc(table + (size_t)VRING_DESC_SIZE * i);

        if (!virtqueue_add_segment(vq, elem, e.addr, e.len, e.flags & VRING_DESC_F_WRITE, &unmapped)) {
            return false;
        }
    }
    elem->head = d->id;
    elem->ring_len = 1;
    return true;
}

/* Follow the chain whose first descriptor is @d. False: the queue is broken. */
static bool walk_chain(VirtQueue *vq, VirtQueueElement *elem, PackedDesc d)
{
    unsigned int i = vq->last_avail, count = 0;
    uint32_t unmapped = 0;

    virtqueue_element_begin(elem);
    if (d.flags & VRING_DESC_F_INDIRECT) {
        return walk_indirect(vq, elem, &d);
    }
    for (;;) {
        if (++count > vq->num) {
            virtqueue_break(vq, "Looped descriptor");
            return false;
        }
        if (!virtqueue_add_segment(vq, elem, d.addr, d.len, d.flags & VRING_DESC_F_WRITE, &unmapped)) {
            return false;
        }
        if (!(d.flags & VRING_DESC_F_NEXT)) {
            break;
        }
        i = i + 1 == vq->num ? 0 : i + 1;
        d = load_desc(place(vq, i));
    }
    /* The last one names the buffer. */
    elem->head = d.id;
    elem->ring_len = count;
    return true;
}

static unsigned int packed_pop_batch(VirtQueue *vq, VirtQueueElement **elems, unsigned int max)
{
    unsigned int n;

    for (n = 0; n < max; n++) {
        VirtQueueElement *elem = elems[n];
        PackedDesc d;

        if (!is_available(load_flags(vq, vq->last_avail), vq->avail_wrap)) {
            break;
        }
        atomic_thread_fence(memory_order_acquire);
        d = load_desc(place(vq, vq->last_avail));
        if (!walk_chain(vq, elem, d)) {
            break;
        }
        if (__builtin_expect(vq->places_in_use + elem->ring_len > vq->num, 0)) {
            virtqueue_break(vq, "Virtqueue size exceeded");
            break;
        }
        vq->places_in_use += elem->ring_len;
        vq->in_use++;
        vq->last_avail += elem->ring_len;
        if (vq->last_avail >= vq->num) {
            vq->last_avail -= vq->num;
            vq->avail_wrap = !vq->avail_wrap;
        }
        __builtin_prefetch(elem->iov[0].iov_base);
        __builtin_prefetch(elem->iov[elem->out_num + elem->in_num - 1].iov_base, 1);
    }
    return n;
}

static inline uint16_t used_flags(const VirtQueue *vq)
{
    return vq->used_wrap ? DESC_F_AVAIL | DESC_F_USED : 0;
}

static void packed_fill(VirtQueue *vq, uint16_t head, uint16_t ring_len, uint32_t written)
{
    uint8_t *p = place(vq, vq->used_idx);
    uint64_t hi = written | (uint64_t)head << 32;

    if (!vq->unflushed) {
        /* The driver looks at this one first, so its flags alone make the whole batch visible; they come last. */
        vq->first_filled = vq->used_idx;
        vq->first_flags = used_flags(vq);
        ring_store32(p + 8, written);
        ring_store16(p + 12, head);
    } else {
        ring_store64(p + 8, hi | (uint64_t)used_flags(vq) << 48);
    }
    vq->unflushed++;
    vq->in_use--;
    vq->places_in_use -= ring_len;
    vq->used_idx += ring_len;
    if (vq->used_idx >= vq->num) {
        vq->used_idx -= vq->num;
        vq->used_wrap = !vq->used_wrap;
        /* Positions on both sides of the seam do not compare: the next decision is in favour of an interrupt. */
        vq->signalled_valid = false;
    }
}

static bool wants_interrupt(VirtQueue *vq)
{
    uint16_t flags, off_wrap, off, since = vq->signalled_used;
    bool valid = vq->signalled_valid;

    /*
     * Full barrier between the store of the flags and the load of the driver's wish. Its partner is the driver's barrier
     * between storing its event structure and looking at the descriptor once more.
     */
    atomic_thread_fence(memory_order_seq_cst);
    vq->signalled_valid = true;
    vq->signalled_used = vq->used_idx;
    flags = ring_load16(vq->avail + EVENT_FLAGS);
    if (flags == EVENT_DISABLE) {
        return false;
    }
    if (flags != EVENT_DESC || !vq->event_idx || !valid) {
        return true;
    }
    /* Pairs with the driver's barrier between position and flags. */
    atomic_thread_fence(memory_order_acquire);
    off_wrap = ring_load16(vq->avail);
    off = off_wrap & ((1u << WRAP_BIT) - 1);
    if (off_wrap >> WRAP_BIT != vq->used_wrap) {
        off -= vq->num;
    }
    return (uint16_t)(vq->used_idx - off - 1) < (uint16_t)(vq->used_idx - since);
}

static void packed_flush(VirtQueue *vq)
{
    /* The entries, and the data and status bytes they stand for, are visible before the flags. */
    atomic_thread_fence(memory_order_release);
    ring_store16(place(vq, vq->first_filled) + 14, vq->first_flags);
    vq->unflushed = 0;
    if (wants_interrupt(vq)) {
        vq->ops->interrupt(vq, vq->opaque);
    }
}

static bool packed_empty(const VirtQueue *vq)
{
    return !is_available(load_flags(vq, vq->last_avail), vq->avail_wrap);
}

static void packed_disable_notification(VirtQueue *vq)
{
    set_device_event(vq, EVENT_DISABLE);
}

static bool packed_enable_notification(VirtQueue *vq)
{
    set_device_event(vq, vq->event_idx ? EVENT_DESC : EVENT_ENABLE);
    /*
     * Full barrier between our wish and the look at the descriptor; its partner lies between the driver's store of the
     * descriptor's flags and its load of our wish.
     */
    atomic_thread_fence(memory_order_seq_cst);
    return !packed_empty(vq);
}

const VirtQueueRing virtqueue_packed_ring = {
    .area_sizes = packed_area_sizes,
    .start = packed_start,
    .pop_batch = packed_pop_batch,
    .fill = packed_fill,
    .flush = packed_flush,
    .empty = packed_empty,
    .disable_notification = packed_disable_notification,
    .enable_notification = packed_enable_notification,
};
