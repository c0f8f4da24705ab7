/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients type and read: queries, blockdev-add and -del, HMP, -drive, error policy. */
#include "unit/block-env.h"

#include "block/commands.h"
#include "qapi/dispatch.h"
#include "qapi/qapi-commands-block.h"
#include "qapi/qapi-visit-block.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --- Helpers --- */

#define DEFINE_TO_JSON(type, name)                                                                                    \
    static json_t *name(type *value)                                                                                  \
    {                                                                                                                 \
        g_autoptr(Visitor) v = visitor_json_output_new();                                                             \
                                                                                                                      \
        visit_type_##type(v, NULL, &value, &error_abort);                                                             \
        qapi_free_##type(value);                                                                                      \
        return visitor_json_output_take(v);                                                                           \
    }
DEFINE_TO_JSON(BlockInfoList, drives_json)
DEFINE_TO_JSON(BlockDeviceInfoList, nodes_json)
DEFINE_TO_JSON(BlockStatsList, stats_json)

static void assert_json(json_t *value, const char *expected)
{
    GString *text = qjson_to_string(value, false);

    g_assert_cmpstr(text->str, ==, expected);
    g_string_free(text, TRUE);
    json_decref(value);
}

/* Take the text of @err. */
static char *message(Error *err)
{
    char *text = g_strdup(err ? error_get_pretty(err) : "");

    error_free(err);
    return text;
}

static void assert_del(const char *name, const char *expected)
{
    Error *err = NULL;
    g_autofree char *text = NULL;

    qmp_blockdev_del(name, &err);
    text = message(err);
    g_assert_cmpstr(text, ==, expected);
}

static void assert_add(const char *options, const char *expected)
{
    Error *err = NULL;
    bool ok = blockdev_add_option(options, &err);
    g_autofree char *text = message(err);

    g_assert_cmpstr(text, ==, expected);
    g_assert_cmpint(ok, ==, !*expected);
}

static char *hmp(const char *name, json_t *args)
{
    GString *out = g_string_new(NULL);
    const HmpCommand *cmd = block_hmp_commands;

    while (strcmp(cmd->name, name)) {
        cmd++;
    }
    cmd->fn(args, out);
    json_decref(args);
    return g_string_free(out, FALSE);
}

static void assert_hmp(const char *expected, const char *name, json_t *args)
{
    g_autofree char *out = hmp(name, args);

    g_assert_cmpstr(out, ==, expected);
}

static void assert_drive_error(const char *params, const char *expected)
{
    Error *err = NULL;
    bool help = false;
    g_autofree char *text = NULL;

    g_assert_null(drive_new(params, DRIVE_IDE, &help, &err));
    text = message(err);
    g_assert_cmpstr(text, ==, expected);
}

static Drive *drive(const char *params)
{
    bool help = false;
    Drive *d = drive_new(params, DRIVE_IDE, &help, &error_abort);

    g_assert_nonnull(d);
    return d;
}

static char *device_path(void *dev)
{
    return g_strdup("/machine/peripheral/v0/virtio-backend");
}

static const BlockDeviceOps device_ops = { .get_path = device_path };

/* --- Queries --- */

static void test_query_block(void)
{
    Drive *d = drive("if=none,id=d0,node-name=n0,format=raw,file.driver=null-aio,file.node-name=n1,file.size=4096");
    Drive *e = drive("if=none,id=e0");

    blk_attach_dev(d->blk, &device_ops, d);
    assert_json(drives_json(qmp_query_block(&error_abort)),
                "[{\"io-status\": \"ok\", \"device\": \"d0\", \"locked\": false, \"removable\": false, \"inserted\": "
                "{\"iops_rd\": 0, \"detect_zeroes\": \"off\", \"active\": true, \"image\": {\"limits\": {\"request-alignment\": "
                "1, \"min-mem-alignment\": 1, \"opt-mem-alignment\": 1, \"max-iov\": 1024}, \"virtual-size\": 4096, "
                "\"filename\": \"json:{\\\"driver\\\": \\\"raw\\\", \\\"file\\\": {\\\"driver\\\": \\\"null-aio\\\"}}\", "
                "\"format\": \"raw\"}, \"iops_wr\": 0, \"ro\": false, \"children\": [{\"node-name\": \"n1\", \"child\": "
                "\"file\"}], \"node-name\": \"n0\", \"backing_file_depth\": 0, \"drv\": \"raw\", \"iops\": 0, \"bps_wr\": 0, "
                "\"write_threshold\": 0, \"encrypted\": false, \"bps\": 0, \"bps_rd\": 0, \"cache\": {\"no-flush\": false, "
                "\"direct\": false, \"writeback\": true}, \"file\": \"json:{\\\"driver\\\": \\\"raw\\\", \\\"file\\\": "
                "{\\\"driver\\\": \\\"null-aio\\\"}}\"}, \"qdev\": \"/machine/peripheral/v0/virtio-backend\", \"type\": "
                "\"unknown\"}, {\"device\": \"e0\", \"locked\": false, \"removable\": true, \"type\": \"unknown\"}]");
    blk_detach_dev(d->blk, d);
    drive_free(d);
    drive_free(e);
}

static void test_query_nodes(void)
{
    g_autoptr(json_t) list = NULL;
    BlockNode *a = env_open("driver=null-aio,node-name=a"), *b = env_open("driver=raw,node-name=b,file=a");

    list = nodes_json(qmp_query_named_block_nodes(false, false, &error_abort));
    g_assert_cmpuint(json_array_size(list), ==, 2);
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(list, 0), "node-name")), ==, "b");
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(list, 1), "node-name")), ==, "a");
    block_node_unref(b);
    block_node_unref(a);
}

static void test_query_stats(void)
{
    Drive *d = drive("if=none,id=d0,format=raw,offset=512,file.driver=null-aio");
    g_autoptr(json_t) before = NULL, after = NULL, nodes = NULL;
    uint8_t buf[1024] = { 1 };
    json_t *stats;

    before = stats_json(qmp_query_blockstats(false, false, &error_abort));
    g_assert_null(json_object_get(json_object_get(json_array_get(before, 0), "stats"), "idle_time_ns"));
    blk_set_perm(d->blk, BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort);
    blk_pwrite(d->blk, 2048, 1024, buf, 0);
    blk_pread(d->blk, 0, 512, buf);
    blk_flush(d->blk);
    mem_disk(blk_node(d->blk))->fail_op = BLOCK_READ;
    blk_pread(d->blk, 0, 512, buf);
    after = stats_json(qmp_query_blockstats(false, false, &error_abort));
    stats = json_object_get(json_array_get(after, 0), "stats");
    g_assert_cmpint(json_integer_value(json_object_get(stats, "wr_bytes")), ==, 1024);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "wr_operations")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "rd_operations")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "flush_operations")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "failed_rd_operations")), ==, 1);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "wr_highest_offset")), ==, 3072);
    g_assert_true(json_is_true(json_object_get(stats, "account_failed")));
    g_assert_nonnull(json_object_get(stats, "idle_time_ns"));
    stats = json_object_get(json_object_get(json_array_get(after, 0), "parent"), "stats");
    g_assert_cmpint(json_integer_value(json_object_get(stats, "wr_highest_offset")), ==, 3584);
    g_assert_cmpint(json_integer_value(json_object_get(stats, "wr_bytes")), ==, 0);
    nodes = stats_json(qmp_query_blockstats(true, true, &error_abort));
    g_assert_cmpuint(json_array_size(nodes), ==, 2);
    g_assert_null(json_object_get(json_array_get(nodes, 0), "device"));
    drive_free(d);
}

/* --- Changing the graph --- */

static void test_add_and_del(void)
{
    assert_add("null-aio", "'node-name' must be specified for the root node");
    assert_add("null-aio,node-name=a", "");
    assert_add("null-aio,node-name=a", "Duplicate nodes with node-name='a'");
    assert_add("{'driver':'raw','node-name':'b','file':'a'}", "");
    assert_add("foo,node-name=c", "Parameter 'driver' does not accept value 'foo'");
    assert_add("null-aio,node-name=c,foo=1", "Parameter 'foo' is unexpected");
    assert_add("null-aio,help", "Help is not available for this option");
    assert_add("raw,node-name=c,file.driver=null-aio,file.node-name=d", "");
    assert_del("nope", "Failed to find node with node-name='nope'");
    assert_del("a", "Block device a is in use");
    assert_del("d", "Node d is not owned by the monitor");
    assert_del("c", "");
    assert_del("b", "");
    assert_del("a", "");
    g_assert_null(block_node_next(NULL));
}

static void test_del_in_use(void)
{
    Drive *d = drive("if=none,id=d0,node-name=n0,driver=null-aio");

    assert_del("n0", "Node n0 is in use");
    assert_add("null-aio,node-name=d0", "node-name=d0 is conflicting with a device id");
    drive_free(d);
}

static void test_resize(void)
{
    static const struct {
        const char *device, *node;
        int64_t size;
        const char *text;
    } cases[] = {
        { NULL, "zz", 512, "Cannot find device='' nor node-name='zz'" },
        { "zz", NULL, 512, "Cannot find device='zz' nor node-name=''" },
        { "e0", NULL, 512, "Device 'e0' has no medium" },
        { NULL, "n0", -1, "Parameter 'size' expects a >0 size" },
        { NULL, "n1", 512, "Cannot resize fixed-size raw disks" },
        { NULL, "n0", 8192, "" },
        { "d0", NULL, 512, "" },
    };
    Drive *d = drive("if=none,id=d0,node-name=n0,format=raw,file.driver=null-aio"), *e = drive("if=none,id=e0");
    BlockNode *n1 = env_open("driver=raw,node-name=n1,size=512,file.driver=null-aio");

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Error *err = NULL;
        g_autofree char *text = NULL;

        qmp_block_resize(cases[i].device, cases[i].node, cases[i].size, &err);
        text = message(err);
        g_assert_cmpstr(text, ==, cases[i].text);
    }
    g_assert_cmpuint(blk_length(d->blk), ==, 512);
    block_node_unref(n1);
    drive_free(d);
    drive_free(e);
}

static void test_resize_needs_permission(void)
{
    BlockBackend *blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL & ~BLK_PERM_RESIZE);
    BlockNode *n = env_open("driver=null-aio,node-name=n0");
    Error *err = NULL;
    g_autofree char *text = NULL;

    blk_insert_node(blk, n, &error_abort);
    qmp_block_resize(NULL, "n0", 512, &err);
    text = message(err);
    g_assert_true(g_str_has_prefix(text, "Permission conflict on node 'n0': permissions 'resize' are both required by"));
    blk_unref(blk);
    block_node_unref(n);
}

/* --- HMP --- */

static void test_info_block(void)
{
    Drive *d = drive("if=none,id=d0,node-name=n0,format=raw,cache=unsafe,detect-zeroes=on,file.driver=null-aio,file.size=1048576");
    Drive *e = drive("if=none,id=e0");
    static const char d0[] = "d0 (n0): json:{\"driver\": \"raw\", \"file\": {\"driver\": \"null-aio\"}} (raw)\n"
                             "    Attached to:      /machine/peripheral/v0/virtio-backend\n"
                             "    Cache mode:       writeback, ignore flushes\n"
                             "    Detect zeroes:    on\n";
    static const char e0[] = "\ne0: [not inserted]\n"
                             "    Removable device: not locked, tray closed\n";
    g_autofree char *both = g_strconcat(d0, e0, NULL);
    g_autofree char *verbose = g_strconcat(d0,
                                           "\nImages:\nimage: json:{\"driver\": \"raw\", \"file\": {\"driver\": "
                                           "\"null-aio\"}}\nfile format: raw\nvirtual size: 1 MiB (1048576 bytes)\ndisk size: "
                                           "unavailable\nBlock limits:\n    request alignment: 1\n    min mem alignment: 1\n    "
                                           "opt mem alignment: 1\n    max iov: 1024\n",
                                           NULL);

    blk_attach_dev(d->blk, &device_ops, d);
    assert_hmp(both, "info block", json_object());
    assert_hmp(d0, "info block", json_pack("{s:s}", "device", "d0"));
    assert_hmp(e0, "info block", json_pack("{s:s}", "device", "e0"));
    assert_hmp("", "info block", json_pack("{s:s}", "device", "zz"));
    assert_hmp(verbose, "info block", json_pack("{s:s,s:b}", "device", "d0", "verbose", 1));
    assert_hmp("n0: json:{\"driver\": \"raw\", \"file\": {\"driver\": \"null-aio\"}} (raw)\n"
               "    Cache mode:       writeback, ignore flushes\n    Detect zeroes:    on\n",
               "info block", json_pack("{s:s,s:b}", "device", "n0", "nodes", 1));
    blk_detach_dev(d->blk, d);
    drive_free(d);
    drive_free(e);
}

static void test_info_blockstats(void)
{
    Drive *d = drive("if=none,id=d0");

    assert_hmp("d0: idle_time_ns=0\n"
               "                          bytes       operations            total_time_ns     merged\n"
               "Read:                         0                0                        0          0\n"
               "Write:                        0                0                        0          0\n"
               "Flush:                                         0                        0\n",
               "info blockstats", json_object());
    drive_free(d);
}

static json_t *drive_args(const char *opts, bool node)
{
    return json_pack("{s:s,s:s,s:b}", "pci_addr", "0", "opts", opts, "node", node);
}

static void test_drive_add_and_del(void)
{
    assert_hmp("OK\n", "drive_add", drive_args("if=none,id=d2,driver=null-aio", false));
    assert_hmp("Duplicate ID 'd2' for drive\n", "drive_add", drive_args("if=none,id=d2,driver=null-aio", false));
    assert_hmp("Error: Can't hot-add drive to type 7\n", "drive_add", drive_args("if=virtio,driver=null-aio", false));
    assert_hmp("", "drive_add", drive_args("driver=null-aio,node-name=zz", true));
    assert_hmp("Error: 'node-name' needs to be specified\n", "drive_add", drive_args("driver=null-aio", true));
    assert_hmp("Error: Block protocol 'null-aio' doesn't support the option 'if'\n", "drive_add",
               drive_args("if=none,driver=null-aio,node-name=z2", true));
    assert_hmp("Supported formats: file host_device null-aio null-co raw\n"
               "Supported formats (read-only): file host_device null-aio null-co raw\n",
               "drive_add", drive_args("format=help", false));
    assert_hmp("Error: Device 'nope' not found\n", "drive_del", json_pack("{s:s}", "id", "nope"));
    assert_hmp("", "drive_del", json_pack("{s:s}", "id", "d2"));
    assert_hmp("", "drive_del", json_pack("{s:s}", "id", "zz"));
    g_assert_null(blk_by_name("d2"));
}

static void test_drive_del_under_device(void)
{
    Drive *d = drive("if=none,id=d0,driver=null-aio");
    BlockBackend *blk = d->blk;

    blk_attach_dev(blk, &device_ops, blk);
    assert_hmp("", "drive_del", json_pack("{s:s}", "id", "d0"));
    g_assert_null(blk_node(blk));
    assert_hmp("/machine/peripheral/v0/virtio-backend: [not inserted]\n"
               "    Attached to:      /machine/peripheral/v0/virtio-backend\n",
               "info block", json_object());
    blk_detach_dev(blk, blk);
    g_assert_null(blk_next(NULL));
}

/* --- -drive --- */

static void test_drive_errors(void)
{
    static const struct {
        const char *params, *text;
    } cases[] = {
        { "if=none,format=raw", "A block device must be specified for \"file\"" },
        { "if=none,cache=none", "Must specify either driver or file" },
        { "if=none,format=foo,file=x", "Unknown driver 'foo'" },
        { "if=foo", "unsupported bus type 'foo'" },
        { "if=none,driver=raw,format=raw,file=null-aio://", "Cannot specify both 'driver' and 'format'" },
        { "if=none,format=raw,file=null-aio://,foo=1", "Block format 'raw' does not support the option 'foo'" },
        { "if=none,format=raw,file=null-aio://,file.foo=1", "Block protocol 'null-aio' doesn't support the option 'foo'" },
        { "if=none,format=raw,file=null-aio:x", "The only allowed filename for this driver is 'null-aio://'" },
        { "if=none,format=raw,file=nosuch:x", "Unknown protocol 'nosuch'" },
        { "if=none,format=raw,file=x,file.filename=x", "Can't specify 'file' and 'filename' options at the same time" },
        { "if=none,format=raw,file=x,file.aio=foo", "invalid parameter value: foo" },
        { "if=none,cache=bad", "invalid cache option" },
        { "if=none,aio=bad", "invalid aio option" },
        { "if=none,werror=bad", "'bad' invalid write error action" },
        { "if=none,rerror=bad", "'bad' invalid read error action" },
        { "if=none,media=bad", "'bad' invalid media" },
        { "if=none,discard=bad", "Invalid discard option" },
        { "if=none,detect-zeroes=bad", "invalid parameter value: bad" },
        { "if=none,readonly=bad", "Parameter 'read-only' expects 'on' or 'off'" },
        { "if=none,readonly=on,read-only=off", "'read-only' and its alias 'readonly' can't be used at the same time" },
        { "if=none,index=1,bus=2", "index cannot be used with bus and unit" },
        { "if=none,snapshot=on", "Parameter 'snapshot' is not supported" },
        { "if=none,throttling.iops-total=1", "Parameter 'throttling.iops-total' is not supported" },
        { "if=none,id=1a", "Parameter 'id' expects an identifier" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_drive_error(cases[i].params, cases[i].text);
        g_assert_null(blk_next(NULL));
        g_assert_null(block_node_next(NULL));
    }
}

static void test_drive_places(void)
{
    Drive *a = drive("if=none"), *b = drive("if=none"), *c = drive("if=virtio"), *d = drive("index=3");

    g_assert_cmpstr(a->id, ==, "none0");
    g_assert_cmpstr(b->id, ==, "none1");
    g_assert_cmpstr(c->id, ==, "virtio0");
    g_assert_cmpstr(d->id, ==, "ide1-hd1");
    assert_drive_error("if=none,index=1", "drive with bus=0, unit=1 (index=1) exists");
    assert_drive_error("if=none,id=none0", "Duplicate ID 'none0' for drive");
    drive_free_all();
    g_assert_null(drive_next(NULL));
}

static void test_drive_cache(void)
{
    static const struct {
        const char *mode;
        bool direct, no_flush, writeback;
    } cases[] = {
        { "none", true, false, true },           { "off", true, false, true },         { "writeback", false, false, true },
        { "writethrough", false, false, false }, { "directsync", true, false, false }, { "unsafe", false, true, true },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *params = g_strdup_printf("if=none,format=raw,file=null-aio://,cache=%s", cases[i].mode);
        Drive *d = drive(params);
        BlockNode *n = blk_node(d->blk);

        g_assert_cmpint(n->direct, ==, cases[i].direct);
        g_assert_cmpint(n->file->node->direct, ==, cases[i].direct);
        g_assert_cmpint(n->no_flush, ==, cases[i].no_flush);
        g_assert_cmpint(blk_write_cache(d->blk), ==, cases[i].writeback);
        drive_free(d);
    }
}

static void test_drive_json(void)
{
    Drive *d = drive("if=none,file=json:{\"driver\":\"raw\",,\"offset\":512,,\"file\":{\"driver\":\"null-aio\",,\"size\":4096}}");

    g_assert_cmpuint(blk_length(d->blk), ==, 3584);
    drive_free(d);
}

/* --- Guessed formats --- */

static void write_file(const char *path, const char *head, size_t bytes)
{
    g_autofree char *whole = g_malloc0(65536);
    int fd = open(path, O_WRONLY);

    memcpy(whole, head, bytes);
    g_assert_cmpint(pwrite(fd, whole, 65536, 0), ==, 65536);
    close(fd);
}

static void test_probe(void)
{
    char *path = env_file(65536);
    g_autofree char *params = g_strdup_printf("if=none,file=%s", path);
    char sector[512] = "QFI\xfb\0\0\0\3", other[1024] = { 5 };
    Drive *d;

    write_file(path, sector, 8);
    assert_drive_error(params, "Unknown driver 'qcow2'");
    write_file(path, other, 8);
    d = drive(params);
    blk_set_perm(d->blk, BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE, BLK_PERM_ALL, &error_abort);
    g_assert_true(blk_node(d->blk)->probed);
    g_assert_cmpint(blk_pwrite(d->blk, 0, 512, sector, 0), ==, -EPERM);
    g_assert_cmpint(blk_pwrite(d->blk, 8, 4, other, 0), ==, -EPERM);
    g_assert_cmpint(blk_pwrite(d->blk, 0, 1024, other, 0), ==, 0);
    g_assert_cmpint(blk_pwrite(d->blk, 512, 512, sector, 0), ==, 0);
    drive_free(d);
    env_unlink(path);
}

/* --- Error policy --- */

static GString *events;
static unsigned int stops;

static void note_event(void *opaque, const char *name, json_t *data)
{
    g_string_append_printf(events, "%s ", name);
    qjson_append(events, data, false);
    json_decref(data);
}

static void note_stop(void)
{
    stops++;
}

typedef struct PolicyCase {
    BlockdevOnError policy;
    bool is_read;
    int error;
    BlockErrorAction action;
    const char *visible; /* the event's nospace, NULL: no io-status */
    BlockDeviceIoStatus status;
} PolicyCase;

static const PolicyCase policies[] = {
    { BLOCKDEV_ON_ERROR_REPORT, true, EIO, BLOCK_ERROR_REPORT, NULL, BLOCK_DEVICE_IO_STATUS_OK },
    { BLOCKDEV_ON_ERROR_IGNORE, false, EIO, BLOCK_ERROR_IGNORE, NULL, BLOCK_DEVICE_IO_STATUS_OK },
    { BLOCKDEV_ON_ERROR_STOP, false, EIO, BLOCK_ERROR_STOP, "false", BLOCK_DEVICE_IO_STATUS_FAILED },
    { BLOCKDEV_ON_ERROR_STOP, true, ENOSPC, BLOCK_ERROR_STOP, "true", BLOCK_DEVICE_IO_STATUS_NOSPACE },
    { BLOCKDEV_ON_ERROR_ENOSPC, false, EIO, BLOCK_ERROR_REPORT, "false", BLOCK_DEVICE_IO_STATUS_OK },
    { BLOCKDEV_ON_ERROR_ENOSPC, false, ENOSPC, BLOCK_ERROR_STOP, "true", BLOCK_DEVICE_IO_STATUS_NOSPACE },
};

static void run_policy(const PolicyCase *p)
{
    BlockBackend *blk = env_backend(env_open("driver=null-aio,node-name=n"));
    g_autoptr(BlockInfoList) list = NULL;
    g_autofree char *nospace = p->visible ? g_strdup_printf("\"nospace\": %s, ", p->visible) : g_strdup("");
    g_autofree char *expected = g_strdup_printf(
        "BLOCK_IO_ERROR {\"device\": \"\", %s\"node-name\": \"n\", \"qom-path\": \"/machine/peripheral/v0/virtio-backend\", "
        "\"reason\": \"%s\", \"operation\": \"%s\", \"action\": \"%s\"}",
        nospace, strerror(p->error), p->is_read ? "read" : "write", BlockErrorAction_str(p->action));
    unsigned int before = stops;
    BlockErrorAction action;

    blk_attach_dev(blk, &device_ops, blk);
    blk_set_on_error(blk, p->is_read ? p->policy : BLOCKDEV_ON_ERROR_AUTO, p->is_read ? BLOCKDEV_ON_ERROR_REPORT : p->policy);
    action = blk_error_action(blk, p->is_read, p->error);
    g_assert_cmpint(action, ==, p->action);
    g_string_set_size(events, 0);
    blk_error_apply(blk, action, p->is_read, p->error);
    g_assert_cmpuint(events->len, ==, 0);
    while (!events->len) {
        aio_poll(aio_context_main(), false);
    }
    g_assert_cmpstr(events->str, ==, expected);
    g_assert_cmpuint(stops - before, ==, p->action == BLOCK_ERROR_STOP);
    list = qmp_query_block(&error_abort);
    g_assert_cmpint(list->value->has_io_status, ==, p->visible != NULL);
    g_assert_cmpint(list->value->io_status, ==, p->status);
    blk_iostatus_reset(blk);
    blk_detach_dev(blk, blk);
    blk_unref(blk);
}

static void test_policy(void)
{
    events = g_string_new(NULL);
    qapi_event_set_sink(note_event, NULL);
    blk_set_vmstop_hook(note_stop);
    for (size_t i = 0; i < G_N_ELEMENTS(policies); i++) {
        run_policy(&policies[i]);
    }
    qapi_event_set_sink(NULL, NULL);
    blk_set_vmstop_hook(NULL);
    g_string_free(events, TRUE);
}

static void test_policy_auto(void)
{
    BlockBackend *blk = blk_new(0, BLK_PERM_ALL);

    g_assert_cmpint(blk_error_action(blk, true, ENOSPC), ==, BLOCK_ERROR_REPORT);
    g_assert_cmpint(blk_error_action(blk, false, ENOSPC), ==, BLOCK_ERROR_STOP);
    blk_set_on_error(blk, BLOCKDEV_ON_ERROR_STOP, BLOCKDEV_ON_ERROR_IGNORE);
    blk_set_on_error(blk, BLOCKDEV_ON_ERROR_AUTO, BLOCKDEV_ON_ERROR_AUTO);
    g_assert_cmpint(blk_on_error(blk, false), ==, BLOCKDEV_ON_ERROR_STOP);
    g_assert_cmpint(blk_on_error(blk, true), ==, BLOCKDEV_ON_ERROR_IGNORE);
    blk_unref(blk);
}

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/query/block", test_query_block);
    g_test_add_func("/block/query/nodes-newest-first", test_query_nodes);
    g_test_add_func("/block/query/stats", test_query_stats);
    g_test_add_func("/block/blockdev/add-and-del", test_add_and_del);
    g_test_add_func("/block/blockdev/del-in-use", test_del_in_use);
    g_test_add_func("/block/resize/command", test_resize);
    g_test_add_func("/block/resize/needs-permission", test_resize_needs_permission);
    g_test_add_func("/block/hmp/info-block", test_info_block);
    g_test_add_func("/block/hmp/info-blockstats", test_info_blockstats);
    g_test_add_func("/block/hmp/drive-add-and-del", test_drive_add_and_del);
    g_test_add_func("/block/hmp/drive-del-under-device", test_drive_del_under_device);
    g_test_add_func("/block/drive/errors-leave-nothing", test_drive_errors);
    g_test_add_func("/block/drive/places-and-ids", test_drive_places);
    g_test_add_func("/block/drive/cache-modes", test_drive_cache);
    g_test_add_func("/block/drive/json-filename", test_drive_json);
    g_test_add_func("/block/drive/probe", test_probe);
    g_test_add_func("/block/on-error/policies", test_policy);
    g_test_add_func("/block/on-error/auto-keeps", test_policy_auto);
    return env_run();
}
