/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Malformed rings and requests: the process lives, the device says that it needs a reset, and a reset heals it. */
#include "hostile-cases.h"

#include <stdio.h>
#include <string.h>

typedef struct Row {
    const Case *c;
    VirtioVia via;
    bool iothread;
} Row;

static void bench_init(Bench *x, QTest *t, VirtioVia via)
{
    VblkOpts o = {.via = via};

    x->t = t;
    x->b = vblk_new(t, &o);
    x->vq = x->b->vq[0];
    x->mem = guest_alloc(t, 128 << 10);
    qt_memset(t, x->mem, 0, 128 << 10);
    x->header = x->mem;
    x->data = x->mem + 4096;
    x->table = x->mem + 0x10000;
    x->status = x->mem + 0x1f000;
    qt_writeb(t, x->status, BLK_S_NONE);
}

static void expect_broken(Bench *x, const Case *c)
{
    bool legacy = x->b->v->via == VIRTIO_LEGACY;

    qt_wait_stderr(x->t, c->message ? c->message : ": ");
    /* Only version 1 has a bit to tell the driver. */
    for (int i = 0; !legacy && !(vpci_status(x->b->v) & VIRTIO_S_NEEDS_RESET); i++) {
        g_usleep(1000);
        if (i > qos_hang_ms()) {
            qos_die("%s: the device does not say that it needs a reset", c->name);
        }
    }
    g_assert_cmphex(vpci_status(x->b->v), ==, legacy ? 0x07 : 0x4f);
    g_assert_cmphex(vpci_isr(x->b->v), ==, legacy ? 0 : 3);
    g_assert_cmpuint(vq_used_idx(x->vq), ==, 0);
    g_assert_cmphex(qt_readb(x->t, x->status), ==, BLK_S_NONE);
    /* Broken until reset: a good request goes unanswered. */
    chain3(x, BLK_T_IN, 0, x->data, 512, VQ_DESC_WRITE);
    go(x, 0);
    g_usleep(10000);
    g_assert_cmpuint(vq_used_idx(x->vq), ==, 0);
}

static void expect_status(Bench *x, const Case *c)
{
    for (int i = 0; !vq_used_idx(x->vq); i++) {
        g_usleep(1000);
        if (vpci_status(x->b->v) & VIRTIO_S_NEEDS_RESET) {
            g_autofree char *text = qt_stderr(x->t);

            qos_die("%s: the device needs a reset: %s", c->name, text);
        }
        if (i > qos_hang_ms()) {
            qos_die("%s: does not complete", c->name);
        }
    }
    g_assert_cmphex(qt_readb(x->t, x->status), ==, c->status);
    g_assert_cmphex(vpci_status(x->b->v) & VIRTIO_S_NEEDS_RESET, ==, 0);
}

static bool complained(QTest *t)
{
    g_autofree char *text = qt_stderr(t);

    return *text;
}

static void test_case(gconstpointer data)
{
    const Row *row = data;
    uint8_t buf[512] = {1};
    Bench x;
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on "
                        "-device virtio-blk-pci,drive=n%s,addr=4.0", row->iothread ? ",iothread=io0" : "");

    bench_init(&x, t, row->via);
    pci_map_bar(x.b->v->pci, 1);
    row->c->build(&x);
    switch (row->c->outcome) {
    case BROKEN:
        expect_broken(&x, row->c);
        break;
    case STATUS:
        expect_status(&x, row->c);
        break;
    case EITHER:
        for (int i = 0; !vq_used_idx(x.vq) && !complained(t); i++) {
            g_usleep(1000);
            if (i > qos_hang_ms()) {
                qos_die("%s: neither completes nor breaks", row->c->name);
            }
        }
        break;
    }
    qt_assert_alive(t);
    guest_free(t, x.mem);
    vblk_free(x.b);
    /* Status 0 heals it. */
    x.b = vblk_new(t, &(VblkOpts){.via = row->via});
    g_assert_cmpint(vblk_rw(x.b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmphex(buf[0], ==, 0);
    vblk_free(x.b);
    qt_stop(t);
}

int main(int argc, char **argv)
{
    static const char *const via_name[] = {"legacy", "modern"};

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < n_hostile_cases; i++) {
        for (int k = 0; k < 3; k++) {
            Row *row = g_new0(Row, 1);

            row->c = &hostile_cases[i];
            row->via = k == 0 ? VIRTIO_LEGACY : VIRTIO_MODERN;
            row->iothread = k != 2;
            add_case_owned(test_case, row, "/virtio-blk/hostile/%s%s/%s", via_name[row->via],
                     row->iothread ? "" : "-main-loop", hostile_cases[i].name);
        }
    }
    return g_test_run();
}
