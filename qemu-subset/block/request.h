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
    /* Set by whoever submits; the vector and its memory stay valid and unchanged until the request ends. */
    uint8_t op;    /* BlockOp */
    uint8_t flags; /* BLOCK_F_* */
    unsigned int niov;
    const struct iovec *iov;
    uint64_t offset; /* bytes; a filter may move it on the way down */
    uint64_t bytes;
    /* Home of the submitting thread; @req may be reused or freed in it. req->ret: 0 or -errno. */
    void (*done)(BlockRequest *req);

    int ret;

    /* Private to backend.c and request.c. */
    BlockChannel *channel;
    void (*finish)(BlockRequest *req); /* what the lowest driver calls through block_request_end() */
    int64_t start_ns;
    ListNode tracked;
    void *detour; /* state of the slow path (bounce, read-modify-write, coroutine), NULL on the fast one */

    uint64_t driver[BLOCK_REQUEST_DRIVER_WORDS];
};

/* For drivers: end a request that was answered with BLOCK_QUEUED. Exactly once; the submitting thread. @ret: 0 or -errno. */
static inline void block_request_end(BlockRequest *req, int ret)
{
    req->ret = ret;
    req->finish(req);
}

#endif
