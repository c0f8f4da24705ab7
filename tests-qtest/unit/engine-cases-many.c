/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cases of every engine: many requests, batches, and the life of an engine. */
#include "unit/engine-cases.h"

#include <errno.h>

/* --- Many at once --- */

enum { DEEP = 1024 };

static void submit_successor(Req *r)
{
    Req *next = r + DEEP;

    next->after = NULL;
    req_submit(next);
}

/* A request may complete while it is submitted; done() comes later all the same, and never inside another done(). */
static void case_deep(Env *env)
{
    g_autofree Req *r = g_new0(Req, 2 * DEEP);
    autofree uint8_t *buf = env_buffer(4096 * 16);

    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096 * 16, 0), ==, 0);
    for (int i = 0; i < 2 * DEEP; i++) {
        req_init(&r[i], env, ENGINE_READ, (uint64_t)(i % 16) * 4096, buf + i % 16 * 4096, 4096);
        r[i].after = i < DEEP ? submit_successor : NULL;
    }
    env->ended = 0;
    aio_plug(env->ctx);
    for (int i = 0; i < DEEP; i++) {
        req_submit(&r[i]);
    }
    aio_unplug(env->ctx);
    env_wait(env);
    g_assert_cmpuint(env->ended, ==, 2 * DEEP);
    for (int i = 0; i < 2 * DEEP; i++) {
        g_assert_cmpint(r[i].ends, ==, 1);
        g_assert_cmpint(r[i].er.ret, ==, 0);
    }
}

static void submit_again(Req *r)
{
    if (r->ends < 5000) {
        r->er.offset = (r->er.offset + 4096) % 65536;
        req_submit(r);
    }
}

static void case_chain(Env *env)
{
    autofree uint8_t *buf = env_buffer(65536);
    Req r[2];

    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 65536, 0), ==, 0);
    for (int i = 0; i < 2; i++) {
        req_init(&r[i], env, ENGINE_READ, 0, buf + i * 4096, 4096);
        r[i].after = submit_again;
        req_submit(&r[i]);
    }
    env_wait(env);
    g_assert_cmpint(r[0].ends + r[1].ends, ==, 10000);
}

static void wait_for_rest(Req *r)
{
    Env *env = r->env;

    /* What comes from within is called from a poll inside of done(), as in a drain. */
    env->in_done--;
    env_wait(env);
    env->in_done++;
}

static void case_nested_poll(Env *env)
{
    autofree uint8_t *buf = env_buffer(65536);
    Req r[16];

    grow_file(env);
    aio_plug(env->ctx);
    for (int i = 0; i < 16; i++) {
        req_init(&r[i], env, ENGINE_READ, 0, buf + i * 4096, 4096);
        r[i].after = wait_for_rest;
        req_submit(&r[i]);
    }
    aio_unplug(env->ctx);
    env_wait(env);
    for (int i = 0; i < 16; i++) {
        g_assert_cmpint(r[i].ends, ==, 1);
    }
}

/* --- Batches --- */

/* Four queues of 64 requests in one section each. Returns the average batch in hundredths. */
static unsigned int four_sections(Env *env, unsigned int limit)
{
    enum { QUEUES = 4, DEPTH = 64, ROUNDS = 4 };
    static Req r[QUEUES * DEPTH];
    autofree uint8_t *buf = env_buffer(DEPTH * 4096);
    AioStats *stats = aio_context_stats(env->ctx);
    uint64_t calls = aio_stat_get(&stats->submit_calls), requests = aio_stat_get(&stats->requests);

    fault_reset();
    for (int round = 0; round < ROUNDS; round++) {
        for (int q = 0; q < QUEUES; q++) {
            aio_plug(env->ctx);
            for (int i = 0; i < DEPTH; i++) {
                Req *x = &r[q * DEPTH + i];

                req_init(x, env, ENGINE_READ, (uint64_t)i * 4096, buf + i * 4096, 4096);
                req_submit(x);
            }
            aio_unplug(env->ctx);
        }
        env_wait(env);
    }
    calls = aio_stat_get(&stats->submit_calls) - calls;
    requests = aio_stat_get(&stats->requests) - requests;
    g_assert_cmpuint(requests, ==, QUEUES * DEPTH * ROUNDS);
    g_assert_cmpuint(calls, >=, requests / limit);
    if (env->cfg->kind == ENGINE_NATIVE) {
        /* The monitor of the same name has calls of its own, for descriptors. */
        g_assert_cmpuint(fault_count(FAULT_IO_SUBMIT), >=, calls);
        g_assert_true(env->cfg->monitor == AIO_MONITOR_LINUX_AIO || fault_count(FAULT_IO_SUBMIT) == calls);
        g_assert_cmpuint(fault_largest_submit(), <=, limit);
    }
    return (unsigned int)(requests * 100 / calls);
}

/* Ascending, as the largest batch is that since the beginning. */
static void case_batch(Env *env)
{
    static const struct {
        int64_t loop;
        uint64_t node;
        unsigned int limit;
    } t[] = {{1, 0, 1}, {0, 1, 1}, {2, 0, 2}, {0, 8, 8}, {8, 16, 8}, {16, 8, 8}, {16, 0, 16}, {0, 0, 32}, {1024, 0, 1024}};
    AioStats *stats = aio_context_stats(env->ctx);

    grow_file(env);
    for (size_t i = 0; i < G_N_ELEMENTS(t); i++) {
        unsigned int average;

        aio_context_set_max_batch(env->ctx, t[i].loop);
        env->file.max_batch = t[i].node;
        average = four_sections(env, t[i].limit);
        g_assert_cmpuint(aio_stat_get(&stats->batch_max), <=, t[i].limit);
        g_assert_cmpuint(average, >, MIN(t[i].limit, 64) * 50);
    }
    /* A section is the largest batch where nothing limits it. */
    g_assert_cmpuint(aio_stat_get(&stats->batch_max), ==, 64);
}

/* Two nodes in one queue: a batch with requests of both keeps to the smaller limit. */
static void case_batch_two_nodes(Env *env)
{
    AioStats *stats = aio_context_stats(env->ctx);
    autofree uint8_t *buf = env_buffer(4096);
    EngineFile other = env_other_file(env, env->file.fd);
    Req r[40];

    grow_file(env);
    other.max_batch = 4;
    aio_plug(env->ctx);
    for (int i = 0; i < 40; i++) {
        req_init(&r[i], env, ENGINE_READ, 0, buf, 4096);
        r[i].er.file = i % 2 ? &other : &env->file;
        req_submit(&r[i]);
    }
    aio_unplug(env->ctx);
    env_wait(env);
    g_assert_cmpuint(aio_stat_get(&stats->batch_max), ==, 4);
    g_assert_cmpuint(aio_stat_get(&stats->submit_calls), ==, 10);
}

static void case_unplugged(Env *env)
{
    AioStats *stats = aio_context_stats(env->ctx);
    autofree uint8_t *buf = env_buffer(4096);
    Req r[3];

    grow_file(env);
    for (int i = 0; i < 3; i++) {
        req_init(&r[i], env, ENGINE_READ, 0, buf, 4096);
        req_submit(&r[i]);
        g_assert_cmpuint(aio_stat_get(&stats->submit_calls), ==, (uint64_t)i + 1);
    }
    env_wait(env);
}

static void case_nested_sections(Env *env)
{
    AioStats *stats = aio_context_stats(env->ctx);
    autofree uint8_t *buf = env_buffer(4096);
    Req r[4];

    grow_file(env);
    aio_plug(env->ctx);
    for (int i = 0; i < 4; i++) {
        aio_plug(env->ctx);
        req_init(&r[i], env, ENGINE_READ, 0, buf, 4096);
        req_submit(&r[i]);
        aio_unplug(env->ctx);
        g_assert_cmpuint(aio_stat_get(&stats->submit_calls), ==, 0);
    }
    aio_unplug(env->ctx);
    g_assert_cmpuint(aio_stat_get(&stats->submit_calls), ==, 1);
    env_wait(env);
}

/* --- When a request began --- */

enum { CLOCK_PASSES = 3, CLOCK_REQUESTS = 4 };

typedef struct ClockPass {
    Env *env;
    Req r[CLOCK_REQUESTS];
    int64_t pass_ns, before_ns[CLOCK_REQUESTS];
    void *buf;
} ClockPass;

static void submit_with_pauses(void *opaque)
{
    ClockPass *p = opaque;

    p->pass_ns = aio_pass_ns(p->env->ctx);
    for (int i = 0; i < CLOCK_REQUESTS; i++) {
        /* The first two are handed over at once, the others together. */
        aio_context_set_max_batch(p->env->ctx, i < 2 ? 1 : 2);
        g_usleep(2000);
        p->before_ns[i] = aio_now_ns();
        req_init(&p->r[i], p->env, ENGINE_READ, 0, p->buf, 4096);
        req_submit(&p->r[i]);
    }
}

/* The first request of a pass takes the time of the pass, later ones read the clock, once for those queued together. */
static void case_clock(Env *env)
{
    static ClockPass p;
    autofree uint8_t *buf = env_buffer(4096);

    grow_file(env);
    for (int n = 0; n < CLOCK_PASSES; n++) {
        p = (ClockPass){.env = env, .buf = buf};
        aio_bh_schedule_oneshot(env->ctx, submit_with_pauses, &p);
        aio_poll(env->ctx, false);
        env_wait(env);
        g_assert_cmpint(p.r[0].er.begun_ns, ==, p.pass_ns);
        g_assert_cmpint(p.r[1].er.begun_ns, >=, p.before_ns[1]);
        g_assert_cmpint(p.r[2].er.begun_ns, >=, p.before_ns[2]);
        g_assert_cmpint(p.r[3].er.begun_ns, ==, p.r[2].er.begun_ns);
    }
}

/* --- The engine itself --- */

static void case_attach(Env *env)
{
    g_assert_cmpint(engine_attach(env->cfg->kind, env->ctx, &error_abort), ==, 0);
    g_assert_cmpint(engine_probe(env->cfg->kind, &error_abort), ==, 0);
    g_assert_true(engine_built(env->cfg->kind));
}

static void case_twice(Env *env)
{
    if (g_test_subprocess()) {
        autofree void *buf = env_buffer(4096);
        Req r;

        req_init(&r, env, ENGINE_READ, 0, buf, 4096);
        aio_plug(env->ctx);
        req_submit(&r);
        req_submit(&r);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*engine_begin*");
}

/* Shutting the context down waits for what is in flight. */
static void case_shutdown(Env *env)
{
    g_autofree Req *r = g_new0(Req, 64);
    autofree uint8_t *buf = env_buffer(4096);

    grow_file(env);
    for (int i = 0; i < 64; i++) {
        req_init(&r[i], env, i % 8 ? ENGINE_READ : ENGINE_FLUSH, 0, buf, 4096);
        req_submit(&r[i]);
    }
    aio_context_shutdown(env->ctx);
    aio_context_unref(env->ctx);
    env->ctx = NULL;
    for (int i = 0; i < 64; i++) {
        g_assert_cmpint(r[i].ends, ==, 1);
    }
}

const EngineCase engine_cases_many[] = {
    {"many/1024-deep-without-recursion", case_deep, .all_monitors = true},
    {"many/resubmitted-from-done", case_chain, .all_monitors = true},
    {"many/done-may-poll-for-the-rest", case_nested_poll, .all_monitors = true},
    {"many/few-events", case_deep, .max_events = 16, .all_monitors = true},
    {"batch/limits-of-loop-and-node", case_batch, .all_monitors = true},
    {"batch/limit-of-each-node-in-it", case_batch_two_nodes},
    {"batch/outside-of-sections-at-once", case_unplugged},
    {"batch/outermost-section-ends-it", case_nested_sections},
    {"clock/of-the-pass-for-its-first-request", case_clock, .all_monitors = true},
    {"attach/again-is-cheap-and-probe-agrees", case_attach},
    {"debug/submitting-twice-aborts", case_twice},
    {"shutdown/waits-for-requests", case_shutdown, .all_monitors = true},
    {NULL},
};
