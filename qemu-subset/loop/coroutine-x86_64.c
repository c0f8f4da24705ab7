/* SPDX-License-Identifier: GPL-2.0-or-later */
/* First stack frame of a coroutine on x86-64. */
#include "loop/coroutine-int.h"

#include <string.h>

void *coroutine_arch_prepare(char *bottom, char *top, void (*entry)(void))
{
    /* Popped by the switch: six registers, then where to go; the zero above stands for a return address. */
    uintptr_t *sp = (uintptr_t *)((uintptr_t)top & ~(uintptr_t)15) - 8;

    memset(sp, 0, 8 * sizeof(*sp));
    sp[6] = (uintptr_t)entry;
    return sp;
}
