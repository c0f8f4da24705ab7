/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands of the block layer. Main thread. */
#include "block/commands.h"
#include "block/drive-options.h"
#include "block/internal.h"

#include "qapi/keyval.h"
#include "qapi/qapi-commands-block.h"

#include <inttypes.h>
#include <string.h>

static const char *arg_string(json_t *args, const char *name)
{
    return json_string_value(json_object_get(args, name));
}

/* --- info block --- */

static char *human_size(uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double value = (double)bytes;
    unsigned int i = 0;

    while (value >= 1000 && i + 1 < G_N_ELEMENTS(units)) {
        value /= 1024;
        i++;
    }
    return g_strdup_printf("%.3g %s", value, units[i]);
}

static void print_limit(GString *out, const char *name, bool present, uint64_t value)
{
    if (present) {
        g_string_append_printf(out, "    %s: %" PRIu64 "\n", name, value);
    }
}

static void print_image(GString *out, const ImageInfo *image)
{
    g_autofree char *size = human_size((uint64_t)image->virtual_size);
    const BlockLimitsInfo *l = image->limits;

    g_string_append_printf(out, "image: %s\nfile format: %s\nvirtual size: %s (%" PRId64 " bytes)\n", image->filename,
                           image->format, size, image->virtual_size);
    if (image->has_actual_size) {
        g_autofree char *allocated = human_size((uint64_t)image->actual_size);

        g_string_append_printf(out, "disk size: %s\n", allocated);
    } else {
        g_string_append(out, "disk size: unavailable\n");
    }
    g_string_append(out, "Block limits:\n");
    print_limit(out, "request alignment", true, l->request_alignment);
    print_limit(out, "max discard", l->has_max_discard, l->max_discard);
    print_limit(out, "discard alignment", l->has_discard_alignment, l->discard_alignment);
    print_limit(out, "max write zeroes", l->has_max_write_zeroes, l->max_write_zeroes);
    print_limit(out, "write zeroes alignment", l->has_write_zeroes_alignment, l->write_zeroes_alignment);
    print_limit(out, "max transfer", l->has_max_transfer, l->max_transfer);
    print_limit(out, "min mem alignment", true, l->min_mem_alignment);
    print_limit(out, "opt mem alignment", true, l->opt_mem_alignment);
    print_limit(out, "max iov", true, (uint64_t)l->max_iov);
}

#define FIELD "    %-18s"

static void print_heading(GString *out, const BlockInfo *info, const BlockDeviceInfo *in)
{
    if (info && *info->device) {
        g_string_append(out, info->device);
        if (in) {
            g_string_append_printf(out, " (%s)", in->node_name);
        }
    } else if (in) {
        g_string_append(out, in->node_name);
    } else if (info && info->qdev) {
        g_string_append(out, info->qdev);
    }
    if (in) {
        g_string_append_printf(out, ": %s (%s%s)\n", in->file, in->drv, in->ro ? ", read-only" : "");
    } else {
        g_string_append(out, ": [not inserted]\n");
    }
}

/* @info: NULL for a node that is listed by itself. */
static void print_block(GString *out, const BlockInfo *info, const BlockDeviceInfo *in, bool verbose)
{
    print_heading(out, info, in);
    if (info && info->qdev) {
        g_string_append_printf(out, FIELD "%s\n", "Attached to:", info->qdev);
    }
    if (info && info->removable) {
        g_string_append_printf(out, FIELD "not locked, tray closed\n", "Removable device:");
    }
    if (info && info->has_io_status && info->io_status != BLOCK_DEVICE_IO_STATUS_OK) {
        g_string_append_printf(out, FIELD "%s\n", "I/O status:", BlockDeviceIoStatus_str(info->io_status));
    }
    if (!in) {
        return;
    }
    g_string_append_printf(out, FIELD "%s%s%s\n", "Cache mode:", in->cache->writeback ? "writeback" : "writethrough",
                           in->cache->direct ? ", direct" : "", in->cache->no_flush ? ", ignore flushes" : "");
    if (in->detect_zeroes != BLOCKDEV_DETECT_ZEROES_OPTIONS_OFF) {
        g_string_append_printf(out, FIELD "%s\n", "Detect zeroes:", BlockdevDetectZeroesOptions_str(in->detect_zeroes));
    }
    if (verbose) {
        g_string_append(out, "\nImages:\n");
        print_image(out, in->image);
    }
}

static void hmp_info_block(json_t *args, GString *out)
{
    bool nodes = json_is_true(json_object_get(args, "nodes")), verbose = json_is_true(json_object_get(args, "verbose"));
    const char *device = arg_string(args, "device");
    g_autoptr(BlockInfoList) drives = nodes ? NULL : qmp_query_block(NULL);
    g_autoptr(BlockDeviceInfoList) all = NULL;
    bool found = false;

    for (BlockInfoList *e = drives; e; e = e->next) {
        if (!device || !strcmp(device, e->value->device)) {
            g_string_append(out, e != drives ? "\n" : "");
            print_block(out, e->value, e->value->inserted, verbose);
            found = true;
        }
    }
    if (found || (!device && !nodes)) {
        return;
    }
    all = qmp_query_named_block_nodes(false, false, NULL);
    for (BlockDeviceInfoList *e = all; e; e = e->next) {
        if (!device || !strcmp(device, e->value->node_name)) {
            g_string_append(out, e != all ? "\n" : "");
            print_block(out, NULL, e->value, verbose);
        }
    }
}

/* --- info blockstats --- */

static void hmp_info_blockstats(json_t *args, GString *out)
{
    g_autoptr(BlockStatsList) list = qmp_query_blockstats(false, false, NULL);

    for (BlockStatsList *e = list; e; e = e->next) {
        const BlockDeviceStats *s = e->value->stats;

        g_string_append_printf(out, "%s%s: idle_time_ns=%" PRId64 "\n", e != list ? "\n" : "", e->value->device,
                               s->has_idle_time_ns ? s->idle_time_ns : 0);
        g_string_append_printf(out, "%31s %16s %24s %10s\n", "bytes", "operations", "total_time_ns", "merged");
        g_string_append_printf(out, "%-10s %20" PRId64 " %16" PRId64 " %24" PRId64 " %10" PRId64 "\n", "Read:", s->rd_bytes,
                               s->rd_operations, s->rd_total_time_ns, s->rd_merged);
        g_string_append_printf(out, "%-10s %20" PRId64 " %16" PRId64 " %24" PRId64 " %10" PRId64 "\n", "Write:",
                               s->wr_bytes, s->wr_operations, s->wr_total_time_ns, s->wr_merged);
        g_string_append_printf(out, "%-10s %20s %16" PRId64 " %24" PRId64 "\n", "Flush:", "", s->flush_operations,
                               s->flush_total_time_ns);
    }
}

/* --- Changing things --- */

static void hmp_block_resize(json_t *args, GString *out)
{
    Error *err = NULL;

    qmp_block_resize(arg_string(args, "device"), NULL, json_integer_value(json_object_get(args, "size")), &err);
    if (err) {
        hmp_error(out, err);
    }
}

/* As blockdev-add, but with options that nobody has checked yet. */
static void add_node(const char *opts, GString *out)
{
    Error *err = NULL;
    g_autoptr(Opts) flat = opts_parse(opts, NULL, NULL, NULL, &err);
    g_autoptr(json_t) json = flat ? block_options_tree(flat, &err) : NULL;

    if (json && !json_object_get(json, "driver")) {
        error_setg(&err, "Must specify either driver or file");
    } else if (json && !json_object_get(json, "node-name")) {
        error_setg(&err, "'node-name' needs to be specified");
    } else if (json) {
        BlockNode *node = drive_open_tree(json, false, &err);

        if (node) {
            node->monitor_owned = true;
        }
    }
    if (err) {
        hmp_error(out, err);
    }
}

static void hmp_drive_add(json_t *args, GString *out)
{
    const char *opts = arg_string(args, "opts");
    bool help = false;
    Error *err = NULL;
    Drive *drive;

    if (json_is_true(json_object_get(args, "node"))) {
        add_node(opts, out);
        return;
    }
    drive = drive_new(opts, DRIVE_IDE, &help, &err);
    if (help) {
        block_formats_help(out);
    } else if (err && g_str_has_prefix(error_get_pretty(err), "Duplicate ID ")) {
        /* Told like a complaint of the option parser, without "Error:". */
        g_string_append_printf(out, "%s\n", error_get_pretty(err));
        error_free(err);
    } else if (err) {
        hmp_error(out, err);
    } else if (drive->interface != DRIVE_NONE) {
        g_string_append_printf(out, "Error: Can't hot-add drive to type %d\n", drive->interface);
        drive_free(drive);
    } else {
        g_string_append(out, "OK\n");
    }
}

static void hmp_drive_del(json_t *args, GString *out)
{
    const char *id = arg_string(args, "id");
    BlockBackend *blk = blk_by_name(id);
    Error *err = NULL;
    Drive *drive;

    if (!blk) {
        if (block_node_find(id)) {
            qmp_blockdev_del(id, &err);
        } else {
            error_setg(&err, "Device '%s' not found", id);
        }
        if (err) {
            hmp_error(out, err);
        }
        return;
    }
    drive = drive_by_backend(blk);
    /* A device keeps the backend, without a medium; what it still asks for is to fail and not to stop the machine. */
    blk_remove_node(blk);
    blk_clear_name(blk);
    blk_set_on_error(blk, BLOCKDEV_ON_ERROR_REPORT, BLOCKDEV_ON_ERROR_REPORT);
    if (drive) {
        drive_free(drive);
    }
}

const HmpCommand block_hmp_commands[] = {
    { "info block", "nodes:-n,verbose:-v,device:s?", "[-n] [-v] [device]", "show info of one block device or all block devices",
      hmp_info_block },
    { "info blockstats", "", "", "show block device statistics", hmp_info_blockstats },
    { "block_resize", "device:B,size:o", "device size", "resize a block image", hmp_block_resize },
    { "drive_add", "node:-n,pci_addr:s,opts:s", "[-n] [[<domain>:]<bus>:]<slot> opts", "add a drive without a device",
      hmp_drive_add },
    { "drive_del", "id:B", "device", "take the medium from a drive and forget its name", hmp_drive_del },
    { 0 },
};
