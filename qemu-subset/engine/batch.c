/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The queue in front of every engine, and the one batch limiter. */
#include "engine/batch.h"

#include <errno.h>
#include <glib.h>

static uint64_t min_nonzero(uint64_t a, uint64_t b)
{
    return !a ? b : !b ? a : MIN(a, b);
}

static unsigned int loop_limit(const Batch *b)
{
    int64_t max = aio_context_max_batch(b->source.ctx);

    return max > 0 ? (unsigned int)MIN(max, ENGINE_BATCH_MAX) : ENGINE_BATCH_DEFAULT;
}

/* The largest batch from the head of the queue in which every request is within the limit of its node. */
static unsigned int batch_size(const Batch *b, unsigned int limit)
{
    uint64_t cap = limit;
    unsigned int n = 0;

    if (!b->node_limits) {
        return MIN(b->queued, limit);
    }
    for (FifoNode *node = b->queue.first; node; node = node->next) {
        cap = min_nonzero(cap, request_of(node)->file->max_batch);
        if (n >= cap) {
            break;
        }
        n++;
    }
    return n;
}

static void note_residence(Batch *b, unsigned int n, int64_t queued_ns)
{
    uint64_t waited_us = (uint64_t)(aio_now_ns() - queued_ns) / 1000;

    /* One clock read a batch: all are counted with the wait of the oldest. */
    aio_stat_add(&aio_context_stats(b->source.ctx)->residence_histogram[aio_stat_bucket(waited_us)], n);
}

/* done() may not be called from where we are: do it from a bottom half. */
static void end_later(Batch *b, EngineRequest *req)
{
    fifo_push(&b->ending, &req->link);
    aio_bh_schedule(b->end_bh);
}

static void end_now(void *opaque)
{
    Batch *b = opaque;
    FifoNode *node;

    aio_plug(b->source.ctx);
    while ((node = fifo_pop(&b->ending))) {
        EngineRequest *req = request_of(node);

        if (!fifo_empty(&b->ending)) {
            aio_bh_schedule(b->end_bh); /* done() may poll the context and wait for the others */
        }
        engine_finish(b, req, req->ret);
    }
    aio_unplug(b->source.ctx);
}

/* The kernel took nothing. */
static void refused(Batch *b, int err)
{
    EngineRequest *req;

    switch (err) {
    case -EINTR:
        return;
    case -EAGAIN:
    case -EBUSY:
    case -ENOMEM:
        if (!b->in_flight) {
            /* No completion will come that could start the queue again: let a worker make one. */
            batch_to_worker(b, batch_pop(b));
        }
        b->blocked = true;
        return;
    }
    req = batch_pop(b);
    switch (engine_judge_refusal(req, err)) {
    case VERDICT_AGAIN:
        fifo_push_front(&b->queue, &req->link);
        b->queued++;
        break;
    case VERDICT_WORKER:
        batch_to_worker(b, req);
        break;
    case VERDICT_OVER:
        end_later(b, req);
        break;
    }
}

/* Hand over batches until fewer than @threshold requests (1: none) remain. */
static void run_queue(Batch *b, unsigned int threshold)
{
    while (b->queued >= threshold && !b->blocked) {
        unsigned int n = batch_size(b, loop_limit(b));
        unsigned int space = b->backend->space(b);
        int64_t queued_ns = request_of(b->queue.first)->queued_ns;
        int ret = space ? b->backend->hand_over(b, MIN(n, space)) : -EAGAIN;

        if (ret > 0) {
            b->in_flight += (unsigned int)ret;
            note_residence(b, (unsigned int)ret, queued_ns);
        } else {
            refused(b, ret ? ret : -EAGAIN);
        }
    }
    if (!b->queued) {
        b->node_limits = false;
    }
    b->source.pending = b->queued && !b->blocked;
}

void batch_flush(AioSource *src)
{
    Batch *b = container_of(src, Batch, source);

    b->section_ends = true;
    run_queue(b, 1);
    b->section_ends = false;
}

void batch_add(Batch *b, EngineRequest *req)
{
    uint64_t node_limit = req->file->max_batch;

    req->queued_ns = b->clock_ns;
    fifo_push(&b->queue, &req->link);
    b->queued++;
    if (node_limit) {
        b->node_limits = true;
    }
    if (b->blocked) {
        return;
    }
    if (!aio_plugged(b->source.ctx)) {
        run_queue(b, 1);
        return;
    }
    b->source.pending = true;
    if (b->queued >= MIN(min_nonzero(loop_limit(b), node_limit), b->backend->space(b))) {
        run_queue(b, b->queued);
    }
}

void batch_completed(Batch *b, EngineRequest *req, int64_t res)
{
    b->in_flight--;
    b->blocked = false;
    b->source.pending = b->queued;
    switch (engine_judge(req, res)) {
    case VERDICT_OVER:
        engine_finish(b, req, req->ret);
        break;
    case VERDICT_AGAIN:
        batch_clock(b);
        batch_add(b, req);
        break;
    case VERDICT_WORKER:
        batch_to_worker(b, req);
        break;
    }
    if (b->source.pending && !aio_plugged(b->source.ctx)) {
        run_queue(b, 1);
    }
}

static void worker_done(WorkItem *item, int ret)
{
    EngineRequest *req = container_of(item, EngineRequest, work);
    Batch *b = batch_of(req->kind);

    b->in_flight--;
    b->blocked = false;
    b->source.pending = b->queued;
    engine_finish(b, req, ret);
    if (b->source.pending && !aio_plugged(b->source.ctx)) {
        run_queue(b, 1);
    }
}

void batch_to_worker(Batch *b, EngineRequest *req)
{
    req->work.func = engine_work;
    req->work.done = worker_done;
    b->in_flight++;
    worker_pool_submit(aio_worker_pool(b->source.ctx), &req->work);
}

void batch_init(Batch *b, const EngineBackend *backend, AioContext *ctx)
{
    b->backend = backend;
    b->source.ops = &backend->source_ops;
    b->source.ctx = ctx;
    list_init(&b->live);
    fifo_init(&b->queue);
    fifo_init(&b->ending);
    b->end_bh = aio_bh_new(ctx, end_now, b);
}

bool batch_busy(AioSource *src)
{
    Batch *b = container_of(src, Batch, source);

    return b->in_flight || !fifo_empty(&b->ending);
}

void batch_destroy(AioSource *src)
{
    Batch *b = container_of(src, Batch, source);

    assert(!b->queued && !b->in_flight && fifo_empty(&b->ending));
    aio_bh_delete(b->end_bh);
    g_free(b);
}
