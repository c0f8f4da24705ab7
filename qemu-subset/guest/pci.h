/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI devices and buses: configuration space, BARs, capabilities, MSI-X and INTx. */
#ifndef GUEST_PCI_H
#define GUEST_PCI_H

#include "guest/memory.h"
#include "guest/qdev.h"
#include "loop/aio.h"

#include <stdatomic.h>

#define TYPE_PCI_DEVICE "pci-device"
#define TYPE_PCI_BUS "PCI"
#define TYPE_PCIE_BUS "PCIE" /* is a TYPE_PCI_BUS */

#define PCI_CONFIG_SIZE 256
#define PCI_BARS 6

/* Registers of the header. */
enum {
    PCI_VENDOR_ID = 0x00, PCI_DEVICE_ID = 0x02, PCI_COMMAND = 0x04, PCI_STATUS = 0x06, PCI_REVISION_ID = 0x08,
    PCI_CLASS_PROG = 0x09, PCI_CLASS_DEVICE = 0x0a, PCI_CACHE_LINE_SIZE = 0x0c, PCI_LATENCY_TIMER = 0x0d,
    PCI_HEADER_TYPE = 0x0e, PCI_BASE_ADDRESS_0 = 0x10, PCI_SUBSYSTEM_VENDOR_ID = 0x2c, PCI_SUBSYSTEM_ID = 0x2e,
    PCI_PRIMARY_BUS = 0x18, PCI_SECONDARY_BUS = 0x19, PCI_SUBORDINATE_BUS = 0x1a, /* of bridges */
    PCI_ROM_ADDRESS = 0x30, PCI_CAPABILITY_LIST = 0x34, PCI_INTERRUPT_LINE = 0x3c, PCI_INTERRUPT_PIN = 0x3d,
};
#define PCI_COMMAND_IO 0x1
#define PCI_COMMAND_MEMORY 0x2
#define PCI_COMMAND_MASTER 0x4
#define PCI_COMMAND_SERR 0x100
#define PCI_COMMAND_INTX_DISABLE 0x400
#define PCI_STATUS_INTERRUPT 0x08
#define PCI_STATUS_CAP_LIST 0x10
#define PCI_HEADER_BRIDGE 0x01
#define PCI_HEADER_MULTI_FUNCTION 0x80
#define PCI_CAP_ID_PM 0x01
#define PCI_CAP_ID_VNDR 0x09
#define PCI_CAP_ID_EXP 0x10
#define PCI_CAP_ID_MSIX 0x11

#define PCI_DEVFN(slot, fn) ((uint8_t)((slot) << 3 | (fn)))
#define PCI_SLOT(devfn) ((devfn) >> 3)
#define PCI_FUNC(devfn) ((devfn)&7)

typedef struct PciDevice PciDevice;
typedef struct PciBus PciBus;
typedef struct PciMsix PciMsix;

/* First member: DeviceClass with bus_type TYPE_PCI_BUS. Its realize, unrealize and reset are those of pci.c; fill in these. */
typedef struct PciDeviceClass {
    DeviceClass parent;
    uint16_t vendor_id, device_id, class_id, subsystem_vendor_id, subsystem_id; /* subsystem 0: 1af4:1100 */
    uint8_t revision;
    bool is_bridge; /* the header is a bridge's; see pci-bridge.h */
    /* Config space is set up from the ids and the address is known: add BARs, capabilities, MSI-X. */
    bool (*realize)(PciDevice *dev, Error **errp);
    void (*unrealize)(PciDevice *dev); /* BARs are unmapped before, MSI-X freed after it */
    void (*reset)(PciDevice *dev);     /* before the header, BARs and MSI-X are reset: it stops what uses them */
    /* After the generic write took place; may be NULL. [@addr, @addr + @len) lies inside the config space. */
    void (*config_write)(PciDevice *dev, unsigned int addr, unsigned int len);
    /* May refresh dev->config before a read. */
    void (*config_read)(PciDevice *dev, unsigned int addr, unsigned int len);
    /* The INTx level the device wants now, for pci_intx_kick(). */
    int (*intx_level)(PciDevice *dev);
} PciDeviceClass;
/* For the DeviceClass part: ".parent = { PCI_DEVICE_CLASS_BASE, .user_creatable = true }". */
bool pci_device_realize(DeviceState *dev, Error **errp);
void pci_device_unrealize(DeviceState *dev);
void pci_device_reset(DeviceState *dev);
#define PCI_DEVICE_CLASS_BASE                                                                      \
    .bus_type = TYPE_PCI_BUS, .realize = pci_device_realize, .unrealize = pci_device_unrealize,    \
    .reset = pci_device_reset

typedef enum PciBarType {
    PCI_BAR_NONE,
    PCI_BAR_IO,
    PCI_BAR_MEM32,
    PCI_BAR_MEM64_PREFETCH, /* takes two BAR registers */
} PciBarType;

typedef struct PciBar {
    PciBarType type;
    uint64_t size;   /* a power of two */
    uint64_t base;   /* where it is mapped; UINT64_MAX: it is not */
    GuestRegion *regions; /* the parts, with base relative to the BAR in rel[] */
    uint64_t *rel;
    unsigned int n_regions;
} PciBar;

struct PciDevice {
    DeviceState qdev;
    int32_t addr;         /* devfn asked for with "addr"; -1: any */
    bool multifunction;
    int devfn;            /* once plugged in */
    uint8_t config[PCI_CONFIG_SIZE];
    uint8_t wmask[PCI_CONFIG_SIZE];   /* bits that config writes change */
    uint8_t w1cmask[PCI_CONFIG_SIZE]; /* bits that are cleared by writing 1 */
    uint8_t cap_used[PCI_CONFIG_SIZE]; /* bytes that belong to the header or a capability */
    PciBar bars[PCI_BARS];
    PciMsix *msix;
    int intx;             /* level asked for by the device */
    int intx_out;         /* level that reaches the bus: 0 when INTx is disabled */
    AioBH *intx_bh;
    _Atomic bool bus_master;
    unsigned int exp_cap; /* offset of the PCI Express capability; 0: a conventional device */
};

struct PciBus {
    BusState bus;
    PciDevice *devices[256];
    int min_slot;         /* first slot for automatic addresses */
    PciDevice *bridge;    /* that leads here; NULL: a root bus */
    /* Hot-plug for buses behind bridges that are there when the machine starts; NULL: none. */
    const HotplugOps *hotplug_below;
    void *hotplug_below_opaque;
    int hotplug_number;   /* for firmware, see acpi-hotplug.c; -1: none */
    /* Pin 0..3 of @dev changed level: route it. */
    void (*set_irq)(void *opaque, PciDevice *dev, int pin, int level);
    void *set_irq_opaque;
};

static inline const PciDeviceClass *pci_class(const PciDevice *dev)
{
    return (const PciDeviceClass *)device_type_class(dev->qdev.obj.type);
}
static inline PciBus *pci_bus(const PciDevice *dev)
{
    return (PciBus *)dev->qdev.bus;
}

/*
 * --- For realize ---
 * A BAR of @size (a power of two; at least 4 for I/O, 16 for memory) made of parts that do not overlap; gaps read as 0 and
 * ignore writes (ports: all ones). Each part's base is its offset in the BAR; name, ops, opaque and size are the caller's;
 * the array is copied. Mapping follows COMMAND and the BAR register.
 */
void pci_add_bar(PciDevice *dev, unsigned int nr, PciBarType type, uint64_t size, const GuestRegion *parts,
                 unsigned int n_parts);
/*
 * Add a capability of @size bytes (header included, contents 0 and read-only) at @offset (0: first free place) in front of
 * the list; returns its offset, or -1 with @errp set if it does not fit.
 */
int pci_add_capability(PciDevice *dev, uint8_t cap_id, unsigned int offset, unsigned int size, Error **errp);

/*
 * PCI Express capability of an endpoint, and power management behind it, for realize; at the first free places. A function-level
 * reset is done by device_reset().
 */
bool pci_add_express_endpoint(PciDevice *dev, Error **errp);

/* --- Config space, main thread; any address and 1, 2 or 4 bytes: what lies outside reads as ones --- */
uint32_t pci_config_read(PciDevice *dev, unsigned int addr, unsigned int len);
void pci_config_write(PciDevice *dev, unsigned int addr, uint32_t value, unsigned int len);
/* The same by bus address from root bus @bus: bits 16..23 bus number, 8..15 devfn, 0..7 register. Absent devices read as ones. */
uint32_t pci_bus_config_read(PciBus *bus, uint32_t addr, unsigned int len);
void pci_bus_config_write(PciBus *bus, uint32_t addr, uint32_t value, unsigned int len);

/* [any thread] May the device read and write guest memory now (COMMAND.MASTER)? */
static inline bool pci_bus_master(const PciDevice *dev)
{
    return atomic_load_explicit(&((PciDevice *)dev)->bus_master, memory_order_relaxed);
}

/* --- INTx --- */
void pci_set_intx(PciDevice *dev, int level); /* main thread */
/* [any thread] Ask the main thread to set the line to what class->intx_level() says then; coalesces. */
void pci_intx_kick(PciDevice *dev);

/*
 * --- MSI-X ---
 * A message is a 32-bit little-endian store of the entry's data at its address: seen by the guest if that is RAM; at
 * 0xfee00000 it would go to a local APIC, and there is none. Dropped while COMMAND.MASTER is off.
 */
/*
 * A memory BAR @bar of its own, of at least 4 KiB, with table and PBA (at 0x800 or after the table); capability at @cap_offset
 * (0: anywhere). 1..2048 vectors.
 */
bool pci_msix_init(PciDevice *dev, unsigned int nr_vectors, unsigned int bar, unsigned int cap_offset, Error **errp);
unsigned int pci_msix_vectors(const PciDevice *dev); /* 0: no MSI-X */
/* [any thread] The guest enabled MSI-X. */
bool pci_msix_enabled(const PciDevice *dev);
/* [any thread] Send, or set the pending bit if masked. A vector out of range is ignored. No lock, no system call. */
void pci_msix_notify(PciDevice *dev, unsigned int vector);

/* --- Buses --- */
/* The number that bridges and requests know it by: what the guest made it, 0 for a root bus. */
uint8_t pci_bus_number(const PciBus *bus);
/* Bus @number as seen from root bus @root; NULL if no bridge leads there. */
PciBus *pci_bus_by_number(PciBus *root, unsigned int number);
/* The bus behind @dev; NULL if it is not a bridge. */
PciBus *pci_bus_behind(const PciDevice *dev);
bool pci_bus_is_express(const PciBus *bus);
/* The windows of the bridge in front of @bus changed: map and unmap BARs below. */
void pci_bus_update_mappings(PciBus *bus);
/* A bus of @type below @owner (a host bridge or a bridge). */
PciBus *pci_bus_new(DeviceState *owner, const char *type, const char *name, int min_slot);
void pci_register_types(void);

#endif
