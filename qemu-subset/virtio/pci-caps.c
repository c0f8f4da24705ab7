/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities of virtio-pci: where the modern regions are, and the window through config space. */
#include "base/bswap.h"
#include "virtio/pci-internal.h"

enum { CAP_COMMON = 1, CAP_NOTIFY = 2, CAP_ISR = 3, CAP_DEVICE = 4, CAP_PCI_CFG = 5 };

/* Members of struct virtio_pci_cap and of its extensions. */
enum {
    CAP_LEN = 2,
    CAP_TYPE = 3,
    CAP_BAR = 4,
    CAP_OFFSET = 8,
    CAP_LENGTH = 12,
    CAP_SIZE = 16,
    CAP_NOTIFY_MULTIPLIER = 16,
    CAP_CFG_DATA = 16,
    CAP_EXTENDED_SIZE = 20,
};

/* Returns the offset, or 0 with @errp set. */
static unsigned int add_cap(VirtIOPCI *proxy, unsigned int type, unsigned int len, unsigned int bar, uint32_t offset,
                            uint32_t length, Error **errp)
{
    int pos = pci_add_capability(&proxy->pci, PCI_CAP_ID_VNDR, 0, len, errp);
    uint8_t *cap = proxy->pci.config + MAX(pos, 0);

    if (pos < 0) {
        return 0;
    }
    cap[CAP_LEN] = len;
    cap[CAP_TYPE] = type;
    cap[CAP_BAR] = bar;
    store_le32(cap + CAP_OFFSET, offset);
    store_le32(cap + CAP_LENGTH, length);
    return pos;
}

bool virtio_pci_add_capabilities(VirtIOPCI *proxy, Error **errp)
{
    static const uint8_t types[REGIONS] = {CAP_COMMON, CAP_ISR, CAP_DEVICE, CAP_NOTIFY};
    PciDevice *pci = &proxy->pci;
    unsigned int pos;

    for (unsigned int i = 0; i < REGIONS; i++) {
        unsigned int len = i == REGION_NOTIFY ? CAP_EXTENDED_SIZE : CAP_SIZE;

        pos = add_cap(proxy, types[i], len, BAR_MODERN, i * REGION_SIZE, virtio_pci_region_size(proxy, i), errp);
        if (!pos) {
            return false;
        }
        if (i == REGION_NOTIFY) {
            store_le32(pci->config + pos + CAP_NOTIFY_MULTIPLIER, proxy->notify_multiplier);
        }
    }
    /* A multiplier of 0: all queues ring at the same place. */
    if (proxy->modern_pio_notify && !add_cap(proxy, CAP_NOTIFY, CAP_EXTENDED_SIZE, BAR_PIO_NOTIFY, 0, 4, errp)) {
        return false;
    }
    pos = add_cap(proxy, CAP_PCI_CFG, CAP_EXTENDED_SIZE, 0, 0, 0, errp);
    if (!pos) {
        return false;
    }
    proxy->cfg_cap = pos;
    pci->wmask[pos + CAP_BAR] = 0xff;
    memset(pci->wmask + pos + CAP_OFFSET, 0xff, CAP_EXTENDED_SIZE - CAP_OFFSET);
    return true;
}

/* Does an access to config space touch the data register of the window, and is the window set up? */
static bool window_hit(VirtIOPCI *proxy, unsigned int addr, unsigned int len, uint32_t *offset, uint32_t *length)
{
    const uint8_t *cap = proxy->pci.config + proxy->cfg_cap;
    unsigned int data = proxy->cfg_cap + CAP_CFG_DATA;

    if (!proxy->cfg_cap || addr >= data + 4 || addr + len <= data) {
        return false;
    }
    *offset = load_le32(cap + CAP_OFFSET);
    *length = load_le32(cap + CAP_LENGTH);
    if (*length != 1 && *length != 2 && *length != 4) {
        return false;
    }
    *offset &= ~(*length - 1);
    return true;
}

void virtio_pci_window_write(VirtIOPCI *proxy, unsigned int addr, unsigned int len)
{
    uint32_t offset, length, value;

    if (window_hit(proxy, addr, len, &offset, &length)) {
        value = load_le32(proxy->pci.config + proxy->cfg_cap + CAP_CFG_DATA);
        if (length < 4) {
            value &= (1u << (8 * length)) - 1;
        }
        virtio_pci_modern_write(proxy, offset, value, length);
    }
}

void virtio_pci_window_read(VirtIOPCI *proxy, unsigned int addr, unsigned int len)
{
    uint8_t *data = proxy->pci.config + proxy->cfg_cap + CAP_CFG_DATA;
    uint32_t offset, length, value;

    if (window_hit(proxy, addr, len, &offset, &length)) {
        value = virtio_pci_modern_read(proxy, offset, length);
        for (unsigned int i = 0; i < length; i++) {
            data[i] = value >> (8 * i);
        }
    }
}
