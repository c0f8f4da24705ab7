/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The visitors that own what they walk: clone, which replaces each pointer by a copy, and dealloc, which frees it. */
#include "qapi/visitor.h"

static bool scalar_int64(Visitor *v, const char *member, int64_t *obj, Error **errp)
{
    return true;
}

static bool scalar_uint64(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    return true;
}

static bool scalar_bool(Visitor *v, const char *member, bool *obj, Error **errp)
{
    return true;
}

static bool scalar_number(Visitor *v, const char *member, double *obj, Error **errp)
{
    return true;
}

static void nothing_to_end(Visitor *v, void **obj)
{
}

static void free_visitor(Visitor *v)
{
    g_free(v);
}

static bool clone_struct(Visitor *v, const char *member, void **obj, size_t size, Error **errp)
{
    if (obj && *obj) {
        *obj = g_memdup2(*obj, size);
    }
    return true;
}

static bool clone_list(Visitor *v, const char *member, GenericList **list, size_t size, Error **errp)
{
    return clone_struct(v, member, (void **)list, size, errp);
}

static GenericList *clone_next(Visitor *v, GenericList *tail, size_t size)
{
    if (tail->next) {
        tail->next = g_memdup2(tail->next, size);
    }
    return tail->next;
}

static bool clone_alternate(Visitor *v, const char *member, GenericAlternate **obj, size_t size, Error **errp)
{
    return clone_struct(v, member, (void **)obj, size, errp);
}

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

Visitor *visitor_clone_new(void)
{
    static const VisitorOps ops = {
        .kind = VISITOR_CLONE,
        .start_struct = clone_struct,
        .end_struct = nothing_to_end,
        .start_list = clone_list,
        .next_list = clone_next,
        .end_list = nothing_to_end,
        .start_alternate = clone_alternate,
        .type_int64 = scalar_int64,
        .type_uint64 = scalar_uint64,
        .type_bool = scalar_bool,
        .type_number = scalar_number,
        .type_str = clone_str,
        .type_any = clone_json,
        .type_null = clone_json,
        .free = free_visitor,
    };
    Visitor *v = g_new0(Visitor, 1);

    v->ops = &ops;
    return v;
}

static bool dealloc_struct(Visitor *v, const char *member, void **obj, size_t size, Error **errp)
{
    return true;
}

static void dealloc_end(Visitor *v, void **obj)
{
    if (obj) {
        g_clear_pointer(obj, g_free);
    }
}

static bool dealloc_list(Visitor *v, const char *member, GenericList **list, size_t size, Error **errp)
{
    return true;
}

static GenericList *dealloc_next(Visitor *v, GenericList *tail, size_t size)
{
    GenericList *next = tail->next;

    g_free(tail);
    return next;
}

/* The cells went one by one. */
static void dealloc_end_list(Visitor *v, void **list)
{
    *list = NULL;
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

Visitor *visitor_dealloc_new(void)
{
    static const VisitorOps ops = {
        .kind = VISITOR_DEALLOC,
        .start_struct = dealloc_struct,
        .end_struct = dealloc_end,
        .start_list = dealloc_list,
        .next_list = dealloc_next,
        .end_list = dealloc_end_list,
        .end_alternate = dealloc_end,
        .type_int64 = scalar_int64,
        .type_uint64 = scalar_uint64,
        .type_bool = scalar_bool,
        .type_number = scalar_number,
        .type_str = dealloc_str,
        .type_any = dealloc_json,
        .type_null = dealloc_json,
        .free = free_visitor,
    };
    Visitor *v = g_new0(Visitor, 1);

    v->ops = &ops;
    return v;
}
