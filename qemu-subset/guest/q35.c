/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Q35 host bridge with memory-mapped configuration, and the ICH9 functions: LPC bridge with PIRQ routing, AHCI without drives,
 * SMBus without devices.
 */
#include "guest/q35.h"
#include "guest/acpi-hotplug.h"
#include "guest/ioapic.h"
#include "guest/pci-host.h"

#include "base/bswap.h"

#include <string.h>

#define TYPE_Q35_HOST "q35-pcihost"
#define TYPE_MCH "mch"
#define TYPE_LPC "ICH9-LPC"
#define TYPE_AHCI "ich9-ahci"
#define TYPE_SMBUS "ICH9-SMB"

/* --- Host bridge --- */

static bool host_realize(DeviceState *dev, Error **errp)
{
    pci_host_init((PciHost *)dev, pci_bus_new(dev, TYPE_PCIE_BUS, "pcie.0", 1));
    return true;
}

static const DeviceClass host_class = {
    .category = "Controller/Bridge/Hub", .realize = host_realize, .unrealize = pci_host_unrealize, .reset = pci_host_reset};

/* --- MCH: the window of memory-mapped configuration space --- */

#define PCIEXBAR 0x60
#define PCIEXBAR_ENABLE 1u
#define PCIEXBAR_DEFAULT 0xb0000000u
#define WINDOW_MAX (256ULL << 20)

typedef struct Mch {
    PciDevice dev;
    GuestRegion window;
} Mch;

/* One megabyte a bus, one page a function. */
static PciDevice *window_device(Mch *s, uint64_t offset)
{
    PciBus *bus = pci_bus_by_number(pci_bus(&s->dev), (unsigned int)(offset >> 20));

    return bus ? bus->devices[offset >> 12 & 0xff] : NULL;
}

static uint64_t window_read(void *opaque, uint64_t offset, unsigned int size)
{
    PciDevice *dev = window_device(opaque, offset);

    return dev && dev->qdev.realized ? pci_config_read(dev, offset & 0xfff, size) : UINT64_MAX;
}

static void window_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    PciDevice *dev = window_device(opaque, offset);

    if (dev && dev->qdev.realized) {
        pci_config_write(dev, offset & 0xfff, (uint32_t)value, size);
    }
}

static const GuestRegionOps window_ops = {.read = window_read, .write = window_write, .sizes = 1 | 2 | 4};

static void update_window(Mch *s)
{
    uint64_t reg = load_le64(s->dev.config + PCIEXBAR);
    unsigned int length = reg >> 1 & 3;
    uint64_t size = WINDOW_MAX >> length;

    guest_region_remove(&s->window);
    if ((reg & PCIEXBAR_ENABLE) && length < 3) {
        s->window = (GuestRegion){.name = "pcie-mmcfg-mmio", .ops = &window_ops, .opaque = s,
                                  .space = GUEST_SPACE_MEM, .base = reg & 0xfffffffffULL & ~(size - 1), .size = size,
                                  .priority = 1};
        guest_region_add(&s->window);
    }
}

static void mch_config_write(PciDevice *dev, unsigned int addr, unsigned int len)
{
    if (addr < PCIEXBAR + 8 && addr + len > PCIEXBAR) {
        update_window((Mch *)dev);
    }
}

static bool mch_realize(PciDevice *dev, Error **errp)
{
    store_le64(dev->config + PCIEXBAR, PCIEXBAR_DEFAULT);
    store_le64(dev->wmask + PCIEXBAR, 0xffc000007ULL);
    return true;
}

static void mch_unrealize(PciDevice *dev)
{
    guest_region_remove(&((Mch *)dev)->window);
}

static void mch_reset(PciDevice *dev)
{
    store_le64(dev->config + PCIEXBAR, PCIEXBAR_DEFAULT);
    update_window((Mch *)dev);
}

static const PciDeviceClass mch_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x29c0, .class_id = 0x0600,
    .realize = mch_realize, .unrealize = mch_unrealize, .reset = mch_reset, .config_write = mch_config_write,
};

/* --- LPC: PIRQ A..D at 0x60, E..H at 0x68 --- */

#define ACPI_HOTPLUG_BASE 0x0cc0
#define PIRQ_COUNT 8
#define PIRQ_DISABLED 0x80
#define PIRQ_DIRECT 16 /* PIRQ A is also wired to this input of the ioapic, and so on */
#define PIRQ_SLOTS 4   /* slots take turns from PIRQ E */

typedef struct Lpc {
    PciDevice dev;
    DeviceState *ioapic;
    int count[PIRQ_COUNT]; /* devices that assert it */
    int level[IOAPIC_PINS];
    bool acpi;
    AcpiHotplug hotplug;
} Lpc;

static unsigned int route_register(unsigned int pirq)
{
    return pirq < 4 ? 0x60 + pirq : 0x68 + pirq - 4;
}

static void route_all(Lpc *s)
{
    int level[IOAPIC_PINS] = {0};

    for (unsigned int i = 0; i < PIRQ_COUNT; i++) {
        uint8_t route = s->dev.config[route_register(i)];
        if (s->count[i] > 0) {
            level[PIRQ_DIRECT + i] = 1;
            if (!(route & PIRQ_DISABLED)) {
                level[route & 15] = 1;
            }
        }
    }
    for (int n = 0; n < IOAPIC_PINS; n++) {
        if (level[n] != s->level[n]) {
            s->level[n] = level[n];
            irq_set(device_irq_in(s->ioapic, n), level[n]);
        }
    }
}

static void set_pci_irq(void *opaque, PciDevice *dev, int pin, int level)
{
    Lpc *s = opaque;

    s->count[PIRQ_SLOTS + (PCI_SLOT(dev->devfn) + pin) % 4] += level ? 1 : -1;
    route_all(s);
}

static void lpc_config_write(PciDevice *dev, unsigned int addr, unsigned int len)
{
    if (addr < 0x6c && addr + len > 0x60) {
        route_all((Lpc *)dev);
    }
}

static void set_routes(PciDevice *dev)
{
    for (unsigned int i = 0; i < PIRQ_COUNT; i++) {
        dev->config[route_register(i)] = PIRQ_DISABLED;
        dev->wmask[route_register(i)] = 0xff;
    }
}

static bool lpc_realize(PciDevice *dev, Error **errp)
{
    Lpc *s = (Lpc *)dev;

    set_routes(dev);
    if (s->acpi) {
        /* The GPE block lies where firmware puts it, and there is none. */
        acpi_hotplug_init(&s->hotplug, pci_bus(dev), false, ACPI_HOTPLUG_BASE, 0, NULL);
    }
    return true;
}

static void lpc_unrealize(PciDevice *dev)
{
    acpi_hotplug_cleanup(&((Lpc *)dev)->hotplug);
    pci_bus(dev)->set_irq = NULL;
}

static void lpc_reset(PciDevice *dev)
{
    set_routes(dev);
    route_all((Lpc *)dev);
    if (((Lpc *)dev)->acpi) {
        acpi_hotplug_reset(&((Lpc *)dev)->hotplug);
    }
}

static const PciDeviceClass lpc_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x2918, .class_id = 0x0601, .revision = 0x02,
    .realize = lpc_realize, .unrealize = lpc_unrealize, .reset = lpc_reset, .config_write = lpc_config_write,
};

/* --- AHCI: a controller whose ports have nothing attached --- */

static uint64_t ahci_read(void *opaque, uint64_t offset, unsigned int size)
{
    switch (offset) {
    case 0x00: /* capabilities: 6 ports, 32 slots, AHCI only */
        return 0xc0141f05;
    case 0x04: /* AHCI enabled */
        return 0x80000000;
    case 0x0c: /* ports implemented */
        return 0x3f;
    case 0x10: /* version 1.0 */
        return 0x00010000;
    default:
        return 0;
    }
}

static const GuestRegionOps ahci_ops = {.read = ahci_read, .sizes = 4};

static bool ahci_realize(PciDevice *dev, Error **errp)
{
    const GuestRegion part = {.name = "ahci", .ops = &ahci_ops, .opaque = dev, .size = 4096};

    dev->config[PCI_CLASS_PROG] = 0x01;
    dev->config[PCI_INTERRUPT_PIN] = 1;
    pci_add_bar(dev, 4, PCI_BAR_IO, 32, NULL, 0); /* where a driver expects the index and data pair */
    pci_add_bar(dev, 5, PCI_BAR_MEM32, 4096, &part, 1);
    /* Serial ATA capability, revision 1.0; then message-signalled interrupts, which nothing sends. */
    if (pci_add_capability(dev, 0x12, 0xa8, 8, errp) < 0 || pci_add_capability(dev, 0x05, 0x80, 14, errp) < 0) {
        return false;
    }
    dev->config[0xa8 + 2] = 0x10;
    dev->config[0x80 + 2] = 0x80;
    return true;
}

static const PciDeviceClass ahci_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Storage", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x2922, .class_id = 0x0106, .revision = 0x02, .realize = ahci_realize,
};

/* No device is on the bus: its registers read as ones. */
static bool smbus_realize(PciDevice *dev, Error **errp)
{
    dev->config[PCI_INTERRUPT_PIN] = 1;
    pci_add_bar(dev, 4, PCI_BAR_IO, 64, NULL, 0);
    return true;
}

static const PciDeviceClass smbus_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Misc", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x2930, .class_id = 0x0c05, .revision = 0x02, .realize = smbus_realize,
};

/* --- Assembly --- */

static PciDevice *function_new(const char *type, int devfn)
{
    PciDevice *dev = (PciDevice *)device_new(type);

    dev->addr = devfn;
    dev->multifunction = devfn == PCI_DEVFN(31, 0);
    return dev;
}

PciBus *q35_create(bool acpi, Error **errp)
{
    PciHost *q35 = (PciHost *)device_new(TYPE_Q35_HOST);
    DeviceState *ioapic = device_new(TYPE_IOAPIC);

    if (!device_realize_as(&q35->dev, bus_find("System"), object_container("/machine"), "q35", errp) ||
        !device_realize_as(ioapic, bus_find("System"), &q35->dev.obj, "ioapic", errp)) {
        return NULL;
    }
    PciBus *bus = q35->bus;
    PciDevice *mch = function_new(TYPE_MCH, PCI_DEVFN(0, 0)), *lpc = function_new(TYPE_LPC, PCI_DEVFN(31, 0));
    ((Lpc *)lpc)->ioapic = ioapic;
    ((Lpc *)lpc)->acpi = acpi;
    bus->set_irq = set_pci_irq;
    bus->set_irq_opaque = lpc;
    if (!device_realize_as(&mch->qdev, &bus->bus, &q35->dev.obj, "mch", errp) ||
        !device_realize_as(&lpc->qdev, &bus->bus, NULL, NULL, errp) ||
        !device_realize_as(&function_new(TYPE_AHCI, PCI_DEVFN(31, 2))->qdev, &bus->bus, NULL, NULL, errp) ||
        !device_realize_as(&function_new(TYPE_SMBUS, PCI_DEVFN(31, 3))->qdev, &bus->bus, NULL, NULL, errp)) {
        return NULL;
    }
    return bus;
}

static const ObjectType types[] = {
    {.name = TYPE_Q35_HOST, .parent = TYPE_DEVICE, .size = sizeof(PciHost), .klass = &host_class},
    {.name = TYPE_MCH, .parent = TYPE_PCI_DEVICE, .size = sizeof(Mch), .klass = &mch_class, .desc = "Host bridge"},
    {.name = TYPE_LPC, .parent = TYPE_PCI_DEVICE, .size = sizeof(Lpc), .klass = &lpc_class,
     .desc = "ICH9 LPC bridge"},
    {.name = TYPE_AHCI, .parent = TYPE_PCI_DEVICE, .klass = &ahci_class},
    {.name = TYPE_SMBUS, .parent = TYPE_PCI_DEVICE, .klass = &smbus_class, .desc = "ICH9 SMBUS Bridge"},
};

void q35_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
