/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How types are walked: their memory, ranges and enums, and cleaning up after a failure. */
#include "qapi/visit-generic.h"

#include <inttypes.h>

bool visit_is_input(const Visitor *v)
{
    return v->ops->kind == VISITOR_INPUT;
}

static bool visit_is_dealloc(const Visitor *v)
{
    return v->ops->kind == VISITOR_DEALLOC;
}

void visit_free(Visitor *v)
{
    if (v) {
        v->ops->free(v);
    }
}

static bool write_enum(Visitor *v, const char *member, int value, const QEnumLookup *names, Error **errp)
{
    char *text = (char *)qapi_enum_lookup(names, value);

    return visit_type_str(v, member, &text, errp);
}

static bool read_enum(Visitor *v, const char *member, int *value, const QEnumLookup *names, Error **errp)
{
    g_autofree char *text = NULL;

    if (!visit_type_str(v, member, &text, errp)) {
        return false;
    }
    int found = qapi_enum_parse(names, text, -1, NULL);
    if (found >= 0) {
        *value = found;
        return true;
    }
    error_setg(errp, "Parameter '%s' does not accept value '%s'", member ? member : "null", text);
    return false;
}

bool visit_type_enum(Visitor *v, const char *member, int *obj, const QEnumLookup *names, Error **errp)
{
    switch (v->ops->kind) {
    case VISITOR_INPUT:
        return read_enum(v, member, obj, names, errp);
    case VISITOR_OUTPUT:
        return write_enum(v, member, *obj, names, errp);
    default:
        return true;
    }
}

static bool out_of_range(const char *member, const char *type, Error **errp)
{
    error_setg(errp, "Parameter '%s' expects %s", member ? member : "null", type);
    return false;
}

#define DEFINE_VISIT_NARROW(type, wide)                                                            \
    bool visit_type_##type(Visitor *v, const char *member, type##_t *obj, Error **errp)            \
    {                                                                                              \
        wide##_t value = *obj;                                                                     \
                                                                                                   \
        if (!visit_type_##wide(v, member, &value, errp)) {                                         \
            return false;                                                                          \
        }                                                                                          \
        if ((type##_t)value != value) {                                                            \
            return out_of_range(member, #type "_t", errp);                                         \
        }                                                                                          \
        *obj = value;                                                                              \
        return true;                                                                               \
    }

DEFINE_VISIT_NARROW(int8, int64)
DEFINE_VISIT_NARROW(int16, int64)
DEFINE_VISIT_NARROW(int32, int64)
DEFINE_VISIT_NARROW(uint8, uint64)
DEFINE_VISIT_NARROW(uint16, uint64)
DEFINE_VISIT_NARROW(uint32, uint64)

/* Where the visitor has nothing to do for a leaf, the leaf stays as it is. */
#define DEFINE_VISIT_LEAF(type, ctype, op)                                                         \
    bool visit_type_##type(Visitor *v, const char *member, ctype *obj, Error **errp)               \
    {                                                                                              \
        return !v->ops->op || v->ops->op(v, member, obj, errp);                                    \
    }

DEFINE_VISIT_LEAF(int, int64_t, type_int64)
DEFINE_VISIT_LEAF(int64, int64_t, type_int64)
DEFINE_VISIT_LEAF(uint64, uint64_t, type_uint64)
DEFINE_VISIT_LEAF(bool, bool, type_bool)
DEFINE_VISIT_LEAF(number, double, type_number)
DEFINE_VISIT_LEAF(str, char *, type_str)
DEFINE_VISIT_LEAF(any, json_t *, type_any)
DEFINE_VISIT_LEAF(null, json_t *, type_null)

bool visit_type_size(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    return v->ops->type_size ? v->ops->type_size(v, member, obj, errp) : visit_type_uint64(v, member, obj, errp);
}

bool visit_optional(Visitor *v, const char *member, bool *present)
{
    if (v->ops->optional) {
        v->ops->optional(v, member, present);
    }
    return *present;
}

bool visit_open(Visitor *v, const char *member, Error **errp)
{
    return !v->ops->open_object || v->ops->open_object(v, member, errp);
}

void visit_close(Visitor *v)
{
    if (v->ops->close) {
        v->ops->close(v);
    }
}

static bool all_known(Visitor *v, Error **errp)
{
    return !v->ops->all_known || v->ops->all_known(v, errp);
}

/* The memory to walk, where @old (NULL for input) is what the caller has. */
static void *own(const Visitor *v, void *old, size_t size)
{
    switch (v->ops->kind) {
    case VISITOR_INPUT:
        return g_malloc0(size);
    case VISITOR_CLONE:
        return g_memdup2(old, size);
    default:
        return old;
    }
}

bool qapi_visit_struct(Visitor *v, const char *member, void **obj, size_t size, QapiWalk *walk, Error **errp)
{
    if (visit_is_input(v)) {
        *obj = NULL;
    }
    if (!visit_open(v, member, errp)) {
        return false;
    }
    *obj = own(v, *obj, size);
    bool ok = !*obj || (walk(v, *obj, errp) && all_known(v, errp));
    visit_close(v);
    if (visit_is_dealloc(v)) {
        g_clear_pointer(obj, g_free);
    } else if (!ok && visit_is_input(v)) {
        g_autoptr(Visitor) dealloc = visitor_dealloc_new();

        qapi_visit_struct(dealloc, NULL, obj, size, walk, NULL);
    }
    return ok;
}

/* The cell to walk next; @old is what the caller has in its place. NULL at the end. */
static GenericList *next_cell(Visitor *v, GenericList *old, size_t size)
{
    return visit_is_input(v) && !v->ops->more(v) ? NULL : own(v, old, size);
}

bool qapi_visit_list(Visitor *v, const char *member, GenericList **obj, size_t size, QapiWalk *walk, Error **errp)
{
    GenericList **link = obj;
    bool ok = true;

    if (visit_is_input(v)) {
        *obj = NULL;
    }
    if (v->ops->open_list && !v->ops->open_list(v, member, errp)) {
        return false;
    }
    while (ok && (*link = next_cell(v, *link, size))) {
        GenericList *cell = *link;

        ok = walk(v, cell, errp);
        if (visit_is_dealloc(v)) {
            *link = cell->next;
            g_free(cell);
        } else {
            link = &cell->next;
        }
    }
    visit_close(v);
    if (!ok && visit_is_input(v)) {
        g_autoptr(Visitor) dealloc = visitor_dealloc_new();

        qapi_visit_list(dealloc, NULL, obj, size, walk, NULL);
    }
    return ok;
}

bool qapi_visit_alternate(Visitor *v, const char *member, GenericAlternate **obj, size_t size, QapiAlternateWalk *walk,
                          Error **errp)
{
    QType type = QTYPE_NONE;

    if (visit_is_input(v)) {
        *obj = NULL;
        if (!v->ops->peek(v, member, &type, errp)) {
            return false;
        }
    }
    *obj = own(v, *obj, size);
    if (visit_is_input(v)) {
        (*obj)->type = type;
    }
    bool ok = !*obj || walk(v, member, *obj, errp);
    if (visit_is_dealloc(v)) {
        g_clear_pointer(obj, g_free);
    } else if (!ok && visit_is_input(v)) {
        g_autoptr(Visitor) dealloc = visitor_dealloc_new();

        qapi_visit_alternate(dealloc, NULL, obj, size, walk, NULL);
    }
    return ok;
}

bool qapi_alternate_mismatch(Visitor *v, const char *member, const char *type, Error **errp)
{
    if (!visit_is_input(v)) {
        return true;
    }
    error_setg(errp, "Invalid parameter type for '%s', expected: %s", member ? member : "null", type);
    return false;
}

bool qapi_read_arguments(json_t *args, QapiWalk *walk, void *arg, Error **errp)
{
    g_autoptr(Visitor) v = visitor_input_new(args, QAPI_JSON);

    if (!visit_open(v, NULL, errp)) {
        return false;
    }
    bool ok = (!walk || walk(v, arg, errp)) && all_known(v, errp);
    visit_close(v);
    if (!ok && walk) {
        qapi_drop_arguments(walk, arg);
    }
    return ok;
}

void qapi_drop_arguments(QapiWalk *walk, void *arg)
{
    g_autoptr(Visitor) v = visitor_dealloc_new();

    walk(v, arg, NULL);
}
