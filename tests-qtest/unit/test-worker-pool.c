/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker pool: every item ends once, in its home; growth, bounds, and what happens at the limits. */
#include "loop/worker-pool.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static __thread AioContext *ctx;
static _Atomic bool refuse_threads;

/* The linker sends every call of pthread_create() here (--wrap): threads can be made to run out. */
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return refuse_threads ? EAGAIN : __real_pthread_create(t, attr, fn, arg);
}

typedef struct Item {
    WorkItem work;
    pid_t ran_in;
    int value;
    int ended;
} Item;

static int n_ended;
static int order[4096];

static int work_value(WorkItem *w)
{
    Item *item = container_of(w, Item, work);

    item->ran_in = gettid();
    return item->value;
}

static void work_ended(WorkItem *w, int ret)
{
    Item *item = container_of(w, Item, work);

    g_assert_true(aio_context_in_home(ctx));
    g_assert_cmpint(ret, ==, item->value);
    item->ended++;
    order[n_ended % (int)G_N_ELEMENTS(order)] = item->value;
    n_ended++;
}

static void item_init(Item *item, int (*func)(WorkItem *), int value)
{
    *item = (Item){.work = {.func = func, .done = work_ended}, .value = value};
}

static void set_bounds(int min, int max)
{
    aio_context_set_thread_pool(ctx, min, max);
    worker_pool_update(aio_worker_pool(ctx));
}

static void wait_ended(int n)
{
    while (n_ended < n) {
        aio_poll(ctx, true);
    }
    g_assert_cmpint(n_ended, ==, n);
    n_ended = 0;
}

static void test_one(void)
{
    Item item;

    item_init(&item, work_value, -5);
    worker_pool_submit(aio_worker_pool(ctx), &item.work);
    g_assert_cmpint(item.ended, ==, 0);
    wait_ended(1);
    g_assert_cmpint(item.ended, ==, 1);
    g_assert_cmpint(item.ran_in, !=, gettid());
}

static void submit_chain(Item *items, unsigned int n, int (*func)(WorkItem *))
{
    Fifo chain;

    fifo_init(&chain);
    for (unsigned int i = 0; i < n; i++) {
        item_init(&items[i], func, (int)i);
        fifo_push(&chain, &items[i].work.link);
    }
    worker_pool_submit_many(aio_worker_pool(ctx), &chain, n);
    g_assert_true(fifo_empty(&chain));
}

static void test_chain(void)
{
    static Item items[3000];

    for (int round = 0; round < 20; round++) {
        submit_chain(items, G_N_ELEMENTS(items), work_value);
        wait_ended(G_N_ELEMENTS(items));
        for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
            g_assert_cmpint(items[i].ended, ==, 1);
        }
    }
}

static void test_empty_chain(void)
{
    Fifo chain;

    fifo_init(&chain);
    worker_pool_submit_many(aio_worker_pool(ctx), &chain, 0);
}

static void wait_threads(int max)
{
    while (worker_pool_threads(aio_worker_pool(ctx)) > max) {
        aio_poll(ctx, false);
        g_usleep(1000);
    }
}

/* One worker takes them as they came, and they end as they were done. */
static void test_order(void)
{
    static Item items[100];

    set_bounds(0, 1);
    wait_threads(1);
    for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
        item_init(&items[i], work_value, (int)i);
        worker_pool_submit(aio_worker_pool(ctx), &items[i].work);
    }
    wait_ended(G_N_ELEMENTS(items));
    for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
        g_assert_cmpint(order[i], ==, (int)i);
    }
    set_bounds(0, 64);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int inside, inside_max, gate;

/* Waits until @gate items are inside at the same time. */
static int work_meet(WorkItem *w)
{
    pthread_mutex_lock(&lock);
    inside++;
    inside_max = MAX(inside_max, inside);
    pthread_cond_broadcast(&cond);
    while (inside_max < gate) {
        pthread_cond_wait(&cond, &lock);
    }
    inside--;
    pthread_mutex_unlock(&lock);
    return container_of(w, Item, work)->value;
}

static void test_grows(void)
{
    Item items[24];

    inside = inside_max = 0;
    gate = G_N_ELEMENTS(items);
    submit_chain(items, G_N_ELEMENTS(items), work_meet);
    wait_ended(G_N_ELEMENTS(items));
    g_assert_cmpint(inside_max, ==, gate);
    g_assert_cmpint(worker_pool_threads(aio_worker_pool(ctx)), >=, gate);

    /* One by one as well: none waits behind one that blocks. */
    inside_max = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
        item_init(&items[i], work_meet, (int)i);
        worker_pool_submit(aio_worker_pool(ctx), &items[i].work);
    }
    wait_ended(G_N_ELEMENTS(items));
    g_assert_cmpint(inside_max, ==, gate);
}

static void test_max(void)
{
    static Item items[500];

    set_bounds(0, 3);
    wait_threads(3);
    inside = inside_max = 0;
    gate = 3;
    submit_chain(items, G_N_ELEMENTS(items), work_meet);
    wait_ended(G_N_ELEMENTS(items));
    g_assert_cmpint(inside_max, ==, 3);
    set_bounds(0, 64);
}

static void test_min(void)
{
    int now;

    set_bounds(0, 64);
    now = worker_pool_threads(aio_worker_pool(ctx));
    set_bounds(now + 4, 64);
    g_assert_cmpint(worker_pool_threads(aio_worker_pool(ctx)), ==, now + 4);
    set_bounds(0, 2);
    wait_threads(2);
    set_bounds(0, 64);
}

static void resubmit(WorkItem *w, int ret)
{
    Item *item = container_of(w, Item, work);

    n_ended++;
    if (--item->value > 0) {
        worker_pool_submit(aio_worker_pool(ctx), w);
    }
}

static void test_resubmit(void)
{
    Item items[8];

    for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
        item_init(&items[i], work_value, 100);
        items[i].work.done = resubmit;
        worker_pool_submit(aio_worker_pool(ctx), &items[i].work);
    }
    wait_ended(800);
}

static void poll_for_others(WorkItem *w, int ret)
{
    Item *item = container_of(w, Item, work);

    n_ended++;
    while (n_ended < item->value) {
        aio_poll(ctx, true);
    }
}

/* Each end waits for all others by polling from within done(). */
static void test_nested_poll(void)
{
    Item items[16];
    Fifo chain;

    for (int round = 0; round < 50; round++) {
        fifo_init(&chain);
        for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
            item_init(&items[i], work_value, G_N_ELEMENTS(items));
            items[i].work.done = poll_for_others;
            fifo_push(&chain, &items[i].work.link);
        }
        worker_pool_submit_many(aio_worker_pool(ctx), &chain, G_N_ELEMENTS(items));
        wait_ended(G_N_ELEMENTS(items));
    }
}

static void *without_threads(void *opaque)
{
    static const AioContextConfig cfg = {.name = "no-threads"};
    Item items[10];

    ctx = aio_context_new(&cfg, &error_abort);
    refuse_threads = true;
    submit_chain(items, G_N_ELEMENTS(items), work_value);
    wait_ended(G_N_ELEMENTS(items));
    g_assert_cmpint(worker_pool_threads(aio_worker_pool(ctx)), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(items); i++) {
        g_assert_cmpint(items[i].ended, ==, 1);
        g_assert_cmpint(items[i].ran_in, ==, gettid());
    }

    refuse_threads = false;
    submit_chain(items, G_N_ELEMENTS(items), work_value);
    wait_ended(G_N_ELEMENTS(items));
    g_assert_cmpint(worker_pool_threads(aio_worker_pool(ctx)), >, 0);
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return NULL;
}

static void test_no_threads(void)
{
    pthread_t t;

    g_assert_cmpint(pthread_create(&t, NULL, without_threads, NULL), ==, 0);
    pthread_join(t, NULL);
}

/* At the limit of threads the ones that exist do the work. */
static void test_few_threads(void)
{
    static Item items[100];

    test_one();
    refuse_threads = true;
    submit_chain(items, G_N_ELEMENTS(items), work_value);
    wait_ended(G_N_ELEMENTS(items));
    refuse_threads = false;
}

static int work_signals(WorkItem *w)
{
    sigset_t mask;

    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, SIGTERM) << 1 | sigismember(&mask, SIGSEGV);
}

/* What comes from outside is for the main thread; a fault of the worker's own is heard. */
static void test_signals(void)
{
    Item item;

    item_init(&item, work_signals, 2);
    worker_pool_submit(aio_worker_pool(ctx), &item.work);
    wait_ended(1);
}

static void test_after_idle(void)
{
    Item items[4];

    /* Workers that have gone to sleep one by one are woken again, many times. */
    for (int round = 0; round < 300; round++) {
        submit_chain(items, 1 + (unsigned int)round % 4, work_value);
        wait_ended(1 + round % 4);
        if (round % 50 == 0) {
            g_usleep(2000);
        }
    }
}

int main(int argc, char **argv)
{
    static const AioContextConfig cfg = {.name = "main"};
    int ret;

    g_test_init(&argc, &argv, NULL);
    ctx = aio_context_new(&cfg, &error_abort);
    aio_context_set_main(ctx);
    set_bounds(0, 64);

    g_test_add_func("/worker-pool/item/ends-in-the-home-with-its-result", test_one);
    g_test_add_func("/worker-pool/item/chain-ends-each-once", test_chain);
    g_test_add_func("/worker-pool/item/empty-chain-is-nothing", test_empty_chain);
    g_test_add_func("/worker-pool/item/one-worker-keeps-order", test_order);
    g_test_add_func("/worker-pool/item/done-may-submit-again", test_resubmit);
    g_test_add_func("/worker-pool/item/done-may-poll-for-the-others", test_nested_poll);
    g_test_add_func("/worker-pool/threads/grow-while-items-block", test_grows);
    g_test_add_func("/worker-pool/threads/never-exceed-the-maximum", test_max);
    g_test_add_func("/worker-pool/threads/minimum-is-started-and-surplus-ends", test_min);
    g_test_add_func("/worker-pool/threads/none-to-be-had-loses-nothing", test_no_threads);
    g_test_add_func("/worker-pool/threads/no-more-to-be-had-loses-nothing", test_few_threads);
    g_test_add_func("/worker-pool/threads/signals", test_signals);
    g_test_add_func("/worker-pool/threads/sleeping-ones-are-woken", test_after_idle);

    ret = g_test_run();
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return ret;
}
