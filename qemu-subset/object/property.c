/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties: finding, listing, getting, setting, and the conversion of text. */
#include "object/object.h"
#include "qapi/keyval.h"

#include <string.h>

/* Synthetic properties that every object has, or that its children and links imply. */
static json_t *get_type(Object *obj, const ObjectProperty *prop, Error **errp)
{
    return json_string(obj->type->name);
}

static const ObjectProperty type_property = {.name = "type", .kind = PROP_STRING, .get = get_type};

static json_t *get_child(Object *obj, const ObjectProperty *prop, Error **errp)
{
    g_autofree char *path = object_path((Object *)prop->opaque);
    return json_string(path ? path : "");
}

/* A child's property is made on demand: it holds no state of its own. */
static const ObjectProperty *child_property(const Object *child)
{
    static __thread ObjectProperty p;

    p = (ObjectProperty){.name = child->name, .kind = PROP_CHILD, .get = get_child, .opaque = child};
    return &p;
}

const ObjectProperty *object_find_property(const Object *obj, const char *name)
{
    const ObjectProperty *p = object_type_find_property(obj->type, name);
    const Object *child;

    if (!p && (child = object_child(obj, name))) {
        p = child_property(child);
    }
    if (!p && !strcmp(name, "type")) {
        p = &type_property;
    }
    return p;
}

static const char *const kind_types[] = {
    [PROP_BOOL] = "bool",     [PROP_STRING] = "string", [PROP_INT] = "int",
    [PROP_UINT16] = "uint16", [PROP_UINT32] = "uint32", [PROP_INT32] = "int32",
    [PROP_UINT64] = "uint64", [PROP_SIZE] = "size",     [PROP_ENUM] = "string",
    [PROP_LINK] = "link<object>", [PROP_CHILD] = "child<object>", [PROP_ANY] = "any",
};

const char *object_property_type(const ObjectProperty *p)
{
    return p->type ? p->type : kind_types[p->kind];
}

static void visit_property(Object *obj, const ObjectProperty *p,
                           void (*fn)(Object *, const ObjectProperty *, const char *, void *),
                           void *opaque)
{
    fn(obj, p, object_property_type(p), opaque);
}

/* Base classes first. */
static void visit_class_properties(Object *obj, const ObjectType *t,
                                   void (*fn)(Object *, const ObjectProperty *, const char *, void *),
                                   void *opaque)
{
    if (!t) {
        return;
    }
    visit_class_properties(obj, object_type_parent(t), fn, opaque);
    for (const ObjectProperty *p = t->properties; p && p->name; p++) {
        visit_property(obj, p, fn, opaque);
    }
}

void object_for_each_property(Object *obj,
                              void (*fn)(Object *, const ObjectProperty *, const char *, void *),
                              void *opaque)
{
    visit_property(obj, &type_property, fn, opaque);
    visit_class_properties(obj, obj->type, fn, opaque);
    g_autoptr(GList) children = object_children(obj);
    for (GList *l = children; l; l = l->next) {
        const Object *child = l->data;
        g_autofree char *type = g_strdup_printf("child<%s>", child->type->name);
        fn(obj, child_property(child), type, opaque);
    }
}

static const ObjectProperty *require(Object *obj, const char *name, Error **errp)
{
    const ObjectProperty *p = object_find_property(obj, name);

    if (!p) {
        error_setg(errp, "Property '%s.%s' not found", obj->type->name, name);
    }
    return p;
}

static const ObjectProperty *require_writable(Object *obj, const char *name, Error **errp)
{
    const ObjectProperty *p = require(obj, name, errp);

    if (p && !p->set) {
        error_setg(errp, "Property '%s.%s' is not writable", obj->type->name, name);
        return NULL;
    }
    return p;
}

json_t *object_get(Object *obj, const char *name, Error **errp)
{
    const ObjectProperty *p = require(obj, name, errp);

    if (!p) {
        return NULL;
    }
    if (!p->get) {
        error_setg(errp, "Property '%s.%s' is not readable", obj->type->name, name);
        return NULL;
    }
    return p->get(obj, p, errp);
}

static bool wrong_type(const ObjectProperty *p, const char *expected, Error **errp)
{
    error_setg(errp, "Invalid parameter type for '%s', expected: %s", p->name, expected);
    return false;
}

static bool check_enum(const ObjectProperty *p, const char *name, Error **errp)
{
    if (!g_strv_contains(p->values, name)) {
        error_setg(errp, "Parameter '%s' does not accept value '%s'", p->name, name);
        return false;
    }
    return true;
}

static bool check_range(const ObjectProperty *p, json_int_t v, int64_t min, int64_t max,
                        const char *ctype, Error **errp)
{
    if (v < min || v > max) {
        error_setg(errp, "Parameter '%s' expects %s", p->name, ctype);
        return false;
    }
    return true;
}

bool property_check(const ObjectProperty *p, const json_t *v, Error **errp)
{
    switch (p->kind) {
    case PROP_BOOL:
        return json_is_boolean(v) || wrong_type(p, "boolean", errp);
    case PROP_STRING:
    case PROP_LINK:
        return json_is_string(v) || wrong_type(p, "string", errp);
    case PROP_ENUM:
        return json_is_string(v) ? check_enum(p, json_string_value(v), errp)
                                 : wrong_type(p, "string", errp);
    case PROP_INT:
        return json_is_integer(v) || wrong_type(p, "integer", errp);
    case PROP_INT32:
        return json_is_integer(v)
                   ? check_range(p, json_integer_value(v), INT32_MIN, INT32_MAX, "int32_t", errp)
                   : wrong_type(p, "integer", errp);
    case PROP_UINT16:
    case PROP_UINT32:
    case PROP_UINT64:
    case PROP_SIZE:
        if (!json_is_integer(v)) {
            error_setg(errp, "Parameter '%s' expects uint64", p->name);
            return false;
        }
        if (p->kind == PROP_UINT16) {
            return check_range(p, json_integer_value(v), 0, UINT16_MAX, "uint16_t", errp);
        }
        if (p->kind == PROP_UINT32) {
            return check_range(p, json_integer_value(v), 0, UINT32_MAX, "uint32_t", errp);
        }
        return true;
    default:
        return true;
    }
}

bool object_set(Object *obj, const char *name, json_t *value, Error **errp)
{
    const ObjectProperty *p = require_writable(obj, name, errp);

    return p && property_check(p, value, errp) && p->set(obj, p, value, errp);
}

/* --- Text --- */

static const char *int_wording(PropertyKind kind, PropertyText from)
{
    bool is_signed = kind == PROP_INT || kind == PROP_INT32;

    switch (from) {
    case PROPERTY_TEXT_OBJECT:
        return is_signed ? "an int64 value" : "a uint64 value";
    case PROPERTY_TEXT_HMP:
        return is_signed ? "int64" : "uint64";
    default:
        return "integer";
    }
}

json_t *property_from_text(const ObjectProperty *p, const char *text, PropertyText from, Error **errp)
{
    bool flag, ok;
    int64_t i;
    uint64_t u = 0;

    switch (p->kind) {
    case PROP_BOOL:
        if (!qapi_parse_bool(text, &flag)) {
            error_setg(errp, "Parameter '%s' expects 'on' or 'off'", p->name);
            return NULL;
        }
        return json_boolean(flag);
    case PROP_INT:
    case PROP_INT32:
    case PROP_UINT16:
    case PROP_UINT32:
    case PROP_UINT64:
        if (p->kind == PROP_UINT64) {
            ok = qapi_parse_uint64(text, &u);
            i = (int64_t)u;
        } else {
            ok = qapi_parse_int64(text, &i);
        }
        if (!ok) {
            error_setg(errp, "Parameter '%s' expects %s", p->name, int_wording(p->kind, from));
            return NULL;
        }
        return json_integer(i);
    case PROP_SIZE:
        if (qapi_parse_size(text, 0, &u) != QAPI_SIZE_OK) {
            error_setg(errp, "Parameter '%s' expects a size value", p->name);
            return NULL;
        }
        return json_integer((json_int_t)u);
    case PROP_ENUM:
        return check_enum(p, text, errp) ? json_string(text) : NULL;
    default:
        break;
    }
    json_t *v = json_string(text);
    if (!v) {
        error_setg(errp, "Parameter '%s' is not valid UTF-8", p->name);
    }
    return v;
}

bool object_set_text(Object *obj, const char *name, const char *text, PropertyText from, Error **errp)
{
    const ObjectProperty *p = require_writable(obj, name, errp);
    g_autoptr(json_t) v = p ? property_from_text(p, text, from, errp) : NULL;

    return v && object_set(obj, name, v, errp);
}

/* --- Generic accessors --- */

static void *member(Object *obj, const ObjectProperty *p)
{
    return (char *)obj + p->offset;
}

json_t *object_get_bool(Object *obj, const ObjectProperty *p, Error **errp)
{
    return json_boolean(*(bool *)member(obj, p));
}

bool object_set_bool(Object *obj, const ObjectProperty *p, json_t *v, Error **errp)
{
    *(bool *)member(obj, p) = json_is_true(v);
    return true;
}

json_t *object_get_string(Object *obj, const ObjectProperty *p, Error **errp)
{
    const char *s = *(char **)member(obj, p);
    return json_string(s ? s : "");
}

bool object_set_string(Object *obj, const ObjectProperty *p, json_t *v, Error **errp)
{
    char **s = member(obj, p);

    g_free(*s);
    *s = g_strdup(json_string_value(v));
    return true;
}

json_t *object_get_enum(Object *obj, const ObjectProperty *p, Error **errp)
{
    return json_string(p->values[*(int *)member(obj, p)]);
}

bool object_set_enum(Object *obj, const ObjectProperty *p, json_t *v, Error **errp)
{
    const char *name = json_string_value(v);
    int i = 0;

    while (strcmp(p->values[i], name)) {
        i++;
    }
    *(int *)member(obj, p) = i;
    return true;
}

#define DEFINE_INT_ACCESSORS(suffix, ctype)                                                        \
    json_t *object_get_##suffix(Object *obj, const ObjectProperty *p, Error **errp)                \
    {                                                                                              \
        return json_integer((json_int_t) * (ctype *)member(obj, p));                               \
    }                                                                                              \
    bool object_set_##suffix(Object *obj, const ObjectProperty *p, json_t *v, Error **errp)        \
    {                                                                                              \
        if (!object_check_range(p, json_integer_value(v), errp)) {                                 \
            return false;                                                                          \
        }                                                                                          \
        *(ctype *)member(obj, p) = (ctype)json_integer_value(v);                                   \
        return true;                                                                               \
    }

bool object_check_range(const ObjectProperty *p, int64_t value, Error **errp)
{
    if (p->min == p->max || (value >= p->min && value <= p->max)) {
        return true;
    }
    error_setg(errp, "%s value must be in range [%" G_GINT64_FORMAT ", %" G_GINT64_FORMAT "]", p->name,
               p->min, p->max);
    return false;
}

DEFINE_INT_ACCESSORS(int64, int64_t)
DEFINE_INT_ACCESSORS(uint16, uint16_t)
DEFINE_INT_ACCESSORS(uint32, uint32_t)
DEFINE_INT_ACCESSORS(int32, int32_t)
DEFINE_INT_ACCESSORS(uint64, uint64_t)
