/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Coroutines: entering, yielding, ending, and the pool of stacks. */
#include "loop/coroutine-int.h"
#include "loop/coroutine-fiber.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef enum Passed { PASS_YIELD, PASS_END, PASS_MOVE } Passed;

typedef struct CoroutineThread {
    Coroutine leader;   /* stands for the thread's own stack */
    Coroutine *current; /* NULL: the thread runs on its own stack */
    /*
     * What the coroutine that just gave control back wants. It is told here and not in the coroutine, which another thread
     * may be running by now.
     */
    Passed passed;
    Coroutine *passed_by;
    AioContext *move_to;
    FifoNode *free; /* ended coroutines */
    unsigned int nfree;
    bool registered;
} CoroutineThread;

static __thread CoroutineThread this_thread;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static FifoNode *pool_free;
static _Atomic unsigned int pool_nfree; /* written under the lock */
static pthread_key_t pool_key;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;

/*
 * Never inlined: a compiler may keep the address of a thread-local variable across a call, and across a switch the thread
 * may have changed.
 */
static __attribute__((noinline)) CoroutineThread *get_thread(void)
{
    CoroutineThread *t = &this_thread;

    __asm__ volatile("" : "+r"(t));
    return t;
}

Coroutine *coroutine_self(void)
{
    return get_thread()->current;
}

static G_NORETURN void die(const char *what, const Coroutine *co)
{
    fprintf(stderr, "coroutine %p: %s\n", (const void *)co, what);
    abort();
}

/* Switch from @from, the running one, to @to; returns when somebody switches back to @from, perhaps in another thread. */
static void switch_to(Coroutine *from, Coroutine *to)
{
    void *cookie = NULL;

    fiber_leave(&cookie, to);
    coroutine_arch_switch(&from->sp, to->sp);
    fiber_arrive(cookie, get_thread()->passed_by);
}

static void give_back(Coroutine *self, Passed passed, AioContext *move_to)
{
    CoroutineThread *t = get_thread();
    Coroutine *to = self->caller;

    if (!to) {
        die("gives control back but was not entered", self);
    }
    self->caller = NULL;
    t->current = to == &t->leader ? NULL : to;
    t->passed = passed;
    t->passed_by = self;
    t->move_to = move_to;
    switch_to(self, to);
}

static void coroutine_main(void)
{
    CoroutineThread *t = get_thread();
    Coroutine *self = t->current;

    fiber_arrive(NULL, t->passed_by);
    for (;;) {
        self->fn(self->opaque);
        give_back(self, PASS_END, NULL);
    }
}

/* --- Stacks and their pool --- */

static Coroutine *stack_new(void)
{
    static _Atomic unsigned int colour;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map, *top;
    Coroutine *co;

    map = mmap(NULL, page + COROUTINE_STACK_SIZE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE)) {
        fprintf(stderr, "Cannot allocate a coroutine stack of %d bytes: %s\n", COROUTINE_STACK_SIZE,
                strerror(errno));
        abort();
    }
    /* All mappings have the same alignment: without an offset the busy ends of all stacks share a few cache sets. */
    top = map + page + COROUTINE_STACK_SIZE -
          (atomic_fetch_add_explicit(&colour, 1, memory_order_relaxed) & 7) * 448;
    co = (Coroutine *)(((uintptr_t)top - sizeof(*co)) & ~(uintptr_t)63);
    memset(co, 0, sizeof(*co));
    co->map = map;
    co->stack_bottom = map + page;
    co->stack_size = (size_t)((char *)co - (map + page));
    co->sp = coroutine_arch_prepare(map + page, (char *)co, coroutine_main);
    fiber_create(co);
    return co;
}

static void stack_free(Coroutine *co)
{
    fiber_destroy(co);
    munmap(co->map, (size_t)sysconf(_SC_PAGESIZE) + COROUTINE_STACK_SIZE);
}

/* Move @n of the thread's free coroutines to the global pool, and free what it has no room for. */
static void pool_give(CoroutineThread *t, unsigned int n)
{
    FifoNode *surplus = NULL;

    pthread_mutex_lock(&pool_lock);
    while (n--) {
        FifoNode *node = t->free;

        t->free = node->next;
        t->nfree--;
        if (pool_nfree < COROUTINE_POOL_GLOBAL_MAX) {
            node->next = pool_free;
            pool_free = node;
            pool_nfree++;
        } else {
            node->next = surplus;
            surplus = node;
        }
    }
    pthread_mutex_unlock(&pool_lock);
    while (surplus) {
        Coroutine *co = container_of(surplus, Coroutine, link);

        surplus = surplus->next;
        stack_free(co);
    }
}

static void pool_thread_ends(void *opaque)
{
    CoroutineThread *t = opaque;

    t->registered = false;
    pool_give(t, t->nfree);
}

static void pool_make_key(void)
{
    pthread_key_create(&pool_key, pool_thread_ends);
}

static void pool_put(Coroutine *co)
{
    CoroutineThread *t = get_thread();

    if (!t->registered) {
        pthread_once(&pool_once, pool_make_key);
        pthread_setspecific(pool_key, t);
        t->registered = true;
    }
    co->link.next = t->free;
    t->free = &co->link;
    if (++t->nfree > COROUTINE_POOL_LOCAL_MAX) {
        pool_give(t, COROUTINE_POOL_LOCAL_MAX / 2);
    }
}

/* A coroutine that ended in another thread waits in the global pool: take a few at once. */
static void pool_refill(CoroutineThread *t)
{
    pthread_mutex_lock(&pool_lock);
    while (pool_free && t->nfree < COROUTINE_POOL_LOCAL_MAX / 2) {
        FifoNode *node = pool_free;

        pool_free = node->next;
        pool_nfree--;
        node->next = t->free;
        t->free = node;
        t->nfree++;
    }
    pthread_mutex_unlock(&pool_lock);
}

unsigned int coroutine_pool_local(void)
{
    return get_thread()->nfree;
}

unsigned int coroutine_pool_global(void)
{
    return pool_nfree;
}

/* --- Interface --- */

Coroutine *coroutine_create(CoroutineFn *fn, void *opaque)
{
    CoroutineThread *t = get_thread();
    Coroutine *co;

    if (!t->free && atomic_load_explicit(&pool_nfree, memory_order_relaxed)) {
        pool_refill(t);
    }
    if (t->free) {
        co = container_of(t->free, Coroutine, link);
        t->free = t->free->next;
        t->nfree--;
    } else {
        co = stack_new();
    }
    co->fn = fn;
    co->opaque = opaque;
    co->ctx = aio_context_current();
    return co;
}

void coroutine_enter(Coroutine *co)
{
    CoroutineThread *t = get_thread();
    Coroutine *from = t->current;
    AioContext *move_to;
    Passed passed;

    if (co->caller) {
        die("entered while it runs", co);
    }
    if (!from) {
        from = &t->leader;
        if (!from->fiber) {
            fiber_of_thread(from);
        }
    }
    co->caller = from;
    co->ctx = aio_context_current();
    t->current = co;
    t->passed_by = from;
    switch_to(from, co);

    t = get_thread();
    passed = t->passed;
    move_to = t->move_to;
    co = t->passed_by;
    if (passed == PASS_END) {
        pool_put(co);
    } else if (passed == PASS_MOVE) {
        aio_co_schedule(move_to, co);
    }
}

void coroutine_fn coroutine_yield(void)
{
    give_back(coroutine_self(), PASS_YIELD, NULL);
}

void coroutine_fn coroutine_yield_to(AioContext *ctx)
{
    give_back(coroutine_self(), PASS_MOVE, ctx);
}
