/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI devices: configuration space, BARs, capabilities, INTx. */
#include "guest/pci-private.h"

#include "base/bswap.h"

#include <string.h>

#define DEFAULT_SUBSYSTEM_VENDOR 0x1af4
#define DEFAULT_SUBSYSTEM 0x1100
#define STATUS_W1C 0xf900 /* error bits */

/* --- BARs --- */

static void bar_unmap(PciBar *bar)
{
    for (unsigned int i = 0; i < bar->n_regions; i++) {
        guest_region_remove(&bar->regions[i]);
    }
    bar->base = UINT64_MAX;
}

static void bar_map(PciBar *bar, uint64_t base)
{
    bar->base = base;
    for (unsigned int i = 0; i < bar->n_regions; i++) {
        bar->regions[i].base = base + bar->rel[i];
        guest_region_add(&bar->regions[i]);
    }
}

/* Where the registers put the BAR; UINT64_MAX if it is off or would reach the end of its space. */
static uint64_t bar_address(const PciDevice *dev, unsigned int nr)
{
    const PciBar *bar = &dev->bars[nr];
    const uint8_t *reg = dev->config + PCI_BASE_ADDRESS_0 + 4 * nr;
    uint16_t command = load_le16(dev->config + PCI_COMMAND);
    uint64_t base, last, end;

    if (!(command & (bar->type == PCI_BAR_IO ? PCI_COMMAND_IO : PCI_COMMAND_MEMORY))) {
        return UINT64_MAX;
    }
    base = bar->type == PCI_BAR_MEM64_PREFETCH ? load_le64(reg) : load_le32(reg);
    base &= ~(bar->size - 1);
    last = base + bar->size - 1;
    end = bar->type == PCI_BAR_IO ? 0x10000 : bar->type == PCI_BAR_MEM32 ? UINT32_MAX : UINT64_MAX;
    if (!base || last <= base || last >= end || !pci_bridges_forward(dev, bar->type == PCI_BAR_IO, base, last)) {
        return UINT64_MAX;
    }
    return base;
}

void pci_update_mappings(PciDevice *dev)
{
    for (unsigned int i = 0; i < PCI_BARS; i++) {
        PciBar *bar = &dev->bars[i];
        uint64_t base = bar->type == PCI_BAR_NONE ? UINT64_MAX : bar_address(dev, i);

        if (bar->type != PCI_BAR_NONE && base != bar->base) {
            bar_unmap(bar);
            if (base != UINT64_MAX) {
                bar_map(bar, base);
            }
        }
    }
}

static void bars_free(PciDevice *dev)
{
    for (unsigned int i = 0; i < PCI_BARS; i++) {
        PciBar *bar = &dev->bars[i];

        if (bar->type != PCI_BAR_NONE) {
            bar_unmap(bar);
            g_free(bar->regions);
            g_free(bar->rel);
            memset(bar, 0, sizeof(*bar));
        }
    }
}

static uint8_t bar_type_bits(PciBarType type)
{
    return type == PCI_BAR_IO ? 1 : type == PCI_BAR_MEM64_PREFETCH ? 0xc : 0;
}

void pci_add_bar(PciDevice *dev, unsigned int nr, PciBarType type, uint64_t size, const GuestRegion *parts,
                 unsigned int n_parts)
{
    PciBar *bar = &dev->bars[nr];
    uint8_t *reg = dev->config + PCI_BASE_ADDRESS_0 + 4 * nr;
    uint8_t *mask = dev->wmask + PCI_BASE_ADDRESS_0 + 4 * nr;

    g_assert(nr < PCI_BARS && bar->type == PCI_BAR_NONE && type != PCI_BAR_NONE);
    g_assert(size && !(size & (size - 1)) && size >= (type == PCI_BAR_IO ? 4 : 16));
    g_assert(type != PCI_BAR_MEM64_PREFETCH || nr + 1 < PCI_BARS);
    bar->type = type;
    bar->size = size;
    bar->base = UINT64_MAX;
    bar->n_regions = n_parts;
    bar->regions = g_memdup2(parts, n_parts * sizeof(*parts));
    bar->rel = g_new0(uint64_t, n_parts);
    for (unsigned int i = 0; i < n_parts; i++) {
        g_assert(parts[i].base + parts[i].size <= size);
        bar->rel[i] = parts[i].base;
        bar->regions[i].space = type == PCI_BAR_IO ? GUEST_SPACE_IO : GUEST_SPACE_MEM;
        bar->regions[i].link = (ListNode){0};
    }
    reg[0] = bar_type_bits(type);
    store_le32(mask, (uint32_t)~(size - 1));
    if (type == PCI_BAR_MEM64_PREFETCH) {
        store_le64(mask, ~(size - 1));
    }
}

/* --- Capabilities --- */

static bool range_free(const PciDevice *dev, unsigned int offset, unsigned int size)
{
    if (offset < 0x40 || offset + size > PCI_CONFIG_SIZE) {
        return false;
    }
    for (unsigned int i = 0; i < size; i++) {
        if (dev->cap_used[offset + i]) {
            return false;
        }
    }
    return true;
}

int pci_add_capability(PciDevice *dev, uint8_t cap_id, unsigned int offset, unsigned int size, Error **errp)
{
    if (!offset) {
        for (offset = 0x40; offset < PCI_CONFIG_SIZE && !range_free(dev, offset, size); offset += 4) {
        }
    }
    if (!range_free(dev, offset, size)) {
        error_setg(errp, "PCI capability 0x%x of %u bytes does not fit at offset 0x%x", cap_id, size, offset);
        return -1;
    }
    memset(dev->cap_used + offset, cap_id, size);
    memset(dev->config + offset, 0, size);
    memset(dev->wmask + offset, 0, size);
    dev->config[offset] = cap_id;
    dev->config[offset + 1] = dev->config[PCI_CAPABILITY_LIST];
    dev->config[PCI_CAPABILITY_LIST] = (uint8_t)offset;
    dev->config[PCI_STATUS] |= PCI_STATUS_CAP_LIST;
    return (int)offset;
}

/* --- PCI Express endpoints --- */

#define EXP_SIZE 0x3c
#define EXP_FLAGS 2
#define EXP_DEVCAP 4
#define EXP_DEVCTL 8
#define EXP_LNKCAP 0xc
#define EXP_LNKCTL 0x10
#define EXP_LNKSTA 0x12
#define EXP_DEVCAP2 0x24
#define EXP_DEVCTL2 0x28
#define EXP_DEVCTL_FLR 0x8000
#define PM_SIZE 8

bool pci_add_express_endpoint(PciDevice *dev, Error **errp)
{
    int exp = pci_add_capability(dev, PCI_CAP_ID_EXP, 0, EXP_SIZE, errp), pm;

    if (exp < 0) {
        return false;
    }
    store_le16(dev->config + exp + EXP_FLAGS, 0x0002);           /* version 2, endpoint */
    store_le32(dev->config + exp + EXP_DEVCAP, 0x10008000);      /* function-level reset, role-based errors */
    store_le16(dev->wmask + exp + EXP_DEVCTL, 0x000f);           /* error reporting */
    store_le32(dev->config + exp + EXP_LNKCAP, 0x00000411);      /* 2.5 GT/s, one lane */
    store_le16(dev->wmask + exp + EXP_LNKCTL, 0x00c0);
    store_le16(dev->config + exp + EXP_LNKSTA, 0x0011);
    store_le32(dev->config + exp + EXP_DEVCAP2, 0x00300000);     /* prefixes */
    store_le16(dev->wmask + exp + EXP_DEVCTL2, 0x8000);
    dev->exp_cap = (unsigned int)exp;
    pm = pci_add_capability(dev, PCI_CAP_ID_PM, 0, PM_SIZE, errp);
    if (pm < 0) {
        return false;
    }
    dev->config[pm + 2] = 3; /* version */
    dev->wmask[pm + 4] = 3;  /* power state */
    return true;
}

static bool touches(unsigned int addr, unsigned int len, unsigned int reg, unsigned int reg_len)
{
    return addr < reg + reg_len && reg < addr + len;
}

/* Control registers of the capability go back to 0. */
static void express_reset(PciDevice *dev)
{
    for (unsigned int i = 0; i < EXP_SIZE; i++) {
        dev->config[dev->exp_cap + i] &= (uint8_t)~dev->wmask[dev->exp_cap + i];
    }
}

static void express_config_written(PciDevice *dev, unsigned int addr, unsigned int len, uint32_t value)
{
    unsigned int reg = dev->exp_cap + EXP_DEVCTL + 1;

    /* The top bit is not kept: it starts a reset. */
    if ((load_le32(dev->config + dev->exp_cap + EXP_DEVCAP) & 0x10000000) && touches(addr, len, reg, 1) &&
        (value >> (8 * (reg - addr)) & (EXP_DEVCTL_FLR >> 8))) {
        device_reset(&dev->qdev);
    }
}

/* --- INTx --- */

static void intx_update(PciDevice *dev)
{
    uint16_t command = load_le16(dev->config + PCI_COMMAND);
    int out = dev->intx && !(command & PCI_COMMAND_INTX_DISABLE);
    int pin = dev->config[PCI_INTERRUPT_PIN] - 1;

    if (dev->intx) {
        dev->config[PCI_STATUS] |= PCI_STATUS_INTERRUPT;
    } else {
        dev->config[PCI_STATUS] &= ~PCI_STATUS_INTERRUPT;
    }
    if (out == dev->intx_out || pin < 0) {
        return;
    }
    dev->intx_out = out;
    /* Bridges pass pins on in turns. */
    for (; pci_bus(dev)->bridge; dev = pci_bus(dev)->bridge) {
        pin = (PCI_SLOT(dev->devfn) + pin) % 4;
    }
    if (pci_bus(dev)->set_irq) {
        pci_bus(dev)->set_irq(pci_bus(dev)->set_irq_opaque, dev, pin, out);
    }
}

void pci_set_intx(PciDevice *dev, int level)
{
    dev->intx = !!level;
    intx_update(dev);
}

static void intx_bh(void *opaque)
{
    PciDevice *dev = opaque;

    pci_set_intx(dev, pci_class(dev)->intx_level(dev));
}

void pci_intx_kick(PciDevice *dev)
{
    aio_bh_schedule(dev->intx_bh);
}

/* --- Config space --- */

uint32_t pci_config_read(PciDevice *dev, unsigned int addr, unsigned int len)
{
    uint32_t value = 0;

    if (pci_class(dev)->config_read && addr < PCI_CONFIG_SIZE) {
        pci_class(dev)->config_read(dev, addr, MIN(len, PCI_CONFIG_SIZE - addr));
    }
    for (unsigned int i = 0; i < len; i++) {
        /* PCI Express devices have 4 KiB, with nothing in what is beyond. */
        uint8_t byte = dev->exp_cap ? 0 : 0xff;

        if (addr < PCI_CONFIG_SIZE && i < PCI_CONFIG_SIZE - addr) {
            byte = dev->config[addr + i];
        }
        value |= (uint32_t)byte << (8 * i);
    }
    return value;
}

void pci_config_write(PciDevice *dev, unsigned int addr, uint32_t value, unsigned int len)
{
    if (addr >= PCI_CONFIG_SIZE) {
        return;
    }
    len = MIN(len, PCI_CONFIG_SIZE - addr);
    for (unsigned int i = 0; i < len; i++) {
        uint8_t byte = value >> (8 * i), mask = dev->wmask[addr + i];
        uint8_t *reg = &dev->config[addr + i];

        *reg = (*reg & ~mask) | (byte & mask);
        *reg &= ~(byte & dev->w1cmask[addr + i]);
    }
    if (touches(addr, len, PCI_COMMAND, 2) || touches(addr, len, PCI_BASE_ADDRESS_0, 4 * PCI_BARS)) {
        atomic_store_explicit(&dev->bus_master, dev->config[PCI_COMMAND] & PCI_COMMAND_MASTER,
                              memory_order_relaxed);
        pci_update_mappings(dev);
        intx_update(dev);
    }
    if (dev->msix) {
        pci_msix_config_written(dev, addr, len);
    }
    if (pci_class(dev)->config_write) {
        pci_class(dev)->config_write(dev, addr, len);
    }
    if (dev->exp_cap) {
        express_config_written(dev, addr, len, value);
    }
}

static void config_init(PciDevice *dev)
{
    const PciDeviceClass *pc = pci_class(dev);

    memset(dev->config, 0, sizeof(dev->config));
    memset(dev->wmask, 0, sizeof(dev->wmask));
    memset(dev->w1cmask, 0, sizeof(dev->w1cmask));
    memset(dev->cap_used, 0, sizeof(dev->cap_used));
    store_le16(dev->config + PCI_VENDOR_ID, pc->vendor_id);
    store_le16(dev->config + PCI_DEVICE_ID, pc->device_id);
    dev->config[PCI_REVISION_ID] = pc->revision;
    store_le16(dev->config + PCI_CLASS_DEVICE, pc->class_id);
    dev->exp_cap = 0;
    if (pc->is_bridge) {
        dev->config[PCI_HEADER_TYPE] = PCI_HEADER_BRIDGE;
    } else {
        store_le16(dev->config + PCI_SUBSYSTEM_VENDOR_ID,
                   pc->subsystem_vendor_id ? pc->subsystem_vendor_id : DEFAULT_SUBSYSTEM_VENDOR);
        store_le16(dev->config + PCI_SUBSYSTEM_ID, pc->subsystem_id ? pc->subsystem_id : DEFAULT_SUBSYSTEM);
    }
    if (dev->multifunction) {
        dev->config[PCI_HEADER_TYPE] |= PCI_HEADER_MULTI_FUNCTION;
    }
    store_le16(dev->wmask + PCI_COMMAND, PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
                                             PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
    store_le16(dev->w1cmask + PCI_STATUS, STATUS_W1C);
    dev->wmask[PCI_CACHE_LINE_SIZE] = 0xff;
    dev->wmask[PCI_INTERRUPT_LINE] = 0xff;
}

/* --- Life cycle --- */

static void release(PciDevice *dev)
{
    bars_free(dev);
    pci_msix_free(dev);
    if (dev->intx_bh) {
        aio_bh_delete(dev->intx_bh);
        dev->intx_bh = NULL;
    }
}

bool pci_device_realize(DeviceState *qdev, Error **errp)
{
    PciDevice *dev = (PciDevice *)qdev;
    const PciDeviceClass *pc = pci_class(dev);

    config_init(dev);
    if (pc->intx_level) {
        dev->intx_bh = aio_bh_new(aio_context_main(), intx_bh, dev);
    }
    if (pc->realize && !pc->realize(dev, errp)) {
        release(dev);
        return false;
    }
    return true;
}

void pci_device_unrealize(DeviceState *qdev)
{
    PciDevice *dev = (PciDevice *)qdev;
    const PciDeviceClass *pc = pci_class(dev);

    for (unsigned int i = 0; i < PCI_BARS; i++) {
        bar_unmap(&dev->bars[i]);
    }
    if (pc->unrealize) {
        pc->unrealize(dev);
    }
    pci_set_intx(dev, 0);
    release(dev);
}

void pci_device_reset(DeviceState *qdev)
{
    PciDevice *dev = (PciDevice *)qdev;
    const PciDeviceClass *pc = pci_class(dev);

    if (dev->exp_cap) {
        express_reset(dev);
    }
    if (pc->reset) {
        pc->reset(dev);
    }
    pci_set_intx(dev, 0);
    store_le16(dev->config + PCI_COMMAND, 0);
    dev->config[PCI_STATUS] &= PCI_STATUS_CAP_LIST | PCI_STATUS_INTERRUPT;
    dev->config[PCI_CACHE_LINE_SIZE] = 0;
    dev->config[PCI_INTERRUPT_LINE] = 0;
    atomic_store_explicit(&dev->bus_master, false, memory_order_relaxed);
    for (unsigned int i = 0; i < PCI_BARS; i++) {
        uint8_t *reg = dev->config + PCI_BASE_ADDRESS_0 + 4 * i;
        if (dev->bars[i].type != PCI_BAR_NONE) {
            store_le32(reg, bar_type_bits(dev->bars[i].type));
            if (dev->bars[i].type == PCI_BAR_MEM64_PREFETCH) {
                store_le32(reg + 4, 0);
            }
        }
    }
    pci_update_mappings(dev);
    pci_msix_reset(dev);
}
