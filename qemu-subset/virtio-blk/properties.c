/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties of virtio-blk. Main thread. */
#include "virtio-blk/internal.h"

#define BLOCK_SIZE_MIN 512
#define BLOCK_SIZE_MAX (2 * 1024 * 1024)
#define BLOCK_SIZE_TEXT "A power of two between 512 B and 2 MiB"

static VirtIOBlock *to_blk(Object *obj)
{
    return (VirtIOBlock *)obj;
}

/* --- drive --- */

static json_t *get_drive(Object *obj, const ObjectProperty *prop, Error **errp)
{
    BlockBackend *blk = to_blk(obj)->blk;
    const char *name = blk ? blk_name(blk) : NULL;

    if (blk && (!name || !*name) && blk_node(blk)) {
        name = blk_node(blk)->name;
    }
    return json_string(name ? name : "");
}

static void drive_not_found(Object *obj, const char *name, Error **errp)
{
    error_setg(errp, "Property '%s.drive' can't find value '%s'", obj->type->name, name);
}

/* After realize: another node takes the place of the present one. */
static bool replace_node(VirtIOBlock *s, const char *name, Error **errp)
{
    BlockNode *old = blk_node(s->blk), *node = block_node_find(name);
    bool ok;

    if (!node) {
        error_setg(errp, "Cannot find device='' nor node-name='%s'", name);
        return false;
    }
    if (node == old) {
        return true;
    }
    blk_drained_begin(s->blk);
    if (old) {
        block_node_ref(old);
        blk_remove_node(s->blk);
    }
    ok = blk_insert_node(s->blk, node, errp) >= 0;
    if (!ok && old) {
        blk_insert_node(s->blk, old, &error_abort);
    }
    if (old) {
        block_node_unref(old);
    }
    s->limits.capacity = blk_length(s->blk) / BLOCK_SIZE_MIN;
    blk_drained_end(s->blk);
    return ok;
}

static BlockBackend *find_backend(Object *obj, const char *name, Error **errp)
{
    BlockBackend *blk = blk_by_name(name);
    BlockNode *node;

    if (blk) {
        return blk_ref(blk);
    }
    node = block_node_find(name);
    if (!node) {
        drive_not_found(obj, name, errp);
        return NULL;
    }
    blk = blk_new(0, BLK_PERM_ALL);
    if (blk_insert_node(blk, node, errp) < 0) {
        blk_unref(blk);
        return NULL;
    }
    return blk;
}

static bool set_drive(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp)
{
    VirtIOBlock *s = to_blk(obj);
    const char *name = json_string_value(value);
    BlockBackend *blk;

    if (s->vdev.qdev.realized) {
        return replace_node(s, name, errp);
    }
    if (!*name) {
        return true;
    }
    blk = find_backend(obj, name, errp);
    if (!blk) {
        return false;
    }
    if (blk_dev(blk)) {
        error_setg(errp, "Drive '%s' is already in use by another device", name);
        blk_unref(blk);
        return false;
    }
    blk_unref(s->blk);
    s->blk = blk;
    return true;
}

/* --- iothread --- */

static json_t *get_iothread(Object *obj, const ObjectProperty *prop, Error **errp)
{
    VirtIOBlock *s = to_blk(obj);
    g_autofree char *path = s->iothread ? object_path(s->iothread) : NULL;

    return json_string(path ? path : "");
}

static bool set_iothread(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp)
{
    VirtIOBlock *s = to_blk(obj);
    const char *path = json_string_value(value);
    Object *target = NULL;

    if (!device_check_settable(obj, prop->name, true, errp)) {
        return false;
    }
    if (*path) {
        bool ambiguous = false;

        target = object_resolve(path, &ambiguous);
        if (ambiguous) {
            error_setg(errp, "Path '%s' does not uniquely identify an object", path);
            return false;
        }
        if (!target) {
            error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", path);
            return false;
        }
        if (!object_is_a(target, TYPE_IOTHREAD)) {
            error_setg(errp, "Invalid parameter type for '%s', expected: " TYPE_IOTHREAD, prop->name);
            return false;
        }
        object_ref(target);
    }
    g_clear_pointer(&s->iothread, object_unref);
    s->iothread = target;
    return true;
}

/* --- Sizes: members of 32 bits --- */

static json_t *get_size32(Object *obj, const ObjectProperty *prop, Error **errp)
{
    return json_integer(*(uint32_t *)(void *)((char *)obj + prop->offset));
}

static bool set_size32(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp)
{
    json_int_t v = json_integer_value(value);

    if (!device_check_settable(obj, prop->name, false, errp)) {
        return false;
    }
    if (v < 0 || v > UINT32_MAX) {
        error_setg(errp, "Parameter '%s' expects uint32_t", prop->name);
        return false;
    }
    *(uint32_t *)(void *)((char *)obj + prop->offset) = (uint32_t)v;
    return true;
}

/* 0 leaves the choice to us. */
static bool set_block_size(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp)
{
    json_int_t v = json_integer_value(value);

    if (v && (v < BLOCK_SIZE_MIN || v > BLOCK_SIZE_MAX || (v & (v - 1)))) {
        error_setg(errp, "parameter %s must be a power of 2 between %d and %d", prop->name, BLOCK_SIZE_MIN,
                   BLOCK_SIZE_MAX);
        return false;
    }
    return set_size32(obj, prop, value, errp);
}

/* The order of BlockdevOnError. */
#define ON_ERROR_TEXT "Error handling policy (report/ignore/enospc/stop/auto)"
static const char *const on_error_names[] = {"report", "ignore", "enospc", "stop", "auto", NULL};

#define MEMBER(n, k, acc, field, desc)                                                             \
    {                                                                                              \
        .name = n, .kind = k, .description = desc, .get = object_get_##acc, .set = device_set_##acc,                    \
        .offset = offsetof(VirtIOBlock, field)                                                     \
    }
#define BOOL(n, field) MEMBER(n, PROP_BOOL, bool, field, "on/off")
#define UINT16(n, field) MEMBER(n, PROP_UINT16, uint16, field, NULL)
#define UINT32(n, field) MEMBER(n, PROP_UINT32, uint32, field, NULL)
#define SIZE(n, field, setter, desc)                                                               \
    {                                                                                              \
        .name = n, .kind = PROP_SIZE, .description = desc, .get = get_size32, .set = setter,       \
        .offset = offsetof(VirtIOBlock, field)                                                     \
    }
#define ENUM(n, t, v, field, desc)                                                                 \
    {                                                                                              \
        .name = n, .kind = PROP_ENUM, .type = t, .values = v, .description = desc,                 \
        .get = object_get_enum, .set = device_set_enum, .offset = offsetof(VirtIOBlock, field)                             \
    }
#define ON_OFF_AUTO(n, field) ENUM(n, "OnOffAuto", device_on_off_auto, field, "on/off/auto")

const ObjectProperty virtio_blk_properties[] = {
    {.name = "drive", .kind = PROP_STRING, .type = "str", .description = "Node name or ID of a block device to use as a backend",
     .get = get_drive, .set = set_drive},
    {.name = "iothread", .kind = PROP_LINK, .type = "link<iothread>", .get = get_iothread, .set = set_iothread},
    {.name = "iothread-vq-mapping", .kind = PROP_ANY, .type = "IOThreadVirtQueueMappingList",
     .description = "IOThread virtqueue mapping list [{\"iothread\":\"<id>\", \"vqs\":[1,2,3,...]},...]",
     .get = virtio_blk_mapping_get, .set = virtio_blk_mapping_set},
    UINT16("num-queues", num_queues),
    UINT16("queue-size", queue_size),
    SIZE("logical_block_size", logical_block_size, set_block_size, BLOCK_SIZE_TEXT),
    SIZE("physical_block_size", physical_block_size, set_block_size, BLOCK_SIZE_TEXT),
    SIZE("min_io_size", min_io_size, set_size32, NULL),
    SIZE("opt_io_size", opt_io_size, set_size32, NULL),
    SIZE("discard_granularity", discard_granularity, set_size32, NULL),
    UINT32("max-discard-sectors", max_discard_sectors),
    UINT32("max-write-zeroes-sectors", max_write_zeroes_sectors),
    UINT32("cyls", cyls),
    UINT32("heads", heads),
    UINT32("secs", secs),
    UINT32("lcyls", lcyls),
    UINT32("lheads", lheads),
    UINT32("lsecs", lsecs),
    {.name = "bootindex", .kind = PROP_INT32, .get = object_get_int32, .set = object_set_int32,
     .offset = offsetof(VirtIOBlock, bootindex)},
    {.name = "serial", .kind = PROP_STRING, .type = "str", .get = object_get_string, .set = device_set_string,
     .offset = offsetof(VirtIOBlock, serial)},
    BOOL("discard", discard),
    BOOL("write-zeroes", write_zeroes),
    BOOL("config-wce", config_wce),
    BOOL("seg-max-adjust", seg_max_adjust),
    BOOL("request-merging", request_merging),
    BOOL("report-discard-granularity", report_discard_granularity),
    BOOL("share-rw", share_rw),
    BOOL("x-enable-wce-if-config-wce", x_enable_wce),
    ON_OFF_AUTO("write-cache", write_cache),
    ON_OFF_AUTO("account-invalid", account_invalid),
    ON_OFF_AUTO("account-failed", account_failed),
    ON_OFF_AUTO("backend_defaults", backend_defaults),
    ENUM("rerror", "BlockdevOnError", on_error_names, rerror, ON_ERROR_TEXT),
    ENUM("werror", "BlockdevOnError", on_error_names, werror, ON_ERROR_TEXT),
    {},
};

void virtio_blk_init_properties(VirtIOBlock *s)
{
    s->num_queues = UINT16_MAX;
    s->queue_size = 256;
    s->discard_granularity = UINT32_MAX;
    s->max_discard_sectors = s->max_write_zeroes_sectors = VIRTIO_BLK_MAX_SECTORS;
    s->bootindex = -1;
    s->discard = s->write_zeroes = s->config_wce = s->seg_max_adjust = true;
    s->request_merging = s->report_discard_granularity = s->x_enable_wce = true;
    s->rerror = s->werror = BLOCKDEV_ON_ERROR_AUTO;
}
