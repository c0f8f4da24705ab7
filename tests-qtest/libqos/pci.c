/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI devices on bus 0 through ports 0xcf8/0xcfc. */
#include "pci.h"

static void select_reg(QTest *t, int devfn, uint8_t off)
{
    qt_outl(t, 0xcf8, 0x80000000U | (uint32_t)devfn << 8 | (off & 0xfcU));
}

uint8_t pci_cfg_readb(QTest *t, int devfn, uint8_t off)
{
    select_reg(t, devfn, off);
    return qt_inb(t, 0xcfc + (off & 3));
}

uint16_t pci_cfg_readw(QTest *t, int devfn, uint8_t off)
{
    select_reg(t, devfn, off);
    return qt_inw(t, 0xcfc + (off & 2));
}

uint32_t pci_cfg_readl(QTest *t, int devfn, uint8_t off)
{
    select_reg(t, devfn, off);
    return qt_inl(t, 0xcfc);
}

void pci_cfg_writeb(QTest *t, int devfn, uint8_t off, uint8_t v)
{
    select_reg(t, devfn, off);
    qt_outb(t, 0xcfc + (off & 3), v);
}

void pci_cfg_writew(QTest *t, int devfn, uint8_t off, uint16_t v)
{
    select_reg(t, devfn, off);
    qt_outw(t, 0xcfc + (off & 2), v);
}

void pci_cfg_writel(QTest *t, int devfn, uint8_t off, uint32_t v)
{
    select_reg(t, devfn, off);
    qt_outl(t, 0xcfc, v);
}

/* Size of BAR @i by writing ones; the old value goes back. */
static void probe_bar(PciDev *d, int i)
{
    uint8_t off = (uint8_t)(PCI_CFG_BAR0 + 4 * i);
    uint32_t old = pci_cfg_readl(d->t, d->devfn, off), v;
    PciBar *b = &d->bar[i];

    pci_cfg_writel(d->t, d->devfn, off, 0xffffffff);
    v = pci_cfg_readl(d->t, d->devfn, off);
    pci_cfg_writel(d->t, d->devfn, off, old);
    if (v == 0 || v == 0xffffffff) {
        return;
    }
    b->present = true;
    b->io = v & 1;
    b->is64 = !b->io && (v & 6) == 4;
    b->prefetch = !b->io && (v & 8);
    b->size = ~(v & (b->io ? ~3U : ~15U)) + 1U;
    if (b->io) {
        b->size &= 0xffff;
    }
}

PciDev *pci_dev_new(QTest *t, int devfn)
{
    PciDev *d;

    if (pci_cfg_readw(t, devfn, PCI_CFG_VENDOR) == 0xffff) {
        return NULL;
    }
    d = g_new0(PciDev, 1);
    d->t = t;
    d->devfn = devfn;
    for (int i = 0; i < 6; i++) {
        probe_bar(d, i);
        i += d->bar[i].is64;
    }
    d->msix_cap = pci_find_cap(d, PCI_CAP_MSIX, 0);
    if (d->msix_cap) {
        d->msix_vectors = (pci_cfg_readw(t, devfn, d->msix_cap + 2) & 0x7ffU) + 1;
    }
    return d;
}

void pci_dev_free(PciDev *d)
{
    g_free(d);
}

uint8_t pci_find_cap(PciDev *d, uint8_t id, uint8_t after)
{
    uint8_t off = pci_cfg_readb(d->t, d->devfn, after ? after + 1 : PCI_CFG_CAP_PTR);

    for (int guard = 0; off && guard < 48; guard++) {
        if (pci_cfg_readb(d->t, d->devfn, off) == id) {
            return off;
        }
        off = pci_cfg_readb(d->t, d->devfn, off + 1);
    }
    return 0;
}

void pci_dev_enable(PciDev *d)
{
    uint16_t want = PCI_CMD_IO | PCI_CMD_MEMORY | PCI_CMD_MASTER;

    pci_cfg_writew(d->t, d->devfn, PCI_CFG_COMMAND,
                   pci_cfg_readw(d->t, d->devfn, PCI_CFG_COMMAND) | want);
    g_assert_cmphex(pci_cfg_readw(d->t, d->devfn, PCI_CFG_COMMAND) & want, ==, want);
}

const PciBar *pci_map_bar(PciDev *d, int bar)
{
    PciBar *b = &d->bar[bar];
    uint32_t *next = b->io ? &d->t->next_io : &d->t->next_mem;
    uint8_t off = (uint8_t)(PCI_CFG_BAR0 + 4 * bar);

    if (!b->present) {
        qos_die("device %02x.%x has no BAR %d", d->devfn >> 3, d->devfn & 7, bar);
    }
    if (b->addr) {
        return b;
    }
    b->addr = (*next + b->size - 1) & ~(b->size - 1);
    *next = (uint32_t)(b->addr + b->size);
    if (b->addr + b->size > (b->io ? 0x10000 : 0xfec00000)) {
        qos_die("no room for BAR %d of %" G_GINT64_MODIFIER "u bytes", bar, b->size);
    }
    pci_cfg_writel(d->t, d->devfn, off, (uint32_t)b->addr);
    if (b->is64) {
        pci_cfg_writel(d->t, d->devfn, off + 4, 0);
    }
    return b;
}

uint64_t pci_bar_read(PciDev *d, int bar, uint64_t off, int size)
{
    const PciBar *b = pci_map_bar(d, bar);
    uint64_t a = b->addr + off;

    switch (size) {
    case 1:
        return b->io ? qt_inb(d->t, (uint16_t)a) : qt_readb(d->t, a);
    case 2:
        return b->io ? qt_inw(d->t, (uint16_t)a) : qt_readw(d->t, a);
    case 4:
        return b->io ? qt_inl(d->t, (uint16_t)a) : qt_readl(d->t, a);
    default:
        return pci_bar_read(d, bar, off, 4) | pci_bar_read(d, bar, off + 4, 4) << 32;
    }
}

void pci_bar_write(PciDev *d, int bar, uint64_t off, int size, uint64_t v)
{
    const PciBar *b = pci_map_bar(d, bar);
    uint64_t a = b->addr + off;

    if (size == 8) {
        pci_bar_write(d, bar, off, 4, (uint32_t)v);
        pci_bar_write(d, bar, off + 4, 4, v >> 32);
    } else if (b->io) {
        (size == 1) ? qt_outb(d->t, (uint16_t)a, (uint8_t)v)
        : size == 2 ? qt_outw(d->t, (uint16_t)a, (uint16_t)v)
                    : qt_outl(d->t, (uint16_t)a, (uint32_t)v);
    } else {
        (size == 1) ? qt_writeb(d->t, a, (uint8_t)v)
        : size == 2 ? qt_writew(d->t, a, (uint16_t)v)
                    : qt_writel(d->t, a, (uint32_t)v);
    }
}

static uint64_t msix_area(PciDev *d, uint8_t reg)
{
    uint32_t v = pci_cfg_readl(d->t, d->devfn, d->msix_cap + reg);

    return pci_map_bar(d, v & 7)->addr + (v & ~7U);
}

void pci_msix_enable(PciDev *d)
{
    if (!d->msix_cap) {
        qos_die("device %02x.%x has no MSI-X", d->devfn >> 3, d->devfn & 7);
    }
    d->msix_table = msix_area(d, 4);
    d->msix_pba = msix_area(d, 8);
    pci_cfg_writew(d->t, d->devfn, d->msix_cap + 2,
                   pci_cfg_readw(d->t, d->devfn, d->msix_cap + 2) | 0x8000);
    d->msix_on = true;
}

void pci_msix_disable(PciDev *d)
{
    pci_cfg_writew(d->t, d->devfn, d->msix_cap + 2,
                   pci_cfg_readw(d->t, d->devfn, d->msix_cap + 2) & 0x7fff);
    d->msix_on = false;
}

void pci_msix_set(PciDev *d, unsigned int vector, uint64_t addr, uint32_t data, bool masked)
{
    uint64_t e = d->msix_table + 16 * vector;

    qt_writel(d->t, e, (uint32_t)addr);
    qt_writel(d->t, e + 4, (uint32_t)(addr >> 32));
    qt_writel(d->t, e + 8, data);
    qt_writel(d->t, e + 12, masked);
}

bool pci_msix_masked(PciDev *d, unsigned int vector)
{
    return qt_readl(d->t, d->msix_table + 16 * vector + 12) & 1;
}

bool pci_msix_pending(PciDev *d, unsigned int vector)
{
    return qt_readl(d->t, d->msix_pba + 4 * (vector / 32)) >> (vector % 32) & 1;
}

void pci_intx_route(PciDev *d, unsigned int gsi)
{
    int slot = d->devfn >> 3;
    uint8_t pirq = (uint8_t)((slot - 1) & 3);

    pci_cfg_writeb(d->t, PCI_DEVFN(1, 0), 0x60 + pirq, (uint8_t)gsi);
    qt_irq_intercept_in(d->t, "ioapic");
}
