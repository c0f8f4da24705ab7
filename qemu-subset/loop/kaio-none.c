/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Built instead of kaio.c and fdmon-linux-aio.c where libaio is missing: whoever asks for Linux AIO is told so. */
#include "loop/context.h"
#include "loop/kernel-queue.h"

#include <errno.h>

static int none_init(AioContext *ctx, Error **errp)
{
    error_setg(errp, "Linux AIO was not built into this program (libaio was missing)");
    return -ENOSYS;
}

const FDMonOps fdmon_linux_aio = {.name = "linux-aio", .init = none_init};

bool aio_kaio_get(AioContext *ctx, Error **errp)
{
    none_init(ctx, errp);
    return false;
}

bool aio_kaio_exists(const AioContext *ctx)
{
    return false;
}

void aio_kaio_destroy(AioContext *ctx)
{
}

/* The rest needs a kernel context, which nobody can have got. */
int aio_kaio_resize(AioContext *ctx, unsigned int max_events, Error **errp)
{
    return none_init(ctx, errp);
}

bool aio_kaio_silent(const AioContext *ctx)
{
    return false;
}

int aio_kaio_submit(AioContext *ctx, struct iocb **iocbs, unsigned int n)
{
    return -ENOSYS;
}

unsigned int aio_kaio_in_flight(AioContext *ctx)
{
    return 0;
}

unsigned int aio_kaio_free_events(AioContext *ctx)
{
    return 0;
}

bool aio_kaio_ready(AioContext *ctx)
{
    return false;
}

unsigned int aio_kaio_reap(AioContext *ctx)
{
    return 0;
}
