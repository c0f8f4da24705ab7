/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtqueues: life cycle, address translation and what is common to the ring formats. */
#include "virtio/queue-internal.h"

#include <stdarg.h>
#include <sys/mman.h>

/* Stands in for memory that is read where there is none. */
static const uint8_t zeroes[VIRTQUEUE_MAX_UNMAPPED];

/* Overflow memory: one iovec array a slot, then the place where writes without RAM end. */
#define OVERFLOW_STRIDE (VIRTQUEUE_MAX_SIZE * sizeof(struct iovec))

static size_t overflow_size(const VirtQueue *vq)
{
    return (vq->max_size + 1) * OVERFLOW_STRIDE + VIRTQUEUE_MAX_UNMAPPED;
}

VirtQueue *virtqueue_new(unsigned int index, unsigned int max_size, const VirtQueueOps *ops, void *opaque)
{
    VirtQueue *vq = g_new0(VirtQueue, 1);

    g_assert(max_size <= VIRTQUEUE_MAX_SIZE);
    vq->index = index;
    vq->max_size = max_size;
    vq->ops = ops;
    vq->opaque = opaque;
    virtqueue_reset(vq);
    return vq;
}

void virtqueue_free(VirtQueue *vq)
{
    if (!vq) {
        return;
    }
    if (vq->overflow) {
        munmap(vq->overflow, overflow_size(vq));
    }
    g_free(vq->turn_memory);
    g_free(vq);
}

void virtqueue_reset(VirtQueue *vq)
{
    virtqueue_stop(vq);
    virtqueue_set_size(vq, vq->max_size);
    vq->desc_addr = vq->avail_addr = vq->used_addr = 0;
    vq->last_avail = vq->seen_avail = vq->used_idx = vq->signalled_used = 0;
    vq->unflushed = vq->in_use = vq->places_in_use = 0;
    vq->first_turn = vq->next_turn = 0;
    vq->avail_wrap = vq->used_wrap = true;
    vq->signalled_valid = false;
    atomic_store(&vq->broken, false);
}

unsigned int virtqueue_index(const VirtQueue *vq)
{
    return vq->index;
}

unsigned int virtqueue_max_size(const VirtQueue *vq)
{
    return vq->max_size;
}

unsigned int virtqueue_size(const VirtQueue *vq)
{
    return vq->num;
}

void virtqueue_set_size(VirtQueue *vq, unsigned int size)
{
    if (!size || size > vq->max_size || vq->started) {
        return;
    }
    vq->num = size;
    vq->mask = size & (size - 1) ? 0 : size - 1;
}

void virtqueue_set_rings(VirtQueue *vq, uint64_t desc, uint64_t avail, uint64_t used)
{
    if (vq->max_size) {
        vq->desc_addr = desc;
        vq->avail_addr = avail;
        vq->used_addr = used;
    }
}

void virtqueue_rings(const VirtQueue *vq, uint64_t *desc, uint64_t *avail, uint64_t *used)
{
    *desc = vq->desc_addr;
    *avail = vq->avail_addr;
    *used = vq->used_addr;
}

void virtqueue_legacy_layout(uint64_t base, unsigned int size, unsigned int align, uint64_t *avail, uint64_t *used)
{
    *avail = base + (uint64_t)VRING_DESC_SIZE * size;
    /* flags, idx, ring, used_event */
    *used = (*avail + 2 * (3 + (uint64_t)size) + align - 1) & ~(uint64_t)(align - 1);
}

bool virtqueue_has_rings(const VirtQueue *vq)
{
    return vq->max_size && vq->desc_addr;
}

bool virtqueue_start(VirtQueue *vq, const VirtQueueFeatures *features)
{
    static const char *const names[3] = {"desc", "avail", "used"};
    uint64_t addrs[3] = {vq->desc_addr, vq->avail_addr, vq->used_addr};
    uint8_t **hosts[3] = {&vq->desc, &vq->avail, &vq->used};
    uint64_t sizes[3];

    g_assert(!vq->started && virtqueue_has_rings(vq));
    vq->ring = features->packed ? &virtqueue_packed_ring : &virtqueue_split_ring;
    vq->event_idx = features->event_idx;
    vq->notify_on_empty = features->notify_on_empty;
    if (features->in_order && !vq->turn_memory) {
        vq->turn_memory = g_new0(VirtQueueTurn, VIRTQUEUE_MAX_SIZE);
    }
    vq->turns = features->in_order ? vq->turn_memory : NULL;
    vq->ram_size = 0;
    vq->ring->area_sizes(vq, sizes);
    for (unsigned int i = 0; i < 3; i++) {
        *hosts[i] = guest_ram_whole(addrs[i], sizes[i]);
        if (!*hosts[i]) {
            virtqueue_break(vq, "Cannot map %s", names[i]);
            return false;
        }
    }
    vq->ring->start(vq);
    vq->notification = true;
    vq->started = true;
    return true;
}

void virtqueue_stop(VirtQueue *vq)
{
    vq->started = false;
    vq->desc = vq->avail = vq->used = NULL;
}

bool virtqueue_is_broken(const VirtQueue *vq)
{
    return atomic_load_explicit(&vq->broken, memory_order_relaxed);
}

unsigned int virtqueue_in_use(const VirtQueue *vq)
{
    return vq->in_use;
}

void virtqueue_state(const VirtQueue *vq, VirtQueueState *state)
{
    *state = (VirtQueueState){
        .last_avail = vq->last_avail,
        .seen_avail = vq->seen_avail,
        .used_idx = vq->used_idx,
        .in_use = vq->in_use,
        .signalled_used = vq->signalled_used,
        .signalled_valid = vq->signalled_valid,
        .packed = vq->ring == &virtqueue_packed_ring,
    };
}

void virtqueue_element_init(VirtQueue *vq, VirtQueueElement *elem, unsigned int slot)
{
    g_assert(slot <= vq->max_size);
    elem->slot = slot;
    virtqueue_element_begin(elem);
}

void virtqueue_break(VirtQueue *vq, const char *fmt, ...)
{
    char text[128];
    va_list ap;

    if (atomic_exchange(&vq->broken, true)) {
        return;
    }
    va_start(ap, fmt);
    g_vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    vq->ops->broken(vq, vq->opaque, text);
}

/* --- Translation --- */

bool virtqueue_find_ram(VirtQueue *vq, uint64_t addr)
{
    for (unsigned int i = 0; i < GUEST_RAM_RANGES; i++) {
        const GuestRamRange *r = &guest_ram[i];

        if (addr - r->base < r->size) {
            vq->ram_start = r->base;
            vq->ram_size = r->size;
            vq->ram_host = r->host;
            return true;
        }
    }
    return false;
}

static uint8_t *overflow_memory(VirtQueue *vq)
{
    if (!vq->overflow) {
        /* Pages come into being as chains need them. */
        void *p = mmap(NULL, overflow_size(vq), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        vq->overflow = p == MAP_FAILED ? NULL : p;
    }
    return vq->overflow;
}

static struct iovec *overflow_iov(VirtQueue *vq, const VirtQueueElement *elem)
{
    uint8_t *mem = overflow_memory(vq);

    return mem ? (struct iovec *)(void *)(mem + elem->slot * OVERFLOW_STRIDE) : NULL;
}

struct iovec *virtqueue_element_spare(VirtQueue *vq, const VirtQueueElement *elem)
{
    return elem->iov == elem->small ? overflow_iov(vq, elem) : NULL;
}

/* Room for one more segment. */
static bool make_room(VirtQueue *vq, VirtQueueElement *elem, unsigned int n)
{
    if (n < VIRTQUEUE_INLINE_IOV) {
        return true;
    }
    if (n >= VIRTQUEUE_MAX_SIZE) {
        return false;
    }
    if (elem->iov == elem->small) {
        struct iovec *iov = overflow_iov(vq, elem);

        if (!iov) {
            return false;
        }
        elem->iov = iov;
        memcpy(iov, elem->small, n * sizeof(struct iovec));
    }
    return true;
}

/* A stretch of @len bytes without RAM. NULL if the element has too many of them. */
static uint8_t *unmapped_memory(VirtQueue *vq, uint64_t len, bool in, uint32_t *unmapped)
{
    uint8_t *mem;

    if (len > VIRTQUEUE_MAX_UNMAPPED - *unmapped) {
        return NULL;
    }
    *unmapped += len;
    if (!in) {
        return (uint8_t *)zeroes; /* out segments are never written */
    }
    mem = overflow_memory(vq);
    return mem ? mem + (vq->max_size + 1) * OVERFLOW_STRIDE : NULL;
}

bool virtqueue_add_segment_slow(VirtQueue *vq, VirtQueueElement *elem, uint64_t addr, uint32_t len, bool in,
                                uint32_t *unmapped)
{
    uint64_t left = len;

    if (!len) {
        virtqueue_break(vq, "virtio: zero sized buffers are not allowed");
        return false;
    }
    if (len > UINT32_MAX - (in ? elem->in_bytes : elem->out_bytes)) {
        virtqueue_break(vq, "virtio: bogus descriptor or out of resources");
        return false;
    }
    while (left) {
        unsigned int n = elem->out_num + elem->in_num;
        uint64_t piece;
        uint8_t *host;

        if (!make_room(vq, elem, n)) {
            virtqueue_break(vq, "virtio: too many %s descriptors in indirect table", in ? "write" : "read");
            return false;
        }
        host = guest_ram_ptr(addr, left, &piece);
        if (!host) {
            host = unmapped_memory(vq, piece, in, unmapped);
        }
        if (!host) {
            virtqueue_break(vq, "virtio: bogus descriptor or out of resources");
            return false;
        }
        elem->iov[n] = (struct iovec){host, piece};
        *(in ? &elem->in_num : &elem->out_num) += 1;
        addr += piece;
        left -= piece;
    }
    *(in ? &elem->in_bytes : &elem->out_bytes) += len;
    return true;
}

/* --- Serving --- */

static VirtQueueTurn *turn(VirtQueue *vq, uint16_t i)
{
    return &vq->turns[i % VIRTQUEUE_MAX_SIZE];
}

static void take_turns(VirtQueue *vq, VirtQueueElement **elems, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        elems[i]->turn = vq->next_turn++;
        *turn(vq, elems[i]->turn) = (VirtQueueTurn){.head = elems[i]->head, .ring_len = elems[i]->ring_len};
    }
}

/* Fill @elem, and those behind it that waited for it alone. */
static void fill_in_order(VirtQueue *vq, const VirtQueueElement *elem, uint32_t written)
{
    VirtQueueTurn *t = turn(vq, elem->turn);

    t->filled = true;
    t->written = written;
    while (vq->first_turn != vq->next_turn && (t = turn(vq, vq->first_turn))->filled) {
        vq->ring->fill(vq, t->head, t->ring_len, t->written);
        vq->first_turn++;
    }
}

unsigned int virtqueue_pop_batch(VirtQueue *vq, VirtQueueElement **elems, unsigned int max)
{
    unsigned int n;

    if (virtqueue_is_broken(vq)) {
        return 0;
    }
    n = vq->ring->pop_batch(vq, elems, max);
    if (vq->turns) {
        take_turns(vq, elems, n);
    }
    return n;
}

void virtqueue_fill(VirtQueue *vq, const VirtQueueElement *elem, uint32_t written)
{
    g_assert(vq->started && vq->in_use);
    if (G_UNLIKELY(virtqueue_is_broken(vq))) {
        vq->in_use--;
    } else if (G_UNLIKELY(vq->turns)) {
        fill_in_order(vq, elem, written);
    } else {
        vq->ring->fill(vq, elem->head, elem->ring_len, written);
    }
}

void virtqueue_flush(VirtQueue *vq)
{
    if (vq->unflushed && vq->started) {
        vq->ring->flush(vq);
    }
}

void virtqueue_push_batch(VirtQueue *vq, VirtQueueElement *const *elems, const uint32_t *written, unsigned int n)
{
    for (unsigned int i = 0; i < n; i++) {
        virtqueue_fill(vq, elems[i], written[i]);
    }
    virtqueue_flush(vq);
}

unsigned int virtqueue_unflushed(const VirtQueue *vq)
{
    return vq->unflushed;
}

bool virtqueue_empty(const VirtQueue *vq)
{
    return !vq->started || virtqueue_is_broken(vq) || vq->ring->empty(vq);
}

void virtqueue_disable_notification(VirtQueue *vq)
{
    if (vq->started) {
        vq->notification = false;
        vq->ring->disable_notification(vq);
    }
}

bool virtqueue_enable_notification(VirtQueue *vq)
{
    if (!vq->started) {
        return false;
    }
    vq->notification = true;
    return vq->ring->enable_notification(vq) && !virtqueue_is_broken(vq);
}

bool virtqueue_notification(const VirtQueue *vq)
{
    return vq->notification;
}
