/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACPI hot-plug of PCI slots. */
#include "guest/acpi-hotplug.h"

#include "guest/private.h"

#include <string.h>

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

    if (s->sci && level != s->sci_level) {
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
    bool built_in_bridge = pci_class(dev)->is_bridge && !dev->qdev.hotplugged;

    return !dev->qdev.machine_part && !device_class(&dev->qdev)->not_hotpluggable && !built_in_bridge;
}

/*
 * Buses get their numbers once, when all that the machine starts with is there: each before those behind it, and of two on the same
 * bus the one that came last first.
 */
static void number_below(AcpiHotplug *s, PciBus *bus)
{
    DeviceState *dev;

    if (bus->bus.hotplug && s->numbered < ACPI_HOTPLUG_BUSES) {
        bus->hotplug_number = s->numbered++;
    }
    for (dev = list_empty(&bus->bus.devices) ? NULL : list_last(&bus->bus.devices, DeviceState, bus_link); dev;
         dev = device_before(dev)) {
        PciBus *behind = pci_bus_behind((PciDevice *)dev);

        if (behind) {
            number_below(s, behind);
        }
    }
}

static PciBus *find_number(PciBus *bus, uint32_t number)
{
    PciBus *hit = bus->hotplug_number >= 0 && (uint32_t)bus->hotplug_number == number ? bus : NULL;

    for (unsigned int i = 0; i < 256 && !hit; i++) {
        PciBus *behind = bus->devices[i] ? pci_bus_behind(bus->devices[i]) : NULL;

        hit = behind ? find_number(behind, number) : NULL;
    }
    return hit;
}

static uint32_t removable_slots(const PciBus *bus)
{
    uint32_t mask = UINT32_MAX;

    for (int devfn = 0; devfn < 256; devfn++) {
        const PciDevice *dev = bus->devices[devfn];
        if (dev && !removable(dev)) {
            mask &= ~(1u << PCI_SLOT(devfn));
        }
    }
    return mask;
}

static void eject(AcpiHotplug *s, uint32_t number, uint32_t slots)
{
    PciBus *bus = find_number(s->bus, number);

    for (int devfn = 0; bus && devfn < 256; devfn++) {
        PciDevice *dev = bus->devices[devfn];
        if (dev && dev->qdev.realized && (slots & 1u << PCI_SLOT(devfn)) && removable(dev)) {
            device_unplug(&dev->qdev);
        }
    }
    s->up[number] &= ~slots;
    s->down[number] &= ~slots;
}

static uint64_t reg_read(void *opaque, uint64_t offset, unsigned int size)
{
    AcpiHotplug *s = opaque;
    const PciBus *bus;
    uint32_t value = 0;

    if (offset == REG_SELECT) {
        return s->select;
    }
    if (s->select >= ACPI_HOTPLUG_BUSES) {
        return 0;
    }
    switch (offset) {
    case REG_UP:
        value = s->up[s->select];
        s->up[s->select] = 0;
        break;
    case REG_DOWN:
        value = s->down[s->select];
        break;
    case REG_REMOVABLE:
        bus = find_number(s->bus, s->select);
        value = bus ? removable_slots(bus) : UINT32_MAX;
        break;
    }
    return value;
}

static void reg_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    AcpiHotplug *s = opaque;

    if (offset == REG_SELECT) {
        s->select = (uint32_t)value;
    } else if (offset == REG_EJECT && s->select < ACPI_HOTPLUG_BUSES) {
        eject(s, s->select, (uint32_t)value);
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
    int number = ((PciBus *)dev->bus)->hotplug_number;

    if (number >= 0) {
        s->up[number] |= 1u << PCI_SLOT(((PciDevice *)dev)->devfn);
        raise_event(s);
    }
}

static bool unplug_request(void *opaque, DeviceState *dev, Error **errp)
{
    AcpiHotplug *s = opaque;

    int number = ((PciBus *)dev->bus)->hotplug_number;

    if (number < 0) {
        /* More buses than firmware can tell apart. */
        error_setg(errp, "Unsupported bus. Bus doesn't have property 'acpi-pcihp-bsel' set");
        return false;
    }
    dev->unplug_pending = true;
    s->down[number] |= 1u << PCI_SLOT(((PciDevice *)dev)->devfn);
    raise_event(s);
    return true;
}

static const HotplugOps hotplug_ops = {.plugged = plugged, .unplug_request = unplug_request};

/* Firmware starts anew and sees no request of before: what was asked to go goes now. */
static void eject_pending(void *opaque)
{
    AcpiHotplug *s = opaque;

    for (uint32_t i = 0; i < ACPI_HOTPLUG_BUSES; i++) {
        if (s->down[i]) {
            eject(s, i, s->down[i]);
        }
    }
}

void acpi_hotplug_reset(AcpiHotplug *s)
{
    if (s->numbered < 0 && device_in_hotplug_phase()) {
        s->numbered = 0;
        number_below(s, s->bus);
    }
    memset(s->up, 0, sizeof(s->up));
    s->select = 0;
    s->gpe_status = 0;
    s->gpe_enable = 0;
    update_sci(s);
}

void acpi_hotplug_init(AcpiHotplug *s, PciBus *bus, bool root, uint16_t base, uint16_t gpe_base, IrqLine *sci)
{
    *s = (AcpiHotplug){.bus = bus, .sci = sci, .numbered = -1};
    s->registers = (GuestRegion){.name = "acpi-pci-hotplug", .ops = &reg_ops, .opaque = s, .space = GUEST_SPACE_IO,
                                 .base = base, .size = REG_SIZE, .priority = 1};
    s->gpe = (GuestRegion){.name = "acpi-gpe0", .ops = &gpe_ops, .opaque = s, .space = GUEST_SPACE_IO,
                           .base = gpe_base, .size = GPE_SIZE, .priority = 1};
    guest_region_add(&s->registers);
    if (gpe_base) {
        guest_region_add(&s->gpe);
    }
    s->reset_hook = (VmResetHook){.fn = eject_pending, .opaque = s};
    vm_add_reset_hook(&s->reset_hook);
    if (root) {
        bus->bus.hotplug = &hotplug_ops;
        bus->bus.hotplug_opaque = s;
    }
    bus->hotplug_below = &hotplug_ops;
    bus->hotplug_below_opaque = s;
}

void acpi_hotplug_cleanup(AcpiHotplug *s)
{
    if (s->bus) {
        guest_region_remove(&s->registers);
        if (guest_region_added(&s->gpe)) {
            guest_region_remove(&s->gpe);
        }
        list_remove(&s->reset_hook.link);
        s->bus->bus.hotplug = s->bus->hotplug_below = NULL;
    }
}
