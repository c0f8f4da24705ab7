/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside the engines: the queue in front of each, and the policies that all share. */
#ifndef ENGINE_BATCH_H
#define ENGINE_BATCH_H

#include "engine/engine.h"

#include <assert.h>

/*
 * Batch size without any limit set, which is QEMU's: beyond it a larger batch saves less than it costs in latency.
 * ENGINE_BATCH_MAX bounds what one system call carries whatever is set, as the kernel's AIO context is made for 1024 events
 * by default.
 */
#define ENGINE_BATCH_DEFAULT 32
#define ENGINE_BATCH_MAX 1024

typedef struct Batch Batch;

#define BATCH_SOURCE_OPS(source_name)                                                              \
    {                                                                                              \
        .name = source_name, .flush = batch_flush, .busy = batch_busy, .destroy = batch_destroy    \
    }

typedef struct EngineBackend {
    const char *name;
    AioSlot slot;
    AioSourceOps source_ops;
    /* NULL when the engine is not in this build. 0, or -errno with @errp set: get the kernel objects ready. */
    int (*prepare)(AioContext *ctx, Error **errp);
    int (*probe)(Error **errp);
    /* How many requests could be handed over now. */
    unsigned int (*space)(Batch *b);
    /*
     * Hand over the first @n (1..ENGINE_BATCH_MAX) requests of the queue. Returns how many were accepted, and takes those
     * off with batch_pop(); or -errno if there was none. What goes to the kernel is counted in the loop's statistics.
     */
    int (*hand_over)(Batch *b, unsigned int n);
} EngineBackend;

extern const EngineBackend engine_backend_threads, engine_backend_native, engine_backend_io_uring;

/* One engine in one context; home-only. */
struct Batch {
    AioSource source;
    const EngineBackend *backend;
    ListNode live; /* EngineRequest.live_link: begun and not ended, oldest first */
    Fifo queue; /* EngineRequest.link, oldest first */
    unsigned int queued;
    unsigned int in_flight; /* in the kernel or in a worker */
    /* Refused for want of resources: nothing is handed over until something ends. Implies in_flight != 0. */
    bool blocked;
    bool section_ends; /* hand_over() is called at the end of a section, not because a limit was reached */
    bool node_limits; /* some queued request has a limit of its node */
    int64_t clock_ns; /* when the queue was last empty and got a request */
    uint64_t clock_pass; /* ... and in which pass that was */
    Fifo ending;      /* over, with the result in ->ret, but done() may not be called just now */
    AioBH *end_bh;
};

static inline EngineRequest *request_of(FifoNode *node)
{
    return container_of(node, EngineRequest, link);
}

static inline EngineRequest *batch_pop(Batch *b)
{
    b->queued--;
    return request_of(fifo_pop(&b->queue));
}

/* The engine's state in the current context. */
Batch *batch_of(EngineKind kind);
/* One clock read serves all that are queued together; the first of a pass take the one that the pass has made. */
static inline void batch_clock(Batch *b)
{
    uint64_t pass;

    if (b->queued) {
        return;
    }
    pass = aio_stat_get(&aio_context_stats(b->source.ctx)->passes);
    b->clock_ns = pass == b->clock_pass ? aio_now_ns() : aio_pass_ns(b->source.ctx);
    b->clock_pass = pass;
}

/* Queue @req, and hand over if a limit is reached or no section is open. */
void batch_add(Batch *b, EngineRequest *req);
/* Hand over everything that is queued, in batches within the limits. */
void batch_flush(AioSource *src);
void batch_init(Batch *b, const EngineBackend *backend, AioContext *ctx);
bool batch_busy(AioSource *src);
void batch_destroy(AioSource *src);
/* The kernel ended a request with @res (bytes or -errno): continue it, or call done(). */
void batch_completed(Batch *b, EngineRequest *req, int64_t res);
/* Do @req, or what remains of it, in a worker thread. */
void batch_to_worker(Batch *b, EngineRequest *req);

/* --- complete.c: what a result means, for every engine --- */
typedef enum EngineVerdict {
    VERDICT_OVER,   /* the result is in req->ret */
    VERDICT_AGAIN,  /* submit it again: the rest of it, or without what the file lacks */
    VERDICT_WORKER, /* continue it in a worker thread */
} EngineVerdict;

/* @res: bytes or -errno of a read, write or flush. Any thread that owns the request. */
EngineVerdict engine_judge(EngineRequest *req, int64_t res);
/* @err: why the kernel did not even accept the request. */
EngineVerdict engine_judge_refusal(EngineRequest *req, int err);
/* A flush ended with @err: see EngineFile.lost_writes. Any thread. */
void engine_note_sync_error(EngineFile *file, int err);
/* What is still to be transferred. */
void engine_remaining(EngineRequest *req, const struct iovec **iov, unsigned int *niov);
/* RWF_* flags for the attempt that is about to be made. */
int engine_rw_flags(EngineRequest *req);
/* The one place where requests begin and end. */
void engine_begin(Batch *b, EngineRequest *req, EngineKind kind);
void engine_finish(Batch *b, EngineRequest *req, int ret);

/* --- blocking.c --- */
/* WorkItem.func of an EngineRequest: all of it, from its progress on. Returns 0 or -errno. */
int engine_work(WorkItem *item);

#endif
