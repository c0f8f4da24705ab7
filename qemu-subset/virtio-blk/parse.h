/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the segments of a virtio-blk request to what it asks for; knows no device and no queue. */
#ifndef VIRTIO_BLK_PARSE_H
#define VIRTIO_BLK_PARSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define VIRTIO_BLK_T_IN 0
#define VIRTIO_BLK_T_OUT 1
#define VIRTIO_BLK_T_SCSI_CMD 2
#define VIRTIO_BLK_T_FLUSH 4
#define VIRTIO_BLK_T_GET_ID 8
#define VIRTIO_BLK_T_DISCARD 11
#define VIRTIO_BLK_T_WRITE_ZEROES 13
#define VIRTIO_BLK_T_ZONE_REPORT 16
#define VIRTIO_BLK_T_BARRIER 0x80000000u

#define VIRTIO_BLK_S_OK 0
#define VIRTIO_BLK_S_IOERR 1
#define VIRTIO_BLK_S_UNSUPP 2

#define VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP 1u
#define VIRTIO_BLK_ID_BYTES 20
/* Longest request, and the largest that the two limits below may be, in sectors of 512 bytes. */
#define VIRTIO_BLK_MAX_SECTORS 0x3fffffu

typedef struct VirtIOBlkLimits {
    uint64_t capacity;             /* sectors of 512 bytes */
    uint32_t logical_block;        /* bytes, a power of two */
    uint32_t max_discard_sectors;
    uint32_t max_write_zeroes_sectors;
} VirtIOBlkLimits;

typedef enum VirtIOBlkKind {
    VIRTIO_BLK_READ,
    VIRTIO_BLK_WRITE,
    VIRTIO_BLK_FLUSH,
    VIRTIO_BLK_DISCARD,
    VIRTIO_BLK_WRITE_ZEROES,
    VIRTIO_BLK_GET_ID,
    VIRTIO_BLK_REJECTED, /* to be answered with result */
    VIRTIO_BLK_MALFORMED, /* there is nowhere to put an answer, or no telling what is meant: text */
} VirtIOBlkKind;

typedef struct VirtIOBlkCommand {
    uint8_t kind;   /* VirtIOBlkKind */
    uint8_t result; /* VIRTIO_BLK_S_*, for REJECTED */
    bool may_unmap;
    bool invalid; /* REJECTED: counts as an invalid read or write in the statistics */
    bool is_write; /* REJECTED and invalid: which of the two */
    unsigned int niov;
    struct iovec *iov; /* data, within the segments given */
    uint64_t offset;   /* bytes */
    uint64_t bytes;
    uint8_t *status; /* where the result goes; NULL if MALFORMED */
    const char *text;
} VirtIOBlkCommand;

/*
 * Parse a request whose segments are @iov: first @out_num to be read, then @in_num to be written. The header and the status
 * byte may be split and joined with data in any way; the vector is changed so that data can be described in place.
 */
void virtio_blk_parse(VirtIOBlkCommand *cmd, struct iovec *iov, unsigned int out_num, unsigned int in_num,
                      const VirtIOBlkLimits *limits);

#endif
