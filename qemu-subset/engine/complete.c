/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one completion policy: short transfers, end of file, retries, lack of space, FUA; beginning and end of a request. */
#include "engine/batch.h"
#include "base/iov.h"

#include <errno.h>
#include <glib.h>

/* A kernel that answers "try again" so often in a row gets the request from a worker thread, where waiting is harmless. */
#define MAX_ATTEMPTS 8

/* A value that memory which was never a request hardly holds. */
#define STATE_LIVE 0xe7
#define STATE_OVER 0x11

static void publish_oldest(Batch *b)
{
    static const char *const names[] = {
        [ENGINE_READ] = "read",       [ENGINE_WRITE] = "write",     [ENGINE_FLUSH] = "flush", [ENGINE_WRITE_ZEROES] = "write zeroes",
        [ENGINE_DISCARD] = "discard", [ENGINE_TRUNCATE] = "truncate",
    };
    const EngineRequest *req = list_first(&b->live, EngineRequest, live_link);

    aio_source_set_oldest(&b->source, names[req->op], req->offset, req->bytes, req->begun_ns);
}

void engine_begin(Batch *b, EngineRequest *req, EngineKind kind)
{
    assert(req->state != STATE_LIVE);
    req->state = STATE_LIVE;
    req->kind = (uint8_t)kind;
    req->ret = 0;
    req->progress = 0;
    req->dsync = false;
    req->partial = NULL;
    batch_clock(b);
    req->begun_ns = b->clock_ns;
    list_append(&b->live, &req->live_link);
    if (b->live.next == &req->live_link) {
        publish_oldest(b);
    }
    aio_stat_add(&b->source.in_flight.count, 1);
}

void engine_finish(Batch *b, EngineRequest *req, int ret)
{
    bool oldest = b->live.next == &req->live_link;

    assert(req->state == STATE_LIVE);
    req->state = STATE_OVER;
    list_remove(&req->live_link);
    aio_stat_add(&b->source.in_flight.count, UINT64_MAX);
    if (oldest && !list_empty(&b->live)) {
        publish_oldest(b);
    }
    req->ret = ret;
    if (G_UNLIKELY(req->partial)) {
        g_free(req->partial);
        req->partial = NULL;
    }
    req->done(req, ret);
}

int engine_rw_flags(EngineRequest *req)
{
    req->dsync = (req->flags & ENGINE_F_FUA) && req->op == ENGINE_WRITE &&
                 !atomic_load_explicit(&req->file->no_dsync, memory_order_relaxed);
    return req->dsync ? RWF_DSYNC : 0;
}

void engine_remaining(EngineRequest *req, const struct iovec **iov, unsigned int *niov)
{
    if (G_LIKELY(!req->progress)) {
        *iov = req->iov;
        *niov = req->niov;
        return;
    }
    if (!req->partial) {
        req->partial = g_new(struct iovec, req->niov);
    }
    *niov = (unsigned int)iov_slice(req->iov, req->niov, req->progress, req->bytes - req->progress,
                                    req->partial, req->niov);
    *iov = req->partial;
}

/* While a request lives, ->ret counts answers in a row that made no progress. */
static EngineVerdict try_again(EngineRequest *req)
{
    return ++req->ret <= MAX_ATTEMPTS ? VERDICT_AGAIN : VERDICT_WORKER;
}

static EngineVerdict over(EngineRequest *req, int ret)
{
    req->ret = ret;
    return VERDICT_OVER;
}

static EngineVerdict transfer_complete(EngineRequest *req)
{
    req->progress = req->bytes;
    if ((req->flags & ENGINE_F_FUA) && req->op == ENGINE_WRITE &&
        atomic_load_explicit(&req->file->no_dsync, memory_order_relaxed)) {
        return VERDICT_WORKER; /* nothing left to write, but an fdatasync */
    }
    return over(req, 0);
}

static EngineVerdict short_transfer(EngineRequest *req, uint64_t n)
{
    uint64_t progress = req->progress + n;
    bool ragged = req->file->direct && (progress & (req->file->request_align - 1));

    if (ragged) {
        progress &= ~(uint64_t)(req->file->request_align - 1);
    }
    if (req->op == ENGINE_READ && (!n || ragged)) {
        /* With O_DIRECT a read stops inside a sector only where the file does. */
        iov_memset(req->iov, req->niov, req->progress + n, 0, req->bytes - req->progress - n);
        return over(req, 0);
    }
    if (progress <= req->progress) {
        return over(req, -ENOSPC);
    }
    req->progress = progress;
    req->ret = 0;
    return VERDICT_AGAIN;
}

void engine_note_sync_error(EngineFile *file, int err)
{
    if (!file->direct && (err == -EIO || err == -ENOSPC || err == -EDQUOT)) {
        atomic_store_explicit(&file->lost_writes, -err, memory_order_relaxed);
    }
}

EngineVerdict engine_judge(EngineRequest *req, int64_t res)
{
    if (G_LIKELY(res >= 0)) {
        if (req->op == ENGINE_FLUSH) {
            return over(req, 0);
        }
        if (G_LIKELY((uint64_t)res == req->bytes - req->progress)) {
            return transfer_complete(req);
        }
        assert((uint64_t)res < req->bytes - req->progress);
        return short_transfer(req, (uint64_t)res);
    }
    switch (res) {
    case -EINTR:
    case -EAGAIN:
        return try_again(req);
    case -EOPNOTSUPP:
        /* What the attempt asked for decides: another request may have learnt meanwhile that the file lacks it. */
        if (req->dsync) {
            req->dsync = false;
            atomic_store_explicit(&req->file->no_dsync, true, memory_order_relaxed);
            return VERDICT_AGAIN;
        }
        break;
    }
    if (req->op == ENGINE_FLUSH) {
        engine_note_sync_error(req->file, (int)res);
    }
    return over(req, (int)res);
}

EngineVerdict engine_judge_refusal(EngineRequest *req, int err)
{
    /* Kernels without an asynchronous fdatasync say EINVAL. */
    if (req->op == ENGINE_FLUSH && (err == -EINVAL || err == -EOPNOTSUPP)) {
        return VERDICT_WORKER;
    }
    return engine_judge(req, err);
}
