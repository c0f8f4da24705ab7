/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects that a user makes and deletes: -object, object-add, object-del. */
#include "object/private.h"

#include "qapi/keyval.h"
#include "qapi/opts.h"

#include <string.h>

#define TYPE_USER_CREATABLE "user-creatable"

bool object_complete(Object *obj, Error **errp)
{
    for (const ObjectType *t = obj->type; t; t = object_type_parent(t)) {
        if (t->complete) {
            return t->complete(obj, errp);
        }
    }
    return true;
}

static const char *frame_string(json_t *options, const char *key, Error **errp)
{
    json_t *value = json_object_get(options, key);

    if (!value) {
        error_setg(errp, "Parameter '%s' is missing", key);
    } else if (!json_is_string(value)) {
        error_setg(errp, "Invalid parameter type for '%s', expected: string", key);
    }
    return json_string_value(value);
}

static const ObjectType *creatable_type(json_t *options, Error **errp)
{
    const char *name = frame_string(options, "qom-type", errp);

    if (!name) {
        return NULL;
    }
    const ObjectType *t = object_find_type(name);
    if (!t || t->abstract || !object_type_is_a(t, TYPE_USER_CREATABLE)) {
        error_setg(errp, "Parameter 'qom-type' does not accept value '%s'", name);
        return NULL;
    }
    return t;
}

static const char *creatable_id(json_t *options, Error **errp)
{
    const char *id = frame_string(options, "id", errp);

    if (!id) {
        return NULL;
    }
    return opt_check_id(id, errp) ? id : NULL;
}

static bool is_frame_key(const char *key)
{
    return !strcmp(key, "qom-type") || !strcmp(key, "id");
}

static json_t *check_one(const ObjectProperty *p, json_t *value, PropertyText from, Error **errp)
{
    if (from != PROPERTY_JSON && json_is_string(value)) {
        return property_from_text(p, json_string_value(value), from, errp);
    }
    return property_check(p, value, errp) ? json_incref(value) : NULL;
}

static bool has_required(const ObjectType *t, const json_t *options, Error **errp)
{
    for (; t; t = object_type_parent(t)) {
        for (const ObjectProperty *p = t->properties; p && p->name; p++) {
            if (p->required && !json_object_get(options, p->name)) {
                error_setg(errp, "Parameter '%s' is missing", p->name);
                return false;
            }
        }
    }
    return true;
}

json_t *user_creatable_check(json_t *options, PropertyText from, Error **errp)
{
    g_autoptr(json_t) out = json_object();
    const char *key;
    json_t *value;
    const ObjectType *t = creatable_type(options, errp);
    const char *id = t ? creatable_id(options, errp) : NULL;

    if (!id) {
        return NULL;
    }
    json_object_foreach(options, key, value)
    {
        const ObjectProperty *p = object_type_find_property(t, key);
        if (is_frame_key(key)) {
            json_object_set(out, key, value);
            continue;
        }
        if (!p || !p->set) {
            error_setg(errp, from == PROPERTY_TEXT_OBJECT ? "Invalid parameter '%s'" : "Parameter '%s' is unexpected", key);
            return NULL;
        }
        json_t *typed = check_one(p, value, from, errp);
        if (!typed) {
            return NULL;
        }
        json_object_set_new(out, key, typed);
    }
    return has_required(t, out, errp) ? g_steal_pointer(&out) : NULL;
}

static bool set_all(Object *obj, json_t *options, Error **errp)
{
    const char *key;
    json_t *value;

    json_object_foreach(options, key, value)
    {
        if (is_frame_key(key)) {
            continue;
        }
        const ObjectProperty *p = object_type_find_property(obj->type, key);
        if (!p || !p->set) {
            error_setg(errp, "Parameter '%s' is unexpected", key);
            return false;
        }
        if (!object_set(obj, key, value, errp)) {
            return false;
        }
    }
    return true;
}

bool user_creatable_add(json_t *options, Error **errp)
{
    const ObjectType *t = creatable_type(options, errp);
    const char *id = t ? creatable_id(options, errp) : NULL;

    if (!id) {
        return false;
    }
    Object *obj = object_new(t->name);
    /* In the tree before complete(): an IOThread names its thread after its id. */
    bool ok = set_all(obj, options, errp) && object_add_child(object_objects(), id, obj, errp);
    if (ok && !object_complete(obj, errp)) {
        object_unparent(obj);
        ok = false;
    }
    object_unref(obj);
    return ok;
}

static bool may_delete(Object *obj, const char *id, Error **errp)
{
    for (const ObjectType *t = obj->type; t; t = object_type_parent(t)) {
        if (t->can_be_deleted) {
            return t->can_be_deleted(obj, errp);
        }
    }
    if (obj->users) {
        error_setg(errp, "object '%s' is in use, can not be deleted", id);
        return false;
    }
    return true;
}

bool user_creatable_del(const char *id, Error **errp)
{
    Object *obj = object_child(object_objects(), id);

    if (!obj) {
        error_setg(errp, "object '%s' not found", id);
        return false;
    }
    if (!may_delete(obj, id, errp)) {
        return false;
    }
    object_unparent(obj);
    return true;
}

/* --- Help --- */

static int compare_strings(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void collect_type(const ObjectType *t, void *opaque)
{
    if (!t->abstract && object_type_is_a(t, TYPE_USER_CREATABLE)) {
        g_ptr_array_add(opaque, g_strdup(t->name));
    }
}

static void collect_options(const ObjectType *t, GPtrArray *lines)
{
    for (; t; t = object_type_parent(t)) {
        for (const ObjectProperty *p = t->properties; p && p->name; p++) {
            if (!p->set) {
                continue;
            }
            g_autofree char *head = g_strdup_printf("%s=<%s>", p->name, object_property_type(p));
            g_ptr_array_add(lines, p->description ? g_strdup_printf("%-22s - %s", head, p->description)
                                                  : g_strdup(head));
        }
    }
}

bool object_help(const char *name, GString *out, Error **errp)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);

    if (name) {
        const ObjectType *t = object_find_type(name);
        if (!t || t->abstract || !object_type_is_a(t, TYPE_USER_CREATABLE)) {
            error_setg(errp, "Parameter 'qom-type' does not accept value '%s'", name);
            return false;
        }
        collect_options(t, lines);
        g_string_append_printf(out, "%s options:\n", name);
    } else {
        object_for_each_type(collect_type, lines);
        g_string_append(out, "List of user creatable objects:\n");
    }
    g_ptr_array_sort(lines, compare_strings);
    for (guint i = 0; i < lines->len; i++) {
        g_string_append_printf(out, "  %s\n", (char *)g_ptr_array_index(lines, i));
    }
    return true;
}

void object_cleanup(void)
{
    Object *objects = object_objects();

    while (objects->child_order && objects->child_order->len) {
        object_unparent(g_ptr_array_index(objects->child_order, objects->child_order->len - 1));
    }
}
