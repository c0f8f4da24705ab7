/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI bridges: "pcie-root-port" and "pcie-pci-bridge". Main thread only. */
#ifndef GUEST_PCI_BRIDGE_H
#define GUEST_PCI_BRIDGE_H

void pci_bridge_register_types(void);

#endif
