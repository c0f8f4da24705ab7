/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: the linker's --wrap puts these between the engines and the system calls, to count them and to make them fail. */
#ifndef UNIT_FAULT_SHIM_H
#define UNIT_FAULT_SHIM_H

#include <stdbool.h>
#include <stddef.h>

typedef enum FaultCall {
    FAULT_IO_SUBMIT,
    FAULT_URING_SUBMIT,
    FAULT_RESULT_NATIVE, /* the result of a request that io_submit() took; where it is complete on return */
    FAULT_RESULT_URING,  /* the result of a request in the ring */
    FAULT_PREADV2,
    FAULT_PWRITEV2,
    FAULT_FDATASYNC,
    FAULT_FALLOCATE,
    FAULT_CALLS,
} FaultCall;

#define FAULT_ALWAYS ((unsigned int)-1)

/* Forget all faults, limits and counts. */
void fault_reset(void);
/* Calls @nth (0: the next), @nth + 1 ... of the kind, @times in all, fail with @err (positive errno; 0: answer 0 bytes). */
void fault_set(FaultCall call, unsigned int nth, unsigned int times, int err);
/* Every transfer moves at most @bytes, or one element of a vector; 0: no limit. */
void fault_short(size_t bytes);
/* io_submit() takes at most @n at once; 0: no limit. */
void fault_partial(unsigned int n);
/* How many calls of the kind there were, and the most requests that one io_submit() was asked to take. */
unsigned int fault_count(FaultCall call);
unsigned int fault_largest_submit(void);
/* Whether the kernel can give the results of FAULT_RESULT_URING. */
bool fault_uring_results(void);

#endif
