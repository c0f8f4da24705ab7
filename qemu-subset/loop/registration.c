/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process's lists of memory and files that rings may register. */
#include "loop/kernel-queue-int.h"

#include <assert.h>
#include <glib.h>
#include <pthread.h>

/* Lists change when a machine, a node or a ring comes or goes; the requests in between look at generations only. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- Memory --- */

static AioMemory *memory;
static unsigned int n_memory;
static _Atomic unsigned int memory_generation;

static void memory_changed(unsigned int n)
{
    n_memory = n;
    atomic_fetch_add_explicit(&memory_generation, 1, memory_order_relaxed);
}

void aio_memory_add(void *host, uint64_t size)
{
    pthread_mutex_lock(&lock);
    memory = g_renew(AioMemory, memory, n_memory + 1);
    memory[n_memory] = (AioMemory){host, size};
    memory_changed(n_memory + 1);
    pthread_mutex_unlock(&lock);
}

void aio_memory_remove(void *host)
{
    unsigned int i = 0;

    pthread_mutex_lock(&lock);
    while (i < n_memory && memory[i].host != host) {
        i++;
    }
    assert(i < n_memory);
    memory[i] = memory[n_memory - 1];
    memory_changed(n_memory - 1);
    pthread_mutex_unlock(&lock);
}

unsigned int aio_memory_generation(void)
{
    /* Whoever submits a request has learnt of its memory in an order that makes the list's last change visible here. */
    return atomic_load_explicit(&memory_generation, memory_order_relaxed);
}

AioMemory *aio_memory_list(unsigned int *n, unsigned int *generation)
{
    AioMemory *copy;

    pthread_mutex_lock(&lock);
    copy = g_memdup2(memory, n_memory * sizeof(*memory));
    *n = n_memory;
    *generation = aio_memory_generation();
    pthread_mutex_unlock(&lock);
    return copy;
}

/* --- Files --- */

static struct FileSlot {
    bool used;
    GPtrArray *holders; /* AioContext: its ring may have the file registered; NULL: none ever had */
} slots[AIO_FILE_SLOTS];

/* Never 0, which a ring takes for "nothing registered". */
static unsigned int next_generation(void)
{
    static unsigned int last;

    return ++last ? last : ++last;
}

static void new_generation(AioFile *f)
{
    pthread_mutex_lock(&lock);
    /* Who sees the new one also sees what the descriptor stands for; pairs with aio_uring_file_index(). */
    atomic_store_explicit(&f->generation, next_generation(), memory_order_release);
    pthread_mutex_unlock(&lock);
}

void aio_file_open(AioFile *f)
{
    assert(!f->slot);
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < AIO_FILE_SLOTS && !f->slot; i++) {
        if (!slots[i].used) {
            slots[i].used = true;
            f->slot = i + 1;
        }
    }
    pthread_mutex_unlock(&lock);
    new_generation(f);
}

void aio_file_changed(AioFile *f)
{
    new_generation(f);
}

void aio_file_hold(unsigned int slot, AioContext *ctx)
{
    struct FileSlot *s = &slots[slot];

    pthread_mutex_lock(&lock);
    if (!s->holders) {
        s->holders = g_ptr_array_new();
    }
    if (!g_ptr_array_find(s->holders, ctx, NULL)) {
        g_ptr_array_add(s->holders, ctx);
    }
    pthread_mutex_unlock(&lock);
}

void aio_files_let_go(AioContext *ctx)
{
    pthread_mutex_lock(&lock);
    for (unsigned int i = 0; i < AIO_FILE_SLOTS; i++) {
        if (slots[i].holders) {
            g_ptr_array_remove_fast(slots[i].holders, ctx);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Take out one holder of the slot; with a reference, NULL: there is none. */
static AioContext *take_holder(struct FileSlot *s)
{
    AioContext *ctx = NULL;

    pthread_mutex_lock(&lock);
    if (s->holders && s->holders->len) {
        ctx = aio_context_ref(g_ptr_array_steal_index_fast(s->holders, s->holders->len - 1));
    }
    pthread_mutex_unlock(&lock);
    return ctx;
}

typedef struct Forget {
    AioContext *ctx;
    unsigned int slot;
} Forget;

static void forget_in_home(void *opaque)
{
    Forget *f = opaque;

    aio_uring_forget_file(f->ctx, f->slot);
}

void aio_file_close(AioFile *f)
{
    struct FileSlot *s;
    AioContext *ctx;

    if (!f->slot) {
        return;
    }
    s = &slots[f->slot - 1];
    while ((ctx = take_holder(s))) {
        Forget call = {ctx, f->slot - 1};

        aio_run_in_home(ctx, forget_in_home, &call);
        aio_context_unref(ctx);
    }
    pthread_mutex_lock(&lock);
    s->used = false;
    g_clear_pointer(&s->holders, g_ptr_array_unref);
    pthread_mutex_unlock(&lock);
    f->slot = 0;
}
