/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MSI-X: the vector table, masks and pending bits; messages from any thread. */
#include "base/bswap.h"
#include "guest/pci-private.h"

#define CAP_SIZE 12
#define CTRL_ENABLE 0x8000
#define CTRL_MASK_ALL 0x4000
#define ENTRY_MASKED 1u
#define MAX_VECTORS 2048

/*
 * The main thread writes table and masks; threads that notify only read them, one word at a time. A guest that changes an
 * unmasked entry may get one message made of old and new words, as the specification allows.
 */
typedef struct MsixEntry {
    _Atomic uint32_t word[4]; /* address low, high, data, vector control */
} MsixEntry;

struct PciMsix {
    PciDevice *dev;
    unsigned int nr, cap, bar;
    _Atomic bool enabled, masked;
    MsixEntry *table;
    _Atomic uint32_t *pending; /* rounded up to 64 bits, as the PBA is */
    unsigned int pending_words;
};

static bool is_masked(PciMsix *m, unsigned int vector)
{
    return !atomic_load(&m->enabled) || atomic_load(&m->masked) ||
           (atomic_load(&m->table[vector].word[3]) & ENTRY_MASKED);
}

static void send(PciMsix *m, unsigned int vector)
{
    MsixEntry *e = &m->table[vector];
    uint64_t addr = (uint64_t)atomic_load_explicit(&e->word[1], memory_order_relaxed) << 32 |
                    atomic_load_explicit(&e->word[0], memory_order_relaxed);
    uint32_t data = atomic_load_explicit(&e->word[2], memory_order_relaxed);

    if (!pci_bus_master(m->dev)) {
        return;
    }
    /* The two low bits of a message's address are reserved. */
    uint32_t *to = guest_ram_whole(addr & ~3ULL, sizeof(*to));
    if (to) {
        /* Release: whoever sees the message sees the used ring that it announces. */
        __atomic_store_n(to, htole32(data), __ATOMIC_RELEASE);
    }
}

static bool take_pending(PciMsix *m, unsigned int vector)
{
    uint32_t bit = 1u << (vector % 32);

    return atomic_fetch_and(&m->pending[vector / 32], ~bit) & bit;
}

void pci_msix_notify(PciDevice *dev, unsigned int vector)
{
    PciMsix *m = dev->msix;

    if (!m || vector >= m->nr) {
        return;
    }
    if (!is_masked(m, vector)) {
        send(m, vector);
        return;
    }
    /*
     * Pairs with unmasked(): there the mask is cleared before the pending bit is looked at, here the bit is set before the mask
     * is looked at again. So at least one of both sees the other, and only the one that takes the bit sends.
     */
    atomic_fetch_or(&m->pending[vector / 32], 1u << (vector % 32));
    if (!is_masked(m, vector) && take_pending(m, vector)) {
        send(m, vector);
    }
}

static void unmasked(PciMsix *m, unsigned int vector)
{
    if (!is_masked(m, vector) && take_pending(m, vector)) {
        send(m, vector);
    }
}

bool pci_msix_enabled(const PciDevice *dev)
{
    return dev->msix && atomic_load_explicit(&dev->msix->enabled, memory_order_relaxed);
}

unsigned int pci_msix_vectors(const PciDevice *dev)
{
    return dev->msix ? dev->msix->nr : 0;
}

/* --- Guest accesses --- */

static uint64_t table_read(void *opaque, uint64_t offset, unsigned int size)
{
    PciMsix *m = opaque;

    return atomic_load(&m->table[offset / 16].word[offset / 4 % 4]);
}

static void table_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    PciMsix *m = opaque;
    unsigned int vector = offset / 16;

    atomic_store(&m->table[vector].word[offset / 4 % 4], (uint32_t)value);
    unmasked(m, vector);
}

static const GuestRegionOps table_ops = {.read = table_read, .write = table_write, .sizes = 4};

static uint64_t pba_read(void *opaque, uint64_t offset, unsigned int size)
{
    PciMsix *m = opaque;

    return atomic_load(&m->pending[offset / 4]);
}

static const GuestRegionOps pba_ops = {.read = pba_read, .sizes = 4};

void pci_msix_config_written(PciDevice *dev, unsigned int addr, unsigned int len)
{
    PciMsix *m = dev->msix;
    uint16_t ctrl = load_le16(dev->config + m->cap + 2);

    if (addr + len <= m->cap || addr >= m->cap + CAP_SIZE) {
        return;
    }
    atomic_store(&m->masked, ctrl & CTRL_MASK_ALL);
    atomic_store(&m->enabled, ctrl & CTRL_ENABLE);
    for (unsigned int i = 0; i < m->nr; i++) {
        unmasked(m, i);
    }
}

void pci_msix_reset(PciDevice *dev)
{
    PciMsix *m = dev->msix;

    if (!m) {
        return;
    }
    dev->config[m->cap + 3] &= ~((CTRL_ENABLE | CTRL_MASK_ALL) >> 8);
    atomic_store(&m->enabled, false);
    atomic_store(&m->masked, false);
    for (unsigned int i = 0; i < m->nr; i++) {
        for (unsigned int w = 0; w < 4; w++) {
            atomic_store(&m->table[i].word[w], w == 3 ? ENTRY_MASKED : 0);
        }
    }
    for (unsigned int i = 0; i < m->pending_words; i++) {
        atomic_store(&m->pending[i], 0);
    }
}

static uint64_t round_pow2(uint64_t n)
{
    uint64_t p = 1;

    while (p < n) {
        p <<= 1;
    }
    return p;
}

bool pci_msix_init(PciDevice *dev, unsigned int nr, unsigned int bar, unsigned int cap_offset, Error **errp)
{
    uint64_t table_size = (uint64_t)nr * 16, pba_offset = MAX(table_size, 0x800);

    if (nr < 1 || nr > MAX_VECTORS) {
        error_setg(errp, "The number of MSI-X vectors is invalid");
        return false;
    }
    int cap = pci_add_capability(dev, PCI_CAP_ID_MSIX, cap_offset, CAP_SIZE, errp);
    if (cap < 0) {
        return false;
    }
    PciMsix *m = g_new0(PciMsix, 1);
    m->dev = dev;
    m->nr = nr;
    m->cap = (unsigned int)cap;
    m->bar = bar;
    m->table = g_new0(MsixEntry, nr);
    m->pending_words = (nr + 63) / 64 * 2;
    m->pending = g_new0(_Atomic uint32_t, m->pending_words);
    dev->msix = m;

    store_le16(dev->config + cap + 2, (uint16_t)(nr - 1));
    store_le16(dev->wmask + cap + 2, CTRL_ENABLE | CTRL_MASK_ALL);
    store_le32(dev->config + cap + 4, bar);
    store_le32(dev->config + cap + 8, (uint32_t)pba_offset | bar);

    const GuestRegion parts[] = {
        {.name = "msix-table", .ops = &table_ops, .opaque = m, .base = 0, .size = table_size},
        {.name = "msix-pba", .ops = &pba_ops, .opaque = m, .base = pba_offset, .size = m->pending_words * 4},
    };
    pci_add_bar(dev, bar, PCI_BAR_MEM32, round_pow2(MAX(pba_offset + m->pending_words * 4, 4096)), parts, 2);
    pci_msix_reset(dev);
    return true;
}

void pci_msix_free(PciDevice *dev)
{
    PciMsix *m = dev->msix;

    if (m) {
        dev->msix = NULL;
        g_free(m->table);
        g_free(m->pending);
        g_free(m);
    }
}
