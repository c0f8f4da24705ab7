/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening, names, permissions, locks against other processes, threads that use a node. */
#include "unit/block-env.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void assert_fails(const char *text, const char *options)
{
    g_autofree char *error = env_open_error("%s", options);

    g_assert_cmpstr(error, ==, text);
}

/* The bytes that a description other than those of this process's nodes sees locked, as "100 101 201". */
static char *locked_bytes(const char *path)
{
    GString *s = g_string_new(NULL);
    int fd = open(path, O_RDWR);

    for (int byte = 100; byte < 204; byte++) {
        struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

        g_assert_cmpint(fcntl(fd, F_OFD_GETLK, &fl), ==, 0);
        if (fl.l_type != F_UNLCK) {
            g_string_append_printf(s, "%s%d", s->len ? " " : "", byte);
        }
    }
    close(fd);
    return g_string_free(s, FALSE);
}

static void assert_locked(const char *path, const char *expected)
{
    g_autofree char *got = locked_bytes(path);

    g_assert_cmpstr(got, ==, expected);
}

/* --- Opening --- */

static void test_names(void)
{
    BlockNode *a = env_open("driver=null-aio,node-name=a"), *b = env_open("driver=null-aio"), *c = env_open("driver=null-aio");

    g_assert_true(block_node_find("a") == a);
    g_assert_null(block_node_find("b"));
    g_assert_true(g_regex_match_simple("^#block\\d{3,}$", b->name, 0, 0));
    g_assert_cmpstr(b->name, !=, c->name);
    g_assert_true(block_node_next(NULL) == c);
    assert_fails("Duplicate nodes with node-name='a'", "driver=null-aio,node-name=a");
    assert_fails("Invalid node-name: '1a'", "driver=null-aio,node-name=1a");
    assert_fails("Node name too long", "driver=null-aio,node-name=a2345678901234567890123456789012");
    assert_fails("Duplicate nodes with node-name='r'", "driver=raw,node-name=r,file.driver=null-aio,file.node-name=r");
    assert_fails("Cannot find device='zz' nor node-name='zz'", "driver=raw,file=zz");
    g_assert_null(block_node_find("r"));
    block_node_unref(a);
    block_node_unref(b);
    block_node_unref(c);
}

static void test_thirty_one_letters(void)
{
    BlockNode *n = env_open("driver=null-aio,node-name=a234567890123456789012345678901");

    g_assert_cmpuint(strlen(n->name), ==, 31);
    block_node_unref(n);
}

static void test_common_options(void)
{
    BlockNode *n = env_open("driver=raw,read-only=on,cache.direct=on,file.driver=null-aio");

    g_assert_true(n->file->node->read_only);
    g_assert_true(n->file->node->direct);
    g_assert_false(n->discard_unmap);
    g_assert_true(n->file->node->discard_unmap);
    block_node_unref(n);
    assert_fails("force-share=on can only be used with read-only images", "driver=null-aio,force-share=on");
    assert_fails("setting detect-zeroes to unmap is not allowed without setting discard operation to unmap",
                 "driver=null-aio,detect-zeroes=unmap");
}

static void test_file_errors(void)
{
    char *path = env_file(4096);
    g_autofree char *device = g_strdup_printf("driver=host_device,filename=%s", path);
    g_autofree char *not_device =
        g_strdup_printf("'host_device' driver requires '%s' to be either a character or block device", path);

    assert_fails("Could not open '/nowhere/x': No such file or directory", "driver=file,filename=/nowhere/x");
    assert_fails("Could not open '/tmp': Is a directory", "driver=file,filename=/tmp");
    assert_fails("'file' driver requires '/dev/null' to be a regular file", "driver=file,filename=/dev/null");
    assert_fails(not_device, device);
    env_unlink(path);
}

static void test_native_needs_direct(void)
{
    if (!env_engine_usable("native")) {
        return;
    }
    char *path = env_file(4096);
    g_autofree char *native = g_strdup_printf("driver=file,aio=native,filename=%s", path);

    assert_fails("aio=native was specified, but it requires cache.direct=on, which was not specified.", native);
    env_unlink(path);
}

static void test_filenames(void)
{
    char *path = env_file(8192);
    g_autofree char *json = g_strdup_printf(
        "json:{\"offset\": 512, \"driver\": \"raw\", \"file\": {\"driver\": \"file\", \"filename\": \"%s\"}}", path);
    BlockNode *plain = env_open("driver=raw,file.driver=file,file.filename=%s", path);
    BlockNode *part = env_open("driver=raw,offset=512,file.driver=file,file.filename=%s,file.locking=off", path);

    g_assert_cmpstr(plain->filename, ==, path);
    g_assert_cmpstr(part->filename, ==, json);
    block_node_unref(plain);
    block_node_unref(part);
    env_unlink(path);
}

static void test_raw_range(void)
{
    BlockNode *n = env_open("driver=raw,offset=512,size=1024,file.driver=null-aio,file.size=4096");

    g_assert_cmpuint(n->total_bytes, ==, 1024);
    block_node_unref(n);
    n = env_open("driver=raw,offset=1000,file.driver=null-aio,file.size=4096");
    g_assert_cmpuint(n->total_bytes, ==, 3584);
    block_node_unref(n);
    assert_fails("Specified size is not multiple of 512", "driver=raw,size=513,file.driver=null-aio,file.size=4096");
    assert_fails("Offset (5000) cannot be greater than size of the containing file (4096)",
                 "driver=raw,offset=5000,file.driver=null-aio,file.size=4096");
    assert_fails("The sum of offset (512) and size (4096) has to be smaller or equal to the  actual size of the containing "
                 "file (4096)",
                 "driver=raw,offset=512,size=4096,file.driver=null-aio,file.size=4096");
    assert_fails("Value '-1' is out of range for parameter 'offset'", "driver=raw,offset=-1,file.driver=null-aio");
}

static void test_odd_size_is_rounded(void)
{
    char *path = env_file(1025);
    BlockNode *n = env_open("driver=file,filename=%s", path);

    g_assert_cmpuint(n->total_bytes, ==, 1536);
    block_node_unref(n);
    env_unlink(path);
}

/* As somebody who may not write @path: 0 if auto-read-only opens it for readers, and for nobody else. */
static int open_as_nobody(const char *path)
{
    g_autofree char *expected = g_strdup_printf("Could not open '%s': Permission denied", path), *error = NULL;
    BlockBackend *blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);
    g_autoptr(Error) err = NULL;
    char buf[512];

    /* Another user may not look at our descriptors in /proc until we allow it again. */
    if (geteuid() == 0 && (setuid(65534) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0)) {
        return 1;
    }
    error = env_open_error("driver=file,filename=%s", path);
    if (strcmp(error, expected)) {
        return 2;
    }
    blk_insert_node(blk, env_open("driver=raw,auto-read-only=on,file.driver=file,file.filename=%s", path), &error_abort);
    if (!blk_writable(blk) || blk_pread(blk, 0, 512, buf) < 0) {
        return 3;
    }
    if (blk_set_perm(blk, BLK_PERM_WRITE, BLK_PERM_ALL, &err) || strcmp(error_get_pretty(err), expected)) {
        return 4;
    }
    return blk_pread(blk, 0, 512, buf) < 0 ? 5 : 0;
}

static void test_auto_read_only(void)
{
    char *path = env_file(4096);
    int status;
    pid_t pid;

    chmod(path, 0444);
    pid = fork();
    if (pid == 0) {
        _exit(open_as_nobody(path));
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_cmpint(status, ==, 0);
    env_unlink(path);
}

static void test_auto_read_only_becomes_writable(void)
{
    char *path = env_file(4096);
    BlockNode *n = env_open("driver=raw,auto-read-only=on,file.driver=file,file.filename=%s", path);
    BlockBackend *blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);
    char buf[512] = { 1 }, back[512];

    blk_insert_node(blk, n, &error_abort);
    assert_locked(path, "100");
    blk_set_perm(blk, BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, BLK_PERM_ALL & ~BLK_PERM_WRITE, &error_abort);
    assert_locked(path, "100 101 201");
    g_assert_cmpint(blk_pwrite(blk, 512, 512, buf, 0), ==, 0);
    g_assert_cmpint(blk_pread(blk, 512, 512, back), ==, 0);
    g_assert_cmpmem(buf, 512, back, 512);
    blk_set_perm(blk, BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL, &error_abort);
    assert_locked(path, "100");
    blk_unref(blk);
    block_node_unref(n);
    env_unlink(path);
}

/* --- Permissions --- */

static void test_conflict(void)
{
    BlockNode *n = env_open("driver=null-aio,node-name=n");
    BlockBackend *a = blk_new(BLK_PERM_WRITE, BLK_PERM_ALL & ~BLK_PERM_WRITE);
    BlockBackend *b = blk_new(BLK_PERM_WRITE, BLK_PERM_ALL & ~BLK_PERM_WRITE);
    g_autoptr(Error) err = NULL;

    g_assert_true(blk_set_name(a, "a", &error_abort));
    blk_insert_node(a, n, &error_abort);
    g_assert_cmpint(blk_insert_node(b, n, &err), ==, -EPERM);
    g_assert_cmpstr(error_get_pretty(err), ==,
                    "Permission conflict on node 'n': permissions 'write' are both required by block device 'a' (uses node "
                    "'n' as 'root' child) and unshared by an unnamed block device (uses node 'n' as 'root' child).");
    g_assert_null(blk_node(b));
    /* Nothing of the attempt is left. */
    g_assert_true(blk_set_perm(a, BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort));
    g_assert_true(blk_set_perm(b, BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort));
    blk_insert_node(b, n, &error_abort);
    blk_unref(a);
    blk_unref(b);
    block_node_unref(n);
}

static void test_conflict_below(void)
{
    BlockNode *low = env_open("driver=null-aio,node-name=low");
    BlockNode *r1 = env_open("driver=raw,node-name=r1,file=low"), *r2 = env_open("driver=raw,node-name=r2,file=low");
    BlockBackend *a = blk_new(BLK_PERM_WRITE | BLK_PERM_RESIZE, BLK_PERM_CONSISTENT_READ);
    BlockBackend *b = blk_new(BLK_PERM_WRITE | BLK_PERM_RESIZE, BLK_PERM_ALL);
    g_autoptr(Error) err = NULL;

    blk_insert_node(a, r1, &error_abort);
    g_assert_cmpint(blk_insert_node(b, r2, &err), ==, -EPERM);
    g_assert_cmpstr(error_get_pretty(err), ==,
                    "Permission conflict on node 'low': permissions 'write, resize' are both required by node 'r2' (uses "
                    "node 'low' as 'file' child) and unshared by node 'r1' (uses node 'low' as 'file' child).");
    blk_remove_node(a);
    blk_insert_node(b, r2, &error_abort);
    blk_unref(a);
    blk_unref(b);
    block_node_unref(r1);
    block_node_unref(r2);
    block_node_unref(low);
}

static void test_write_to_read_only(void)
{
    BlockNode *low = env_open("driver=null-aio,node-name=low,read-only=on"), *r = env_open("driver=raw,file=low");
    BlockBackend *blk = blk_new(BLK_PERM_WRITE, BLK_PERM_ALL);
    g_autoptr(Error) err = NULL;

    g_assert_cmpint(blk_insert_node(blk, r, &err), <, 0);
    g_assert_cmpstr(error_get_pretty(err), ==, "Block node is read-only");
    blk_unref(blk);
    block_node_unref(r);
    block_node_unref(low);
}

static void test_write_to_ragged_end(void)
{
    BlockBackend *blk = blk_new(BLK_PERM_WRITE, BLK_PERM_ALL);
    g_autoptr(Error) err = NULL;
    BlockNode *n;

    mem_next.limits.request_alignment = 4096;
    n = env_open("driver=raw,file.driver=null-aio,file.size=1536");
    g_assert_cmpint(blk_insert_node(blk, n, &err), <, 0);
    g_assert_cmpstr(error_get_pretty(err), ==,
                    "Cannot get 'write' permission without 'resize': Image size is not a multiple of request alignment");
    blk_set_perm(blk, BLK_PERM_WRITE | BLK_PERM_RESIZE, BLK_PERM_ALL, &error_abort);
    blk_insert_node(blk, n, &error_abort);
    blk_unref(blk);
    block_node_unref(n);
}

/* --- Locks --- */

static void test_lock_bytes(void)
{
    char *path = env_file(4096);
    BlockNode *n = env_open("driver=raw,file.driver=file,file.filename=%s", path);
    BlockBackend *blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);

    assert_locked(path, "");
    blk_insert_node(blk, n, &error_abort);
    assert_locked(path, "100");
    blk_set_perm(blk, BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, BLK_PERM_ALL & ~BLK_PERM_WRITE, &error_abort);
    assert_locked(path, "100 101 201");
    blk_set_perm(blk, BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort);
    assert_locked(path, "100 101");
    blk_remove_node(blk);
    assert_locked(path, "");
    blk_unref(blk);
    block_node_unref(n);
    env_unlink(path);
}

static void test_locking_off(void)
{
    char *path = env_file(4096);
    BlockBackend *blk = env_backend(env_open("driver=file,locking=off,filename=%s", path));

    assert_locked(path, "");
    blk_unref(blk);
    env_unlink(path);
}

/* In a child process: open @path with @perm and @shared; 0 if that works, 1 if @text is the error, else 2. */
static int other_process(const char *path, const char *extra, uint32_t perm, uint32_t shared, const char *text)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        BlockNode *n = env_open("driver=file,filename=%s%s", path, extra);
        BlockBackend *blk = blk_new(perm, shared);
        g_autoptr(Error) err = NULL;

        if (blk_insert_node(blk, n, &err) == 0) {
            _exit(0);
        }
        _exit(text && !strcmp(error_get_pretty(err), text) && strstr(error_get_hint(err), path) ? 1 : 2);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_locks_between_processes(void)
{
    const uint32_t writer = BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, alone = BLK_PERM_ALL & ~BLK_PERM_WRITE;
    char *path = env_file(4096);
    BlockNode *n = env_open("driver=file,filename=%s", path);
    BlockBackend *blk = blk_new(writer, alone);

    blk_insert_node(blk, n, &error_abort);
    g_assert_cmpint(other_process(path, "", writer, BLK_PERM_ALL, "Failed to get \"write\" lock"), ==, 1);
    g_assert_cmpint(other_process(path, "", BLK_PERM_CONSISTENT_READ, alone, "Failed to get shared \"write\" lock"), ==, 1);
    g_assert_cmpint(other_process(path, "", BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL, NULL), ==, 0);
    g_assert_cmpint(other_process(path, ",read-only=on,force-share=on", BLK_PERM_CONSISTENT_READ, alone, NULL), ==, 0);
    g_assert_cmpint(other_process(path, ",locking=off", writer, alone, NULL), ==, 0);
    blk_set_perm(blk, writer, BLK_PERM_ALL, &error_abort);
    g_assert_cmpint(other_process(path, "", writer, BLK_PERM_ALL, NULL), ==, 0);
    blk_remove_node(blk);
    g_assert_cmpint(other_process(path, "", writer, alone, NULL), ==, 0);
    blk_unref(blk);
    block_node_unref(n);
    env_unlink(path);
}

/* A permission that another process refuses leaves the locks as they were. */
static void test_failed_change_keeps_locks(void)
{
    char *path = env_file(4096);
    BlockNode *n1 = env_open("driver=file,filename=%s", path), *n2 = env_open("driver=file,filename=%s", path);
    BlockBackend *a = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL & ~BLK_PERM_WRITE);
    BlockBackend *b = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);
    g_autoptr(Error) err = NULL;

    /* Two descriptions of one process are strangers to each other, as two processes are. */
    blk_insert_node(a, n1, &error_abort);
    blk_insert_node(b, n2, &error_abort);
    assert_locked(path, "100 201");
    g_assert_false(blk_set_perm(b, BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE | BLK_PERM_RESIZE, BLK_PERM_ALL, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Failed to get \"write\" lock");
    assert_locked(path, "100 201");
    blk_unref(a);
    assert_locked(path, "100");
    blk_unref(b);
    assert_locked(path, "");
    block_node_unref(n1);
    block_node_unref(n2);
    env_unlink(path);
}

/* --- Threads --- */

static void test_iothread_conflict(void)
{
    static const BlockDeviceOps ops = { 0 };
    EnvThread *t1 = env_thread_start(), *t2 = env_thread_start();
    BlockNode *n = env_open("driver=null-aio,node-name=n"), *r = env_open("driver=raw,file=n");
    BlockBackend *a = env_backend(block_node_ref(n)), *b = env_backend(r);
    BlockChannel *c1, *c2, *c3;
    g_autoptr(Error) err = NULL;

    blk_attach_dev(a, &ops, &a);
    blk_attach_dev(b, &ops, &b);
    g_assert_null(blk_channel_get(b, env_thread_context(t2), &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Cannot change iothread of active block backend");
    blk_detach_dev(b, &b);
    c1 = blk_channel_get(a, env_thread_context(t1), &error_abort);
    c2 = blk_channel_get(a, env_thread_context(t2), &error_abort);
    blk_attach_dev(b, &ops, &b);
    /* Without a wish for a thread of its own, and with the same one, the second device may come. */
    c3 = blk_channel_get(b, aio_context_main(), &error_abort);
    blk_channel_put(c3);
    c3 = blk_channel_get(b, env_thread_context(t1), &error_abort);
    blk_channel_put(c3);
    g_assert_null(blk_channel_get(b, env_thread_context(t2), NULL));
    blk_channel_put(c1);
    blk_channel_put(c2);
    blk_detach_dev(a, &a);
    blk_detach_dev(b, &b);
    blk_unref(a);
    blk_unref(b);
    block_node_unref(n);
    env_thread_stop(t1);
    env_thread_stop(t2);
}

static void test_channels_are_shared(void)
{
    BlockBackend *blk = env_backend(env_open("driver=null-aio"));
    BlockChannel *a = blk_channel_get(blk, aio_context_main(), &error_abort);

    g_assert_true(blk_channel_get(blk, aio_context_main(), &error_abort) == a);
    blk_channel_put(a);
    g_assert_true(blk_channel_context(a) == aio_context_main());
    blk_channel_put(a);
    blk_unref(blk);
}

static void test_one_device(void)
{
    static const BlockDeviceOps ops = { 0 };
    BlockBackend *blk = blk_new(0, BLK_PERM_ALL);
    int x, y;

    g_assert_cmpint(blk_attach_dev(blk, &ops, &x), ==, 0);
    g_assert_cmpint(blk_attach_dev(blk, &ops, &y), ==, -EBUSY);
    blk_detach_dev(blk, &x);
    blk_unref(blk);
}

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/node/names", test_names);
    g_test_add_func("/block/node/name-of-31-letters", test_thirty_one_letters);
    g_test_add_func("/block/node/common-options", test_common_options);
    g_test_add_func("/block/node/filenames", test_filenames);
    g_test_add_func("/block/node/odd-size-is-rounded-up", test_odd_size_is_rounded);
    g_test_add_func("/block/driver/file-errors", test_file_errors);
    g_test_add_func("/block/driver/native-needs-direct", test_native_needs_direct);
    g_test_add_func("/block/driver/raw-range", test_raw_range);
    g_test_add_func("/block/driver/auto-read-only", test_auto_read_only);
    g_test_add_func("/block/driver/auto-read-only-becomes-writable", test_auto_read_only_becomes_writable);
    g_test_add_func("/block/perm/two-writers", test_conflict);
    g_test_add_func("/block/perm/conflict-below", test_conflict_below);
    g_test_add_func("/block/perm/write-to-read-only", test_write_to_read_only);
    g_test_add_func("/block/perm/write-to-ragged-end", test_write_to_ragged_end);
    g_test_add_func("/block/lock/bytes-follow-permissions", test_lock_bytes);
    g_test_add_func("/block/lock/off", test_locking_off);
    g_test_add_func("/block/lock/between-processes", test_locks_between_processes);
    g_test_add_func("/block/lock/failed-change-keeps-them", test_failed_change_keeps_locks);
    g_test_add_func("/block/channel/iothread-conflict", test_iothread_conflict);
    g_test_add_func("/block/channel/shared-per-thread", test_channels_are_shared);
    g_test_add_func("/block/backend/one-device", test_one_device);
    return env_run();
}
