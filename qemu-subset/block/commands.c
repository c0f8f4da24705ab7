/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP commands that change the graph, and -blockdev. Main thread. */
#include "block/commands.h"
#include "block/internal.h"

#include "qapi/keyval.h"
#include "qapi/qapi-commands-block.h"
#include "qapi/qapi-visit-block.h"

#include <string.h>

void qmp_blockdev_add(BlockdevOptions *arg, Error **errp)
{
    BlockNode *node;

    if (!arg->node_name) {
        error_setg(errp, "'node-name' must be specified for the root node");
        return;
    }
    node = block_open(arg, errp);
    if (node) {
        node->monitor_owned = true;
    }
}

static bool has_backend(const BlockNode *node)
{
    BlockChild *p;

    list_for_each(p, &node->parents, in_node) {
        if (p->ops != &block_node_parent_ops) {
            return true;
        }
    }
    return false;
}

void qmp_blockdev_del(const char *node_name, Error **errp)
{
    BlockNode *node = block_node_find(node_name);

    if (!node) {
        error_setg(errp, "Failed to find node with node-name='%s'", node_name);
    } else if (has_backend(node)) {
        error_setg(errp, "Node %s is in use", node_name);
    } else if (!node->monitor_owned) {
        error_setg(errp, "Node %s is not owned by the monitor", node_name);
    } else if (node->refcnt > 1) {
        error_setg(errp, "Block device %s is in use", node_name);
    } else {
        node->monitor_owned = false;
        block_node_unref(node);
    }
}

void qmp_block_resize(const char *device, const char *node_name, int64_t size, Error **errp)
{
    BlockNode *node = block_lookup(device, node_name, errp);
    BlockBackend *blk;

    if (!node) {
        return;
    }
    if (size < 0) {
        error_setg(errp, "Parameter 'size' expects a >0 size");
        return;
    }
    /* A user of our own, so that those who do not share resizing can object. */
    blk = blk_new(BLK_PERM_RESIZE, BLK_PERM_ALL);
    if (blk_insert_node(blk, node, errp) == 0) {
        block_truncate(node, (uint64_t)size, errp);
    }
    blk_unref(blk);
}

static BlockdevOptions *from_json(json_t *json, QapiSyntax syntax, Error **errp)
{
    g_autoptr(Visitor) v = visitor_input_new(json, syntax);
    BlockdevOptions *o = NULL;

    return visit_type_BlockdevOptions(v, NULL, &o, errp) ? o : NULL;
}

static BlockdevOptions *parse_option(const char *arg, Error **errp)
{
    g_autoptr(json_t) json = NULL;
    bool help = false;

    if (*arg == '{') {
        json = qjson_parse(arg, errp);
        return json ? from_json(json, QAPI_JSON, errp) : NULL;
    }
    json = keyval_parse(arg, "driver", &help, errp);
    if (!json) {
        return NULL;
    }
    if (help) {
        error_setg(errp, "Help is not available for this option");
        return NULL;
    }
    return from_json(json, QAPI_KEYVAL, errp);
}

bool blockdev_check_option(const char *arg, Error **errp)
{
    g_autoptr(BlockdevOptions) o = parse_option(arg, errp);

    return o != NULL;
}

bool blockdev_add_option(const char *arg, Error **errp)
{
    g_autoptr(BlockdevOptions) o = parse_option(arg, errp);
    Error *err = NULL;

    if (!o) {
        return false;
    }
    qmp_blockdev_add(o, &err);
    if (err) {
        error_propagate(errp, err);
        return false;
    }
    return true;
}
