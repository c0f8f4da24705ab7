/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cases of every engine: what reads, writes, flushes and the rest do. */
#include "unit/engine-cases.h"

#include "loop/kernel-queue.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

static uint64_t file_size(const Env *env)
{
    struct stat st;

    g_assert_cmpint(fstat(env->file.fd, &st), ==, 0);
    return (uint64_t)st.st_size;
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

    env_set_fd(env, 1023);
    g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 4096, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_FLUSH, 0, NULL, 0, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_TRUNCATE, 0, NULL, 0, 0), ==, -EBADF);
    g_assert_cmpint(env_run(env, ENGINE_DISCARD, 0, NULL, 4096, 0), ==, -EBADF);
    env_set_fd(env, fd);
}

/* A request that the kernel refuses in the middle of a batch takes nothing else with it. */
static void case_bad_file_among_good(Env *env)
{
    EngineFile bad = env_other_file(env, 1023);
    autofree void *buf = env_buffer(4096);
    Req r[24];

    grow_file(env);
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
    env_set_fd(env, open(path, O_RDWR | O_CREAT | (env->file.direct ? O_DIRECT : 0), 0600));
    g_assert_cmpint(env->file.fd, >=, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 32768, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 16384, buf, 1 << 20, 0), ==, -ENOSPC);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 32768, 0), ==, 0);
    close(env->file.fd);
    env_set_fd(env, fd);
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

/* A flush that fails loses data in the page cache: the next may not pretend that all is well. With O_DIRECT it may. */
static void case_lost_writes(Env *env)
{
    autofree void *buf = env_buffer(4096);
    int later = env->file.direct ? 0 : -EIO;

    env->file.no_dsync = true;
    fault_set(FAULT_FDATASYNC, 0, 1, EIO);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, ENGINE_F_FUA), ==, -EIO);
    g_assert_cmpint(env_run(env, ENGINE_FLUSH, 0, NULL, 0, 0), ==, later);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, ENGINE_F_FUA), ==, later);
    g_assert_cmpint(env_run(env, ENGINE_WRITE_ZEROES, 0, NULL, 4096, ENGINE_F_FUA), ==, later);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, 4096, 0), ==, 0);
    g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, 4096, 0), ==, 0);
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

const EngineCase engine_cases_rw[] = {
    {"rw/sizes-come-back", case_sizes},
    {"rw/1-to-1024-elements-come-back", case_vectors},
    {"rw/bad-vectors-and-ranges-are-refused", case_bad_vectors},
    {"rw/end-of-file-reads-zeroes", case_eof},
    {"rw/misaligned-is-refused-with-o-direct", case_misaligned},
    {"rw/error-of-the-kernel-is-the-result", case_bad_file},
    {"rw/error-leaves-the-rest-of-the-batch", case_bad_file_among_good},
    {"rw/no-space", case_no_space},
    {"flush/and-fua", case_flush},
    {"flush/after-lost-writes-fails", case_lost_writes},
    {"zero/write-zeroes-by-every-way", case_write_zeroes},
    {"zero/write-zeroes-large", case_write_many_zeroes},
    {"zero/discard", case_discard},
    {"truncate", case_truncate},
    {NULL},
};
