/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine-bench: the engines under a loop of their own. */
#include "bench/engine-bench.h"

#include <stdlib.h>

typedef struct Runner Runner;

typedef struct Slot {
    EngineRequest er;
    struct iovec iov;
    Runner *runner;
} Slot;

struct Runner {
    EngineKind kind;
    EngineFile file;
    BenchRandom rnd;
    BenchClock clock;
    uint64_t requests;
    unsigned int live;
    unsigned int until_clock;
    bool stop;
};

static void slot_submit(Slot *s)
{
    Runner *r = s->runner;

    s->er.offset = bench_random_offset(&r->rnd);
    r->live++;
    g_assert_cmpint(engine_submit(r->kind, &s->er), ==, ENGINE_QUEUED);
}

static void slot_done(EngineRequest *er, int ret)
{
    Slot *s = container_of(er, Slot, er);
    Runner *r = s->runner;

    g_assert_cmpint(ret, ==, 0);
    r->live--;
    r->requests++;
    if (!r->stop) {
        slot_submit(s);
    }
}

static bool run_engine(EngineKind kind, const BenchConfig *cfg, BenchResult *res, const char **why)
{
    AioContextConfig ctx_cfg = {.name = "bench", .monitor = cfg->monitor, .uring_flags = cfg->uring_flags};
    AioPollParams poll = {cfg->poll_max_ns, AIO_POLL_GROW_DEFAULT, AIO_POLL_SHRINK_DEFAULT, AIO_POLL_WEIGHT_DEFAULT,
                          AIO_POLL_YIELD_NS_DEFAULT};
    Runner r = {.kind = kind,
                .file = {.fd = cfg->fd, .direct = cfg->direct, .nonblock = cfg->nonblock, .request_align = 4096,
                         .memory_align = 4096}};
    g_autofree Slot *slots = g_new0(Slot, cfg->depth);
    Error *err = NULL;
    AioContext *ctx = aio_context_new(&ctx_cfg, &err);
    char *buf;

    if (!ctx || engine_attach(kind, ctx, &err)) {
        *why = error_get_pretty(err);
        if (ctx) {
            aio_context_shutdown(ctx);
            aio_context_unref(ctx);
        }
        return false;
    }
    aio_context_set_poll_params(ctx, &poll);
    aio_context_set_max_batch(ctx, cfg->max_batch);
    buf = bench_buffers(cfg);
    bench_random_init(&r.rnd, cfg);
    for (unsigned int i = 0; i < cfg->depth; i++) {
        Slot *s = &slots[i];

        s->runner = &r;
        s->iov = (struct iovec){buf + (size_t)i * cfg->block, cfg->block};
        s->er = (EngineRequest){.file = &r.file, .iov = &s->iov, .niov = 1, .op = ENGINE_READ,
                                .bytes = cfg->block, .done = slot_done};
    }
    bench_clock_start(&r.clock, cfg);
    aio_plug(ctx);
    for (unsigned int i = 0; i < cfg->depth; i++) {
        slot_submit(&slots[i]);
    }
    aio_unplug(ctx);
    while (r.live) {
        aio_poll(ctx, true);
        r.stop = aio_now_ns() >= r.clock.end_ns;
    }
    res->requests = r.requests;
    bench_clock_stop(&r.clock, res);
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    free(buf);
    return true;
}

bool bench_threads(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return run_engine(ENGINE_THREADS, cfg, res, why);
}

bool bench_native(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return run_engine(ENGINE_NATIVE, cfg, res, why);
}

bool bench_uring(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return run_engine(ENGINE_IO_URING, cfg, res, why);
}
