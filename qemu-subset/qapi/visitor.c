/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calls that every visitor answers, and what they have in common: ranges, enums, cleaning up after a failure. */
#include "qapi/visit-generic.h"

#include <inttypes.h>

bool visit_start_struct(Visitor *v, const char *member, void **obj, size_t size, Error **errp)
{
    return v->ops->start_struct(v, member, obj, size, errp);
}

bool visit_check_struct(Visitor *v, Error **errp)
{
    return v->ops->check_struct ? v->ops->check_struct(v, errp) : true;
}

void visit_end_struct(Visitor *v, void **obj)
{
    v->ops->end_struct(v, obj);
}

bool visit_start_list(Visitor *v, const char *member, GenericList **list, size_t size, Error **errp)
{
    return v->ops->start_list(v, member, list, size, errp);
}

GenericList *visit_next_list(Visitor *v, GenericList *tail, size_t size)
{
    return v->ops->next_list(v, tail, size);
}

bool visit_check_list(Visitor *v, Error **errp)
{
    return v->ops->check_list ? v->ops->check_list(v, errp) : true;
}

void visit_end_list(Visitor *v, void **list)
{
    v->ops->end_list(v, list);
}

bool visit_start_alternate(Visitor *v, const char *member, GenericAlternate **obj, size_t size, Error **errp)
{
    return v->ops->start_alternate ? v->ops->start_alternate(v, member, obj, size, errp) : true;
}

void visit_end_alternate(Visitor *v, void **obj)
{
    if (v->ops->end_alternate) {
        v->ops->end_alternate(v, obj);
    }
}

bool visit_optional(Visitor *v, const char *member, bool *present)
{
    if (v->ops->optional) {
        v->ops->optional(v, member, present);
    }
    return *present;
}

bool visit_is_input(const Visitor *v)
{
    return v->ops->kind == VISITOR_INPUT;
}

void visit_free(Visitor *v)
{
    if (v) {
        v->ops->free(v);
    }
}

bool visit_type_enum(Visitor *v, const char *member, int *obj, const QEnumLookup *lookup, Error **errp)
{
    if (v->ops->kind == VISITOR_OUTPUT) {
        char *text = (char *)qapi_enum_lookup(lookup, *obj);

        return v->ops->type_str(v, member, &text, errp);
    }
    if (v->ops->kind != VISITOR_INPUT) {
        return true;
    }
    g_autofree char *text = NULL;
    if (!v->ops->type_str(v, member, &text, errp)) {
        return false;
    }
    int value = qapi_enum_parse(lookup, text, -1, NULL);
    if (value < 0) {
        error_setg(errp, "Parameter '%s' does not accept value '%s'", member ? member : "null", text);
        return false;
    }
    *obj = value;
    return true;
}

static bool out_of_range(const char *member, const char *type, Error **errp)
{
    error_setg(errp, "Parameter '%s' expects %s", member ? member : "null", type);
    return false;
}

#define DEFINE_VISIT_NARROW(type, wide, ctype, wtype, min, max)                                    \
    bool visit_type_##type(Visitor *v, const char *member, ctype *obj, Error **errp)                 \
    {                                                                                              \
        wtype value = *obj;                                                                        \
                                                                                                   \
        if (!v->ops->type_##wide(v, member, &value, errp)) {                                         \
            return false;                                                                          \
        }                                                                                          \
        if (value < (min) || value > (max)) {                                                      \
            return out_of_range(member, #ctype, errp);                                               \
        }                                                                                          \
        *obj = value;                                                                              \
        return true;                                                                               \
    }

DEFINE_VISIT_NARROW(int8, int64, int8_t, int64_t, INT8_MIN, INT8_MAX)
DEFINE_VISIT_NARROW(int16, int64, int16_t, int64_t, INT16_MIN, INT16_MAX)
DEFINE_VISIT_NARROW(int32, int64, int32_t, int64_t, INT32_MIN, INT32_MAX)

#define DEFINE_VISIT_NARROW_UNSIGNED(type, ctype, max)                                             \
    bool visit_type_##type(Visitor *v, const char *member, ctype *obj, Error **errp)                 \
    {                                                                                              \
        uint64_t value = *obj;                                                                     \
                                                                                                   \
        if (!v->ops->type_uint64(v, member, &value, errp)) {                                         \
            return false;                                                                          \
        }                                                                                          \
        if (value > (max)) {                                                                       \
            return out_of_range(member, #ctype, errp);                                               \
        }                                                                                          \
        *obj = value;                                                                              \
        return true;                                                                               \
    }

DEFINE_VISIT_NARROW_UNSIGNED(uint8, uint8_t, UINT8_MAX)
DEFINE_VISIT_NARROW_UNSIGNED(uint16, uint16_t, UINT16_MAX)
DEFINE_VISIT_NARROW_UNSIGNED(uint32, uint32_t, UINT32_MAX)

bool visit_type_int(Visitor *v, const char *member, int64_t *obj, Error **errp)
{
    return v->ops->type_int64(v, member, obj, errp);
}

bool visit_type_int64(Visitor *v, const char *member, int64_t *obj, Error **errp)
{
    return v->ops->type_int64(v, member, obj, errp);
}

bool visit_type_uint64(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    return v->ops->type_uint64(v, member, obj, errp);
}

bool visit_type_size(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    return (v->ops->type_size ? v->ops->type_size : v->ops->type_uint64)(v, member, obj, errp);
}

bool visit_type_bool(Visitor *v, const char *member, bool *obj, Error **errp)
{
    return v->ops->type_bool(v, member, obj, errp);
}

bool visit_type_str(Visitor *v, const char *member, char **obj, Error **errp)
{
    return v->ops->type_str(v, member, obj, errp);
}

bool visit_type_number(Visitor *v, const char *member, double *obj, Error **errp)
{
    return v->ops->type_number(v, member, obj, errp);
}

bool visit_type_any(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    return v->ops->type_any(v, member, obj, errp);
}

bool visit_type_null(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    return v->ops->type_null(v, member, obj, errp);
}

bool qapi_visit_struct(Visitor *v, const char *member, void **obj, size_t size, QapiWalk *walk, Error **errp)
{
    if (!visit_start_struct(v, member, obj, size, errp)) {
        return false;
    }
    bool ok = !*obj || (walk(v, *obj, errp) && visit_check_struct(v, errp));
    visit_end_struct(v, obj);
    if (!ok && visit_is_input(v)) {
        g_autoptr(Visitor) dealloc = visitor_dealloc_new();

        qapi_visit_struct(dealloc, NULL, obj, size, walk, NULL);
    }
    return ok;
}

bool qapi_visit_list(Visitor *v, const char *member, GenericList **obj, size_t size, QapiWalk *walk, Error **errp)
{
    bool ok = true;

    if (!visit_start_list(v, member, obj, size, errp)) {
        return false;
    }
    for (GenericList *tail = *obj; ok && tail; tail = ok ? visit_next_list(v, tail, size) : tail) {
        ok = walk(v, tail, errp);
    }
    ok = ok && visit_check_list(v, errp);
    visit_end_list(v, (void **)obj);
    if (!ok && visit_is_input(v)) {
        g_autoptr(Visitor) dealloc = visitor_dealloc_new();

        qapi_visit_list(dealloc, NULL, obj, size, walk, NULL);
    }
    return ok;
}

bool qapi_visit_alternate(Visitor *v, const char *member, GenericAlternate **obj, size_t size, QapiAlternateWalk *walk,
                          Error **errp)
{
    if (!visit_start_alternate(v, member, obj, size, errp)) {
        return false;
    }
    bool ok = !*obj || walk(v, member, *obj, errp);
    visit_end_alternate(v, (void **)obj);
    if (!ok && visit_is_input(v)) {
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

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    bool ok = (!walk || walk(v, arg, errp)) && visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    if (!ok && walk) {
        qapi_drop_arguments(walk, arg);
    }
    return ok;
}

void qapi_drop_arguments(QapiWalk *walk, void *arg)
{
    g_autoptr(Visitor) v = visitor_dealloc_new();

    visit_start_struct(v, NULL, NULL, 0, NULL);
    walk(v, arg, NULL);
    visit_end_struct(v, NULL);
}
