/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel queues that a loop owns and its monitor and engines share: one io_uring ring, one Linux AIO context. */
#ifndef LOOP_KERNEL_QUEUE_H
#define LOOP_KERNEL_QUEUE_H

#include "loop/registration.h"

/*
 * Home-only, all of it. Each pass of aio_poll() looks at the rings in user space and reaps them by itself; submissions and
 * completions of requests are counted in AioStats here, for both queues. The headers of liburing and libaio are included by users, not here.
 */
struct io_uring;
struct io_uring_sqe;
struct iocb;

/*
 * The ring of @ctx, made on first use if the monitor has not made it; NULL with @errp set when the kernel has none
 * (the message names the errno and, where that is the cause, the sysctl kernel.io_uring_disabled).
 * When the monitor is not io_uring, the loop watches the ring's descriptor itself.
 */
struct io_uring *aio_uring_get(AioContext *ctx, Error **errp);
/*
 * A free SQE whose completion will call @c->fn, or NULL if the submission queue is full and could not be emptied.
 * The caller prepares it; it goes to the kernel with the next aio_uring_submit() or when the loop waits (one system call
 * for both).
 */
struct io_uring_sqe *aio_uring_sqe(AioContext *ctx, AioCompletion *c);
/* Submit prepared SQEs now. Returns the number accepted or -errno; what was not accepted stays queued in order. */
int aio_uring_submit(AioContext *ctx);
/*
 * Submit at the end of a section: now, or where the io_uring monitor ends a pass, with the wait that comes next, which
 * saves a system call.
 */
void aio_uring_submit_soon(AioContext *ctx);
/* Requests (no watched descriptors) prepared and not yet taken by the kernel. */
unsigned int aio_uring_requests_queued(AioContext *ctx);
/* SQEs prepared and not yet submitted; free places in the queue. */
unsigned int aio_uring_queued(AioContext *ctx);
unsigned int aio_uring_space(AioContext *ctx);
/*
 * Before a batch of SQEs is prepared, and when an engine begins to use the ring: register what the context wants registered
 * and the ring does not have yet. Returns the AIO_URING_REGISTERED_* in force; what the kernel refuses is told with a
 * warning, once.
 */
unsigned int aio_uring_registered(AioContext *ctx);
/*
 * While AIO_URING_REGISTERED_FILES is in force: the place of @f, open as @fd, in the ring's table, or -1. While
 * AIO_URING_REGISTERED_BUFFERS is: the registered buffer in which all @bytes at @p lie, or -1. An SQE that uses one or both is
 * told of by aio_uring_uses_registered(), once.
 */
int aio_uring_file_index(AioContext *ctx, const AioFile *f, int fd);
int aio_uring_buffer_index(AioContext *ctx, const void *p, size_t bytes);
void aio_uring_uses_registered(AioContext *ctx, struct io_uring_sqe *sqe);
/* Look at the completion ring (and the TASKRUN bit) in user space; then run completions, returning their number. */
bool aio_uring_ready(AioContext *ctx);
unsigned int aio_uring_reap(AioContext *ctx);

/*
 * The Linux AIO context of @ctx, made on first use with aio_context_max_events() events. False with @errp set if the
 * kernel refuses; at fs.aio-max-nr the message names it, its value and the remedy.
 */
bool aio_kaio_get(AioContext *ctx, Error **errp);
/*
 * Submit @n iocbs whose data pointer is an AioCompletion. Adds the loop's notifier (IOCB_FLAG_RESFD) where the monitor
 * needs it. Returns the number accepted or -errno, as io_submit(2).
 */
int aio_kaio_submit(AioContext *ctx, struct iocb **iocbs, unsigned int n);
/* In flight (requests only, not watched descriptors), and free events. */
unsigned int aio_kaio_in_flight(AioContext *ctx);
unsigned int aio_kaio_free_events(AioContext *ctx);
bool aio_kaio_ready(AioContext *ctx);
unsigned int aio_kaio_reap(AioContext *ctx);

#endif
