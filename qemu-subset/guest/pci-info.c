/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people and clients are shown of PCI buses: info pci, info qtree, query-pci. */
#include "guest/pci-private.h"
#include "guest/private.h"

#include "base/bswap.h"

#include <inttypes.h>

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
    case 0x0604:
        return "PCI bridge";
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

void pci_print_device(DeviceState *qdev, GString *out, int indent)
{
    PciDevice *dev = (PciDevice *)qdev;
    const uint8_t *c = dev->config;

    g_string_append_printf(out, "%*sclass ", indent, "");
    append_class(out, load_le16(c + PCI_CLASS_DEVICE));
    g_string_append_printf(out, ", addr %02x:%02x.%x, pci id %04x:%04x (sub %04x:%04x)\n",
                           pci_bus_number(pci_bus(dev)), PCI_SLOT(dev->devfn), PCI_FUNC(dev->devfn), load_le16(c + PCI_VENDOR_ID), load_le16(c + PCI_DEVICE_ID),
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

static void print_windows(const PciDevice *dev, GString *out)
{
    static const char *const names[PCI_WINDOWS] = {"IO", "memory", "prefetchable memory"};
    static const int digits[PCI_WINDOWS] = {4, 8, 8};

    g_string_append_printf(out, "      BUS %u.\n      secondary bus %u.\n      subordinate bus %u.\n",
                           dev->config[PCI_PRIMARY_BUS], dev->config[PCI_SECONDARY_BUS],
                           dev->config[PCI_SUBORDINATE_BUS]);
    for (unsigned int i = 0; i < PCI_WINDOWS; i++) {
        uint64_t base, limit;

        pci_bridge_window(dev, i, &base, &limit);
        g_string_append_printf(out, "      %s range [0x%0*" PRIx64 ", 0x%0*" PRIx64 "]\n", names[i], digits[i], base,
                               digits[i], limit);
    }
}

static void print_bus(const PciBus *bus, GString *out);

static void print_info(const PciDevice *dev, GString *out)
{
    const uint8_t *c = dev->config;

    g_string_append_printf(out, "  Bus %2u, device %3u, function %u:\n    ", pci_bus_number(pci_bus(dev)),
                           PCI_SLOT(dev->devfn), PCI_FUNC(dev->devfn));
    append_class(out, load_le16(c + PCI_CLASS_DEVICE));
    g_string_append_printf(out, ": PCI device %04x:%04x\n", load_le16(c + PCI_VENDOR_ID), load_le16(c + PCI_DEVICE_ID));
    if (!pci_class(dev)->is_bridge) {
        g_string_append_printf(out, "      PCI subsystem %04x:%04x\n", load_le16(c + PCI_SUBSYSTEM_VENDOR_ID),
                               load_le16(c + PCI_SUBSYSTEM_ID));
    }
    if (c[PCI_INTERRUPT_PIN]) {
        g_string_append_printf(out, "      IRQ %d, pin %c\n", c[PCI_INTERRUPT_LINE], 'A' + c[PCI_INTERRUPT_PIN] - 1);
    }
    if (pci_class(dev)->is_bridge) {
        print_windows(dev, out);
    }
    print_bars(dev, out);
    g_string_append_printf(out, "      id \"%s\"\n", dev->qdev.id ? dev->qdev.id : "");
    if (pci_class(dev)->is_bridge && c[PCI_SECONDARY_BUS]) {
        print_bus(pci_bus_behind(dev), out);
    }
}

static void print_bus(const PciBus *bus, GString *out)
{
    for (unsigned int i = 0; i < 256; i++) {
        if (bus->devices[i]) {
            print_info(bus->devices[i], out);
        }
    }
}

void pci_print_info(GString *out)
{
    GPtrArray *roots = pci_root_buses();

    if (!roots) {
        g_string_append(out, "No PCI buses\n");
        return;
    }
    for (unsigned int b = 0; b < roots->len; b++) {
        print_bus(g_ptr_array_index(roots, b), out);
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

static json_t *query_bus(const PciBus *bus);

static json_t *query_bridge(const PciDevice *dev)
{
    static const char *const names[PCI_WINDOWS] = {"io_range", "memory_range", "prefetchable_range"};
    json_t *bus = json_pack("{s:i, s:i, s:i}", "number", dev->config[PCI_PRIMARY_BUS], "secondary",
                            dev->config[PCI_SECONDARY_BUS], "subordinate", dev->config[PCI_SUBORDINATE_BUS]);
    json_t *bridge = json_pack("{s:o}", "bus", bus);

    for (unsigned int i = 0; i < PCI_WINDOWS; i++) {
        uint64_t base, limit;

        pci_bridge_window(dev, i, &base, &limit);
        json_object_set_new(bus, names[i], json_pack("{s:I, s:I}", "base", (json_int_t)base, "limit", (json_int_t)limit));
    }
    if (dev->config[PCI_SECONDARY_BUS]) {
        json_object_set_new(bridge, "devices", query_bus(pci_bus_behind(dev)));
    }
    return bridge;
}

static json_t *query_device(const PciDevice *dev)
{
    const uint8_t *c = dev->config;
    uint16_t class_id = load_le16(c + PCI_CLASS_DEVICE);
    json_t *class_info = json_pack("{s:i}", "class", class_id);
    json_t *id = json_pack("{s:i, s:i}", "device", load_le16(c + PCI_DEVICE_ID), "vendor", load_le16(c + PCI_VENDOR_ID));

    if (!pci_class(dev)->is_bridge) {
        json_object_set_new(id, "subsystem", json_integer(load_le16(c + PCI_SUBSYSTEM_ID)));
        json_object_set_new(id, "subsystem-vendor", json_integer(load_le16(c + PCI_SUBSYSTEM_VENDOR_ID)));
    }
    if (class_name(class_id)) {
        json_object_set_new(class_info, "desc", json_string(class_name(class_id)));
    }
    json_t *d = json_pack("{s:i, s:i, s:i, s:o, s:o, s:s, s:o, s:i}", "bus", pci_bus_number(pci_bus(dev)), "slot",
                          PCI_SLOT(dev->devfn), "function", PCI_FUNC(dev->devfn), "class_info", class_info, "id", id,
                          "qdev_id", dev->qdev.id ? dev->qdev.id : "", "regions", query_bars(dev), "irq_pin",
                          c[PCI_INTERRUPT_PIN]);
    if (c[PCI_INTERRUPT_PIN]) {
        json_object_set_new(d, "irq", json_integer(c[PCI_INTERRUPT_LINE]));
    }
    if (pci_class(dev)->is_bridge) {
        json_object_set_new(d, "pci_bridge", query_bridge(dev));
    }
    return d;
}

static json_t *query_bus(const PciBus *bus)
{
    json_t *devices = json_array();

    for (unsigned int i = 0; i < 256; i++) {
        if (bus->devices[i]) {
            json_array_append_new(devices, query_device(bus->devices[i]));
        }
    }
    return devices;
}

json_t *pci_query(void)
{
    GPtrArray *roots = pci_root_buses();
    json_t *list = json_array();

    for (unsigned int b = 0; roots && b < roots->len; b++) {
        json_array_append_new(list, json_pack("{s:i, s:o}", "bus", b, "devices", query_bus(g_ptr_array_index(roots, b))));
    }
    return list;
}
