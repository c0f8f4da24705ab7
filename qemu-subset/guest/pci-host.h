/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What host bridges have in common: configuration ports 0xcf8 and 0xcfc, and the reset control register between them. */
#ifndef GUEST_PCI_HOST_H
#define GUEST_PCI_HOST_H

#include "guest/pci.h"

typedef struct PciHost {
    DeviceState dev;
    PciBus *bus;
    uint32_t config_address;
    uint8_t reset_control;
    GuestRegion address, data, reset_register;
} PciHost;

/* Main thread. init is for the realize() of a bridge with its root bus; the others are the class's functions. */
void pci_host_init(PciHost *h, PciBus *bus);
void pci_host_unrealize(DeviceState *dev);
void pci_host_reset(DeviceState *dev);

#endif
