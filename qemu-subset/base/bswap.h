/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unaligned loads and stores with a stated byte order. */
#ifndef BASE_BSWAP_H
#define BASE_BSWAP_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define BSWAP_ACCESSORS(bits)                                                                      \
    static inline uint##bits##_t load_le##bits(const void *p)                                      \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof(v));                                                                  \
        return le##bits##toh(v);                                                                   \
    }                                                                                              \
    static inline uint##bits##_t load_be##bits(const void *p)                                      \
    {                                                                                              \
        uint##bits##_t v;                                                                          \
        memcpy(&v, p, sizeof(v));                                                                  \
        return be##bits##toh(v);                                                                   \
    }                                                                                              \
    static inline void store_le##bits(void *p, uint##bits##_t v)                                   \
    {                                                                                              \
        v = htole##bits(v);                                                                        \
        memcpy(p, &v, sizeof(v));                                                                  \
    }                                                                                              \
    static inline void store_be##bits(void *p, uint##bits##_t v)                                   \
    {                                                                                              \
        v = htobe##bits(v);                                                                        \
        memcpy(p, &v, sizeof(v));                                                                  \
    }

BSWAP_ACCESSORS(16)
BSWAP_ACCESSORS(32)
BSWAP_ACCESSORS(64)
#undef BSWAP_ACCESSORS

#endif
