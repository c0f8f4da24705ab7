/* SPDX-License-Identifier: GPL-2.0-or-later */
/* IOThread objects: an AioContext with a thread of its own. */
#ifndef OBJECT_IOTHREAD_H
#define OBJECT_IOTHREAD_H

#include "loop/aio.h"
#include "object/object.h"

#include <sys/types.h>

typedef struct IOThread IOThread;

#define TYPE_IOTHREAD "iothread"
#define TYPE_MAIN_LOOP "main-loop"

/* Main thread. The context lives as long as the object. */
AioContext *iothread_context(IOThread *t);
const char *iothread_id(const IOThread *t);
pid_t iothread_thread_id(const IOThread *t); /* as in /proc/PID/task */
/* The parameters that query-iothreads shows. */
void iothread_params(const IOThread *t, int64_t *poll_max_ns, int64_t *poll_grow, int64_t *poll_shrink,
                     int64_t *poll_weight, int64_t *aio_max_batch);
/* /objects/@id if that is an iothread, else NULL. */
IOThread *iothread_by_id(const char *id);
static inline Object *iothread_object(IOThread *t)
{
    return (Object *)t;
}

#endif
