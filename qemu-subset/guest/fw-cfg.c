/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fw_cfg on I/O ports, with the DMA interface. */
#include "guest/fw-cfg.h"

#include "base/bswap.h"
#include "guest/memory.h"

#include <string.h>

#define PORT_BASE 0x510
#define PORT_DMA 0x514

#define DMA_ERROR 0x01u
#define DMA_READ 0x02u
#define DMA_SKIP 0x04u
#define DMA_SELECT 0x08u
#define DMA_WRITE 0x10u

#define DIR_ENTRY 64
#define DIR_NAME 56

typedef struct FwCfgFile {
    char *name;
    GBytes *data;
} FwCfgFile;

struct FwCfg {
    DeviceState dev;
    GHashTable *items; /* key -> GBytes */
    GPtrArray *files;  /* FwCfgFile, sorted by name */
    uint16_t key;
    uint64_t offset;
    uint64_t dma_addr;
    GuestRegion ports, dma;
};

#define FW_CFG(p) ((FwCfg *)(p))

/* --- Contents --- */

void fw_cfg_add(FwCfg *s, uint16_t key, const void *data, uint32_t len)
{
    g_hash_table_replace(s->items, GUINT_TO_POINTER(key), g_bytes_new(data, len));
}

void fw_cfg_add_u16(FwCfg *s, uint16_t key, uint16_t value)
{
    uint8_t bytes[2];

    store_le16(bytes, value);
    fw_cfg_add(s, key, bytes, sizeof(bytes));
}

void fw_cfg_add_u64(FwCfg *s, uint16_t key, uint64_t value)
{
    uint8_t bytes[8];

    store_le64(bytes, value);
    fw_cfg_add(s, key, bytes, sizeof(bytes));
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    const FwCfgFile *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

void fw_cfg_add_file(FwCfg *s, const char *name, const void *data, uint32_t len)
{
    FwCfgFile *f = g_new0(FwCfgFile, 1);
    g_autoptr(GByteArray) dir = g_byte_array_new();
    uint8_t count[4];

    g_assert(strlen(name) < DIR_NAME);
    f->name = g_strdup(name);
    f->data = g_bytes_new(data, len);
    g_ptr_array_add(s->files, f);
    g_ptr_array_sort(s->files, by_name);

    store_be32(count, s->files->len);
    g_byte_array_append(dir, count, sizeof(count));
    for (unsigned int i = 0; i < s->files->len; i++) {
        uint8_t entry[DIR_ENTRY] = {0};
        f = g_ptr_array_index(s->files, i);
        store_be32(entry, (uint32_t)g_bytes_get_size(f->data));
        store_be16(entry + 4, (uint16_t)(FW_CFG_FILE_FIRST + i));
        memcpy(entry + 8, f->name, strlen(f->name));
        g_byte_array_append(dir, entry, sizeof(entry));
        g_hash_table_replace(s->items, GUINT_TO_POINTER(FW_CFG_FILE_FIRST + i), g_bytes_ref(f->data));
    }
    fw_cfg_add(s, FW_CFG_FILE_DIR, dir->data, dir->len);
}

/* What is left of the selected item, and how much. */
static const uint8_t *item_rest(FwCfg *s, size_t *left)
{
    GBytes *item = g_hash_table_lookup(s->items, GUINT_TO_POINTER(s->key));
    size_t size = 0;
    const uint8_t *data = item ? g_bytes_get_data(item, &size) : NULL;

    *left = s->offset < size ? size - s->offset : 0;
    return *left ? data + s->offset : NULL;
}

static void select_key(FwCfg *s, uint16_t key)
{
    s->key = key;
    s->offset = 0;
}

/* --- Ports --- */

static uint64_t port_read(void *opaque, uint64_t offset, unsigned int size)
{
    FwCfg *s = opaque;
    size_t left;

    if (offset != 1) {
        return UINT64_MAX;
    }
    const uint8_t *p = item_rest(s, &left);
    uint8_t byte = p ? *p : 0;
    s->offset += left > 0;
    return byte;
}

static void port_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    if (offset == 0 && size == 2) {
        select_key(opaque, (uint16_t)value);
    }
}

static const GuestRegionOps port_ops = {.read = port_read, .write = port_write, .sizes = 1 | 2};

/* Run the descriptor {BE32 control, BE32 length, BE64 address} at s->dma_addr; its control word becomes the result. */
static void dma_run(FwCfg *s)
{
    uint64_t at = s->dma_addr;
    uint8_t desc[16], result[4];

    s->dma_addr = 0;
    if (!guest_ram_read(at, desc, sizeof(desc))) {
        store_be32(result, DMA_ERROR);
        guest_ram_write(at, result, sizeof(result));
        return;
    }
    uint32_t control = load_be32(desc), length = load_be32(desc + 4);
    uint64_t addr = load_be64(desc + 8);
    uint32_t error = 0;
    size_t left;

    if (control & DMA_SELECT) {
        select_key(s, control >> 16);
    }
    const uint8_t *p = item_rest(s, &left);
    size_t n = MIN(left, length);
    if (control & DMA_READ) {
        bool ok = guest_ram_write(addr, p, n);
        ok &= guest_ram_fill(addr + n, 0, length - n);
        error = ok ? 0 : DMA_ERROR;
    } else if (control & DMA_WRITE) {
        /* No item is writable. */
        error = DMA_ERROR;
    }
    if (control & (DMA_READ | DMA_SKIP | DMA_WRITE)) {
        s->offset += n;
    }
    store_be32(result, error);
    guest_ram_write(at, result, sizeof(result));
}

static uint64_t dma_read(void *opaque, uint64_t offset, unsigned int size)
{
    static const uint8_t signature[8] = "QEMU CFG";
    uint8_t bytes[8] = {0};

    memcpy(bytes, signature + offset, size);
    return load_le64(bytes);
}

static void dma_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    FwCfg *s = opaque;
    uint32_t half = GUINT32_SWAP_LE_BE((uint32_t)value);

    if (size != 4) {
        return;
    }
    if (offset == 0) {
        s->dma_addr = (uint64_t)half << 32;
    } else {
        s->dma_addr |= half;
        dma_run(s);
    }
}

static const GuestRegionOps dma_ops = {.read = dma_read, .write = dma_write, .sizes = 1 | 2 | 4};

/* --- Device --- */

static void file_free(void *p)
{
    FwCfgFile *f = p;

    g_free(f->name);
    g_bytes_unref(f->data);
    g_free(f);
}

static void init(Object *obj)
{
    FwCfg *s = FW_CFG(obj);
    uint8_t features[4];

    s->items = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_bytes_unref);
    s->files = g_ptr_array_new_with_free_func(file_free);
    fw_cfg_add(s, FW_CFG_SIGNATURE, "QEMU", 4);
    store_le32(features, 3); /* ports and DMA */
    fw_cfg_add(s, FW_CFG_FEATURES, features, sizeof(features));
}

static void finalize(Object *obj)
{
    FwCfg *s = FW_CFG(obj);

    g_hash_table_destroy(s->items);
    g_ptr_array_free(s->files, TRUE);
}

static bool realize(DeviceState *dev, Error **errp)
{
    FwCfg *s = FW_CFG(dev);

    s->ports = (GuestRegion){.name = "fwcfg", .ops = &port_ops, .opaque = s, .space = GUEST_SPACE_IO,
                             .base = PORT_BASE, .size = 2, .priority = 1};
    s->dma = (GuestRegion){.name = "fwcfg.dma", .ops = &dma_ops, .opaque = s, .space = GUEST_SPACE_IO,
                           .base = PORT_DMA, .size = 8, .priority = 1};
    guest_region_add(&s->ports);
    guest_region_add(&s->dma);
    return true;
}

static void unrealize(DeviceState *dev)
{
    guest_region_remove(&FW_CFG(dev)->ports);
    guest_region_remove(&FW_CFG(dev)->dma);
}

static void reset(DeviceState *dev)
{
    select_key(FW_CFG(dev), FW_CFG_SIGNATURE);
    FW_CFG(dev)->dma_addr = 0;
}

static const DeviceClass fw_cfg_class = {
    .category = "Misc", .realize = realize, .unrealize = unrealize, .reset = reset};

static const ObjectType fw_cfg_type = {
    .name = TYPE_FW_CFG, .parent = TYPE_DEVICE, .size = sizeof(FwCfg), .init = init, .finalize = finalize,
    .klass = &fw_cfg_class};

void fw_cfg_register_types(void)
{
    object_register_type(&fw_cfg_type);
}
