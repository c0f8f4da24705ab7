/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Devices and buses on top of the object tree: life cycle, standard properties, -device and hot-plug. Main thread only. */
#ifndef GUEST_QDEV_H
#define GUEST_QDEV_H

#include "base/list.h"
#include "guest/irq.h"
#include "object/object.h"

#define TYPE_DEVICE "device"
#define TYPE_BUS "bus"

typedef struct DeviceState DeviceState;
typedef struct BusState BusState;

/*
 * What ObjectType.klass of a device type points to (families put it first in a struct of their own: PciDeviceClass). A type
 * without one has its parent's; nothing is inherited member by member.
 */
typedef struct DeviceClass {
    const char *bus_type;   /* type of the bus it plugs into, "PCI"; NULL: none */
    const char *alias;      /* other name for -device, "virtio-blk"; may be NULL */
    const char *category;   /* heading in "-device help": "Storage", ... */
    bool user_creatable;    /* by -device and device_add */
    bool not_hotpluggable;
    /* All properties are set. On false (@errp set) it has undone what it did; the device is dropped. */
    bool (*realize)(DeviceState *dev, Error **errp);
    /*
     * Stop using resources: nothing is in flight when it returns. Devices on its buses were unrealized before, and are still in
     * the tree.
     */
    void (*unrealize)(DeviceState *dev);
    void (*reset)(DeviceState *dev); /* NULL: nothing to reset; children on its buses are reset after it */
} DeviceClass;

/* The class of @t: its own or the nearest ancestor's. */
const DeviceClass *device_type_class(const ObjectType *t);

/* The head of every device instance; for ObjectType.size. */
struct DeviceState {
    Object obj;
    char *id;             /* NULL: anonymous */
    BusState *bus;        /* NULL until plugged in */
    bool realized;
    bool hotplugged;      /* plugged in after machine creation */
    bool unplug_pending;  /* device_del asked, the guest has not ejected it yet */
    bool machine_part;    /* built in: device_del refuses it */
    GPtrArray *buses;     /* BusState, in order of creation */
    IrqLine *irqs;        /* inputs, @n_irqs of them */
    int n_irqs;
    ListNode bus_link;    /* on bus->devices */
};

/* ObjectType.klass of a bus type. */
typedef struct BusClass {
    /*
     * Take @dev in before its realize runs (check or choose the address), and let it go. May be NULL. False with @errp set
     * refuses.
     */
    bool (*plug)(BusState *bus, DeviceState *dev, Error **errp);
    void (*unplug)(BusState *bus, DeviceState *dev);
    /* Address for "info qtree" beside the generic part, e.g. "class ..., addr 00:10.0, pci id ..."; may be NULL. */
    void (*print_device)(DeviceState *dev, GString *out, int indent);
    int max_devices; /* 0: as many as plug() takes */
} BusClass;

/* Lets a chipset decide about hot-plug on a bus that supports it. */
typedef struct HotplugOps {
    /* After realize of a hot-plugged device. */
    void (*plugged)(void *opaque, DeviceState *dev);
    /* device_del: tell the guest; it ends in device_unplug() some time. False with @errp set refuses. */
    bool (*unplug_request)(void *opaque, DeviceState *dev, Error **errp);
} HotplugOps;

struct BusState {
    Object obj;
    char *name;         /* for bus= and info qtree; usually the object's name too */
    DeviceState *owner; /* NULL: main system bus */
    ListNode devices;
    const HotplugOps *hotplug; /* NULL: no hot-plug here */
    void *hotplug_opaque;
};

/* --- Buses --- */
/* Create a bus of @type named @name as child of @owner; it lives as long as the owner. */
BusState *bus_new(const char *type, DeviceState *owner, const char *name);
/* The first bus that is-a @type, in depth-first order from the machine's; NULL if none. */
BusState *bus_find(const char *type);
void bus_reset(BusState *bus); /* every device below */

/* --- Devices from code --- */
/* A new device with -global settings applied. One reference. */
DeviceState *device_new(const char *type);
/*
 * Plug @dev into @bus (NULL: none), put it below @parent as @name (NULL parent: /machine/unattached/device[N]) and realize it.
 * Takes over the caller's reference whatever happens. For built-in devices and parts of devices.
 */
bool device_realize_as(DeviceState *dev, BusState *bus, Object *parent, const char *name, Error **errp);
/* The same for a device that is in the tree already; on failure it stays there, off the bus. */
bool device_realize(DeviceState *dev, BusState *bus, Error **errp);
/* Unrealize and take it out of the tree, with DEVICE_DELETED for it and (earlier) for the devices below it. */
void device_unplug(DeviceState *dev);
void device_reset(DeviceState *dev); /* and all below */
/* Stops @dev and below for good at program end, without events; see machine_destroy(). */
void device_unrealize(DeviceState *dev);

/* --- Devices from users --- */
/*
 * @options: driver, id, bus and properties. @strings: values are text from -device k=v or HMP. QEMU's errors; nothing is
 * left on failure. Returns a borrowed pointer.
 */
DeviceState *device_add(json_t *options, bool strings, Error **errp);
/*
 * One -device argument (k=v or JSON), to be run once the machine exists. Handles "help" and "DRIVER,help": prints to stdout and
 * sets *@help (exit with 0); an unknown driver with help is an error.
 */
bool device_add_option(const char *arg, bool *help, Error **errp);
bool device_del(const char *id_or_path, Error **errp);
DeviceState *device_find(const char *id_or_path, Error **errp); /* DeviceNotFound "Device 'X' not found" */

/* -global DRIVER.PROP=VALUE or driver=,property=,value=; before any device exists. */
bool device_global_option(const char *arg, Error **errp);
void device_globals_check(void); /* once, after the types are registered: warns about class names that do not exist */

/* --- Properties --- */
/*
 * Setters for members that only take effect at realize; afterwards they fail with QEMU's "Attempt to set property 'X' on ...
 * after it was realized". Otherwise as the object_set_*() of the same name.
 */
PropertySetter device_set_bool, device_set_string, device_set_uint16, device_set_uint32, device_set_enum;
/* The check alone, for setters of one's own. @link words it as for a link property. */
bool device_check_settable(Object *obj, const char *prop, bool link, Error **errp);
/* OnOffAuto for PROP_ENUM members of type int. */
typedef enum DeviceOnOffAuto { DEVICE_AUTO, DEVICE_ON, DEVICE_OFF } DeviceOnOffAuto;
extern const char *const device_on_off_auto[];
/* {"name", "type", "description"?, "default-value"?} of each property of device type @name. */
json_t *device_list_properties(const char *name, Error **errp);

void qdev_register_types(void);

#endif
