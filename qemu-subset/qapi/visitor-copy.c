/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The visitors for copies: clone, which replaces each string and JSON value by its copy, and dealloc, which frees it. */
#include "qapi/visitor.h"

static bool clone_str(Visitor *v, const char *member, char **obj, Error **errp)
{
    *obj = g_strdup(*obj);
    return true;
}

static bool clone_json(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    *obj = json_deep_copy(*obj);
    return true;
}

static bool dealloc_str(Visitor *v, const char *member, char **obj, Error **errp)
{
    g_clear_pointer(obj, g_free);
    return true;
}

static bool dealloc_json(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    g_clear_pointer(obj, json_decref);
    return true;
}

static void free_visitor(Visitor *v)
{
    g_free(v);
}

static Visitor *visitor_new(const VisitorOps *ops)
{
    Visitor *v = g_new0(Visitor, 1);

    v->ops = ops;
    return v;
}

Visitor *visitor_clone_new(void)
{
    static const VisitorOps ops = {
        .kind = VISITOR_CLONE,
        .type_str = clone_str,
        .type_any = clone_json,
        .type_null = clone_json,
        .free = free_visitor,
    };
    return visitor_new(&ops);
}

Visitor *visitor_dealloc_new(void)
{
    static const VisitorOps ops = {
        .kind = VISITOR_DEALLOC,
        .type_str = dealloc_str,
        .type_any = dealloc_json,
        .type_null = dealloc_json,
        .free = free_visitor,
    };
    return visitor_new(&ops);
}
