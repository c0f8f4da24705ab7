/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest RAM: the ranges, and bounded copies for device DMA. */
#include "guest/memory.h"
#include "loop/registration.h"

#include <string.h>

GuestRamRange guest_ram[GUEST_RAM_RANGES];

void guest_ram_set(const GuestRamRange *ranges, unsigned int n)
{
    g_assert(n <= GUEST_RAM_RANGES);
    for (unsigned int i = 0; i < GUEST_RAM_RANGES; i++) {
        if (guest_ram[i].size) {
            aio_memory_remove(guest_ram[i].host);
        }
    }
    memset(guest_ram, 0, sizeof(guest_ram));
    for (unsigned int i = 0; i < n; i++) {
        /* A range that ended at 2^64 or touched the next would break the arithmetic of lookups. */
        g_assert(ranges[i].base + ranges[i].size > ranges[i].base);
        g_assert(i == 0 || ranges[i - 1].base + ranges[i - 1].size < ranges[i].base);
        guest_ram[i] = ranges[i];
        aio_memory_add(ranges[i].host, ranges[i].size);
    }
}

uint64_t guest_ram_gap(uint64_t gpa, uint64_t len)
{
    /* 0 - gpa: bytes to the end of the address space, 0 standing for 2^64. */
    uint64_t gap = gpa ? MIN(len, 0 - gpa) : len;

    for (unsigned int i = 0; i < GUEST_RAM_RANGES; i++) {
        const GuestRamRange *r = &guest_ram[i];
        if (r->size && r->base > gpa) {
            gap = MIN(gap, r->base - gpa);
        }
    }
    return gap;
}

bool guest_ram_read(uint64_t gpa, void *buf, uint64_t len)
{
    bool complete = true;
    uint8_t *to = buf;

    while (len) {
        uint64_t n;
        const void *p = guest_ram_ptr(gpa, len, &n);

        if (p) {
            memcpy(to, p, n);
        } else {
            memset(to, 0, n);
            complete = false;
        }
        gpa += n;
        to += n;
        len -= n;
    }
    return complete;
}

bool guest_ram_write(uint64_t gpa, const void *buf, uint64_t len)
{
    bool complete = true;
    const uint8_t *from = buf;

    while (len) {
        uint64_t n;
        void *p = guest_ram_ptr(gpa, len, &n);

        if (p) {
            memcpy(p, from, n);
        } else {
            complete = false;
        }
        gpa += n;
        from += n;
        len -= n;
    }
    return complete;
}

bool guest_ram_fill(uint64_t gpa, uint8_t byte, uint64_t len)
{
    bool complete = true;

    while (len) {
        uint64_t n;
        void *p = guest_ram_ptr(gpa, len, &n);

        if (p) {
            memset(p, byte, n);
        } else {
            complete = false;
        }
        gpa += n;
        len -= n;
    }
    return complete;
}
