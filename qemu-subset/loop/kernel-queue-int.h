/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel queues as the monitors in this room use them: watched descriptors beside the engines' requests. */
#ifndef LOOP_KERNEL_QUEUE_INT_H
#define LOOP_KERNEL_QUEUE_INT_H

#include "loop/kernel-queue.h"
#include "loop/registration.h"

/*
 * What the kernel hands back is a pointer to an AioCompletion; these bits mark those of the loop itself, which do not count
 * as requests, and requests that use something registered. A zero is ignored.
 */
#define AIO_COMPLETION_OWN ((uintptr_t)1)
#define AIO_COMPLETION_REGISTERED ((uintptr_t)2)
#define AIO_COMPLETION_BITS ((uintptr_t)3)

/* An SQE of the loop itself; @c may be NULL. NULL if there is no place. */
struct io_uring_sqe *aio_uring_sqe_own(AioContext *ctx, AioCompletion *c);
/*
 * One io_uring_enter(2): submit what is prepared, let the kernel post completions, and wait for @min of them, for at most
 * @timeout_ns (-1: no limit). The number submitted or -errno; -ETIME when time was up.
 */
int aio_uring_enter(AioContext *ctx, unsigned int min, int64_t timeout_ns);
/* What aio_uring_enter() returned means that the kernel neither waited nor looked at completions. */
static inline bool aio_uring_refused(int ret)
{
    return ret < 0 && ret != -EINTR && ret != -ETIME;
}
/* The kernel refused that: sleep for at most @ns (> 0), until there is a completion of what it took before. */
void aio_uring_rest(AioContext *ctx, int64_t ns);

/* Submit without eventfd and without counting: iocbs whose data is an AioCompletion with AIO_COMPLETION_OWN. */
int aio_kaio_submit_own(AioContext *ctx, struct iocb **iocbs, unsigned int n);
int aio_kaio_cancel_own(AioContext *ctx, struct iocb *iocb);
/* Sleep until an event is there, for at most @timeout_ns (-1: no limit). */
void aio_kaio_wait(AioContext *ctx, int64_t timeout_ns);

/* For tests: as if the kernel's ring had an unknown layout. */
void aio_kaio_forget_ring(AioContext *ctx);

/* io_uring_setup(2) and io_uring_register(2); weak symbols that tests replace. -errno on failure. */
struct io_uring_params;
int aio_uring_setup_call(unsigned int entries, struct io_uring_params *p);
int aio_uring_register_call(int fd, unsigned int opcode, const void *arg, unsigned int n);

/* --- The lists of registration.c as rings see them --- */
typedef struct AioMemory {
    void *host;
    uint64_t size;
} AioMemory;

/* [any] Changes when the list of memory does. */
unsigned int aio_memory_generation(void);
/* [any] A copy of the list, to be freed, with its length and its generation. */
AioMemory *aio_memory_list(unsigned int *n, unsigned int *generation);
/* Home: from now on the ring of @ctx may have a file registered in @slot; aio_file_close() will ask it to forget that. */
void aio_file_hold(unsigned int slot, AioContext *ctx);
/* Home: the ring of @ctx has no file registered any more. */
void aio_files_let_go(AioContext *ctx);
/* Home: forget the file in @slot, so that the ring does not keep it open. */
void aio_uring_forget_file(AioContext *ctx, unsigned int slot);
/* Home: register what @flags (AIO_URING_REGISTERED_FILES, _BUFFERS) say from now on. False with @errp set: all is as before. */
bool aio_uring_set_registered(AioContext *ctx, unsigned int flags, Error **errp);

#endif
