/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The modern interface of virtio-pci: common configuration, ISR, device configuration and doorbells in one memory BAR. */
#include "virtio/pci-internal.h"

#include <inttypes.h>

enum {
    COMMON_DFSELECT = 0x00,
    COMMON_DF = 0x04,
    COMMON_GFSELECT = 0x08,
    COMMON_GF = 0x0c,
    COMMON_MSIX = 0x10,
    COMMON_NUMQ = 0x12,
    COMMON_STATUS = 0x14,
    COMMON_GENERATION = 0x15,
    COMMON_Q_SELECT = 0x16,
    COMMON_Q_SIZE = 0x18,
    COMMON_Q_MSIX = 0x1a,
    COMMON_Q_ENABLE = 0x1c,
    COMMON_Q_NOFF = 0x1e,
    COMMON_Q_DESC = 0x20,
    COMMON_Q_AVAIL = 0x28,
    COMMON_Q_USED = 0x30,
    COMMON_Q_NOTIFY_DATA = 0x38,
    COMMON_Q_RESET = 0x3a,
};

/* Bits that only the legacy interface shows. */
#define LEGACY_FEATURES                                                                            \
    (1ull << VIRTIO_F_NOTIFY_ON_EMPTY | 1ull << VIRTIO_F_ANY_LAYOUT | 1ull << VIRTIO_F_BAD_FEATURE)

static uint64_t queue_read(VirtIOPCI *proxy, uint64_t addr)
{
    VirtIOQueue *q = virtio_pci_selected(proxy);

    if (addr == COMMON_Q_NOFF) {
        return proxy->vdev->queue_sel;
    }
    if (!q) {
        return addr == COMMON_Q_MSIX ? VIRTIO_NO_VECTOR : 0;
    }
    switch (addr) {
    case COMMON_Q_SIZE:
        return virtqueue_size(q->vq);
    case COMMON_Q_MSIX:
        return q->vector;
    case COMMON_Q_ENABLE:
        return q->enabled;
    case COMMON_Q_DESC:
        return (uint32_t)q->desc;
    case COMMON_Q_DESC + 4:
        return q->desc >> 32;
    case COMMON_Q_AVAIL:
        return (uint32_t)q->avail;
    case COMMON_Q_AVAIL + 4:
        return q->avail >> 32;
    case COMMON_Q_USED:
        return (uint32_t)q->used;
    case COMMON_Q_USED + 4:
        return q->used >> 32;
    default:
        return 0;
    }
}

static uint64_t common_read(void *opaque, uint64_t addr, unsigned int size)
{
    VirtIOPCI *proxy = opaque;
    VirtIODevice *vdev = proxy->vdev;

    switch (addr) {
    case COMMON_DFSELECT:
        return proxy->device_feature_select;
    case COMMON_DF:
        return proxy->device_feature_select > 1
                   ? 0
                   : (uint32_t)((vdev->host_features & ~LEGACY_FEATURES) >> (32 * proxy->device_feature_select));
    case COMMON_GFSELECT:
        return proxy->driver_feature_select;
    case COMMON_GF:
        return proxy->driver_feature_select > 1 ? 0 : proxy->driver_features[proxy->driver_feature_select];
    case COMMON_MSIX:
        return vdev->config_vector;
    case COMMON_NUMQ:
        return vdev->num_queues;
    case COMMON_STATUS:
        return virtio_status(vdev);
    case COMMON_GENERATION:
        return vdev->generation;
    case COMMON_Q_SELECT:
        return vdev->queue_sel;
    default:
        return queue_read(proxy, addr);
    }
}

static void set_half(uint64_t *v, bool high, uint32_t half)
{
    *v = high ? (uint32_t)*v | (uint64_t)half << 32 : (*v & ~(uint64_t)UINT32_MAX) | half;
}

static void enable_queue(VirtIOPCI *proxy, VirtIOQueue *q, uint64_t value)
{
    if (value != 1) {
        virtio_error(proxy->vdev, "wrong value for queue_enable %" PRIx64, value);
    } else if (!q->enabled) {
        virtqueue_set_rings(q->vq, q->desc, q->avail, q->used);
        q->enabled = true;
        virtio_queue_enable(proxy->vdev, virtqueue_index(q->vq));
    }
}

static void queue_write(VirtIOPCI *proxy, uint64_t addr, uint64_t value)
{
    VirtIOQueue *q = virtio_pci_selected(proxy);

    if (!q) {
        return;
    }
    switch (addr) {
    case COMMON_Q_SIZE:
        if (!q->enabled) {
            virtqueue_set_size(q->vq, value);
        }
        break;
    case COMMON_Q_MSIX:
        q->vector = virtio_pci_check_vector(proxy, value);
        break;
    case COMMON_Q_ENABLE:
        enable_queue(proxy, q, value);
        break;
    case COMMON_Q_DESC:
    case COMMON_Q_DESC + 4:
        set_half(&q->desc, addr & 4, value);
        break;
    case COMMON_Q_AVAIL:
    case COMMON_Q_AVAIL + 4:
        set_half(&q->avail, addr & 4, value);
        break;
    case COMMON_Q_USED:
    case COMMON_Q_USED + 4:
        set_half(&q->used, addr & 4, value);
        break;
    case COMMON_Q_RESET:
        if (value == 1 && virtio_has_feature(proxy->vdev, VIRTIO_F_RING_RESET)) {
            virtio_queue_reset(proxy->vdev, virtqueue_index(q->vq));
        }
        break;
    }
}

static void write_features(VirtIOPCI *proxy, uint32_t value)
{
    unsigned int half = proxy->driver_feature_select;

    if (half > 1) {
        return;
    }
    proxy->driver_features[half] = value;
    virtio_set_features(proxy->vdev, ((uint64_t)proxy->driver_features[1] << 32 | proxy->driver_features[0]) &
                                         ~LEGACY_FEATURES);
}

static void common_write(void *opaque, uint64_t addr, uint64_t value, unsigned int size)
{
    VirtIOPCI *proxy = opaque;
    VirtIODevice *vdev = proxy->vdev;

    switch (addr) {
    case COMMON_DFSELECT:
        proxy->device_feature_select = value;
        break;
    case COMMON_GFSELECT:
        proxy->driver_feature_select = value;
        break;
    case COMMON_GF:
        write_features(proxy, value);
        break;
    case COMMON_MSIX:
        vdev->config_vector = virtio_pci_check_vector(proxy, value);
        break;
    case COMMON_STATUS:
        virtio_pci_set_status(proxy, value);
        break;
    case COMMON_Q_SELECT:
        if (value < VIRTIO_QUEUE_MAX) {
            vdev->queue_sel = value;
        }
        break;
    default:
        queue_write(proxy, addr, value);
    }
}

static uint64_t isr_read(void *opaque, uint64_t addr, unsigned int size)
{
    return addr ? 0 : virtio_pci_read_isr(opaque);
}

static uint64_t device_read(void *opaque, uint64_t addr, unsigned int size)
{
    VirtIOPCI *proxy = opaque;

    return virtio_config_read(proxy->vdev, addr, size);
}

static void device_write(void *opaque, uint64_t addr, uint64_t value, unsigned int size)
{
    VirtIOPCI *proxy = opaque;

    virtio_config_write(proxy->vdev, addr, value, size);
}

/* The place that is written names the queue. */
static void notify_write(void *opaque, uint64_t addr, uint64_t value, unsigned int size)
{
    VirtIOPCI *proxy = opaque;

    virtio_kick(proxy->vdev, addr / proxy->notify_multiplier);
}

/* Here the value does. */
static void pio_notify_write(void *opaque, uint64_t addr, uint64_t value, unsigned int size)
{
    VirtIOPCI *proxy = opaque;

    virtio_kick(proxy->vdev, value);
}

const GuestRegionOps virtio_pci_modern_ops[REGIONS] = {
    [REGION_COMMON] = {.read = common_read, .write = common_write, .sizes = 1 | 2 | 4},
    [REGION_ISR] = {.read = isr_read, .sizes = 1 | 2 | 4},
    [REGION_DEVICE] = {.read = device_read, .write = device_write, .sizes = 1 | 2 | 4},
    [REGION_NOTIFY] = {.write = notify_write, .sizes = 1 | 2 | 4},
};

const GuestRegionOps virtio_pci_pio_notify_ops = {.write = pio_notify_write, .sizes = 1 | 2 | 4};

uint64_t virtio_pci_region_size(const VirtIOPCI *proxy, unsigned int i)
{
    return i == REGION_NOTIFY && proxy->page_per_vq ? (uint64_t)REGION_SIZE * VIRTIO_QUEUE_MAX : REGION_SIZE;
}

void virtio_pci_add_modern_bars(VirtIOPCI *proxy)
{
    static const char *const names[REGIONS] = {
        "virtio-pci-common", "virtio-pci-isr", "virtio-pci-device", "virtio-pci-notify"};
    GuestRegion parts[REGIONS];
    uint64_t size = 4 * REGION_SIZE;

    for (unsigned int i = 0; i < REGIONS; i++) {
        parts[i] = (GuestRegion){
            .name = names[i],
            .ops = &virtio_pci_modern_ops[i],
            .opaque = proxy,
            .base = (uint64_t)i * REGION_SIZE,
            .size = virtio_pci_region_size(proxy, i),
        };
    }
    while (size < parts[REGION_NOTIFY].base + parts[REGION_NOTIFY].size) {
        size *= 2;
    }
    pci_add_bar(&proxy->pci, BAR_MODERN, PCI_BAR_MEM64_PREFETCH, size, parts, REGIONS);
    if (proxy->modern_pio_notify) {
        GuestRegion pio = {
            .name = "virtio-pci-notify-pio", .ops = &virtio_pci_pio_notify_ops, .opaque = proxy, .size = 4};

        pci_add_bar(&proxy->pci, BAR_PIO_NOTIFY, PCI_BAR_IO, 4, &pio, 1);
    }
}

/* The region that holds [offset, offset + size), with *@offset made relative to it. */
static const GuestRegionOps *find_region(VirtIOPCI *proxy, uint64_t *offset, unsigned int size)
{
    for (unsigned int i = 0; i < REGIONS; i++) {
        uint64_t rel = *offset - (uint64_t)i * REGION_SIZE, len = virtio_pci_region_size(proxy, i);

        if (rel < len && size <= len - rel) {
            *offset = rel;
            return &virtio_pci_modern_ops[i];
        }
    }
    return NULL;
}

uint32_t virtio_pci_modern_read(VirtIOPCI *proxy, uint64_t offset, unsigned int size)
{
    const GuestRegionOps *ops = find_region(proxy, &offset, size);

    return ops && ops->read ? ops->read(proxy, offset, size) : 0;
}

void virtio_pci_modern_write(VirtIOPCI *proxy, uint64_t offset, uint32_t value, unsigned int size)
{
    const GuestRegionOps *ops = find_region(proxy, &offset, size);

    if (ops && ops->write) {
        ops->write(proxy, offset, value, size);
    }
}
