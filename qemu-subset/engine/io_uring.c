/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine over the loop's io_uring (aio=io_uring). */
#include "engine/batch.h"
#include "loop/kernel-queue.h"

#include <errno.h>
#include <glib.h>
#include <liburing.h>

static void uring_completed(AioCompletion *c, int64_t res, uint32_t flags)
{
    batch_completed(batch_of(ENGINE_IO_URING), container_of(c, EngineRequest, completion), res);
}

/* The loop has set user_data; some versions of io_uring_prep_*() clear it. */
static void fill_sqe(struct io_uring_sqe *sqe, EngineRequest *req)
{
    uint64_t user_data = sqe->user_data, offset = req->offset + req->progress;
    int fd = req->file->fd;
    const struct iovec *iov;
    unsigned int niov;

    if (req->op == ENGINE_FLUSH) {
        io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
    } else {
        engine_remaining(req, &iov, &niov);
        if (niov == 1 && iov->iov_len <= INT32_MAX) {
            /* Spares the kernel a copy of the vector. */
            if (req->op == ENGINE_READ) {
                io_uring_prep_read(sqe, fd, iov->iov_base, (unsigned int)iov->iov_len, offset);
            } else {
                io_uring_prep_write(sqe, fd, iov->iov_base, (unsigned int)iov->iov_len, offset);
            }
        } else if (req->op == ENGINE_READ) {
            io_uring_prep_readv(sqe, fd, iov, niov, offset);
        } else {
            io_uring_prep_writev(sqe, fd, iov, niov, offset);
        }
        sqe->rw_flags = engine_rw_flags(req);
    }
    sqe->user_data = user_data;
}

/* What of a batch goes over registered memory and files. */
typedef struct Registered {
    unsigned int flags; /* AIO_URING_REGISTERED_* in force */
    unsigned int buffers, files;
} Registered;

static bool use_file(AioContext *ctx, struct io_uring_sqe *sqe, const EngineFile *file)
{
    int index = aio_uring_file_index(ctx, &file->registration, file->fd);

    if (index < 0) {
        return false;
    }
    sqe->fd = index;
    sqe->flags |= IOSQE_FIXED_FILE;
    return true;
}

static bool use_buffer(AioContext *ctx, struct io_uring_sqe *sqe)
{
    bool read = sqe->opcode == IORING_OP_READ;
    int index = -1;

    if (read || sqe->opcode == IORING_OP_WRITE) {
        index = aio_uring_buffer_index(ctx, (const void *)(uintptr_t)sqe->addr, sqe->len);
    }
    if (index < 0) {
        return false;
    }
    sqe->opcode = read ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
    sqe->buf_index = (uint16_t)index;
    return true;
}

static void use_registered(AioContext *ctx, struct io_uring_sqe *sqe, const EngineFile *file, Registered *r)
{
    bool in_file = (r->flags & AIO_URING_REGISTERED_FILES) && use_file(ctx, sqe, file);
    bool in_buffer = (r->flags & AIO_URING_REGISTERED_BUFFERS) && use_buffer(ctx, sqe);

    r->files += in_file;
    r->buffers += in_buffer;
    if (in_file || in_buffer) {
        aio_uring_uses_registered(ctx, sqe);
    }
}

static void count_registered(AioContext *ctx, const Registered *r)
{
    if (r->flags) {
        aio_stat_add(&aio_context_stats(ctx)->buffer_requests, r->buffers);
        aio_stat_add(&aio_context_stats(ctx)->file_requests, r->files);
    }
}

/*
 * Copies so long are better shared among processors, and must not keep the loop from the rest of what it serves: from here on
 * workers of the kernel's do them, unless there is nothing else to do meanwhile. On two processors they win from depth 32 on
 * with 256 KiB, from depth 8 on with 1 MiB (docs/performance.md).
 */
#define LONG_COPY (256 * 1024)

static bool for_a_worker(const Batch *b, const EngineRequest *req)
{
    return req->file->nonblock && req->bytes >= LONG_COPY && b->live.next != b->live.prev;
}

static int uring_hand_over(Batch *b, unsigned int n)
{
    AioContext *ctx = b->source.ctx;
    Registered registered = {0};
    unsigned int i;

    /* What an earlier call could not submit goes first and alone: together the two might exceed the limit. */
    if (aio_uring_requests_queued(ctx) && (aio_uring_submit(ctx) < 0 || aio_uring_requests_queued(ctx))) {
        return -EAGAIN;
    }
    registered.flags = aio_uring_registered(ctx);
    for (i = 0; i < n; i++) {
        EngineRequest *req = request_of(b->queue.first);
        struct io_uring_sqe *sqe = aio_uring_sqe(ctx, &req->completion);

        if (!sqe) {
            break;
        }
        req->completion.fn = uring_completed;
        fill_sqe(sqe, req);
        if (for_a_worker(b, req)) {
            sqe->flags |= IOSQE_ASYNC;
        }
        if (registered.flags) {
            use_registered(ctx, sqe, req->file, &registered);
        }
        batch_pop(b);
    }
    if (!i) {
        return -EAGAIN;
    }
    count_registered(ctx, &registered);
    /* Entries that the kernel does not take now stay in the ring, and the loop submits them when it waits. */
    if (b->section_ends && !b->queued) {
        aio_uring_submit_soon(ctx);
    } else {
        aio_uring_submit(ctx);
    }
    return (int)i;
}

static unsigned int uring_space(Batch *b)
{
    return aio_uring_space(b->source.ctx);
}

static int uring_prepare(AioContext *ctx, Error **errp)
{
    if (!aio_uring_get(ctx, errp)) {
        return -ENOSYS;
    }
    /* Now rather than with the first request: it may take a while, and warn. */
    aio_uring_registered(ctx);
    return 0;
}

static int uring_probe(Error **errp)
{
    struct io_uring ring;
    int ret = io_uring_queue_init(1, &ring, 0);

    if (ret) {
        error_setg(errp, "aio=io_uring was specified, but is not available (disabled via "
                         "io_uring_disabled sysctl or blocked by container runtime seccomp policy?)");
        return ret;
    }
    io_uring_queue_exit(&ring);
    return 0;
}

const EngineBackend engine_backend_io_uring = {
    .name = "io_uring",
    .slot = AIO_SLOT_IO_URING,
    .source_ops = BATCH_SOURCE_OPS("io_uring"),
    .prepare = uring_prepare,
    .probe = uring_probe,
    .space = uring_space,
    .hand_over = uring_hand_over,
};
