/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Split rings: descriptor table, available ring, used ring. */
#include "virtio/queue-internal.h"

/* Areas: flags u16, idx u16, ring[num], event u16. Entries of the available ring are u16, of the used ring two u32. */
#define RING_HEADER 4

static inline unsigned int slot_of(const VirtQueue *vq, uint16_t idx)
{
    return vq->mask ? idx & vq->mask : idx % vq->num;
}

static inline uint16_t avail_flags(const VirtQueue *vq)
{
    return ring_load16(vq->avail);
}

static inline uint16_t avail_idx(const VirtQueue *vq)
{
    return ring_load16(vq->avail + 2);
}

static inline uint16_t used_event(const VirtQueue *vq)
{
    return ring_load16(vq->avail + RING_HEADER + 2 * vq->num);
}

static inline void set_avail_event(VirtQueue *vq, uint16_t idx)
{
    ring_store16(vq->used + RING_HEADER + 8 * vq->num, idx);
}

static void split_area_sizes(const VirtQueue *vq, uint64_t sizes[3])
{
    sizes[0] = (uint64_t)VRING_DESC_SIZE * vq->num;
    sizes[1] = RING_HEADER + 2 * vq->num + (vq->event_idx ? 2 : 0);
    sizes[2] = RING_HEADER + 8 * vq->num + (vq->event_idx ? 2 : 0);
}

static void split_start(VirtQueue *vq)
{
    vq->seen_avail = vq->last_avail;
    vq->signalled_valid = false;
    vq->used_flags = 0;
    ring_store16(vq->used, 0);
    if (vq->event_idx) {
        set_avail_event(vq, vq->last_avail);
    }
}

/* One descriptor, each half read once. */
typedef struct Desc {
    uint64_t addr;
    uint32_t len;
    uint16_t flags, next;
} Desc;

static inline Desc load_desc(const uint8_t *p)
{
    uint64_t hi = ring_load64(p + 8);

    return (Desc){ring_load64(p), (uint32_t)hi, (uint16_t)(hi >> 32), (uint16_t)(hi >> 48)};
}

/* Replace @d and the table by the indirect table that @d describes. */
static bool enter_indirect(VirtQueue *vq, Desc *d, const uint8_t **table, unsigned int *entries)
{
    if (!d->len || d->len % VRING_DESC_SIZE) {
        virtqueue_break(vq, "Invalid size for indirect buffer table");
        return false;
    }
    *table = virtqueue_translate(vq, d->addr, d->len);
    if (!*table) {
        virtqueue_break(vq, "Cannot map indirect buffer");
        return false;
    }
    *entries = d->len / VRING_DESC_SIZE;
    *d = load_desc(*table);
    return true;
}

/* Follow the chain at elem->head. False: the queue is broken. */
static bool walk_chain(VirtQueue *vq, VirtQueueElement *elem)
{
    const uint8_t *table = vq->desc;
    unsigned int entries = vq->num, count = 0;
    uint32_t unmapped = 0;
    Desc d = load_desc(table + (size_t)VRING_DESC_SIZE * elem->head);

    virtqueue_element_begin(elem);
    if ((d.flags & VRING_DESC_F_INDIRECT) && !enter_indirect(vq, &d, &table, &entries)) {
        return false;
    }
    for (;;) {
        if (!virtqueue_add_segment(vq, elem, d.addr, d.len, d.flags & VRING_DESC_F_WRITE, &unmapped)) {
            return false;
        }
        /* More steps than the table has entries: some entry was visited twice. */
        if (++count > entries) {
            virtqueue_break(vq, "Looped descriptor");
            return false;
        }
        if (!(d.flags & VRING_DESC_F_NEXT)) {
            return true;
        }
        if (d.next >= entries) {
            virtqueue_break(vq, "Desc next is %u", d.next);
            return false;
        }
        d = load_desc(table + (size_t)VRING_DESC_SIZE * d.next);
    }
}

/* How many entries the driver offers; looks at its index only if all that were seen have been taken. */
static inline unsigned int available(VirtQueue *vq)
{
    uint16_t n = vq->seen_avail - vq->last_avail;

    if (!n) {
        vq->seen_avail = avail_idx(vq);
        n = vq->seen_avail - vq->last_avail;
        if (__builtin_expect(n > vq->num, 0)) {
            virtqueue_break(vq, "Guest moved used index from %u to %u", vq->last_avail, vq->seen_avail);
            return 0;
        }
        /* Pairs with the driver's write barrier between ring entries and index: entries are read after the index. */
        atomic_thread_fence(memory_order_acquire);
    }
    return n;
}

static unsigned int split_pop_batch(VirtQueue *vq, VirtQueueElement **elems, unsigned int max)
{
    unsigned int n = available(vq), i;

    if (n > max) {
        n = max;
    }
    /* The heads first, so that the cache misses of the descriptors overlap. */
    for (i = 0; i < n; i++) {
        uint16_t head =
            ring_load16(vq->avail + RING_HEADER + 2 * slot_of(vq, (uint16_t)(vq->last_avail + i)));

        elems[i]->head = head;
        if (head < vq->num) {
            __builtin_prefetch(vq->desc + (size_t)VRING_DESC_SIZE * head);
        }
    }
    for (i = 0; i < n; i++) {
        VirtQueueElement *elem = elems[i];

        if (__builtin_expect(vq->in_use >= vq->num, 0)) {
            virtqueue_break(vq, "Virtqueue size exceeded");
            break;
        }
        if (__builtin_expect(elem->head >= vq->num, 0)) {
            virtqueue_break(vq, "Guest says index %u is available", elem->head);
            break;
        }
        if (!walk_chain(vq, elem)) {
            break;
        }
        vq->in_use++;
        vq->last_avail++;
        /* The device will look at the first segment and write the last one. */
        __builtin_prefetch(elem->iov[0].iov_base);
        __builtin_prefetch(elem->iov[elem->out_num + elem->in_num - 1].iov_base, 1);
    }
    return i;
}

static void split_fill(VirtQueue *vq, uint16_t head, uint16_t ring_len, uint32_t written)
{
    unsigned int slot = slot_of(vq, (uint16_t)(vq->used_idx + vq->unflushed));

    ring_store64(vq->used + RING_HEADER + (size_t)8 * slot, head | (uint64_t)written << 32);
    vq->unflushed++;
    vq->in_use--;
}

/* Does the driver want an interrupt for the entries since the last one? */
static bool wants_interrupt(VirtQueue *vq)
{
    uint16_t now = vq->used_idx;
    bool valid = vq->signalled_valid;
    uint16_t since = vq->signalled_used;

    /*
     * Full barrier between the store of our index and the load of the driver's wish. Its partner is the driver's barrier
     * between storing used_event (or the flag) and looking at our index once more: one of the two sees the other.
     */
    atomic_thread_fence(memory_order_seq_cst);
    if (vq->notify_on_empty && !vq->in_use && avail_idx(vq) == vq->last_avail) {
        return true;
    }
    if (!vq->event_idx) {
        return !(avail_flags(vq) & VRING_AVAIL_F_NO_INTERRUPT);
    }
    vq->signalled_valid = true;
    vq->signalled_used = now;
    if (!valid) {
        return true;
    }
    /* True if used_event lies in [since, now), modulo 65536. */
    return (uint16_t)(now - used_event(vq) - 1) < (uint16_t)(now - since);
}

static void split_flush(VirtQueue *vq)
{
    if (!vq->unflushed) {
        return;
    }
    /* The entries, and the data and status bytes they stand for, are visible before the index. */
    atomic_thread_fence(memory_order_release);
    vq->used_idx += vq->unflushed;
    /* A wrap of the index past the last interrupt makes the comparison with it meaningless. */
    if ((uint16_t)(vq->used_idx - vq->signalled_used) < vq->unflushed) {
        vq->signalled_valid = false;
    }
    vq->unflushed = 0;
    ring_store16(vq->used + 2, vq->used_idx);
    if (wants_interrupt(vq)) {
        vq->ops->interrupt(vq, vq->opaque);
    }
}

static bool split_empty(const VirtQueue *vq)
{
    return vq->seen_avail == vq->last_avail && avail_idx(vq) == vq->last_avail;
}

static void split_disable_notification(VirtQueue *vq)
{
    /* With event index the threshold stays where it is, behind us: the driver passes it once in 65536 buffers. */
    if (!vq->event_idx) {
        vq->used_flags |= VRING_USED_F_NO_NOTIFY;
        ring_store16(vq->used, vq->used_flags);
    }
}

static bool split_enable_notification(VirtQueue *vq)
{
    if (vq->event_idx) {
        set_avail_event(vq, vq->last_avail);
    } else {
        vq->used_flags &= ~VRING_USED_F_NO_NOTIFY;
        ring_store16(vq->used, vq->used_flags);
    }
    /*
     * Full barrier between our wish and the look at the driver's index; its partner lies between the driver's store of that
     * index and its load of our wish. Either it notifies or we see the buffer here.
     */
    atomic_thread_fence(memory_order_seq_cst);
    return !split_empty(vq);
}

const VirtQueueRing virtqueue_split_ring = {
    .area_sizes = split_area_sizes,
    .start = split_start,
    .pop_batch = split_pop_batch,
    .fill = split_fill,
    .flush = split_flush,
    .empty = split_empty,
    .disable_notification = split_disable_notification,
    .enable_notification = split_enable_notification,
};
