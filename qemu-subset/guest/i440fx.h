/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The i440FX host bridge and the PIIX functions that machine "pc" has. Main thread only. */
#ifndef GUEST_I440FX_H
#define GUEST_I440FX_H

#include "guest/acpi-hotplug.h"
#include "guest/ioapic.h"
#include "guest/pci.h"

#define TYPE_I440FX_HOST "i440FX-pcihost"
#define TYPE_I440FX "i440FX"
#define TYPE_PIIX3 "PIIX3"
#define TYPE_PIIX3_IDE "piix3-ide"
#define TYPE_PIIX4_PM "PIIX4_PM"

/*
 * Build the chipset: host bridge at /machine/i440fx with bus pci.0 and the ioapic, and the functions in slots 0 and 1. @acpi: with
 * the PM function and hot-plug.
 */
PciBus *i440fx_create(bool acpi, Error **errp);

void i440fx_register_types(void);

#endif
