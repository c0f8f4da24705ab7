/* SPDX-License-Identifier: GPL-2.0-or-later */
/* registered-files and registered-buffers of x-io-uring-flags: in force and counted, switched, refused, and let go. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define IMAGE_SIZE (1 << 20)
#define BOTH "registered-files:registered-buffers"
#define SLOT 5
#define EJECT_PORT 0xae08

typedef struct Counts {
    json_int_t requests, buffers, files;
} Counts;

static Counts counts(QTest *t)
{
    json_t *list = qmp_must(t->qmp, "x-query-iothread-stats", NULL), *e = json_array_get(list, 0);
    Counts c = {json_integer_value(json_object_get(e, "requests")),
                json_integer_value(json_object_get(e, "registered-buffer-requests")),
                json_integer_value(json_object_get(e, "registered-file-requests"))};

    json_decref(list);
    return c;
}

static char *flags_of(QTest *t)
{
    json_t *v = qmp_must(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/io0", "property", "x-io-uring-flags");
    char *text = g_strdup(json_string_value(v));

    json_decref(v);
    return text;
}

static bool has_flag(QTest *t, const char *flag)
{
    g_autofree char *text = flags_of(t);
    g_auto(GStrv) names = g_strsplit(text, ":", -1);

    return g_strv_contains((const char *const *)names, flag);
}

/* NULL, or why not. */
static char *set_flags(QTest *t, const char *flags)
{
    json_t *r = qmp_execute(t->qmp, "qom-set", "{s:s,s:s,s:s}", "path", "/objects/io0", "property", "x-io-uring-flags",
                            "value", flags);
    char *err = g_strdup(json_string_value(json_object_get(json_object_get(r, "error"), "desc")));

    json_decref(r);
    return err;
}

static void must_set(QTest *t, const char *flags)
{
    g_autofree char *err = set_flags(t, flags);

    g_assert_cmpstr(err, ==, NULL);
}

static QTest *start_iothread(const char *fault, const char *opts)
{
    g_autofree char *args = g_strdup_printf("-nodefaults -object iothread,id=io0%s", opts);

    return shim_start(fault, args, NULL);
}

static void add_node(QTest *t, const char *name, const char *image, bool auto_read_only)
{
    json_decref(qmp_must(t->qmp, "blockdev-add", "{s:s,s:s,s:s,s:s,s:b,s:{s:b}}", "driver", "file", "node-name", name,
                         "filename", image, "aio", "io_uring", "auto-read-only", auto_read_only, "cache", "direct",
                         true));
}

static Vblk *plug(QTest *t, const char *node)
{
    Vblk *b;

    json_decref(qmp_must(t->qmp, "device_add", "{s:s,s:s,s:s,s:s,s:s}", "driver", "virtio-blk-pci", "id", "v", "drive",
                         node, "iothread", "io0", "addr", G_STRINGIFY(SLOT)));
    t->next_mem = 0xe0000000;
    b = vblk_new(t, &(VblkOpts){.devfn = PCI_DEVFN(SLOT, 0), .via = VIRTIO_MODERN});
    b->page_aligned = true;
    return b;
}

static void unplug(QTest *t, Vblk *b)
{
    vblk_free(b);
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v"));
    qt_outl(t, EJECT_PORT, 1u << SLOT);
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
}

static void del_node(QTest *t, const char *name)
{
    json_decref(qmp_must(t->qmp, "blockdev-del", "{s:s}", "node-name", name));
}

/* Write and read pages all over the image, and look at the file from outside. Returns the number of requests. */
static int exercise(Vblk *b, const char *image, unsigned int seed)
{
    enum { PAGES = 16, LEN = 4096 };
    g_autofree uint8_t *buf = g_malloc(LEN), *want = g_malloc(LEN);

    for (unsigned int i = 0; i < PAGES; i++) {
        uint64_t off = (uint64_t)((i * 37 + seed) % (IMAGE_SIZE / LEN)) * LEN;

        memset(want, (int)(seed * 16 + i), LEN);
        memcpy(buf, want, LEN);
        g_assert_cmpint(vblk_rw(b, 0, BLK_T_OUT, off / 512, buf, LEN), ==, BLK_S_OK);
        image_read(image, off, buf, LEN);
        g_assert_true(!memcmp(buf, want, LEN));
        memset(buf, 0xaa, LEN);
        g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, off / 512, buf, LEN), ==, BLK_S_OK);
        g_assert_true(!memcmp(buf, want, LEN));
    }
    return 2 * PAGES;
}

/* exercise(), with what is registered used by all requests or by none. */
static void exercise_counted(QTest *t, Vblk *b, const char *image, unsigned int seed, bool buffers, bool files)
{
    Counts before = counts(t), after;
    int n = exercise(b, image, seed);

    after = counts(t);
    g_assert_cmpint(after.requests - before.requests, ==, n);
    g_assert_cmpint(after.buffers - before.buffers, ==, buffers ? n : 0);
    g_assert_cmpint(after.files - before.files, ==, files ? n : 0);
}

/* Whether anybody has the file open for writing: a write lease is for those who are alone. */
static bool open_elsewhere(const char *image)
{
    int fd = open(image, O_RDWR | O_CLOEXEC);
    bool alone;

    g_assert_cmpint(fd, >=, 0);
    alone = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
    g_assert_true(alone || errno == EAGAIN);
    close(fd);
    return !alone;
}

/* Whether anybody holds one of QEMU's locks. */
static bool locked(const char *image)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 100, .l_len = 200};
    int fd = open(image, O_RDWR | O_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(fcntl(fd, F_OFD_GETLK, &l), ==, 0);
    close(fd);
    return l.l_type != F_UNLCK;
}

/* An image that O_DIRECT can be used for; NULL: skipped. */
static char *usable_image(void)
{
    char *image;

    if (!shim_usable() || !engine_usable("io_uring", true)) {
        return NULL;
    }
    image = image_new_direct(IMAGE_SIZE);
    if (!image) {
        g_test_skip("no file system with O_DIRECT");
    }
    return image;
}

static void finish(QTest *t, char *image)
{
    qt_stop(t);
    unlink(image);
    g_free(image);
}

/* False: skipped, for an ordinary user may lock less than our RAM. */
static bool may_lock(QTest *t)
{
    if (!has_flag(t, "registered-buffers")) {
        g_test_skip("the kernel does not let us lock 32 MiB");
        return false;
    }
    return true;
}

/* --- In force, and counted --- */

static void test_counted(gconstpointer monitor)
{
    g_autofree char *opts = g_strdup_printf(",x-fdmon=%s,x-io-uring-flags=auto:" BOTH, (const char *)monitor);
    g_autofree char *before = NULL, *info = NULL;
    char *image = usable_image();
    QTest *t;

    if (!image) {
        return;
    }
    t = start_iothread(NULL, opts);
    before = flags_of(t);
    g_assert_null(strstr(before, "registered-buffers")); /* nobody uses the ring for a disk */
    add_node(t, "f", image, false);
    Vblk *b = plug(t, "f");
    if (may_lock(t)) {
        g_assert_true(has_flag(t, "registered-files"));
        exercise_counted(t, b, image, 1, true, true);
        info = qmp_hmp(t->qmp, "info iothread-stats");
        g_assert_nonnull(strstr(info, "  registered-buffer-requests=32\r\n  registered-file-requests=32\r\n"));
    }
    unplug(t, b);
    finish(t, image);
}

static void test_switched(void)
{
    static const struct {
        const char *flags;
        bool buffers, files;
    } steps[] = {{"auto:registered-buffers", true, false},
                 {"auto:registered-files", false, true},
                 {"auto", false, false},
                 {"auto:" BOTH, true, true},
                 {"auto", false, false}};
    char *image = usable_image();
    QTest *t;

    if (!image) {
        return;
    }
    t = start_iothread(NULL, ",x-io-uring-flags=auto:" BOTH);
    add_node(t, "f", image, false);
    Vblk *b = plug(t, "f");
    for (unsigned int i = 0; i < G_N_ELEMENTS(steps) && may_lock(t); i++) {
        must_set(t, steps[i].flags);
        g_assert_true(has_flag(t, "registered-buffers") == steps[i].buffers);
        g_assert_true(has_flag(t, "registered-files") == steps[i].files);
        exercise_counted(t, b, image, i, steps[i].buffers, steps[i].files);
        must_set(t, "auto:" BOTH);
    }
    unplug(t, b);
    finish(t, image);
}

/* What is read back can be set again, and then what was asked for; flags of the set-up cannot change. */
static void test_set_up_fixed(gconstpointer monitor)
{
    g_autofree char *opts = g_strdup_printf(",x-fdmon=%s", (const char *)monitor);
    g_autofree char *is = NULL, *again = NULL, *err = NULL;
    QTest *t;

    if (!shim_usable() || !engine_usable("io_uring", false)) {
        return;
    }
    t = start_iothread(NULL, opts);
    is = flags_of(t);
    must_set(t, is);
    must_set(t, "auto:registered-files");
    must_set(t, is);
    must_set(t, "auto");
    err = set_flags(t, "coop-taskrun");
    g_assert_cmpstr(
        err, ==, "x-io-uring-flags of a running event loop: only registered-files and registered-buffers can change");
    again = flags_of(t);
    g_assert_cmpstr(again, ==, is);
    qt_stop(t);
}

static void test_main_loop(void)
{
    g_autofree char *err = NULL, *flags = NULL;
    char *image = usable_image();
    QTest *t;
    json_t *v;

    if (!image) {
        return;
    }
    err = refusal("-object main-loop,id=m,x-io-uring-flags=none");
    g_assert_nonnull(strstr(err, "only registered-files and registered-buffers can change"));
    t = shim_start(NULL, "-nodefaults -object main-loop,id=m,x-io-uring-flags=auto:registered-files", NULL);
    add_node(t, "f", image, false);
    json_decref(qmp_must(t->qmp, "device_add", "{s:s,s:s,s:s}", "driver", "virtio-blk-pci", "drive", "f", "addr",
                         G_STRINGIFY(SLOT)));
    Vblk *b = vblk_new(t, &(VblkOpts){.devfn = PCI_DEVFN(SLOT, 0), .via = VIRTIO_MODERN});
    b->page_aligned = true;
    exercise(b, image, 1);
    v = qmp_must(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/m", "property", "x-io-uring-flags");
    g_assert_nonnull(strstr(json_string_value(v), "registered-files"));
    json_decref(v);
    vblk_free(b);
    finish(t, image);
}

/* --- Let go --- */

static void test_closed_file_is_free(void)
{
    char *image = usable_image();
    QTest *t;

    if (!image) {
        return;
    }
    t = start_iothread(NULL, ",x-io-uring-flags=auto:registered-files");
    for (unsigned int i = 0; i < 3; i++) {
        add_node(t, "f", image, false);
        Vblk *b = plug(t, "f");
        exercise_counted(t, b, image, i, false, true);
        g_assert_true(locked(image));
        unplug(t, b);
        g_assert_false(locked(image));
        g_assert_true(open_elsewhere(image));
        del_node(t, "f");
        g_assert_false(locked(image));
        g_assert_false(open_elsewhere(image));
    }
    finish(t, image);
}

/* The first writer makes the node open its file again, under the old number. */
static void test_reopened_for_writing(void)
{
    char *image = usable_image();
    uint8_t buf[4096];
    QTest *t;

    if (!image) {
        return;
    }
    t = start_iothread(NULL, ",x-io-uring-flags=auto:registered-files");
    add_node(t, "f", image, true);
    json_decref(qmp_must(t->qmp, "blockdev-add", "{s:s,s:s,s:s,s:b}", "driver", "raw", "node-name", "ro", "file", "f",
                         "read-only", true));
    Vblk *b = plug(t, "ro");
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmpint(counts(t).files, ==, 1);
    g_assert_true(locked(image));
    unplug(t, b);
    del_node(t, "ro");
    /* Without a request the ring has the old file still, but no lock goes with that. */
    b = plug(t, "f");
    g_assert_true(locked(image));
    unplug(t, b);
    g_assert_false(locked(image));
    b = plug(t, "f");
    exercise_counted(t, b, image, 1, false, true);
    unplug(t, b);
    del_node(t, "f");
    g_assert_false(open_elsewhere(image));
    finish(t, image);
}

/* --- Refused --- */

static void test_memory_limit(void)
{
    g_autofree char *err = NULL;
    char *image = usable_image();
    struct rlimit limit;
    QTest *t;

    if (!image) {
        return;
    }
    t = start_iothread("QOS_SHIM_MEMLOCK=1024", ",x-io-uring-flags=auto:" BOTH);
    add_node(t, "f", image, false);
    Vblk *b = plug(t, "f");
    qt_wait_stderr(t, "Cannot register 32768 KiB of memory with the io_uring of 'io0': Cannot allocate memory");
    qt_wait_stderr(t, "RLIMIT_MEMLOCK (ulimit -l) is 1024 KiB and may have to be raised.");
    g_assert_false(has_flag(t, "registered-buffers"));
    g_assert_true(has_flag(t, "registered-files"));
    exercise_counted(t, b, image, 1, false, true);
    err = set_flags(t, "auto:registered-buffers");
    g_assert_cmpstr(err, ==, "Cannot register 32768 KiB of memory with the io_uring of 'io0': Cannot allocate memory");
    g_assert_true(has_flag(t, "registered-files"));
    exercise_counted(t, b, image, 2, false, true);

    g_assert_cmpint(prlimit(t->child->pid, RLIMIT_MEMLOCK, NULL, &limit), ==, 0);
    limit.rlim_cur = MIN(limit.rlim_max, 64 << 20);
    if (limit.rlim_cur == 64 << 20) {
        g_assert_cmpint(prlimit(t->child->pid, RLIMIT_MEMLOCK, &limit, NULL), ==, 0);
        must_set(t, "auto:" BOTH);
        exercise_counted(t, b, image, 3, true, true);
    }
    unplug(t, b);
    finish(t, image);
}

int main(int argc, char **argv)
{
    static const char *const monitors[] = {"poll", "epoll", "io_uring", "linux-aio"};

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(monitors); i++) {
        add_case(test_counted, monitors[i], "/registered/%s/in-force-and-counted", monitors[i]);
    }
    g_test_add_func("/registered/switched-at-run-time", test_switched);
    /* With a ring, and without. */
    add_case(test_set_up_fixed, "io_uring", "/registered/set-up-flags-are-fixed");
    add_case(test_set_up_fixed, "epoll", "/registered/set-up-flags-are-fixed-before-there-is-a-ring");
    g_test_add_func("/registered/main-loop", test_main_loop);
    g_test_add_func("/registered/file/closed-is-free", test_closed_file_is_free);
    g_test_add_func("/registered/file/reopened-for-writing", test_reopened_for_writing);
    g_test_add_func("/registered/buffers/limit-is-told-and-can-be-raised", test_memory_limit);
    return g_test_run();
}
