/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the PCI files of guest/ only. */
#ifndef GUEST_PCI_PRIVATE_H
#define GUEST_PCI_PRIVATE_H

#include "guest/pci.h"

void pci_msix_config_written(PciDevice *dev, unsigned int addr, unsigned int len);
void pci_msix_reset(PciDevice *dev);
void pci_msix_free(PciDevice *dev);

#endif
