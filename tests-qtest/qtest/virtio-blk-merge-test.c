/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Request merging of virtio-blk-pci: what becomes one, what does not, and that data stay where they belong. */
#include "common.h"

#include <string.h>

#define DISK_SIZE (1024 * 1024)
#define MAX_REQS 64

typedef struct Case {
    const char *name, *device;
    unsigned int n;
    int step;        /* sectors from one request to the next */
    unsigned int sectors;
    unsigned int break_at; /* a flush in between; 0: none */
    unsigned int merged;
} Case;

static const Case cases[] = {
    {"33-adjacent-are-two", "", 33, 8, 8, 0, 31},
    {"descending-order-too", "", 16, -8, 8, 0, 15},
    {"single-sectors", "", 20, 1, 1, 0, 19},
    {"gaps-keep-apart", "", 16, 9, 8, 0, 0},
    {"a-flush-keeps-apart", "", 16, 8, 8, 6, 14},
    {"overlap-keeps-apart", "", 8, 4, 8, 0, 0},
    {"switched-off", ",request-merging=off", 16, 8, 8, 0, 0},
};

static int64_t counter(QTest *t, const char *name)
{
    json_t *r = qmp_must(t->qmp, "query-blockstats", NULL);
    json_t *stats = json_object_get(json_array_get(r, 0), "stats");
    int64_t v = json_integer_value(json_object_get(stats, name));

    g_assert_nonnull(json_object_get(stats, name));
    json_decref(r);
    return v;
}

static void fill(uint8_t *buf, unsigned int i, size_t len)
{
    for (size_t k = 0; k < len; k++) {
        buf[k] = (uint8_t)(i * 37 + k / 512 + 1);
    }
}

static uint64_t sector_of(const Case *c, unsigned int i)
{
    return (uint64_t)(c->step < 0 ? (int)(c->n - 1 - i) * -c->step : (int)i * c->step);
}

/* All of them appear to the device at once. */
static void run(Vblk *b, const Case *c, uint32_t type, unsigned int *flushes)
{
    VblkReq *reqs[MAX_REQS], *flush = NULL;
    uint8_t buf[4096], want[4096];

    b->vq[0]->corked = true;
    for (unsigned int i = 0; i < c->n; i++) {
        if (c->break_at && i == c->break_at) {
            flush = vblk_add(b, 0, BLK_T_FLUSH, 0, NULL, 0, NULL);
            *flushes += 1;
        }
        fill(buf, i, c->sectors * 512);
        reqs[i] = vblk_add(b, 0, type, sector_of(c, i), type == BLK_T_OUT ? buf : NULL, c->sectors * 512, NULL);
    }
    vblk_kick(b, 0);
    for (unsigned int i = 0; i < c->n; i++) {
        uint32_t used;

        g_assert_cmpuint(vblk_finish_len(reqs[i], buf, &used), ==, BLK_S_OK);
        g_assert_cmpuint(used, ==, type == BLK_T_OUT ? 1 : c->sectors * 512 + 1);
        if (type == BLK_T_IN && c->step != 4) {
            fill(want, i, c->sectors * 512);
            g_assert_cmpmem(buf, c->sectors * 512, want, c->sectors * 512);
        }
    }
    if (flush) {
        g_assert_cmpuint(vblk_finish(flush, NULL), ==, BLK_S_OK);
    }
}

static void test_merge(gconstpointer data)
{
    const Case *c = data;
    g_autofree char *image = image_new(DISK_SIZE);
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev driver=file,node-name=n,filename=%s -device "
                        "virtio-blk-pci,drive=n,iothread=io0,addr=4.0%s",
                        image, c->device);
    VblkOpts o = {.via = VIRTIO_MODERN};
    Vblk *b = vblk_new(t, &o);
    unsigned int flushes = 0;

    run(b, c, BLK_T_OUT, &flushes);
    g_assert_cmpint(counter(t, "wr_merged"), ==, c->merged);
    g_assert_cmpint(counter(t, "wr_operations"), ==, c->n);
    g_assert_cmpint(counter(t, "wr_bytes"), ==, c->n * c->sectors * 512);
    run(b, c, BLK_T_IN, &flushes);
    g_assert_cmpint(counter(t, "rd_merged"), ==, c->merged);
    g_assert_cmpint(counter(t, "rd_operations"), ==, c->n);
    g_assert_cmpint(counter(t, "flush_operations"), ==, flushes);
    vblk_free(b);
    qt_stop(t);
}

/* A merged request that fails, fails for each of its parts. */
static void test_failure(void)
{
    QTest *t = qt_start("-nodefaults -blockdev driver=null-co,node-name=n,read-only=on,size=%d -device "
                        "virtio-blk-pci,drive=n,addr=4.0,werror=report",
                        DISK_SIZE);
    VblkOpts o = {.via = VIRTIO_MODERN};
    Vblk *b = vblk_new(t, &o);
    VblkReq *reqs[8];
    uint8_t buf[512] = {0};

    b->vq[0]->corked = true;
    for (unsigned int i = 0; i < 8; i++) {
        reqs[i] = vblk_add(b, 0, BLK_T_OUT, i, buf, 512, NULL);
    }
    vblk_kick(b, 0);
    for (unsigned int i = 0; i < 8; i++) {
        g_assert_cmpuint(vblk_finish(reqs[i], NULL), ==, BLK_S_IOERR);
    }
    g_assert_cmpint(counter(t, "failed_wr_operations"), ==, 8);
    g_assert_cmpint(counter(t, "wr_operations"), ==, 0);
    vblk_free(b);
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        add_case(test_merge, &cases[i], "/virtio-blk/merge/%s", cases[i].name);
    }
    g_test_add_func("/virtio-blk/merge/failure-is-that-of-each", test_failure);
    return g_test_run();
}
