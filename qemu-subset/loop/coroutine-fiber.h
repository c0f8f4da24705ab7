/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells AddressSanitizer and ThreadSanitizer about stack switches; nothing at all in other builds. */
#ifndef LOOP_COROUTINE_FIBER_H
#define LOOP_COROUTINE_FIBER_H

#include "loop/coroutine-int.h"

#ifdef __has_feature
#define FIBER_HAS_FEATURE(x) __has_feature(x)
#else
#define FIBER_HAS_FEATURE(x) 0
#endif

/*
 * fiber_leave() comes right before the switch from @from to @to and fiber_arrive() right after it on the new stack, where
 * @came_from is whom the control came from. @cookie is a local variable of the function that switches.
 */
#if defined(__SANITIZE_ADDRESS__) || FIBER_HAS_FEATURE(address_sanitizer)
#include <sanitizer/common_interface_defs.h>

static inline void fiber_create(Coroutine *co)
{
}
static inline void fiber_destroy(Coroutine *co)
{
}
static inline void fiber_of_thread(Coroutine *leader)
{
}
static inline void fiber_leave(void **cookie, Coroutine *to)
{
    __sanitizer_start_switch_fiber(cookie, to->stack_bottom, to->stack_size);
}
static inline void fiber_arrive(void *cookie, Coroutine *came_from)
{
    /* This is how the stack of a thread becomes known, which nobody allocated here. */
    __sanitizer_finish_switch_fiber(cookie, &came_from->stack_bottom, &came_from->stack_size);
}

#elif defined(__SANITIZE_THREAD__) || FIBER_HAS_FEATURE(thread_sanitizer)
#include <sanitizer/tsan_interface.h>

static inline void fiber_create(Coroutine *co)
{
    co->fiber = __tsan_create_fiber(0);
}
static inline void fiber_destroy(Coroutine *co)
{
    __tsan_destroy_fiber(co->fiber);
}
static inline void fiber_of_thread(Coroutine *leader)
{
    leader->fiber = __tsan_get_current_fiber();
}
static inline __attribute__((always_inline)) void fiber_leave(void **cookie, Coroutine *to)
{
    __tsan_switch_to_fiber(to->fiber, 0);
}
static inline void fiber_arrive(void *cookie, Coroutine *came_from)
{
}

#else

static inline void fiber_create(Coroutine *co)
{
}
static inline void fiber_destroy(Coroutine *co)
{
}
static inline void fiber_of_thread(Coroutine *leader)
{
}
static inline void fiber_leave(void **cookie, Coroutine *to)
{
}
static inline void fiber_arrive(void *cookie, Coroutine *came_from)
{
}
#endif

#endif
