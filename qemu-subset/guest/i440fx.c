/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The i440FX host bridge, and the PIIX functions: ISA bridge with PIRQ routing, IDE without drives, PM with ACPI hot-plug. There is
 * no CPU to interrupt, so lines end at the ioapic, where a test can watch them.
 */
#include "guest/i440fx.h"
#include "guest/pci-host.h"

#include "base/bswap.h"

#include <string.h>

#define ACPI_HOTPLUG_BASE 0xae00
#define GPE0_BASE 0xafe0
#define SCI_IRQ 9

#define PIRQ_COUNT 4
#define PIRQ_ROUTE 0x60 /* four registers */
#define PIRQ_DISABLED 0x80

/* --- Host bridge --- */

static bool host_realize(DeviceState *dev, Error **errp)
{
    pci_host_init((PciHost *)dev, pci_bus_new(dev, TYPE_PCI_BUS, "pci.0", 0));
    return true;
}

static const DeviceClass host_class = {
    .category = "Controller/Bridge/Hub", .realize = host_realize, .unrealize = pci_host_unrealize, .reset = pci_host_reset};

/* --- PIIX3: PIRQ routing --- */

typedef struct Piix3 {
    PciDevice dev;
    DeviceState *ioapic;
    int pirq_count[PIRQ_COUNT]; /* devices that assert it */
    int irq_level[16];
} Piix3;

static void route_all(Piix3 *s)
{
    int level[16] = {0};

    for (int i = 0; i < PIRQ_COUNT; i++) {
        uint8_t route = s->dev.config[PIRQ_ROUTE + i];
        if (!(route & PIRQ_DISABLED) && s->pirq_count[i] > 0) {
            level[route & 15] = 1;
        }
    }
    for (int irq = 0; irq < 16; irq++) {
        if (level[irq] != s->irq_level[irq]) {
            s->irq_level[irq] = level[irq];
            irq_set(device_irq_in(s->ioapic, irq), level[irq]);
        }
    }
}

static void set_pci_irq(void *opaque, PciDevice *dev, int pin, int level)
{
    Piix3 *s = opaque;

    s->pirq_count[(pin + PCI_SLOT(dev->devfn) + 3) % PIRQ_COUNT] += level ? 1 : -1;
    route_all(s);
}

static void piix3_config_write(PciDevice *dev, unsigned int addr, unsigned int len)
{
    if (addr < PIRQ_ROUTE + PIRQ_COUNT && addr + len > PIRQ_ROUTE) {
        route_all((Piix3 *)dev);
    }
}

static bool piix3_realize(PciDevice *dev, Error **errp)
{
    store_le16(dev->config + PCI_STATUS, 0x0200);
    memset(dev->wmask + PIRQ_ROUTE, 0xff, PIRQ_COUNT);
    memset(dev->config + PIRQ_ROUTE, PIRQ_DISABLED, PIRQ_COUNT);
    return true;
}

static void piix3_unrealize(PciDevice *dev)
{
    pci_bus(dev)->set_irq = NULL;
}

static void piix3_reset(PciDevice *dev)
{
    memset(dev->config + PIRQ_ROUTE, PIRQ_DISABLED, PIRQ_COUNT);
    route_all((Piix3 *)dev);
}

static const PciDeviceClass piix3_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x7000, .class_id = 0x0601,
    .realize = piix3_realize, .unrealize = piix3_unrealize, .reset = piix3_reset,
    .config_write = piix3_config_write,
};

/* --- The other functions --- */

static const PciDeviceClass i440fx_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x1237, .class_id = 0x0600, .revision = 0x02,
};

/* Bus master registers of two channels that have no drives. */
static uint64_t bus_master_read(void *opaque, uint64_t offset, unsigned int size)
{
    return (offset & 3) == 0 || (offset & 3) == 2 ? 0 : 0xff;
}

static const GuestRegionOps bus_master_ops = {.read = bus_master_read, .sizes = 1};

static bool ide_realize(PciDevice *dev, Error **errp)
{
    const GuestRegion part = {.name = "piix-bmdma", .ops = &bus_master_ops, .opaque = dev, .size = 16};

    dev->config[PCI_CLASS_PROG] = 0x80;
    store_le16(dev->config + PCI_STATUS, 0x0280);
    pci_add_bar(dev, 4, PCI_BAR_IO, 16, &part, 1);
    return true;
}

static const PciDeviceClass ide_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Storage", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x7010, .class_id = 0x0101, .realize = ide_realize,
};

typedef struct Piix4Pm {
    PciDevice dev;
    AcpiHotplug hotplug;
    IrqLine *sci;
} Piix4Pm;

static bool pm_realize(PciDevice *dev, Error **errp)
{
    Piix4Pm *s = (Piix4Pm *)dev;

    store_le16(dev->config + PCI_STATUS, 0x0280);
    dev->config[PCI_INTERRUPT_PIN] = 1;
    acpi_hotplug_init(&s->hotplug, pci_bus(dev), true, ACPI_HOTPLUG_BASE, GPE0_BASE, s->sci);
    return true;
}

static void pm_unrealize(PciDevice *dev)
{
    acpi_hotplug_cleanup(&((Piix4Pm *)dev)->hotplug);
}

static void pm_reset(PciDevice *dev)
{
    acpi_hotplug_reset(&((Piix4Pm *)dev)->hotplug);
}

static const PciDeviceClass pm_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .not_hotpluggable = true},
    .vendor_id = 0x8086, .device_id = 0x7113, .class_id = 0x0680, .revision = 0x03,
    .realize = pm_realize, .unrealize = pm_unrealize, .reset = pm_reset,
};

/* --- Assembly --- */

static PciDevice *function_new(const char *type, int devfn)
{
    PciDevice *dev = (PciDevice *)device_new(type);

    dev->addr = devfn;
    dev->multifunction = PCI_SLOT(devfn) == 1 && !PCI_FUNC(devfn);
    return dev;
}

static bool function_realize(PciDevice *dev, PciBus *bus, Error **errp)
{
    return device_realize_as(&dev->qdev, &bus->bus, NULL, NULL, errp);
}

PciBus *i440fx_create(bool acpi, Error **errp)
{
    PciHost *host = (PciHost *)device_new(TYPE_I440FX_HOST);
    DeviceState *ioapic = device_new(TYPE_IOAPIC);

    if (!device_realize_as(&host->dev, bus_find("System"), object_container("/machine"), "i440fx", errp) ||
        !device_realize_as(ioapic, bus_find("System"), &host->dev.obj, "ioapic", errp)) {
        return NULL;
    }
    PciBus *bus = host->bus;
    Piix3 *piix3 = (Piix3 *)function_new(TYPE_PIIX3, PCI_DEVFN(1, 0));
    piix3->ioapic = ioapic;
    bus->set_irq = set_pci_irq;
    bus->set_irq_opaque = piix3;
    if (!function_realize(function_new(TYPE_I440FX, PCI_DEVFN(0, 0)), bus, errp) ||
        !function_realize(&piix3->dev, bus, errp) ||
        !function_realize(function_new(TYPE_PIIX3_IDE, PCI_DEVFN(1, 1)), bus, errp)) {
        return NULL;
    }
    if (acpi) {
        Piix4Pm *pm = (Piix4Pm *)function_new(TYPE_PIIX4_PM, PCI_DEVFN(1, 3));
        pm->sci = device_irq_in(ioapic, SCI_IRQ);
        if (!function_realize(&pm->dev, bus, errp)) {
            return NULL;
        }
    }
    return bus;
}

static const ObjectType types[] = {
    {.name = TYPE_I440FX_HOST, .parent = TYPE_DEVICE, .size = sizeof(PciHost), .klass = &host_class},
    {.name = TYPE_I440FX, .parent = TYPE_PCI_DEVICE, .klass = &i440fx_class, .desc = "Host bridge"},
    {.name = TYPE_PIIX3, .parent = TYPE_PCI_DEVICE, .size = sizeof(Piix3), .klass = &piix3_class},
    {.name = TYPE_PIIX3_IDE, .parent = TYPE_PCI_DEVICE, .klass = &ide_class},
    {.name = TYPE_PIIX4_PM, .parent = TYPE_PCI_DEVICE, .size = sizeof(Piix4Pm), .klass = &pm_class, .desc = "PM"},
};

void i440fx_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
