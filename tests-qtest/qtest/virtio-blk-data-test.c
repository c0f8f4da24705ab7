/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Data integrity through every engine: what the guest moves is what the image holds, and nothing else changes. */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The last block of 4096 is not whole: O_DIRECT must cope with the end. */
#define IMAGE_SIZE ((1 << 20) + 512)

typedef struct Engine {
    const char *name, *aio;
    bool direct;
} Engine;

static const Engine engines[] = {
    {"threads-buffered", "threads", false}, {"threads-direct", "threads", true},
    {"native-direct", "native", true},      {"io_uring-buffered", "io_uring", false},
    {"io_uring-direct", "io_uring", true},
};

static const size_t sizes[] = {512, 1536, 4096, 12288, 65536, 66048, 262656};

typedef struct Case {
    const Engine *e;
    size_t size;
    bool write, aligned;
    unsigned int queues;
} Case;

typedef struct Setup {
    QTest *t;
    Vblk *b;
    char *image;
} Setup;

static bool setup(Setup *s, const Engine *e, unsigned int queues, unsigned int shared_mib)
{
    QTestOpts o = {.shared_mib = shared_mib};
    VblkOpts vo = {.queues = queues, .via = VIRTIO_MODERN};
    g_autofree char *args = NULL;

    if (!engine_usable(e->aio, e->direct)) {
        return false;
    }
    s->image = image_new(IMAGE_SIZE);
    args = g_strdup_printf("-nodefaults -object iothread,id=io0 "
                           "-blockdev driver=file,node-name=f,filename=%s,aio=%s,cache.direct=%s "
                           "-device virtio-blk-pci,drive=f,iothread=io0,addr=4.0,num-queues=%u",
                           s->image, e->aio, e->direct ? "on" : "off", queues);
    s->t = qt_start_opts(&o, args);
    s->b = vblk_new(s->t, &vo);
    return true;
}

static void teardown(Setup *s)
{
    vblk_free(s->b);
    qt_stop(s->t);
    unlink(s->image);
    g_free(s->image);
}

/* First, somewhere, across a page, and the very end. */
static void positions(size_t size, uint64_t pos[4])
{
    pos[0] = 0;
    pos[1] = 512 * 77;
    pos[2] = 65536 - 512;
    pos[3] = IMAGE_SIZE - size;
}

static void check_read(Setup *s, size_t size)
{
    g_autofree uint8_t *buf = g_malloc(size), *expect = g_malloc(size);
    uint64_t pos[4];

    positions(size, pos);
    for (int i = 0; i < 4; i++) {
        memset(buf, 0, size);
        fill_pattern(expect, pos[i], size);
        g_assert_cmpint(vblk_rw(s->b, 0, BLK_T_IN, pos[i] / 512, buf, size), ==, BLK_S_OK);
        g_assert_true(!memcmp(buf, expect, size));
    }
}

static void check_write(Setup *s, size_t size)
{
    g_autofree uint8_t *buf = g_malloc(size), *shadow = g_malloc(IMAGE_SIZE), *file = g_malloc(IMAGE_SIZE);
    uint64_t pos[4];

    fill_pattern(shadow, 0, IMAGE_SIZE);
    positions(size, pos);
    for (int i = 0; i < 4; i++) {
        for (size_t k = 0; k < size; k++) {
            buf[k] = (uint8_t)(k * 13 + k / 512 + (size_t)i);
        }
        memcpy(shadow + pos[i], buf, size);
        g_assert_cmpint(vblk_rw(s->b, 0, BLK_T_OUT, pos[i] / 512, buf, size), ==, BLK_S_OK);
    }
    g_assert_cmpint(vblk_rw(s->b, 0, BLK_T_FLUSH, 0, NULL, 0), ==, BLK_S_OK);
    image_read(s->image, 0, file, IMAGE_SIZE);
    g_assert_true(!memcmp(file, shadow, IMAGE_SIZE));
}

static void test_size(gconstpointer data)
{
    const Case *c = data;
    Setup s;

    if (!setup(&s, c->e, 1, 16)) {
        return;
    }
    s.b->page_aligned = c->aligned;
    if (c->write) {
        check_write(&s, c->size);
    } else {
        check_read(&s, c->size);
    }
    teardown(&s);
}

/* What a request in flight will have done. Requests in flight never overlap. */
typedef struct Flight {
    VblkReq *req;
    uint64_t pos;
    size_t size;
} Flight;

static void land(Flight *f, const uint8_t *shadow)
{
    g_autofree uint8_t *buf = g_malloc(f->size);
    bool read = f->req->type == BLK_T_IN;

    g_assert_cmpint(vblk_finish(f->req, buf), ==, BLK_S_OK);
    f->req = NULL;
    if (read && memcmp(buf, shadow + f->pos, f->size)) {
        qos_die("a read of %zu bytes at %" G_GUINT64_FORMAT " gave wrong data", f->size, f->pos);
    }
}

static void test_mixed(gconstpointer data)
{
    enum { DEPTH = 16, ROUNDS = 600, SLICE = IMAGE_SIZE / DEPTH / 512 * 512 };
    const Case *c = data;
    Flight flight[DEPTH] = {0};
    g_autofree uint8_t *shadow = g_malloc(IMAGE_SIZE), *file = g_malloc(IMAGE_SIZE);
    Setup s;

    if (!setup(&s, c->e, c->queues, 16)) {
        return;
    }
    fill_pattern(shadow, 0, IMAGE_SIZE);
    for (int i = 0; i < ROUNDS; i++) {
        int k = i % DEPTH;
        Flight *f = &flight[k];
        uint8_t *at;
        bool write = g_test_rand_int_range(0, 2);
        unsigned int queue = (unsigned int)g_test_rand_int_range(0, (gint32)c->queues);

        if (f->req) {
            land(f, shadow);
        }
        f->size = 512 * (size_t)g_test_rand_int_range(1, SLICE / 512 / 2);
        f->pos = (uint64_t)k * SLICE + 512 * (uint64_t)g_test_rand_int_range(0, (gint32)((SLICE - f->size) / 512));
        at = shadow + f->pos;
        if (write) {
            memset(at, g_test_rand_int_range(0, 256), f->size);
        }
        s.b->page_aligned = g_test_rand_int_range(0, 2);
        f->req = vblk_add(s.b, queue, write ? BLK_T_OUT : BLK_T_IN, f->pos / 512, at, f->size, NULL);
        if (g_test_rand_int_range(0, 3)) {
            vblk_kick(s.b, queue);
        }
        if (k == DEPTH - 1) {
            for (unsigned int q = 0; q < c->queues; q++) {
                vblk_kick(s.b, q);
            }
        }
    }
    for (unsigned int q = 0; q < c->queues; q++) {
        vblk_kick(s.b, q);
    }
    for (int k = 0; k < DEPTH; k++) {
        if (flight[k].req) {
            land(&flight[k], shadow);
        }
    }
    image_read(s.image, 0, file, IMAGE_SIZE);
    g_assert_true(!memcmp(file, shadow, IMAGE_SIZE));
    teardown(&s);
}

typedef struct Framing {
    const char *name;
    VblkFraming f;
    size_t size;
} Framing;

static const Framing framings[] = {
    {"header-in-2", {.header_parts = 2}, 4096},
    {"header-in-16", {.header_parts = 16}, 4096},
    {"data-by-512", {.data_seg = 512}, 32768},
    {"data-by-64", {.data_seg = 64}, 4096},
    {"data-by-odd-513", {.data_seg = 513}, 8192},
    {"data-by-4096", {.data_seg = 4096}, 65536},
    {"header-joins-data", {.join_header = true}, 4096},
    {"header-joins-part-of-data", {.join_header = true, .data_seg = 100}, 2048},
    {"status-joins-data", {.join_status = true}, 4096},
    {"status-joins-part-of-data", {.join_status = true, .data_seg = 1000}, 4096},
    {"all-at-once", {.header_parts = 4, .data_seg = 700, .join_header = true, .join_status = true}, 16384},
};

typedef struct FramingCase {
    const Framing *framing;
    bool indirect, write;
    VirtioVia via;
} FramingCase;

static void test_framing(gconstpointer data)
{
    const FramingCase *c = data;
    VblkOpts vo = {.via = c->via, .without = c->indirect ? 0 : VIRTIO_F(VIRTIO_F_INDIRECT)};
    g_autofree char *image = image_new(IMAGE_SIZE);
    g_autofree uint8_t *buf = g_malloc(c->framing->size), *other = g_malloc(c->framing->size);
    size_t size = c->framing->size;
    uint32_t used_len;
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev driver=file,node-name=f,filename=%s "
                        "-device virtio-blk-pci,drive=f,iothread=io0,addr=4.0", image);
    Vblk *b = vblk_new(t, &vo);
    VblkReq *r;

    for (size_t i = 0; i < size; i++) {
        buf[i] = (uint8_t)(i * 5 + i / 256);
    }
    r = vblk_add(b, 0, c->write ? BLK_T_OUT : BLK_T_IN, 3, buf, size, &c->framing->f);
    vblk_kick(b, 0);
    g_assert_cmpint(vblk_finish_len(r, c->write ? NULL : buf, &used_len), ==, BLK_S_OK);
    g_assert_cmpuint(used_len, ==, c->write ? 1 : size + 1);
    if (c->write) {
        image_read(image, 3 * 512, other, size);
    } else {
        fill_pattern(other, 3 * 512, size);
    }
    g_assert_true(!memcmp(buf, other, size));
    vblk_free(b);
    qt_stop(t);
    unlink(image);
}

static void add_sizes(const Engine *e)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (int k = 0; k < 4; k++) {
            Case *c = g_new0(Case, 1);

            c->e = e;
            c->size = sizes[i];
            c->write = k & 1;
            c->aligned = k & 2;
            add_case_owned(test_size, c, "/virtio-blk/data/%s/%s/%zu-%s", e->name, c->write ? "write" : "read", c->size,
                     c->aligned ? "page-aligned" : "unaligned-memory");
        }
    }
    for (unsigned int queues = 1; queues <= 4; queues += 3) {
        Case *c = g_new0(Case, 1);

        c->e = e;
        c->queues = queues;
        add_case_owned(test_mixed, c, "/virtio-blk/data/%s/mixed/%u-queue%s", e->name, queues, queues > 1 ? "s" : "");
    }
}

int main(int argc, char **argv)
{
    static const char *const via_name[] = {"legacy", "modern"};

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(engines); i++) {
        add_sizes(&engines[i]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(framings); i++) {
        for (int k = 0; k < 8; k++) {
            FramingCase *c = g_new0(FramingCase, 1);

            c->framing = &framings[i];
            c->indirect = k & 1;
            c->write = k & 2;
            c->via = k & 4 ? VIRTIO_MODERN : VIRTIO_LEGACY;
            add_case_owned(test_framing, c, "/virtio-blk/framing/%s/%s/%s/%s", via_name[c->via],
                     c->indirect ? "indirect" : "direct", c->write ? "write" : "read", framings[i].name);
        }
    }
    return g_test_run();
}
