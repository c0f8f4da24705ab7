/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people and clients are told about device types and the device tree. */
#include "guest/private.h"

#include "qapi/json.h"

#include <string.h>

/* --- "-device help" --- */

static const char *const categories[] = {
    "Controller/Bridge/Hub", "USB", "Storage", "Network", "Input", "Display", "Sound", "Misc", "CPU", "Watchdog", NULL,
};

static const char *category_of(const ObjectType *t)
{
    const char *c = device_type_class(t)->category;

    return c && g_strv_contains(categories, c) ? c : "Uncategorized";
}

static void collect_creatable(const ObjectType *t, void *opaque)
{
    if (!t->abstract && object_type_is_a(t, TYPE_DEVICE) && device_type_class(t)->user_creatable) {
        g_ptr_array_add(opaque, (void *)t);
    }
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    const ObjectType *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static void print_category(GPtrArray *list, const char *category, GString *out)
{
    bool headed = false;

    for (unsigned int i = 0; i < list->len; i++) {
        const ObjectType *t = g_ptr_array_index(list, i);
        const DeviceClass *dc = device_type_class(t);

        if (strcmp(category_of(t), category)) {
            continue;
        }
        if (!headed) {
            g_string_append_printf(out, "%s%s devices:\n", out->len ? "\n" : "", category);
            headed = true;
        }
        g_string_append_printf(out, "name \"%s\"", t->name);
        if (dc->bus_type) {
            g_string_append_printf(out, ", bus %s", dc->bus_type);
        }
        if (dc->alias) {
            g_string_append_printf(out, ", alias \"%s\"", dc->alias);
        }
        if (t->desc) {
            g_string_append_printf(out, ", desc \"%s\"", t->desc);
        }
        g_string_append_c(out, '\n');
    }
}

void device_print_list(GString *out)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();

    object_for_each_type(collect_creatable, list);
    g_ptr_array_sort(list, by_name);
    for (int i = 0; categories[i]; i++) {
        print_category(list, categories[i], out);
    }
    print_category(list, "Uncategorized", out);
}

/* --- Properties of a type --- */

static const char *property_type(const ObjectProperty *p)
{
    static const char *const names[] = {
        [PROP_BOOL] = "bool",     [PROP_STRING] = "str",    [PROP_INT] = "int64",
        [PROP_UINT16] = "uint16", [PROP_UINT32] = "uint32", [PROP_INT32] = "int32",
        [PROP_UINT64] = "uint64", [PROP_SIZE] = "size",     [PROP_ENUM] = "str",
        [PROP_LINK] = "link<object>", [PROP_CHILD] = "child<object>", [PROP_ANY] = "any",
    };

    return p->type ? p->type : names[p->kind];
}

static gint by_line(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A default as it would be typed. */
static void append_default(GString *line, json_t *value)
{
    g_string_append(line, "(default: ");
    if (json_is_boolean(value)) {
        g_string_append(line, json_is_true(value) ? "on" : "off");
    } else if (json_is_string(value)) {
        g_string_append(line, json_string_value(value));
    } else {
        qjson_append(line, value, false);
    }
    g_string_append_c(line, ')');
}

static char *option_line(const ObjectProperty *p)
{
    GString *line = g_string_new(NULL);
    g_autofree char *head = g_strdup_printf("%s=<%s>", p->name, property_type(p));

    if (!p->description && !p->default_value) {
        g_string_append(line, head);
        return g_string_free(line, FALSE);
    }
    g_string_append_printf(line, "%-22s - %s", head, p->description ? p->description : "");
    if (p->default_value) {
        g_string_append_c(line, ' ');
        append_default(line, p->default_value);
    }
    return g_string_free(line, FALSE);
}

static gint by_property_name(gconstpointer a, gconstpointer b)
{
    const ObjectProperty *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

static GPtrArray *settable_properties(const ObjectType *t)
{
    GPtrArray *list = g_ptr_array_new();

    for (; t; t = object_type_parent(t)) {
        for (const ObjectProperty *p = t->properties; p && p->name; p++) {
            if (p->set) {
                g_ptr_array_add(list, (void *)p);
            }
        }
    }
    g_ptr_array_sort(list, by_property_name);
    return list;
}

void device_print_options(const ObjectType *t, GString *out)
{
    g_autoptr(GPtrArray) list = settable_properties(t);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);

    for (unsigned int i = 0; i < list->len; i++) {
        g_ptr_array_add(lines, option_line(g_ptr_array_index(list, i)));
    }
    g_ptr_array_sort(lines, by_line);
    g_string_append_printf(out, "%s options:\n", t->name);
    for (unsigned int i = 0; i < lines->len; i++) {
        g_string_append_printf(out, "  %s\n", (char *)g_ptr_array_index(lines, i));
    }
}

json_t *device_list_properties(const char *name, Error **errp)
{
    const ObjectType *t = object_find_type(name);

    if (!t) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", name);
        return NULL;
    }
    if (!object_type_is_a(t, TYPE_DEVICE) || t->abstract) {
        error_setg(errp, "Parameter 'typename' expects a non-abstract device type");
        return NULL;
    }
    g_autoptr(GPtrArray) list = settable_properties(t);
    json_t *out = json_array();
    for (unsigned int i = 0; i < list->len; i++) {
        const ObjectProperty *p = g_ptr_array_index(list, i);
        json_t *entry = json_pack("{s:s, s:s}", "name", p->name, "type", property_type(p));
        if (p->description) {
            json_object_set_new(entry, "description", json_string(p->description));
        }
        if (p->default_value) {
            json_object_set(entry, "default-value", p->default_value);
        }
        json_array_append_new(out, entry);
    }
    return out;
}

/* --- "info qtree" --- */

#define INDENT(out, n) g_string_append_printf(out, "%*s", n, "")

/* "512 B", "1.5 KiB", "4 GiB": three significant digits. */
static void append_size(GString *out, uint64_t size)
{
    static const char units[] = " KMGTPE";
    double value = (double)size;
    int unit = 0;

    while (value >= 999.5 && units[unit + 1]) {
        value /= 1024;
        unit++;
    }
    g_string_append_printf(out, "%.3g ", value);
    if (unit) {
        g_string_append_printf(out, "%ci", units[unit]);
    }
    g_string_append_c(out, 'B');
}

static void print_value(GString *out, const ObjectProperty *p, json_t *v)
{
    if (!strcmp(p->name, "addr") && json_is_integer(v) && p->kind == PROP_ANY) {
        /* A PCI address is a number to clients, slot and function to people. */
        int devfn = (int)json_integer_value(v);
        g_string_append_printf(out, "%02x.%x", devfn >> 3 & 31, devfn & 7);
    } else if (json_is_string(v)) {
        g_string_append_printf(out, "\"%s\"", json_string_value(v));
    } else if (json_is_boolean(v)) {
        g_string_append(out, json_is_true(v) ? "true" : "false");
    } else if (json_is_integer(v) && p->kind == PROP_SIZE) {
        g_string_append_printf(out, "%lld (", (long long)json_integer_value(v));
        append_size(out, (uint64_t)json_integer_value(v));
        g_string_append_c(out, ')');
    } else if (json_is_integer(v)) {
        g_string_append_printf(out, "%lld (0x%llx)", (long long)json_integer_value(v),
                               (long long)json_integer_value(v));
    } else if (v && !json_is_null(v)) {
        qjson_append(out, v, false);
    } else {
        g_string_append(out, "<null>");
    }
}

static void print_properties(GString *out, DeviceState *dev, int indent)
{
    for (const ObjectType *t = dev->obj.type; t; t = object_type_parent(t)) {
        for (const ObjectProperty *p = t->properties; p && p->name; p++) {
            if (!p->get || !p->set) {
                continue;
            }
            json_t *v = object_get(&dev->obj, p->name, NULL);
            INDENT(out, indent);
            g_string_append_printf(out, "%s = ", p->name);
            print_value(out, p, v);
            g_string_append_c(out, '\n');
            json_decref(v);
        }
    }
}

static void print_bus(GString *out, BusState *bus, int indent);

static void print_device(GString *out, DeviceState *dev, int indent)
{
    INDENT(out, indent);
    g_string_append_printf(out, "dev: %s, id \"%s\"\n", dev->obj.type->name, dev->id ? dev->id : "");
    indent += 2;
    if (dev->n_irqs) {
        INDENT(out, indent);
        g_string_append_printf(out, "gpio-in \"\" %d\n", dev->n_irqs);
    }
    print_properties(out, dev, indent);
    if (dev->bus && bus_class(dev->bus)->print_device) {
        bus_class(dev->bus)->print_device(dev, out, indent);
    }
    for (unsigned int i = 0; dev->buses && i < dev->buses->len; i++) {
        print_bus(out, g_ptr_array_index(dev->buses, i), indent);
    }
}

static void print_bus(GString *out, BusState *bus, int indent)
{
    DeviceState *dev;

    INDENT(out, indent);
    g_string_append_printf(out, "bus: %s\n", bus->name);
    INDENT(out, indent + 2);
    g_string_append_printf(out, "type %s\n", bus->obj.type->name);
    for (ListNode *n = bus->devices.prev; n != &bus->devices; n = n->prev) {
        dev = list_entry(n, DeviceState, bus_link);
        print_device(out, dev, indent + 2);
    }
}

void device_print_tree(GString *out)
{
    print_bus(out, bus_system(), 0);
}
