/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtqueue on guest RAM of its own, and the driver's hand on that RAM. */
#ifndef UNIT_VIRTQUEUE_FIXTURE_H
#define UNIT_VIRTQUEUE_FIXTURE_H

#include "base/bswap.h"
#include "guest/memory.h"
#include "virtio/queue.h"

#include <string.h>

#define LOW_SIZE 0x200000u
#define HIGH_BASE 0x100000000ull
#define HIGH_SIZE 0x10000u
#define DESC_ADDR 0x10000u
#define AVAIL_ADDR 0x20000u
#define USED_ADDR 0x30000u
#define TABLE_ADDR 0x40000u
#define DATA_ADDR 0x80000u
#define HOLE_ADDR 0x80000000u

enum { NEXT = 1, WRITE = 2, INDIRECT = 4 };

/* The device side under test, and the driver's view of the same memory. */
typedef struct Fixture {
    uint8_t *low, *high;
    VirtQueue *vq;
    unsigned int num;
    bool event_idx;
    unsigned int interrupts, breaks;
    char text[128];
    VirtQueueElement *elems;
    VirtQueueElement **ptrs;
    uint16_t avail_idx;
} Fixture;

static inline void on_interrupt(VirtQueue *vq, void *opaque)
{
    ((Fixture *)opaque)->interrupts++;
}

static inline void on_broken(VirtQueue *vq, void *opaque, const char *text)
{
    Fixture *f = opaque;

    f->breaks++;
    g_strlcpy(f->text, text, sizeof(f->text));
}

static const VirtQueueOps ops = {on_interrupt, on_broken};

static inline Fixture *setup(unsigned int num, const VirtQueueFeatures *features)
{
    Fixture *f = g_new0(Fixture, 1);

    f->low = g_malloc0(LOW_SIZE);
    f->high = g_malloc0(HIGH_SIZE);
    guest_ram_set((GuestRamRange[]){{0, LOW_SIZE, f->low}, {HIGH_BASE, HIGH_SIZE, f->high}}, 2);
    f->num = num;
    f->event_idx = features->event_idx;
    f->vq = virtqueue_new(0, num, &ops, f);
    virtqueue_set_rings(f->vq, DESC_ADDR, AVAIL_ADDR, USED_ADDR);
    f->elems = g_new0(VirtQueueElement, num + 1);
    f->ptrs = g_new0(VirtQueueElement *, num + 1);
    for (unsigned int i = 0; i <= num; i++) {
        virtqueue_element_init(f->vq, &f->elems[i], i);
        f->ptrs[i] = &f->elems[i];
    }
    g_assert_true(virtqueue_start(f->vq, features));
    return f;
}

static inline void teardown(Fixture *f)
{
    virtqueue_stop(f->vq);
    virtqueue_free(f->vq);
    guest_ram_set(NULL, 0);
    g_free(f->low);
    g_free(f->high);
    g_free(f->elems);
    g_free(f->ptrs);
    g_free(f);
}

static const VirtQueueFeatures plain = {.event_idx = false};

/* --- The driver --- */

static inline void put_desc(Fixture *f, uint64_t table, unsigned int i, uint64_t addr, uint32_t len, uint16_t flags,
                     uint16_t next)
{
    uint8_t *d = f->low + table + 16 * i;

    store_le64(d, addr);
    store_le32(d + 8, len);
    store_le16(d + 12, flags);
    store_le16(d + 14, next);
}

static inline void put_avail_entry(Fixture *f, uint16_t head)
{
    g_assert(f->num);
    store_le16(f->low + AVAIL_ADDR + 4 + 2 * (f->avail_idx % f->num), head);
    f->avail_idx++;
}

static inline void publish(Fixture *f)
{
    store_le16(f->low + AVAIL_ADDR + 2, f->avail_idx);
}

static inline void offer(Fixture *f, uint16_t head)
{
    put_avail_entry(f, head);
    publish(f);
}

static inline uint16_t used_idx(Fixture *f)
{
    return load_le16(f->low + USED_ADDR + 2);
}

static inline void check_used(Fixture *f, uint16_t idx, uint32_t id, uint32_t len)
{
    const uint8_t *e = f->low + USED_ADDR + 4 + 8 * (idx % f->num);

    g_assert_cmpuint(load_le32(e), ==, id);
    g_assert_cmpuint(load_le32(e + 4), ==, len);
}

static inline void set_used_event(Fixture *f, uint16_t idx)
{
    store_le16(f->low + AVAIL_ADDR + 4 + 2 * f->num, idx);
}

static inline uint16_t avail_event(Fixture *f)
{
    return load_le16(f->low + USED_ADDR + 4 + 8 * f->num);
}

static inline void push(Fixture *f, VirtQueueElement *elem, uint32_t written)
{
    virtqueue_push_batch(f->vq, &elem, &written, 1);
}

#endif
