/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of one event loop: written by its home thread alone, read by anyone. */
#ifndef LOOP_STATS_H
#define LOOP_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#define AIO_HISTOGRAM 16 /* bucket i counts values in [2^i, 2^(i+1)); the last takes the rest */

typedef _Atomic uint64_t AioCounter;

/* What a loop is doing. */
typedef enum AioPhase {
    AIO_PHASE_OUTSIDE, /* between passes */
    AIO_PHASE_POLL,    /* in user space */
    AIO_PHASE_WAIT,    /* in the kernel */
    AIO_PHASE_COMPLETIONS,
    AIO_PHASE_HANDLERS, /* of descriptors */
    AIO_PHASE_BOTTOM_HALVES,
    AIO_PHASE_TIMERS,
    AIO_PHASE_SUBMIT,
    AIO_PHASES,
} AioPhase;

typedef struct AioStats {
    AioCounter passes;        /* calls of aio_poll() */
    AioCounter polls;         /* passes that polled in user space */
    AioCounter polls_success; /* ... and found work */
    AioCounter poll_yields;   /* sched_yield() calls between looks */
    AioCounter sleeps;        /* waits that could sleep */
    AioCounter wait_calls;    /* system calls to wait */
    AioCounter control_calls; /* system calls to watch, change or forget a descriptor */
    AioCounter notify_cleared;/* times the notifier was read */
    AioCounter notify_saved;  /* wake-ups that needed no eventfd write: from the home itself, or while it was awake */
    AioCounter submit_calls;  /* io_submit or io_uring_enter calls that carried requests, or pool hand-overs */
    AioCounter requests;      /* requests that they carried */
    AioCounter batch_max;     /* largest batch */
    AioCounter buffer_requests; /* of the requests, those that used a registered buffer */
    AioCounter file_requests;   /* ... and a registered file */
    AioCounter reaps;         /* times completions were taken */
    AioCounter completions;   /* and how many */
    AioCounter batch_histogram[AIO_HISTOGRAM];
    AioCounter residence_histogram[AIO_HISTOGRAM]; /* queued to submitted, in microseconds */
    AioCounter reap_histogram[AIO_HISTOGRAM];      /* completions taken at a time */
    /* For who asks why the loop does not answer; see aio_context_state(). */
    _Atomic unsigned int phase;  /* AioPhase */
    _Atomic int handler_fd;      /* of the handler that was dispatched last */
    AioCounter since_ns;         /* when it went to sleep, or last began to dispatch */
    AioCounter phase_ns[AIO_PHASES]; /* time spent, while aio_context_set_phase_times() is on */
    /* Written by the threads that notify. */
    AioCounter notify_sent __attribute__((aligned(64))); /* eventfd writes */
} AioStats;

/* Home only: a plain add, no locked instruction. */
static inline void aio_stat_add(AioCounter *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t aio_stat_get(const AioCounter *c)
{
    return atomic_load_explicit((AioCounter *)c, memory_order_relaxed);
}

static inline unsigned int aio_stat_bucket(uint64_t value)
{
    unsigned int b = value ? 63 - (unsigned int)__builtin_clzll(value) : 0;

    return b < AIO_HISTOGRAM ? b : AIO_HISTOGRAM - 1;
}

/* Count one submission of @n requests. */
static inline void aio_stat_batch(AioStats *s, uint64_t n)
{
    aio_stat_add(&s->submit_calls, 1);
    aio_stat_add(&s->requests, n);
    aio_stat_add(&s->batch_histogram[aio_stat_bucket(n)], 1);
    if (n > aio_stat_get(&s->batch_max)) {
        atomic_store_explicit(&s->batch_max, n, memory_order_relaxed);
    }
}

/* Count @n completions, not 0, that were found by one look. */
static inline void aio_stat_reap(AioStats *s, uint64_t n)
{
    aio_stat_add(&s->reaps, 1);
    aio_stat_add(&s->completions, n);
    aio_stat_add(&s->reap_histogram[aio_stat_bucket(n)], 1);
}

#endif
