/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One table of cases that holds for every engine, on several file systems and under every monitor. */
#include "unit/engine-env.h"
#include "unit/fault-shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define autofree __attribute__((cleanup(free_cleanup)))

static void free_cleanup(void *p)
{
    free(*(void **)p);
}

static uint64_t file_size(const Env *env)
{
    struct stat st;

    g_assert_cmpint(fstat(env->file.fd, &st), ==, 0);
    return (uint64_t)st.st_size;
}

/* Reads of other cases than end of file stay within the file. */
static void grow_file(const Env *env)
{
    g_assert_cmpint(ftruncate(env->file.fd, 1 << 20), ==, 0);
}

static void assert_all(const void *buf, size_t bytes, int byte)
{
    const uint8_t *p = buf;

    for (size_t i = 0; i < bytes; i++) {
        if (p[i] != byte) {
            g_error("byte %zu is %#x, not %#x", i, p[i], byte);
        }
    }
}

/* Write a pattern and read it back; every size that the file's alignment allows. */
static void case_sizes(Env *env)
{
    static const size_t sizes[] = {1, 511, 512, 4096, 4097, 65536, 1048576, 1048579};

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        size_t n = sizes[i];
        autofree void *out = env_buffer(n), *in = env_buffer(n);

        if (n % env->file.request_align) {
            continue;
        }
        env_fill(out, n, (unsigned int)i);
        g_assert_cmpint(env_run(env, ENGINE_WRITE, 8192, out, n, 0), ==, 0);
        g_assert_cmpint(env_run(env, ENGINE_READ, 8192, in, n, 0), ==, 0);
        g_assert_cmpmem(in, n, out, n);
    }
}

static void roundtrip_vectors(Env *env, unsigned int niov)
{
    size_t step = env->file.memory_align > 1 ? 4096 : 96;
    autofree uint8_t *out = env_buffer(niov * step), *in = env_buffer(niov * step);
    g_autofree struct iovec *iov = g_new(struct iovec, niov);
    Req r;

    env_fill(out, niov * step, niov);
    for (unsigned int i = 0; i < niov; i++) {
        iov[i] = (struct iovec){out + i * step, step};
    }
    req_init_iov(&r, env, ENGINE_WRITE, 0, iov, niov);
    g_assert_cmpint(req_run(&r), ==, 0);
    /* Read back in the opposite order of memory. */
    for (unsigned int i = 0; i < niov; i++) {
        iov[i].iov_base = in + (niov - 1 - i) * step;
    }
    req_init_iov(&r, env, ENGINE_READ, 0, iov, niov);
    g_assert_cmpint(req_run(&r), ==, 0);
    for (unsigned int i = 0; i < niov; i++) {
        g_assert_cmpmem(in + (niov - 1 - i) * step, step, out + i * step, step);
    }
}

static void case_vectors(Env *env)
{
    static const unsigned int counts[] = {1, 2, 3, 17, 255, 1023, 1024};

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        roundtrip_vectors(env, counts[i]);
    }
}

static void case_bad_vectors(Env *env)
{
    static struct iovec iov[1025];
    autofree void *buf = env_buffer(4096);
    Req r;

    for (size_t i = 0; i < G_N_ELEMENTS(iov); i++) {
        iov[i] = (struct iovec){buf, 4096};
    }
    req_init_iov(&r, env, ENGINE_READ, 0, iov, 1025);
    g_assert_cmpint(req_run(&r), ==, -EINVAL);
    req_init_iov(&r, env, ENGINE_READ, 0, iov, 0);
    g_assert_cmpint(req_run(&r), ==, -EINVAL);
    req_init_iov(&r, env, ENGINE_READ, (uint64_t)INT64_MAX - 4095, iov, 1);
    g_assert_cmpint(req_run(&r), ==, -EINVAL);
    req_init(&r, env, ENGINE_WRITE, 0, buf, 0);
    g_assert_cmpint(req_run(&r), ==, 0);
}

/* Reads beyond the end give zeroes, wherever in a vector the end falls. */
static void case_eof(Env *env)
{
    enum { PIECE = 4096, PIECES = 4 };
    static const size_t ends[] = {0, 1, 4095, 4096, 4097, 6000, 8192, 12288, 12289, 16383, 16384};
    autofree uint8_t *in = env_buffer(PIECE * PIECES), *want = env_buffer(PIECE * PIECES);
    struct iovec iov[PIECES];
    Req r;

    for (int i = 0; i < PIECES; i++) {
        iov[i] = (struct iovec){in + i * PIECE, PIECE};
    }
    for (size_t e = 0; e < G_N_ELEMENTS(ends); e++) {
        env_fill(want, PIECE * PIECES, (unsigned int)e);
        g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, want, PIECE * PIECES, 0), ==, 0);
        g_assert_cmpint(ftruncate(env->file.fd, (off_t)ends[e]), ==, 0);
        memset(want + ends[e], 0, PIECE * PIECES - ends[e]);

        memset(in, 0xee, PIECE * PIECES);
        req_init_iov(&r, env, ENGINE_READ, 0, iov, PIECES);
        g_assert_cmpint(req_run(&r), ==, 0);
        g_assert_cmpmem(in, PIECE * PIECES, want, PIECE * PIECES);

        memset(in, 0xee, PIECE * PIECES);
        g_assert_cmpint(env_run(env, ENGINE_READ, 0, in, PIECE * PIECES, 0), ==, 0);
        g_assert_cmpmem(in, PIECE * PIECES, want, PIECE * PIECES);
    }
    memset(in, 0xee, PIECE);
    g_assert_cmpint(env_run(env, ENGINE_READ, 1 << 20, in, PIECE, 0), ==, 0);
    assert_all(in, PIECE, 0);
}

static void case_misaligned(Env *env)
{
    autofree uint8_t *buf = env_buffer(16384);

    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 8192, 0), ==, 0);
    if (env->file.direct) {
        g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf + 1, 4096, 0), ==, -EINVAL);
        g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf + 512, 4096, 0), ==, -EINVAL);
        g_assert_cmpint(env_run(env, ENGINE_READ, 512, buf, 4096, 0), ==, -EINVAL);
        g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 100, 0), ==, -EINVAL);
    } else {
        g_assert_cmpint(env_run(env, ENGINE_READ, 3, buf + 1, 101, 0), ==, 0);
    }
}

static void case_bad_file(Env *env)
{
    autofree void *buf = env_buffer(4096);
    int fd = env->file.fd;

    env->file.fd = 1023;
    g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 4096, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_FLUSH, 0, NULL, 0, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_TRUNCATE, 0, NULL, 0, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_DISCARD, 0, NULL, 4096, 0), ==, -EBADF);
    env->file.fd = fd;
}

/* A request that the kernel refuses in the middle of a batch takes nothing else with it. */
static void case_bad_file_among_good(Env *env)
{
    EngineFile bad = env->file;
    autofree void *buf = env_buffer(4096);
    Req r[24];

    grow_file(env);
    bad.fd = 1023;
    aio_plug(env->ctx);
    for (size_t i = 0; i < G_N_ELEMENTS(r); i++) {
        req_init(&r[i], env, ENGINE_READ, i * 4096, buf, 4096);
        if (i % 5 == 0) {
            r[i].er.file = &bad;
        }
        req_submit(&r[i]);
    }
    aio_unplug(env->ctx);
    env_wait(env);
    for (size_t i = 0; i < G_N_ELEMENTS(r); i++) {
        g_assert_cmpint(r[i].ends, ==, 1);
        g_assert_cmpint(r[i].er.ret, ==, i % 5 == 0 ? -EBADF : 0);
    }
}

/* A file system of 64 KiB: the write that does not fit ends with ENOSPC, even if it begins where there is room. */
static void case_no_space(Env *env)
{
    g_autofree char *dir = g_dir_make_tmp("qemu-subset-XXXXXX", NULL);
    g_autofree char *path = g_strdup_printf("%s/file", dir);
    autofree void *buf = env_buffer(1 << 20);
    int fd = env->file.fd;

    if (mount("none", dir, "tmpfs", 0, "size=64k")) {
        g_test_skip("needs the right to mount");
        rmdir(dir);
        return;
    }
    env->file.fd = open(path, O_RDWR | O_CREAT | (env->file.direct ? O_DIRECT : 0), 0600);
    g_assert_cmpint(env->file.fd, >=, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 32768, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 16384, buf, 1 << 20, 0), ==, -ENOSPC);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 32768, 0), ==, 0);
    close(env->file.fd);
    env->file.fd = fd;
    umount2(dir, MNT_DETACH);
    rmdir(dir);
}

/* --- Flush, FUA, zeroes, discard, truncate --- */

static void case_flush(Env *env)
{
    autofree void *buf = env_buffer(4096);

    g_assert_cmpint(env_run(env, ENGINE_FLUSH, 0, NULL, 0, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, ENGINE_F_FUA), ==, 0);
    env->file.no_dsync = true;
    fault_reset();
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, ENGINE_F_FUA), ==, 0);
    g_assert_cmpuint(fault_count(FAULT_FDATASYNC), ==, 1);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, 0), ==, 0);
    g_assert_cmpuint(fault_count(FAULT_FDATASYNC), ==, 1);
    /* The write is over only when its fdatasync is, with the result of that. */
    fault_set(FAULT_FDATASYNC, 0, 1, EIO);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, ENGINE_F_FUA), ==, -EIO);
    fault_reset();
}

static void case_write_zeroes(Env *env)
{
    static const unsigned int flags[] = {0, ENGINE_F_MAY_UNMAP, ENGINE_F_FUA, ENGINE_F_FUA | ENGINE_F_MAY_UNMAP};
    autofree uint8_t *buf = env_buffer(65536), *want = env_buffer(65536);

    for (unsigned int lacking = 0; lacking < 4; lacking++) {
        env->file.no_fallocate_zero = lacking & 1;
        env->file.no_punch_hole = lacking & 2;
        for (size_t i = 0; i < G_N_ELEMENTS(flags); i++) {
            env_fill(want, 65536, 1);
            g_assert_cmpint(ftruncate(env->file.fd, 0), ==, 0);
            g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, want, 65536, 0), ==, 0);
            g_assert_cmpint(env_run(env, ENGINE_WRITE_ZEROES, 4096, NULL, 8192, flags[i]), ==, 0);
            memset(want + 4096, 0, 8192);
            g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 65536, 0), ==, 0);
            g_assert_cmpmem(buf, 65536, want, 65536);
            /* Beyond the end the file grows. */
            g_assert_cmpint(env_run(env, ENGINE_WRITE_ZEROES, 61440, NULL, 8192, flags[i]), ==, 0);
            g_assert_cmpuint(file_size(env), ==, 69632);
        }
    }
    env->file.no_fallocate_zero = env->file.no_punch_hole = true;
    g_assert_cmpint(env_run(env, ENGINE_WRITE_ZEROES, 0, NULL, 4096, ENGINE_F_NO_FALLBACK), ==, -ENOTSUP);
}

/* Far more than fits one vector of zeroes. */
static void case_write_many_zeroes(Env *env)
{
    enum { BYTES = 5 * 1024 * 1024 + 4096 };
    autofree uint8_t *buf = env_buffer(BYTES);

    env->file.no_fallocate_zero = env->file.no_punch_hole = true;
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, BYTES, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE_ZEROES, 0, NULL, BYTES, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, BYTES, 0), ==, 0);
    assert_all(buf, BYTES, 0);
}

static void case_discard(Env *env)
{
    autofree uint8_t *buf = env_buffer(16384);

    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 16384, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_DISCARD, 4096, NULL, 8192, 0), ==, 0);
    g_assert_cmpuint(file_size(env), ==, 16384);
    g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 16384, 0), ==, 0);
    assert_all(buf, 4096, 0xee);
    assert_all(buf + 4096, 8192, 0);
    assert_all(buf + 12288, 4096, 0xee);
    env->file.no_punch_hole = true;
    g_assert_cmpint(env_run(env, ENGINE_DISCARD, 0, NULL, 4096, 0), ==, -ENOTSUP);
}

static void case_truncate(Env *env)
{
    g_assert_cmpint(env_run(env, ENGINE_TRUNCATE, 1 << 20, NULL, 0, 0), ==, 0);
    g_assert_cmpuint(file_size(env), ==, 1 << 20);
    g_assert_cmpint(env_run(env, ENGINE_TRUNCATE, 4096, NULL, 0, 0), ==, 0);
    g_assert_cmpuint(file_size(env), ==, 4096);
}

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
    EngineFile other = env->file;
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
            for (unsigned int nth = 0; nth < 12; nth++) {
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
        for (unsigned int nth = 0; nth < 40; nth++) {
            unsigned int failed;

            fault_reset();
            fault_set(calls[c], nth, 1, EIO);
            failed = workload(env);
            g_assert_cmpuint(failed, ==, fault_count(calls[c]) > nth ? 1 : 0);
            fault_reset();
        }
        fault_set(calls[c], 0, FAULT_ALWAYS, EIO);
        g_assert_cmpuint(workload(env), >, 0);
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

typedef struct Case {
    const char *name;
    void (*fn)(Env *env);
    unsigned int max_events;
    bool all_monitors;
} Case;

static const Case cases[] = {
    {"rw/sizes-come-back", case_sizes},
    {"rw/1-to-1024-elements-come-back", case_vectors},
    {"rw/bad-vectors-and-ranges-are-refused", case_bad_vectors},
    {"rw/end-of-file-reads-zeroes", case_eof},
    {"rw/misaligned-is-refused-with-o-direct", case_misaligned},
    {"rw/error-of-the-kernel-is-the-result", case_bad_file},
    {"rw/error-leaves-the-rest-of-the-batch", case_bad_file_among_good},
    {"rw/no-space", case_no_space},
    {"rw/short-transfers-continue", case_short},
    {"flush/and-fua", case_flush},
    {"zero/write-zeroes-by-every-way", case_write_zeroes},
    {"zero/write-zeroes-large", case_write_many_zeroes},
    {"zero/discard", case_discard},
    {"truncate", case_truncate},
    {"many/1024-deep-without-recursion", case_deep, .all_monitors = true},
    {"many/resubmitted-from-done", case_chain, .all_monitors = true},
    {"many/done-may-poll-for-the-rest", case_nested_poll, .all_monitors = true},
    {"many/few-events", case_deep, .max_events = 16, .all_monitors = true},
    {"batch/limits-of-loop-and-node", case_batch, .all_monitors = true},
    {"batch/limit-of-each-node-in-it", case_batch_two_nodes},
    {"batch/outside-of-sections-at-once", case_unplugged},
    {"batch/outermost-section-ends-it", case_nested_sections},
    {"fault/later-is-no-error", case_fault_later, .all_monitors = true},
    {"fault/error-ends-one", case_fault_error},
    {"fault/result-again-is-retried", case_result_again},
    {"fault/result-error-is-the-result", case_result_error},
    {"fault/partial-submit", case_partial_submit},
    {"attach/again-is-cheap-and-probe-agrees", case_attach},
    {"debug/submitting-twice-aborts", case_twice},
    {"shutdown/waits-for-requests", case_shutdown, .all_monitors = true},
};

typedef struct Run {
    const Case *c;
    EnvConfig cfg;
} Run;

static void run_case(gconstpointer opaque)
{
    const Run *run = opaque;
    Env *env;

    fault_reset();
    env = env_new(&run->cfg, run->c->max_events);
    if (env) {
        run->c->fn(env);
        env_free(env);
    }
}

static void add_runs(const Case *c, EngineKind kind, AioMonitor monitor)
{
    static const struct {
        const char *dir, *fs;
        bool direct;
    } places[] = {{"/dev/shm", "tmpfs", true}, {"/var/tmp", "disk", true}, {"/var/tmp", "disk-cached", false}};

    for (size_t p = 0; p < (monitor == AIO_MONITOR_AUTO ? G_N_ELEMENTS(places) : 1); p++) {
        Run *run = g_new0(Run, 1);
        g_autofree char *path = NULL;

        run->c = c;
        run->cfg = (EnvConfig){kind, monitor, places[p].dir, places[p].fs, places[p].direct};
        path = g_strdup_printf("/engine/%s/%s/%s/%s", engine_name(kind), aio_monitor_name(monitor),
                               places[p].fs, c->name);
        g_test_add_data_func_full(path, run, run_case, g_free);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (EngineKind kind = 0; kind < ENGINE_KINDS; kind++) {
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
            add_runs(&cases[i], kind, AIO_MONITOR_AUTO);
            for (AioMonitor m = AIO_MONITOR_AUTO + 1; m < AIO_MONITOR__MAX && cases[i].all_monitors; m++) {
                add_runs(&cases[i], kind, m);
            }
        }
    }
    return g_test_run();
}
