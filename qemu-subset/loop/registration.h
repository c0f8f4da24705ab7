/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What io_uring rings can be told beforehand, so that a request costs the kernel less: memory, and open files. */
#ifndef LOOP_REGISTRATION_H
#define LOOP_REGISTRATION_H

#include "loop/aio.h"

/*
 * Here the process lists what there is. The rings of contexts with AIO_URING_REGISTERED_BUFFERS or
 * AIO_URING_REGISTERED_FILES follow the lists, each from its home and in its own time: memory before the next request,
 * a file at its first request.
 */

/*
 * [any] Requests may use @size bytes at @host. A ring that registers them makes them resident and pins them, which
 * counts against RLIMIT_MEMLOCK once for each ring.
 */
void aio_memory_add(void *host, uint64_t size);
/*
 * [any] The memory added at @host goes away; no request uses it any more. Rings let go of its pages before their next
 * request or when they end, and look nothing up in it from now on.
 */
void aio_memory_remove(void *host);

/* How many files can be registered at a time; more work as if the switch were off. */
#define AIO_FILE_SLOTS 256

/* An open file as rings know it; zero: they never will. */
typedef struct AioFile {
    unsigned int slot; /* in every ring's table, plus one; 0: none was free */
    _Atomic unsigned int generation;
} AioFile;

/* [any] Before the first request. */
void aio_file_open(AioFile *f);
/* [any] Its descriptor stands for another open file now. Requests may be in flight, rings may still use the old one for them. */
void aio_file_changed(AioFile *f);
/*
 * From a thread with a context, which is polled meanwhile: no ring holds the file open any more. Nothing of it is in
 * flight; its descriptor is still open.
 */
void aio_file_close(AioFile *f);

#endif
