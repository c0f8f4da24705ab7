/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The legacy interface of virtio-pci: one port range. */
#include "virtio/pci-internal.h"

enum {
    LEGACY_HOST_FEATURES = 0x00,
    LEGACY_GUEST_FEATURES = 0x04,
    LEGACY_QUEUE_PFN = 0x08,
    LEGACY_QUEUE_SIZE = 0x0c,
    LEGACY_QUEUE_SELECT = 0x0e,
    LEGACY_QUEUE_NOTIFY = 0x10,
    LEGACY_STATUS = 0x12,
    LEGACY_ISR = 0x13,
    LEGACY_CONFIG_VECTOR = 0x14,
    LEGACY_QUEUE_VECTOR = 0x16,
    LEGACY_CONFIG = 0x14,
    LEGACY_CONFIG_MSIX = 0x18,
};
#define LEGACY_PAGE_SHIFT 12

#define STATUS_ACKNOWLEDGE_DRIVER 3

/* The vectors are there only while MSI-X is on; the device's configuration begins behind. */
static unsigned int config_offset(const VirtIOPCI *proxy)
{
    return pci_msix_enabled(&proxy->pci) ? LEGACY_CONFIG_MSIX : LEGACY_CONFIG;
}

static uint64_t legacy_read(void *opaque, uint64_t addr, unsigned int size)
{
    VirtIOPCI *proxy = opaque;
    VirtIODevice *vdev = proxy->vdev;
    VirtIOQueue *q = virtio_pci_selected(proxy);
    uint64_t desc, avail, used;

    if (addr >= config_offset(proxy)) {
        return virtio_config_read(vdev, addr - config_offset(proxy), size);
    }
    switch (addr) {
    case LEGACY_HOST_FEATURES:
        return (uint32_t)vdev->host_features | 1u << VIRTIO_F_BAD_FEATURE;
    case LEGACY_GUEST_FEATURES:
        return (uint32_t)vdev->guest_features;
    case LEGACY_QUEUE_PFN:
        if (!q) {
            return 0;
        }
        virtqueue_rings(q->vq, &desc, &avail, &used);
        return (uint32_t)(desc >> LEGACY_PAGE_SHIFT);
    case LEGACY_QUEUE_SIZE:
        return q ? virtqueue_size(q->vq) : 0;
    case LEGACY_QUEUE_SELECT:
        return vdev->queue_sel;
    case LEGACY_STATUS:
        return virtio_status(vdev);
    case LEGACY_ISR:
        return virtio_pci_read_isr(proxy);
    case LEGACY_CONFIG_VECTOR:
        return vdev->config_vector;
    case LEGACY_QUEUE_VECTOR:
        return q ? q->vector : VIRTIO_NO_VECTOR;
    default:
        return UINT32_MAX;
    }
}

static void write_features(VirtIODevice *vdev, uint32_t value)
{
    /* A driver that takes the bit that stands for a bug takes whatever it sees. */
    virtio_set_features(vdev, value & 1u << VIRTIO_F_BAD_FEATURE ? 0 : value);
}

static void write_pfn(VirtIOPCI *proxy, uint32_t pfn)
{
    VirtIOQueue *q = virtio_pci_selected(proxy);
    uint64_t base = (uint64_t)pfn << LEGACY_PAGE_SHIFT, avail, used;

    if (!pfn) {
        virtio_pci_set_status(proxy, 0);
    } else if (q && !q->started) {
        virtqueue_legacy_layout(base, virtqueue_size(q->vq), 1u << LEGACY_PAGE_SHIFT, &avail, &used);
        virtqueue_set_rings(q->vq, base, avail, used);
        virtio_queue_enable(proxy->vdev, proxy->vdev->queue_sel);
    }
}

static void write_status(VirtIOPCI *proxy, uint8_t status)
{
    virtio_pci_set_status(proxy, status);
    /* Old drivers never set bus mastering. This state tells that a driver is at work. */
    if (status == STATUS_ACKNOWLEDGE_DRIVER) {
        pci_config_write(&proxy->pci, PCI_COMMAND,
                         pci_config_read(&proxy->pci, PCI_COMMAND, 2) | PCI_COMMAND_MASTER, 2);
    }
}

static void legacy_write(void *opaque, uint64_t addr, uint64_t value, unsigned int size)
{
    VirtIOPCI *proxy = opaque;
    VirtIODevice *vdev = proxy->vdev;
    VirtIOQueue *q = virtio_pci_selected(proxy);

    if (addr >= config_offset(proxy)) {
        virtio_config_write(vdev, addr - config_offset(proxy), value, size);
        return;
    }
    switch (addr) {
    case LEGACY_GUEST_FEATURES:
        write_features(vdev, value);
        break;
    case LEGACY_QUEUE_PFN:
        write_pfn(proxy, value);
        break;
    case LEGACY_QUEUE_SELECT:
        if (value < VIRTIO_QUEUE_MAX) {
            vdev->queue_sel = value;
        }
        break;
    case LEGACY_QUEUE_NOTIFY:
        virtio_kick(vdev, value);
        break;
    case LEGACY_STATUS:
        write_status(proxy, value);
        break;
    case LEGACY_CONFIG_VECTOR:
        vdev->config_vector = virtio_pci_check_vector(proxy, value);
        break;
    case LEGACY_QUEUE_VECTOR:
        if (q) {
            q->vector = virtio_pci_check_vector(proxy, value);
        }
        break;
    }
}

static const GuestRegionOps legacy_ops = {
    .read = legacy_read,
    .write = legacy_write,
    .sizes = 1 | 2 | 4,
};

static uint64_t pow2_ceil(uint64_t v)
{
    uint64_t p = 1;

    while (p < v) {
        p <<= 1;
    }
    return p;
}

void virtio_pci_add_legacy_bar(VirtIOPCI *proxy)
{
    unsigned int head = pci_msix_vectors(&proxy->pci) ? LEGACY_CONFIG_MSIX : LEGACY_CONFIG;
    GuestRegion part = {.name = "virtio-pci", .ops = &legacy_ops, .opaque = proxy};

    part.size = pow2_ceil(head + proxy->vdev->config_len);
    pci_add_bar(&proxy->pci, BAR_LEGACY, PCI_BAR_IO, part.size, &part, 1);
}
