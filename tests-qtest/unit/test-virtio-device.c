/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtio devices whose main thread and IOThread do things at the same moment. */
#include "guest-env.h"

#include "base/bswap.h"
#include "block/backend.h"
#include "block/commands.h"
#include "driver/drivers.h"
#include "guest/machine.h"
#include "guest/private.h"
#include "object/iothread.h"
#include "virtio-blk/virtio-blk.h"
#include "virtio/virtio.h"

#include <pthread.h>

#define VERSION_1 (UINT64_C(1) << VIRTIO_F_VERSION_1)

/* --- A device that does nothing, and breaks when it is told to --- */

#define TYPE_TEST_VIRTIO "test-virtio"

static bool break_it;

static void *other_thread(void *vdev)
{
    virtio_error(vdev, "broken by a test");
    return NULL;
}

/* The status is about to be stored: the moment at which another thread finds out that a queue is broken. */
static void test_set_status(VirtIODevice *vdev, uint8_t status)
{
    pthread_t thread;

    if (break_it) {
        break_it = false;
        g_assert_cmpint(pthread_create(&thread, NULL, other_thread, vdev), ==, 0);
        g_assert_cmpint(pthread_join(thread, NULL), ==, 0);
    }
}

static void test_nothing(VirtIODevice *vdev)
{
}

static void test_nothing_with_queue(VirtIODevice *vdev, unsigned int index)
{
}

static const VirtIODeviceClass test_class = {
    .parent = {.bus_type = TYPE_VIRTIO_BUS},
    .set_status = test_set_status,
    .quiesce_begin = test_nothing,
    .quiesce_end = test_nothing,
    .queue_starting = test_nothing_with_queue,
    .queue_reset = test_nothing_with_queue,
    .reset = test_nothing,
    .handle_queue = test_nothing_with_queue,
};

static const ObjectType test_type = {
    .name = TYPE_TEST_VIRTIO, .parent = TYPE_VIRTIO_DEVICE, .size = sizeof(VirtIODevice), .klass = &test_class};

static int interrupts;

static void test_interrupt(void *opaque, uint16_t vector)
{
    interrupts++;
}

static const VirtIOTransport test_transport = {.interrupt = test_interrupt};

/* @status, @later: what the driver writes before, and in the moment of the breakage. */
static void break_during_write(uint64_t features, uint8_t status, uint8_t later, uint8_t expected)
{
    VirtIODevice *vdev = (VirtIODevice *)object_new(TYPE_TEST_VIRTIO);

    virtio_init(vdev, 1, 16, 0);
    virtio_bind(vdev, &test_transport, NULL);
    vdev->host_features = features;
    virtio_set_features(vdev, features);
    virtio_set_status(vdev, status);
    g_assert_cmphex(virtio_status(vdev), ==, status);
    break_it = true;
    virtio_set_status(vdev, later);
    g_assert_true(virtio_is_broken(vdev));
    g_assert_cmphex(virtio_status(vdev), ==, expected);
    /* It stays until the reset, whatever the driver writes. */
    virtio_set_status(vdev, later);
    g_assert_cmphex(virtio_status(vdev), ==, expected);
    virtio_set_status(vdev, 0);
    g_assert_cmphex(virtio_status(vdev), ==, 0);
    virtio_shutdown(vdev);
    virtio_cleanup(vdev);
    object_unref(&vdev->qdev.obj);
}

static void test_needs_reset(void)
{
    break_during_write(VERSION_1, 0xb, 0xf, 0x4f);
    /* The driver is ready: it is told by an interrupt as well. */
    interrupts = 0;
    break_during_write(VERSION_1, 0xf, 0xb, 0x4b);
    g_assert_cmpint(interrupts, ==, 1);
    /* Legacy drivers do not know the bit. */
    break_during_write(0, 0x3, 0x7, 0x7);
}

/* --- A block device in an iothread --- */

enum { DESC = 0x100000, AVAIL = 0x101000, USED = 0x102000, HEADER = 0x103000, STATUS = 0x104000, DATA = 0x105000 };

static VirtIODevice *blk_device(void)
{
    g_autoptr(json_t) iothread = json_pack("{s:s, s:s}", "qom-type", "iothread", "id", "t0");
    g_autoptr(json_t) device =
        json_pack("{s:s, s:s, s:s, s:s}", "driver", "virtio-blk-pci", "id", "v0", "drive", "n0", "iothread", "t0");

    guest_env_machine("pc", "16");
    g_assert_true(user_creatable_add(iothread, &error_abort));
    g_assert_true(blockdev_add_option("driver=null-co,node-name=n0,size=1048576,read-zeroes=on", &error_abort));
    g_assert_nonnull(device_add(device, true, &error_abort));
    return virtio_before(NULL);
}

static void blk_end(void)
{
    machine_destroy();
    guest_env_settle();
    block_close_all();
    g_assert_true(user_creatable_del("t0", &error_abort));
}

/* A read of one sector waits in the ring before the driver is ready. */
static void put_request(VirtIODevice *vdev)
{
    static const struct {
        uint32_t addr, len;
        uint16_t flags, next;
    } chain[] = {{HEADER, 16, 1, 1}, {DATA, 512, 3, 2}, {STATUS, 1, 2, 0}};
    uint8_t header[16] = {0}, status = 0xff, avail[6] = {0};

    for (unsigned int i = 0; i < G_N_ELEMENTS(chain); i++) {
        uint8_t desc[16];

        store_le64(desc, chain[i].addr);
        store_le32(desc + 8, chain[i].len);
        store_le16(desc + 12, chain[i].flags);
        store_le16(desc + 14, chain[i].next);
        g_assert_true(guest_ram_write(DESC + i * 16, desc, sizeof(desc)));
    }
    store_le16(avail + 2, 1);
    g_assert_true(guest_ram_write(HEADER, header, sizeof(header)));
    g_assert_true(guest_ram_write(STATUS, &status, 1));
    g_assert_true(guest_ram_write(AVAIL, avail, sizeof(avail)));
    virtqueue_set_rings(vdev->queues[0].vq, DESC, AVAIL, USED);
}

static uint8_t request_status(void)
{
    uint8_t status = 0;

    g_assert_true(guest_ram_read(STATUS, &status, 1));
    return status;
}

typedef struct HomeView {
    VirtIOQueue *q;
    uint64_t sleeps;
} HomeView;

static void look_at_home(void *opaque)
{
    HomeView *v = opaque;

    g_assert_false(v->q->watched);
    v->sleeps = aio_stat_get(&aio_context_stats(v->q->ctx)->sleeps);
}

/*
 * In a drained section nobody touches the ring, so a queue that is started there must leave its loop alone: with a handler in
 * place the loop would find buffers in pass after pass that it may not take.
 */
static void test_start_while_drained(void)
{
    VirtIODevice *vdev = blk_device();
    VirtIOQueue *q = &vdev->queues[0];
    AioContext *home = iothread_context(iothread_by_id("t0"));
    BlockBackend *blk = NULL;
    HomeView view = {.q = q};
    int64_t end = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;

    do {
        blk = blk_next(blk);
    } while (blk_dev(blk) != vdev);
    virtio_set_features(vdev, VERSION_1);
    virtio_set_status(vdev, 0xb);
    put_request(vdev);
    blk_drained_begin(blk);
    virtio_set_status(vdev, 0xf);
    g_assert_true(q->started);
    virtio_kick(vdev, 0);
    aio_run_in_home(home, look_at_home, &view);
    /* The loop comes to rest. */
    while (aio_stat_get(&aio_context_stats(home)->sleeps) == view.sleeps) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
    g_assert_cmphex(request_status(), ==, 0xff);
    blk_drained_end(blk);
    while (request_status() == 0xff) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        aio_poll(aio_context_main(), false);
    }
    g_assert_cmphex(request_status(), ==, 0);
    blk_end();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    guest_env_init();
    block_drivers_register();
    virtio_blk_register_types();
    object_register_type(&test_type);
    g_test_add_func("/virtio/status/needs-reset-survives-a-write", test_needs_reset);
    g_test_add_func("/virtio-blk/drain/queue-started-meanwhile-is-left-alone", test_start_while_drained);
    return g_test_run();
}
