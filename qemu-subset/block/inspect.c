/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the content of a buffer says: zeroes, and the image format that it would be taken for. */
#include "block/inspect.h"

#include "base/iov.h"

#include <string.h>

static bool is_zero(const void *buf, size_t bytes)
{
    const unsigned char *p = buf;

    /* Equal to itself one byte on, and the first byte zero: memcmp() has the vector code already. */
    return bytes == 0 || (p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0);
}

bool block_iov_is_zero(const struct iovec *iov, unsigned int niov)
{
    for (unsigned int i = 0; i < niov; i++) {
        if (!is_zero(iov[i].iov_base, iov[i].iov_len)) {
            return false;
        }
    }
    return true;
}

typedef struct Magic {
    const char *format;
    size_t offset, length;
    const char *bytes;
} Magic;

static const Magic magics[] = {
    { "qcow2", 0, 8, "QFI\xfb\0\0\0\2" },
    { "qcow2", 0, 8, "QFI\xfb\0\0\0\3" },
    { "qcow", 0, 8, "QFI\xfb\0\0\0\1" },
    { "qed", 0, 4, "QED\0" },
    { "vmdk", 0, 4, "KDMV" },
    { "vmdk", 0, 4, "COWD" },
    { "vmdk", 0, 21, "# Disk DescriptorFile" },
    { "vhdx", 0, 8, "vhdxfile" },
    { "vpc", 0, 8, "conectix" },
    { "vdi", 64, 4, "\x7f\x10\xda\xbe" },
    { "luks", 0, 6, "LUKS\xba\xbe" },
    { "parallels", 0, 16, "WithoutFreeSpace" },
    { "parallels", 0, 16, "WithouFreSpacExt" },
    { "bochs", 0, 22, "Bochs Virtual HD Image" },
};

const char *block_probe_format(const void *buf, size_t bytes)
{
    for (size_t i = 0; i < G_N_ELEMENTS(magics); i++) {
        const Magic *m = &magics[i];

        if (bytes >= m->offset + m->length && !memcmp((const char *)buf + m->offset, m->bytes, m->length)) {
            return m->format;
        }
    }
    return "raw";
}

int block_inspect_write(const BlockNode *node, BlockRequest *req)
{
    if (node->probed && req->bytes && req->offset < BLOCK_PROBE_BYTES) {
        char head[BLOCK_PROBE_BYTES];

        /* Part of the sector could complete a header whose rest is there already. */
        if (req->offset || req->bytes < sizeof(head)) {
            return -EPERM;
        }
        iov_to_buf(req->iov, req->niov, 0, head, sizeof(head));
        if (strcmp(block_probe_format(head, sizeof(head)), "raw")) {
            return -EPERM;
        }
    }
    if (node->detect_zeroes && block_iov_is_zero(req->iov, req->niov)) {
        req->op = BLOCK_WRITE_ZEROES;
        if (node->detect_zeroes == BLOCKDEV_DETECT_ZEROES_OPTIONS_UNMAP) {
            req->flags |= BLOCK_F_MAY_UNMAP;
        }
    }
    return 0;
}
