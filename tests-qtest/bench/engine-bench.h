/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine-bench: what its parts share. */
#ifndef BENCH_ENGINE_BENCH_H
#define BENCH_ENGINE_BENCH_H

#include "engine/engine.h"

#include <glib.h>

typedef struct BenchConfig {
    const char *path;
    int fd;
    uint64_t size;       /* of the file, bytes */
    unsigned int block;  /* bytes a request */
    unsigned int depth;  /* requests in flight */
    int64_t duration_ns; /* of one measurement */
    bool direct;
    bool nonblock; /* where the file is in memory; then: whether it has O_NONBLOCK */
    AioMonitor monitor;
    unsigned int uring_flags;
    int64_t poll_max_ns, max_batch;
    const char *qemu_img; /* NULL: not measured */
} BenchConfig;

typedef struct BenchResult {
    uint64_t requests;
    double seconds, cpu_seconds;
} BenchResult;

/* Run random reads for the duration. False: cannot be measured here (*@why is a static string or leaked). */
typedef bool BenchFn(const BenchConfig *cfg, BenchResult *res, const char **why);

bool bench_bare_libaio(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_libaio_32(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_uring(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_uring_coop(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_uring_defer(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_uring_file(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_uring_buffers(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_uring_spin(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_bare_pread(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_threads(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_native(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_uring(const BenchConfig *cfg, BenchResult *res, const char **why);
bool bench_qemu_img(const BenchConfig *cfg, BenchResult *res, const char **why);

/* Offsets without a system call or a division. */
typedef struct BenchRandom {
    uint64_t state, mask;
    unsigned int block;
} BenchRandom;

static inline void bench_random_init(BenchRandom *r, const BenchConfig *cfg)
{
    r->state = 88172645463325252u;
    r->block = cfg->block;
    /* The size is a power of two of blocks. */
    r->mask = cfg->size / cfg->block - 1;
}

static inline uint64_t bench_random_offset(BenchRandom *r)
{
    r->state ^= r->state << 13;
    r->state ^= r->state >> 7;
    r->state ^= r->state << 17;
    return ((r->state >> 20) & r->mask) * r->block;
}

/* Start and end of a measurement. */
typedef struct BenchClock {
    int64_t start_ns, end_ns;
    double cpu;
} BenchClock;

void bench_clock_start(BenchClock *c, const BenchConfig *cfg);
void bench_clock_stop(const BenchClock *c, BenchResult *res);
/* @depth buffers of @block bytes, aligned; free() it. */
char *bench_buffers(const BenchConfig *cfg);

#endif
