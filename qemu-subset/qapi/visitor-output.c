/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The visitor that writes a type as JSON. */
#include "qapi/visitor.h"

#include <math.h>
#include <stdint.h>

typedef struct OutputVisitor {
    Visitor visitor;
    json_t *root;
    GPtrArray *open; /* borrowed: containers under construction */
} OutputVisitor;

static OutputVisitor *self(Visitor *v)
{
    return (OutputVisitor *)v;
}

static bool put(Visitor *v, const char *member, json_t *value)
{
    OutputVisitor *ov = self(v);
    json_t *parent = ov->open->len ? g_ptr_array_index(ov->open, ov->open->len - 1) : NULL;

    g_assert(value);
    if (!parent) {
        json_decref(ov->root);
        ov->root = value;
    } else if (json_is_object(parent)) {
        json_object_set_new_nocheck(parent, member, value);
    } else {
        json_array_append_new(parent, value);
    }
    return true;
}

static bool open_container(Visitor *v, const char *member, json_t *container)
{
    put(v, member, container);
    g_ptr_array_add(self(v)->open, container);
    return true;
}

static void close_container(Visitor *v)
{
    g_ptr_array_remove_index(self(v)->open, self(v)->open->len - 1);
}

static bool open_object(Visitor *v, const char *member, Error **errp)
{
    return open_container(v, member, json_object());
}

static bool open_list(Visitor *v, const char *member, Error **errp)
{
    return open_container(v, member, json_array());
}

static bool type_int64(Visitor *v, const char *member, int64_t *obj, Error **errp)
{
    return put(v, member, json_integer(*obj));
}

static bool type_uint64(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    return put(v, member, *obj > INT64_MAX ? json_real((double)*obj) : json_integer((json_int_t)*obj));
}

static bool type_bool(Visitor *v, const char *member, bool *obj, Error **errp)
{
    return put(v, member, json_boolean(*obj));
}

/* Text from the outside (file names) need not be UTF-8, so jansson must not check it. */
static bool type_str(Visitor *v, const char *member, char **obj, Error **errp)
{
    return put(v, member, json_string_nocheck(*obj ? *obj : ""));
}

static bool type_number(Visitor *v, const char *member, double *obj, Error **errp)
{
    return put(v, member, isfinite(*obj) ? json_real(*obj) : json_null());
}

static bool type_any(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    return put(v, member, json_incref(*obj));
}

static bool type_null(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    return put(v, member, json_null());
}

static void output_free(Visitor *v)
{
    json_decref(self(v)->root);
    g_ptr_array_free(self(v)->open, TRUE);
    g_free(v);
}

Visitor *visitor_json_output_new(void)
{
    static const VisitorOps ops = {
        .kind = VISITOR_OUTPUT,
        .open_object = open_object,
        .open_list = open_list,
        .close = close_container,
        .type_int64 = type_int64,
        .type_uint64 = type_uint64,
        .type_bool = type_bool,
        .type_number = type_number,
        .type_str = type_str,
        .type_any = type_any,
        .type_null = type_null,
        .free = output_free,
    };
    OutputVisitor *ov = g_new0(OutputVisitor, 1);

    ov->visitor.ops = &ops;
    ov->open = g_ptr_array_new();
    return &ov->visitor;
}

json_t *visitor_json_output_take(Visitor *v)
{
    g_assert(self(v)->open->len == 0 && self(v)->root);
    return g_steal_pointer(&self(v)->root);
}
