/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine-bench: loops over the kernel's interfaces with nothing around them, to compare with. */
#include "bench/engine-bench.h"

#include <errno.h>
#include <inttypes.h>
#include <libaio.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

void bench_clock_start(BenchClock *c, const BenchConfig *cfg)
{
    c->cpu = cpu_seconds();
    c->start_ns = aio_now_ns();
    c->end_ns = c->start_ns + cfg->duration_ns;
}

void bench_clock_stop(const BenchClock *c, BenchResult *res)
{
    res->seconds = (double)(aio_now_ns() - c->start_ns) / 1e9;
    res->cpu_seconds = cpu_seconds() - c->cpu;
}

char *bench_buffers(const BenchConfig *cfg)
{
    void *p = NULL;

    g_assert_cmpint(posix_memalign(&p, 4096, (size_t)cfg->depth * cfg->block), ==, 0);
    memset(p, 0, (size_t)cfg->depth * cfg->block);
    return p;
}

/* Submit what completed, at most @batch with a call, and wait for at least one with another. */
static bool bare_libaio(const BenchConfig *cfg, unsigned int batch, BenchResult *res, const char **why)
{
    g_autofree struct iocb *iocbs = g_new0(struct iocb, cfg->depth);
    g_autofree struct iocb **ready = g_new(struct iocb *, cfg->depth);
    g_autofree struct io_event *events = g_new(struct io_event, cfg->depth);
    char *buf = bench_buffers(cfg);
    io_context_t ctx = NULL;
    unsigned int n_ready = 0, in_flight = 0;
    BenchRandom rnd;
    BenchClock clock;

    if (io_setup((int)cfg->depth, &ctx)) {
        *why = "io_setup failed";
        return false;
    }
    bench_random_init(&rnd, cfg);
    for (unsigned int i = 0; i < cfg->depth; i++) {
        io_prep_pread(&iocbs[i], cfg->fd, buf + (size_t)i * cfg->block, cfg->block,
                      (long long)bench_random_offset(&rnd));
        ready[n_ready++] = &iocbs[i];
    }
    bench_clock_start(&clock, cfg);
    while (n_ready || in_flight) {
        int n;

        for (unsigned int i = 0; i < n_ready; i += batch) {
            unsigned int part = MIN(batch, n_ready - i);

            g_assert_cmpint(io_submit(ctx, part, ready + i), ==, (int)part);
        }
        in_flight += n_ready;
        n_ready = 0;
        n = io_getevents(ctx, 1, (long)cfg->depth, events, NULL);
        in_flight -= (unsigned int)n;
        res->requests += (unsigned int)n;
        if (aio_now_ns() < clock.end_ns) {
            for (int i = 0; i < n; i++) {
                struct iocb *iocb = events[i].obj;

                g_assert_cmpint((long)events[i].res, ==, (long)cfg->block);
                iocb->u.c.offset = (long long)bench_random_offset(&rnd);
                ready[n_ready++] = iocb;
            }
        }
    }
    bench_clock_stop(&clock, res);
    io_destroy(ctx);
    free(buf);
    return true;
}

bool bench_bare_libaio(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_libaio(cfg, cfg->depth, res, why);
}

/* In the batches that aio-max-batch=0 stands for. */
bool bench_bare_libaio_32(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    if (cfg->depth <= 32) {
        *why = "the same as bare-libaio";
        return false;
    }
    return bare_libaio(cfg, 32, res, why);
}

enum { REGISTERED_FILE = 1, REGISTERED_BUFFERS = 2 };

static void prepare_read(struct io_uring *ring, const BenchConfig *cfg, unsigned int registered, char *buf,
                         uint64_t slot, BenchRandom *rnd)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    int fd = registered & REGISTERED_FILE ? 0 : cfg->fd;

    if (registered & REGISTERED_BUFFERS) {
        io_uring_prep_read_fixed(sqe, fd, buf + slot * cfg->block, cfg->block, bench_random_offset(rnd), 0);
    } else {
        io_uring_prep_read(sqe, fd, buf + slot * cfg->block, cfg->block, bench_random_offset(rnd));
    }
    sqe->flags |= registered & REGISTERED_FILE ? IOSQE_FIXED_FILE : 0;
    sqe->user_data = slot;
}

static bool register_all(struct io_uring *ring, const BenchConfig *cfg, unsigned int registered, char *buf)
{
    struct iovec iov = {buf, (size_t)cfg->depth * cfg->block};

    io_uring_register_ring_fd(ring);
    return (!(registered & REGISTERED_FILE) || !io_uring_register_files(ring, &cfg->fd, 1)) &&
           (!(registered & REGISTERED_BUFFERS) || !io_uring_register_buffers(ring, &iov, 1));
}

/* Wait by looking at the ring, entering the kernel only if it asks for that. */
static void submit_and_spin(struct io_uring *ring)
{
    io_uring_submit(ring);
    while (!io_uring_cq_ready(ring)) {
        if (IO_URING_READ_ONCE(*ring->sq.kflags) & IORING_SQ_TASKRUN) {
            io_uring_get_events(ring);
        }
    }
}

static bool bare_uring(const BenchConfig *cfg, unsigned int flags, unsigned int registered, bool spin, BenchResult *res,
                       const char **why)
{
    struct io_uring ring;
    unsigned int in_flight = cfg->depth;
    BenchRandom rnd;
    BenchClock clock;
    char *buf;

    if (io_uring_queue_init(cfg->depth, &ring, flags)) {
        *why = "io_uring_setup failed";
        return false;
    }
    buf = bench_buffers(cfg);
    if (!register_all(&ring, cfg, registered, buf)) {
        *why = "io_uring_register failed";
        io_uring_queue_exit(&ring);
        free(buf);
        return false;
    }
    bench_random_init(&rnd, cfg);
    bench_clock_start(&clock, cfg);
    for (unsigned int i = 0; i < cfg->depth; i++) {
        prepare_read(&ring, cfg, registered, buf, i, &rnd);
    }
    while (in_flight) {
        struct io_uring_cqe *cqe;
        unsigned int head, n = 0;
        bool go_on;

        if (spin) {
            submit_and_spin(&ring);
        } else {
            io_uring_submit_and_wait(&ring, 1);
        }
        go_on = aio_now_ns() < clock.end_ns;
        io_uring_for_each_cqe(&ring, head, cqe)
        {
            g_assert_cmpint(cqe->res, ==, (int)cfg->block);
            n++;
            if (go_on) {
                prepare_read(&ring, cfg, registered, buf, cqe->user_data, &rnd);
            }
        }
        io_uring_cq_advance(&ring, n);
        res->requests += n;
        in_flight -= go_on ? 0 : n;
    }
    bench_clock_stop(&clock, res);
    io_uring_queue_exit(&ring);
    free(buf);
    return true;
}

bool bench_bare_uring(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_uring(cfg, 0, 0, false, res, why);
}

bool bench_bare_uring_coop(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_uring(cfg, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN, 0, false, res, why);
}

bool bench_bare_uring_defer(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_uring(cfg, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 0, false, res, why);
}

bool bench_bare_uring_file(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_uring(cfg, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, REGISTERED_FILE, false, res, why);
}

bool bench_bare_uring_buffers(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_uring(cfg, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, REGISTERED_BUFFERS, false, res,
                      why);
}

bool bench_bare_uring_spin(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    return bare_uring(cfg, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0, true,
                      res, why);
}

/* One thread, one blocking call after the other: what a request costs at least. */
bool bench_bare_pread(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    char *buf = bench_buffers(cfg);
    BenchRandom rnd;
    BenchClock clock;

    bench_random_init(&rnd, cfg);
    bench_clock_start(&clock, cfg);
    while (aio_now_ns() < clock.end_ns) {
        for (unsigned int i = 0; i < cfg->depth; i++) {
            ssize_t n = pread(cfg->fd, buf + (size_t)i * cfg->block, cfg->block, (off_t)bench_random_offset(&rnd));

            g_assert_cmpint(n, ==, cfg->block);
            res->requests++;
        }
    }
    bench_clock_stop(&clock, res);
    free(buf);
    return true;
}

/* Somebody else's loop over worker threads. Its offsets are not random, which can only favour it. */
bool bench_qemu_img(const BenchConfig *cfg, BenchResult *res, const char **why)
{
    uint64_t count = MAX(2000, (uint64_t)((double)cfg->duration_ns / 1e9 * 60000));
    g_autofree char *n = g_strdup_printf("%" PRIu64, count), *depth = g_strdup_printf("%u", cfg->depth);
    g_autofree char *block = g_strdup_printf("%u", cfg->block), *out = NULL;
    const char *argv[] = {cfg->qemu_img, "bench",   "-c",      n,     "-d", depth,
                          "-s",          block,     "-f",      "raw", "-t", cfg->direct ? "none" : "writeback",
                          "-i",          "threads", cfg->path, NULL};
    struct rusage before, after;
    const char *at;

    if (!cfg->qemu_img) {
        *why = "no --qemu-img";
        return false;
    }
    getrusage(RUSAGE_CHILDREN, &before);
    if (!g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, NULL, NULL, NULL) ||
        !(at = strstr(out, "completed in "))) {
        *why = "qemu-img bench failed";
        return false;
    }
    getrusage(RUSAGE_CHILDREN, &after);
    res->requests = count;
    res->seconds = g_ascii_strtod(at + strlen("completed in "), NULL);
    res->cpu_seconds =
        (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec - before.ru_stime.tv_sec) +
        (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_utime.tv_usec - before.ru_stime.tv_usec) /
            1e6;
    return res->seconds > 0;
}
