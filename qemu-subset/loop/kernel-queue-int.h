/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel queues as the monitors in this room use them: watched descriptors beside the engines' requests. */
#ifndef LOOP_KERNEL_QUEUE_INT_H
#define LOOP_KERNEL_QUEUE_INT_H

#include "loop/kernel-queue.h"

/*
 * What the kernel hands back is a pointer to an AioCompletion; this bit marks those of the loop itself, which do not count
 * as requests. A zero is ignored.
 */
#define AIO_COMPLETION_OWN ((uintptr_t)1)

/* An SQE of the loop itself; @c may be NULL. NULL if there is no place. */
struct io_uring_sqe *aio_uring_sqe_own(AioContext *ctx, AioCompletion *c);
/*
 * One io_uring_enter(2): submit what is prepared, let the kernel post completions, and wait for @min of them, for at most
 * @timeout_ns (-1: no limit). The number submitted or -errno; -ETIME when time was up.
 */
int aio_uring_enter(AioContext *ctx, unsigned int min, int64_t timeout_ns);

/* Submit without eventfd and without counting: iocbs whose data is an AioCompletion with AIO_COMPLETION_OWN. */
int aio_kaio_submit_own(AioContext *ctx, struct iocb **iocbs, unsigned int n);
int aio_kaio_cancel_own(AioContext *ctx, struct iocb *iocb);
/* Sleep until an event is there, for at most @timeout_ns (-1: no limit). */
void aio_kaio_wait(AioContext *ctx, int64_t timeout_ns);

/* For tests: as if the kernel's ring had an unknown layout. */
void aio_kaio_forget_ring(AioContext *ctx);

/* io_uring_setup(2); a weak symbol that tests replace. -errno on failure. */
struct io_uring_params;
int aio_uring_setup_call(unsigned int entries, struct io_uring_params *p);

#endif
