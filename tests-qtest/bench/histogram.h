/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log-linear histogram of nanoseconds: 64 buckets to the power of two, so a value is known to 1.6%. */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HIST_SUB_BITS 6
#define HIST_BUCKETS ((41 - HIST_SUB_BITS) << HIST_SUB_BITS)

typedef struct Histogram {
    uint64_t count, sum, min, max;
    uint64_t bucket[HIST_BUCKETS];
} Histogram;

static inline unsigned int hist_index(uint64_t ns)
{
    unsigned int msb, shift, i;

    if (ns < 1U << HIST_SUB_BITS) {
        return (unsigned int)ns;
    }
    msb = 63 - (unsigned int)__builtin_clzll(ns);
    shift = msb - HIST_SUB_BITS;
    i = ((shift + 1) << HIST_SUB_BITS) + (unsigned int)(ns >> shift) - (1U << HIST_SUB_BITS);
    return i < HIST_BUCKETS ? i : HIST_BUCKETS - 1;
}

/* Add one value; one thread per histogram. */
static inline void hist_add(Histogram *h, uint64_t ns)
{
    h->bucket[hist_index(ns)]++;
    h->sum += ns;
    if (!h->count++ || ns < h->min) {
        h->min = ns;
    }
    if (ns > h->max) {
        h->max = ns;
    }
}

void hist_merge(Histogram *into, const Histogram *h);
/* The value below which @fraction of all lie: the middle of its bucket, inside [min, max]. 0 if empty. */
uint64_t hist_quantile(const Histogram *h, double fraction);

#endif
