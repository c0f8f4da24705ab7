/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A full memory barrier that ThreadSanitizer can follow. */
#ifndef LOOP_FENCE_H
#define LOOP_FENCE_H

#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define AIO_FENCE_BY_RMW 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define AIO_FENCE_BY_RMW 1
#endif
#endif

#ifdef AIO_FENCE_BY_RMW
/* ThreadSanitizer does not model fences; read-modify-writes of one common word order the same things. */
extern _Atomic unsigned int aio_fence_word;
static inline void aio_full_fence(void)
{
    atomic_fetch_add(&aio_fence_word, 1);
}
#else
static inline void aio_full_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}
#endif

#endif
