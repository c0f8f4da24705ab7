/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: the linker's --wrap puts these between the engines and the system calls, to count them and to make them fail. */
#ifndef UNIT_FAULT_SHIM_H
#define UNIT_FAULT_SHIM_H

#include <stdbool.h>
#include <stddef.h>

typedef enum FaultCall {
    FAULT_IO_SUBMIT,
    FAULT_URING_SUBMIT,
    FAULT_URING_TABLES, /* io_uring_register() of memory and files */
    FAULT_RESULT_NATIVE, /* the result of a request that io_submit() took; where it is complete on return */
    FAULT_RESULT_URING,  /* the result of a request in the ring */
    FAULT_PREADV2,
    FAULT_PWRITEV2,
    FAULT_FDATASYNC,
    FAULT_FALLOCATE,
    /* fault-shim-loop.c: what the loop calls. */
    FAULT_PPOLL,
    FAULT_EPOLL_CREATE,
    FAULT_EPOLL_CTL,
    FAULT_EPOLL_WAIT, /* epoll_pwait2() as well */
    FAULT_EVENTFD,
    FAULT_EVENTFD_WRITE, /* EAGAIN: the counter has reached its end, so that it can be read all the same */
    FAULT_EVENTFD_READ,
    FAULT_IO_SETUP,
    FAULT_IO_CANCEL,
    FAULT_IO_GETEVENTS,
    FAULT_URING_SETUP,
    FAULT_URING_MAP,
    FAULT_URING_REGISTER,
    FAULT_URING_WAIT,  /* io_uring_enter() with nothing to submit */
    FAULT_RESULT_POLL, /* the result of a descriptor's poll in the ring */
    FAULT_FUTEX_WAIT,
    FAULT_THREAD,
    FAULT_CALLS,
} FaultCall;

#define FAULT_ALWAYS ((unsigned int)-1)

/* Forget all faults, limits and counts. */
void fault_reset(void);
/* Calls @nth (0: the next), @nth + 1 ... of the kind, @times in all, fail with @err (positive errno; 0: answer 0 bytes). */
void fault_set(FaultCall call, unsigned int nth, unsigned int times, int err);
/* Every transfer moves at most @bytes, or one element of a vector; 0: no limit. */
void fault_short(size_t bytes);
/* io_submit() and io_uring_enter() take at most @n at once; 0: no limit. */
void fault_partial(unsigned int n);
/* For the parts of the shim: count a call; true if it is to fail, with the positive errno that fault_errno() tells. */
bool fault_hit(FaultCall call);
int fault_errno(FaultCall call);
/* How many calls of the kind there were, and the most requests that one io_submit() was asked to take. */
unsigned int fault_count(FaultCall call);
unsigned int fault_largest_submit(void);
/* Whether the kernel can give the results of FAULT_RESULT_URING. */
bool fault_uring_results(void);

#endif
