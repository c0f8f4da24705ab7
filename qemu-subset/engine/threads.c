/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine that works everywhere: blocking calls in worker threads, handed over in batches. */
#include "engine/batch.h"

static void thread_done(WorkItem *item, int ret)
{
    EngineRequest *req = container_of(item, EngineRequest, work);

    Batch *b = batch_of(ENGINE_THREADS);

    b->in_flight--;
    engine_finish(b, req, ret);
}

static int threads_hand_over(Batch *b, unsigned int n)
{
    Fifo items;

    fifo_init(&items);
    for (unsigned int i = 0; i < n; i++) {
        EngineRequest *req = batch_pop(b);

        req->work.func = engine_work;
        req->work.done = thread_done;
        fifo_push(&items, &req->work.link);
    }
    aio_stat_batch(aio_context_stats(b->source.ctx), n);
    worker_pool_submit_many(aio_worker_pool(b->source.ctx), &items, n);
    return (int)n;
}

static unsigned int threads_space(Batch *b)
{
    return ENGINE_BATCH_MAX;
}

static int threads_prepare(AioContext *ctx, Error **errp)
{
    return 0;
}

static int threads_probe(Error **errp)
{
    return 0;
}

const EngineBackend engine_backend_threads = {
    .name = "threads",
    .slot = AIO_SLOT_THREADS,
    .source_ops = BATCH_SOURCE_OPS("threads"),
    .prepare = threads_prepare,
    .probe = threads_probe,
    .space = threads_space,
    .hand_over = threads_hand_over,
};
