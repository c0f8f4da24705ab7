/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Accesses of a CPU: RAM, or the MMIO and port regions that devices put in. */
#include "base/bswap.h"
#include "guest/memory.h"

#include <string.h>

static ListNode spaces[GUEST_SPACES] = {
    {&spaces[0], &spaces[0]},
    {&spaces[1], &spaces[1]},
};

static const uint64_t space_end[GUEST_SPACES] = {
    [GUEST_SPACE_MEM] = UINT64_MAX, /* the last byte of the address space belongs to no region */
    [GUEST_SPACE_IO] = 0x10000,
};

/* --- Regions, in the order of lookup --- */

void guest_region_add(GuestRegion *r)
{
    ListNode *head = &spaces[r->space], *pos = head->prev;

    g_assert(!list_linked(&r->link));
    while (pos != head && list_entry(pos, GuestRegion, link)->priority < r->priority) {
        pos = pos->prev;
    }
    list_add_after(pos, &r->link);
}

void guest_region_remove(GuestRegion *r)
{
    if (list_linked(&r->link)) {
        list_remove(&r->link);
    }
}

void guest_region_for_each(GuestSpace space, void (*fn)(const GuestRegion *r, void *opaque), void *opaque)
{
    GuestRegion *r;

    list_for_each(r, &spaces[space], link) {
        fn(r, opaque);
    }
}

/*
 * The region seen at @addr, with *@n cut to its end; or NULL with *@n cut to the next region. A region whose start hides part
 * of an access does not split it: the chipset's 32-bit port 0xcf8 has another register in its second byte.
 */
static GuestRegion *find_region(GuestSpace space, uint64_t addr, uint64_t *n)
{
    uint64_t gap = *n;
    GuestRegion *r;

    list_for_each(r, &spaces[space], link) {
        uint64_t size = r->base < space_end[space] ? MIN(r->size, space_end[space] - r->base) : 0;
        uint64_t off = addr - r->base;

        if (off < size) {
            *n = MIN(*n, size - off);
            return r;
        }
        if (r->base > addr && size) {
            gap = MIN(gap, r->base - addr);
        }
    }
    *n = gap;
    return NULL;
}

/* The next access that @r takes at @off with @n bytes left: its size; 0 with *@skip bytes that @r does not take. */
static unsigned int next_size(const GuestRegion *r, uint64_t off, uint64_t n, unsigned int *skip)
{
    unsigned int size = 8, min = r->ops->sizes & -r->ops->sizes;

    while (size && (!(r->ops->sizes & size) || size > n || (off & (size - 1)))) {
        size >>= 1;
    }
    if (!size) {
        *skip = (unsigned int)MIN(n, min - (off & (min - 1)));
    }
    return size;
}

static unsigned int region_read(GuestRegion *r, uint64_t off, uint8_t *buf, uint64_t n)
{
    unsigned int skip, size = next_size(r, off, n, &skip);
    uint8_t bytes[8];

    if (!size) {
        memset(buf, 0, skip);
        return skip;
    }
    store_le64(bytes, r->ops->read ? r->ops->read(r->opaque, off, size) : 0);
    memcpy(buf, bytes, size);
    return size;
}

static unsigned int region_write(GuestRegion *r, uint64_t off, const uint8_t *buf, uint64_t n)
{
    unsigned int skip, size = next_size(r, off, n, &skip);
    uint8_t bytes[8] = {0};

    if (!size) {
        return skip;
    }
    memcpy(bytes, buf, size);
    if (r->ops->write) {
        r->ops->write(r->opaque, off, load_le64(bytes), size);
    }
    return size;
}

/*
 * --- RAM as a CPU sees it ---
 * The guest's own accesses race with devices by design, as those of a real CPU would; the thread sanitizer must judge only the
 * device side. Aligned words are moved whole and in order, so a test sees neither half of a ring index nor a used element
 * older than the index that announces it.
 */
#if __has_attribute(disable_sanitizer_instrumentation)
/* For clang the other attribute leaves atomic accesses in. */
#define GUEST_CPU_ACCESS __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define GUEST_CPU_ACCESS __attribute__((no_sanitize("thread"), noinline))
#endif

static inline unsigned int word_size(const uint8_t *ram, uint64_t n)
{
    unsigned int size = 8;

    while (size > n || ((uintptr_t)ram & (size - 1))) {
        size >>= 1;
    }
    return size;
}

#define LOAD_WORD(type)                                                                            \
    do {                                                                                           \
        type v = __atomic_load_n((const type *)ram, __ATOMIC_ACQUIRE);                             \
        memcpy(buf, &v, sizeof(v));                                                                \
    } while (0)
#define STORE_WORD(type)                                                                           \
    do {                                                                                           \
        type v;                                                                                    \
        memcpy(&v, buf, sizeof(v));                                                                \
        __atomic_store_n((type *)ram, v, __ATOMIC_RELEASE);                                        \
    } while (0)

GUEST_CPU_ACCESS static void cpu_load(uint8_t *buf, const uint8_t *ram, uint64_t n)
{
    while (n) {
        unsigned int size = word_size(ram, n);

        switch (size) {
        case 8:
            LOAD_WORD(uint64_t);
            break;
        case 4:
            LOAD_WORD(uint32_t);
            break;
        case 2:
            LOAD_WORD(uint16_t);
            break;
        default:
            LOAD_WORD(uint8_t);
        }
        buf += size;
        ram += size;
        n -= size;
    }
}

GUEST_CPU_ACCESS static void cpu_store(uint8_t *ram, const uint8_t *buf, uint64_t n)
{
    while (n) {
        unsigned int size = word_size(ram, n);

        switch (size) {
        case 8:
            STORE_WORD(uint64_t);
            break;
        case 4:
            STORE_WORD(uint32_t);
            break;
        case 2:
            STORE_WORD(uint16_t);
            break;
        default:
            STORE_WORD(uint8_t);
        }
        buf += size;
        ram += size;
        n -= size;
    }
}

static void cpu_fill(uint8_t *ram, uint8_t byte, uint64_t n)
{
    uint8_t block[512];

    memset(block, byte, sizeof(block));
    while (n) {
        uint64_t piece = MIN(n, sizeof(block));

        cpu_store(ram, block, piece);
        ram += piece;
        n -= piece;
    }
}

/* --- Walks --- */

static void space_read(GuestSpace space, uint64_t addr, uint8_t *buf, uint64_t len)
{
    while (len) {
        uint64_t n = len;
        const uint8_t *ram = space == GUEST_SPACE_MEM ? guest_ram_ptr(addr, len, &n) : NULL;

        if (ram) {
            cpu_load(buf, ram, n);
        } else {
            GuestRegion *r = find_region(space, addr, &n);
            if (r) {
                n = region_read(r, addr - r->base, buf, n);
            } else {
                memset(buf, space == GUEST_SPACE_IO ? 0xff : 0, n);
            }
        }
        addr += n;
        buf += n;
        len -= n;
    }
}

static void space_write(GuestSpace space, uint64_t addr, const uint8_t *buf, uint64_t len)
{
    while (len) {
        uint64_t n = len;
        uint8_t *ram = space == GUEST_SPACE_MEM ? guest_ram_ptr(addr, len, &n) : NULL;

        if (ram) {
            cpu_store(ram, buf, n);
        } else {
            GuestRegion *r = find_region(space, addr, &n);
            if (r) {
                n = region_write(r, addr - r->base, buf, n);
            }
        }
        addr += n;
        buf += n;
        len -= n;
    }
}

uint64_t guest_mem_read(uint64_t addr, unsigned int size)
{
    uint8_t bytes[8] = {0};

    g_assert(size <= 8);
    space_read(GUEST_SPACE_MEM, addr, bytes, size);
    return load_le64(bytes);
}

void guest_mem_write(uint64_t addr, uint64_t value, unsigned int size)
{
    uint8_t bytes[8];

    g_assert(size <= 8);
    store_le64(bytes, value);
    space_write(GUEST_SPACE_MEM, addr, bytes, size);
}

uint32_t guest_io_read(uint16_t port, unsigned int size)
{
    uint8_t bytes[4] = {0};

    g_assert(size <= 4);
    space_read(GUEST_SPACE_IO, port, bytes, size);
    return load_le32(bytes);
}

void guest_io_write(uint16_t port, uint32_t value, unsigned int size)
{
    uint8_t bytes[4];

    g_assert(size <= 4);
    store_le32(bytes, value);
    space_write(GUEST_SPACE_IO, port, bytes, size);
}

void guest_mem_read_bulk(uint64_t addr, void *buf, uint64_t len)
{
    space_read(GUEST_SPACE_MEM, addr, buf, len);
}

void guest_mem_write_bulk(uint64_t addr, const void *buf, uint64_t len)
{
    space_write(GUEST_SPACE_MEM, addr, buf, len);
}

void guest_mem_fill(uint64_t addr, uint8_t byte, uint64_t len)
{
    const uint64_t pattern = byte * 0x0101010101010101ULL;

    while (len) {
        uint64_t n;
        uint8_t *ram = guest_ram_ptr(addr, len, &n);

        if (ram) {
            cpu_fill(ram, byte, n);
        } else {
            GuestRegion *r = find_region(GUEST_SPACE_MEM, addr, &n);
            if (r) {
                n = region_write(r, addr - r->base, (const uint8_t *)&pattern, MIN(n, 8));
            }
        }
        addr += n;
        len -= n;
    }
}
