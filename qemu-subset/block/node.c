/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes: the driver table, names, opening with the options all drivers share, references. */
#include "block/internal.h"

#include "qapi/keyval.h"

#include <string.h>

ListNode block_all_nodes = { &block_all_nodes, &block_all_nodes };
static const BlockDriver *const *drivers;

void block_register_drivers(const BlockDriver *const *table)
{
    drivers = table;
}

const BlockDriver *block_find_driver(const char *format_name)
{
    for (const BlockDriver *const *d = drivers; d && *d; d++) {
        if (!strcmp((*d)->format_name, format_name)) {
            return *d;
        }
    }
    return NULL;
}

/* --- Names --- */

BlockNode *block_node_find(const char *name)
{
    BlockNode *node;

    list_for_each(node, &block_all_nodes, all) {
        if (!strcmp(node->name, name)) {
            return node;
        }
    }
    return NULL;
}

BlockNode *block_node_next(BlockNode *node)
{
    ListNode *next = node ? node->all.next : block_all_nodes.next;

    return next == &block_all_nodes ? NULL : list_entry(next, BlockNode, all);
}

BlockNode *block_lookup(const char *device, const char *node_name, Error **errp)
{
    BlockBackend *blk = device ? blk_by_name(device) : NULL;
    BlockNode *node;

    if (blk) {
        node = blk_node(blk);
        if (!node) {
            error_setg(errp, "Device '%s' has no medium", device);
        }
        return node;
    }
    node = node_name ? block_node_find(node_name) : NULL;
    if (!node) {
        error_setg(errp, "Cannot find device='%s' nor node-name='%s'", device ? device : "", node_name ? node_name : "");
    }
    return node;
}

/* A name that nobody could have guessed, so that clients do not rely on it. */
static void auto_name(BlockNode *node)
{
    static unsigned int counter;

    snprintf(node->name, sizeof(node->name), "#block%u%02d", counter++, g_random_int_range(0, 100));
}

static bool check_name(const BlockNode *node, const char *name, Error **errp)
{
    if (!qapi_id_wellformed(name)) {
        error_setg(errp, "Invalid node-name: '%s'", name);
    } else if (blk_by_name(name)) {
        error_setg(errp, "node-name=%s is conflicting with a device id", name);
    } else if (block_node_find(name)) {
        error_setg(errp, "Duplicate nodes with node-name='%s'", name);
    } else if (strlen(name) >= sizeof(node->name)) {
        error_setg(errp, "Node name too long");
    } else {
        return true;
    }
    return false;
}

/* --- File names --- */

json_t *block_options_as_text(const json_t *v)
{
    const char *key;
    json_t *out, *member;
    size_t i;

    switch (json_typeof(v)) {
    case JSON_OBJECT:
        out = json_object();
        json_object_foreach((json_t *)v, key, member) {
            json_object_set_new(out, key, block_options_as_text(member));
        }
        return out;
    case JSON_ARRAY:
        out = json_array();
        json_array_foreach((json_t *)v, i, member) {
            json_array_append_new(out, block_options_as_text(member));
        }
        return out;
    case JSON_TRUE:
        return json_string("on");
    case JSON_FALSE:
        return json_string("off");
    case JSON_INTEGER:
        return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
    case JSON_REAL:
        return json_sprintf("%.17g", json_real_value(v));
    case JSON_NULL:
        return json_string("");
    default:
        return json_string(json_string_value(v));
    }
}

json_t *block_full_options(BlockNode *node)
{
    json_t *o = node->drv->strong_options ? node->drv->strong_options(node) : json_object();
    BlockChild *c;

    if (node->text_options) {
        json_t *text = block_options_as_text(o);

        json_decref(o);
        o = text;
    }
    json_object_set_new(o, "driver", json_string(node->drv->format_name));
    list_for_each(c, &node->children, in_parent) {
        json_object_set_new(o, c->role, block_full_options(c->node));
    }
    return o;
}

void block_refresh_filename(BlockNode *node)
{
    char *plain = node->drv->plain_filename ? node->drv->plain_filename(node) : NULL;

    if (!plain) {
        g_autoptr(json_t) o = block_full_options(node);
        GString *text = qjson_to_string(o, false);

        plain = g_strconcat("json:", text->str, NULL);
        g_string_free(text, TRUE);
    }
    g_free(node->filename);
    node->filename = plain;
}

/* --- Opening --- */

static bool set_common_options(BlockNode *node, const BlockNode *parent, const BlockdevOptions *o, Error **errp)
{
    const BlockdevCacheOptions *cache = o->cache;

    node->writeback = true;
    node->direct = cache && cache->has_direct ? cache->direct : parent && parent->direct;
    node->no_flush = cache && cache->has_no_flush ? cache->no_flush : parent && parent->no_flush;
    node->read_only = o->has_read_only ? o->read_only : parent && parent->read_only;
    node->auto_read_only = o->has_auto_read_only ? o->auto_read_only : parent && parent->auto_read_only;
    node->force_share = o->has_force_share ? o->force_share : parent && parent->force_share;
    /* What a parent refuses to pass on does not arrive; what it passes on is meant. */
    node->discard_unmap = o->has_discard ? o->discard == BLOCKDEV_DISCARD_OPTIONS_UNMAP : parent != NULL;
    if (o->has_detect_zeroes) {
        node->detect_zeroes = o->detect_zeroes;
    }
    if (node->detect_zeroes == BLOCKDEV_DETECT_ZEROES_OPTIONS_UNMAP && !node->discard_unmap) {
        error_setg(errp, "setting detect-zeroes to unmap is not allowed without setting discard operation to unmap");
        return false;
    }
    if (node->force_share && !node->read_only) {
        error_setg(errp, "force-share=on can only be used with read-only images");
        return false;
    }
    return true;
}

static BlockNode *node_new(const BlockDriver *drv)
{
    BlockNode *node = g_new0(BlockNode, 1);

    node->drv = drv;
    node->state = g_malloc0(MAX(drv->state_size, 1));
    node->refcnt = 1;
    list_init(&node->children);
    list_init(&node->parents);
    list_init(&node->all);
    list_init(&node->serial.ranges);
    pthread_mutex_init(&node->serial.lock, NULL);
    node->contexts = g_array_new(FALSE, TRUE, sizeof(BlockNodeContext));
    return node;
}

/* The driver has closed; no parent, child, context or request is left. */
static void node_free(BlockNode *node)
{
    g_assert(list_empty(&node->parents) && list_empty(&node->children) && node->contexts->len == 0);
    list_remove(&node->all);
    g_array_free(node->contexts, TRUE);
    pthread_mutex_destroy(&node->serial.lock);
    g_free(node->filename);
    g_free(node->state);
    g_free(node);
}

static BlockNode *open_node(const BlockdevOptions *o, BlockNode *parent, bool probed, Error **errp)
{
    const char *driver = BlockdevDriver_str(o->driver);
    const BlockDriver *drv = block_find_driver(driver);
    BlockNode *node;

    if (!drv) {
        error_setg(errp, "Unknown driver '%s'", driver);
        return NULL;
    }
    node = node_new(drv);
    node->probed = probed;
    if ((o->node_name && !check_name(node, o->node_name, errp)) || !set_common_options(node, parent, o, errp) ||
        drv->open(node, o, errp) < 0) {
        node_free(node);
        return NULL;
    }
    /* A child with an inline definition may have taken the name meanwhile. */
    if ((o->node_name && !check_name(node, o->node_name, errp)) || block_refresh(node, errp) < 0) {
        drv->close(node);
        node_free(node);
        return NULL;
    }
    if (o->node_name) {
        g_strlcpy(node->name, o->node_name, sizeof(node->name));
    } else {
        auto_name(node);
    }
    block_refresh_filename(node);
    list_prepend(&block_all_nodes, &node->all);
    return node;
}

BlockNode *block_open(const BlockdevOptions *opts, Error **errp)
{
    return open_node(opts, NULL, false, errp);
}

BlockNode *block_open_probed(const BlockdevOptions *opts, Error **errp)
{
    return open_node(opts, NULL, true, errp);
}

BlockNode *block_open_ref(BlockNode *parent, const BlockdevRef *ref, Error **errp)
{
    BlockNode *node;

    if (ref->type == QTYPE_QDICT) {
        return open_node(ref->u.definition, parent, false, errp);
    }
    node = block_lookup(ref->u.reference, ref->u.reference, errp);
    return node ? block_node_ref(node) : NULL;
}

BlockNode *block_node_ref(BlockNode *node)
{
    node->refcnt++;
    return node;
}

void block_node_unref(BlockNode *node)
{
    if (!node || --node->refcnt > 0) {
        return;
    }
    /* What is still attached is the main thread's own, for block_rw(). */
    while (node->contexts->len) {
        block_detach_context(node, g_array_index(node->contexts, BlockNodeContext, 0).ctx);
    }
    node->drv->close(node);
    node_free(node);
}

void block_close_all(void)
{
    BlockNode *node = block_node_next(NULL);

    /* Newest first: a parent goes before the child that it was built on. */
    while (node) {
        if (node->monitor_owned) {
            node->monitor_owned = false;
            block_node_unref(node);
            node = block_node_next(NULL);
        } else {
            node = block_node_next(node);
        }
    }
}

void *block_buffer_alloc(BlockNode *node, size_t bytes)
{
    size_t align = MAX(MAX(node->limits.opt_mem_alignment, node->limits.required_mem_alignment), sizeof(void *));
    void *p;

    return posix_memalign(&p, align, MAX(bytes, 1)) ? NULL : p;
}
