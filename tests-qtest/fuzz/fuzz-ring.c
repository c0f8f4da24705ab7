/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libFuzzer target: the input is a driver that does anything to its rings while the device serves them. */
#include "base/bswap.h"
#include "guest/memory.h"
#include "virtio/queue.h"

#include <string.h>

#define RAM_SIZE 0x40000u
#define HIGH_BASE 0x100000000ull
#define HIGH_SIZE 0x2000u
#define DESC_ADDR 0x1000u
#define AVAIL_ADDR 0x8000u
#define USED_ADDR 0x9000u
#define TABLE_ADDR 0x10000u
#define MAX_NUM 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Input {
    const uint8_t *p;
    size_t left;
} Input;

static uint64_t take(Input *in, unsigned int bytes)
{
    uint64_t v = 0;

    for (unsigned int i = 0; i < bytes && in->left; i++, in->p++, in->left--) {
        v |= (uint64_t)*in->p << (8 * i);
    }
    return v;
}

typedef struct Device {
    uint8_t *ram, *high;
    VirtQueue *vq;
    VirtQueueFeatures features;
    VirtQueueElement elems[MAX_NUM + 1];
    VirtQueueElement *idle[MAX_NUM + 1], *busy[MAX_NUM + 1];
    unsigned int idle_n, busy_n;
    bool broken;
} Device;

static void on_interrupt(VirtQueue *vq, void *opaque)
{
}

static void on_broken(VirtQueue *vq, void *opaque, const char *text)
{
    Device *d = opaque;

    g_assert(!d->broken && *text);
    d->broken = true;
}

static const VirtQueueOps ops = {on_interrupt, on_broken};

/* Every segment is memory that we may touch, as a sanitizer will see. */
static void touch(const VirtQueueElement *e)
{
    uint64_t bytes[2] = {0};

    g_assert(e->out_num + e->in_num >= 1 && e->out_num + e->in_num <= VIRTQUEUE_MAX_SIZE);
    for (unsigned int i = 0; i < e->out_num + e->in_num; i++) {
        uint8_t *p = e->iov[i].iov_base;
        size_t len = e->iov[i].iov_len;

        g_assert(len > 0);
        __asm__ volatile("" : : "r"(p[0] ^ p[len - 1]));
        if (i >= e->out_num) {
            p[0] = p[len - 1] = (uint8_t)i;
        }
        bytes[i >= e->out_num] += len;
    }
    g_assert(bytes[0] == e->out_bytes && bytes[1] == e->in_bytes);
}

static uint64_t some_address(Input *in)
{
    static const uint64_t bases[] = {0,        RAM_SIZE - 16, RAM_SIZE, HIGH_BASE - 8, HIGH_BASE, HIGH_BASE + HIGH_SIZE - 8,
                                     DESC_ADDR, AVAIL_ADDR,    USED_ADDR, TABLE_ADDR,   UINT64_MAX - 64, 0x80000000u};

    return bases[take(in, 1) % G_N_ELEMENTS(bases)] + take(in, 2);
}

static void write_desc(Device *d, Input *in, uint32_t table)
{
    uint8_t *p = d->ram + table + 16 * (take(in, 1) % 128);

    store_le64(p, some_address(in));
    store_le32(p + 8, (uint32_t)take(in, 1) << (take(in, 1) % 32));
    if (d->features.packed) {
        store_le16(p + 12, (uint16_t)take(in, 1));
        store_le16(p + 14, (uint16_t)take(in, 2));
    } else {
        store_le16(p + 12, (uint16_t)take(in, 1));
        store_le16(p + 14, (uint16_t)take(in, 1));
    }
}

static void pop(Device *d, unsigned int max)
{
    unsigned int n = virtqueue_pop_batch(d->vq, d->idle, MIN(MAX(max, 1), d->idle_n));

    for (unsigned int i = 0; i < n; i++) {
        touch(d->idle[i]);
        d->busy[d->busy_n++] = d->idle[i];
    }
    d->idle_n -= n;
    memmove(d->idle, d->idle + n, d->idle_n * sizeof(d->idle[0]));
}

static void finish(Device *d, unsigned int k, uint32_t written)
{
    VirtQueueElement *e = d->busy[k];

    virtqueue_fill(d->vq, e, written);
    d->busy[k] = d->busy[--d->busy_n];
    d->idle[d->idle_n++] = e;
}

static bool restart(Device *d, bool reset, unsigned int num)
{
    virtqueue_stop(d->vq);
    if (reset) {
        virtqueue_reset(d->vq);
        d->broken = false;
        virtqueue_set_size(d->vq, num);
        virtqueue_set_rings(d->vq, DESC_ADDR, AVAIL_ADDR, USED_ADDR);
        while (d->busy_n) {
            d->idle[d->idle_n++] = d->busy[--d->busy_n];
        }
    }
    return virtqueue_start(d->vq, &d->features);
}

static bool step(Device *d, Input *in)
{
    uint8_t *avail = d->ram + AVAIL_ADDR;

    switch (take(in, 1) % 11) {
    case 0:
        write_desc(d, in, DESC_ADDR);
        break;
    case 1:
        write_desc(d, in, TABLE_ADDR);
        break;
    case 2:
        store_le16(avail + 4 + 2 * (load_le16(avail + 2) % virtqueue_size(d->vq)), (uint16_t)take(in, 1));
        store_le16(avail + 2, load_le16(avail + 2) + 1);
        break;
    case 3:
        store_le16(avail + 2, (uint16_t)take(in, 2));
        break;
    case 4:
        pop(d, (unsigned int)take(in, 1) % 70);
        break;
    case 5:
        if (d->busy_n) {
            finish(d, (unsigned int)take(in, 1) % d->busy_n, (uint32_t)take(in, 4));
        }
        break;
    case 6:
        virtqueue_flush(d->vq);
        break;
    case 7:
        virtqueue_disable_notification(d->vq);
        break;
    case 8:
        if (virtqueue_enable_notification(d->vq)) {
            g_assert(!virtqueue_empty(d->vq));
        }
        break;
    case 9:
        return restart(d, take(in, 1) & 1, 1 + (unsigned int)take(in, 1) % MAX_NUM);
    default: {
        uint32_t at = (uint32_t)take(in, 3) % (RAM_SIZE - 8);

        store_le64(d->ram + at, take(in, 8));
    }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input in = {data, size};
    Device *d = g_new0(Device, 1);
    unsigned int num = 1 + (unsigned int)take(&in, 1) % MAX_NUM;
    uint8_t flags = (uint8_t)take(&in, 1);

    d->ram = g_malloc0(RAM_SIZE);
    d->high = g_malloc0(HIGH_SIZE);
    guest_ram_set((GuestRamRange[]){{0, RAM_SIZE, d->ram}, {HIGH_BASE, HIGH_SIZE, d->high}}, 2);
    d->features.event_idx = flags & 1;
    d->features.notify_on_empty = flags & 2;
    d->features.packed = flags & 4;
    d->features.in_order = flags & 8;
    d->vq = virtqueue_new(0, MAX_NUM, &ops, d);
    for (unsigned int i = 0; i <= MAX_NUM; i++) {
        virtqueue_element_init(d->vq, &d->elems[i], i);
        d->idle[d->idle_n++] = &d->elems[i];
    }
    if (restart(d, true, num)) {
        while (in.left && step(d, &in)) {
        }
    }
    virtqueue_free(d->vq);
    guest_ram_set(NULL, 0);
    g_free(d->ram);
    g_free(d->high);
    g_free(d);
    return 0;
}
