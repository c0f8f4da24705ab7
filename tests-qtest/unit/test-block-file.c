/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Images in files: becoming writable, and sizes. */
#include "unit/block-env.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/driver/auto-read-only-cannot-become-writable", test_auto_read_only_cannot_become_writable);
    g_test_add_func("/block/resize/reaches-file", test_resize);
    g_test_add_func("/block/resize/lets-the-loop-run", test_resize_lets_loop_run);
    g_test_add_func("/block/resize/refused-changes-nothing", test_resize_refused);
    return env_run();
}
