/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coroutines: switching, pool, threads, and what suspends them. */
#include "loop/coroutine-int.h"
#include "unit/coroutine-steps.h"
#include "unit/loop-thread.h"

#include <string.h>
#include <unistd.h>

static AioContext *ctx;

/* --- Enter and yield --- */

static void coroutine_fn two_steps(void *opaque)
{
    int base = *(int *)opaque;

    g_assert_true(in_coroutine());
    step(base + 1);
    coroutine_yield();
    step(base + 2);
}

static void test_yield(void)
{
    int base = 10;
    Coroutine *co = coroutine_create(two_steps, &base);

    g_assert_false(in_coroutine());
    step(0);
    coroutine_enter(co);
    g_assert_false(in_coroutine());
    step(1);
    coroutine_enter(co);
    step(2);
    EXPECT_STEPS(0, 11, 1, 12, 2);
}

static void coroutine_fn outer(void *opaque)
{
    Coroutine *self = coroutine_self();
    int base = 20;
    Coroutine *inner = coroutine_create(two_steps, &base);

    step(1);
    coroutine_enter(inner);
    g_assert_true(coroutine_self() == self);
    step(2);
    coroutine_yield();
    step(3);
    coroutine_enter(inner);
    step(4);
}

static void test_nested(void)
{
    Coroutine *co = coroutine_create(outer, NULL);

    coroutine_enter(co);
    step(0);
    coroutine_enter(co);
    EXPECT_STEPS(1, 21, 2, 0, 3, 22, 4);
}

/* Entered by one coroutine, continued by another: each yield goes back to the one that entered last. */
static void coroutine_fn enter_it(void *opaque)
{
    coroutine_enter(opaque);
    step(5);
}

static void test_yields_to_last(void)
{
    int base = 30;
    Coroutine *co = coroutine_create(two_steps, &base);

    coroutine_enter(coroutine_create(enter_it, co));
    step(0);
    coroutine_enter(coroutine_create(enter_it, co));
    EXPECT_STEPS(31, 5, 0, 32, 5);
}

/* More values than there are registers live across switches, integer and floating-point. */
static void coroutine_fn many_values(void *opaque)
{
    uint64_t seed = (uint64_t)(uintptr_t)opaque, i[12];
    double d[12];

    for (int k = 0; k < 12; k++) {
        i[k] = seed * (uint64_t)(k + 1);
        d[k] = (double)(seed + (uint64_t)k) / 3;
    }
    for (int round = 0; round < 50; round++) {
        uint64_t a = i[0], b = i[1], c = i[2], e = i[3], f = i[4], g = i[5], h = i[6];
        double x = d[0], y = d[1], z = d[2];

        coroutine_yield();
        g_assert_cmpuint(a + b + c + e + f + g + h, ==, seed * 28);
        g_assert_cmpfloat(x + y + z, ==, d[0] + d[1] + d[2]);
    }
}

static void test_registers(void)
{
    Coroutine *co[8];

    for (uintptr_t k = 0; k < 8; k++) {
        co[k] = coroutine_create(many_values, (void *)(k * 1000 + 7));
    }
    for (int round = 0; round < 51; round++) {
        for (int k = 0; k < 8; k++) {
            coroutine_enter(co[k]);
        }
    }
}

static void coroutine_fn enter_self(void *opaque)
{
    coroutine_enter(coroutine_self());
}

static void test_reentry(void)
{
    if (g_test_subprocess()) {
        coroutine_enter(coroutine_create(enter_self, NULL));
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*entered while it runs*");
}

static int deep(int n)
{
    volatile char block[4096];

    block[0] = (char)n;
    return n ? deep(n - 1) + block[0] : block[0];
}

static void coroutine_fn go_deep(void *opaque)
{
    step(deep(GPOINTER_TO_INT(opaque)) & 1);
}

static void test_stack_holds(void)
{
    coroutine_enter(coroutine_create(go_deep, GINT_TO_POINTER(100)));
    steps.n = 0;
}

/* What is left below the stack of one coroutine is not the memory of another. */
static void test_stack_overflow(void)
{
    if (g_test_subprocess()) {
        coroutine_enter(coroutine_create(go_deep, GINT_TO_POINTER(100000)));
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
}

/* --- Pool --- */

static void coroutine_fn nothing(void *opaque)
{
}

static void coroutine_fn yield_once(void *opaque)
{
    coroutine_yield();
}

static void test_pool_reuse(void)
{
    Coroutine *first = coroutine_create(nothing, NULL);

    coroutine_enter(first);
    for (int i = 0; i < 1000; i++) {
        Coroutine *co = coroutine_create(nothing, NULL);

        g_assert_true(co == first);
        coroutine_enter(co);
    }
}

static void run_many(unsigned int n)
{
    g_autofree Coroutine **co = g_new(Coroutine *, n);

    for (unsigned int i = 0; i < n; i++) {
        co[i] = coroutine_create(yield_once, NULL);
        coroutine_enter(co[i]);
    }
    for (unsigned int i = 0; i < n; i++) {
        coroutine_enter(co[i]);
    }
}

static void test_pool_bounded(void)
{
    run_many(COROUTINE_POOL_LOCAL_MAX + COROUTINE_POOL_GLOBAL_MAX + 200);
    g_assert_cmpuint(coroutine_pool_local(), <=, COROUTINE_POOL_LOCAL_MAX);
    g_assert_cmpuint(coroutine_pool_global(), <=, COROUTINE_POOL_GLOBAL_MAX);
    g_assert_cmpuint(coroutine_pool_global(), >, COROUTINE_POOL_GLOBAL_MAX / 2);
    /* Both pools serve again. */
    run_many(COROUTINE_POOL_LOCAL_MAX + 100);
}

static void *thread_runs_some(void *opaque)
{
    run_many(20);
    g_assert_cmpuint(coroutine_pool_local(), >=, 20);
    return NULL;
}

/* Runs before any other test has filled the global pool. */
static void test_pool_thread_end(void)
{
    pthread_t t;

    g_assert_cmpuint(coroutine_pool_global(), ==, 0);
    pthread_create(&t, NULL, thread_runs_some, NULL);
    pthread_join(t, NULL);
    g_assert_cmpuint(coroutine_pool_global(), ==, 20);
}

/* --- Threads and contexts --- */

static void *enter_in_thread(void *opaque)
{
    g_assert_false(in_coroutine());
    coroutine_enter(opaque);
    g_assert_false(in_coroutine());
    return NULL;
}

/* gettid() and not pthread_self(): a compiler may take the latter for the same in all of a function. */
static void coroutine_fn changes_threads(void *opaque)
{
    pid_t *seen = opaque;

    for (int i = 0; i < 3; i++) {
        seen[i] = gettid();
        g_assert_true(in_coroutine());
        coroutine_yield();
    }
}

static void test_thread_change(void)
{
    pid_t seen[3];
    Coroutine *co = coroutine_create(changes_threads, seen);

    coroutine_enter(co);
    for (int i = 0; i < 2; i++) {
        pthread_t t;

        pthread_create(&t, NULL, enter_in_thread, co);
        pthread_join(t, NULL);
    }
    g_assert_cmpint(seen[0], ==, gettid());
    g_assert_cmpint(seen[1], !=, gettid());
    g_assert_cmpint(seen[2], !=, gettid());
    coroutine_enter(co);
}

static _Atomic int running;

static void coroutine_fn note_context(void *opaque)
{
    AioContext **seen = opaque;

    *seen = aio_context_current();
    running--;
    aio_wait_kick();
}

static void test_schedule(void)
{
    static const AioContextConfig cfg = {.name = "other"};
    LoopThread *t = loop_thread_new(&cfg);
    AioContext *seen[2] = {NULL, NULL};

    running = 2;
    aio_co_schedule(t->ctx, coroutine_create(note_context, &seen[0]));
    aio_co_schedule(ctx, coroutine_create(note_context, &seen[1]));
    g_assert_null(seen[1]); /* not from within the call */
    AIO_WAIT_WHILE(running);
    g_assert_true(seen[0] == t->ctx);
    g_assert_true(seen[1] == ctx);
    loop_thread_free(t);
}

typedef struct Traveller {
    AioContext *stops[2];
    int rounds;
} Traveller;

static void coroutine_fn travel(void *opaque)
{
    Traveller *tr = opaque;

    for (int i = 0; i < tr->rounds; i++) {
        aio_co_reschedule_self(tr->stops[i % 2]);
        g_assert_true(aio_context_current() == tr->stops[i % 2]);
    }
    running--;
    aio_wait_kick();
}

static void test_reschedule_self(void)
{
    static const AioContextConfig cfg = {.name = "other"};
    LoopThread *t[2] = {loop_thread_new(&cfg), loop_thread_new(&cfg)};
    Traveller a = {{t[0]->ctx, t[1]->ctx}, 1000}, b = {{t[1]->ctx, ctx}, 1000};

    running = 2;
    coroutine_enter(coroutine_create(travel, &a));
    coroutine_enter(coroutine_create(travel, &b));
    AIO_WAIT_WHILE(running);
    loop_thread_free(t[0]);
    loop_thread_free(t[1]);
}

static void coroutine_fn sleeper(void *opaque)
{
    g_assert_true(aio_context_current() == ctx);
    coroutine_yield();
    g_assert_true(aio_context_current() == ctx);
    running--;
}

static void wake_it(void *opaque)
{
    aio_co_wake(opaque);
}

static void test_wake_from_thread(void)
{
    static const AioContextConfig cfg = {.name = "other"};
    LoopThread *t = loop_thread_new(&cfg);

    for (int i = 0; i < 100; i++) {
        Coroutine *co = coroutine_create(sleeper, NULL);

        running = 1;
        coroutine_enter(co);
        aio_bh_schedule_oneshot(t->ctx, wake_it, co);
        while (running) {
            aio_poll(ctx, true);
        }
    }
    loop_thread_free(t);
}

static void coroutine_fn waker(void *opaque)
{
    step(1);
    aio_co_wake(opaque);
    step(2); /* the other does not run inside of this one */
}

static void coroutine_fn woken(void *opaque)
{
    coroutine_yield();
    step(3);
}

static void test_wake_in_coroutine(void)
{
    Coroutine *co = coroutine_create(woken, NULL);

    coroutine_enter(co);
    coroutine_enter(coroutine_create(waker, co));
    EXPECT_STEPS(1, 2);
    while (!steps.n) {
        aio_poll(ctx, true);
    }
    EXPECT_STEPS(3);

    /* Outside of any coroutine it runs at once. */
    co = coroutine_create(woken, NULL);
    coroutine_enter(co);
    aio_co_wake(co);
    EXPECT_STEPS(3);
}

static void test_schedule_twice(void)
{
    if (g_test_subprocess()) {
        Coroutine *co = coroutine_create(nothing, NULL);

        aio_co_schedule(ctx, co);
        aio_co_schedule(ctx, co);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*scheduled while*");
}

int main(int argc, char **argv)
{
    static const AioContextConfig cfg = {.name = "main", .is_main = true};
    int ret;

    g_test_init(&argc, &argv, NULL);
    ctx = aio_context_new(&cfg, &error_abort);
    aio_context_set_main(ctx);

    g_test_add_func("/coroutine/yield/goes-back-to-who-entered", test_yield);
    g_test_add_func("/coroutine/yield/nested", test_nested);
    g_test_add_func("/coroutine/yield/goes-to-the-last-that-entered", test_yields_to_last);
    g_test_add_func("/coroutine/switch/keeps-values", test_registers);
    g_test_add_func("/coroutine/enter/running-one-aborts", test_reentry);
    g_test_add_func("/coroutine/stack/holds-deep-calls", test_stack_holds);
    g_test_add_func("/coroutine/stack/overflow-hits-the-guard-page", test_stack_overflow);
    g_test_add_func("/coroutine/pool/reuses-the-last-one", test_pool_reuse);
    g_test_add_func("/coroutine/pool/survives-its-thread", test_pool_thread_end);
    g_test_add_func("/coroutine/pool/is-bounded", test_pool_bounded);
    g_test_add_func("/coroutine/thread/entered-elsewhere-runs-there", test_thread_change);
    g_test_add_func("/coroutine/schedule/runs-in-the-home-of-the-context", test_schedule);
    g_test_add_func("/coroutine/schedule/twice-aborts", test_schedule_twice);
    g_test_add_func("/coroutine/schedule/self-moves-to-the-context", test_reschedule_self);
    g_test_add_func("/coroutine/wake/from-thread-runs-in-its-context", test_wake_from_thread);
    g_test_add_func("/coroutine/wake/in-coroutine-does-not-nest", test_wake_in_coroutine);

    ret = g_test_run();
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return ret;
}
