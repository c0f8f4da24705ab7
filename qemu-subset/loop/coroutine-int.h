/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the coroutine code share: the object, and the context switch of each architecture. */
#ifndef LOOP_COROUTINE_INT_H
#define LOOP_COROUTINE_INT_H

#include "loop/context.h"
#include "loop/coroutine.h"

struct Coroutine {
    void *sp;           /* saved stack pointer while suspended */
    Coroutine *caller;  /* whom a yield goes back to; NULL while suspended */
    CoroutineFn *fn;
    void *opaque;
    AioContext *ctx;    /* of the thread that entered it last */
    FifoNode link;      /* in a CoQueue, or in a pool of ended coroutines */
    AioWork work;       /* on its way to a context after aio_co_schedule() */
    _Atomic(bool) scheduled; /* ... which is still to run */
    char *map;          /* the mapping that holds guard page, stack and this struct */
    /* For the sanitizers. */
    void *fiber;
    const void *stack_bottom;
    size_t stack_size;
};

/*
 * Save the callee-saved registers on the current stack and its pointer in *@save, and continue what @load was saved for.
 * The floating-point control words are not switched: nothing here changes them.
 */
void coroutine_arch_switch(void **save, void *load);
/* Lay out the stack [@bottom, @top) so that the first switch to the returned pointer calls @entry, which never returns. */
void *coroutine_arch_prepare(char *bottom, char *top, void (*entry)(void));

/* Yield, and have the thread that gets control back schedule this coroutine in @ctx. */
void coroutine_fn coroutine_yield_to(AioContext *ctx);

/* Ended coroutines kept for reuse by the calling thread, and by all threads together. For tests. */
unsigned int coroutine_pool_local(void);
unsigned int coroutine_pool_global(void);

#define COROUTINE_STACK_SIZE (1024 * 1024)
#define COROUTINE_POOL_LOCAL_MAX 64
#define COROUTINE_POOL_GLOBAL_MAX 512

#endif
