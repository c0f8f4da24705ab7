/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Q35 host bridge and the ICH9 functions that machine "q35" has. Main thread only. */
#ifndef GUEST_Q35_H
#define GUEST_Q35_H

#include "guest/pci.h"

/*
 * Build the chipset: host bridge at /machine/q35 with bus pcie.0, mch and ioapic, and the functions of slot 31. The root bus takes
 * no hot-plug.
 */
PciBus *q35_create(bool acpi, Error **errp);

void q35_register_types(void);

#endif
