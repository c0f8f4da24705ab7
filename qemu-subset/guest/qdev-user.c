/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices that a user adds and removes: -device, device_add, device_del, -global. */
#include "guest/private.h"

#include "qapi/json.h"
#include "qapi/opts.h"

#include <stdlib.h>
#include <string.h>

/* --- -global --- */

typedef struct GlobalProperty {
    char *driver, *name, *value;
} GlobalProperty;

static GPtrArray *globals;

static void global_free(void *p)
{
    GlobalProperty *g = p;

    g_free(g->driver);
    g_free(g->name);
    g_free(g->value);
    g_free(g);
}

bool device_global_option(const char *arg, Error **errp)
{
    GlobalProperty *g = g_new0(GlobalProperty, 1);
    const char *dot = strchr(arg, '.'), *eq = strchr(arg, '=');

    if (!globals) {
        globals = g_ptr_array_new_with_free_func(global_free);
    }
    if (dot && eq && dot < eq && dot > arg && eq > dot + 1) {
        g->driver = g_strndup(arg, dot - arg);
        g->name = g_strndup(dot + 1, eq - dot - 1);
        g->value = g_strdup(eq + 1);
    } else {
        static const OptDesc desc[] = {
            {"driver", OPT_STRING, NULL}, {"property", OPT_STRING, NULL}, {"value", OPT_STRING, NULL}, {0}};
        g_autoptr(Opts) opts = opts_parse(arg, NULL, desc, NULL, errp);
        if (!opts) {
            global_free(g);
            return false;
        }
        g->driver = g_strdup(opts_get(opts, "driver"));
        g->name = g_strdup(opts_get(opts, "property"));
        g->value = g_strdup(opts_get(opts, "value"));
        if (!g->driver || !g->name || !g->value) {
            error_setg(errp, "options 'driver', 'property', and 'value' are required");
            global_free(g);
            return false;
        }
    }
    g_ptr_array_add(globals, g);
    return true;
}

void device_globals_check(void)
{
    for (unsigned int i = 0; globals && i < globals->len; i++) {
        GlobalProperty *g = g_ptr_array_index(globals, i);
        const ObjectType *t = object_find_type(g->driver);
        if (!t || !object_type_is_a(t, TYPE_DEVICE)) {
            warn_report("global %s.%s has invalid class name", g->driver, g->name);
        }
    }
}

void device_globals_apply(DeviceState *dev)
{
    for (unsigned int i = 0; globals && i < globals->len; i++) {
        GlobalProperty *g = g_ptr_array_index(globals, i);
        Error *err = NULL;

        if (!object_type_is_a(dev->obj.type, g->driver) ||
            object_set_text(&dev->obj, g->name, g->value, PROPERTY_TEXT_DEVICE, &err)) {
            continue;
        }
        error_prepend(&err, "can't apply global %s.%s=%s: ", g->driver, g->name, g->value);
        if (device_in_hotplug_phase()) {
            warn_report_err(err);
        } else {
            error_report_err(err);
            exit(1);
        }
    }
}

void device_globals_clear(void)
{
    if (globals) {
        g_ptr_array_free(globals, TRUE);
        globals = NULL;
    }
}

/* --- Finding driver and bus --- */

static const char *wanted_alias;
static const ObjectType *alias_type;

static void match_alias(const ObjectType *t, void *opaque)
{
    if (object_type_is_a(t, TYPE_DEVICE)) {
        const DeviceClass *dc = device_type_class(t);
        if (dc->alias && !strcmp(dc->alias, wanted_alias)) {
            alias_type = t;
        }
    }
}

static const ObjectType *driver_by_name(const char *driver)
{
    const ObjectType *t = object_find_type(driver);

    if (!t) {
        wanted_alias = driver;
        alias_type = NULL;
        object_for_each_type(match_alias, NULL);
        t = alias_type;
    }
    return t && object_type_is_a(t, TYPE_DEVICE) ? t : NULL;
}

static const ObjectType *find_driver(const char *driver, Error **errp)
{
    const ObjectType *t = driver_by_name(driver);

    if (!t) {
        error_setg(errp, "'%s' is not a valid device model name", driver);
    } else if (t->abstract) {
        error_setg(errp, "Parameter 'driver' expects a non-abstract device type");
        t = NULL;
    } else if (!device_type_class(t)->user_creatable ||
               (device_in_hotplug_phase() && device_type_class(t)->not_hotpluggable)) {
        error_setg(errp, "Parameter 'driver' expects a pluggable device type");
        t = NULL;
    }
    return t;
}

static bool match_name(BusState *bus, const void *name)
{
    return !strcmp(bus->name, name);
}

static bool match_any_of_type(BusState *bus, const void *type)
{
    return object_is_a(&bus->obj, type);
}

static BusState *bus_by_name(const char *name)
{
    if (name[0] == '/') {
        Object *obj = object_resolve(name, NULL);
        return obj && object_is_a(obj, TYPE_BUS) ? (BusState *)obj : NULL;
    }
    return bus_walk(bus_system(), match_name, name);
}

/* False with @errp set if the device cannot go anywhere; *@bus is NULL for a device without one. */
static bool choose_bus(const ObjectType *t, const char *name, BusState **bus, Error **errp)
{
    const char *type = device_type_class(t)->bus_type;

    *bus = NULL;
    if (name) {
        *bus = bus_by_name(name);
        if (!*bus) {
            error_setg(errp, "Bus '%s' not found", name);
            return false;
        }
        if (!type || !object_is_a(&(*bus)->obj, type)) {
            error_setg(errp, "Device '%s' can't go on %s bus", t->name, (*bus)->obj.type->name);
            return false;
        }
        if (bus_full(*bus)) {
            error_setg(errp, "Bus '%s' is full", name);
            return false;
        }
    } else if (type) {
        *bus = bus_find(type);
        if (!*bus) {
            error_setg(errp, bus_walk(bus_system(), match_any_of_type, type) ? "A '%s' bus was found but is full"
                                                                             : "No '%s' bus found for device '%s'",
                       type, t->name);
            return false;
        }
    }
    if (*bus && device_in_hotplug_phase() && !(*bus)->hotplug) {
        error_setg(errp, "Bus '%s' does not support hotplugging", (*bus)->name);
        return false;
    }
    return true;
}

/* --- device_add --- */

static bool get_string(json_t *options, const char *key, const char **value, Error **errp)
{
    json_t *v = json_object_get(options, key);

    *value = json_string_value(v);
    if (v && !*value) {
        error_setg(errp, "Invalid parameter type for '%s', expected: string", key);
        return false;
    }
    return true;
}

static bool set_properties(DeviceState *dev, json_t *options, bool strings, Error **errp)
{
    const char *key;
    json_t *value;

    json_object_foreach(options, key, value)
    {
        if (!strcmp(key, "driver") || !strcmp(key, "id") || !strcmp(key, "bus")) {
            continue;
        }
        bool ok = strings && json_is_string(value)
                      ? object_set_text(&dev->obj, key, json_string_value(value), PROPERTY_TEXT_DEVICE, errp)
                      : object_set(&dev->obj, key, value, errp);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static bool name_device(DeviceState *dev, const char *id, bool strings, Error **errp)
{
    if (!id) {
        return object_add_child(object_container("/machine/peripheral-anon"), "device[*]", &dev->obj, errp);
    }
    Object *peripheral = object_container("/machine/peripheral");
    if (object_find_property(peripheral, id)) {
        error_setg(errp, "Duplicate device ID '%s'", id);
        return false;
    }
    dev->id = g_strdup(id);
    return object_add_child(peripheral, id, &dev->obj, errp);
}

DeviceState *device_add(json_t *options, bool strings, Error **errp)
{
    const char *driver, *id, *bus_name;
    BusState *bus;

    if (!get_string(options, "id", &id, errp) || !get_string(options, "bus", &bus_name, errp)) {
        return NULL;
    }
    driver = json_string_value(json_object_get(options, "driver"));
    if (!driver) {
        error_setg(errp, "Parameter 'driver' is missing");
        return NULL;
    }
    if (id && !qapi_id_wellformed(id)) {
        error_setg(errp, "Invalid qdev ID '%s'", id);
        return NULL;
    }
    const ObjectType *t = find_driver(driver, errp);
    if (!t || !choose_bus(t, bus_name, &bus, errp)) {
        return NULL;
    }
    DeviceState *dev = device_new(t->name);
    bool ok = name_device(dev, id, strings, errp);
    if (ok && !(set_properties(dev, options, strings, errp) && device_realize(dev, bus, errp))) {
        object_unparent(&dev->obj);
        ok = false;
    }
    object_unref(&dev->obj);
    return ok ? dev : NULL;
}

bool device_print_help(const char *driver, GString *out, Error **errp)
{
    const ObjectType *t;

    if (!driver) {
        device_print_list(out);
        return true;
    }
    t = driver_by_name(driver);
    if (!t) {
        error_setg(errp, "Device '%s' not found", driver);
        return false;
    }
    device_print_options(t, out);
    return true;
}

bool device_add_option(const char *arg, bool *help, Error **errp)
{
    g_autoptr(json_t) options = NULL;
    bool strings = arg[0] != '{';

    *help = false;
    if (strings) {
        g_autoptr(Opts) opts = opts_parse(arg, "driver", NULL, help, errp);
        options = opts ? opts_to_json(opts) : NULL;
    } else {
        options = qjson_parse(arg, errp);
    }
    if (!options) {
        return false;
    }
    if (*help) {
        g_autoptr(GString) text = g_string_new(NULL);
        *help = device_print_help(json_string_value(json_object_get(options, "driver")), text, errp);
        fputs(text->str, stdout);
        return *help;
    }
    return device_add(options, strings, errp);
}

/* --- device_del --- */

DeviceState *device_find(const char *id, Error **errp)
{
    Object *obj = id[0] == '/' ? object_resolve(id, NULL)
                               : object_child(object_container("/machine/peripheral"), id);

    if (!obj) {
        error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "Device '%s' not found", id);
        return NULL;
    }
    if (!object_is_a(obj, TYPE_DEVICE)) {
        error_setg(errp, "%s is not a device", id);
        return NULL;
    }
    return (DeviceState *)obj;
}

bool device_del(const char *id, Error **errp)
{
    DeviceState *dev = device_find(id, errp);

    if (!dev) {
        return false;
    }
    if (dev->unplug_pending) {
        error_setg(errp, "Device %s is already in the process of unplug", id);
        return false;
    }
    if (dev->bus && !dev->bus->hotplug) {
        error_setg(errp, "Bus '%s' does not support hotplugging", dev->bus->name);
        return false;
    }
    if (dev->machine_part || device_class(dev)->not_hotpluggable) {
        error_setg(errp, "Device '%s' does not support hotplugging", dev->obj.type->name);
        return false;
    }
    if (!dev->bus || !dev->bus->hotplug->unplug_request) {
        device_unplug(dev);
        return true;
    }
    if (!dev->bus->hotplug->unplug_request(dev->bus->hotplug_opaque, dev, errp)) {
        return false;
    }
    return true;
}
