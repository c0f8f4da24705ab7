/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices and buses: types, the life cycle, reset. */
#include "guest/private.h"

#include "qapi/qapi-events-qdev.h"

#include <string.h>

static BusState *system_bus;
static bool users_turn; /* machine_ready(): what is plugged in now is hot-plugged */

static const void *type_klass(const ObjectType *t)
{
    for (; t; t = object_type_parent(t)) {
        if (t->klass) {
            return t->klass;
        }
    }
    g_assert_not_reached();
}

const DeviceClass *device_type_class(const ObjectType *t)
{
    return type_klass(t);
}

const DeviceClass *device_class(const DeviceState *dev)
{
    return device_type_class(dev->obj.type);
}

const BusClass *bus_class(const BusState *bus)
{
    return type_klass(bus->obj.type);
}

/* --- Buses --- */

BusState *bus_new(const char *type, DeviceState *owner, const char *name)
{
    BusState *bus = (BusState *)object_new(type);
    Object *parent = owner ? &owner->obj : object_container("/machine/unattached");

    bus->owner = owner;
    object_add_child(parent, owner ? name : "sysbus", &bus->obj, &error_abort);
    if (owner) {
        if (!owner->buses) {
            owner->buses = g_ptr_array_new();
        }
        g_ptr_array_add(owner->buses, bus);
    }
    bus->name = g_strdup(name);
    object_unref(&bus->obj);
    return bus;
}

static void bus_init(Object *obj)
{
    list_init(&((BusState *)obj)->devices);
}

static void bus_finalize(Object *obj)
{
    g_free(((BusState *)obj)->name);
}

BusState *bus_system(void)
{
    if (!system_bus) {
        system_bus = bus_new(TYPE_SYSTEM_BUS, NULL, "main-system-bus");
    }
    return system_bus;
}

bool bus_full(BusState *bus)
{
    int max = bus_class(bus)->max_devices, n = 0;
    DeviceState *dev;

    list_for_each(dev, &bus->devices, bus_link) {
        n++;
    }
    return max && n >= max;
}

DeviceState *device_before(DeviceState *dev)
{
    ListNode *prev = dev->bus_link.prev;

    return prev == &dev->bus->devices ? NULL : container_of(prev, DeviceState, bus_link);
}

BusState *bus_walk(BusState *bus, bool (*match)(BusState *bus, const void *key), const void *key)
{
    DeviceState *dev;

    if (match(bus, key)) {
        return bus;
    }
    list_for_each(dev, &bus->devices, bus_link) {
        for (unsigned int i = 0; dev->buses && i < dev->buses->len; i++) {
            BusState *hit = bus_walk(g_ptr_array_index(dev->buses, i), match, key);
            if (hit) {
                return hit;
            }
        }
    }
    return NULL;
}

static bool match_type(BusState *bus, const void *type)
{
    return object_is_a(&bus->obj, type) && !bus_full(bus);
}

BusState *bus_find(const char *type)
{
    return bus_walk(bus_system(), match_type, type);
}

void bus_reset(BusState *bus)
{
    DeviceState *dev, *next;

    list_for_each_safe(dev, next, &bus->devices, bus_link) {
        device_reset(dev);
    }
}

/* --- Life cycle --- */

DeviceState *device_new(const char *type)
{
    DeviceState *dev = (DeviceState *)object_new(type);

    device_globals_apply(dev);
    return dev;
}

static bool plug(DeviceState *dev, BusState *bus, Error **errp)
{
    if (!bus) {
        return true;
    }
    const BusClass *bc = bus_class(bus);
    dev->bus = (BusState *)object_ref(&bus->obj);
    list_append(&bus->devices, &dev->bus_link);
    if (bc->plug && !bc->plug(bus, dev, errp)) {
        list_remove(&dev->bus_link);
        dev->bus = NULL;
        object_unref(&bus->obj);
        return false;
    }
    return true;
}

static void unplug(DeviceState *dev)
{
    BusState *bus = dev->bus;

    if (!bus) {
        return;
    }
    if (bus_class(bus)->unplug) {
        bus_class(bus)->unplug(bus, dev);
    }
    list_remove(&dev->bus_link);
    dev->bus = NULL;
    object_unref(&bus->obj);
}

/* @dev is in the tree. On failure it is off the bus again. */
bool device_realize(DeviceState *dev, BusState *bus, Error **errp)
{
    const DeviceClass *dc = device_class(dev);

    g_assert(!dev->realized);
    dev->hotplugged = users_turn;
    if (!plug(dev, bus, errp)) {
        return false;
    }
    if (dc->realize && !dc->realize(dev, errp)) {
        unplug(dev);
        return false;
    }
    dev->realized = true;
    if (dev->hotplugged) {
        device_reset(dev);
        if (bus && bus->hotplug && bus->hotplug->plugged) {
            bus->hotplug->plugged(bus->hotplug_opaque, dev);
        }
    }
    return true;
}

bool device_realize_as(DeviceState *dev, BusState *bus, Object *parent, const char *name, Error **errp)
{
    if (!parent) {
        parent = object_container("/machine/unattached");
        name = "device[*]";
    }
    dev->machine_part = true;
    bool ok = object_add_child(parent, name, &dev->obj, errp);
    if (ok && !device_realize(dev, bus, errp)) {
        object_unparent(&dev->obj);
        ok = false;
    }
    object_unref(&dev->obj);
    return ok;
}

static void unrealize_children(DeviceState *dev)
{
    for (unsigned int i = dev->buses ? dev->buses->len : 0; i > 0; i--) {
        BusState *bus = g_ptr_array_index(dev->buses, i - 1);

        while (!list_empty(&bus->devices)) {
            device_unrealize(list_last(&bus->devices, DeviceState, bus_link));
        }
    }
}

void device_unrealize(DeviceState *dev)
{
    const DeviceClass *dc = device_class(dev);

    if (dev->realized) {
        unrealize_children(dev);
        if (dc->unrealize) {
            dc->unrealize(dev);
        }
        dev->realized = false;
    }
    unplug(dev);
}

/* One device that goes: what the event says of it, and itself if a user made it and nobody else takes it out of the tree. */
typedef struct Departure {
    char *path, *id;
    Object *user_made;
} Departure;

static void departure_clear(void *p)
{
    Departure *d = p;

    if (d->user_made) {
        object_unparent(d->user_made);
        object_unref(d->user_made);
    }
    g_free(d->path);
    g_free(d->id);
}

static void collect(DeviceState *dev, bool below, GArray *all)
{
    Departure d = {.path = object_path(&dev->obj), .id = g_strdup(dev->id)};
    DeviceState *child;

    for (unsigned int i = 0; dev->buses && i < dev->buses->len; i++) {
        BusState *bus = g_ptr_array_index(dev->buses, i);
        list_for_each(child, &bus->devices, bus_link) {
            collect(child, true, all);
        }
    }
    if (below && (dev->obj.parent == object_container("/machine/peripheral") ||
                  dev->obj.parent == object_container("/machine/peripheral-anon"))) {
        d.user_made = object_ref(&dev->obj);
    }
    g_array_append_val(all, d);
}

void device_unplug(DeviceState *dev)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(Departure));

    g_array_set_clear_func(all, departure_clear);
    collect(dev, false, all);
    device_unrealize(dev);
    object_unparent(&dev->obj);
    for (unsigned int i = 0; i < all->len; i++) {
        const Departure *d = &g_array_index(all, Departure, i);

        qapi_event_send_device_deleted(d->id, d->path);
    }
}

void device_reset(DeviceState *dev)
{
    const DeviceClass *dc = device_class(dev);

    if (dc->reset) {
        dc->reset(dev);
    }
    for (unsigned int i = 0; dev->buses && i < dev->buses->len; i++) {
        bus_reset(g_ptr_array_index(dev->buses, i));
    }
}

void device_hotplug_phase(void)
{
    users_turn = true;
}

bool device_in_hotplug_phase(void)
{
    return users_turn;
}

void device_teardown(void)
{
    users_turn = false;
    if (system_bus) {
        DeviceState *dev;
        while (!list_empty(&system_bus->devices)) {
            dev = list_last(&system_bus->devices, DeviceState, bus_link);
            device_unrealize(dev);
        }
        system_bus = NULL;
    }
}

/* --- The base types --- */

static void device_init(Object *obj)
{
    list_init(&((DeviceState *)obj)->bus_link);
}

static void device_finalize(Object *obj)
{
    DeviceState *dev = (DeviceState *)obj;

    g_assert(!dev->realized && !dev->bus);
    g_free(dev->id);
    if (dev->buses) {
        g_ptr_array_free(dev->buses, TRUE);
    }
    g_free(dev->irqs);
}

static json_t *get_parent_bus(Object *obj, const ObjectProperty *p, Error **errp)
{
    DeviceState *dev = (DeviceState *)obj;
    g_autofree char *path = dev->bus ? object_path(&dev->bus->obj) : NULL;

    return json_string(path ? path : "");
}

static json_t *get_hotpluggable(Object *obj, const ObjectProperty *p, Error **errp)
{
    DeviceState *dev = (DeviceState *)obj;

    return json_boolean(!device_class(dev)->not_hotpluggable && (!dev->bus || dev->bus->hotplug));
}

static const ObjectProperty device_properties[] = {
    {.name = "parent_bus", .kind = PROP_LINK, .type = "link<bus>", .get = get_parent_bus},
    {.name = "realized", .kind = PROP_BOOL, .get = object_get_bool,
     .offset = offsetof(DeviceState, realized)},
    {.name = "hotplugged", .kind = PROP_BOOL, .get = object_get_bool,
     .offset = offsetof(DeviceState, hotplugged)},
    {.name = "hotpluggable", .kind = PROP_BOOL, .get = get_hotpluggable},
    {0},
};

static const DeviceClass base_device_class;
static const BusClass base_bus_class;

static const ObjectType types[] = {
    {.name = TYPE_DEVICE, .parent = "object", .size = sizeof(DeviceState), .abstract = true,
     .properties = device_properties, .init = device_init, .finalize = device_finalize,
     .klass = &base_device_class},
    {.name = TYPE_BUS, .parent = "object", .size = sizeof(BusState), .abstract = true,
     .init = bus_init, .finalize = bus_finalize, .klass = &base_bus_class},
    {.name = TYPE_SYSTEM_BUS, .parent = TYPE_BUS},
};

void qdev_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}

/* --- Properties that are fixed by realize --- */

bool device_check_settable(Object *obj, const char *prop, bool link, Error **errp)
{
    DeviceState *dev = (DeviceState *)obj;

    if (!dev->realized) {
        return true;
    }
    if (link) {
        error_setg(errp,
                   "Attempt to set link property '%s' on device '%s' (type '%s') after it was realized",
                   prop, dev->id ? dev->id : "(null)", obj->type->name);
    } else if (dev->id) {
        error_setg(errp, "Attempt to set property '%s' on device '%s' (type '%s') after it was realized",
                   prop, dev->id, obj->type->name);
    } else {
        error_setg(errp, "Attempt to set property '%s' on anonymous device (type '%s') after it was realized",
                   prop, obj->type->name);
    }
    return false;
}

#define DEFINE_SETTER(suffix)                                                                      \
    bool device_set_##suffix(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)    \
    {                                                                                              \
        return device_check_settable(obj, p->name, false, errp) &&                                 \
               object_set_##suffix(obj, p, value, errp);                                           \
    }

DEFINE_SETTER(bool)
DEFINE_SETTER(string)
DEFINE_SETTER(uint16)
DEFINE_SETTER(uint32)
DEFINE_SETTER(enum)

const char *const device_on_off_auto[] = {"auto", "on", "off", NULL};
