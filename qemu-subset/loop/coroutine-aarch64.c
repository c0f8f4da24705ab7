/* SPDX-License-Identifier: GPL-2.0-or-later */
/* First stack frame of a coroutine on 64-bit Arm. */
#include "loop/coroutine-int.h"

#include <string.h>

void *coroutine_arch_prepare(char *bottom, char *top, void (*entry)(void))
{
    /* The frame that the switch loads: x19..x28, x29, x30 and eight floating-point registers. */
    uint64_t *sp = (uint64_t *)((uintptr_t)top & ~(uintptr_t)15) - 20;

    memset(sp, 0, 20 * sizeof(*sp));
    sp[11] = (uint64_t)entry;
    return sp;
}
