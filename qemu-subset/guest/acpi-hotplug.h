/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACPI hot-plug of PCI slots: the registers through which firmware learns of and ejects devices. Main thread only. */
#ifndef GUEST_ACPI_HOTPLUG_H
#define GUEST_ACPI_HOTPLUG_H

#include "guest/pci.h"
#include "guest/runstate.h"

/* Buses that firmware can tell apart. */
#define ACPI_HOTPLUG_BUSES 256

typedef struct AcpiHotplug {
    PciBus *bus;
    int numbered;                      /* buses that have got their number; -1: not yet counted */
    uint32_t up[ACPI_HOTPLUG_BUSES];   /* slots with new devices; read once */
    uint32_t down[ACPI_HOTPLUG_BUSES]; /* slots that a user wants ejected */
    uint32_t select;
    uint16_t gpe_status, gpe_enable;
    IrqLine *sci;
    int sci_level;
    GuestRegion registers, gpe;
    VmResetHook reset_hook;
} AcpiHotplug;

/*
 * Make hot-plug work behind the bridges of root bus @bus, and on it if @root, through registers at @base and the GPE0 block at
 * @gpe_base (0: not mapped); events raise @sci (may be NULL).
 */
void acpi_hotplug_init(AcpiHotplug *s, PciBus *bus, bool root, uint16_t base, uint16_t gpe_base, IrqLine *sci);
void acpi_hotplug_cleanup(AcpiHotplug *s);
void acpi_hotplug_reset(AcpiHotplug *s);

#endif
