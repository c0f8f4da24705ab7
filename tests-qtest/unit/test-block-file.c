/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images in files: becoming writable, sizes, and O_NONBLOCK. */
#include "unit/block-env.h"
#include "driver/file-state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static void keep_report(void *opaque, const char *text)
{
    g_string_append(opaque, text);
}

/* A node that gets a descriptor of at least @floor, below which there is room for more. */
static BlockNode *open_above(int floor, const char *path)
{
    g_autoptr(GArray) fillers = g_array_new(FALSE, FALSE, sizeof(int));
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY);
        g_array_append_val(fillers, fd);
    } while (fd < floor);
    BlockNode *n = env_open("driver=file,auto-read-only=on,filename=%s", path);
    for (unsigned int i = 0; i < fillers->len; i++) {
        close(g_array_index(fillers, int, i));
    }
    return n;
}

/* Lowering the limit of descriptors takes none away, but dup3() refuses the numbers beyond it. */
static void test_auto_read_only_cannot_become_writable(void)
{
    enum { FLOOR = 100 };
    char *path = env_file(4096);
    g_autofree char *expected = g_strdup_printf("Could not make '%s' writable: Bad file descriptor", path);
    g_autoptr(GString) reports = g_string_new(NULL);
    BlockNode *n = open_above(FLOOR, path);
    BlockBackend *blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);
    struct rlimit limit, low;
    char buf[512] = { 1 };

    blk_insert_node(blk, n, &error_abort);
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    low = (struct rlimit){ FLOOR, limit.rlim_max };
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &low), ==, 0);
    error_set_sink(keep_report, reports);
    blk_set_perm(blk, BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort);
    error_set_sink(NULL, NULL);
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    g_assert_nonnull(strstr(reports->str, expected));
    g_assert_cmpint(blk_pwrite(blk, 0, 512, buf, 0), ==, -EBADF);
    /* The node knows that it is not writable, so the next one who asks makes it so. */
    blk_set_perm(blk, BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL, &error_abort);
    blk_set_perm(blk, BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort);
    g_assert_cmpint(blk_pwrite(blk, 0, 512, buf, 0), ==, 0);
    blk_unref(blk);
    block_node_unref(n);
    env_unlink(path);
}

/* --- Sizes --- */

static sem_t loop_ran;
static bool wait_for_loop, loop_stood;
static _Atomic bool in_ftruncate;

/* In front of the C library's: with wait_for_loop it takes until the main loop has run. */
int ftruncate(int fd, off_t length)
{
    if (wait_for_loop) {
        struct timespec limit;

        atomic_store(&in_ftruncate, true);
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += 10;
        loop_stood = TEMP_FAILURE_RETRY(sem_timedwait(&loop_ran, &limit)) < 0;
    }
    return (int)syscall(SYS_ftruncate, fd, length);
}

static void tell_that_loop_runs(void *opaque)
{
    if (atomic_load(&in_ftruncate)) {
        sem_post(&loop_ran);
    } else {
        aio_bh_schedule_oneshot(aio_context_main(), tell_that_loop_runs, NULL);
    }
}

static void test_resize_lets_loop_run(void)
{
    char *path = env_file(4096);
    BlockNode *n = env_open("driver=file,filename=%s", path);

    sem_init(&loop_ran, 0, 0);
    wait_for_loop = true;
    aio_bh_schedule_oneshot(aio_context_main(), tell_that_loop_runs, NULL);
    g_assert_cmpint(block_truncate(n, 8192, &error_abort), ==, 0);
    wait_for_loop = false;
    g_assert_false(loop_stood);
    g_assert_cmpuint(n->total_bytes, ==, 8192);
    block_node_unref(n);
    env_unlink(path);
    sem_destroy(&loop_ran);
}

static void test_resize(void)
{
    char *path = env_file(4096);
    BlockNode *n = env_open("driver=raw,offset=512,file.driver=file,file.filename=%s", path);
    g_autoptr(Error) err = NULL;
    struct stat st;

    g_assert_cmpint(block_truncate(n, 8192, &error_abort), ==, 0);
    g_assert_cmpuint(n->total_bytes, ==, 8192);
    g_assert_cmpuint(n->file->node->total_bytes, ==, 8704);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpint(st.st_size, ==, 8704);
    g_assert_cmpint(block_truncate(n, INT64_MAX, &err), ==, -EFBIG);
    g_assert_cmpstr(error_get_pretty(err), ==, "offset(9223372036854775807) exceeds maximum(9223372035781033984)");
    block_node_unref(n);
    env_unlink(path);
}

static void test_resize_refused(void)
{
    static const struct {
        const char *options, *text;
    } cases[] = {
        { "driver=raw,size=512,file.driver=null-aio", "Cannot resize fixed-size raw disks" },
        { "driver=raw,read-only=on,file.driver=null-aio", "Image is read-only" },
        { "driver=null-aio,size=512", "no more memory" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        BlockNode *n = env_open("%s", cases[i].options);
        uint64_t before = n->total_bytes;
        g_autoptr(Error) err = NULL;

        g_assert_cmpint(block_truncate(n, 1024, &err), <, 0);
        g_assert_cmpstr(error_get_pretty(err), ==, cases[i].text);
        g_assert_cmpuint(n->total_bytes, ==, before);
        block_node_unref(n);
    }
}

/* --- O_NONBLOCK --- */

/* A file in memory wherever temporary ones are; opening its name in /proc makes another description of it. */
static int memory_file(char **path)
{
    int fd = memfd_create("test", MFD_CLOEXEC);

    g_assert_cmpint(ftruncate(fd, 4096), ==, 0);
    *path = g_strdup_printf("/proc/self/fd/%d", fd);
    return fd;
}

static bool has_nonblock(const BlockNode *n)
{
    const FileState *s = n->state;
    bool set = fcntl(s->file.fd, F_GETFL) & O_NONBLOCK;

    g_assert_true(s->file.nonblock == set);
    return set;
}

static void test_nonblock(void)
{
    static const struct {
        const char *options;
        bool set;
    } cases[] = {
        { "aio=io_uring", true },
        { "aio=io_uring,x-nonblock=auto", true },
        { "aio=io_uring,x-nonblock=on", true },
        { "aio=io_uring,x-nonblock=off", false },
        { "aio=threads", false },
        { "aio=threads,x-nonblock=auto", false },
    };
    g_autofree char *path = NULL;
    int fd = memory_file(&path);

    for (size_t i = 0; i < G_N_ELEMENTS(cases) && (env_engine_usable("io_uring") || !cases[i].set); i++) {
        BlockNode *n = env_open("driver=file,filename=%s,%s", path, cases[i].options);

        g_assert_true(has_nonblock(n) == cases[i].set);
        block_node_unref(n);
    }
    g_assert_false(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
}

/* The program's own file need not be in memory. */
static void test_nonblock_elsewhere(void)
{
    const char *const own = "driver=file,read-only=on,filename=/proc/self/exe,aio=io_uring";
    struct statfs fs;
    BlockNode *n;

    if (!env_engine_usable("io_uring")) {
        return;
    }
    g_assert_cmpint(statfs("/proc/self/exe", &fs), ==, 0);
    if (fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC) {
        n = env_open("%s", own);
        g_assert_false(has_nonblock(n));
        block_node_unref(n);
    }
    n = env_open("%s,x-nonblock=on", own);
    g_assert_true(has_nonblock(n));
    block_node_unref(n);
}

static void test_nonblock_becomes_writable(void)
{
    g_autofree char *path = NULL;
    int fd = memory_file(&path);
    char buf[512] = { 1 };

    if (env_engine_usable("io_uring")) {
        BlockNode *n = env_open("driver=file,aio=io_uring,auto-read-only=on,filename=%s", path);
        BlockBackend *blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);

        blk_insert_node(blk, n, &error_abort);
        g_assert_true(has_nonblock(n));
        blk_set_perm(blk, BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort);
        g_assert_true(has_nonblock(n));
        g_assert_cmpint(blk_pwrite(blk, 0, 512, buf, 0), ==, 0);
        blk_unref(blk);
        block_node_unref(n);
    }
    close(fd);
}

static bool refuse_nonblock;

/* In front of the C library's. */
int fcntl(int fd, int cmd, ...)
{
    va_list ap;
    long arg;

    va_start(ap, cmd);
    arg = va_arg(ap, long);
    va_end(ap);
    if (refuse_nonblock && cmd == F_SETFL && (arg & O_NONBLOCK)) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

static int lowest_fd(void)
{
    int fd = open("/dev/null", O_RDONLY);

    close(fd);
    return fd;
}

static void test_nonblock_fails(void)
{
    g_autofree char *path = NULL, *want = NULL, *text = NULL;
    int fd = memory_file(&path), lowest = lowest_fd();

    if (env_engine_usable("io_uring")) {
        refuse_nonblock = true;
        text = env_open_error("driver=file,aio=io_uring,filename=%s", path);
        refuse_nonblock = false;
        want = g_strdup_printf("Could not set O_NONBLOCK on '%s': Operation not permitted", path);
        g_assert_cmpstr(text, ==, want);
        g_assert_cmpint(lowest_fd(), ==, lowest);
    }
    close(fd);
}

static void test_nonblock_refused(void)
{
    static const char *const cases[] = {
        "driver=file,filename=/dev/null,x-nonblock=on",
        "driver=host_device,filename=/dev/null,aio=io_uring,x-nonblock=on",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = env_open_error("%s", cases[i]);

        g_assert_cmpstr(text, ==, "x-nonblock=on requires aio=io_uring and a regular file");
    }
}

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/driver/auto-read-only-cannot-become-writable", test_auto_read_only_cannot_become_writable);
    g_test_add_func("/block/resize/reaches-file", test_resize);
    g_test_add_func("/block/resize/lets-the-loop-run", test_resize_lets_loop_run);
    g_test_add_func("/block/resize/refused-changes-nothing", test_resize_refused);
    g_test_add_func("/block/driver/nonblock/io_uring-in-memory", test_nonblock);
    g_test_add_func("/block/driver/nonblock/elsewhere-if-asked", test_nonblock_elsewhere);
    g_test_add_func("/block/driver/nonblock/becomes-writable", test_nonblock_becomes_writable);
    g_test_add_func("/block/driver/nonblock/fails", test_nonblock_fails);
    g_test_add_func("/block/driver/nonblock/refused", test_nonblock_refused);
    return env_run();
}
