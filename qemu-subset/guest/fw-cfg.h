/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The firmware configuration device: numbered and named items that a guest reads through ports or by DMA. Main thread only. */
#ifndef GUEST_FW_CFG_H
#define GUEST_FW_CFG_H

#include "guest/qdev.h"

#define TYPE_FW_CFG "fw_cfg_io"

enum {
    FW_CFG_SIGNATURE = 0x0000,
    FW_CFG_FEATURES = 0x0001,
    FW_CFG_UUID = 0x0002,
    FW_CFG_RAM_SIZE = 0x0003,
    FW_CFG_NOGRAPHIC = 0x0004,
    FW_CFG_NB_CPUS = 0x0005,
    FW_CFG_NUMA = 0x000d,
    FW_CFG_BOOT_MENU = 0x000e,
    FW_CFG_MAX_CPUS = 0x000f,
    FW_CFG_FILE_DIR = 0x0019,
    FW_CFG_FILE_FIRST = 0x0020,
    FW_CFG_IRQ0_OVERRIDE = 0x8002,
    FW_CFG_E820_TABLE = 0x8003,
};

typedef struct FwCfg FwCfg;

/* Define an item; the bytes are copied. */
void fw_cfg_add(FwCfg *s, uint16_t key, const void *data, uint32_t len);
void fw_cfg_add_u16(FwCfg *s, uint16_t key, uint16_t value);
void fw_cfg_add_u64(FwCfg *s, uint16_t key, uint64_t value);
/* A named file; the directory is kept sorted by name, so keys settle only when all are there. */
void fw_cfg_add_file(FwCfg *s, const char *name, const void *data, uint32_t len);

void fw_cfg_register_types(void);

#endif
