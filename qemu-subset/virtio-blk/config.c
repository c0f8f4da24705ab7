/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Features and configuration space of virtio-blk. Main thread. */
#include "virtio-blk/internal.h"

#include "base/bswap.h"

enum {
    F_SEG_MAX = 2, F_GEOMETRY = 4, F_RO = 5, F_BLK_SIZE = 6, F_SCSI = 7, F_WCE = 9, F_TOPOLOGY = 10, F_CONFIG_WCE = 11,
    F_MQ = 12, F_DISCARD = 13, F_WRITE_ZEROES = 14,
};

/* struct virtio_blk_config. */
enum {
    CFG_CAPACITY = 0, CFG_SEG_MAX = 12, CFG_CYLINDERS = 16, CFG_HEADS = 18, CFG_SECTORS = 19, CFG_BLK_SIZE = 20,
    CFG_PHYS_EXP = 24, CFG_MIN_IO = 26, CFG_OPT_IO = 28, CFG_WCE = 32, CFG_NUM_QUEUES = 34, CFG_DISCARD_SECTORS = 36,
    CFG_DISCARD_SEG = 40, CFG_DISCARD_ALIGN = 44, CFG_DISCARD_END = 48, CFG_WZ_SECTORS = 48, CFG_WZ_SEG = 52,
    CFG_WZ_UNMAP = 56, CFG_WZ_END = 57, CFG_BASE_END = 36, CFG_SIZE_MAX = 64,
};
#define SEG_MAX_DEFAULT 126 /* without seg-max-adjust: what a queue of 128 has room for */
#define SECTOR_SIZE 512u

uint16_t virtio_blk_config_len(const VirtIOBlock *s)
{
    return s->write_zeroes ? CFG_WZ_END : s->discard ? CFG_DISCARD_END : CFG_BASE_END;
}

uint64_t virtio_blk_get_features(VirtIODevice *vdev, uint64_t f)
{
    VirtIOBlock *s = (VirtIOBlock *)vdev;

    f |= 1u << F_SEG_MAX | 1u << F_GEOMETRY | 1u << F_BLK_SIZE | 1u << F_TOPOLOGY;
    if (!(f >> VIRTIO_F_VERSION_1 & 1)) {
        f |= 1u << F_SCSI;
        f &= ~(1ull << VIRTIO_F_ANY_LAYOUT | 1ull << VIRTIO_F_RING_RESET);
    }
    f |= (uint64_t)s->config_wce << F_CONFIG_WCE;
    if (s->original_wce || (s->x_enable_wce && s->config_wce)) {
        f |= 1u << F_WCE;
    }
    f |= (uint64_t)!blk_writable(s->blk) << F_RO;
    f |= (uint64_t)(s->num_queues > 1) << F_MQ;
    f |= (uint64_t)s->discard << F_DISCARD | (uint64_t)s->write_zeroes << F_WRITE_ZEROES;
    return f;
}

static unsigned int log2_of(uint32_t v)
{
    return 31 - (unsigned int)__builtin_clz(v);
}

void virtio_blk_get_config(VirtIODevice *vdev, uint8_t *config)
{
    VirtIOBlock *s = (VirtIOBlock *)vdev;
    uint8_t c[CFG_SIZE_MAX] = {0};
    uint32_t block = s->logical_block_size;
    uint32_t granularity = s->discard_granularity;

    store_le64(c + CFG_CAPACITY, blk_length(s->blk) / SECTOR_SIZE);
    store_le32(c + CFG_SEG_MAX, s->seg_max_adjust ? s->queue_size - 2u : SEG_MAX_DEFAULT);
    store_le16(c + CFG_CYLINDERS, s->cyls);
    c[CFG_HEADS] = s->heads;
    /* A track that is no whole number of blocks would tempt drivers to misaligned partitions. */
    c[CFG_SECTORS] = blk_length(s->blk) / s->heads / s->secs % block ? s->secs & ~(block / SECTOR_SIZE - 1) : s->secs;
    store_le32(c + CFG_BLK_SIZE, block);
    c[CFG_PHYS_EXP] = log2_of(s->physical_block_size) - log2_of(block);
    store_le16(c + CFG_MIN_IO, s->min_io_size / block);
    store_le32(c + CFG_OPT_IO, s->opt_io_size / block);
    c[CFG_WCE] = blk_write_cache(s->blk);
    store_le16(c + CFG_NUM_QUEUES, s->num_queues);
    if (granularity == UINT32_MAX || !s->report_discard_granularity) {
        granularity = block;
    }
    if (s->discard) {
        store_le32(c + CFG_DISCARD_SECTORS, s->max_discard_sectors);
        store_le32(c + CFG_DISCARD_SEG, 1);
        store_le32(c + CFG_DISCARD_ALIGN, granularity / SECTOR_SIZE);
    }
    if (s->write_zeroes) {
        store_le32(c + CFG_WZ_SECTORS, s->max_write_zeroes_sectors);
        store_le32(c + CFG_WZ_SEG, 1);
        c[CFG_WZ_UNMAP] = 1;
    }
    memcpy(config, c, vdev->config_len);
}

void virtio_blk_set_config(VirtIODevice *vdev, const uint8_t *config)
{
    VirtIOBlock *s = (VirtIOBlock *)vdev;

    /* The only member that drivers may write. */
    blk_set_write_cache(s->blk, config[CFG_WCE] != 0);
}

/* --- Properties that describe the disk --- */

static bool check_range(const char *name, uint32_t v, uint32_t max, Error **errp)
{
    if (v < 1 || v > max) {
        error_setg(errp, "%s must be between 1 and %u", name, max);
        return false;
    }
    return true;
}

bool virtio_blk_check_geometry(VirtIOBlock *s, Error **errp)
{
    if (!s->cyls && !s->heads && !s->secs) {
        uint64_t cyls = blk_length(s->blk) / SECTOR_SIZE / (16 * 63);

        s->heads = 16;
        s->secs = 63;
        s->cyls = CLAMP(cyls, 2, 16383);
        return true;
    }
    return check_range("cyls", s->cyls, UINT16_MAX, errp) && check_range("heads", s->heads, UINT8_MAX, errp) &&
           check_range("secs", s->secs, UINT8_MAX, errp);
}

static bool check_multiple(const char *name, uint32_t v, uint32_t block, Error **errp)
{
    if (v % block) {
        error_setg(errp, "%s must be a multiple of logical_block_size", name);
        return false;
    }
    return true;
}

static bool check_max_sectors(const char *name, uint32_t v, Error **errp)
{
    if (!v || v > VIRTIO_BLK_MAX_SECTORS) {
        error_setg(errp, "invalid %s property (%u), must be between 1 and %u", name, v, VIRTIO_BLK_MAX_SECTORS);
        return false;
    }
    return true;
}

bool virtio_blk_check_sizes(VirtIOBlock *s, Error **errp)
{
    if (!s->physical_block_size) {
        s->physical_block_size = SECTOR_SIZE;
    }
    if (!s->logical_block_size) {
        s->logical_block_size = SECTOR_SIZE;
    }
    if (s->logical_block_size > s->physical_block_size) {
        error_setg(errp, "logical_block_size > physical_block_size not supported");
        return false;
    }
    if (!check_multiple("min_io_size", s->min_io_size, s->logical_block_size, errp)) {
        return false;
    }
    if (s->min_io_size / s->logical_block_size > UINT16_MAX) {
        error_setg(errp, "min_io_size must not exceed %u logical blocks", UINT16_MAX);
        return false;
    }
    if (!check_multiple("opt_io_size", s->opt_io_size, s->logical_block_size, errp)) {
        return false;
    }
    if (s->discard_granularity != UINT32_MAX &&
        !check_multiple("discard_granularity", s->discard_granularity, s->logical_block_size, errp)) {
        return false;
    }
    return (!s->discard || check_max_sectors("max-discard-sectors", s->max_discard_sectors, errp)) &&
           (!s->write_zeroes || check_max_sectors("max-write-zeroes-sectors", s->max_write_zeroes_sectors, errp));
}
