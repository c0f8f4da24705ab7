/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Helpers for arrays of struct iovec. All offsets and lengths are bytes; any thread. */
#ifndef BASE_IOV_H
#define BASE_IOV_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/* Sum of the lengths. */
size_t iov_size(const struct iovec *iov, unsigned int niov);

/* Copy up to @bytes between the vector, from @offset on, and @buf. Returns the bytes copied: less when the vector ends. */
size_t iov_to_buf(const struct iovec *iov, unsigned int niov, size_t offset, void *buf, size_t bytes);
size_t iov_from_buf(const struct iovec *iov, unsigned int niov, size_t offset, const void *buf,
                    size_t bytes);

/* Fill with @byte. Returns the bytes set. */
size_t iov_memset(const struct iovec *iov, unsigned int niov, size_t offset, int byte, size_t bytes);

/*
 * Describe @bytes of @iov from @offset on in @out, which has room for @max elements.
 * Returns the number of elements used, or -1 if @max is too small or the vector too short.
 */
int iov_slice(const struct iovec *iov, unsigned int niov, size_t offset, size_t bytes,
              struct iovec *out, unsigned int max);

/* True if every base address and length is a multiple of @align (a power of two). */
bool iov_aligned(const struct iovec *iov, unsigned int niov, size_t align);

#endif
