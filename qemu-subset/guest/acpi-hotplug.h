/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ACPI hot-plug of PCI slots: the registers through which firmware learns of and ejects devices. Main thread only. */
#ifndef GUEST_ACPI_HOTPLUG_H
#define GUEST_ACPI_HOTPLUG_H

#include "guest/pci.h"
#include "guest/runstate.h"

typedef struct AcpiHotplug {
    PciBus *bus;
    uint32_t up;    /* slots with new devices; read once */
    uint32_t down;  /* slots that a user wants ejected */
    uint32_t select;
    uint16_t gpe_status, gpe_enable;
    IrqLine *sci;
    int sci_level;
    GuestRegion registers, gpe;
    VmResetHook reset_hook;
} AcpiHotplug;

/* Make hot-plug work on @bus through registers at @base and the GPE0 block at @gpe_base; events raise @sci (may be NULL). */
void acpi_hotplug_init(AcpiHotplug *s, PciBus *bus, uint16_t base, uint16_t gpe_base, IrqLine *sci);
void acpi_hotplug_cleanup(AcpiHotplug *s);
void acpi_hotplug_reset(AcpiHotplug *s);

#endif
