/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The front of the engines: choosing one, checking a request, and sending it on its way. */
#include "engine/batch.h"
#include "base/iov.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/vfs.h>

static const EngineBackend *const backends[ENGINE_KINDS] = {
    [ENGINE_THREADS] = &engine_backend_threads,
    [ENGINE_NATIVE] = &engine_backend_native,
    [ENGINE_IO_URING] = &engine_backend_io_uring,
};

Batch *batch_of(EngineKind kind)
{
    AioSource *src = aio_source_get(aio_context_current(), backends[kind]->slot);

    assert(src); /* engine_attach() comes first */
    return container_of(src, Batch, source);
}

/* 0, or why the request cannot be right. */
static int check_transfer(const EngineRequest *req)
{
    const EngineFile *file = req->file;

    if (!req->niov || req->niov > IOV_MAX || req->offset > INT64_MAX ||
        req->bytes > INT64_MAX - req->offset) {
        return -EINVAL;
    }
    if (file->direct && (((req->offset | req->bytes) & (file->request_align - 1)) ||
                         !iov_aligned(req->iov, req->niov, file->memory_align))) {
        return -EINVAL; /* some file systems would notice, others not */
    }
    assert(iov_size(req->iov, req->niov) == req->bytes);
    return 0;
}

/* What must be stable at its end cannot be, once writes before it were lost. */
static int check_stable(const EngineRequest *req)
{
    bool stable = req->op == ENGINE_FLUSH || (req->flags & ENGINE_F_FUA);

    return stable ? -atomic_load_explicit(&req->file->lost_writes, memory_order_relaxed) : 0;
}

EngineResult engine_submit(EngineKind kind, EngineRequest *req)
{
    Batch *b = batch_of(kind);
    int ret = check_stable(req);

    if (G_UNLIKELY(ret)) {
        req->ret = ret;
        return ENGINE_DONE;
    }
    if (G_LIKELY(req->op == ENGINE_READ || req->op == ENGINE_WRITE)) {
        ret = check_transfer(req);
        if (ret || !req->bytes) {
            req->ret = ret;
            return ENGINE_DONE;
        }
        engine_begin(b, req, kind);
        batch_add(b, req);
        return ENGINE_QUEUED;
    }
    engine_begin(b, req, kind);
    if (req->op == ENGINE_FLUSH) {
        batch_add(b, req);
    } else {
        batch_to_worker(b, req);
    }
    return ENGINE_QUEUED;
}

void engine_file_open(EngineKind kind, EngineFile *file)
{
    if (kind == ENGINE_IO_URING) {
        aio_file_open(&file->registration);
    }
}

void engine_file_changed(EngineFile *file)
{
    aio_file_changed(&file->registration);
}

void engine_file_close(EngineFile *file)
{
    aio_file_close(&file->registration);
}

static int check_built(EngineKind kind, Error **errp)
{
    if (!engine_built(kind)) {
        error_setg(errp, "aio=%s was specified, but is not supported in this build.",
                   engine_name(kind));
        return -ENOTSUP;
    }
    return 0;
}

int engine_attach(EngineKind kind, AioContext *ctx, Error **errp)
{
    const EngineBackend *backend = backends[kind];
    Batch *b;
    int ret;

    assert(aio_context_in_home(ctx));
    ret = check_built(kind, errp);
    if (ret || aio_source_get(ctx, backend->slot)) {
        return ret;
    }
    ret = backend->prepare(ctx, errp);
    if (ret) {
        return ret;
    }
    b = g_new0(Batch, 1);
    batch_init(b, backend, ctx);
    aio_source_attach(ctx, backend->slot, &b->source);
    return 0;
}

bool engine_file_in_memory(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int engine_probe(EngineKind kind, Error **errp)
{
    int ret = check_built(kind, errp);

    return ret ? ret : backends[kind]->probe(errp);
}

const char *engine_name(EngineKind kind)
{
    return backends[kind]->name;
}

bool engine_built(EngineKind kind)
{
    return backends[kind]->prepare;
}
