/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP commands on the object tree and on user-creatable objects. */
#include "object/iothread.h"

#include "qapi/qapi-commands-misc.h"
#include "qapi/qapi-commands-qom.h"
#include "qapi/qapi-visit-qom.h"

static Object *resolve(const char *path, Error **errp)
{
    Object *obj = object_resolve(path, NULL);

    if (!obj) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", path);
    }
    return obj;
}

/* The commands that list tell the two reasons apart. */
static Object *resolve_to_list(const char *path, Error **errp)
{
    bool ambiguous;

    object_resolve(path, &ambiguous);
    if (ambiguous) {
        error_setg(errp, "Path '%s' is ambiguous", path);
        return NULL;
    }
    return resolve(path, errp);
}

typedef struct InfoTail {
    ObjectPropertyInfoList **tail;
} InfoTail;

static ObjectPropertyInfo *make_info(const ObjectProperty *p, const char *type)
{
    ObjectPropertyInfo *info = g_new0(ObjectPropertyInfo, 1);

    info->name = g_strdup(p->name);
    info->type = g_strdup(type);
    return info;
}

static void append_info(Object *obj, const ObjectProperty *p, const char *type, void *opaque)
{
    InfoTail *t = opaque;

    QAPI_LIST_APPEND(t->tail, make_info(p, type));
}

ObjectPropertyInfoList *qmp_qom_list(const char *path, Error **errp)
{
    ObjectPropertyInfoList *list = NULL;
    InfoTail t = {&list};
    Object *obj = resolve_to_list(path, errp);

    if (obj) {
        object_for_each_property(obj, append_info, &t);
    }
    return list;
}

typedef struct ValueTail {
    ObjectPropertyValueList **tail;
} ValueTail;

static void append_value(Object *obj, const ObjectProperty *p, const char *type, void *opaque)
{
    ValueTail *t = opaque;
    ObjectPropertyValue *v = g_new0(ObjectPropertyValue, 1);

    v->name = g_strdup(p->name);
    v->type = g_strdup(type);
    v->value = p->get ? p->get(obj, p, NULL) : NULL;
    QAPI_LIST_APPEND(t->tail, v);
}

ObjectPropertiesValuesList *qmp_qom_list_get(strList *paths, Error **errp)
{
    ObjectPropertiesValuesList *list = NULL, **tail = &list;

    for (; paths; paths = paths->next) {
        Object *obj = resolve_to_list(paths->value, errp);
        if (!obj) {
            qapi_free_ObjectPropertiesValuesList(list);
            return NULL;
        }
        ObjectPropertiesValues *v = g_new0(ObjectPropertiesValues, 1);
        ValueTail t = {&v->properties};
        object_for_each_property(obj, append_value, &t);
        QAPI_LIST_APPEND(tail, v);
    }
    return list;
}

json_t *qmp_qom_get(const char *path, const char *property, Error **errp)
{
    Object *obj = resolve(path, errp);

    return obj ? object_get(obj, property, errp) : NULL;
}

void qmp_qom_set(const char *path, const char *property, json_t *value, Error **errp)
{
    Object *obj = resolve(path, errp);

    if (obj) {
        object_set(obj, property, value, errp);
    }
}

typedef struct TypeFilter {
    const char *implements;
    bool with_abstract;
    ObjectTypeInfoList *list;
} TypeFilter;

static void append_type(const ObjectType *t, void *opaque)
{
    TypeFilter *f = opaque;

    if ((t->abstract && !f->with_abstract) || (f->implements && !object_type_is_a(t, f->implements))) {
        return;
    }
    ObjectTypeInfo *info = g_new0(ObjectTypeInfo, 1);
    info->name = g_strdup(t->name);
    info->has_abstract = info->abstract = t->abstract;
    info->parent = g_strdup(t->parent);
    QAPI_LIST_PREPEND(f->list, info);
}

ObjectTypeInfoList *qmp_qom_list_types(const char *implements, bool has_abstract, bool abstract, Error **errp)
{
    TypeFilter f = {implements, has_abstract && abstract, NULL};

    object_for_each_type(append_type, &f);
    return f.list;
}

static void append_class(const ObjectType *t, ObjectPropertyInfoList ***tail)
{
    if (!t) {
        return;
    }
    append_class(object_type_parent(t), tail);
    for (const ObjectProperty *p = t->properties; p && p->name; p++) {
        ObjectPropertyInfo *info = make_info(p, object_property_type(p));
        info->description = g_strdup(p->description);
        info->default_value = json_incref(p->default_value);
        QAPI_LIST_APPEND(*tail, info);
    }
}

ObjectPropertyInfoList *qmp_qom_list_properties(const char *type_name, Error **errp)
{
    ObjectPropertyInfoList *list = NULL, **tail = &list;
    const ObjectType *t = object_find_type(type_name);
    static const ObjectProperty type_property = {.name = "type", .kind = PROP_STRING};

    if (!t) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Class '%s' not found", type_name);
        return NULL;
    }
    QAPI_LIST_APPEND(tail, make_info(&type_property, "string"));
    append_class(t, &tail);
    return list;
}

void qmp_object_add(ObjectOptions *options, Error **errp)
{
    json_t *json = ObjectOptions_to_json(options);

    user_creatable_add(json, errp);
    json_decref(json);
}

void qmp_object_del(const char *id, Error **errp)
{
    user_creatable_del(id, errp);
}

/* --- IOThreads --- */

static IOThread *as_iothread(Object *obj)
{
    return object_is_a(obj, TYPE_IOTHREAD) ? (IOThread *)obj : NULL;
}

IOThreadInfoList *qmp_query_iothreads(Error **errp)
{
    IOThreadInfoList *list = NULL, **tail = &list;
    g_autoptr(GList) children = object_children(object_objects());

    for (GList *l = g_list_last(children); l; l = l->prev) {
        IOThread *t = as_iothread(l->data);
        if (t) {
            IOThreadInfo *info = g_new0(IOThreadInfo, 1);
            iothread_params(t, &info->poll_max_ns, &info->poll_grow, &info->poll_shrink, &info->poll_weight,
                            &info->aio_max_batch);
            info->id = g_strdup(iothread_id(t));
            info->thread_id = iothread_thread_id(t);
            QAPI_LIST_APPEND(tail, info);
        }
    }
    return list;
}
