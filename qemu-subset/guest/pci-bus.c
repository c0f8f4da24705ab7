/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI buses: addresses of devices, configuration by address, the types, and what people are shown. */
#include "guest/pci-private.h"
#include "guest/private.h"

#include "base/bswap.h"

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

uint32_t pci_bus_config_read(PciBus *bus, uint32_t addr, unsigned int len)
{
    PciDevice *dev = addr >> 16 & 0xff ? NULL : bus->devices[addr >> 8 & 0xff];

    /* A device is visible once its realize is through. */
    return dev && dev->qdev.realized ? pci_config_read(dev, addr & 0xff, len) : UINT32_MAX;
}

void pci_bus_config_write(PciBus *bus, uint32_t addr, uint32_t value, unsigned int len)
{
    PciDevice *dev = addr >> 16 & 0xff ? NULL : bus->devices[addr >> 8 & 0xff];

    if (dev && dev->qdev.realized) {
        pci_config_write(dev, addr & 0xff, value, len);
    }
}

PciBus *pci_bus_new(DeviceState *owner, const char *type, const char *name, int min_slot)
{
    PciBus *bus = (PciBus *)bus_new(type, owner, name);

    bus->min_slot = min_slot;
    if (!buses) {
        buses = g_ptr_array_new();
    }
    g_ptr_array_add(buses, bus);
    return bus;
}

static void bus_finalize(Object *obj)
{
    g_ptr_array_remove(buses, obj);
    if (!buses->len) {
        g_ptr_array_free(buses, TRUE);
        buses = NULL;
    }
}

/* --- Text --- */

static const char *class_name(uint16_t class_id)
{
    switch (class_id) {
    case 0x0100:
        return "SCSI controller";
    case 0x0106:
        return "SATA controller";
    case 0x0101:
        return "IDE controller";
    case 0x0600:
        return "Host bridge";
    case 0x0601:
        return "ISA bridge";
    case 0x0680:
        return "Bridge";
    case 0x0c05:
        return "SMBus";
    default:
        return NULL;
    }
}

static void append_class(GString *out, uint16_t class_id)
{
    const char *name = class_name(class_id);

    if (name) {
        g_string_append(out, name);
    } else {
        g_string_append_printf(out, "Class %04x", class_id);
    }
}

/* Part of "info qtree". */
static void print_device(DeviceState *qdev, GString *out, int indent)
{
    PciDevice *dev = (PciDevice *)qdev;
    const uint8_t *c = dev->config;

    g_string_append_printf(out, "%*sclass ", indent, "");
    append_class(out, load_le16(c + PCI_CLASS_DEVICE));
    g_string_append_printf(out, ", addr 00:%02x.%x, pci id %04x:%04x (sub %04x:%04x)\n", PCI_SLOT(dev->devfn),
                           PCI_FUNC(dev->devfn), load_le16(c + PCI_VENDOR_ID), load_le16(c + PCI_DEVICE_ID),
                           load_le16(c + PCI_SUBSYSTEM_VENDOR_ID), load_le16(c + PCI_SUBSYSTEM_ID));
    for (unsigned int i = 0; i < PCI_BARS; i++) {
        const PciBar *bar = &dev->bars[i];
        if (bar->type != PCI_BAR_NONE) {
            g_string_append_printf(out, "%*sbar %u: %s at 0x%" PRIx64 " [0x%" PRIx64 "]\n", indent, "", i,
                                   bar->type == PCI_BAR_IO ? "i/o" : "mem", bar->base, bar->base + bar->size - 1);
        }
    }
}

static void print_bars(const PciDevice *dev, GString *out)
{
    for (unsigned int i = 0; i < PCI_BARS; i++) {
        const PciBar *bar = &dev->bars[i];

        if (bar->type == PCI_BAR_NONE) {
            continue;
        }
        bool io = bar->type == PCI_BAR_IO, wide = bar->type == PCI_BAR_MEM64_PREFETCH;
        g_string_append_printf(out, "      BAR%u: %s", i, io ? "I/O" : wide ? "64 bit prefetchable memory" : "32 bit memory");
        if (bar->base == UINT64_MAX) {
            g_string_append(out, " (not mapped)\n");
        } else {
            g_string_append_printf(out, io ? " at 0x%04" PRIx64 " [0x%04" PRIx64 "].\n"
                                           : " at 0x%08" PRIx64 " [0x%08" PRIx64 "].\n",
                                   bar->base, bar->base + bar->size - 1);
        }
    }
}

void pci_print_info(GString *out)
{
    if (!buses) {
        g_string_append(out, "No PCI buses\n");
        return;
    }
    for (unsigned int b = 0; b < buses->len; b++) {
        PciBus *bus = g_ptr_array_index(buses, b);
        for (unsigned int i = 0; i < 256; i++) {
            const PciDevice *dev = bus->devices[i];
            if (!dev) {
                continue;
            }
            const uint8_t *c = dev->config;
            g_string_append_printf(out, "  Bus %2u, device %3u, function %u:\n    ", b, PCI_SLOT(i), PCI_FUNC(i));
            append_class(out, load_le16(c + PCI_CLASS_DEVICE));
            g_string_append_printf(out, ": PCI device %04x:%04x\n", load_le16(c + PCI_VENDOR_ID),
                                   load_le16(c + PCI_DEVICE_ID));
            g_string_append_printf(out, "      PCI subsystem %04x:%04x\n", load_le16(c + PCI_SUBSYSTEM_VENDOR_ID),
                                   load_le16(c + PCI_SUBSYSTEM_ID));
            if (c[PCI_INTERRUPT_PIN]) {
                g_string_append_printf(out, "      IRQ %d, pin %c\n", c[PCI_INTERRUPT_LINE],
                                       'A' + c[PCI_INTERRUPT_PIN] - 1);
            }
            print_bars(dev, out);
            g_string_append_printf(out, "      id \"%s\"\n", dev->qdev.id ? dev->qdev.id : "");
        }
    }
}

static json_t *query_bars(const PciDevice *dev)
{
    json_t *list = json_array();

    for (unsigned int i = 0; i < PCI_BARS; i++) {
        const PciBar *bar = &dev->bars[i];
        if (bar->type == PCI_BAR_NONE) {
            continue;
        }
        json_t *r = json_pack("{s:i, s:I, s:I, s:s}", "bar", i, "address", (json_int_t)bar->base, "size",
                              (json_int_t)bar->size, "type", bar->type == PCI_BAR_IO ? "io" : "memory");
        if (bar->type != PCI_BAR_IO) {
            json_object_set_new(r, "prefetch", json_boolean(bar->type == PCI_BAR_MEM64_PREFETCH));
            json_object_set_new(r, "mem_type_64", json_boolean(bar->type == PCI_BAR_MEM64_PREFETCH));
        }
        json_array_append_new(list, r);
    }
    return list;
}

static json_t *query_device(const PciDevice *dev, unsigned int bus)
{
    const uint8_t *c = dev->config;
    uint16_t class_id = load_le16(c + PCI_CLASS_DEVICE);
    json_t *class_info = json_pack("{s:i}", "class", class_id);
    json_t *id = json_pack("{s:i, s:i, s:i, s:i}", "device", load_le16(c + PCI_DEVICE_ID), "vendor",
                           load_le16(c + PCI_VENDOR_ID), "subsystem", load_le16(c + PCI_SUBSYSTEM_ID),
                           "subsystem-vendor", load_le16(c + PCI_SUBSYSTEM_VENDOR_ID));

    if (class_name(class_id)) {
        json_object_set_new(class_info, "desc", json_string(class_name(class_id)));
    }
    json_t *d = json_pack("{s:i, s:i, s:i, s:o, s:o, s:s, s:o, s:i}", "bus", bus, "slot", PCI_SLOT(dev->devfn),
                          "function", PCI_FUNC(dev->devfn), "class_info", class_info, "id", id, "qdev_id",
                          dev->qdev.id ? dev->qdev.id : "", "regions", query_bars(dev), "irq_pin",
                          c[PCI_INTERRUPT_PIN]);
    if (c[PCI_INTERRUPT_PIN]) {
        json_object_set_new(d, "irq", json_integer(c[PCI_INTERRUPT_LINE]));
    }
    return d;
}

json_t *pci_query(void)
{
    json_t *list = json_array();

    for (unsigned int b = 0; buses && b < buses->len; b++) {
        PciBus *bus = g_ptr_array_index(buses, b);
        json_t *devices = json_array();
        for (unsigned int i = 0; i < 256; i++) {
            if (bus->devices[i]) {
                json_array_append_new(devices, query_device(bus->devices[i], b));
            }
        }
        json_array_append_new(list, json_pack("{s:i, s:o}", "bus", b, "devices", devices));
    }
    return list;
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
static const BusClass pci_bus_class = {.plug = plug, .unplug = unplug, .print_device = print_device};

static const ObjectType types[] = {
    {.name = TYPE_PCI_DEVICE, .parent = TYPE_DEVICE, .size = sizeof(PciDevice), .abstract = true,
     .properties = pci_properties, .init = pci_device_init, .klass = &base_pci_class},
    {.name = TYPE_PCI_BUS, .parent = TYPE_BUS, .size = sizeof(PciBus), .finalize = bus_finalize,
     .klass = &pci_bus_class},
    {.name = TYPE_PCIE_BUS, .parent = TYPE_PCI_BUS},
};

void pci_register_types(void)
{
    pci_properties[0].default_value = json_integer(-1);
    pci_properties[1].default_value = json_false();
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
