/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Malformed rings and requests, one a row. */
#ifndef QTEST_HOSTILE_CASES_H
#define QTEST_HOSTILE_CASES_H

#include "common.h"

/* Guest memory that every case may point at. */
typedef struct Bench {
    QTest *t;
    Vblk *b;
    Vq *vq;
    uint64_t mem; /* 128 KiB: header at 0, data at 4096, status at 0x1f000, indirect table at 0x10000 */
    uint64_t header, data, status, table;
} Bench;

typedef enum Outcome {
    BROKEN,  /* device needs reset, a line on stderr, no completion */
    STATUS,  /* completes with the given status */
    EITHER,  /* one of the two, and the process lives: QEMU's answer depends on memory layout */
} Outcome;

typedef struct Case {
    const char *name;
    void (*build)(Bench *x); /* fills descriptors and publishes */
    Outcome outcome;
    const char *message; /* BROKEN: on stderr; NULL: any, where it depends on the order of checks */
    uint8_t status;      /* STATUS */
    bool no_indirect;    /* without the feature */
} Case;

extern const Case hostile_cases[];
extern const size_t n_hostile_cases;

/* A well-formed request of three descriptors in slots 0 to 2, and its publication with a doorbell. */
void chain3(Bench *x, uint32_t type, uint64_t sector, uint64_t data, uint32_t len, uint16_t data_flags);
void go(Bench *x, uint16_t head);

#endif
