/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupts of virtio-pci: MSI-X straight from the thread that serves the queue, INTx by way of the main thread. */
#include "virtio/pci-internal.h"

static void pci_interrupt(void *opaque, uint16_t vector)
{
    VirtIOPCI *proxy = opaque;

    if (!pci_msix_enabled(&proxy->pci)) {
        pci_intx_kick(&proxy->pci);
    } else if (vector != VIRTIO_NO_VECTOR) {
        pci_msix_notify(&proxy->pci, vector);
    }
}

const VirtIOTransport virtio_pci_transport = {
    .interrupt = pci_interrupt,
};

int virtio_pci_intx_level(PciDevice *dev)
{
    VirtIOPCI *proxy = (VirtIOPCI *)dev;

    return proxy->vdev->isr != 0;
}

uint8_t virtio_pci_read_isr(VirtIOPCI *proxy)
{
    uint8_t isr = virtio_take_isr(proxy->vdev);

    pci_set_intx(&proxy->pci, 0);
    return isr;
}

uint16_t virtio_pci_check_vector(const VirtIOPCI *proxy, uint32_t value)
{
    return value < pci_msix_vectors(&proxy->pci) ? value : VIRTIO_NO_VECTOR;
}
