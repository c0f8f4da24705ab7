/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Clocks and timers. */
#ifndef LOOP_TIMER_H
#define LOOP_TIMER_H

#include "loop/aio.h"

typedef enum ClockType {
    CLOCK_TYPE_REALTIME, /* CLOCK_MONOTONIC */
    CLOCK_TYPE_HOST,     /* CLOCK_REALTIME */
    CLOCK_TYPE_VIRTUAL,  /* guest time: stops with the VM; under qtest it moves only by command */
    CLOCK_TYPES,
} ClockType;

/* [any] Nanoseconds. */
int64_t clock_get_ns(ClockType type);

/* Virtual clock, main thread: run and stop with the VM; or hand it to qtest for good, starting at 0. */
void clock_virtual_enable(bool on);
void clock_virtual_take_over(void);
/* After take-over: set the time; timers that are due are run by the loops that own them. */
void clock_virtual_set_ns(int64_t ns);
/*
 * The earliest virtual timer in absolute ns, or -1: of the calling thread's loop, which may be due, and of all other loops,
 * not counting what is due there (they run it by themselves).
 */
int64_t clock_virtual_deadline_ns(void);

typedef struct AioTimer AioTimer;
typedef void AioTimerFn(void *opaque);

/* Made, armed and deleted in the home of @ctx only. The struct may be embedded. */
struct AioTimer {
    AioContext *ctx;
    ClockType clock;
    AioTimerFn *fn;
    void *opaque;
    int64_t expire_ns;  /* valid while armed */
    unsigned int index; /* place in the heap of its clock + 1; 0: not armed */
    AioTimer *later;    /* private */
};

void aio_timer_init(AioTimer *t, AioContext *ctx, ClockType clock, AioTimerFn *fn, void *opaque);
/* (Re-)arm for the absolute time @expire_ns of its clock; fires once. */
void aio_timer_mod_ns(AioTimer *t, int64_t expire_ns);
void aio_timer_del(AioTimer *t);
static inline bool aio_timer_pending(const AioTimer *t)
{
    return t->index != 0;
}

#endif
