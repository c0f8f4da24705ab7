/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loads and stores of memory that the driver may change at the same moment. */
#ifndef VIRTIO_RING_ACCESS_H
#define VIRTIO_RING_ACCESS_H

#include <endian.h>
#include <stdint.h>

/*
 * The other side is a guest, which no sanitizer sees and which may break every rule. Each accessor reads or writes memory
 * exactly once (volatile), copes with any alignment, and is left out of ThreadSanitizer: a race with the guest is what
 * rings are made of, and order is given by the explicit fences of the callers.
 */
#define RING_ACCESS static inline __attribute__((no_sanitize("thread")))

typedef uint16_t __attribute__((aligned(1), may_alias)) RingU16;
typedef uint32_t __attribute__((aligned(1), may_alias)) RingU32;
typedef uint64_t __attribute__((aligned(1), may_alias)) RingU64;

RING_ACCESS uint16_t ring_load16(const void *p)
{
    return le16toh(*(const volatile RingU16 *)p);
}

RING_ACCESS uint32_t ring_load32(const void *p)
{
    return le32toh(*(const volatile RingU32 *)p);
}

RING_ACCESS uint64_t ring_load64(const void *p)
{
    return le64toh(*(const volatile RingU64 *)p);
}

RING_ACCESS void ring_store8(void *p, uint8_t v)
{
    *(volatile uint8_t *)p = v;
}

RING_ACCESS void ring_store16(void *p, uint16_t v)
{
    *(volatile RingU16 *)p = htole16(v);
}

RING_ACCESS void ring_store32(void *p, uint32_t v)
{
    *(volatile RingU32 *)p = htole32(v);
}

RING_ACCESS void ring_store64(void *p, uint64_t v)
{
    *(volatile RingU64 *)p = htole64(v);
}

#undef RING_ACCESS
#endif
