/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Read-modify-write against other writes, of the same thread and of others. */
#include "unit/block-env.h"

#include <string.h>

static BlockBackend *serial_backend(BlockChannel **c)
{
    BlockBackend *blk;

    mem_next.limits.request_alignment = 4096;
    mem_next.manual = true;
    blk = env_backend(env_open("driver=null-aio"));
    *c = blk_channel_get(blk, aio_context_main(), &error_abort);
    return blk;
}

static void settle(void)
{
    while (aio_poll(aio_context_current(), false)) {
    }
}

static void test_rmw_waits_for_write(void)
{
    uint8_t *page = NULL, part[512];
    EnvRequest w = { 0 }, rmw = { 0 };
    BlockChannel *c;
    BlockBackend *blk = serial_backend(&c);

    g_assert_cmpint(posix_memalign((void **)&page, 4096, 4096), ==, 0);
    memset(page, 1, 4096);
    memset(part, 2, sizeof(part));
    env_submit(c, &w, BLOCK_WRITE, 0, 4096, page);
    env_submit(c, &rmw, BLOCK_WRITE, 512, 512, part);
    settle();
    g_assert_cmpuint(mem_waiting(), ==, 1);
    g_assert_cmpint(mem_complete(0), ==, BLOCK_WRITE);
    settle();
    g_assert_cmpint(mem_complete(0), ==, BLOCK_READ);
    settle();
    g_assert_cmpint(mem_complete(0), ==, BLOCK_WRITE);
    g_assert_cmpint(env_wait(&rmw), ==, 0);
    g_assert_cmpint(env_wait(&w), ==, 0);
    for (int i = 0; i < 4096; i++) {
        g_assert_cmpint(mem_disk(blk_node(blk))->data[i], ==, i >= 512 && i < 1024 ? 2 : 1);
    }
    blk_channel_put(c);
    blk_unref(blk);
    free(page);
}

static void test_write_waits_for_rmw(void)
{
    uint8_t *page = NULL, part[512];
    EnvRequest w = { 0 }, other = { 0 }, rmw = { 0 };
    BlockChannel *c;
    BlockBackend *blk = serial_backend(&c);

    g_assert_cmpint(posix_memalign((void **)&page, 4096, 4096), ==, 0);
    memset(page, 1, 4096);
    memset(part, 2, sizeof(part));
    env_submit(c, &rmw, BLOCK_WRITE, 512, 512, part);
    env_submit(c, &w, BLOCK_WRITE, 0, 4096, page);
    env_submit(c, &other, BLOCK_WRITE, 8192, 4096, page);
    settle();
    /* The read of the first, and the write that does not overlap. */
    g_assert_cmpuint(mem_waiting(), ==, 2);
    g_assert_cmpint(mem_complete(0), ==, BLOCK_READ);
    g_assert_cmpint(mem_complete(0), ==, BLOCK_WRITE);
    g_assert_cmpint(env_wait(&other), ==, 0);
    settle();
    g_assert_cmpuint(mem_waiting(), ==, 1);
    g_assert_cmpint(mem_complete(0), ==, BLOCK_WRITE);
    g_assert_cmpint(env_wait(&rmw), ==, 0);
    settle();
    g_assert_cmpuint(mem_waiting(), ==, 1);
    g_assert_cmpint(mem_complete(0), ==, BLOCK_WRITE);
    g_assert_cmpint(env_wait(&w), ==, 0);
    for (int i = 0; i < 4096; i++) {
        g_assert_cmpint(mem_disk(blk_node(blk))->data[i], ==, 1);
    }
    blk_channel_put(c);
    blk_unref(blk);
    free(page);
}

#define STRESS_THREADS 3
#define STRESS_WRITES 300

typedef struct StressThread {
    EnvThread *thread;
    BlockChannel *c;
    unsigned int index, left, pending;
    EnvRequest e[4];
    uint8_t buf[4][512];
    _Atomic bool over;
} StressThread;

static void stress_next(StressThread *s, unsigned int slot);

static void stress_done(BlockRequest *req)
{
    EnvRequest *e = container_of(req, EnvRequest, req);
    StressThread *s = *(StressThread **)&e->iov[7].iov_base;

    g_assert_cmpint(req->ret, ==, 0);
    s->pending--;
    stress_next(s, (unsigned int)(e - s->e));
}

/* Thread i writes sector i of each of four blocks, over and over: no write may undo a neighbour's. */
static void stress_next(StressThread *s, unsigned int slot)
{
    EnvRequest *e = &s->e[slot];

    if (!s->left) {
        if (!s->pending) {
            s->over = true;
        }
        return;
    }
    s->left--;
    s->pending++;
    memset(s->buf[slot], (int)(s->left & 0x7f) + 1, 512);
    e->iov[0] = (struct iovec){ s->buf[slot], 512 };
    e->iov[7].iov_base = s;
    e->req = (BlockRequest){
        .op = BLOCK_WRITE, .offset = slot * 4096 + s->index * 512, .bytes = 512, .iov = e->iov, .niov = 1, .done = stress_done,
    };
    g_assert_cmpint(blk_submit(s->c, &e->req), ==, BLOCK_QUEUED);
}

static void stress_start(void *opaque)
{
    StressThread *s = opaque;

    for (unsigned int i = 0; i < 4; i++) {
        stress_next(s, i);
    }
}

static void test_rmw_threads(void)
{
    g_autofree StressThread *t = g_new0(StressThread, STRESS_THREADS);
    g_autofree uint8_t *back = g_malloc(16384);
    char *path = env_file(65536);
    BlockBackend *blk = env_backend(env_open("driver=file,filename=%s,cache.direct=on", path));

    for (unsigned int i = 0; i < STRESS_THREADS; i++) {
        t[i].thread = env_thread_start();
        t[i].index = i * 2;
        t[i].left = STRESS_WRITES;
        t[i].c = blk_channel_get(blk, env_thread_context(t[i].thread), &error_abort);
    }
    for (unsigned int i = 0; i < STRESS_THREADS; i++) {
        aio_bh_schedule_oneshot(env_thread_context(t[i].thread), stress_start, &t[i]);
    }
    for (unsigned int i = 0; i < STRESS_THREADS; i++) {
        while (!t[i].over) {
            aio_poll(aio_context_main(), false);
        }
    }
    blk_drained_begin(blk);
    g_assert_cmpint(blk_pread(blk, 0, 16384, back), ==, 0);
    for (unsigned int i = 0; i < STRESS_THREADS; i++) {
        for (unsigned int slot = 0; slot < 4; slot++) {
            g_assert_cmpmem(back + slot * 4096 + i * 1024, 512, t[i].buf[slot], 512);
            g_assert_cmpint(back[slot * 4096 + i * 1024 + 512], ==, 0);
        }
        blk_channel_put(t[i].c);
    }
    blk_drained_end(blk);
    blk_unref(blk);
    for (unsigned int i = 0; i < STRESS_THREADS; i++) {
        env_thread_stop(t[i].thread);
    }
    env_unlink(path);
}

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/request/rmw/waits-for-overlapping-write", test_rmw_waits_for_write);
    g_test_add_func("/block/request/rmw/overlapping-write-waits", test_write_waits_for_rmw);
    g_test_add_func("/block/request/rmw/threads-do-not-undo-each-other", test_rmw_threads);
    return env_run();
}
