/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: what a loop is asked to do while system calls fail; requests, descriptors, timers, and another thread. */
#ifndef UNIT_LOOP_SCENE_H
#define UNIT_LOOP_SCENE_H

#include "unit/engine-cases.h"
#include "unit/loop-test.h"

#include "loop/timer.h"

#include <pthread.h>
#include <semaphore.h>

/* Nothing here takes a second; a wake-up that is lost shows as this. */
#define STALL_NS (INT64_C(20) * 1000000000)

typedef struct Scene {
    Env *env;
    AioContext *ctx;
    AioTimer stall; /* ends the program */
    /* A thread that sends a bottom half, which counts in @sent, once the loop sleeps; for each sem_post(). */
    pthread_t helper;
    sem_t go;
    bool stop;
    int sent;
    /* Each change of threads takes its time on a busy machine. */
    bool without_helper, without_workers;
} Scene;

#define WAIT_UNTIL(s, cond)                                                                        \
    do {                                                                                           \
        aio_timer_mod_ns(&(s)->stall, clock_get_ns(CLOCK_TYPE_REALTIME) + STALL_NS);               \
        while (!(cond)) {                                                                          \
            aio_poll((s)->ctx, true);                                                              \
        }                                                                                          \
        aio_timer_del(&(s)->stall);                                                                \
    } while (0)

/* NULL: skipped, as @cfg cannot be had. */
Scene *scene_new(const EnvConfig *cfg);
void scene_free(Scene *s);

/* A removed handler's file is closed: whoever has the other end notices, at the latest when the kernel takes calls again. */
void close_and_notice(Scene *s, int fd, int peer);
/* Everything at once; each request ends once, and well. */
void use_all(Scene *s);
/* More descriptors than fit in the ring, and than Linux AIO has places for. */
void use_many(Scene *s);
/* For 20 ms nothing is to be done: at most so many system calls are made to wait. */
void expect_calls(Scene *s, unsigned int most);
/* Nothing is to be done: then the loop sleeps. */
void expect_sleep(Scene *s);

#endif
