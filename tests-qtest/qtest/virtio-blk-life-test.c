/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-pci through its life: stop and cont, reset, ring reset, unplug, resize and error policy, with requests around. */
#include "common.h"

#include <string.h>

#define DISK_SIZE (1024 * 1024)
#define QUEUES 4
#define MAX_REQS 32
#define SLOT 4
#define HOTPLUG_EJECT 0xae08
/* Requests on this node stay in flight for a while. */
#define SLOW_NODE "null-aio,latency-ns=3000000,read-zeroes=on"

typedef struct Config {
    const char *name, *objects, *device;
} Config;

static const Config configs[] = {
    {"main-loop", "", ""},
    {"iothread", "-object iothread,id=io0", ",\"iothread\":\"io0\""},
    {"two-iothreads", "-object iothread,id=io0 -object iothread,id=io1",
     ",\"iothread-vq-mapping\":[{\"iothread\":\"io0\"},{\"iothread\":\"io1\"}]"},
};

static QTest *start(const Config *c, const char *node, const char *device_opts)
{
    return qt_start("-nodefaults %s -blockdev driver=%s,node-name=n,size=%d -device "
                    "'{\"driver\":\"virtio-blk-pci\",\"id\":\"v0\",\"drive\":\"n\",\"addr\":\"4.0\",\"num-queues\":%d%s%s}'",
                    c->objects, node, DISK_SIZE, QUEUES, c->device, device_opts);
}

static Vblk *driver(QTest *t)
{
    VblkOpts o = {.via = VIRTIO_MODERN, .queues = QUEUES};

    return vblk_new(t, &o);
}

static void check_io(Vblk *b)
{
    uint8_t buf[4096];

    for (unsigned int q = 0; q < b->nqueues; q++) {
        g_assert_cmpuint(vblk_rw(b, q, BLK_T_IN, 8 * q, buf, sizeof(buf)), ==, BLK_S_OK);
    }
}

/* @n reads on each queue, kicked. */
static void load(Vblk *b, VblkReq **reqs, unsigned int n)
{
    for (unsigned int i = 0; i < n * b->nqueues; i++) {
        reqs[i] = vblk_add(b, i % b->nqueues, BLK_T_IN, 8 * (i % 64), NULL, 4096, NULL);
    }
    for (unsigned int q = 0; q < b->nqueues; q++) {
        vblk_kick(b, q);
    }
}

static void test_stop_cont(gconstpointer data)
{
    QTest *t = start(data, SLOW_NODE, "");
    Vblk *b = driver(t);
    VblkReq *reqs[MAX_REQS * QUEUES];

    for (unsigned int round = 0; round < 20; round++) {
        unsigned int n = round % 3 ? MAX_REQS : 1, reaped = 0, later;

        load(b, reqs, n);
        json_decref(qmp_must(t->qmp, "stop", NULL));
        for (unsigned int q = 0; q < QUEUES; q++) {
            reaped += vblk_reap(b, q);
        }
        /* Stopped means at rest: nothing more comes, whatever the driver does. */
        for (unsigned int q = 0; q < QUEUES; q++) {
            vpci_notify(b->v, q);
        }
        g_usleep(5000);
        later = 0;
        for (unsigned int q = 0; q < QUEUES; q++) {
            later += vblk_reap(b, q);
        }
        g_assert_cmpuint(later, ==, 0);
        g_assert_cmpuint(reaped, <=, n * QUEUES);
        json_decref(qmp_must(t->qmp, "cont", NULL));
        for (unsigned int i = 0; i < n * QUEUES; i++) {
            g_assert_cmpuint(vblk_finish(reqs[i], NULL), ==, BLK_S_OK);
        }
    }
    check_io(b);
    vblk_free(b);
    qt_stop(t);
}

/* Requests that the driver adds to a stopped machine are found when it goes on, without another doorbell. */
static void test_kick_while_stopped(gconstpointer data)
{
    QTest *t = start(data, SLOW_NODE, "");
    Vblk *b = driver(t);
    VblkReq *reqs[QUEUES];

    json_decref(qmp_must(t->qmp, "stop", NULL));
    load(b, reqs, 1);
    g_usleep(10000);
    for (unsigned int q = 0; q < QUEUES; q++) {
        g_assert_cmpuint(vblk_reap(b, q), ==, 0);
    }
    json_decref(qmp_must(t->qmp, "cont", NULL));
    for (unsigned int q = 0; q < QUEUES; q++) {
        g_assert_cmpuint(vblk_finish(reqs[q], NULL), ==, BLK_S_OK);
    }
    vblk_free(b);
    qt_stop(t);
}

static void test_reset_under_io(gconstpointer data)
{
    QTest *t = start(data, SLOW_NODE, "");

    for (unsigned int round = 0; round < 10; round++) {
        Vblk *b = driver(t);
        VblkReq *reqs[MAX_REQS * QUEUES];

        load(b, reqs, MAX_REQS);
        if (round % 2) {
            json_decref(qmp_must(t->qmp, "system_reset", NULL));
            json_decref(qmp_event(t->qmp, "RESET"));
        }
        /* Resets the device with everything in flight, and frees what the driver remembers. */
        vblk_free(b);
        b = driver(t);
        check_io(b);
        vblk_free(b);
    }
    qt_stop(t);
}

static void test_unplug_under_io(gconstpointer data)
{
    const Config *c = data;
    QTest *t = start(c, SLOW_NODE, "");
    Vblk *b = driver(t);
    VblkReq *reqs[MAX_REQS * QUEUES];

    load(b, reqs, MAX_REQS);
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v0"));
    qt_outl(t, HOTPLUG_EJECT, 1u << SLOT);
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
    /* Nobody holds the node or the threads any more. */
    json_decref(qmp_must(t->qmp, "blockdev-del", "{s:s}", "node-name", "n"));
    if (strstr(c->objects, "io0")) {
        json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "io0"));
    }
    if (strstr(c->objects, "io1")) {
        json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "io1"));
    }
    qt_stop(t);
}

static void test_iothread_in_use(void)
{
    QTest *t = start(&configs[2], SLOW_NODE, "");
    Vblk *b = driver(t);

    for (unsigned int i = 0; i < 2; i++) {
        g_autofree char *id = g_strdup_printf("io%u", i);
        g_autofree char *want = g_strdup_printf("GenericError: object '%s' is in use, can not be deleted", id);
        g_autofree char *got = qmp_must_fail(t->qmp, "object-del", "{s:s}", "id", id);

        g_assert_cmpstr(got, ==, want);
    }
    check_io(b);
    vblk_free(b);
    qt_stop(t);
}

static void test_resize(gconstpointer data)
{
    const Config *c = data;
    g_autofree char *image = image_new(DISK_SIZE);
    QTest *t = qt_start("-nodefaults %s -blockdev driver=raw,node-name=n,file.driver=file,file.filename=%s -device "
                        "'{\"driver\":\"virtio-blk-pci\",\"id\":\"v0\",\"drive\":\"n\",\"addr\":\"4.0\",\"num-queues\":%d%s}'",
                        c->objects, image, QUEUES, c->device);
    Vblk *b = driver(t);
    VblkReq *reqs[QUEUES * 8];
    uint8_t buf[512], generation = vpci_config_generation(b->v);
    uint8_t isr = 0;

    g_assert_cmpuint(vpci_config_read(b->v, 0, 8), ==, DISK_SIZE / 512);
    g_assert_cmpuint(vblk_rw(b, 0, BLK_T_IN, DISK_SIZE / 512, buf, 512), ==, BLK_S_IOERR);
    vpci_isr(b->v);
    load(b, reqs, 8);
    json_decref(qmp_must(t->qmp, "block_resize", "{s:s, s:i}", "node-name", "n", "size", 2 * DISK_SIZE));
    for (unsigned int i = 0; i < 8 * QUEUES; i++) {
        g_assert_cmpuint(vblk_finish(reqs[i], NULL), ==, BLK_S_OK);
    }
    g_assert_cmpuint(vpci_config_read(b->v, 0, 8), ==, 2 * DISK_SIZE / 512);
    g_assert_cmpuint(vpci_config_generation(b->v), !=, generation);
    isr = vpci_isr(b->v);
    g_assert_cmpuint(isr & 3, ==, 3);
    g_assert_cmpuint(vblk_rw(b, 0, BLK_T_IN, DISK_SIZE / 512, buf, 512), ==, BLK_S_OK);
    vblk_free(b);
    qt_stop(t);
}

static char *run_state(QTest *t)
{
    json_t *r = qmp_must(t->qmp, "query-status", NULL);
    char *s = g_strdup(json_string_value(json_object_get(r, "status")));

    json_decref(r);
    return s;
}

/* A node that cannot be written makes every write fail: the machine stops, and each "cont" tries again. */
static void test_werror_stop(gconstpointer data)
{
    QTest *t = start(data, "null-co,read-only=on", ",\"werror\":\"stop\"");
    Vblk *b = driver(t);
    VblkReq *reqs[QUEUES];
    uint8_t block[512] = {0}, buf[512];

    for (unsigned int q = 0; q < QUEUES; q++) {
        reqs[q] = vblk_add(b, q, BLK_T_OUT, q, block, sizeof(block), NULL);
        vblk_kick(b, q);
    }
    for (unsigned int round = 0; round < 5; round++) {
        json_t *e = qmp_event(t->qmp, "BLOCK_IO_ERROR");
        g_autofree char *state = NULL;

        g_assert_cmpstr(json_string_value(json_object_get(json_object_get(e, "data"), "action")), ==, "stop");
        json_decref(e);
        json_decref(qmp_event(t->qmp, "STOP"));
        state = run_state(t);
        g_assert_cmpstr(state, ==, "io-error");
        for (unsigned int q = 0; q < QUEUES; q++) {
            g_assert_cmpuint(vblk_reap(b, q), ==, 0);
        }
        qmp_drop_events(t->qmp);
        json_decref(qmp_must(t->qmp, "cont", NULL));
    }
    json_decref(qmp_event(t->qmp, "STOP"));
    /* A reset forgets them. */
    (void)reqs;
    vblk_free(b);
    json_decref(qmp_must(t->qmp, "cont", NULL));
    b = driver(t);
    g_assert_cmpuint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    vblk_free(b);
    qt_stop(t);
}

static void test_werror_policy(gconstpointer data)
{
    bool ignore = GPOINTER_TO_INT(data);
    g_autofree char *opts = g_strdup_printf(",\"werror\":\"%s\"", ignore ? "ignore" : "report");
    QTest *t = start(&configs[1], "null-co,read-only=on", opts);
    Vblk *b = driver(t);
    uint8_t block[512] = {0};
    json_t *e;

    g_assert_cmpuint(vblk_rw(b, 1, BLK_T_OUT, 0, block, 512), ==, ignore ? BLK_S_OK : BLK_S_IOERR);
    e = qmp_event(t->qmp, "BLOCK_IO_ERROR");
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(e, "data"), "action")), ==,
                    ignore ? "ignore" : "report");
    json_decref(e);
    vblk_free(b);
    qt_stop(t);
}

static void test_accounting_off(void)
{
    QTest *t = start(&configs[1], "null-co,read-only=on", ",\"account-invalid\":\"off\",\"account-failed\":\"off\"");
    Vblk *b = driver(t);
    uint8_t block[512] = {0};
    json_t *r, *stats;

    g_assert_cmpuint(vblk_rw(b, 1, BLK_T_OUT, 0, block, 512), ==, BLK_S_IOERR);
    g_assert_cmpuint(vblk_rw(b, 1, BLK_T_IN, DISK_SIZE / 512, block, 512), ==, BLK_S_IOERR);
    r = qmp_must(t->qmp, "query-blockstats", NULL);
    stats = json_object_get(json_array_get(r, 0), "stats");
    g_assert_true(json_is_false(json_object_get(stats, "account_invalid")));
    g_assert_true(json_is_false(json_object_get(stats, "account_failed")));
    g_assert_cmpint(json_integer_value(json_object_get(stats, "failed_wr_operations")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "invalid_rd_operations")), ==, 1);
    /* Neither was an access that counts. */
    g_assert_cmpint(json_integer_value(json_object_get(stats, "wr_total_time_ns")), ==, 0);
    g_assert_null(json_object_get(stats, "idle_time_ns"));
    json_decref(r);
    vblk_free(b);
    qt_stop(t);
}

/* --- Ring reset: one queue is taken down and set up again while another goes on --- */

enum { Q_SELECT = 0x16, Q_ENABLE = 0x1c, Q_RESET = 0x3a };

static void raw_read(Vq *vq, uint64_t memory, bool wait)
{
    VqBuf buf[3] = {{memory, 16, false}, {memory + 512, 512, true}, {memory + 1024, 1, true}};
    uint16_t head;
    uint32_t len;

    qt_memset(vq->v->t, memory, 0, 16);
    qt_writeb(vq->v->t, memory + 1024, BLK_S_NONE);
    vq_add(vq, buf, 3, false);
    vq_kick(vq);
    for (int i = 0; wait && !vq_get_used(vq, &head, &len); i++) {
        g_usleep(1000);
        g_assert_cmpint(i, <, qos_hang_ms());
    }
    if (wait) {
        g_assert_cmpuint(qt_readb(vq->v->t, memory + 1024), ==, BLK_S_OK);
    }
}

static void test_ring_reset(gconstpointer data)
{
    QTest *t = start(data, SLOW_NODE, "");
    VirtioPci *v = vpci_new(t, SLOT << 3, VIRTIO_MODERN);
    uint64_t memory = guest_alloc(t, 4096);
    Vq *vq[2];

    vpci_reset(v);
    vpci_set_status(v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER);
    vpci_set_features(v, VIRTIO_F(VIRTIO_F_VERSION_1) | VIRTIO_F(VIRTIO_F_RING_RESET));
    vq[0] = vq_new(v, 0, 0, -1);
    vq[1] = vq_new(v, 1, 0, -1);
    vpci_set_status(v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER | VIRTIO_S_FEATURES_OK | VIRTIO_S_DRIVER_OK);
    for (unsigned int round = 0; round < 5; round++) {
        raw_read(vq[0], memory, false);
        vpci_common_write(v, Q_SELECT, 2, 0);
        vpci_common_write(v, Q_RESET, 2, 1);
        g_assert_cmpuint(vpci_common_read(v, Q_RESET, 2), ==, 0);
        g_assert_cmpuint(vpci_common_read(v, Q_ENABLE, 2), ==, 0);
        vq_free(vq[0]);
        raw_read(vq[1], memory + 2048, true);
        vq[0] = vq_new(v, 0, 0, -1);
        raw_read(vq[0], memory, true);
    }
    vpci_reset(v);
    vq_free(vq[0]);
    vq_free(vq[1]);
    vpci_free(v);
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(configs); i++) {
        const Config *c = &configs[i];

        add_case(test_stop_cont, c, "/virtio-blk/life/%s/stop-and-cont-under-io", c->name);
        add_case(test_kick_while_stopped, c, "/virtio-blk/life/%s/kick-while-stopped-is-served-later", c->name);
        add_case(test_reset_under_io, c, "/virtio-blk/life/%s/reset-under-io", c->name);
        add_case(test_unplug_under_io, c, "/virtio-blk/life/%s/unplug-under-io", c->name);
        add_case(test_resize, c, "/virtio-blk/life/%s/resize-under-io", c->name);
        add_case(test_werror_stop, c, "/virtio-blk/life/%s/werror-stop-and-retry", c->name);
        add_case(test_ring_reset, c, "/virtio-blk/life/%s/ring-reset", c->name);
    }
    add_case(test_werror_policy, GINT_TO_POINTER(0), "/virtio-blk/life/werror-report");
    add_case(test_werror_policy, GINT_TO_POINTER(1), "/virtio-blk/life/werror-ignore");
    g_test_add_func("/virtio-blk/life/failed-and-invalid-may-not-count", test_accounting_off);
    g_test_add_func("/virtio-blk/life/iothread-in-use-stays", test_iothread_in_use);
    return g_test_run();
}
