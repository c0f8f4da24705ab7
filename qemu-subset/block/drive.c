/* SPDX-License-Identifier: GPL-2.0-or-later */
/* -drive: a backend with a name, what it holds, and how errors are met. Main thread. */
#include "block/commands.h"
#include "block/drive-options.h"
#include "block/internal.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned int units_per_bus; /* 0: one bus without end */
} interfaces[DRIVE_INTERFACES] = {
    [DRIVE_NONE] = { "none", 0 },     [DRIVE_IDE] = { "ide", 2 },       [DRIVE_SCSI] = { "scsi", 7 },
    [DRIVE_FLOPPY] = { "floppy", 0 }, [DRIVE_PFLASH] = { "pflash", 0 }, [DRIVE_MTD] = { "mtd", 0 },
    [DRIVE_SD] = { "sd", 0 },         [DRIVE_VIRTIO] = { "virtio", 0 }, [DRIVE_XEN] = { "xen", 0 },
};

static ListNode drives = { &drives, &drives };

Drive *drive_next(Drive *drive)
{
    ListNode *next = drive ? drive->link.next : drives.next;

    return next == &drives ? NULL : list_entry(next, Drive, link);
}

Drive *drive_by_backend(const BlockBackend *blk)
{
    Drive *d;

    list_for_each(d, &drives, link) {
        if (d->blk == blk) {
            return d;
        }
    }
    return NULL;
}

void drive_free(Drive *drive)
{
    list_remove(&drive->link);
    if (drive->blk) {
        blk_clear_name(drive->blk);
        blk_unref(drive->blk);
    }
    g_free(drive->id);
    g_free(drive->params);
    g_free(drive);
}

void drive_free_all(void)
{
    while (!list_empty(&drives)) {
        drive_free(list_first(&drives, Drive, link));
    }
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void block_formats_help(GString *out)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();

    for (int i = 0; i < BLOCKDEV_DRIVER__MAX; i++) {
        const char *name = BlockdevDriver_str(i);

        if (block_find_driver(name)) {
            g_ptr_array_add(names, (char *)name);
        }
    }
    g_ptr_array_sort(names, compare_names);
    for (int writable = 1; writable >= 0; writable--) {
        g_string_append(out, writable ? "Supported formats:" : "Supported formats (read-only):");
        for (guint i = 0; i < names->len; i++) {
            g_string_append_printf(out, " %s", (char *)g_ptr_array_index(names, i));
        }
        g_string_append_c(out, '\n');
    }
}

/* --- Where it sits --- */

static bool parse_interface(Opts *opts, DriveInterface def, Drive *d, Error **errp)
{
    g_autofree char *name = opts_take(opts, "if");

    d->interface = def;
    if (!name) {
        return true;
    }
    for (d->interface = 0; d->interface < DRIVE_INTERFACES; d->interface++) {
        if (!strcmp(interfaces[d->interface].name, name)) {
            return true;
        }
    }
    error_setg(errp, "unsupported bus type '%s'", name);
    return false;
}

static Drive *drive_at(DriveInterface interface, unsigned int bus, unsigned int unit)
{
    Drive *d;

    list_for_each(d, &drives, link) {
        if (d->interface == interface && d->bus == bus && d->unit == unit) {
            return d;
        }
    }
    return NULL;
}

static bool take_number(Opts *opts, const char *name, int64_t *value, Error **errp)
{
    g_autofree char *text = opts_take(opts, name);
    uint64_t n;

    if (!text) {
        return true;
    }
    if (!opt_value_number(name, text, &n, errp)) {
        return false;
    }
    *value = (int64_t)MIN(n, INT32_MAX);
    return true;
}

static bool parse_place(Opts *opts, Drive *d, Error **errp)
{
    unsigned int per_bus = interfaces[d->interface].units_per_bus;
    int64_t index = -1, bus = -1, unit = -1;

    if (!take_number(opts, "index", &index, errp) || !take_number(opts, "bus", &bus, errp) ||
        !take_number(opts, "unit", &unit, errp)) {
        return false;
    }
    if (index >= 0) {
        if (bus >= 0 || unit >= 0) {
            error_setg(errp, "index cannot be used with bus and unit");
            return false;
        }
        bus = per_bus ? index / per_bus : 0;
        unit = per_bus ? index % per_bus : index;
    }
    d->bus = bus >= 0 ? (unsigned int)bus : 0;
    if (unit < 0) {
        for (unit = 0; drive_at(d->interface, d->bus, (unsigned int)unit); unit++) {
            if (per_bus && unit + 1 >= per_bus) {
                unit = -1;
                d->bus++;
            }
        }
    }
    d->unit = (unsigned int)unit;
    if (per_bus && d->unit >= per_bus) {
        error_setg(errp, "unit %u too big (max is %u)", d->unit, per_bus - 1);
        return false;
    }
    if (drive_at(d->interface, d->bus, d->unit)) {
        error_setg(errp, "drive with bus=%u, unit=%u (index=%u) exists", d->bus, d->unit,
                   per_bus ? d->bus * per_bus + d->unit : d->unit);
        return false;
    }
    return true;
}

static void make_id(Drive *d, const char *id)
{
    const char *name = interfaces[d->interface].name;

    if (id) {
        d->id = g_strdup(id);
    } else if (interfaces[d->interface].units_per_bus) {
        d->id = g_strdup_printf("%s%u%s%u", name, d->bus, d->cdrom ? "-cd" : "-hd", d->unit);
    } else {
        d->id = g_strdup_printf("%s%u", name, d->unit);
    }
}

/* --- Options that are not the node's own --- */

static bool parse_media(Opts *opts, Drive *d, Error **errp)
{
    g_autofree char *media = opts_take(opts, "media");

    d->cdrom = media && !strcmp(media, "cdrom");
    if (media && !d->cdrom && strcmp(media, "disk")) {
        error_setg(errp, "'%s' invalid media", media);
        return false;
    }
    return true;
}

static bool parse_on_error(Opts *opts, const char *option, bool is_read, BlockdevOnError *action, Error **errp)
{
    g_autofree char *text = opts_take(opts, option);

    if (!text) {
        return true;
    }
    *action = qapi_enum_parse(&BlockdevOnError_lookup, text, -1, NULL);
    if ((int)*action < 0) {
        error_setg(errp, "'%s' invalid %s error action", text, is_read ? "read" : "write");
        return false;
    }
    return true;
}

/* cache=MODE is short for two options of the node and one of the device. */
static bool parse_cache(Opts *opts, bool *write_cache, Error **errp)
{
    static const struct {
        const char *name;
        bool direct, no_flush, writeback;
    } modes[] = {
        { "none", true, false, true },           { "off", true, false, true },        { "writeback", false, false, true },
        { "writethrough", false, false, false }, { "directsync", true, false, false }, { "unsafe", false, true, true },
    };
    g_autofree char *mode = opts_take(opts, "cache"), *writeback = NULL;
    size_t i = 0;

    if (mode) {
        while (i < G_N_ELEMENTS(modes) && strcmp(modes[i].name, mode)) {
            i++;
        }
        if (i == G_N_ELEMENTS(modes)) {
            error_setg(errp, "invalid cache option");
            return false;
        }
        *write_cache = modes[i].writeback;
        if (!opts_get(opts, "cache.direct")) {
            opts_set(opts, "cache.direct", modes[i].direct ? "on" : "off");
        }
        if (!opts_get(opts, "cache.no-flush")) {
            opts_set(opts, "cache.no-flush", modes[i].no_flush ? "on" : "off");
        }
    }
    writeback = opts_take(opts, "cache.writeback");
    return !writeback || opt_value_bool("cache.writeback", writeback, write_cache, errp);
}

static bool in_list(const char *value, const char *const *list)
{
    for (; *list; list++) {
        if (!strcmp(value, *list)) {
            return true;
        }
    }
    return false;
}

/* Values that have words of their own when they are wrong. */
static bool check_values(Opts *opts, Error **errp)
{
    static const char *const aio[] = { "threads", "native", "io_uring", NULL };
    static const char *const off[] = { "ignore", "off", NULL }, *const on[] = { "unmap", "on", NULL };
    const char *value = opts_get(opts, "aio");

    if (value && !in_list(value, aio)) {
        error_setg(errp, "invalid aio option");
        return false;
    }
    value = opts_get(opts, "discard");
    if (value) {
        bool unmap = in_list(value, on);

        if (!unmap && !in_list(value, off)) {
            error_setg(errp, "Invalid discard option");
            return false;
        }
        opts_del(opts, "discard");
        opts_set(opts, "discard", unmap ? "unmap" : "ignore");
    }
    value = opts_get(opts, "detect-zeroes");
    return !value || qapi_enum_parse(&BlockdevDetectZeroesOptions_lookup, value, -1, errp) >= 0;
}

/* What needs parts that are not here is refused by name, unless it is off. */
static bool refuse_missing(Opts *opts, Error **errp)
{
    static const char *const flags[] = { "snapshot", "copy-on-read", NULL };

    for (size_t i = 0; flags[i]; i++) {
        g_autofree char *text = opts_take(opts, flags[i]);
        bool on = false;

        if (text && !opt_value_bool(flags[i], text, &on, errp)) {
            return false;
        }
        if (on) {
            error_setg(errp, "Parameter '%s' is not supported", flags[i]);
            return false;
        }
    }
    return true;
}

static bool is_throttling(void *opaque, const char *name, const char *value, Error **errp)
{
    if (g_str_has_prefix(name, "throttling.") || g_str_has_prefix(name, "bps") || g_str_has_prefix(name, "iops")) {
        error_setg(errp, "Parameter '%s' is not supported", name);
        return false;
    }
    return true;
}

static bool parse_read_only(Opts *opts, bool cdrom, Error **errp)
{
    g_autofree char *alias = opts_take(opts, "readonly");
    const char *value = opts_get(opts, "read-only");
    bool flag;

    if (alias && value) {
        error_setg(errp, "'read-only' and its alias 'readonly' can't be used at the same time");
        return false;
    }
    if (alias) {
        opts_set(opts, "read-only", alias);
    } else if (!value && cdrom) {
        opts_set(opts, "read-only", "on");
    }
    value = opts_get(opts, "read-only");
    return !value || opt_value_bool("read-only", value, &flag, errp);
}

static bool take_bool(Opts *opts, const char *name, bool *value, Error **errp)
{
    g_autofree char *text = opts_take(opts, name);

    return !text || opt_value_bool(name, text, value, errp);
}

/* --- The whole --- */

/* Is there nothing that speaks of a medium? */
static bool empty_drive(const Opts *opts)
{
    g_autoptr(json_t) left = opts_to_json(opts);
    static const char *const neutral[] = { "read-only", "aio", "detect-zeroes", NULL };
    const char *key;
    json_t *value;

    json_object_foreach(left, key, value) {
        if (!in_list(key, neutral)) {
            return false;
        }
    }
    return true;
}

static bool open_medium(Drive *d, Opts *opts, Error **errp)
{
    g_autofree char *file = opts_take(opts, "file"), *format = opts_take(opts, "format"), *driver = NULL;
    BlockNode *node;
    bool ok;

    driver = opts_take(opts, "driver");
    if (format && driver) {
        error_setg(errp, "Cannot specify both 'driver' and 'format'");
        return false;
    }
    if (file && !*file) {
        g_clear_pointer(&file, g_free);
    }
    if (!file && !format && !driver) {
        if (empty_drive(opts)) {
            return true;
        }
        if (!opts_get(opts, "file.driver") && !opts_get(opts, "file.filename")) {
            error_setg(errp, "Must specify either driver or file");
            return false;
        }
    }
    if (!opts_get(opts, "auto-read-only")) {
        opts_set(opts, "auto-read-only", "on");
    }
    node = drive_open_node(opts, file, format ? format : driver, errp);
    if (!node) {
        return false;
    }
    ok = blk_insert_node(d->blk, node, errp) == 0;
    block_node_unref(node);
    return ok;
}

static bool drive_fill(Drive *d, Opts *opts, DriveInterface def, Error **errp)
{
    g_autofree char *id = opts_take(opts, "id");
    BlockdevOnError rerror = BLOCKDEV_ON_ERROR_AUTO, werror = BLOCKDEV_ON_ERROR_AUTO;
    bool write_cache = true, invalid = true, failed = true;

    if (id && blk_by_name(id)) {
        error_setg(errp, "Duplicate ID '%s' for drive", id);
        return false;
    }
    if (!parse_media(opts, d, errp) || !parse_interface(opts, def, d, errp) || !parse_place(opts, d, errp)) {
        return false;
    }
    make_id(d, id);
    d->blk = blk_new(BLK_PERM_CONSISTENT_READ, BLK_PERM_ALL);
    if (!parse_on_error(opts, "werror", false, &werror, errp) || !parse_on_error(opts, "rerror", true, &rerror, errp) ||
        !parse_cache(opts, &write_cache, errp) || !check_values(opts, errp) || !refuse_missing(opts, errp) ||
        !opts_foreach(opts, is_throttling, NULL, errp) || !parse_read_only(opts, d->cdrom, errp) ||
        !take_bool(opts, "stats-account-invalid", &invalid, errp) ||
        !take_bool(opts, "stats-account-failed", &failed, errp)) {
        return false;
    }
    blk_set_accounting(d->blk, invalid, failed);
    blk_set_on_error(d->blk, rerror, werror);
    blk_set_write_cache(d->blk, write_cache);
    return open_medium(d, opts, errp) && blk_set_name(d->blk, d->id, errp);
}

static bool wants_help(const Opts *opts)
{
    const char *format = opts_get(opts, "format");

    return format && (!strcmp(format, "help") || !strcmp(format, "?"));
}

Drive *drive_new(const char *params, DriveInterface default_interface, bool *help, Error **errp)
{
    g_autoptr(Opts) opts = opts_parse(params, NULL, NULL, NULL, errp);

    return opts ? drive_new_parsed(params, opts, default_interface, help, errp) : NULL;
}

Drive *drive_new_parsed(const char *params, Opts *opts, DriveInterface default_interface, bool *help, Error **errp)
{
    Drive *d;

    if (wants_help(opts)) {
        *help = true;
        return NULL;
    }
    d = g_new0(Drive, 1);
    d->params = g_strdup(params);
    list_init(&d->link);
    if (!drive_fill(d, opts, default_interface, errp)) {
        drive_free(d);
        return NULL;
    }
    list_append(&drives, &d->link);
    return d;
}
