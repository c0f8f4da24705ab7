/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Log-linear histogram of nanoseconds. */
#include "histogram.h"

static uint64_t bucket_middle(unsigned int i)
{
    unsigned int shift, sub;

    if (i < 2U << HIST_SUB_BITS) {
        return i;
    }
    shift = (i >> HIST_SUB_BITS) - 1;
    sub = (i & ((1U << HIST_SUB_BITS) - 1)) + (1U << HIST_SUB_BITS);
    return ((uint64_t)sub << shift) + (1ULL << shift) / 2;
}

void hist_merge(Histogram *into, const Histogram *h)
{
    if (!h->count) {
        return;
    }
    into->min = into->count && into->min < h->min ? into->min : h->min;
    into->max = into->max > h->max ? into->max : h->max;
    into->count += h->count;
    into->sum += h->sum;
    for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
        into->bucket[i] += h->bucket[i];
    }
}

uint64_t hist_quantile(const Histogram *h, double fraction)
{
    uint64_t need = (uint64_t)(fraction * (double)h->count), seen = 0, v = h->max;

    for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen > need || (seen == h->count && seen)) {
            v = bucket_middle(i);
            break;
        }
    }
    return v < h->min ? h->min : v > h->max ? h->max : v;
}
