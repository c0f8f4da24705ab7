/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI devices on bus 0 through ports 0xcf8/0xcfc: config space, BARs, MSI-X, INTx. Main thread only. */
#ifndef LIBQOS_PCI_H
#define LIBQOS_PCI_H

#include "qtest.h"

#define PCI_DEVFN(slot, fn) ((slot) << 3 | (fn))

enum {
    PCI_CFG_VENDOR = 0,
    PCI_CFG_DEVICE = 2,
    PCI_CFG_COMMAND = 4,
    PCI_CFG_STATUS = 6,
    PCI_CFG_REVISION = 8,
    PCI_CFG_CLASS = 10,
    PCI_CFG_HEADER_TYPE = 14,
    PCI_CFG_BAR0 = 0x10,
    PCI_CFG_SUBSYS_VENDOR = 0x2c,
    PCI_CFG_SUBSYS_ID = 0x2e,
    PCI_CFG_CAP_PTR = 0x34,
    PCI_CFG_INT_PIN = 0x3d,
    PCI_CMD_IO = 1,
    PCI_CMD_MEMORY = 2,
    PCI_CMD_MASTER = 4,
    PCI_CMD_INTX_OFF = 0x400,
    PCI_CAP_VENDOR = 9,
    PCI_CAP_MSIX = 0x11,
};

typedef struct PciBar {
    bool present, io, is64, prefetch;
    uint64_t addr, size; /* addr 0: not mapped yet */
} PciBar;

typedef struct PciDev {
    QTest *t;
    int devfn;
    PciBar bar[6];
    bool msix_on;
    uint8_t msix_cap; /* 0: none */
    unsigned int msix_vectors;
    uint64_t msix_table, msix_pba; /* guest-physical */
} PciDev;

/* Raw config space of any function; absent ones read as ones. */
uint8_t pci_cfg_readb(QTest *t, int devfn, uint8_t off);
uint16_t pci_cfg_readw(QTest *t, int devfn, uint8_t off);
uint32_t pci_cfg_readl(QTest *t, int devfn, uint8_t off);
void pci_cfg_writeb(QTest *t, int devfn, uint8_t off, uint8_t v);
void pci_cfg_writew(QTest *t, int devfn, uint8_t off, uint16_t v);
void pci_cfg_writel(QTest *t, int devfn, uint8_t off, uint32_t v);

/* A device that is there, sized and not yet enabled; NULL if the slot is empty. */
PciDev *pci_dev_new(QTest *t, int devfn);
void pci_dev_free(PciDev *d);
/* Offset of the first capability @id after offset @after (0: from the start); 0 if none. */
uint8_t pci_find_cap(PciDev *d, uint8_t id, uint8_t after);
/* Set the command register's I/O, memory and bus master bits, and check that they stay. */
void pci_dev_enable(PciDev *d);
/* Give the BAR an address (once) and return it; dies if it is not implemented. */
const PciBar *pci_map_bar(PciDev *d, int bar);

/* Access inside a mapped BAR, by port or memory as it is. @size is 1, 2, 4 or 8 (as two dwords on ports). */
uint64_t pci_bar_read(PciDev *d, int bar, uint64_t off, int size);
void pci_bar_write(PciDev *d, int bar, uint64_t off, int size, uint64_t v);

/* MSI-X: map its BARs and set the enable bit. Dies if the device has none. */
void pci_msix_enable(PciDev *d);
void pci_msix_disable(PciDev *d);
/* Program one table entry. */
void pci_msix_set(PciDev *d, unsigned int vector, uint64_t addr, uint32_t data, bool masked);
bool pci_msix_masked(PciDev *d, unsigned int vector);
bool pci_msix_pending(PciDev *d, unsigned int vector);

/*
 * INTx on the pc machine: route the slot's INTA to IOAPIC input @gsi through the PIIX3's register and intercept the
 * IOAPIC's inputs. qt_irq_level(t, gsi) then tells the line.
 */
void pci_intx_route(PciDev *d, unsigned int gsi);

#endif
