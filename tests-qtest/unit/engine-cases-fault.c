/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cases of every engine: calls that fail, results that are short or errors. */
#include "unit/engine-cases.h"

#include <errno.h>
#include <string.h>

/* --- Faults --- */

enum { WORKLOAD = 48 };

/* A mix of everything, in sections of 16. Each request ends once; returns how many failed. */
static unsigned int workload(Env *env)
{
    static Req r[WORKLOAD];
    autofree uint8_t *buf = env_buffer(WORKLOAD * 8192);
    struct iovec iov[WORKLOAD][2];
    unsigned int failed = 0;

    for (int i = 0; i < WORKLOAD; i++) {
        uint8_t *p = buf + i * 8192;

        if (i % 16 == 0) {
            aio_plug(env->ctx);
        }
        iov[i][0] = (struct iovec){p, 4096};
        iov[i][1] = (struct iovec){p + 4096, 4096};
        if (i % 12 == 11) {
            req_init(&r[i], env, i % 24 == 11 ? ENGINE_FLUSH : ENGINE_WRITE_ZEROES, 1 << 20, NULL, 4096);
        } else {
            req_init_iov(&r[i], env, i % 3 ? ENGINE_READ : ENGINE_WRITE, (uint64_t)i * 8192, iov[i], i % 2 + 1);
            r[i].er.flags = i % 9 == 0 ? ENGINE_F_FUA : 0;
        }
        req_submit(&r[i]);
        if (i % 16 == 15) {
            aio_unplug(env->ctx);
        }
    }
    env_wait(env);
    for (int i = 0; i < WORKLOAD; i++) {
        g_assert_cmpint(r[i].ends, ==, 1);
        failed += r[i].er.ret != 0;
    }
    return failed;
}

/* On a disk, where each flush takes its time, only some of the places for a fault are tried. */
static unsigned int fault_step(const Env *env)
{
    return strcmp(env->cfg->fs, "tmpfs") ? 5 : 1;
}

static const FaultCall *calls_of(EngineKind kind, int *n)
{
    static const FaultCall threads[] = {FAULT_PREADV2, FAULT_PWRITEV2, FAULT_FDATASYNC, FAULT_FALLOCATE};
    static const FaultCall native[] = {FAULT_IO_SUBMIT, FAULT_FALLOCATE};
    static const FaultCall uring[] = {FAULT_URING_SUBMIT, FAULT_FALLOCATE};

    switch (kind) {
    case ENGINE_NATIVE:
        *n = G_N_ELEMENTS(native);
        return native;
    case ENGINE_IO_URING:
        *n = G_N_ELEMENTS(uring);
        return uring;
    default:
        *n = G_N_ELEMENTS(threads);
        return threads;
    }
}

/* Errors that mean "later" are no errors, whichever call gives them and however often. */
static void case_fault_later(Env *env)
{
    static const unsigned int times[] = {1, 3, 12, FAULT_ALWAYS};
    int n;
    const FaultCall *calls = calls_of(env->cfg->kind, &n);

    for (int c = 0; c < n; c++) {
        bool submits = calls[c] == FAULT_IO_SUBMIT || calls[c] == FAULT_URING_SUBMIT;
        int errs[] = {EINTR, submits ? EAGAIN : EINTR, submits ? ENOMEM : EINTR, submits ? EBUSY : EINTR};

        for (size_t e = 0; e < (submits ? G_N_ELEMENTS(errs) : 1); e++) {
            for (unsigned int nth = 0; nth < 12; nth += fault_step(env)) {
                for (size_t k = 0; k < G_N_ELEMENTS(times); k++) {
                    /* A ring that never takes anything never gets anything done; the others have workers. */
                    bool never = times[k] == FAULT_ALWAYS;

                    if (never && (calls[c] != FAULT_IO_SUBMIT || errs[e] == EINTR)) {
                        continue;
                    }
                    fault_reset();
                    fault_set(calls[c], nth, times[k], errs[e]);
                    g_assert_cmpuint(workload(env), ==, 0);
                }
            }
        }
    }
    fault_reset();
}

/* A real error ends the request that met it, and no other. */
static void case_fault_error(Env *env)
{
    int n;
    const FaultCall *calls = calls_of(env->cfg->kind, &n);

    for (int c = 0; c < n; c++) {
        if (calls[c] == FAULT_URING_SUBMIT) {
            continue; /* no fault of a single request */
        }
        for (unsigned int nth = 0; nth < 40; nth += fault_step(env)) {
            unsigned int failed;

            fault_reset();
            fault_set(calls[c], nth, 1, EIO);
            failed = workload(env);
            if (env->file.lost_writes) {
                /* A flush through the page cache was hit: what must be stable fails after it as well. */
                g_assert_cmpuint(failed, >=, 1);
                env->file.lost_writes = 0;
            } else {
                g_assert_cmpuint(failed, ==, fault_count(calls[c]) > nth ? 1 : 0);
            }
            fault_reset();
        }
        fault_set(calls[c], 0, FAULT_ALWAYS, EIO);
        g_assert_cmpuint(workload(env), >, 0);
        env->file.lost_writes = 0;
        fault_reset();
    }
}

static FaultCall result_call(Env *env, bool write)
{
    switch (env->cfg->kind) {
    case ENGINE_NATIVE:
        return FAULT_RESULT_NATIVE;
    case ENGINE_IO_URING:
        return FAULT_RESULT_URING;
    default:
        return write ? FAULT_PWRITEV2 : FAULT_PREADV2;
    }
}

/* Whether results of single requests can be changed here; Linux AIO: only where they are there on return. */
static bool has_results(Env *env)
{
    switch (env->cfg->kind) {
    case ENGINE_NATIVE:
        return !strcmp(env->cfg->fs, "tmpfs");
    case ENGINE_IO_URING:
        return fault_uring_results();
    default:
        return true;
    }
}

static void case_result_again(Env *env)
{
    static const int errs[] = {EAGAIN, EINTR};
    autofree uint8_t *out = env_buffer(8192), *in = env_buffer(8192);

    if (!has_results(env)) {
        g_test_skip("results cannot be changed here");
        return;
    }
    for (size_t e = 0; e < G_N_ELEMENTS(errs); e++) {
        for (unsigned int times = 1; times < 20; times += 3) {
            memset(in, 0xee, 8192);
            env_fill(out, 8192, times);
            fault_reset();
            fault_set(result_call(env, true), 0, times, errs[e]);
            g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, out, 8192, 0), ==, 0);
            fault_reset();
            fault_set(result_call(env, false), 0, times, errs[e]);
            g_assert_cmpint(env_run(env, ENGINE_READ, 0, in, 8192, 0), ==, 0);
            g_assert_cmpmem(in, 8192, out, 8192);
        }
    }
    fault_reset();
}

static void case_result_error(Env *env)
{
    autofree uint8_t *buf = env_buffer(8192);

    if (!has_results(env)) {
        g_test_skip("results cannot be changed here");
        return;
    }
    fault_set(result_call(env, true), 0, 1, ENOSPC);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 8192, 0), ==, -ENOSPC);
    fault_set(result_call(env, false), 0, 1, EIO);
    g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 8192, 0), ==, -EIO);
    /* A write that moves nothing has no space. */
    fault_set(result_call(env, true), 0, 1, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 8192, 0), ==, -ENOSPC);
    /* A file that cannot do RWF_DSYNC is synced instead, and remembered. */
    fault_reset();
    fault_set(result_call(env, true), 0, 1, EOPNOTSUPP);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 8192, ENGINE_F_FUA), ==, 0);
    g_assert_true(env->file.no_dsync);
    g_assert_cmpuint(fault_count(FAULT_FDATASYNC), ==, 1);
    fault_reset();
}

/* Several requests learn from one batch that the file lacks RWF_DSYNC; to none of them is that an error. */
static void case_no_dsync_for_many(Env *env)
{
    enum { MANY = 3 };
    autofree uint8_t *buf = env_buffer(4096);
    Req r[MANY];

    if (!has_results(env) || env->cfg->kind == ENGINE_THREADS) {
        g_test_skip("results of a whole batch cannot be changed here");
        return;
    }
    fault_set(result_call(env, true), 0, MANY, EOPNOTSUPP);
    aio_plug(env->ctx);
    for (int i = 0; i < MANY; i++) {
        req_init(&r[i], env, ENGINE_WRITE, (uint64_t)i * 4096, buf, 4096);
        r[i].er.flags = ENGINE_F_FUA;
        req_submit(&r[i]);
    }
    aio_unplug(env->ctx);
    env_wait(env);
    for (int i = 0; i < MANY; i++) {
        g_assert_cmpint(r[i].er.ret, ==, 0);
    }
    g_assert_true(env->file.no_dsync);
    g_assert_cmpuint(fault_count(FAULT_FDATASYNC), ==, MANY);
    fault_reset();
}

/* Transfers that move a little at a time still move everything, each byte to its place. */
static void case_short(Env *env)
{
    size_t unit = env->file.request_align;
    size_t steps[] = {4096, 8192, unit > 1 ? 4096 : 1000, unit > 1 ? 12288 : 4097};
    enum { BYTES = 65536 };
    autofree uint8_t *out = env_buffer(BYTES), *in = env_buffer(BYTES);
    struct iovec iov[5];
    Req r;

    iov[0] = (struct iovec){in + 16384, 16384};
    iov[1] = (struct iovec){in, 16384};
    iov[2] = (struct iovec){in + 32768, 4096};
    iov[3] = (struct iovec){in + 40960, 24576};
    iov[4] = (struct iovec){in + 36864, 4096};
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        env_fill(out, BYTES, (unsigned int)i);
        fault_reset();
        fault_short(steps[i]);
        g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, out, BYTES, 0), ==, 0);
        memset(in, 0xee, BYTES);
        g_assert_cmpint(env_run(env, ENGINE_READ, 0, in, BYTES, 0), ==, 0);
        g_assert_cmpmem(in, BYTES, out, BYTES);

        memset(in, 0xee, BYTES);
        req_init_iov(&r, env, ENGINE_READ, 0, iov, 5);
        g_assert_cmpint(req_run(&r), ==, 0);
        g_assert_cmpmem(in + 16384, 16384, out, 16384);
        g_assert_cmpmem(in, 16384, out + 16384, 16384);
        g_assert_cmpmem(in + 32768, 4096, out + 32768, 4096);
        g_assert_cmpmem(in + 40960, 24576, out + 36864, 24576);
        g_assert_cmpmem(in + 36864, 4096, out + 61440, 4096);
        g_assert_cmpuint(workload(env), ==, 0);
    }
    fault_reset();
}

static void case_partial_submit(Env *env)
{
    for (unsigned int n = 1; n < 8; n++) {
        fault_reset();
        fault_partial(n);
        g_assert_cmpuint(workload(env), ==, 0);
    }
    fault_reset();
}

const EngineCase engine_cases_fault[] = {
    {"rw/short-transfers-continue", case_short},
    {"fault/later-is-no-error", case_fault_later, .all_monitors = true},
    {"fault/error-ends-one", case_fault_error},
    {"fault/result-again-is-retried", case_result_again},
    {"fault/result-error-is-the-result", case_result_error},
    {"fault/no-dsync-for-many", case_no_dsync_for_many},
    {"fault/partial-submit", case_partial_submit},
    {NULL},
};
