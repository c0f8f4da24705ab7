/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machines "pc" and "q35": RAM around the PCI hole, chipset, firmware configuration; and machine "none". */
#include "guest/fw-cfg.h"
#include "guest/i440fx.h"
#include "guest/machine-private.h"
#include "guest/q35.h"

#include "base/bswap.h"

#include <string.h>

#define MiB (1ULL << 20)
#define GiB (1ULL << 30)
#define HIGH_RAM_BASE (4 * GiB)

#define BIOS_SIZE 0x20000
#define BIOS_BASE (4 * GiB - BIOS_SIZE)
#define RESET_VECTOR (BIOS_SIZE - 16)

/* --- Firmware: no code, but the jump that clients look for where a CPU would start --- */

static uint64_t bios_read(void *opaque, uint64_t offset, unsigned int size)
{
    static const uint8_t vector[16] = {0xea, 0x5b, 0xe0, 0x00, 0xf0};

    return offset >= RESET_VECTOR ? vector[offset - RESET_VECTOR] : 0;
}

static const GuestRegionOps bios_ops = {.read = bios_read, .sizes = 1};
static GuestRegion bios = {
    .name = "pc.bios", .ops = &bios_ops, .space = GUEST_SPACE_MEM, .base = BIOS_BASE, .size = BIOS_SIZE,
    .priority = 1,
};

/* --- fw_cfg --- */

static void add_e820(GByteArray *map, uint64_t addr, uint64_t len, uint32_t type)
{
    uint8_t entry[20];

    store_le64(entry, addr);
    store_le64(entry + 8, len);
    store_le32(entry + 16, type);
    g_byte_array_append(map, entry, sizeof(entry));
}

static void fill_fw_cfg(FwCfg *fw, MachineState *m, uint64_t low, uint64_t high)
{
    const MachineTopology *t = machine_topology();
    g_autoptr(GByteArray) e820 = g_byte_array_new();
    uint8_t word[4];

    add_e820(e820, 0xfd00000000ULL, 0x300000000ULL, 2);
    add_e820(e820, 0, low, 1);
    if (high) {
        add_e820(e820, HIGH_RAM_BASE, high, 1);
    }
    fw_cfg_add(fw, FW_CFG_UUID, machine_uuid(), 16);
    fw_cfg_add_u64(fw, FW_CFG_RAM_SIZE, m->ram_size);
    fw_cfg_add_u16(fw, FW_CFG_NOGRAPHIC, machine_nographic());
    fw_cfg_add_u16(fw, FW_CFG_NB_CPUS, (uint16_t)t->cpus);
    fw_cfg_add_u16(fw, FW_CFG_MAX_CPUS, (uint16_t)t->max_cpus);
    fw_cfg_add_u16(fw, FW_CFG_BOOT_MENU, 0);
    fw_cfg_add(fw, FW_CFG_NUMA, memset(word, 0, 4), 4);
    store_le32(word, 1);
    fw_cfg_add(fw, FW_CFG_IRQ0_OVERRIDE, word, 4);
    fw_cfg_add(fw, FW_CFG_E820_TABLE, e820->data, e820->len);
    fw_cfg_add_file(fw, "bios-geometry", "", 0);
    fw_cfg_add_file(fw, "bootorder", "", 0);
    fw_cfg_add_file(fw, "etc/e820", e820->data, e820->len);
}

/* --- pc --- */

/* RAM below @limit stays in one piece; of more, what is below @split does. */
static void map_ram(MachineState *m, uint64_t limit, uint64_t split, uint64_t *low, uint64_t *high)
{
    uint8_t *host = hostmem_ptr(m->ram);

    *low = m->ram_size >= limit ? split : m->ram_size;
    *high = m->ram_size - *low;
    const GuestRamRange ranges[] = {
        {.base = 0, .size = *low, .host = host},
        {.base = HIGH_RAM_BASE, .size = *high, .host = host + *low},
    };
    guest_ram_set(ranges, *high ? 2 : 1);
}

static bool common_init(MachineState *m, uint64_t limit, uint64_t split, Error **errp)
{
    uint64_t low, high;

    if (m->ram_size > 1ULL << 46) {
        error_setg(errp, "%" G_GUINT64_FORMAT " bytes of RAM do not fit below the guest's physical address limit",
                   m->ram_size);
        return false;
    }
    map_ram(m, limit, split, &low, &high);
    for (unsigned int i = 0; i < machine_topology()->cpus; i++) {
        if (!machine_create_cpu(i, errp)) {
            return false;
        }
    }
    FwCfg *fw = (FwCfg *)device_new(TYPE_FW_CFG);
    fill_fw_cfg(fw, m, low, high);
    if (!device_realize_as((DeviceState *)fw, bus_find("System"), &m->obj, "fw_cfg", errp)) {
        return false;
    }
    if (!guest_region_added(&bios)) {
        guest_region_add(&bios);
    }
    return true;
}

static bool pc_init(MachineState *m, Error **errp)
{
    return common_init(m, 0xe0000000, 0xc0000000, errp) && i440fx_create(m->acpi != DEVICE_OFF, errp);
}

static bool q35_init(MachineState *m, Error **errp)
{
    return common_init(m, 0xb0000000, 0x80000000, errp) &&
           q35_create(m->acpi != DEVICE_OFF, errp);
}

const MachineClass machine_pc = {
    .name = "pc-i440fx-11.1", .alias = "pc", .desc = "Standard PC (i440FX + PIIX, 1996)", .is_default = true,
    .has_acpi = true, .default_ram_id = "pc.ram", .default_cpu_type = TYPE_QEMU64_CPU,
    .default_ram_size = 128 * MiB, .max_cpus = 255, .init = pc_init,
};

const MachineClass machine_q35 = {
    .name = "pc-q35-11.1", .alias = "q35", .desc = "Standard PC (Q35 + ICH9, 2009)", .has_acpi = true,
    .default_ram_id = "pc.ram", .default_cpu_type = TYPE_QEMU64_CPU, .default_ram_size = 128 * MiB,
    .max_cpus = 4096, .init = q35_init,
};

/* --- none --- */

static bool none_init(MachineState *m, Error **errp)
{
    if (m->ram) {
        const GuestRamRange range = {.base = 0, .size = m->ram_size, .host = hostmem_ptr(m->ram)};
        guest_ram_set(&range, 1);
    }
    return true;
}

const MachineClass machine_none = {
    .name = "none", .desc = "empty machine", .default_ram_id = "ram", .max_cpus = 1, .init = none_init};
