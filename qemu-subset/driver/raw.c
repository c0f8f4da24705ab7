/* SPDX-License-Identifier: GPL-2.0-or-later */
/* raw: the child as it is, or a part of it. Requests go on in place. */
#include "driver/drivers.h"

#include <inttypes.h>

typedef struct RawState {
    bool has_size;
    uint64_t size; /* if has_size */
} RawState;

static bool check_range(const BlockNode *node, const RawState *s, Error **errp)
{
    uint64_t whole = node->file->node->total_bytes, offset = node->forward_offset;

    if (offset > whole) {
        error_setg(errp, "Offset (%" PRIu64 ") cannot be greater than size of the containing file (%" PRIu64 ")", offset,
                   whole);
    } else if (s->has_size && s->size > whole - offset) {
        error_setg(errp,
                   "The sum of offset (%" PRIu64 ") and size (%" PRIu64
                   ") has to be smaller or equal to the  actual size of the containing file (%" PRIu64 ")",
                   offset, s->size, whole);
    } else if (s->has_size && s->size % 512) {
        error_setg(errp, "Specified size is not multiple of 512");
    } else {
        return true;
    }
    return false;
}

static bool check_sign(const char *name, int64_t value, Error **errp)
{
    if (value < 0) {
        error_setg(errp, "Value '%" PRId64 "' is out of range for parameter '%s'", value, name);
        return false;
    }
    return true;
}

static int raw_open(BlockNode *node, const BlockdevOptions *opts, Error **errp)
{
    const BlockdevOptionsRaw *o = &opts->u.raw;
    RawState *s = node->state;
    BlockNode *child;
    int ret;

    if ((o->has_offset && !check_sign("offset", o->offset, errp)) || (o->has_size && !check_sign("size", o->size, errp))) {
        return -EINVAL;
    }
    child = block_open_ref(node, o->file, errp);
    if (!child) {
        return -EINVAL;
    }
    ret = block_attach_file(node, child, errp);
    block_node_unref(child);
    if (ret < 0) {
        return ret;
    }
    node->forward_offset = o->has_offset ? (uint64_t)o->offset : 0;
    s->has_size = o->has_size;
    s->size = (uint64_t)o->size;
    if (!check_range(node, s, errp)) {
        block_detach_child(node->file);
        return -EINVAL;
    }
    return 0;
}

static void raw_close(BlockNode *node)
{
    block_detach_child(node->file);
}

static BlockResult raw_submit(BlockNode *node, BlockRequest *req)
{
    req->offset += node->forward_offset;
    return block_submit(node->file->node, req);
}

static int64_t raw_get_length(BlockNode *node)
{
    const RawState *s = node->state;
    uint64_t whole = node->file->node->total_bytes;
    uint64_t rest = whole > node->forward_offset ? whole - node->forward_offset : 0;

    /* The child may have shrunk since. */
    return (int64_t)(s->has_size ? MIN(s->size, rest) : rest);
}

static int64_t raw_get_allocated_size(BlockNode *node)
{
    BlockNode *child = node->file->node;

    return child->drv->get_allocated_size ? child->drv->get_allocated_size(child) : -ENOTSUP;
}

static int raw_truncate(BlockNode *node, uint64_t bytes, Error **errp)
{
    const RawState *s = node->state;

    if (s->has_size) {
        error_setg(errp, "Cannot resize fixed-size raw disks");
        return -ENOTSUP;
    }
    if (bytes > INT64_MAX - node->forward_offset) {
        error_setg(errp, "Disk size too large for the chosen offset");
        return -EINVAL;
    }
    return block_truncate(node->file->node, bytes + node->forward_offset, errp);
}

static void raw_refresh_limits(BlockNode *node, Error **errp)
{
    /* The child cares for what it needs itself. */
    node->limits.request_alignment = node->probed ? 512 : 1;
    node->limits.required_mem_alignment = 1;
}

static json_t *raw_strong_options(BlockNode *node)
{
    const RawState *s = node->state;
    json_t *o = json_object();

    if (node->forward_offset) {
        json_object_set_new(o, "offset", json_integer((json_int_t)node->forward_offset));
    }
    if (s->has_size) {
        json_object_set_new(o, "size", json_integer((json_int_t)s->size));
    }
    return o;
}

static char *raw_plain_filename(BlockNode *node)
{
    const RawState *s = node->state;
    const BlockNode *child = node->file->node;

    /* The name alone opens as raw over a protocol, and all of it. */
    if (node->forward_offset || s->has_size || !child->drv->is_protocol || g_str_has_prefix(child->filename, "json:")) {
        return NULL;
    }
    return g_strdup(child->filename);
}

const BlockDriver block_driver_raw = {
    .format_name = "raw",
    .state_size = sizeof(RawState),
    .forwards = true,
    .open = raw_open,
    .close = raw_close,
    .submit = raw_submit,
    .get_length = raw_get_length,
    .get_allocated_size = raw_get_allocated_size,
    .truncate = raw_truncate,
    .refresh_limits = raw_refresh_limits,
    .strong_options = raw_strong_options,
    .plain_filename = raw_plain_filename,
};
