/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting, stopping, and doing things over and over leaves nothing behind. In a build with AddressSanitizer a leak
 * turns the exit status, which qt_stop() does not accept.
 */
#include "common.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CYCLES 100
#define DEVICE_ARGS                                                                                \
    "-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on " \
    "-device virtio-blk-pci,drive=n,iothread=io0,addr=4.0,num-queues=2"

/* A read on each queue. */
static void use_device(QTest *t, VirtioVia via, bool finish)
{
    Vblk *b = vblk_new(t, &(VblkOpts){.via = via, .queues = 2, .msix = true});
    uint8_t buf[4096];

    for (unsigned int q = 0; q < 2; q++) {
        g_assert_cmpint(vblk_rw(b, q, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    }
    if (finish) {
        vblk_free(b);
    } else {
        vblk_add(b, 0, BLK_T_IN, 0, NULL, 4096, NULL);
        vblk_kick(b, 0);
        vblk_abandon(b);
    }
}

static void test_start_stop(gconstpointer data)
{
    bool with_io = data != NULL;

    for (int i = 0; i < CYCLES; i++) {
        QTest *t = qt_start(DEVICE_ARGS);

        if (with_io) {
            use_device(t, i % 2 ? VIRTIO_MODERN : VIRTIO_LEGACY, i % 4 < 2);
        }
        qt_stop(t);
    }
}

/* Every way to end is clean. */
static const int endings[] = {SIGTERM, SIGINT, SIGHUP, 0};

static void test_ending(gconstpointer data)
{
    int sig = *(const int *)data;

    for (int i = 0; i < 10; i++) {
        QTest *t = qt_start(DEVICE_ARGS);

        use_device(t, VIRTIO_MODERN, i % 2);
        if (sig) {
            kill(t->child->pid, sig);
        } else {
            qmp_send_raw(t->qmp, "{'execute': 'quit'}\n");
        }
        g_assert_cmpint(qt_wait_exit(t), ==, 0);
    }
}

/* Requests wait for a slow disk when the process is told to end. */
static void test_end_with_requests_in_flight(void)
{
    for (int i = 0; i < 5; i++) {
        QTest *t = qt_start("-nodefaults -object iothread,id=io0 "
                            "-blockdev null-aio,node-name=n,size=1048576,latency-ns=20000000 "
                            "-device virtio-blk-pci,drive=n,iothread=io0,addr=4.0");
        Vblk *b = vblk_new(t, &(VblkOpts){.via = VIRTIO_MODERN});

        for (int k = 0; k < 30; k++) {
            vblk_add(b, 0, BLK_T_IN, 0, NULL, 512, NULL);
        }
        vblk_kick(b, 0);
        vblk_abandon(b);
        qt_stop(t);
    }
}

typedef struct Resources {
    int fds, threads;
} Resources;

static Resources resources(QTest *t)
{
    return (Resources){process_fds(t->child->pid), process_threads(t->child->pid)};
}

/* Threads end a moment after the command that ended them was answered. */
static void expect_back(QTest *t, Resources before)
{
    Resources now = resources(t);

    for (int ms = 0; (now.fds > before.fds || now.threads > before.threads) && ms < qos_hang_ms(); ms += 10) {
        g_usleep(10000);
        now = resources(t);
    }
    g_assert_cmpint(now.fds, <=, before.fds);
    g_assert_cmpint(now.threads, <=, before.threads);
}

static void test_iothreads_come_and_go(void)
{
    QTest *t = start_none("-nodefaults");
    Resources before;

    for (int i = 0; i < CYCLES; i++) {
        json_decref(qmp_must(t->qmp, "object-add", "{s:s,s:s}", "qom-type", "iothread", "id", "i0"));
        json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "i0"));
        if (i == 4) {
            before = resources(t);
        }
    }
    expect_back(t, before);
    qt_stop(t);
}

static void test_refused_objects_leave_nothing(void)
{
    QTest *t = start_none("-nodefaults");
    Resources before = resources(t);

    for (int i = 0; i < CYCLES; i++) {
        g_free(qmp_must_fail(t->qmp, "object-add", "{s:s,s:s,s:i}", "qom-type", "iothread", "id", "i0", "poll-max-ns", -1));
        g_free(qmp_must_fail(t->qmp, "object-add", "{s:s,s:s,s:i,s:i}", "qom-type", "iothread", "id", "i0",
                             "thread-pool-min", 5, "thread-pool-max", 3));
    }
    expect_back(t, before);
    qt_stop(t);
}

static void test_nodes_come_and_go(void)
{
    g_autofree char *image = image_new(65536);
    QTest *t = start_none("-nodefaults");
    Resources before;

    for (int i = 0; i < CYCLES; i++) {
        json_decref(qmp_must(t->qmp, "blockdev-add", "{s:s,s:s,s:s}", "driver", "file", "node-name", "f", "filename",
                             image));
        g_free(qmp_must_fail(t->qmp, "blockdev-add", "{s:s,s:s,s:s}", "driver", "file", "node-name", "f", "filename",
                             image));
        json_decref(qmp_must(t->qmp, "blockdev-del", "{s:s}", "node-name", "f"));
        g_free(qmp_must_fail(t->qmp, "blockdev-add", "{s:s,s:s,s:s}", "driver", "file", "node-name", "f", "filename",
                             "/nonexistent"));
        if (i == 4) {
            before = resources(t);
        }
    }
    expect_back(t, before);
    qt_stop(t);
    unlink(image);
}

static void test_devices_come_and_go(void)
{
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on");
    Resources before;
    uint8_t buf[512];

    for (int i = 0; i < 30; i++) {
        Vblk *b;

        json_decref(qmp_must(t->qmp, "device_add", "{s:s,s:s,s:s,s:s,s:s}", "driver", "virtio-blk-pci", "id", "v1",
                             "drive", "n", "iothread", "io0", "addr", "6"));
        t->next_mem = 0xe0000000;
        b = vblk_new(t, &(VblkOpts){.devfn = PCI_DEVFN(6, 0), .via = VIRTIO_MODERN});
        g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
        vblk_free(b);
        json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v1"));
        qt_outl(t, 0xae08, 1 << 6);
        json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
        json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
        if (i == 4) {
            before = resources(t);
        }
    }
    expect_back(t, before);
    qt_stop(t);
}

/* A hundred resets of a running device under load. */
static void test_resets_leave_nothing(void)
{
    QTest *t = qt_start(DEVICE_ARGS);
    Resources before;

    for (int i = 0; i < CYCLES; i++) {
        Vblk *b = vblk_new(t, &(VblkOpts){.via = i % 2 ? VIRTIO_MODERN : VIRTIO_LEGACY, .queues = 2});

        for (unsigned int q = 0; q < 2; q++) {
            for (int k = 0; k < 8; k++) {
                vblk_add(b, q, BLK_T_IN, 0, NULL, 512, NULL);
            }
            vblk_kick(b, q);
        }
        vblk_free(b);
        t->next_io = 0xc000;
        t->next_mem = 0xe0000000;
        if (i == 4) {
            before = resources(t);
        }
    }
    expect_back(t, before);
    qt_stop(t);
}

/* Stopped, requests wait; continued, each ends once. */
static void test_stop_cont_under_io(gconstpointer data)
{
    const char *node = data;
    QTest *t;
    Vblk *b;

    if (!binary_has_qtest_accel()) {
        g_test_skip("cont would let the firmware run");
        return;
    }
    t = qt_start("-nodefaults -object iothread,id=io0 -blockdev %s,node-name=n,size=1048576 "
                 "-device virtio-blk-pci,drive=n,iothread=io0,addr=4.0", node);
    json_decref(qmp_must(t->qmp, "cont", NULL));
    b = vblk_new(t, &(VblkOpts){.via = VIRTIO_MODERN});
    for (int i = 0; i < 20; i++) {
        VblkReq *r[16];

        for (int k = 0; k < 16; k++) {
            r[k] = vblk_add(b, 0, k % 2 ? BLK_T_IN : BLK_T_OUT, (uint64_t)k, NULL, 512, NULL);
        }
        vblk_kick(b, 0);
        json_decref(qmp_must(t->qmp, "stop", NULL));
        json_decref(qmp_must(t->qmp, "cont", NULL));
        for (int k = 0; k < 16; k++) {
            g_assert_cmpint(vblk_finish(r[k], NULL), ==, BLK_S_OK);
        }
    }
    vblk_free(b);
    qt_stop(t);
}

/* Changes of properties and of size while requests are on their way. */
static void test_settings_change_under_io(void)
{
    static const char *const props[] = {"poll-max-ns", "aio-max-batch", "thread-pool-max", "poll-grow"};
    g_autofree char *image = image_new(1 << 20);
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev driver=file,node-name=f,filename=%s "
                        "-device virtio-blk-pci,drive=f,iothread=io0,addr=4.0", image);
    Vblk *b = vblk_new(t, &(VblkOpts){.via = VIRTIO_MODERN});

    for (int i = 0; i < 60; i++) {
        VblkReq *r[16];

        for (int k = 0; k < 16; k++) {
            r[k] = vblk_add(b, 0, BLK_T_IN, (uint64_t)k * 8, NULL, 4096, NULL);
        }
        vblk_kick(b, 0);
        if (i % 5 == 4) {
            json_decref(qmp_must(t->qmp, "block_resize", "{s:s,s:i}", "node-name", "f", "size", (1 << 20) + i * 512));
        } else {
            json_decref(qmp_must(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/io0", "property", props[i % 4],
                                 "value", i % 3 * 16 + 1));
        }
        for (int k = 0; k < 16; k++) {
            uint8_t buf[4096], expect[4096];

            fill_pattern(expect, (uint64_t)k * 4096, 4096);
            g_assert_cmpint(vblk_finish(r[k], buf), ==, BLK_S_OK);
            g_assert_true(!memcmp(buf, expect, 4096));
        }
    }
    vblk_free(b);
    qt_stop(t);
    unlink(image);
}

/* --- Started with nothing open --- */

static char *file_of(int pid, int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd/%d", pid, fd);

    return g_file_read_link(path, NULL);
}

static void test_closed_standard_files(void)
{
    g_autofree char *dir = g_dir_make_tmp("lifecycle-XXXXXX", NULL);
    g_autofree char *pidfile = g_build_filename(dir, "pid", NULL);
    g_autofree char *text = NULL;
    char *args[] = {"sh", "-c", "exec \"$0\" -machine none -pidfile \"$1\" <&- >&- 2>&-",
                    (char *)g_getenv("QTEST_QEMU_BINARY"), pidfile, NULL};
    GPid pid;

    g_assert(g_spawn_async(NULL, args, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, NULL));
    while (!g_file_get_contents(pidfile, &text, NULL, NULL) || !*text) {
        g_assert_cmpint(waitpid(pid, NULL, WNOHANG), ==, 0);
        g_clear_pointer(&text, g_free);
        g_usleep(1000);
    }
    for (int fd = 0; fd < 3; fd++) {
        g_autofree char *file = file_of(pid, fd);
        g_assert_cmpstr(file, ==, "/dev/null");
    }
    kill(pid, SIGTERM);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    rmdir(dir);
}

int main(int argc, char **argv)
{
    static const char *const ending_name[] = {"sigterm", "sigint", "sighup", "quit"};

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    add_case(test_start_stop, NULL, "/lifecycle/start-stop/100-times");
    add_case(test_start_stop, "io", "/lifecycle/start-stop/100-times-with-io");
    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        add_case(test_ending, &endings[i], "/lifecycle/end/%s", ending_name[i]);
    }
    g_test_add_func("/lifecycle/start/closed-standard-files-are-null", test_closed_standard_files);
    g_test_add_func("/lifecycle/end/with-requests-in-flight", test_end_with_requests_in_flight);
    g_test_add_func("/lifecycle/repeat/iothreads", test_iothreads_come_and_go);
    g_test_add_func("/lifecycle/repeat/refused-objects", test_refused_objects_leave_nothing);
    g_test_add_func("/lifecycle/repeat/nodes", test_nodes_come_and_go);
    g_test_add_func("/lifecycle/repeat/devices", test_devices_come_and_go);
    g_test_add_func("/lifecycle/repeat/device-resets", test_resets_leave_nothing);
    add_case(test_stop_cont_under_io, "null-co", "/lifecycle/stop-cont-under-io/null-co");
    add_case(test_stop_cont_under_io, "null-aio,latency-ns=500000", "/lifecycle/stop-cont-under-io/slow-disk");
    g_test_add_func("/lifecycle/settings-change-under-io", test_settings_change_under_io);
    return g_test_run();
}
