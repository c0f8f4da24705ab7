/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the content of a buffer says: zeroes, and the image format that it would be taken for. */
#ifndef BLOCK_INSPECT_H
#define BLOCK_INSPECT_H

#include "block/node.h"

#define BLOCK_PROBE_BYTES 512

/* [any] True if all of @iov is zero. */
bool block_iov_is_zero(const struct iovec *iov, unsigned int niov);

/* [any] The name of the format that an image which begins like this is taken for; "raw" if it looks like none. */
const char *block_probe_format(const void *buf, size_t bytes);

/*
 * [any] For nodes with detect-zeroes or of guessed format: turn a write of zeroes into BLOCK_WRITE_ZEROES, refuse
 * (-EPERM) what would make the image look like another format at its next opening. 0: go on.
 */
int block_inspect_write(const BlockNode *node, BlockRequest *req);

#endif
