/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: a thread that runs an AioContext of its own until it is told to end. */
#ifndef UNIT_LOOP_THREAD_H
#define UNIT_LOOP_THREAD_H

#include "loop/aio.h"

#include <glib.h>
#include <pthread.h>

typedef struct LoopThread {
    AioContext *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool stop; /* home of ctx only */
    const AioContextConfig *cfg;
} LoopThread;

static void *loop_thread_main(void *opaque)
{
    LoopThread *t = opaque;
    AioContext *ctx = aio_context_new(t->cfg, &error_abort);

    pthread_mutex_lock(&t->lock);
    t->ctx = ctx;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->lock);
    while (!t->stop) {
        aio_poll(ctx, true);
    }
    aio_context_shutdown(ctx);
    return NULL;
}

static inline LoopThread *loop_thread_new(const AioContextConfig *cfg)
{
    LoopThread *t = g_new0(LoopThread, 1);

    t->cfg = cfg;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->cond, NULL);
    g_assert_cmpint(pthread_create(&t->thread, NULL, loop_thread_main, t), ==, 0);
    pthread_mutex_lock(&t->lock);
    while (!t->ctx) {
        pthread_cond_wait(&t->cond, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return t;
}

static void loop_thread_stop(void *opaque)
{
    LoopThread *t = opaque;

    t->stop = true;
}

/* Runs what is pending, then ends the thread. */
static inline void loop_thread_free(LoopThread *t)
{
    aio_bh_schedule_oneshot(t->ctx, loop_thread_stop, t);
    pthread_join(t->thread, NULL);
    aio_context_unref(t->ctx);
    pthread_cond_destroy(&t->cond);
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

#endif
