/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Built instead of uring.c and fdmon-io_uring.c where liburing is missing: whoever asks for a ring is told so. */
#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>

static int none_init(AioContext *ctx, Error **errp)
{
    error_setg(errp, "io_uring was not built into this program (liburing was missing)");
    return -ENOSYS;
}

const FDMonOps fdmon_io_uring = {.name = "io_uring", .init = none_init};

struct io_uring *aio_uring_get(AioContext *ctx, Error **errp)
{
    none_init(ctx, errp);
    return NULL;
}

bool aio_uring_exists(const AioContext *ctx)
{
    return false;
}

bool aio_uring_posted(const AioContext *ctx)
{
    return false;
}

bool aio_uring_unsubmitted(const AioContext *ctx)
{
    return false;
}

unsigned int aio_uring_in_flight(const AioContext *ctx)
{
    return 0;
}

void aio_uring_destroy(AioContext *ctx)
{
}

/* The rest needs a ring, which nobody can have got. */
struct io_uring_sqe *aio_uring_sqe(AioContext *ctx, AioCompletion *c)
{
    return NULL;
}

int aio_uring_submit(AioContext *ctx)
{
    return -ENOSYS;
}

void aio_uring_submit_soon(AioContext *ctx)
{
}

unsigned int aio_uring_requests_queued(AioContext *ctx)
{
    return 0;
}

unsigned int aio_uring_queued(AioContext *ctx)
{
    return 0;
}

unsigned int aio_uring_space(AioContext *ctx)
{
    return 0;
}

bool aio_uring_ready(AioContext *ctx)
{
    return false;
}

unsigned int aio_uring_reap(AioContext *ctx)
{
    return 0;
}

unsigned int aio_uring_registered(AioContext *ctx)
{
    return 0;
}

int aio_uring_file_index(AioContext *ctx, const AioFile *f, int fd)
{
    return -1;
}

int aio_uring_buffer_index(AioContext *ctx, const void *p, size_t bytes)
{
    return -1;
}

void aio_uring_uses_registered(AioContext *ctx, struct io_uring_sqe *sqe)
{
}

bool aio_uring_set_registered(AioContext *ctx, unsigned int flags, Error **errp)
{
    return true;
}

void aio_uring_forget_file(AioContext *ctx, unsigned int slot)
{
}
