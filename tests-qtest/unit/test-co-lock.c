/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What suspends coroutines: mutex, queue, sleep. */
#include "loop/coroutine.h"
#include "unit/coroutine-steps.h"
#include "unit/loop-thread.h"

static AioContext *ctx;
static _Atomic int running;

/* --- Mutex --- */

static CoMutex mutex;
static CoQueue queue;
static unsigned long counter;

static void coroutine_fn lock_and_yield(void *opaque)
{
    int id = GPOINTER_TO_INT(opaque);

    co_mutex_lock(&mutex);
    step(id);
    coroutine_yield();
    step(id + 100);
    co_mutex_unlock(&mutex);
    running--;
}

static void test_mutex_order(void)
{
    Coroutine *first = coroutine_create(lock_and_yield, GINT_TO_POINTER(1));
    Coroutine *co[3];

    co_mutex_init(&mutex);
    running = 4;
    coroutine_enter(first);
    for (int i = 0; i < 3; i++) {
        co[i] = coroutine_create(lock_and_yield, GINT_TO_POINTER(i + 2));
        coroutine_enter(co[i]);
    }
    EXPECT_STEPS(1);
    coroutine_enter(first);
    for (int i = 0; i < 3; i++) {
        while (aio_poll(ctx, false)) {
        }
        coroutine_enter(co[i]);
    }
    g_assert_cmpint(running, ==, 0);
    EXPECT_STEPS(101, 2, 102, 3, 103, 4, 104);
    g_assert_cmpuint(mutex.state, ==, 0);
}

static void coroutine_fn count(void *opaque)
{
    for (int i = 0; i < GPOINTER_TO_INT(opaque); i++) {
        co_mutex_lock(&mutex);
        counter++;
        if (i % 16 == 0) {
            /* Hold it across a pass of the loop. */
            aio_co_schedule(aio_context_current(), coroutine_self());
            coroutine_yield();
        }
        co_mutex_unlock(&mutex);
    }
    running--;
    aio_wait_kick();
}

static void test_mutex_threads(void)
{
    static const AioContextConfig cfg = {.name = "other"};
    enum { LOOPS = 3, EACH = 4, TIMES = 500 };
    LoopThread *t[LOOPS];

    co_mutex_init(&mutex);
    counter = 0;
    running = LOOPS * EACH;
    for (int i = 0; i < LOOPS; i++) {
        t[i] = loop_thread_new(&cfg);
    }
    for (int i = 0; i < LOOPS * EACH; i++) {
        aio_co_schedule(t[i % LOOPS]->ctx, coroutine_create(count, GINT_TO_POINTER(TIMES)));
    }
    AIO_WAIT_WHILE(running);
    for (int i = 0; i < LOOPS; i++) {
        loop_thread_free(t[i]);
    }
    g_assert_cmpuint(counter, ==, LOOPS * EACH * TIMES);
    g_assert_cmpuint(mutex.state, ==, 0);
}

/* --- Queue and sleep --- */

static void coroutine_fn wait_in_queue(void *opaque)
{
    co_queue_wait(&queue, NULL);
    step(GPOINTER_TO_INT(opaque));
}

static void test_queue_order(void)
{
    co_queue_init(&queue);
    g_assert_false(co_queue_wake_next(&queue));
    for (int i = 1; i <= 3; i++) {
        coroutine_enter(coroutine_create(wait_in_queue, GINT_TO_POINTER(i)));
    }
    g_assert_false(co_queue_empty(&queue));
    g_assert_true(co_queue_wake_next(&queue));
    EXPECT_STEPS(1);
    co_queue_wake_all(&queue);
    EXPECT_STEPS(2, 3);
    g_assert_true(co_queue_empty(&queue));
}

static void coroutine_fn wait_again(void *opaque)
{
    for (int i = 0; i < 3; i++) {
        co_queue_wait(&queue, NULL);
        step(i);
    }
}

static void test_queue_wake_all_once(void)
{
    co_queue_init(&queue);
    coroutine_enter(coroutine_create(wait_again, NULL));
    coroutine_enter(coroutine_create(wait_again, NULL));
    co_queue_wake_all(&queue);
    EXPECT_STEPS(0, 0);
    co_queue_wake_all(&queue);
    EXPECT_STEPS(1, 1);
    co_queue_wake_all(&queue);
    EXPECT_STEPS(2, 2);
}

static int slots;

static void coroutine_fn consumer(void *opaque)
{
    for (int i = 0; i < GPOINTER_TO_INT(opaque); i++) {
        co_mutex_lock(&mutex);
        while (!slots) {
            co_queue_wait(&queue, &mutex);
        }
        slots--;
        co_mutex_unlock(&mutex);
    }
    running--;
    aio_wait_kick();
}

static void coroutine_fn producer(void *opaque)
{
    for (int i = 0; i < GPOINTER_TO_INT(opaque); i++) {
        co_mutex_lock(&mutex);
        slots++;
        co_queue_wake_next(&queue);
        co_mutex_unlock(&mutex);
    }
    running--;
    aio_wait_kick();
}

static void test_queue_threads(void)
{
    static const AioContextConfig cfg = {.name = "other"};
    LoopThread *t[2] = {loop_thread_new(&cfg), loop_thread_new(&cfg)};

    co_mutex_init(&mutex);
    co_queue_init(&queue);
    slots = 0;
    running = 6;
    for (int i = 0; i < 3; i++) {
        aio_co_schedule(t[0]->ctx, coroutine_create(consumer, GINT_TO_POINTER(500)));
        aio_co_schedule(t[1]->ctx, coroutine_create(producer, GINT_TO_POINTER(500)));
    }
    AIO_WAIT_WHILE(running);
    g_assert_cmpint(slots, ==, 0);
    loop_thread_free(t[0]);
    loop_thread_free(t[1]);
}

static void coroutine_fn sleep_ms(void *opaque)
{
    int ms = GPOINTER_TO_INT(opaque);
    int64_t start = aio_now_ns();

    co_sleep_ns(ms * INT64_C(1000000));
    g_assert_cmpint(aio_now_ns() - start, >=, ms * INT64_C(1000000));
    step(ms);
}

static void test_sleep(void)
{
    coroutine_enter(coroutine_create(sleep_ms, GINT_TO_POINTER(30)));
    coroutine_enter(coroutine_create(sleep_ms, GINT_TO_POINTER(1)));
    coroutine_enter(coroutine_create(sleep_ms, GINT_TO_POINTER(0)));
    while (steps.n < 3) {
        aio_poll(ctx, true);
    }
    EXPECT_STEPS(0, 1, 30);
}

int main(int argc, char **argv)
{
    static const AioContextConfig cfg = {.name = "main", .is_main = true};
    int ret;

    g_test_init(&argc, &argv, NULL);
    ctx = aio_context_new(&cfg, &error_abort);
    aio_context_set_main(ctx);

    g_test_add_func("/co-mutex/is-handed-over-in-order", test_mutex_order);
    g_test_add_func("/co-mutex/excludes-across-threads", test_mutex_threads);
    g_test_add_func("/co-queue/wakes-in-order", test_queue_order);
    g_test_add_func("/co-queue/wake-all-wakes-each-once", test_queue_wake_all_once);
    g_test_add_func("/co-queue/with-mutex-across-threads", test_queue_threads);
    g_test_add_func("/co-sleep/lasts-and-keeps-order", test_sleep);

    ret = g_test_run();
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return ret;
}
