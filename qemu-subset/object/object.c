/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QOM: the table of types, instances and the tree that they form. */
#include "object/private.h"

#include <string.h>

static GHashTable *types; /* name -> const ObjectType */
static Object *root;

/* --- Types --- */

void object_register_type(const ObjectType *type)
{
    if (!types) {
        types = g_hash_table_new(g_str_hash, g_str_equal);
    }
    if (!g_hash_table_insert(types, (char *)type->name, (void *)type)) {
        g_error("type '%s' registered twice", type->name);
    }
}

const ObjectType *object_find_type(const char *name)
{
    return types && name ? g_hash_table_lookup(types, name) : NULL;
}

void object_for_each_type(void (*fn)(const ObjectType *t, void *opaque), void *opaque)
{
    GHashTableIter it;
    void *t;

    g_hash_table_iter_init(&it, types);
    while (g_hash_table_iter_next(&it, NULL, &t)) {
        fn(t, opaque);
    }
}

const ObjectType *object_type_parent(const ObjectType *t)
{
    return object_find_type(t->parent);
}

bool object_type_is_a(const ObjectType *t, const char *name)
{
    for (; t; t = object_type_parent(t)) {
        if (!strcmp(t->name, name)) {
            return true;
        }
        if (t->interfaces && g_strv_contains(t->interfaces, name)) {
            return true;
        }
    }
    return false;
}

const ObjectProperty *object_type_find_property(const ObjectType *t, const char *name)
{
    for (; t; t = object_type_parent(t)) {
        for (const ObjectProperty *p = t->properties; p && p->name; p++) {
            if (!strcmp(p->name, name)) {
                return p;
            }
        }
    }
    return NULL;
}

static size_t type_size(const ObjectType *t)
{
    for (; t; t = object_type_parent(t)) {
        if (t->size) {
            return t->size;
        }
    }
    return sizeof(Object);
}

/* --- Instances --- */

static void run_init(const ObjectType *t, Object *obj)
{
    if (t->parent) {
        run_init(object_type_parent(t), obj);
    }
    if (t->init) {
        t->init(obj);
    }
}

Object *object_new(const char *name)
{
    const ObjectType *t = object_find_type(name);

    g_assert(t && !t->abstract);
    Object *obj = g_malloc0(type_size(t));
    obj->type = t;
    obj->refcnt = 1;
    run_init(t, obj);
    return obj;
}

Object *object_ref(Object *obj)
{
    obj->refcnt++;
    return obj;
}

void object_unref(Object *obj)
{
    if (!obj || --obj->refcnt) {
        return;
    }
    g_assert(!obj->parent);
    while (obj->child_order && obj->child_order->len) {
        object_unparent(g_ptr_array_index(obj->child_order, obj->child_order->len - 1));
    }
    for (const ObjectType *t = obj->type; t; t = object_type_parent(t)) {
        if (t->finalize) {
            t->finalize(obj);
        }
    }
    g_clear_pointer(&obj->children, g_hash_table_destroy);
    if (obj->child_order) {
        g_ptr_array_free(obj->child_order, TRUE);
    }
    g_free(obj->name);
    g_free(obj);
}

void object_use(Object *obj)
{
    obj->users++;
    object_ref(obj);
}

void object_unuse(Object *obj)
{
    g_assert(obj->users > 0);
    obj->users--;
    object_unref(obj);
}

/* --- Tree --- */

Object *object_root(void)
{
    if (!root) {
        root = object_new("container");
    }
    return root;
}

Object *object_objects(void)
{
    return object_container("/objects");
}

Object *object_child(const Object *parent, const char *name)
{
    return parent->children ? g_hash_table_lookup(parent->children, name) : NULL;
}

GList *object_children(const Object *parent)
{
    return parent->children ? g_hash_table_get_values(parent->children) : NULL;
}

/* "device[*]" asks for the next free number. */
static char *number_name(const Object *parent, const char *name)
{
    size_t len = strlen(name);

    if (len < 3 || strcmp(name + len - 3, "[*]")) {
        return g_strdup(name);
    }
    for (unsigned int i = 0;; i++) {
        char *full = g_strdup_printf("%.*s[%u]", (int)(len - 3), name, i);
        if (!object_child(parent, full)) {
            return full;
        }
        g_free(full);
    }
}

bool object_add_child(Object *parent, const char *name, Object *child, Error **errp)
{
    g_assert(!child->parent);
    g_autofree char *full = number_name(parent, name);

    if (object_find_property(parent, full)) {
        error_setg(errp, "attempt to add duplicate property '%s' to object (type '%s')", full,
                   parent->type->name);
        return false;
    }
    if (!parent->children) {
        parent->children = g_hash_table_new(g_str_hash, g_str_equal);
        parent->child_order = g_ptr_array_new();
    }
    child->name = g_steal_pointer(&full);
    child->parent = parent;
    object_ref(child);
    g_hash_table_insert(parent->children, child->name, child);
    g_ptr_array_add(parent->child_order, child);
    return true;
}

void object_unparent(Object *obj)
{
    Object *parent = obj->parent;

    if (!parent) {
        return;
    }
    g_hash_table_remove(parent->children, obj->name);
    g_ptr_array_remove(parent->child_order, obj);
    obj->parent = NULL;
    g_clear_pointer(&obj->name, g_free);
    object_unref(obj);
}

Object *object_container(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    Object *obj = object_root();

    g_assert(path[0] == '/');
    for (int i = 1; parts[i] && *parts[i]; i++) {
        Object *next = object_child(obj, parts[i]);
        if (!next) {
            next = object_new("container");
            object_add_child(obj, parts[i], next, &error_abort);
            object_unref(next);
        }
        obj = next;
    }
    return obj;
}

static Object *link_target(Object *obj, const char *name)
{
    const ObjectProperty *p = object_find_property(obj, name);

    if (!p || p->kind != PROP_LINK || !p->get) {
        return NULL;
    }
    json_t *v = p->get(obj, p, NULL);
    const char *path = json_string_value(v);
    Object *target = path && path[0] == '/' ? object_resolve(path, NULL) : NULL;
    json_decref(v);
    return target;
}

static Object *resolve_below(Object *obj, char **parts)
{
    for (; obj && *parts; parts++) {
        if (**parts) {
            Object *next = object_child(obj, *parts);
            obj = next ? next : link_target(obj, *parts);
        }
    }
    return obj;
}

/* A partial path may start anywhere in the tree; two different hits make it ambiguous. */
static void resolve_partial(Object *at, char **parts, Object **found, bool *ambiguous)
{
    Object *hit = resolve_below(at, parts);

    if (hit) {
        if (*found && *found != hit) {
            *ambiguous = true;
        }
        *found = hit;
    }
    for (unsigned int i = 0; at->child_order && i < at->child_order->len; i++) {
        resolve_partial(g_ptr_array_index(at->child_order, i), parts, found, ambiguous);
    }
}

Object *object_resolve(const char *path, bool *ambiguous)
{
    bool many = false;
    Object *found = NULL;
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);

    if (path[0] == '/') {
        found = resolve_below(object_root(), parts);
    } else {
        resolve_partial(object_root(), parts, &found, &many);
    }
    if (ambiguous) {
        *ambiguous = many;
    }
    return many ? NULL : found;
}

char *object_path(const Object *obj)
{
    if (obj == root) {
        return g_strdup("/");
    }
    GString *path = g_string_new(NULL);
    for (; obj && obj != root; obj = obj->parent) {
        if (!obj->parent) {
            g_string_free(path, TRUE);
            return NULL;
        }
        g_string_prepend(path, obj->name);
        g_string_prepend_c(path, '/');
    }
    return g_string_free(path, FALSE);
}

static const ObjectType base_types[] = {
    {.name = "object", .abstract = true},
    {.name = "container", .parent = "object"},
};

void object_register_base_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(base_types); i++) {
        object_register_type(&base_types[i]);
    }
}
