/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Describing nodes, backends and their statistics to clients. Main thread. */
#include "block/internal.h"

#include "qapi/qapi-commands-block.h"

/* --- Nodes --- */

static BlockLimitsInfo *limits_info(const BlockLimits *l)
{
    BlockLimitsInfo *info = g_new0(BlockLimitsInfo, 1);

    info->request_alignment = l->request_alignment;
    info->has_max_discard = l->max_pdiscard;
    info->max_discard = l->max_pdiscard;
    info->has_discard_alignment = l->pdiscard_alignment;
    info->discard_alignment = (uint32_t)l->pdiscard_alignment;
    info->has_max_write_zeroes = l->max_pwrite_zeroes;
    info->max_write_zeroes = l->max_pwrite_zeroes;
    info->has_write_zeroes_alignment = l->pwrite_zeroes_alignment;
    info->write_zeroes_alignment = (uint32_t)l->pwrite_zeroes_alignment;
    info->has_max_transfer = l->max_transfer;
    info->max_transfer = (uint32_t)MIN(l->max_transfer, UINT32_MAX);
    info->max_iov = l->max_iov;
    info->min_mem_alignment = l->min_mem_alignment;
    info->opt_mem_alignment = l->opt_mem_alignment;
    return info;
}

/* Whether the driver, or the one below that it stands for, keeps an image. */
static bool has_image(const BlockNode *node)
{
    while (node->drv->forwards) {
        node = node->file->node;
    }
    return node->drv->specific_info != NULL;
}

static ImageInfo *image_info(BlockNode *node)
{
    ImageInfo *info = g_new0(ImageInfo, 1);
    int64_t allocated = node->drv->get_allocated_size ? node->drv->get_allocated_size(node) : -ENOTSUP;

    info->filename = g_strdup(node->filename);
    info->format = g_strdup(node->drv->format_name);
    info->virtual_size = (int64_t)node->total_bytes;
    info->has_actual_size = allocated >= 0;
    info->actual_size = allocated;
    info->has_dirty_flag = has_image(node);
    info->format_specific = node->drv->specific_info ? node->drv->specific_info(node) : NULL;
    info->limits = limits_info(&node->limits);
    return info;
}

BlockDeviceInfo *block_device_info(BlockNode *node, const BlockBackend *blk)
{
    BlockDeviceInfo *info = g_new0(BlockDeviceInfo, 1);
    BlockdevChildList **tail = &info->children;
    BlockChild *c;

    info->file = g_strdup(node->filename);
    info->node_name = g_strdup(node->name);
    info->ro = node->read_only;
    info->drv = g_strdup(node->drv->format_name);
    list_for_each(c, &node->children, in_parent) {
        BlockdevChild *child = g_new0(BlockdevChild, 1);

        child->child = g_strdup(c->role);
        child->node_name = g_strdup(c->node->name);
        QAPI_LIST_APPEND(tail, child);
    }
    info->has_active = info->active = true;
    info->detect_zeroes = node->detect_zeroes;
    info->image = image_info(node);
    info->cache = g_new0(BlockdevCacheInfo, 1);
    info->cache->writeback = blk ? blk->write_cache : true;
    info->cache->direct = node->direct;
    info->cache->no_flush = node->no_flush;
    return info;
}

BlockDeviceInfoList *qmp_query_named_block_nodes(bool has_flat, bool flat, Error **errp)
{
    BlockDeviceInfoList *list = NULL, **tail = &list;
    BlockNode *node;

    for (node = block_node_next(NULL); node; node = block_node_next(node)) {
        QAPI_LIST_APPEND(tail, block_device_info(node, NULL));
    }
    return list;
}

/* --- Backends --- */

bool block_info_visible(const BlockBackend *blk)
{
    return blk->name || blk->dev;
}

BlockInfo *block_info(BlockBackend *blk)
{
    BlockInfo *info = g_new0(BlockInfo, 1);

    info->device = g_strdup(blk_name(blk));
    info->qdev = blk_dev_path(blk);
    info->type = g_strdup("unknown");
    info->removable = !blk->dev;
    if (blk->root) {
        info->inserted = block_device_info(blk->root->node, blk);
    }
    info->has_io_status = blk_iostatus_visible(blk);
    info->io_status = blk->iostatus;
    return info;
}

BlockInfoList *qmp_query_block(Error **errp)
{
    BlockInfoList *list = NULL, **tail = &list;
    BlockBackend *blk;

    for (blk = blk_next(NULL); blk; blk = blk_next(blk)) {
        if (block_info_visible(blk)) {
            QAPI_LIST_APPEND(tail, block_info(blk));
        }
    }
    return list;
}

/* --- Statistics --- */

/* The byte behind the last that was written through any user of @node. */
static uint64_t highest_written(const BlockNode *node)
{
    uint64_t highest = 0;
    BlockChild *p;

    list_for_each(p, &node->parents, in_node) {
        uint64_t h;

        if (p->ops == &block_node_parent_ops) {
            const BlockNode *parent = p->parent;

            h = highest_written(parent);
            h += h ? parent->forward_offset : 0;
        } else {
            BlockAccounting a;

            blk_stats(p->parent, &a);
            h = a.wr_highest_offset;
        }
        highest = MAX(highest, h);
    }
    return highest;
}

static BlockStats *node_stats(BlockNode *node)
{
    BlockStats *s = g_new0(BlockStats, 1);

    s->node_name = g_strdup(node->name);
    s->stats = g_new0(BlockDeviceStats, 1);
    s->stats->wr_highest_offset = (int64_t)highest_written(node);
    s->driver_specific = node->drv->specific_stats ? node->drv->specific_stats(node) : NULL;
    if (node->file) {
        s->parent = node_stats(node->file->node);
    }
    return s;
}

static void fill_stats(BlockDeviceStats *s, const BlockBackend *blk)
{
    BlockAccounting a;

    blk_stats(blk, &a);
    /* Clients know zeroes as writes. */
    s->rd_bytes = (int64_t)a.bytes[BLOCK_READ];
    s->wr_bytes = (int64_t)(a.bytes[BLOCK_WRITE] + a.bytes[BLOCK_WRITE_ZEROES]);
    s->unmap_bytes = (int64_t)a.bytes[BLOCK_DISCARD];
    s->rd_operations = (int64_t)a.ops[BLOCK_READ];
    s->wr_operations = (int64_t)(a.ops[BLOCK_WRITE] + a.ops[BLOCK_WRITE_ZEROES]);
    s->flush_operations = (int64_t)a.ops[BLOCK_FLUSH];
    s->unmap_operations = (int64_t)a.ops[BLOCK_DISCARD];
    s->rd_total_time_ns = (int64_t)a.total_ns[BLOCK_READ];
    s->wr_total_time_ns = (int64_t)(a.total_ns[BLOCK_WRITE] + a.total_ns[BLOCK_WRITE_ZEROES]);
    s->flush_total_time_ns = (int64_t)a.total_ns[BLOCK_FLUSH];
    s->unmap_total_time_ns = (int64_t)a.total_ns[BLOCK_DISCARD];
    s->rd_merged = (int64_t)a.merged[BLOCK_READ];
    s->wr_merged = (int64_t)(a.merged[BLOCK_WRITE] + a.merged[BLOCK_WRITE_ZEROES]);
    s->unmap_merged = (int64_t)a.merged[BLOCK_DISCARD];
    s->failed_rd_operations = (int64_t)a.failed[BLOCK_READ];
    s->failed_wr_operations = (int64_t)(a.failed[BLOCK_WRITE] + a.failed[BLOCK_WRITE_ZEROES]);
    s->failed_flush_operations = (int64_t)a.failed[BLOCK_FLUSH];
    s->failed_unmap_operations = (int64_t)a.failed[BLOCK_DISCARD];
    s->invalid_rd_operations = (int64_t)a.invalid[BLOCK_READ];
    s->invalid_wr_operations = (int64_t)(a.invalid[BLOCK_WRITE] + a.invalid[BLOCK_WRITE_ZEROES]);
    s->invalid_flush_operations = (int64_t)a.invalid[BLOCK_FLUSH];
    s->invalid_unmap_operations = (int64_t)a.invalid[BLOCK_DISCARD];
    s->account_invalid = blk->account_invalid;
    s->account_failed = blk->account_failed;
    s->has_idle_time_ns = a.last_access_ns > 0;
    s->idle_time_ns = MAX(aio_now_ns() - a.last_access_ns, 0);
}

static BlockStats *backend_stats(BlockBackend *blk)
{
    BlockStats *s = blk->root ? node_stats(blk->root->node) : g_new0(BlockStats, 1);

    if (!s->stats) {
        s->stats = g_new0(BlockDeviceStats, 1);
    }
    s->device = g_strdup(blk_name(blk));
    s->qdev = blk_dev_path(blk);
    fill_stats(s->stats, blk);
    return s;
}

BlockStatsList *qmp_query_blockstats(bool has_query_nodes, bool query_nodes, Error **errp)
{
    BlockStatsList *list = NULL, **tail = &list;
    BlockBackend *blk;
    BlockNode *node;

    if (query_nodes) {
        for (node = block_node_next(NULL); node; node = block_node_next(node)) {
            QAPI_LIST_PREPEND(list, node_stats(node));
        }
        return list;
    }
    for (blk = blk_next(NULL); blk; blk = blk_next(blk)) {
        if (block_info_visible(blk)) {
            QAPI_LIST_APPEND(tail, backend_stats(blk));
        }
    }
    return list;
}
