/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What happens to a device while requests are in flight, again and again: QOS_ROUNDS times (5 if not set). The long suite runs it
 * with 1,000.
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define DISK_SIZE (1024 * 1024)
#define QUEUES 4
#define DEPTH 8

static unsigned int rounds = 5;

#define THREADS "-object iothread,id=i0 -object iothread,id=i1 "
#define NODE "-blockdev raw,node-name=n,file.driver=file,file.filename=%s "
#define MAPPED                                                                                                      \
    "-device '{\"driver\":\"virtio-blk-pci\",\"drive\":\"n\",\"id\":\"v\",\"addr\":\"4\",\"num-queues\":4,"          \
    "\"iothread-vq-mapping\":[{\"iothread\":\"i0\"},{\"iothread\":\"i1\"}]}'"

typedef struct Load {
    VblkReq *r[QUEUES][DEPTH];
} Load;

static QTest *start(const char *args, char **image)
{
    QTestOpts o = {.shared_mib = 64};
    g_autofree char *text = NULL, *name = image_new(DISK_SIZE);
    QTest *t;

    text = g_strdup_printf(args, name);
    t = qt_start_opts(&o, text);
    *image = g_steal_pointer(&name);
    return t;
}

static Vblk *driver(QTest *t)
{
    VblkOpts o = {.via = VIRTIO_MODERN, .queues = QUEUES, .msix = true};

    return vblk_new(t, &o);
}

/* Writes and reads on all queues, visible to the device but not waited for. */
static void put_load(Vblk *b, Load *l, unsigned int round)
{
    static uint8_t data[4096];

    memset(data, (int)round, sizeof(data));
    for (unsigned int q = 0; q < QUEUES; q++) {
        for (unsigned int i = 0; i < DEPTH; i++) {
            uint64_t sector = (q * DEPTH + i) * 8;

            l->r[q][i] = (i + round) % 2 ? vblk_add(b, q, BLK_T_OUT, sector, data, sizeof(data), NULL)
                                         : vblk_add(b, q, BLK_T_IN, sector, NULL, sizeof(data), NULL);
        }
        vblk_kick(b, q);
    }
}

static void end_load(Load *l)
{
    for (unsigned int q = 0; q < QUEUES; q++) {
        for (unsigned int i = 0; i < DEPTH; i++) {
            g_assert_cmpuint(vblk_finish(l->r[q][i], NULL), ==, BLK_S_OK);
        }
    }
}

static void do_qmp(QTest *t, const char *command)
{
    json_decref(qmp_must(t->qmp, command, NULL));
}

static void test_stop_cont(void)
{
    g_autofree char *image = NULL;
    QTest *t = start(THREADS NODE MAPPED, &image);
    Vblk *b = driver(t);
    Load l;

    for (unsigned int i = 0; i < rounds; i++) {
        put_load(b, &l, i);
        do_qmp(t, "stop");
        do_qmp(t, "cont");
        end_load(&l);
        qmp_drop_events(t->qmp);
    }
    vblk_free(b);
    qt_stop(t);
}

static void test_resize(void)
{
    g_autofree char *image = NULL;
    QTest *t = start(THREADS NODE MAPPED, &image);
    Vblk *b = driver(t);
    Load l;

    for (unsigned int i = 0; i < rounds; i++) {
        json_int_t size = DISK_SIZE * (json_int_t)(1 + (i + 1) % 3);

        put_load(b, &l, i);
        json_decref(qmp_must(t->qmp, "block_resize", "{s:s, s:I}", "node-name", "n", "size", size));
        end_load(&l);
        g_assert_cmpuint(vpci_config_read(b->v, 0, 8), ==, (uint64_t)size / 512);
    }
    vblk_free(b);
    qt_stop(t);
}

static void test_reset(void)
{
    g_autofree char *image = NULL;
    QTest *t = start(THREADS NODE MAPPED, &image);

    for (unsigned int i = 0; i < rounds; i++) {
        Vblk *b = driver(t);
        Load l;

        put_load(b, &l, i);
        if (i % 3 == 0) {
            end_load(&l);
        }
        /* The device's own reset; it waits for what is in flight. */
        vblk_free(b);
    }
    qt_stop(t);
}

static void unplug(QTest *t)
{
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v"));
    qt_outl(t, 0xae08, 1 << 4);
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
}

/* Which thread serves which queue: dealt, in one hand, or spelled out. */
static const char *const mappings[] = {
    "[{\"iothread\":\"i0\"},{\"iothread\":\"i1\"}]",
    "[{\"iothread\":\"i1\"}]",
    "[{\"iothread\":\"i0\",\"vqs\":[3,0]},{\"iothread\":\"i1\",\"vqs\":[1,2]}]",
};

static void plug(QTest *t, const char *mapping)
{
    json_t *m = json_loads(mapping, 0, NULL);

    json_decref(qmp_must(t->qmp, "device_add", "{s:s, s:s, s:s, s:s, s:i, s:o}", "driver", "virtio-blk-pci", "drive", "n",
                         "id", "v", "addr", "4", "num-queues", QUEUES, "iothread-vq-mapping", m));
}

static void test_unplug(void)
{
    g_autofree char *image = NULL;
    QTest *t = start(THREADS NODE, &image);

    for (unsigned int i = 0; i < rounds; i++) {
        Vblk *b;
        Load l;

        plug(t, mappings[0]);
        b = driver(t);
        put_load(b, &l, i);
        unplug(t);
        vblk_abandon(b);
        qmp_drop_events(t->qmp);
    }
    qt_stop(t);
}

static void test_mapping(void)
{
    g_autofree char *image = NULL;
    QTest *t = start(THREADS NODE, &image);

    for (unsigned int i = 0; i < rounds; i++) {
        Vblk *b;
        Load l;

        plug(t, mappings[i % G_N_ELEMENTS(mappings)]);
        b = driver(t);
        put_load(b, &l, i);
        end_load(&l);
        vblk_free(b);
        unplug(t);
        qmp_drop_events(t->qmp);
    }
    qt_stop(t);
}

int main(int argc, char **argv)
{
    const char *text = g_getenv("QOS_ROUNDS");

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    if (!binary_is_v11()) {
        g_print("1..0 # SKIP no iothread-vq-mapping\n");
        return 0;
    }
    if (text) {
        rounds = (unsigned int)atoi(text);
        g_assert_cmpuint(rounds, >, 0);
    }
    g_test_add_func("/virtio-blk/rounds/stop-cont", test_stop_cont);
    g_test_add_func("/virtio-blk/rounds/resize", test_resize);
    g_test_add_func("/virtio-blk/rounds/reset", test_reset);
    g_test_add_func("/virtio-blk/rounds/unplug", test_unplug);
    g_test_add_func("/virtio-blk/rounds/vq-mapping", test_mapping);
    return g_test_run();
}
