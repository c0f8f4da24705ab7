/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parsing of virtio-blk requests, whatever their framing. */
#include "virtio-blk/parse.h"

#include "base/bswap.h"
#include "base/iov.h"
#include "virtio/ring-access.h"

/* struct virtio_blk_outhdr: type u32, ioprio u32, sector u64. struct virtio_blk_discard_write_zeroes: below. */
#define OUTHDR_SIZE 16
#define DWZ_SIZE 16
#define SCSI_INHDR_SIZE 16
#define SCSI_ERRORS 255
/* Status byte, report header and one zone. */
#define ZONE_REPORT_MIN (1 + 64 + 64)
#define SECTOR_BITS 9

static void malformed(VirtIOBlkCommand *cmd, const char *text)
{
    cmd->kind = VIRTIO_BLK_MALFORMED;
    cmd->text = text;
    cmd->status = NULL;
}

static void reject(VirtIOBlkCommand *cmd, uint8_t result)
{
    cmd->kind = VIRTIO_BLK_REJECTED;
    cmd->result = result;
}

static void reject_invalid(VirtIOBlkCommand *cmd, bool is_write)
{
    reject(cmd, VIRTIO_BLK_S_IOERR);
    cmd->invalid = true;
    cmd->is_write = is_write;
}

static bool range_ok(const VirtIOBlkLimits *l, uint64_t sector, uint64_t bytes)
{
    uint64_t sectors = bytes >> SECTOR_BITS;

    return sectors <= VIRTIO_BLK_MAX_SECTORS && !(bytes & (l->logical_block - 1)) &&
           !(sector & ((l->logical_block >> SECTOR_BITS) - 1)) && sector <= l->capacity &&
           sectors <= l->capacity - sector;
}

/* Drop @bytes from the front of the vector; it is at least that long. */
static void drop_front(struct iovec **iov, unsigned int *n, size_t bytes)
{
    while (*n && bytes >= (*iov)->iov_len) {
        bytes -= (*iov)->iov_len;
        (*iov)++;
        (*n)--;
    }
    if (bytes) {
        (*iov)->iov_base = (uint8_t *)(*iov)->iov_base + bytes;
        (*iov)->iov_len -= bytes;
    }
}

static void parse_read_write(VirtIOBlkCommand *cmd, uint64_t sector, bool is_write, const VirtIOBlkLimits *l)
{
    cmd->bytes = cmd->niov == 1 ? cmd->iov->iov_len : iov_size(cmd->iov, cmd->niov);
    if (!range_ok(l, sector, cmd->bytes)) {
        reject_invalid(cmd, is_write);
        return;
    }
    cmd->kind = is_write ? VIRTIO_BLK_WRITE : VIRTIO_BLK_READ;
    cmd->offset = sector << SECTOR_BITS;
}

static void parse_discard_write_zeroes(VirtIOBlkCommand *cmd, uint32_t type, const VirtIOBlkLimits *l)
{
    bool zeroes = (type | VIRTIO_BLK_T_OUT) == VIRTIO_BLK_T_WRITE_ZEROES;
    uint32_t max = zeroes ? l->max_write_zeroes_sectors : l->max_discard_sectors;
    size_t size = iov_size(cmd->iov, cmd->niov);
    uint8_t dwz[DWZ_SIZE];
    uint64_t sector;
    uint32_t sectors, flags;

    /* A segment is all we take; configuration space says so. */
    if (!(type & VIRTIO_BLK_T_OUT) || size > DWZ_SIZE) {
        reject(cmd, VIRTIO_BLK_S_UNSUPP);
        return;
    }
    if (iov_to_buf(cmd->iov, cmd->niov, 0, dwz, DWZ_SIZE) != DWZ_SIZE) {
        malformed(cmd, "virtio-blk discard/write_zeroes header too short");
        return;
    }
    sector = load_le64(dwz);
    sectors = load_le32(dwz + 8);
    flags = load_le32(dwz + 12);
    if (sectors > max || !range_ok(l, sector, (uint64_t)sectors << SECTOR_BITS)) {
        reject_invalid(cmd, true);
        return;
    }
    if (flags & ~(zeroes ? VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP : 0)) {
        reject(cmd, VIRTIO_BLK_S_UNSUPP);
        return;
    }
    cmd->kind = zeroes ? VIRTIO_BLK_WRITE_ZEROES : VIRTIO_BLK_DISCARD;
    cmd->may_unmap = flags & VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP;
    cmd->offset = sector << SECTOR_BITS;
    cmd->bytes = (uint64_t)sectors << SECTOR_BITS;
    cmd->iov = NULL;
    cmd->niov = 0;
}

/* SCSI passthrough is gone; what is left is how it is refused. @in: the segments to be written, without the status byte. */
static void parse_scsi(VirtIOBlkCommand *cmd, unsigned int out_num, struct iovec *in, unsigned int in_num)
{
    if (out_num < 2 || in_num < 3 || in[in_num - 2].iov_len != SCSI_INHDR_SIZE) {
        reject(cmd, VIRTIO_BLK_S_IOERR);
        return;
    }
    store_le32(in[in_num - 2].iov_base, SCSI_ERRORS);
    reject(cmd, VIRTIO_BLK_S_UNSUPP);
}

static bool read_header(const struct iovec *out, unsigned int out_num, uint32_t *type, uint64_t *sector)
{
    uint8_t hdr[OUTHDR_SIZE];

    if (out->iov_len >= OUTHDR_SIZE) {
        *type = ring_load32(out->iov_base);
        *sector = ring_load64((uint8_t *)out->iov_base + 8);
        return true;
    }
    if (iov_to_buf(out, out_num, 0, hdr, OUTHDR_SIZE) != OUTHDR_SIZE) {
        return false;
    }
    *type = load_le32(hdr);
    *sector = load_le64(hdr + 8);
    return true;
}

/* Everything but reads and writes. */
static void parse_other(VirtIOBlkCommand *cmd, uint32_t type, unsigned int out_num, struct iovec *in,
                        unsigned int in_num, const VirtIOBlkLimits *limits)
{
    switch (type & ~VIRTIO_BLK_T_OUT) {
    case VIRTIO_BLK_T_FLUSH:
        cmd->kind = VIRTIO_BLK_FLUSH;
        cmd->niov = 0;
        break;
    case VIRTIO_BLK_T_GET_ID:
        cmd->kind = VIRTIO_BLK_GET_ID;
        break;
    case VIRTIO_BLK_T_DISCARD & ~VIRTIO_BLK_T_OUT:
    case VIRTIO_BLK_T_WRITE_ZEROES & ~VIRTIO_BLK_T_OUT:
        parse_discard_write_zeroes(cmd, type, limits);
        break;
    case VIRTIO_BLK_T_SCSI_CMD:
        parse_scsi(cmd, out_num, in, in_num);
        break;
    case VIRTIO_BLK_T_ZONE_REPORT:
        if (iov_size(in, in_num) + 1 < ZONE_REPORT_MIN) {
            malformed(cmd, "in buffer too small for zone report");
            break;
        }
        reject(cmd, VIRTIO_BLK_S_UNSUPP);
        break;
    default:
        reject(cmd, VIRTIO_BLK_S_UNSUPP);
    }
}

void virtio_blk_parse(VirtIOBlkCommand *cmd, struct iovec *iov, unsigned int out_num, unsigned int in_num,
                      const VirtIOBlkLimits *limits)
{
    struct iovec *out = iov, *in = iov + out_num, *last = in + in_num - 1;
    unsigned int all_out = out_num;
    uint32_t type;
    uint64_t sector;

    cmd->may_unmap = cmd->invalid = false;
    cmd->offset = cmd->bytes = 0;
    if (!out_num || !in_num) {
        malformed(cmd, "virtio-blk missing headers");
        return;
    }
    if (!read_header(out, out_num, &type, &sector)) {
        malformed(cmd, "virtio-blk request outhdr too short");
        return;
    }
    if (!last->iov_len) {
        malformed(cmd, "virtio-blk request inhdr too short");
        return;
    }
    drop_front(&out, &out_num, OUTHDR_SIZE);
    last->iov_len--;
    cmd->status = (uint8_t *)last->iov_base + last->iov_len;

    type &= ~VIRTIO_BLK_T_BARRIER;
    if (type & VIRTIO_BLK_T_OUT) {
        cmd->iov = out;
        cmd->niov = out_num;
    } else {
        cmd->iov = in;
        cmd->niov = last->iov_len ? in_num : in_num - 1;
    }
    if (type <= VIRTIO_BLK_T_OUT) {
        parse_read_write(cmd, sector, type, limits);
        return;
    }
    if ((type & ~VIRTIO_BLK_T_OUT) == VIRTIO_BLK_T_GET_ID) {
        cmd->iov = in;
        cmd->niov = in_num;
        cmd->bytes = iov_size(in, in_num);
    }
    parse_other(cmd, type, all_out, in, in_num, limits);
}
