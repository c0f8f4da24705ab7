/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACPI hot-plug of PCI slots. */
#include "guest/acpi-hotplug.h"

#include "guest/private.h"

#define REG_UP 0x00
#define REG_DOWN 0x04
#define REG_EJECT 0x08
#define REG_REMOVABLE 0x0c
#define REG_SELECT 0x10
#define REG_SIZE 0x18 /* with the ACPI index, always 0, at 0x14 */

#define GPE_SIZE 4
#define GPE_PCI_HOTPLUG 0x0002

static void update_sci(AcpiHotplug *s)
{
    int level = (s->gpe_status & s->gpe_enable) != 0;

    if (level != s->sci_level) {
        s->sci_level = level;
        irq_set(s->sci, level);
    }
}

static void raise_event(AcpiHotplug *s)
{
    s->gpe_status |= GPE_PCI_HOTPLUG;
    update_sci(s);
}

static bool removable(const PciDevice *dev)
{
    return !dev->qdev.machine_part && !device_class(&dev->qdev)->not_hotpluggable;
}

static uint32_t removable_slots(const AcpiHotplug *s)
{
    uint32_t mask = UINT32_MAX;

    for (int devfn = 0; devfn < 256; devfn++) {
        const PciDevice *dev = s->bus->devices[devfn];
        if (dev && !removable(dev)) {
            mask &= ~(1u << PCI_SLOT(devfn));
        }
    }
    return mask;
}

static void eject(AcpiHotplug *s, uint32_t slots)
{
    for (int devfn = 0; devfn < 256; devfn++) {
        PciDevice *dev = s->bus->devices[devfn];
        if (dev && dev->qdev.realized && (slots & 1u << PCI_SLOT(devfn)) && removable(dev)) {
            device_unplug(&dev->qdev);
        }
    }
    s->up &= ~slots;
    s->down &= ~slots;
}

/* Only the root bus, number 0, is there to be selected. */
static uint64_t reg_read(void *opaque, uint64_t offset, unsigned int size)
{
    AcpiHotplug *s = opaque;
    uint32_t value = 0;

    if (offset == REG_SELECT) {
        return s->select;
    }
    if (s->select) {
        return 0;
    }
    switch (offset) {
    case REG_UP:
        value = s->up;
        s->up = 0;
        break;
    case REG_DOWN:
        value = s->down;
        break;
    case REG_REMOVABLE:
        value = removable_slots(s);
        break;
    }
    return value;
}

static void reg_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    AcpiHotplug *s = opaque;

    if (offset == REG_SELECT) {
        s->select = (uint32_t)value;
    } else if (offset == REG_EJECT && !s->select) {
        eject(s, (uint32_t)value);
    }
}

static const GuestRegionOps reg_ops = {.read = reg_read, .write = reg_write, .sizes = 4};

/* Status, cleared by writing ones, and enable; two bytes each. */
static uint64_t gpe_read(void *opaque, uint64_t offset, unsigned int size)
{
    AcpiHotplug *s = opaque;
    uint16_t reg = offset < 2 ? s->gpe_status : s->gpe_enable;

    return (uint8_t)(reg >> (8 * (offset & 1)));
}

static void gpe_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    AcpiHotplug *s = opaque;
    unsigned int shift = 8 * (offset & 1);

    if (offset < 2) {
        s->gpe_status &= (uint16_t)~((value & 0xff) << shift);
    } else {
        s->gpe_enable = (uint16_t)((s->gpe_enable & ~(0xff << shift)) | (value & 0xff) << shift);
    }
    update_sci(s);
}

static const GuestRegionOps gpe_ops = {.read = gpe_read, .write = gpe_write, .sizes = 1};

/* --- What happens on the bus --- */

static void plugged(void *opaque, DeviceState *dev)
{
    AcpiHotplug *s = opaque;

    s->up |= 1u << PCI_SLOT(((PciDevice *)dev)->devfn);
    raise_event(s);
}

static bool unplug_request(void *opaque, DeviceState *dev, Error **errp)
{
    AcpiHotplug *s = opaque;

    dev->unplug_pending = true;
    s->down |= 1u << PCI_SLOT(((PciDevice *)dev)->devfn);
    raise_event(s);
    return true;
}

static const HotplugOps hotplug_ops = {.plugged = plugged, .unplug_request = unplug_request};

/* Firmware starts anew and sees no request of before: what was asked to go goes now. */
static void eject_pending(void *opaque)
{
    AcpiHotplug *s = opaque;

    eject(s, s->down);
}

void acpi_hotplug_reset(AcpiHotplug *s)
{
    s->up = 0;
    s->select = 0;
    s->gpe_status = 0;
    s->gpe_enable = 0;
    update_sci(s);
}

void acpi_hotplug_init(AcpiHotplug *s, PciBus *bus, uint16_t base, uint16_t gpe_base, IrqLine *sci)
{
    *s = (AcpiHotplug){.bus = bus, .sci = sci};
    s->registers = (GuestRegion){.name = "acpi-pci-hotplug", .ops = &reg_ops, .opaque = s, .space = GUEST_SPACE_IO,
                                 .base = base, .size = REG_SIZE, .priority = 1};
    s->gpe = (GuestRegion){.name = "acpi-gpe0", .ops = &gpe_ops, .opaque = s, .space = GUEST_SPACE_IO,
                           .base = gpe_base, .size = GPE_SIZE, .priority = 1};
    guest_region_add(&s->registers);
    guest_region_add(&s->gpe);
    s->reset_hook = (VmResetHook){.fn = eject_pending, .opaque = s};
    vm_add_reset_hook(&s->reset_hook);
    bus->bus.hotplug = &hotplug_ops;
    bus->bus.hotplug_opaque = s;
}

void acpi_hotplug_cleanup(AcpiHotplug *s)
{
    if (s->bus) {
        guest_region_remove(&s->registers);
        guest_region_remove(&s->gpe);
        list_remove(&s->reset_hook.link);
        s->bus->bus.hotplug = NULL;
    }
}
