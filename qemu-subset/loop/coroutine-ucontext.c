/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coroutine switch for machines without one of their own: ucontext, at the price of two system calls a round trip. */
#include "loop/coroutine-int.h"

#include <stdlib.h>
#include <ucontext.h>

void coroutine_arch_switch(void **save, void *load)
{
    ucontext_t here; /* on the stack that is being left, so it lives as long as it is needed */

    *save = &here;
    if (swapcontext(&here, load)) {
        abort();
    }
}

void *coroutine_arch_prepare(char *bottom, char *top, void (*entry)(void))
{
    ucontext_t *first = (ucontext_t *)(((uintptr_t)top - sizeof(*first)) & ~(uintptr_t)63);

    if (getcontext(first)) {
        abort();
    }
    first->uc_stack.ss_sp = bottom;
    first->uc_stack.ss_size = (size_t)((char *)first - bottom);
    first->uc_link = NULL;
    makecontext(first, entry, 0);
    return first;
}
