/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drained sections, with requests in flight from several threads and the graph changing. */
#include "unit/block-env.h"

#include <errno.h>

/* A device whose threads keep a request in flight all the time, except while they are told not to. */
typedef struct Busy {
    BlockBackend *blk;
    unsigned int threads;
    struct BusyThread *t;
    _Atomic unsigned int resized;
} Busy;

typedef struct BusyThread {
    Busy *busy;
    EnvThread *thread;
    BlockChannel *c;
    EnvRequest e[4];
    uint8_t buf[4][512];
    bool stopped; /* home */
    _Atomic bool finish;
    _Atomic unsigned int quiesced, resumed, completed, in_flight;
} BusyThread;

static void busy_submit(BusyThread *t, unsigned int slot);

static void busy_done(BlockRequest *req)
{
    EnvRequest *e = container_of(req, EnvRequest, req);
    BusyThread *t = e->iov[7].iov_base;

    g_assert_true(aio_context_in_home(env_thread_context(t->thread)));
    g_assert_cmpint(req->ret, ==, 0);
    t->in_flight--;
    t->completed++;
    busy_submit(t, (unsigned int)(e - t->e));
}

static void busy_submit(BusyThread *t, unsigned int slot)
{
    EnvRequest *e = &t->e[slot];

    while (!t->stopped && !t->finish) {
        g_assert_false(blk_channel_quiesced(t->c));
        e->iov[0] = (struct iovec){ t->buf[slot], 512 };
        e->iov[7].iov_base = t;
        e->req = (BlockRequest){
            .op = slot & 1 ? BLOCK_WRITE : BLOCK_READ, .offset = 16384 * (uint64_t)(t - t->busy->t) + 4096 * slot, .bytes = 512, .iov = e->iov, .niov = 1,
            .done = busy_done,
        };
        t->in_flight++;
        if (blk_submit(t->c, &e->req) == BLOCK_QUEUED) {
            return;
        }
        t->in_flight--;
    }
}

static void busy_start(void *opaque)
{
    BusyThread *t = opaque;

    for (unsigned int i = 0; i < 4; i++) {
        busy_submit(t, i);
    }
}

static BusyThread *busy_thread(Busy *b, BlockChannel *c)
{
    for (unsigned int i = 0; i < b->threads; i++) {
        if (b->t[i].c == c) {
            return &b->t[i];
        }
    }
    return NULL;
}

static void busy_quiesce(void *dev, BlockChannel *c)
{
    BusyThread *t = busy_thread(dev, c);

    g_assert_true(aio_context_in_home(blk_channel_context(c)));
    if (t) {
        g_assert_false(t->stopped);
        t->stopped = true;
        t->quiesced++;
    }
}

static void busy_resume(void *dev, BlockChannel *c)
{
    BusyThread *t = busy_thread(dev, c);

    g_assert_true(aio_context_in_home(blk_channel_context(c)));
    if (t) {
        g_assert_true(t->stopped);
        t->stopped = false;
        t->resumed++;
        busy_start(t);
    }
}

static void busy_resized(void *dev)
{
    ((Busy *)dev)->resized++;
}

static const BlockDeviceOps busy_ops = {
    .channel_quiesce = busy_quiesce, .channel_resume = busy_resume, .resized = busy_resized,
};

static Busy *busy_new(BlockNode *node, unsigned int threads)
{
    Busy *b = g_new0(Busy, 1);

    b->blk = env_backend(node);
    b->threads = threads;
    b->t = g_new0(BusyThread, threads);
    g_assert_cmpint(blk_attach_dev(b->blk, &busy_ops, b), ==, 0);
    for (unsigned int i = 0; i < threads; i++) {
        b->t[i].busy = b;
        b->t[i].thread = env_thread_start();
        b->t[i].c = blk_channel_get(b->blk, env_thread_context(b->t[i].thread), &error_abort);
        aio_bh_schedule_oneshot(env_thread_context(b->t[i].thread), busy_start, &b->t[i]);
    }
    return b;
}

static void busy_free(Busy *b)
{
    for (unsigned int i = 0; i < b->threads; i++) {
        b->t[i].finish = true;
    }
    blk_drained_begin(b->blk);
    for (unsigned int i = 0; i < b->threads; i++) {
        blk_channel_put(b->t[i].c);
        env_thread_stop(b->t[i].thread);
    }
    blk_drained_end(b->blk);
    blk_detach_dev(b->blk, b);
    blk_unref(b->blk);
    g_free(b->t);
    g_free(b);
}

static void assert_idle(const Busy *b)
{
    for (unsigned int i = 0; i < b->threads; i++) {
        g_assert_cmpuint(b->t[i].in_flight, ==, 0);
        g_assert_cmpuint(blk_channel_in_flight(b->t[i].c), ==, 0);
    }
}

static void wait_progress(const Busy *b)
{
    for (unsigned int i = 0; i < b->threads; i++) {
        unsigned int before = b->t[i].completed;

        while (b->t[i].completed < before + 10) {
            aio_poll(aio_context_main(), false);
        }
    }
}

/* --- Cases --- */

static void test_threads(void)
{
    char *path = env_file(65536);
    Busy *b = busy_new(env_open("driver=raw,file.driver=file,file.filename=%s", path), 3);

    for (unsigned int round = 1; round <= 20; round++) {
        wait_progress(b);
        block_drained_begin(blk_node(b->blk));
        assert_idle(b);
        g_usleep(200);
        assert_idle(b);
        block_drained_end(blk_node(b->blk));
        wait_progress(b);
        for (unsigned int i = 0; i < b->threads; i++) {
            g_assert_cmpuint(b->t[i].quiesced, ==, round);
            g_assert_cmpuint(b->t[i].resumed, ==, round);
        }
    }
    busy_free(b);
    env_unlink(path);
}

static void test_child_reaches_users(void)
{
    Busy *b;
    BlockNode *child;

    mem_next.asynchronous = true;
    child = env_open("driver=null-aio,node-name=low");
    b = busy_new(env_open("driver=raw,file=low"), 2);
    wait_progress(b);
    block_drained_begin(child);
    assert_idle(b);
    block_drained_end(child);
    wait_progress(b);
    busy_free(b);
    block_node_unref(child);
}

static void test_nested(void)
{
    Busy *b;
    BlockNode *node;

    mem_next.asynchronous = true;
    b = busy_new(env_open("driver=raw,file.driver=null-aio"), 2);
    node = blk_node(b->blk);
    wait_progress(b);
    block_drained_begin(node);
    block_drained_begin(node->file->node);
    blk_drained_begin(b->blk);
    block_drained_end(node);
    assert_idle(b);
    blk_drained_end(b->blk);
    g_usleep(1000);
    assert_idle(b);
    block_drained_end(node->file->node);
    wait_progress(b);
    g_assert_cmpuint(b->t[0].quiesced, ==, 1);
    busy_free(b);
}

/* Begin and end in quick succession: an answer to an earlier question must not count for a later one. */
static void test_toggle(void)
{
    Busy *b;

    mem_next.asynchronous = true;
    b = busy_new(env_open("driver=null-aio"), 3);
    for (unsigned int i = 0; i < 500; i++) {
        blk_drained_begin(b->blk);
        assert_idle(b);
        blk_drained_end(b->blk);
    }
    wait_progress(b);
    busy_free(b);
}

static void test_all(void)
{
    Busy *a, *b;
    BlockNode *inside;

    mem_next.asynchronous = true;
    a = busy_new(env_open("driver=null-aio"), 1);
    mem_next.asynchronous = true;
    b = busy_new(env_open("driver=null-aio"), 2);
    wait_progress(a);
    block_drain_all_begin();
    assert_idle(a);
    assert_idle(b);
    inside = env_open("driver=null-aio");
    block_drain_all_end();
    block_node_unref(inside);
    wait_progress(a);
    wait_progress(b);
    busy_free(a);
    busy_free(b);
}

/* Whoever comes to a drained node starts out quiesced, and whoever leaves goes on. */
static void test_attach_to_drained(void)
{
    BlockNode *node = env_open("driver=null-aio");
    BlockBackend *blk;
    BlockChannel *c;

    block_drained_begin(node);
    blk = env_backend(block_node_ref(node));
    c = blk_channel_get(blk, aio_context_main(), &error_abort);
    g_assert_true(blk_channel_quiesced(c));
    block_drained_end(node);
    g_assert_false(blk_channel_quiesced(c));
    block_drained_begin(node);
    g_assert_true(blk_channel_quiesced(c));
    blk_remove_node(blk);
    g_assert_false(blk_channel_quiesced(c));
    block_drained_end(node);
    blk_channel_put(c);
    blk_unref(blk);
    block_node_unref(node);
}

static void test_resize_under_io(void)
{
    char *path = env_file(65536);
    Busy *b = busy_new(env_open("driver=raw,file.driver=file,file.filename=%s", path), 2);

    for (unsigned int i = 1; i <= 10; i++) {
        wait_progress(b);
        g_assert_cmpint(block_truncate(blk_node(b->blk), 65536 + i * 512, &error_abort), ==, 0);
        g_assert_cmpuint(blk_length(b->blk), ==, 65536 + i * 512);
        g_assert_cmpuint(b->resized, ==, i);
    }
    wait_progress(b);
    busy_free(b);
    env_unlink(path);
}

static void test_replace_medium_under_io(void)
{
    BlockNode *first, *second;
    Busy *b;

    mem_next.asynchronous = true;
    first = env_open("driver=null-aio");
    mem_next.asynchronous = true;
    second = env_open("driver=null-aio");
    b = busy_new(block_node_ref(first), 2);
    for (unsigned int i = 0; i < 20; i++) {
        wait_progress(b);
        blk_drained_begin(b->blk);
        blk_remove_node(b->blk);
        blk_insert_node(b->blk, i & 1 ? first : second, &error_abort);
        blk_drained_end(b->blk);
    }
    wait_progress(b);
    g_assert_cmpuint(mem_disk(first)->calls[BLOCK_READ], >, 0);
    g_assert_cmpuint(mem_disk(second)->calls[BLOCK_READ], >, 0);
    busy_free(b);
    block_node_unref(first);
    block_node_unref(second);
}

static void test_waits_for_detour(void)
{
    BlockChannel *c;
    BlockBackend *blk;
    EnvRequest e = { 0 };
    uint8_t buf[512] = { 7 };

    mem_next.limits.request_alignment = 4096;
    mem_next.asynchronous = true;
    blk = env_backend(env_open("driver=null-aio"));
    c = blk_channel_get(blk, aio_context_main(), &error_abort);
    env_submit(c, &e, BLOCK_WRITE, 512, 512, buf);
    g_assert_false(e.over);
    blk_drained_begin(blk);
    g_assert_true(e.over);
    g_assert_cmpint(mem_disk(blk_node(blk))->data[512], ==, 7);
    blk_drained_end(blk);
    blk_channel_put(c);
    blk_unref(blk);
}

static void test_accounting(void)
{
    BlockBackend *blk;
    BlockAccounting a;
    Busy *b;
    uint64_t reads = 0, writes = 0;

    mem_next.asynchronous = true;
    b = busy_new(env_open("driver=raw,file.driver=null-aio"), 3);
    wait_progress(b);
    for (unsigned int i = 0; i < 3; i++) {
        b->t[i].finish = true;
    }
    blk_drained_begin(b->blk);
    blk_stats(b->blk, &a);
    for (unsigned int i = 0; i < 3; i++) {
        reads += b->t[i].completed;
    }
    writes = a.ops[BLOCK_WRITE];
    g_assert_cmpuint(a.ops[BLOCK_READ] + writes, ==, reads);
    g_assert_cmpuint(a.bytes[BLOCK_READ], ==, 512 * a.ops[BLOCK_READ]);
    g_assert_cmpuint(a.wr_highest_offset, ==, 16384 * 2 + 4096 * 3 + 512);
    blk_drained_end(b->blk);
    blk = blk_ref(b->blk);
    busy_free(b);
    /* Channels are gone; what they counted is not. */
    blk_stats(blk, &a);
    g_assert_cmpuint(a.ops[BLOCK_WRITE], ==, writes);
    blk_unref(blk);
}

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/drain/threads-come-to-rest", test_threads);
    g_test_add_func("/block/drain/of-child-reaches-users", test_child_reaches_users);
    g_test_add_func("/block/drain/nests", test_nested);
    g_test_add_func("/block/drain/quick-succession", test_toggle);
    g_test_add_func("/block/drain/all", test_all);
    g_test_add_func("/block/drain/attach-to-drained", test_attach_to_drained);
    g_test_add_func("/block/drain/resize-under-io", test_resize_under_io);
    g_test_add_func("/block/drain/replace-medium-under-io", test_replace_medium_under_io);
    g_test_add_func("/block/drain/waits-for-read-modify-write", test_waits_for_detour);
    g_test_add_func("/block/accounting/sums-over-threads", test_accounting);
    return env_run();
}
