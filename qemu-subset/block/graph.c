/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph: edges between nodes and their parents, the threads that use a node, lengths and limits from below. */
#include "block/internal.h"

#include <inttypes.h>
#include <string.h>

/* --- Edges --- */

BlockChild *block_attach_child(BlockNode *child, const char *role, const BlockParentOps *ops, void *parent,
                               ListNode *parent_list, uint32_t perm, uint32_t shared, Error **errp)
{
    BlockChild *c = g_new0(BlockChild, 1);

    *c = (BlockChild){ .node = child, .role = role, .ops = ops, .parent = parent, .shared = BLK_PERM_ALL };
    list_init(&c->in_parent);
    list_prepend(&child->parents, &c->in_node);
    if (!block_perm_update(c, perm, shared, errp)) {
        list_remove(&c->in_node);
        g_free(c);
        return NULL;
    }
    if (parent_list) {
        list_append(parent_list, &c->in_parent);
    }
    block_node_ref(child);
    if (child->quiesce) {
        ops->drained_begin(c);
    }
    return c;
}

void block_detach_child(BlockChild *c)
{
    BlockNode *node = c->node;

    if (node->quiesce) {
        c->ops->drained_end(c);
    }
    list_remove(&c->in_node);
    list_remove(&c->in_parent);
    block_perm_refresh(node);
    g_free(c);
    block_node_unref(node);
}

bool block_child_set_perm(BlockChild *c, uint32_t perm, uint32_t shared, Error **errp)
{
    return block_perm_update(c, perm, shared, errp);
}

/* --- Nodes as parents --- */

static char *node_describe(BlockChild *c)
{
    return g_strdup_printf("node '%s'", ((BlockNode *)c->parent)->name);
}

static void node_resized(BlockChild *c)
{
    Error *err = NULL;

    /* A parent that can no longer make sense of its child keeps the length that it had. */
    if (block_refresh(c->parent, &err) < 0) {
        warn_report_err(err);
    }
}

static void node_drained_begin(BlockChild *c)
{
    BlockNode *node = c->parent;
    BlockChild *p;

    if (node->quiesce++ == 0) {
        list_for_each(p, &node->parents, in_node) {
            p->ops->drained_begin(p);
        }
    }
}

static void node_drained_end(BlockChild *c)
{
    BlockNode *node = c->parent;
    BlockChild *p;

    g_assert(node->quiesce > 0);
    if (--node->quiesce == 0) {
        list_for_each(p, &node->parents, in_node) {
            p->ops->drained_end(p);
        }
    }
}

static bool node_drained_poll(BlockChild *c)
{
    BlockNode *node = c->parent;
    BlockChild *p;

    list_for_each(p, &node->parents, in_node) {
        if (p->ops->drained_poll(p)) {
            return true;
        }
    }
    return false;
}

const BlockParentOps block_node_parent_ops = {
    .describe = node_describe,
    .drained_begin = node_drained_begin,
    .drained_poll = node_drained_poll,
    .drained_end = node_drained_end,
    .resized = node_resized,
};

int block_attach_file(BlockNode *node, BlockNode *child, Error **errp)
{
    node->file = block_attach_child(child, "file", &block_node_parent_ops, node, &node->children, 0, BLK_PERM_ALL, errp);
    return node->file ? 0 : -EPERM;
}

/* --- Threads that use a node --- */

static BlockNodeContext *find_context(const BlockNode *node, const AioContext *ctx)
{
    for (guint i = 0; i < node->contexts->len; i++) {
        BlockNodeContext *e = &g_array_index(node->contexts, BlockNodeContext, i);

        if (e->ctx == ctx) {
            return e;
        }
    }
    return NULL;
}

bool block_node_has_context(const BlockNode *node, const AioContext *ctx)
{
    return find_context(node, ctx) != NULL;
}

typedef struct AttachCall {
    BlockNode *node;
    AioContext *ctx;
    int ret;
    Error *err;
} AttachCall;

static void attach_in_home(void *opaque)
{
    AttachCall *call = opaque;

    call->ret = call->node->drv->attach_context(call->node, call->ctx, &call->err);
}

int block_attach_context(BlockNode *node, AioContext *ctx, Error **errp)
{
    BlockNodeContext *e = find_context(node, ctx);
    AttachCall call = { .node = node, .ctx = ctx };
    BlockChild *c, *undo;

    if (!e && node->drv->attach_context) {
        aio_run_in_home(ctx, attach_in_home, &call);
        if (call.ret < 0) {
            error_propagate(errp, call.err);
            return call.ret;
        }
    }
    list_for_each(c, &node->children, in_parent) {
        int ret = block_attach_context(c->node, ctx, errp);

        if (ret < 0) {
            list_for_each(undo, &node->children, in_parent) {
                if (undo == c) {
                    break;
                }
                block_detach_context(undo->node, ctx);
            }
            return ret;
        }
    }
    pthread_mutex_lock(&node->serial.lock);
    if (e) {
        e->users++;
    } else {
        BlockNodeContext fresh = { ctx, 1 };

        g_array_append_val(node->contexts, fresh);
    }
    pthread_mutex_unlock(&node->serial.lock);
    return 0;
}

void block_detach_context(BlockNode *node, AioContext *ctx)
{
    BlockNodeContext *e = find_context(node, ctx);
    BlockChild *c;

    g_assert(e);
    list_for_each(c, &node->children, in_parent) {
        block_detach_context(c->node, ctx);
    }
    pthread_mutex_lock(&node->serial.lock);
    if (--e->users == 0) {
        g_array_remove_index_fast(node->contexts, (guint)(e - &g_array_index(node->contexts, BlockNodeContext, 0)));
    }
    pthread_mutex_unlock(&node->serial.lock);
}

/* --- Lengths and limits --- */

static void default_limits(BlockNode *node)
{
    node->limits = node->file ? node->file->node->limits : (BlockLimits){ 0 };
}

static void complete_limits(BlockLimits *l)
{
    /* Lengths of pieces of memory have to be aligned as well as their addresses, so those of requests have to. */
    l->request_alignment = MAX(MAX(l->request_alignment, l->required_mem_alignment), 1);
    l->min_mem_alignment = MAX(l->min_mem_alignment, 1);
    l->opt_mem_alignment = MAX(l->opt_mem_alignment, l->min_mem_alignment);
    if (!l->max_iov) {
        l->max_iov = IOV_MAX;
    }
}

int block_refresh(BlockNode *node, Error **errp)
{
    const BlockDriver *drv = node->drv;
    int64_t length = drv->get_length ? drv->get_length(node) : (int64_t)node->file->node->total_bytes;
    uint64_t old_bytes = node->total_bytes;
    BlockLimits old_limits = node->limits;
    Error *err = NULL;
    BlockChild *p;

    if (length > (int64_t)BLOCK_MAX_LENGTH) {
        length = -EFBIG;
    }
    if (length < 0) {
        error_setg_errno(errp, (int)-length, "Could not refresh total sector count");
        return (int)length;
    }
    default_limits(node);
    if (drv->refresh_limits) {
        drv->refresh_limits(node, &err);
        if (err) {
            error_propagate(errp, err);
            return -EINVAL;
        }
    }
    complete_limits(&node->limits);
    node->total_bytes = ((uint64_t)length + SECTOR_SIZE - 1) / SECTOR_SIZE * SECTOR_SIZE;
    /* Bytes between members may differ, too: then the parents are told once too often. NOLINTNEXTLINE(bugprone-*) */
    if (node->total_bytes != old_bytes || memcmp(&node->limits, &old_limits, sizeof(old_limits))) {
        list_for_each(p, &node->parents, in_node) {
            p->ops->resized(p);
        }
    }
    return 0;
}

int block_truncate(BlockNode *node, uint64_t bytes, Error **errp)
{
    int ret;

    if (bytes > BLOCK_MAX_LENGTH) {
        error_setg(errp, "offset(%" PRIu64 ") exceeds maximum(%" PRIu64 ")", bytes, BLOCK_MAX_LENGTH);
        return -EFBIG;
    }
    if (node->read_only) {
        error_setg(errp, "Image is read-only");
        return -EACCES;
    }
    if (!node->drv->truncate) {
        error_setg(errp, "Image format driver does not support resize");
        return -ENOTSUP;
    }
    block_drained_begin(node);
    ret = node->drv->truncate(node, bytes, errp);
    if (ret >= 0) {
        ret = block_refresh(node, errp);
    }
    block_drained_end(node);
    return ret;
}
