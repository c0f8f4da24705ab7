/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the PCI files of guest/ only. */
#ifndef GUEST_PCI_PRIVATE_H
#define GUEST_PCI_PRIVATE_H

#include "guest/pci.h"

/* The address ranges that bridges in front of @dev let through include [@base, @last]. */
bool pci_bridges_forward(const PciDevice *dev, bool io, uint64_t base, uint64_t last);
void pci_update_mappings(PciDevice *dev);
GPtrArray *pci_root_buses(void); /* PciBus, in order of creation; NULL: none */
/* Part of "info qtree". */
void pci_print_device(DeviceState *qdev, GString *out, int indent);
/* The range that a bridge forwards; base above limit: none. */
typedef enum PciWindow { PCI_WINDOW_IO, PCI_WINDOW_MEM, PCI_WINDOW_PREFETCH, PCI_WINDOWS } PciWindow;
void pci_bridge_window(const PciDevice *bridge, PciWindow which, uint64_t *base, uint64_t *limit);
void pci_msix_config_written(PciDevice *dev, unsigned int addr, unsigned int len);
void pci_msix_reset(PciDevice *dev);
void pci_msix_free(PciDevice *dev);

#endif
