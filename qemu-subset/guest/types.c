/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All types of this room. */
#include "guest/fw-cfg.h"
#include "guest/i440fx.h"
#include "guest/machine-private.h"
#include "guest/pci-bridge.h"
#include "guest/q35.h"

/* Clients ask which accelerators are compiled in. */
static const ObjectType accel_types[] = {
    {.name = "accel", .parent = "object", .abstract = true},
    {.name = "qtest-accel", .parent = "accel"},
};

void guest_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(accel_types); i++) {
        object_register_type(&accel_types[i]);
    }
    hostmem_register_types();
    qdev_register_types();
    pci_register_types();
    pci_bridge_register_types();
    ioapic_register_types();
    i440fx_register_types();
    q35_register_types();
    fw_cfg_register_types();
    cpu_register_types();
    machine_register_types();
}
