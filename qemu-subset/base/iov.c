/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers for arrays of struct iovec. */
#include "base/iov.h"

#include <stdint.h>
#include <string.h>

size_t iov_size(const struct iovec *iov, unsigned int niov)
{
    size_t sum = 0;

    for (unsigned int i = 0; i < niov; i++) {
        sum += iov[i].iov_len;
    }
    return sum;
}

enum walk_op { WALK_TO_BUF, WALK_FROM_BUF, WALK_SET };

/* One walk for the three copies: the position arithmetic is the part that goes wrong. */
static size_t iov_walk(const struct iovec *iov, unsigned int niov, size_t offset, size_t bytes,
                       enum walk_op op, uint8_t *buf, int byte)
{
    size_t done = 0;

    for (unsigned int i = 0; i < niov && done < bytes; i++) {
        size_t room = iov[i].iov_len;

        if (offset >= room) {
            offset -= room;
            continue;
        }
        room -= offset;
        if (room > bytes - done) {
            room = bytes - done;
        }
        uint8_t *p = (uint8_t *)iov[i].iov_base + offset;
        switch (op) {
        case WALK_TO_BUF:
            memcpy(buf + done, p, room);
            break;
        case WALK_FROM_BUF:
            memcpy(p, buf + done, room);
            break;
        case WALK_SET:
            memset(p, byte, room);
            break;
        }
        done += room;
        offset = 0;
    }
    return done;
}

size_t iov_to_buf(const struct iovec *iov, unsigned int niov, size_t offset, void *buf, size_t bytes)
{
    return iov_walk(iov, niov, offset, bytes, WALK_TO_BUF, buf, 0);
}

size_t iov_from_buf(const struct iovec *iov, unsigned int niov, size_t offset, const void *buf,
                    size_t bytes)
{
    return iov_walk(iov, niov, offset, bytes, WALK_FROM_BUF, (uint8_t *)(uintptr_t)buf, 0);
}

size_t iov_memset(const struct iovec *iov, unsigned int niov, size_t offset, int byte, size_t bytes)
{
    return iov_walk(iov, niov, offset, bytes, WALK_SET, NULL, byte);
}

int iov_slice(const struct iovec *iov, unsigned int niov, size_t offset, size_t bytes,
              struct iovec *out, unsigned int max)
{
    unsigned int n = 0;

    for (unsigned int i = 0; i < niov && bytes; i++) {
        size_t room = iov[i].iov_len;

        if (offset >= room) {
            offset -= room;
            continue;
        }
        room -= offset;
        if (room > bytes) {
            room = bytes;
        }
        if (n == max) {
            return -1;
        }
        out[n].iov_base = (uint8_t *)iov[i].iov_base + offset;
        out[n++].iov_len = room;
        bytes -= room;
        offset = 0;
    }
    return bytes ? -1 : (int)n;
}

bool iov_aligned(const struct iovec *iov, unsigned int niov, size_t align)
{
    uintptr_t bits = 0;

    for (unsigned int i = 0; i < niov; i++) {
        bits |= (uintptr_t)iov[i].iov_base | iov[i].iov_len;
    }
    return !(bits & (align - 1));
}
