/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a fuzz target reads its decisions from: bytes, and zeroes when they have run out. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
/* Given by whoever drives the target. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

typedef struct FuzzInput {
    const uint8_t *p;
    size_t left;
} FuzzInput;

static inline uint64_t fuzz_take(FuzzInput *in, unsigned int bytes)
{
    uint64_t v = 0;

    for (unsigned int i = 0; i < bytes && in->left; i++, in->p++, in->left--) {
        v |= (uint64_t)*in->p << (8 * i);
    }
    return v;
}

/* Below @n. */
static inline unsigned int fuzz_pick(FuzzInput *in, unsigned int n)
{
    return (unsigned int)fuzz_take(in, 1) % n;
}

/* A number as hostile code likes them: small, close to a power of two, all ones, or anything; @bytes wide. */
static inline uint64_t fuzz_value(FuzzInput *in, unsigned int bytes)
{
    unsigned int kind = (unsigned int)fuzz_take(in, 1);

    switch (kind % 6) {
    case 0:
        return kind / 6;
    case 1:
        return UINT64_MAX - kind / 6;
    case 2:
        return 1ull << (kind / 6 + fuzz_take(in, 1) % 32) % 64;
    case 3:
        return (1ull << (kind / 6 + fuzz_take(in, 1) % 32) % 64) - 1;
    default:
        return fuzz_take(in, bytes);
    }
}

#endif
