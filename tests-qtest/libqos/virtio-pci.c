/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio over PCI: the legacy port window and the modern capabilities behind one set of functions. */
#include "virtio.h"

#include <string.h>

enum { /* legacy window */
    L_DEVICE_FEATURES = 0,
    L_DRIVER_FEATURES = 4,
    L_PFN = 8,
    L_QUEUE_SIZE = 12,
    L_QUEUE_SELECT = 14,
    L_NOTIFY = 16,
    L_STATUS = 18,
    L_ISR = 19,
    L_CONFIG = 20,
    L_CONFIG_VECTOR = 20,
    L_QUEUE_VECTOR = 22,
    L_CONFIG_MSIX = 24,
};

enum { /* modern common configuration */
    C_DEVICE_FEATURE_SELECT = 0,
    C_DEVICE_FEATURE = 4,
    C_DRIVER_FEATURE_SELECT = 8,
    C_DRIVER_FEATURE = 12,
    C_CONFIG_VECTOR = 0x10,
    C_STATUS = 0x14,
    C_GENERATION = 0x15,
    C_QUEUE_SELECT = 0x16,
    C_QUEUE_SIZE = 0x18,
    C_QUEUE_VECTOR = 0x1a,
    C_QUEUE_ENABLE = 0x1c,
    C_QUEUE_NOTIFY_OFF = 0x1e,
    C_QUEUE_DESC = 0x20,
    C_QUEUE_AVAIL = 0x28,
    C_QUEUE_USED = 0x30,
};

static void read_area(VirtioPci *v, uint8_t cap, VirtioArea *a)
{
    a->present = true;
    a->bar = pci_cfg_readb(v->t, v->pci->devfn, cap + 4);
    a->off = pci_cfg_readl(v->t, v->pci->devfn, cap + 8);
    a->len = pci_cfg_readl(v->t, v->pci->devfn, cap + 12);
}

static void read_capabilities(VirtioPci *v)
{
    for (uint8_t cap = pci_find_cap(v->pci, PCI_CAP_VENDOR, 0); cap;
         cap = pci_find_cap(v->pci, PCI_CAP_VENDOR, cap)) {
        switch (pci_cfg_readb(v->t, v->pci->devfn, cap + 3)) {
        case 1:
            read_area(v, cap, &v->common);
            break;
        case 2:
            read_area(v, cap, &v->notify);
            v->notify_multiplier = pci_cfg_readl(v->t, v->pci->devfn, cap + 16);
            break;
        case 3:
            read_area(v, cap, &v->isr);
            break;
        case 4:
            read_area(v, cap, &v->device);
            break;
        case 5:
            v->window = cap;
            break;
        }
    }
}

VirtioPci *vpci_new(QTest *t, int devfn, VirtioVia via)
{
    VirtioPci *v = g_new0(VirtioPci, 1);

    v->t = t;
    v->via = via;
    v->pci = pci_dev_new(t, devfn);
    if (!v->pci || pci_cfg_readw(t, devfn, PCI_CFG_VENDOR) != 0x1af4) {
        qos_die("no virtio device at %02x.%x", devfn >> 3, devfn & 7);
    }
    read_capabilities(v);
    if (via == VIRTIO_LEGACY) {
        if (!v->pci->bar[0].present || !v->pci->bar[0].io) {
            qos_die("the device has no legacy interface");
        }
        pci_map_bar(v->pci, 0);
    } else if (!v->common.present || !v->notify.present || !v->isr.present || !v->device.present) {
        qos_die("the device has no modern interface");
    } else {
        pci_map_bar(v->pci, v->common.bar);
    }
    pci_dev_enable(v->pci);
    return v;
}

void vpci_free(VirtioPci *v)
{
    if (v) {
        if (v->vectors) {
            guest_free(v->t, v->vectors);
        }
        pci_dev_free(v->pci);
        g_free(v);
    }
}

/* Aim the window of the PCI-cfg capability. */
static void aim_window(VirtioPci *v, const VirtioArea *a, uint32_t off, int size)
{
    pci_cfg_writeb(v->t, v->pci->devfn, v->window + 4, a->bar);
    pci_cfg_writel(v->t, v->pci->devfn, v->window + 8, a->off + off);
    pci_cfg_writel(v->t, v->pci->devfn, v->window + 12, (uint32_t)size);
}

static uint64_t area_read(VirtioPci *v, const VirtioArea *a, uint32_t off, int size)
{
    if (v->via != VIRTIO_MODERN_WINDOW) {
        return pci_bar_read(v->pci, a->bar, a->off + off, size);
    }
    if (size == 8) {
        return area_read(v, a, off, 4) | area_read(v, a, off + 4, 4) << 32;
    }
    aim_window(v, a, off, size);
    return size == 1   ? pci_cfg_readb(v->t, v->pci->devfn, v->window + 16)
           : size == 2 ? pci_cfg_readw(v->t, v->pci->devfn, v->window + 16)
                       : pci_cfg_readl(v->t, v->pci->devfn, v->window + 16);
}

static void area_write(VirtioPci *v, const VirtioArea *a, uint32_t off, int size, uint64_t value)
{
    if (v->via != VIRTIO_MODERN_WINDOW) {
        pci_bar_write(v->pci, a->bar, a->off + off, size, value);
        return;
    }
    if (size == 8) {
        area_write(v, a, off, 4, (uint32_t)value);
        area_write(v, a, off + 4, 4, value >> 32);
        return;
    }
    aim_window(v, a, off, size);
    if (size == 1) {
        pci_cfg_writeb(v->t, v->pci->devfn, v->window + 16, (uint8_t)value);
    } else if (size == 2) {
        pci_cfg_writew(v->t, v->pci->devfn, v->window + 16, (uint16_t)value);
    } else {
        pci_cfg_writel(v->t, v->pci->devfn, v->window + 16, (uint32_t)value);
    }
}

uint64_t vpci_common_read(VirtioPci *v, uint32_t off, int size)
{
    return area_read(v, &v->common, off, size);
}

void vpci_common_write(VirtioPci *v, uint32_t off, int size, uint64_t value)
{
    area_write(v, &v->common, off, size, value);
}

static bool legacy(const VirtioPci *v)
{
    return v->via == VIRTIO_LEGACY;
}

uint8_t vpci_status(VirtioPci *v)
{
    return (uint8_t)(legacy(v) ? pci_bar_read(v->pci, 0, L_STATUS, 1)
                               : vpci_common_read(v, C_STATUS, 1));
}

void vpci_set_status(VirtioPci *v, uint8_t status)
{
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_STATUS, 1, status);
    } else {
        vpci_common_write(v, C_STATUS, 1, status);
    }
}

void vpci_reset(VirtioPci *v)
{
    vpci_set_status(v, 0);
    g_assert_cmphex(vpci_status(v), ==, 0);
}

uint8_t vpci_isr(VirtioPci *v)
{
    return (uint8_t)(legacy(v) ? pci_bar_read(v->pci, 0, L_ISR, 1) : area_read(v, &v->isr, 0, 1));
}

uint64_t vpci_device_features(VirtioPci *v)
{
    uint64_t f;

    if (legacy(v)) {
        return pci_bar_read(v->pci, 0, L_DEVICE_FEATURES, 4);
    }
    vpci_common_write(v, C_DEVICE_FEATURE_SELECT, 4, 0);
    f = vpci_common_read(v, C_DEVICE_FEATURE, 4);
    vpci_common_write(v, C_DEVICE_FEATURE_SELECT, 4, 1);
    return f | vpci_common_read(v, C_DEVICE_FEATURE, 4) << 32;
}

void vpci_set_features(VirtioPci *v, uint64_t features)
{
    v->features = features;
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_DRIVER_FEATURES, 4, (uint32_t)features);
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        vpci_common_write(v, C_DRIVER_FEATURE_SELECT, 4, i);
        vpci_common_write(v, C_DRIVER_FEATURE, 4, (uint32_t)(features >> (32 * i)));
    }
}

uint64_t vpci_config_read(VirtioPci *v, uint32_t off, int size)
{
    if (legacy(v)) {
        return pci_bar_read(v->pci, 0, (v->pci->msix_on ? L_CONFIG_MSIX : L_CONFIG) + off, size);
    }
    return area_read(v, &v->device, off, size);
}

void vpci_config_write(VirtioPci *v, uint32_t off, int size, uint64_t value)
{
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, (v->pci->msix_on ? L_CONFIG_MSIX : L_CONFIG) + off, size, value);
    } else {
        area_write(v, &v->device, off, size, value);
    }
}

uint8_t vpci_config_generation(VirtioPci *v)
{
    return (uint8_t)vpci_common_read(v, C_GENERATION, 1);
}

static void select_queue(VirtioPci *v, uint16_t queue)
{
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_QUEUE_SELECT, 2, queue);
    } else {
        vpci_common_write(v, C_QUEUE_SELECT, 2, queue);
    }
}

uint16_t vpci_queue_size(VirtioPci *v, uint16_t queue)
{
    select_queue(v, queue);
    return (uint16_t)(legacy(v) ? pci_bar_read(v->pci, 0, L_QUEUE_SIZE, 2)
                                : vpci_common_read(v, C_QUEUE_SIZE, 2));
}

void vpci_set_queue_size(VirtioPci *v, uint16_t queue, uint16_t size)
{
    select_queue(v, queue);
    vpci_common_write(v, C_QUEUE_SIZE, 2, size);
}

void vpci_queue_enable(VirtioPci *v, uint16_t queue, uint64_t desc, uint64_t avail, uint64_t used)
{
    select_queue(v, queue);
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_PFN, 4, desc / GUEST_PAGE);
        return;
    }
    vpci_common_write(v, C_QUEUE_DESC, 8, desc);
    vpci_common_write(v, C_QUEUE_AVAIL, 8, avail);
    vpci_common_write(v, C_QUEUE_USED, 8, used);
    vpci_common_write(v, C_QUEUE_ENABLE, 2, 1);
}

bool vpci_doorbell(VirtioPci *v, uint16_t queue, uint64_t *addr)
{
    if (legacy(v)) {
        *addr = pci_map_bar(v->pci, 0)->addr + L_NOTIFY;
        return true;
    }
    select_queue(v, queue);
    *addr = pci_map_bar(v->pci, v->notify.bar)->addr + v->notify.off +
            vpci_common_read(v, C_QUEUE_NOTIFY_OFF, 2) * v->notify_multiplier;
    return false;
}

void vpci_notify(VirtioPci *v, uint16_t queue)
{
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_NOTIFY, 2, queue);
    } else {
        /* The queue's number is its notify offset on every device that we know; tests check that it is. */
        area_write(v, &v->notify, queue * v->notify_multiplier, 2, queue);
    }
}

void vpci_enable_msix(VirtioPci *v)
{
    pci_msix_enable(v->pci);
    v->vectors = guest_alloc(v->t, 4 * v->pci->msix_vectors);
    for (unsigned int i = 0; i < v->pci->msix_vectors; i++) {
        qt_ram_write(v->t, v->vectors + 4 * i, "\0\0\0", 4);
        pci_msix_set(v->pci, i, v->vectors + 4 * i, 0xc0de0000U + i, false);
    }
}

uint16_t vpci_set_config_vector(VirtioPci *v, uint16_t vector)
{
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_CONFIG_VECTOR, 2, vector);
        return (uint16_t)pci_bar_read(v->pci, 0, L_CONFIG_VECTOR, 2);
    }
    vpci_common_write(v, C_CONFIG_VECTOR, 2, vector);
    return (uint16_t)vpci_common_read(v, C_CONFIG_VECTOR, 2);
}

uint16_t vpci_set_queue_vector(VirtioPci *v, uint16_t queue, uint16_t vector)
{
    select_queue(v, queue);
    if (legacy(v)) {
        pci_bar_write(v->pci, 0, L_QUEUE_VECTOR, 2, vector);
        return (uint16_t)pci_bar_read(v->pci, 0, L_QUEUE_VECTOR, 2);
    }
    vpci_common_write(v, C_QUEUE_VECTOR, 2, vector);
    return (uint16_t)vpci_common_read(v, C_QUEUE_VECTOR, 2);
}

bool vpci_vector_fired(VirtioPci *v, unsigned int vector)
{
    uint32_t word;

    qt_ram_read(v->t, v->vectors + 4 * vector, &word, 4);
    if (!word) {
        return false;
    }
    g_assert_cmphex(word, ==, 0xc0de0000U + vector);
    qt_ram_write(v->t, v->vectors + 4 * vector, "\0\0\0", 4);
    return true;
}
