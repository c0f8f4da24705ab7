/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI buses: addresses of devices, configuration by address, and the types. */
#include "guest/pci-private.h"
#include "guest/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static GPtrArray *buses; /* PciBus, in order of creation */

/* --- Addresses --- */

static const char *device_label(const DeviceState *dev)
{
    return dev->id ? dev->id : "(null)";
}

static bool check_function(PciBus *bus, PciDevice *dev, int devfn, Error **errp)
{
    const char *type = dev->qdev.obj.type->name;
    PciDevice *there = bus->devices[devfn], *zero = bus->devices[PCI_DEVFN(PCI_SLOT(devfn), 0)];

    if (there) {
        error_setg(errp, "PCI: slot %d function %d not available for %s, in use by %s,id=%s", PCI_SLOT(devfn),
                   PCI_FUNC(devfn), type, there->qdev.obj.type->name, device_label(&there->qdev));
        return false;
    }
    if (PCI_FUNC(devfn) && zero && !(zero->config[PCI_HEADER_TYPE] & PCI_HEADER_MULTI_FUNCTION)) {
        error_setg(errp, "PCI: single function device can't be populated in function %x.%x", PCI_SLOT(devfn),
                   PCI_FUNC(devfn));
        return false;
    }
    for (int fn = 1; !PCI_FUNC(devfn) && !dev->multifunction && fn < 8; fn++) {
        if (bus->devices[devfn + fn]) {
            error_setg(errp, "PCI: %x.0 indicates single function, but %x.%x is already populated.",
                       PCI_SLOT(devfn), PCI_SLOT(devfn), fn);
            return false;
        }
    }
    return true;
}

static bool plug(BusState *qbus, DeviceState *qdev, Error **errp)
{
    PciBus *bus = (PciBus *)qbus;
    PciDevice *dev = (PciDevice *)qdev;
    int devfn = dev->addr;

    if (devfn < 0) {
        for (devfn = PCI_DEVFN(bus->min_slot, 0); devfn < 256; devfn += 8) {
            int fn = 0;
            while (fn < 8 && !bus->devices[devfn + fn]) {
                fn++;
            }
            if (fn == 8) {
                break;
            }
        }
        if (devfn >= 256) {
            error_setg(errp, "PCI: no slot/function available for %s, all in use or reserved",
                       qdev->obj.type->name);
            return false;
        }
    } else if (!check_function(bus, dev, devfn, errp)) {
        return false;
    }
    dev->devfn = devfn;
    bus->devices[devfn] = dev;
    return true;
}

static void unplug(BusState *qbus, DeviceState *qdev)
{
    PciBus *bus = (PciBus *)qbus;
    PciDevice *dev = (PciDevice *)qdev;

    if (bus->devices[dev->devfn] == dev) {
        bus->devices[dev->devfn] = NULL;
    }
}

/* --- Buses behind bridges --- */

PciBus *pci_bus_behind(const PciDevice *dev)
{
    return pci_class(dev)->is_bridge && dev->qdev.buses ? g_ptr_array_index(dev->qdev.buses, 0) : NULL;
}

uint8_t pci_bus_number(const PciBus *bus)
{
    return bus->bridge ? bus->bridge->config[PCI_SECONDARY_BUS] : 0;
}

bool pci_bus_is_express(const PciBus *bus)
{
    return object_is_a(&((PciBus *)bus)->bus.obj, TYPE_PCIE_BUS);
}

PciBus *pci_bus_by_number(PciBus *root, unsigned int number)
{
    PciBus *bus = root;

    while (bus && pci_bus_number(bus) != number) {
        PciBus *next = NULL;

        for (unsigned int i = 0; i < 256 && !next; i++) {
            const PciDevice *dev = bus->devices[i];

            if (dev && dev->qdev.realized && pci_class(dev)->is_bridge && dev->config[PCI_SECONDARY_BUS] <= number &&
                dev->config[PCI_SUBORDINATE_BUS] >= number && dev->config[PCI_SECONDARY_BUS]) {
                next = pci_bus_behind(dev);
            }
        }
        bus = next;
    }
    return bus;
}

void pci_bus_update_mappings(PciBus *bus)
{
    for (unsigned int i = 0; i < 256; i++) {
        PciDevice *dev = bus->devices[i];

        if (dev && dev->qdev.realized) {
            pci_update_mappings(dev);
            if (pci_class(dev)->is_bridge) {
                pci_bus_update_mappings(pci_bus_behind(dev));
            }
        }
    }
}

static PciDevice *addressed(PciBus *root, uint32_t addr)
{
    PciBus *bus = pci_bus_by_number(root, addr >> 16 & 0xff);
    PciDevice *dev = bus ? bus->devices[addr >> 8 & 0xff] : NULL;

    /* A device is visible once its realize is through. */
    return dev && dev->qdev.realized ? dev : NULL;
}

uint32_t pci_bus_config_read(PciBus *bus, uint32_t addr, unsigned int len)
{
    PciDevice *dev = addressed(bus, addr);

    return dev ? pci_config_read(dev, addr & 0xff, len) : UINT32_MAX;
}

void pci_bus_config_write(PciBus *bus, uint32_t addr, uint32_t value, unsigned int len)
{
    PciDevice *dev = addressed(bus, addr);

    if (dev) {
        pci_config_write(dev, addr & 0xff, value, len);
    }
}

PciBus *pci_bus_new(DeviceState *owner, const char *type, const char *name, int min_slot)
{
    PciBus *bus = (PciBus *)bus_new(type, owner, name);

    bus->min_slot = min_slot;
    bus->hotplug_number = -1;
    if (object_is_a(&owner->obj, TYPE_PCI_DEVICE)) {
        bus->bridge = (PciDevice *)owner;
        return bus;
    }
    if (!buses) {
        buses = g_ptr_array_new();
    }
    g_ptr_array_add(buses, bus);
    return bus;
}

static void bus_finalize(Object *obj)
{
    if (buses && g_ptr_array_remove(buses, obj) && !buses->len) {
        g_ptr_array_free(buses, TRUE);
        buses = NULL;
    }
}

/* --- Types --- */

static json_t *get_addr(Object *obj, const ObjectProperty *p, Error **errp)
{
    PciDevice *dev = (PciDevice *)obj;

    return json_integer(dev->qdev.bus ? dev->devfn : dev->addr);
}

/* "SLOT[.FUNCTION]" in hexadecimal, or the number devfn. */
static bool parse_addr(json_t *value, int32_t *addr)
{
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        *addr = (int32_t)n;
        return n >= -1 && n <= 255;
    }
    const char *text = json_string_value(value);
    if (!text || !g_ascii_isxdigit(*text)) {
        return false;
    }
    char *end;
    unsigned long slot = strtoul(text, &end, 16), fn = 0;
    if (*end == '.' && g_ascii_isxdigit(end[1])) {
        fn = strtoul(end + 1, &end, 16);
    }
    if (*end || slot > 31 || fn > 7) {
        return false;
    }
    *addr = PCI_DEVFN(slot, fn);
    return true;
}

static bool set_addr(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    PciDevice *dev = (PciDevice *)obj;
    int32_t addr;

    if (!device_check_settable(obj, p->name, false, errp)) {
        return false;
    }
    if (!json_is_string(value) && !json_is_integer(value)) {
        error_setg(errp, "Invalid parameter type for '%s', expected: integer", p->name);
        return false;
    }
    if (!parse_addr(value, &addr)) {
        g_autofree char *text = json_is_string(value) ? g_strdup(json_string_value(value))
                                                      : json_dumps(value, JSON_ENCODE_ANY);
        error_setg(errp, "Property '%s.%s' doesn't take value '%s'", obj->type->name, p->name, text);
        return false;
    }
    dev->addr = addr;
    return true;
}

static json_t *get_romfile(Object *obj, const ObjectProperty *p, Error **errp)
{
    return json_string("");
}

/* Clients switch option ROMs off by an empty name. */
static bool set_romfile(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    if (*json_string_value(value)) {
        error_setg(errp, "failed to find romfile \"%s\"", json_string_value(value));
        return false;
    }
    return device_check_settable(obj, p->name, false, errp);
}

static ObjectProperty pci_properties[] = {
    {.name = "addr", .kind = PROP_ANY, .type = "str", .get = get_addr, .set = set_addr,
     .description = "Slot and optional function number, example: 06.0 or 06"},
    {.name = "multifunction", .kind = PROP_BOOL, .get = object_get_bool, .set = device_set_bool,
     .offset = offsetof(PciDevice, multifunction), .description = "on/off"},
    {.name = "romfile", .kind = PROP_STRING, .type = "str", .get = get_romfile, .set = set_romfile},
    {0},
};

static void pci_device_init(Object *obj)
{
    ((PciDevice *)obj)->addr = -1;
}

static const PciDeviceClass base_pci_class = {.parent = {PCI_DEVICE_CLASS_BASE}};
static const BusClass pci_bus_class = {.plug = plug, .unplug = unplug, .print_device = pci_print_device};

static const ObjectType types[] = {
    {.name = TYPE_PCI_DEVICE, .parent = TYPE_DEVICE, .size = sizeof(PciDevice), .abstract = true,
     .properties = pci_properties, .init = pci_device_init, .klass = &base_pci_class},
    {.name = TYPE_PCI_BUS, .parent = TYPE_BUS, .size = sizeof(PciBus), .finalize = bus_finalize,
     .klass = &pci_bus_class},
    {.name = TYPE_PCIE_BUS, .parent = TYPE_PCI_BUS},
};

GPtrArray *pci_root_buses(void)
{
    return buses;
}

void pci_register_types(void)
{
    pci_properties[0].default_value = json_integer(-1);
    pci_properties[1].default_value = json_false();
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
