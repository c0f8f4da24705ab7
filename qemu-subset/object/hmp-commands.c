/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands on the object tree and on user-creatable objects. */
#include "object/commands.h"
#include "object/private.h"

#include "qapi/keyval.h"
#include "qapi/qapi-commands-misc.h"
#include "qapi/qapi-commands-qom.h"

#include <string.h>

static const char *arg(json_t *args, const char *name)
{
    return json_string_value(json_object_get(args, name));
}

static void finish(GString *out, Error *err)
{
    if (err) {
        hmp_error(out, err);
    }
}

static void hmp_qom_list(json_t *args, GString *out)
{
    const char *path = arg(args, "path");
    Error *err = NULL;

    if (!path) {
        g_string_append(out, "/\n");
        return;
    }
    ObjectPropertyInfoList *list = qmp_qom_list(path, &err);

    for (ObjectPropertyInfoList *l = list; l; l = l->next) {
        g_string_append_printf(out, "%s (%s)\n", l->value->name, l->value->type);
    }
    qapi_free_ObjectPropertyInfoList(list);
    finish(out, err);
}

static void hmp_qom_get(json_t *args, GString *out)
{
    Error *err = NULL;
    json_t *value = qmp_qom_get(arg(args, "path"), arg(args, "property"), &err);

    if (value) {
        qjson_append(out, value, true);
        g_string_append_c(out, '\n');
        json_decref(value);
    }
    finish(out, err);
}

static void hmp_qom_set(json_t *args, GString *out)
{
    const char *path = arg(args, "path"), *text = arg(args, "value");
    Error *err = NULL;

    if (json_object_get(args, "json")) {
        json_t *value = qjson_parse(text, &err);
        if (value) {
            qmp_qom_set(path, arg(args, "property"), value, &err);
            json_decref(value);
        }
    } else {
        Object *obj = object_resolve(path, NULL);
        if (!obj) {
            error_setg(&err, "Device '%s' not found", path);
        } else {
            object_set_text(obj, arg(args, "property"), text, PROPERTY_TEXT_HMP, &err);
        }
    }
    finish(out, err);
}

static void hmp_object_add(json_t *args, GString *out)
{
    Error *err = NULL;
    const char *text = arg(args, "object");
    bool help = false;
    json_t *options = text[0] == '{' ? qjson_parse(text, &err) : keyval_parse(text, "qom-type", &help, &err);

    if (help && options) {
        object_help(json_string_value(json_object_get(options, "qom-type")), out, &err);
        json_decref(options);
        options = NULL;
    }
    if (options) {
        json_t *typed = user_creatable_check(options, text[0] == '{' ? PROPERTY_JSON : PROPERTY_TEXT_DEVICE, &err);
        json_decref(options);
        options = typed;
    }
    if (options) {
        user_creatable_add(options, &err);
        json_decref(options);
    }
    finish(out, err);
}

static void hmp_object_del(json_t *args, GString *out)
{
    Error *err = NULL;

    user_creatable_del(arg(args, "id"), &err);
    finish(out, err);
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp((*(Object *const *)a)->name, (*(Object *const *)b)->name);
}

static void print_tree(Object *obj, int indent, GString *out)
{
    g_autoptr(GPtrArray) children = g_ptr_array_new();

    g_string_append_printf(out, "%*s/%s (%s)\n", indent, "", obj->name ? obj->name : "", obj->type->name);
    for (guint i = 0; obj->child_order && i < obj->child_order->len; i++) {
        g_ptr_array_add(children, g_ptr_array_index(obj->child_order, i));
    }
    g_ptr_array_sort(children, by_name);
    for (guint i = 0; i < children->len; i++) {
        print_tree(g_ptr_array_index(children, i), indent + 2, out);
    }
}

static void hmp_info_qom_tree(json_t *args, GString *out)
{
    const char *path = arg(args, "path");
    Object *obj = object_resolve(path ? path : "/machine", NULL);

    if (obj) {
        print_tree(obj, 0, out);
    } else {
        g_string_append_printf(out, "Path '%s' could not be resolved.\n", path);
    }
}

const HmpCommand object_hmp_commands[] = {
    {"qom-list", "path:s?", "path", "list QOM properties", hmp_qom_list},
    {"qom-get", "path:s,property:s", "path property", "print QOM property", hmp_qom_get},
    {"qom-set", "json:-j,path:s,property:s,value:S", "[-j] path property value",
     "set QOM property; -j: the value is JSON", hmp_qom_set},
    {"object_add", "object:S", "[qom-type=]type,id=str[,prop=value][,...]", "create QOM object", hmp_object_add},
    {"object_del", "id:s", "id", "destroy QOM object", hmp_object_del},
    {"info qom-tree", "path:s?", "[path]", "show QOM composition tree", hmp_info_qom_tree},
    {"info iothreads", "verbose:-v", "[-v]", "show iothreads; -v: and what each is doing", hmp_info_iothreads},
    {"info iothread-stats", "", "", "show counters of the iothreads", hmp_info_iothread_stats},
    {0},
};
