/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration ports and the reset control register of PC host bridges. */
#include "guest/pci-host.h"
#include "guest/runstate.h"

#define CONFIG_ADDRESS 0xcf8
#define RESET_CONTROL 0xcf9
#define CONFIG_DATA 0xcfc
#define ENABLE 0x80000000u

static uint64_t address_read(void *opaque, uint64_t offset, unsigned int size)
{
    PciHost *h = opaque;

    return h->config_address >> (8 * offset);
}

static void address_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    PciHost *h = opaque;

    if (offset == 0 && size == 4) {
        h->config_address = (uint32_t)value;
    }
}

static const GuestRegionOps address_ops = {.read = address_read, .write = address_write, .sizes = 1 | 2 | 4};

/* The register number's low bits come from the address register and from the port alike: clients use either. */
static uint32_t data_address(const PciHost *h, uint64_t offset)
{
    return (h->config_address & 0xffffff) | (uint32_t)offset;
}

static uint64_t data_read(void *opaque, uint64_t offset, unsigned int size)
{
    PciHost *h = opaque;

    if (!(h->config_address & ENABLE)) {
        return UINT64_MAX;
    }
    return pci_bus_config_read(h->bus, data_address(h, offset), size);
}

static void data_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    PciHost *h = opaque;

    if (h->config_address & ENABLE) {
        pci_bus_config_write(h->bus, data_address(h, offset), (uint32_t)value, size);
    }
}

static const GuestRegionOps data_ops = {.read = data_read, .write = data_write, .sizes = 1 | 2 | 4};

static void reset_bh(void *opaque)
{
    vm_system_reset(SHUTDOWN_CAUSE_GUEST_RESET);
}

static uint64_t reset_read(void *opaque, uint64_t offset, unsigned int size)
{
    return ((PciHost *)opaque)->reset_control;
}

static void reset_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    if (value & 4) {
        /* Not from inside an access: reset takes mapped regions away. */
        aio_bh_schedule_oneshot(aio_context_main(), reset_bh, NULL);
    } else {
        ((PciHost *)opaque)->reset_control = value & 2;
    }
}

static const GuestRegionOps reset_ops = {.read = reset_read, .write = reset_write, .sizes = 1};

static void add_port(GuestRegion *r, PciHost *h, const char *name, const GuestRegionOps *ops, uint64_t base,
                     uint64_t size, int priority)
{
    *r = (GuestRegion){.name = name, .ops = ops, .opaque = h, .space = GUEST_SPACE_IO, .base = base, .size = size,
                       .priority = priority};
    guest_region_add(r);
}

void pci_host_init(PciHost *h, PciBus *bus)
{
    h->bus = bus;
    add_port(&h->address, h, "pci-conf-idx", &address_ops, CONFIG_ADDRESS, 4, 1);
    add_port(&h->data, h, "pci-conf-data", &data_ops, CONFIG_DATA, 4, 1);
    add_port(&h->reset_register, h, "reset-control", &reset_ops, RESET_CONTROL, 1, 2);
}

void pci_host_unrealize(DeviceState *dev)
{
    PciHost *h = (PciHost *)dev;

    guest_region_remove(&h->address);
    guest_region_remove(&h->data);
    guest_region_remove(&h->reset_register);
}

void pci_host_reset(DeviceState *dev)
{
    PciHost *h = (PciHost *)dev;

    h->config_address = 0;
    h->reset_control = 0;
}
