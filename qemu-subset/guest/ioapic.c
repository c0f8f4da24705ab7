/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The I/O APIC: inputs that lead nowhere. */
#include "guest/ioapic.h"

static void ioapic_init(Object *obj)
{
    device_init_irq_in((DeviceState *)obj, IOAPIC_PINS);
}

static const DeviceClass ioapic_class = {.category = "Misc"};

static const ObjectType ioapic_type = {
    .name = TYPE_IOAPIC, .parent = TYPE_DEVICE, .init = ioapic_init, .klass = &ioapic_class};

void ioapic_register_types(void)
{
    object_register_type(&ioapic_type);
}
