/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drained sections: while one holds a node, nothing above it submits and nothing is in flight. */
#include "block/internal.h"

static bool busy(const BlockNode *node)
{
    BlockChild *p;

    list_for_each(p, &node->parents, in_node) {
        if (p->ops->drained_poll(p)) {
            return true;
        }
    }
    return false;
}

static void begin(BlockNode *node)
{
    BlockChild *p;

    if (node->quiesce++ == 0) {
        list_for_each(p, &node->parents, in_node) {
            p->ops->drained_begin(p);
        }
    }
}

void block_drained_begin(BlockNode *node)
{
    begin(node);
    AIO_WAIT_WHILE(busy(node));
}

void block_drained_end(BlockNode *node)
{
    BlockChild *p;

    g_assert(node->quiesce > 0);
    if (--node->quiesce == 0) {
        list_for_each(p, &node->parents, in_node) {
            p->ops->drained_end(p);
        }
    }
}

static bool any_busy(void)
{
    BlockNode *node;

    list_for_each(node, &block_all_nodes, all) {
        if (busy(node)) {
            return true;
        }
    }
    return false;
}

/* Nodes that come into being inside a section do not belong to it: each section remembers its own. */
static GQueue held = G_QUEUE_INIT;

/* All are told first, so that they come to rest at the same time. */
void block_drain_all_begin(void)
{
    GPtrArray *section = g_ptr_array_new();
    BlockNode *node;

    list_for_each(node, &block_all_nodes, all) {
        g_ptr_array_add(section, block_node_ref(node));
        begin(node);
    }
    g_queue_push_head(&held, section);
    AIO_WAIT_WHILE(any_busy());
}

void block_drain_all_end(void)
{
    GPtrArray *section = g_queue_pop_head(&held);

    g_assert(section);
    for (guint i = 0; i < section->len; i++) {
        block_drained_end(g_ptr_array_index(section, i));
    }
    for (guint i = 0; i < section->len; i++) {
        block_node_unref(g_ptr_array_index(section, i));
    }
    g_ptr_array_free(section, TRUE);
}
