/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of guest/ only. */
#ifndef GUEST_PRIVATE_H
#define GUEST_PRIVATE_H

#include "guest/qdev.h"

#define TYPE_SYSTEM_BUS "System"

const DeviceClass *device_class(const DeviceState *dev);
const BusClass *bus_class(const BusState *bus);
BusState *bus_system(void);
/* Depth first from @bus: the first that matches, or NULL. */
BusState *bus_walk(BusState *bus, bool (*match)(BusState *bus, const void *key), const void *key);
bool bus_full(BusState *bus);
/* The device that was plugged into the same bus before @dev; NULL: none. */
DeviceState *device_before(DeviceState *dev);

void device_globals_apply(DeviceState *dev);
void device_globals_clear(void);
/* From now on devices count as hot-plugged. */
void device_hotplug_phase(void);
bool device_in_hotplug_phase(void);
/* Texts, with '\n': "-device help", "-device TYPE,help", "info qtree". */
void device_print_list(GString *out);
void device_print_options(const ObjectType *t, GString *out);
void device_print_tree(GString *out);
/* Unrealize everything. */
void device_teardown(void);

/* "info pci", and the answers of query-pci, query-memdev, query-cpus-fast: new references. */
void pci_print_info(GString *out);
json_t *pci_query(void);
json_t *guest_query_memdev(void);
json_t *guest_query_cpus(void);

/* What "help" (@driver NULL) or "DRIVER,help" answers. False with @errp set if there is no such driver. */
bool device_print_help(const char *driver, GString *out, Error **errp);

/* Reset hooks and all devices, without an event. */
void vm_reset_devices(void);
void vm_forget_reset_hooks(void);

#endif
