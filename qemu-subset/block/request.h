/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request on its way through the block graph. */
#ifndef BLOCK_REQUEST_H
#define BLOCK_REQUEST_H

#include "loop/aio.h"

#include <sys/uio.h>

typedef struct BlockNode BlockNode;
typedef struct BlockChannel BlockChannel;
typedef struct BlockRequest BlockRequest;

typedef enum BlockOp {
    BLOCK_READ,
    BLOCK_WRITE,
    BLOCK_FLUSH,
    BLOCK_DISCARD,
    BLOCK_WRITE_ZEROES,
    BLOCK_OPS,
} BlockOp;

#define BLOCK_F_FUA (1u << 0)
#define BLOCK_F_MAY_UNMAP (1u << 1)   /* WRITE_ZEROES may discard */
#define BLOCK_F_NO_FALLBACK (1u << 2) /* WRITE_ZEROES: -ENOTSUP rather than writing a buffer of zeroes */

typedef enum BlockResult {
    BLOCK_QUEUED, /* done() will be called exactly once, in the submitting thread, not from within submit */
    BLOCK_DONE,   /* over: the result is in req->ret, done() will not be called */
} BlockResult;

/* Room in every request for the driver at the bottom (the file driver keeps its EngineRequest here). */
#define BLOCK_REQUEST_DRIVER_WORDS 32

struct BlockRequest {
    /*
     * Set by whoever submits; the vector and its memory stay valid and unchanged until the request ends. op, flags,
     * offset and bytes may change on the way down; when a request that came through blk_submit() ends they are again
     * what the submitter set.
     */
    uint8_t op;    /* BlockOp */
    uint8_t flags; /* BLOCK_F_* */
    unsigned int niov;
    const struct iovec *iov;
    uint64_t offset; /* bytes */
    uint64_t bytes;
    /* Home of the submitting thread; @req may be reused or freed in it. req->ret: 0 or -errno. */
    void (*done)(BlockRequest *req);

    int ret;

    /* Private to backend.c, request.c and serial.c. */
    uint8_t orig_op, orig_flags;
    BlockChannel *channel;
    void (*finish)(BlockRequest *req); /* what the lowest driver calls through block_request_end() */
    int64_t start_ns;
    uint64_t orig_offset;
    BlockNode *tracked_by; /* the node whose writes in flight include this one; NULL: none */
    ListNode tracked;

    uint64_t driver[BLOCK_REQUEST_DRIVER_WORDS];
};

/* Take @req off the list of its thread's writes in flight; wakes those that wait for it. */
void block_untrack(BlockRequest *req);

/* For drivers: end a request that was answered with BLOCK_QUEUED. Exactly once; the submitting thread. @ret: 0 or -errno. */
static inline void block_request_end(BlockRequest *req, int ret)
{
    req->ret = ret;
    if (req->tracked_by) {
        block_untrack(req);
    }
    req->finish(req);
}

#endif
