/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine over Linux AIO (aio=native). */
#include "engine/batch.h"
#include "loop/kernel-queue.h"

#include <errno.h>
#include <glib.h>
#include <libaio.h>
#include <string.h>

_Static_assert(sizeof(struct iocb) <= sizeof(((EngineRequest *)0)->kernel), "iocb does not fit");

static void native_completed(AioCompletion *c, int64_t res, uint32_t flags)
{
    batch_completed(batch_of(ENGINE_NATIVE), container_of(c, EngineRequest, completion), res);
}

static struct iocb *fill_iocb(EngineRequest *req)
{
    struct iocb *iocb = (struct iocb *)req->kernel;
    const struct iovec *iov;
    unsigned int niov;
    bool read = req->op == ENGINE_READ;

    memset(iocb, 0, sizeof(*iocb));
    req->completion.fn = native_completed;
    iocb->data = &req->completion;
    iocb->aio_fildes = req->file->fd;
    if (req->op == ENGINE_FLUSH) {
        iocb->aio_lio_opcode = IO_CMD_FDSYNC;
        return iocb;
    }
    engine_remaining(req, &iov, &niov);
    if (niov == 1) {
        /* Spares the kernel a copy of the vector. */
        iocb->aio_lio_opcode = read ? IO_CMD_PREAD : IO_CMD_PWRITE;
        iocb->u.c.buf = iov->iov_base;
        iocb->u.c.nbytes = iov->iov_len;
    } else {
        iocb->aio_lio_opcode = read ? IO_CMD_PREADV : IO_CMD_PWRITEV;
        iocb->u.c.buf = (void *)iov;
        iocb->u.c.nbytes = niov;
    }
    iocb->u.c.offset = (long long)(req->offset + req->progress);
    iocb->aio_rw_flags = engine_rw_flags(req);
    return iocb;
}

static int native_hand_over(Batch *b, unsigned int n)
{
    struct iocb *iocbs[ENGINE_BATCH_MAX];
    FifoNode *node = b->queue.first;
    int ret;

    for (unsigned int i = 0; i < n; i++, node = node->next) {
        iocbs[i] = fill_iocb(request_of(node));
    }
    ret = aio_kaio_submit(b->source.ctx, iocbs, n);
    for (int i = 0; i < ret; i++) {
        batch_pop(b);
    }
    return ret;
}

static unsigned int native_space(Batch *b)
{
    return aio_kaio_free_events(b->source.ctx);
}

static int native_prepare(AioContext *ctx, Error **errp)
{
    return aio_kaio_get(ctx, errp) ? 0 : -EAGAIN;
}

static int native_probe(Error **errp)
{
    io_context_t kernel = NULL;
    int ret = io_setup(1, &kernel);

    if (ret) {
        error_setg_errno(errp, -ret, "Unable to use Linux AIO");
        if (ret == -EAGAIN) {
            error_append_hint(errp, "All of fs.aio-max-nr is in use; raise it with sysctl.\n");
        }
        return ret;
    }
    io_destroy(kernel);
    return 0;
}

const EngineBackend engine_backend_native = {
    .name = "native",
    .slot = AIO_SLOT_NATIVE,
    .source_ops = BATCH_SOURCE_OPS("native"),
    .prepare = native_prepare,
    .probe = native_probe,
    .space = native_space,
    .hand_over = native_hand_over,
};
