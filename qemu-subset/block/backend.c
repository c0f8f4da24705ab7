/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BlockBackend: name, root node, device, permissions and drained sections. Main thread. */
#include "block/internal.h"

#include <string.h>

ListNode blk_all = { &blk_all, &blk_all };

/* --- Life and names --- */

BlockBackend *blk_new(uint32_t perm, uint32_t shared)
{
    BlockBackend *blk = g_new0(BlockBackend, 1);

    blk->refcnt = 1;
    blk->perm = perm;
    blk->shared = shared;
    blk->write_cache = true;
    blk_set_accounting(blk, true, true);
    blk->rerror = BLOCKDEV_ON_ERROR_REPORT;
    blk->werror = BLOCKDEV_ON_ERROR_ENOSPC;
    list_init(&blk->channels);
    list_append(&blk_all, &blk->all);
    return blk;
}

BlockBackend *blk_ref(BlockBackend *blk)
{
    atomic_fetch_add(&blk->refcnt, 1);
    return blk;
}

void blk_unref(BlockBackend *blk)
{
    if (!blk || atomic_fetch_sub(&blk->refcnt, 1) > 1) {
        return;
    }
    g_assert(!blk->dev);
    blk_channel_put(blk->main_channel);
    blk->main_channel = NULL;
    g_assert(list_empty(&blk->channels));
    blk_remove_node(blk);
    list_remove(&blk->all);
    g_free(blk->name);
    g_free(blk);
}

bool blk_set_name(BlockBackend *blk, const char *name, Error **errp)
{
    g_assert(!blk->name && *name);
    if (blk_by_name(name)) {
        error_setg(errp, "Device with id '%s' already exists", name);
        return false;
    }
    if (block_node_find(name)) {
        error_setg(errp, "Device name '%s' conflicts with an existing node name", name);
        return false;
    }
    blk->name = g_strdup(name);
    return true;
}

void blk_clear_name(BlockBackend *blk)
{
    g_free(blk->name);
    blk->name = NULL;
}

const char *blk_name(const BlockBackend *blk)
{
    return blk->name ? blk->name : "";
}

BlockBackend *blk_by_name(const char *name)
{
    BlockBackend *blk;

    list_for_each(blk, &blk_all, all) {
        if (blk->name && !strcmp(blk->name, name)) {
            return blk;
        }
    }
    return NULL;
}

BlockBackend *blk_next(BlockBackend *blk)
{
    ListNode *next = blk ? blk->all.next : blk_all.next;

    return next == &blk_all ? NULL : list_entry(next, BlockBackend, all);
}

/* --- Drained sections --- */

static void quiesce_begin(BlockBackend *blk)
{
    if (blk->quiesce++ == 0) {
        blk_channels_quiesce(blk, true);
    }
}

void blk_drained_begin(BlockBackend *blk)
{
    quiesce_begin(blk);
    AIO_WAIT_WHILE(blk_channels_busy(blk));
}

void blk_drained_end(BlockBackend *blk)
{
    g_assert(blk->quiesce > 0);
    if (--blk->quiesce == 0) {
        blk_channels_quiesce(blk, false);
    }
}

/* --- The root --- */

static char *root_describe(BlockChild *c)
{
    return blk_describe(c->parent);
}

static void root_drained_begin(BlockChild *c)
{
    quiesce_begin(c->parent);
}

static bool root_drained_poll(BlockChild *c)
{
    return blk_channels_busy(c->parent);
}

static void root_drained_end(BlockChild *c)
{
    blk_drained_end(c->parent);
}

static void root_resized(BlockChild *c)
{
    BlockBackend *blk = c->parent;

    if (blk->ops && blk->ops->resized) {
        blk->ops->resized(blk->dev);
    }
}

static const BlockParentOps root_ops = {
    .describe = root_describe,
    .drained_begin = root_drained_begin,
    .drained_poll = root_drained_poll,
    .drained_end = root_drained_end,
    .resized = root_resized,
};

/* All channels from @first up to @last (not included, NULL: all) leave @node. */
static void detach_channels(BlockBackend *blk, BlockNode *node, const BlockChannel *last)
{
    BlockChannel *c;

    list_for_each(c, &blk->channels, link) {
        if (c == last) {
            break;
        }
        block_detach_context(node, c->ctx);
    }
}

int blk_insert_node(BlockBackend *blk, BlockNode *node, Error **errp)
{
    BlockChannel *c;
    int ret;

    g_assert(!blk->root);
    list_for_each(c, &blk->channels, link) {
        ret = block_attach_context(node, c->ctx, errp);
        if (ret < 0) {
            detach_channels(blk, node, c);
            return ret;
        }
    }
    blk->root = block_attach_child(node, "root", &root_ops, blk, NULL, blk->perm, blk->shared, errp);
    if (!blk->root) {
        detach_channels(blk, node, NULL);
        return -EPERM;
    }
    blk_drained_begin(blk);
    blk_channels_update(blk);
    blk_drained_end(blk);
    return 0;
}

void blk_remove_node(BlockBackend *blk)
{
    BlockChild *root = blk->root;

    if (!root) {
        return;
    }
    blk_drained_begin(blk);
    blk->root = NULL;
    blk_channels_update(blk);
    detach_channels(blk, root->node, NULL);
    block_detach_child(root);
    blk_drained_end(blk);
}

BlockNode *blk_node(const BlockBackend *blk)
{
    return blk->root ? blk->root->node : NULL;
}

bool blk_set_perm(BlockBackend *blk, uint32_t perm, uint32_t shared, Error **errp)
{
    if (blk->root && !block_child_set_perm(blk->root, perm, shared, errp)) {
        return false;
    }
    blk->perm = perm;
    blk->shared = shared;
    return true;
}

uint64_t blk_length(const BlockBackend *blk)
{
    return blk->root ? blk->root->node->total_bytes : 0;
}

bool blk_writable(const BlockBackend *blk)
{
    return blk->root && !blk->root->node->read_only;
}

/* --- The device --- */

int blk_attach_dev(BlockBackend *blk, const BlockDeviceOps *ops, void *dev)
{
    if (blk->dev) {
        return -EBUSY;
    }
    blk->ops = ops;
    blk->dev = dev;
    blk->iostatus_enabled = true;
    blk->iostatus = BLOCK_DEVICE_IO_STATUS_OK;
    blk_ref(blk);
    return 0;
}

void blk_detach_dev(BlockBackend *blk, void *dev)
{
    g_assert(blk->dev == dev);
    blk->ops = NULL;
    blk->dev = NULL;
    blk->iostatus_enabled = false;
    blk_unref(blk);
}

void *blk_dev(const BlockBackend *blk)
{
    return blk->dev;
}

char *blk_dev_path(const BlockBackend *blk)
{
    return blk->ops && blk->ops->get_path ? blk->ops->get_path(blk->dev) : NULL;
}

char *blk_describe(const BlockBackend *blk)
{
    g_autofree char *path = blk->name ? NULL : blk_dev_path(blk);

    if (!blk->name && !path) {
        return g_strdup("an unnamed block device");
    }
    return g_strdup_printf("block device '%s'", blk->name ? blk->name : path);
}

void blk_set_write_cache(BlockBackend *blk, bool on)
{
    BlockChannel *c;

    blk->write_cache = on;
    list_for_each(c, &blk->channels, link) {
        atomic_store(&c->fua, !on);
    }
}

void blk_set_accounting(BlockBackend *blk, bool invalid, bool failed)
{
    atomic_store_explicit(&blk->account_invalid, invalid, memory_order_relaxed);
    atomic_store_explicit(&blk->account_failed, failed, memory_order_relaxed);
}

void blk_accounting(const BlockBackend *blk, bool *invalid, bool *failed)
{
    *invalid = blk->account_invalid;
    *failed = blk->account_failed;
}

bool blk_write_cache(const BlockBackend *blk)
{
    return blk->write_cache;
}

/* --- Requests of the main thread itself --- */

typedef struct SyncRequest {
    BlockRequest req;
    bool over;
} SyncRequest;

static void sync_done(BlockRequest *req)
{
    container_of(req, SyncRequest, req)->over = true;
}

static int sync_rw(BlockBackend *blk, BlockOp op, uint64_t offset, uint64_t bytes, void *buf, unsigned int flags)
{
    struct iovec iov = { buf, bytes };
    SyncRequest r = {
        .req = { .op = op, .flags = (uint8_t)flags, .iov = &iov, .niov = bytes ? 1 : 0, .offset = offset, .bytes = bytes,
                 .done = sync_done },
    };

    if (!blk->main_channel) {
        g_autoptr(Error) err = NULL;

        blk->main_channel = blk_channel_get(blk, aio_context_main(), &err);
        if (!blk->main_channel) {
            return -EIO;
        }
    }
    if (blk_submit(blk->main_channel, &r.req) == BLOCK_QUEUED) {
        while (!r.over) {
            aio_poll(aio_context_main(), true);
        }
    }
    return r.req.ret;
}

int blk_pread(BlockBackend *blk, uint64_t offset, uint64_t bytes, void *buf)
{
    return sync_rw(blk, BLOCK_READ, offset, bytes, buf, 0);
}

int blk_pwrite(BlockBackend *blk, uint64_t offset, uint64_t bytes, const void *buf, unsigned int flags)
{
    return sync_rw(blk, BLOCK_WRITE, offset, bytes, (void *)buf, flags);
}

int blk_flush(BlockBackend *blk)
{
    return sync_rw(blk, BLOCK_FLUSH, 0, 0, NULL, 0);
}
