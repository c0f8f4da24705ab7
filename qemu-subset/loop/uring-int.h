/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ring of a context: what uring.c and uring-register.c share. */
#ifndef LOOP_URING_INT_H
#define LOOP_URING_INT_H

#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <liburing.h>

/* Registered memory; buffers of the kernel, AIO_BUFFER_MAX each but the last, follow one another from @first on. */
typedef struct AioUringMemory {
    uintptr_t host;
    uint64_t size;
    unsigned int first;
} AioUringMemory;

/* The most that the kernel takes as one buffer. */
#define AIO_BUFFER_MAX ((uint64_t)1 << 30)

typedef struct AioUringFile {
    unsigned int generation; /* of the AioFile that was registered, or could not be; 0: none */
    bool registered;
} AioUringFile;

/* What is registered with a ring, besides its own descriptor. */
typedef struct AioUringTables {
    unsigned int want;      /* AIO_URING_REGISTERED_* asked for */
    unsigned int in_force;  /* may be used for requests */
    unsigned int refused;   /* not asked for again until the memory changes or a user asks */
    bool used;              /* an engine uses the ring; until then nothing is registered */
    bool stale;             /* the tables are not what is wanted */
    unsigned int in_flight; /* requests that use a slot: prepared and not yet completed */

    unsigned int memory_generation; /* of the list that was registered, or could not be */
    unsigned int n_memory, last;    /* last: where the last buffer was found */
    AioUringMemory *memory;
    unsigned int buffer_slots; /* in the kernel's table; 0: there is none yet */
    unsigned int n_buffers;    /* of which so many have been filled */

    unsigned int n_files; /* slots in the kernel's table; 0: there is none yet */
    AioUringFile *files;
} AioUringTables;

typedef struct AioUring {
    struct io_uring ring;
    bool registered;              /* the ring's descriptor */
    bool refused;                 /* the kernel did not so much as look at completions when it was last asked to */
    unsigned int in_flight;       /* requests prepared and not yet completed */
    unsigned int requests_queued; /* requests prepared and not yet accepted by the kernel */
    unsigned int own_queued;      /* the same for SQEs of the loop itself */
    unsigned int *no_array;       /* stands for the index array that the kernel was told to do without */
    AioUringTables tables;
} AioUring;

/* Home: a request that uses a slot has completed. */
void aio_uring_registered_done(AioContext *ctx);
/* Home: the ring is there; it goes away. */
void aio_uring_tables_init(AioContext *ctx);
void aio_uring_tables_destroy(AioContext *ctx);

#endif
