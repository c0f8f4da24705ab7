/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The I/O APIC as far as a test watches it: input lines. There is no CPU behind it. Main thread only. */
#ifndef GUEST_IOAPIC_H
#define GUEST_IOAPIC_H

#include "guest/qdev.h"

#define TYPE_IOAPIC "ioapic"
#define IOAPIC_PINS 24

void ioapic_register_types(void);

#endif
