/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PCI bridges: windows, bus numbers and control register of the bridge header, and two bridges that users can create. Hot-plug
 * below them is ACPI's; the slot registers of a root port tell what is there and announce nothing.
 */
#include "guest/pci-bridge.h"
#include "guest/pci-private.h"
#include "guest/private.h"

#include "base/bswap.h"

#include <string.h>

#define TYPE_PCI_BRIDGE "base-pci-bridge"
#define TYPE_ROOT_PORT "pcie-root-port"
#define TYPE_PCIE_PCI_BRIDGE "pcie-pci-bridge"

/* Registers of the bridge header. */
enum {
    IO_BASE = 0x1c, IO_LIMIT = 0x1d, SECONDARY_STATUS = 0x1e, MEMORY_BASE = 0x20, MEMORY_LIMIT = 0x22, PREFETCH_BASE = 0x24,
    PREFETCH_LIMIT = 0x26, PREFETCH_BASE_HIGH = 0x28, PREFETCH_LIMIT_HIGH = 0x2c, BRIDGE_CONTROL = 0x3e,
};
#define CONTROL_BUS_RESET 0x40
#define PREFETCH_64 1

typedef struct PciBridge {
    PciDevice dev;
    uint16_t control; /* as written last, to see the reset bit rise */
    /* Properties of root ports. */
    uint16_t slot;
    bool hotplug, closed; /* closed: windows are shut after reset */
    int64_t chassis, port;
} PciBridge;

/* --- Windows --- */

void pci_bridge_window(const PciDevice *bridge, PciWindow which, uint64_t *base, uint64_t *limit)
{
    const uint8_t *c = bridge->config;

    switch (which) {
    case PCI_WINDOW_IO:
        *base = (uint64_t)(c[IO_BASE] & 0xf0) << 8;
        *limit = (uint64_t)(c[IO_LIMIT] & 0xf0) << 8 | 0xfff;
        break;
    case PCI_WINDOW_MEM:
        *base = (uint64_t)(load_le16(c + MEMORY_BASE) & 0xfff0) << 16;
        *limit = (uint64_t)(load_le16(c + MEMORY_LIMIT) & 0xfff0) << 16 | 0xfffff;
        break;
    default:
        *base = (uint64_t)(load_le16(c + PREFETCH_BASE) & 0xfff0) << 16 | (uint64_t)load_le32(c + PREFETCH_BASE_HIGH) << 32;
        *limit = (uint64_t)(load_le16(c + PREFETCH_LIMIT) & 0xfff0) << 16 | 0xfffff |
                 (uint64_t)load_le32(c + PREFETCH_LIMIT_HIGH) << 32;
        break;
    }
}

static bool window_covers(const PciDevice *bridge, PciWindow which, uint64_t base, uint64_t last)
{
    uint64_t from, to;

    pci_bridge_window(bridge, which, &from, &to);
    return base >= from && last <= to;
}

bool pci_bridges_forward(const PciDevice *dev, bool io, uint64_t base, uint64_t last)
{
    for (const PciDevice *b = pci_bus(dev)->bridge; b; b = pci_bus(b)->bridge) {
        uint16_t command = load_le16(b->config + PCI_COMMAND);
        bool through = io ? (command & PCI_COMMAND_IO) && window_covers(b, PCI_WINDOW_IO, base, last)
                          : (command & PCI_COMMAND_MEMORY) && (window_covers(b, PCI_WINDOW_MEM, base, last) ||
                                                               window_covers(b, PCI_WINDOW_PREFETCH, base, last));

        if (!through) {
            return false;
        }
    }
    return true;
}

/* --- Common to bridges --- */

static void reset_windows(PciBridge *s)
{
    uint8_t *c = s->dev.config;

    memset(c + PCI_PRIMARY_BUS, 0, 4);
    memset(c + IO_BASE, 0, 2);
    memset(c + MEMORY_BASE, 0, 16);
    store_le16(c + PREFETCH_BASE, PREFETCH_64);
    store_le16(c + PREFETCH_LIMIT, PREFETCH_64);
    if (s->closed) {
        c[IO_BASE] = 0xf0;
        store_le16(c + MEMORY_BASE, 0xfff0);
        store_le16(c + PREFETCH_BASE, 0xfff0 | PREFETCH_64);
    }
    store_le16(c + BRIDGE_CONTROL, 0);
    s->control = 0;
}

/* Hot-plug behind a bridge that was there from the start is announced as on the bus in front of it; a later one has none. */
static void inherit_hotplug(PciBridge *s, PciBus *behind)
{
    const PciBus *front = pci_bus(&s->dev);

    if (!s->hotplug || !front->hotplug_below || s->dev.qdev.hotplugged) {
        return;
    }
    behind->bus.hotplug = behind->hotplug_below = front->hotplug_below;
    behind->bus.hotplug_opaque = behind->hotplug_below_opaque = front->hotplug_below_opaque;
}

static void bridge_init_config(PciBridge *s, const char *bus_type, uint16_t control_mask)
{
    PciDevice *dev = &s->dev;
    g_autofree char *lower = g_ascii_strdown(bus_type, -1);
    g_autofree char *name = dev->qdev.id ? g_strdup(dev->qdev.id) : g_strconcat(lower, ".0", NULL);

    memset(dev->wmask + PCI_PRIMARY_BUS, 0xff, 3);
    memset(dev->wmask + IO_BASE, 0xf0, 2);
    store_le32(dev->wmask + MEMORY_BASE, 0xfff0fff0);
    store_le32(dev->wmask + PREFETCH_BASE, 0xfff0fff0);
    memset(dev->wmask + PREFETCH_BASE_HIGH, 0xff, 8);
    store_le16(dev->wmask + BRIDGE_CONTROL, control_mask);
    dev->config[PCI_INTERRUPT_PIN] = 1;
    reset_windows(s);
    inherit_hotplug(s, pci_bus_new(&dev->qdev, bus_type, name, 0));
}

static void bridge_reset(PciDevice *dev)
{
    reset_windows((PciBridge *)dev);
    store_le16(dev->config + PCI_COMMAND, 0);
    pci_bus_update_mappings(pci_bus_behind(dev));
}

static void bridge_config_write(PciDevice *dev, unsigned int addr, unsigned int len)
{
    PciBridge *s = (PciBridge *)dev;
    uint16_t control = load_le16(dev->config + BRIDGE_CONTROL);

    if ((addr < PCI_COMMAND + 2 && addr + len > PCI_COMMAND) || (addr < 0x30 && addr + len > IO_BASE)) {
        pci_bus_update_mappings(pci_bus_behind(dev));
    }
    if (control & ~s->control & CONTROL_BUS_RESET) {
        s->control = control;
        bus_reset(&pci_bus_behind(dev)->bus);
    }
    s->control = control;
}

/* --- Root port: in a slot of the root complex, one device behind it --- */

#define ROOT_EXP 0x54
#define EXP_SIZE 0x3c
#define SLTCTL_EMPTY 0x07c0  /* power off, both indicators off */
#define SLTCTL_FULL 0x01c0   /* power on */

static bool root_port_realize(PciDevice *dev, Error **errp)
{
    PciBridge *s = (PciBridge *)dev;
    uint8_t *exp = dev->config + ROOT_EXP;

    if (pci_add_capability(dev, 0x0d, 0x40, 8, errp) < 0 || !pci_msix_init(dev, 1, 0, 0x48, errp) ||
        pci_add_capability(dev, PCI_CAP_ID_EXP, ROOT_EXP, EXP_SIZE, errp) < 0) {
        return false;
    }
    store_le16(dev->config + 0x44, 0x1b36); /* subsystem vendor */
    store_le16(exp + 0x02, 0x0142);         /* version 2, root port with a slot */
    store_le32(exp + 0x04, 0x00008000);     /* role-based errors */
    store_le16(dev->wmask + ROOT_EXP + 0x08, 0x000f);
    store_le32(exp + 0x0c, 0x00300604 | (uint32_t)s->port << 24); /* 16 GT/s, 32 lanes */
    store_le16(exp + 0x12, 0x0011);
    /* Attention button, indicators, power controller, surprise, interlock; and hot-plug unless switched off. */
    store_le32(exp + 0x14, 0x0002003b | (s->hotplug ? 0x40 : 0) | (uint32_t)s->slot << 19);
    store_le16(exp + 0x18, SLTCTL_EMPTY);
    store_le16(dev->wmask + ROOT_EXP + 0x18, 0x07f9);
    store_le16(dev->wmask + ROOT_EXP + 0x1c, 0x0007);
    store_le32(exp + 0x24, 0x00300020);
    store_le16(dev->wmask + ROOT_EXP + 0x28, 0x8020);
    store_le32(exp + 0x2c, 0x0000001e);
    store_le16(exp + 0x30, 0x0004);
    dev->exp_cap = ROOT_EXP;
    s->closed = true;
    bridge_init_config(s, TYPE_PCIE_BUS, 0x005f);
    return true;
}

static void root_port_reset(PciDevice *dev)
{
    bridge_reset(dev);
    store_le16(dev->config + ROOT_EXP + 0x18, pci_bus_behind(dev)->devices[0] ? SLTCTL_FULL : SLTCTL_EMPTY);
}

static bool set_byte(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    json_int_t n = json_integer_value(value);

    if (n < 0 || n > UINT8_MAX) {
        error_setg(errp, "Parameter '%s' expects uint8_t", p->name);
        return false;
    }
    return device_check_settable(obj, p->name, false, errp) && object_set_int64(obj, p, value, errp);
}

static const ObjectProperty root_port_properties[] = {
    {.name = "chassis", .kind = PROP_INT, .type = "uint8", .get = object_get_int64, .set = set_byte,
     .offset = offsetof(PciBridge, chassis)},
    {.name = "hotplug", .kind = PROP_BOOL, .get = object_get_bool, .set = device_set_bool,
     .offset = offsetof(PciBridge, hotplug)},
    {.name = "port", .kind = PROP_INT, .type = "uint8", .get = object_get_int64, .set = set_byte,
     .offset = offsetof(PciBridge, port)},
    {.name = "slot", .kind = PROP_UINT16, .get = object_get_uint16, .set = device_set_uint16,
     .offset = offsetof(PciBridge, slot)},
    {0},
};

/* Slots are numbered within a chassis: two ports cannot be the same one. */
static void find_twin(PciBus *bus, const PciBridge *s, bool *found)
{
    for (unsigned int i = 0; i < 256; i++) {
        PciBridge *other = (PciBridge *)bus->devices[i];

        if (!other || !pci_class(&other->dev)->is_bridge || !other->dev.qdev.realized) {
            continue;
        }
        if (object_is_a(&other->dev.qdev.obj, TYPE_ROOT_PORT) && other->chassis == s->chassis && other->slot == s->slot) {
            *found = true;
        }
        find_twin(pci_bus_behind(&other->dev), s, found);
    }
}

static bool root_port_realize_checked(PciDevice *dev, Error **errp)
{
    GPtrArray *roots = pci_root_buses();
    bool found = false;

    for (unsigned int i = 0; i < roots->len; i++) {
        find_twin(g_ptr_array_index(roots, i), (PciBridge *)dev, &found);
    }
    if (found) {
        error_setg(errp, "Can't add chassis slot, error -16");
        return false;
    }
    return root_port_realize(dev, errp);
}

static const PciDeviceClass root_port_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .user_creatable = true},
    .vendor_id = 0x1b36, .device_id = 0x000c, .class_id = 0x0604, .is_bridge = true,
    .realize = root_port_realize_checked, .reset = root_port_reset, .config_write = bridge_config_write,
};

/* --- Bridge from PCI Express to conventional PCI --- */

static bool pcie_pci_bridge_realize(PciDevice *dev, Error **errp)
{
    uint8_t *exp = dev->config + 0x48;

    if (pci_add_capability(dev, PCI_CAP_ID_EXP, 0x48, EXP_SIZE, errp) < 0 ||
        pci_add_capability(dev, PCI_CAP_ID_PM, 0x84, 8, errp) < 0) {
        return false;
    }
    store_le16(exp + 0x02, 0x0072); /* version 2, bridge to PCI */
    store_le32(exp + 0x04, 0x00008000);
    store_le16(dev->wmask + 0x48 + 0x08, 0x000f);
    store_le32(exp + 0x0c, 0x00000411);
    store_le16(exp + 0x12, 0x0011);
    store_le32(exp + 0x24, 0x00300020);
    store_le16(dev->wmask + 0x48 + 0x28, 0x8020);
    dev->config[0x86] = 3;
    dev->wmask[0x88] = 3;
    dev->exp_cap = 0x48;
    store_le16(dev->config + SECONDARY_STATUS, 0x00a0);
    bridge_init_config((PciBridge *)dev, TYPE_PCI_BUS, 0x0bff);
    return true;
}

static const PciDeviceClass pcie_pci_bridge_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .category = "Controller/Bridge/Hub", .user_creatable = true},
    .vendor_id = 0x1b36, .device_id = 0x000e, .class_id = 0x0604, .is_bridge = true,
    .realize = pcie_pci_bridge_realize, .reset = bridge_reset, .config_write = bridge_config_write,
};

static void bridge_init(Object *obj)
{
    ((PciBridge *)obj)->hotplug = true;
}

static const PciDeviceClass base_class = {.parent = {PCI_DEVICE_CLASS_BASE}, .is_bridge = true};

static const ObjectType types[] = {
    {.name = TYPE_PCI_BRIDGE, .parent = TYPE_PCI_DEVICE, .size = sizeof(PciBridge), .abstract = true, .init = bridge_init,
     .klass = &base_class},
    {.name = TYPE_ROOT_PORT, .parent = TYPE_PCI_BRIDGE, .properties = root_port_properties, .klass = &root_port_class,
     .desc = "PCI Express Root Port"},
    {.name = TYPE_PCIE_PCI_BRIDGE, .parent = TYPE_PCI_BRIDGE, .klass = &pcie_pci_bridge_class},
};

void pci_bridge_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
