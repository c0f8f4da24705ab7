/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest-physical memory: RAM that any thread reaches without a lock, and dispatch of MMIO and port accesses. */
#ifndef GUEST_MEMORY_H
#define GUEST_MEMORY_H

#include "base/error.h"
#include "base/list.h"

#include <stdint.h>

/*
 * --- RAM ---
 * One or two ranges (below and above the PCI hole), fixed once the machine exists and before any IOThread looks: lookups
 * read plain globals. Nothing here can fail because of what a guest asks for: lengths and addresses may have any value.
 */
#define GUEST_RAM_RANGES 2

typedef struct GuestRamRange {
    uint64_t base, size; /* guest-physical; size 0: unused */
    uint8_t *host;
} GuestRamRange;

/* Read-only outside memory.c; ascending, adjacent ranges never touch. */
extern GuestRamRange guest_ram[GUEST_RAM_RANGES];

/* Machine creation (and tests): define the ranges; the memory stays the caller's. Main thread, before any use. */
void guest_ram_set(const GuestRamRange *ranges, unsigned int n);

/* [any thread] Slow path of guest_ram_ptr(): bytes from @gpa, at most @len, that no range covers. */
uint64_t guest_ram_gap(uint64_t gpa, uint64_t len);

/*
 * [any thread] Host address of @gpa, with *@contiguous (> 0) bytes usable from there, at most @len (> 0). Where @gpa is no RAM
 * the result is NULL and *@contiguous counts the bytes that are none either, so a caller can step on. The memory may be
 * written by the guest at any time: read a value once, then check and use the copy.
 */
static inline void *guest_ram_ptr(uint64_t gpa, uint64_t len, uint64_t *contiguous)
{
    for (unsigned int i = 0; i < GUEST_RAM_RANGES; i++) {
        const GuestRamRange *r = &guest_ram[i];
        uint64_t off = gpa - r->base;

        if (off < r->size) {
            uint64_t left = r->size - off;

            *contiguous = len < left ? len : left;
            return r->host + off;
        }
    }
    *contiguous = guest_ram_gap(gpa, len);
    return NULL;
}

/* [any thread] The same when all of @len (> 0) bytes must lie in one piece: NULL otherwise. */
static inline void *guest_ram_whole(uint64_t gpa, uint64_t len)
{
    uint64_t got;
    void *p = guest_ram_ptr(gpa, len, &got);

    return p && got == len ? p : NULL;
}

/*
 * [any thread] Copy from, to, or fill RAM across ranges and holes: what is no RAM reads as 0 and swallows writes. @len may be 0;
 * addresses wrap at 2^64. Return false if part of it was no RAM.
 */
bool guest_ram_read(uint64_t gpa, void *buf, uint64_t len);
bool guest_ram_write(uint64_t gpa, const void *buf, uint64_t len);
bool guest_ram_fill(uint64_t gpa, uint8_t byte, uint64_t len);

/*
 * --- MMIO and ports; main thread only ---
 * A region's callbacks only see naturally aligned accesses of a size in @sizes, inside the region: wider and misaligned
 * ones are split, ascending; what is narrower than every size in @sizes reads as 0 and is ignored on write. Values are those
 * of a little-endian CPU.
 */
typedef enum GuestSpace {
    GUEST_SPACE_MEM,
    GUEST_SPACE_IO, /* 64 Ki ports */
    GUEST_SPACES,
} GuestSpace;

typedef struct GuestRegionOps {
    uint64_t (*read)(void *opaque, uint64_t offset, unsigned int size);               /* NULL: reads as 0 */
    void (*write)(void *opaque, uint64_t offset, uint64_t value, unsigned int size);  /* NULL: ignored */
    unsigned int sizes; /* sum of 1, 2, 4, 8 */
} GuestRegionOps;

/* Owned by whoever adds it; base and size change only while it is not added. */
typedef struct GuestRegion {
    const char *name;
    const GuestRegionOps *ops;
    void *opaque;
    GuestSpace space;
    uint64_t base, size; /* a region that would pass the end of its space is cut off there */
    int priority;        /* of overlapping regions the highest is seen, then the one that was added first; RAM hides all */
    ListNode link;
} GuestRegion;

/* A callback may add and remove regions, its own included. */
void guest_region_add(GuestRegion *r);
void guest_region_remove(GuestRegion *r); /* harmless if it is not added */
static inline bool guest_region_added(const GuestRegion *r)
{
    return list_linked(&r->link);
}
/* In the order of lookup, for "info mtree". */
void guest_region_for_each(GuestSpace space, void (*fn)(const GuestRegion *r, void *opaque), void *opaque);

/*
 * An access of a CPU: RAM, a region, or nothing. Reads of nothing give 0 in memory and all ones at a port. @size is 1, 2, 4
 * or 8 (ports: up to 4).
 */
uint64_t guest_mem_read(uint64_t addr, unsigned int size);
void guest_mem_write(uint64_t addr, uint64_t value, unsigned int size);
uint32_t guest_io_read(uint16_t port, unsigned int size);
void guest_io_write(uint16_t port, uint32_t value, unsigned int size);
/* Any length, across RAM and regions; regions are read in the widest pieces they take. */
void guest_mem_read_bulk(uint64_t addr, void *buf, uint64_t len);
void guest_mem_write_bulk(uint64_t addr, const void *buf, uint64_t len);
void guest_mem_fill(uint64_t addr, uint8_t byte, uint64_t len);

#endif
