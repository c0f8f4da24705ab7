/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of virtio-pci. */
#ifndef VIRTIO_PCI_INTERNAL_H
#define VIRTIO_PCI_INTERNAL_H

#include "virtio/pci.h"

/* BARs and the layout of the modern one. */
enum {
    BAR_LEGACY = 0,
    BAR_MSIX = 1,
    BAR_PIO_NOTIFY = 2,
    BAR_MODERN = 4,
};
enum {
    REGION_COMMON,
    REGION_ISR,
    REGION_DEVICE,
    REGION_NOTIFY,
    REGIONS,
};
#define REGION_SIZE 0x1000u

bool virtio_pci_has_legacy(const VirtIOPCI *proxy);

/* pci-legacy.c: BAR 0. */
void virtio_pci_add_legacy_bar(VirtIOPCI *proxy);

/* pci-modern.c: the regions of BAR 4, in the order of the enum. */
extern const GuestRegionOps virtio_pci_modern_ops[REGIONS];
extern const GuestRegionOps virtio_pci_pio_notify_ops;
/* Bytes of region @i. */
uint64_t virtio_pci_region_size(const VirtIOPCI *proxy, unsigned int i);
void virtio_pci_add_modern_bars(VirtIOPCI *proxy);
/* One access of the driver through the window in config space: any offset; size 1, 2 or 4. */
uint32_t virtio_pci_modern_read(VirtIOPCI *proxy, uint64_t offset, unsigned int size);
void virtio_pci_modern_write(VirtIOPCI *proxy, uint64_t offset, uint32_t value, unsigned int size);

/* pci-caps.c: capabilities, and the window that one of them opens. */
bool virtio_pci_add_capabilities(VirtIOPCI *proxy, Error **errp);
void virtio_pci_window_write(VirtIOPCI *proxy, unsigned int addr, unsigned int len);
void virtio_pci_window_read(VirtIOPCI *proxy, unsigned int addr, unsigned int len);

/* irq.c */
extern const VirtIOTransport virtio_pci_transport;
int virtio_pci_intx_level(PciDevice *dev);
/* ISR register: reading clears it and lowers the line. */
uint8_t virtio_pci_read_isr(VirtIOPCI *proxy);
/* A vector as the driver wrote it: one that does not exist becomes VIRTIO_NO_VECTOR. */
uint16_t virtio_pci_check_vector(const VirtIOPCI *proxy, uint32_t value);

/* The queue that the driver selected; NULL if it does not exist. */
static inline VirtIOQueue *virtio_pci_selected(VirtIOPCI *proxy)
{
    VirtIODevice *vdev = proxy->vdev;

    return vdev->queue_sel < vdev->num_queues ? &vdev->queues[vdev->queue_sel] : NULL;
}

void virtio_pci_set_status(VirtIOPCI *proxy, uint8_t status);

#endif
