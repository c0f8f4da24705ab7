/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bottom halves: work that a context runs once a pass, in the order in which it was scheduled. */
#include "loop/context.h"

#include <glib.h>

/* AioBH.state: */
#define BH_REMOTE 1u  /* bh->remote is on its way or in the home's list */
#define BH_DELETED 2u /* to be freed when bh->remote arrives */

/* A one-shot is malloc'ed by whoever runs out; blocks wander between contexts, so each keeps only so many. */
#define ONESHOTS_KEPT 256

static void bh_run_home(AioWork *work)
{
    AioBH *bh = container_of(work, AioBH, home);

    bh->fn(bh->opaque);
}

static void bh_free(AioBH *bh)
{
    AioContext *ctx = bh->ctx;

    g_free(bh);
    aio_context_unref(ctx);
}

static void bh_run_remote(AioWork *work)
{
    AioBH *bh = container_of(work, AioBH, remote);
    /*
     * Acquire pairs with the release in aio_bh_schedule(): a thread that found BH_REMOTE set, and so sent nothing, wrote
     * its data before this.
     */
    unsigned int old = atomic_fetch_and_explicit(&bh->state, ~BH_REMOTE, memory_order_acq_rel);

    /* Scheduled by both sides: it is due once, and this is the earlier or the later of the two places. */
    if (list_linked(&bh->home.link)) {
        list_remove(&bh->home.link);
    }
    if (old & BH_DELETED) {
        bh_free(bh);
        return;
    }
    bh->fn(bh->opaque);
}

AioBH *aio_bh_new(AioContext *ctx, AioBHFn *fn, void *opaque)
{
    AioBH *bh = g_new0(AioBH, 1);

    bh->ctx = aio_context_ref(ctx);
    bh->fn = fn;
    bh->opaque = opaque;
    aio_work_init(&bh->home, bh_run_home);
    aio_work_init(&bh->remote, bh_run_remote);
    return bh;
}

/* Not inline: the home's way is on the path of every request, and tests see there that it has no locked instruction. */
static __attribute__((noinline)) void schedule_from_elsewhere(AioBH *bh)
{
    if (!(atomic_fetch_or_explicit(&bh->state, BH_REMOTE, memory_order_acq_rel) & BH_REMOTE)) {
        aio_work_schedule(bh->ctx, &bh->remote);
    }
}

void aio_bh_schedule(AioBH *bh)
{
    AioContext *ctx = bh->ctx;

    if (!in_home(ctx)) {
        schedule_from_elsewhere(bh);
    } else if (!list_linked(&bh->home.link)) {
        aio_work_schedule_home(ctx, &bh->home);
    }
}

void aio_bh_cancel(AioBH *bh)
{
    AioContext *ctx = bh->ctx;

    assert(in_home(ctx));
    if (list_linked(&bh->home.link)) {
        list_remove(&bh->home.link);
    }
    if (atomic_load_explicit(&bh->state, memory_order_relaxed) & BH_REMOTE) {
        /* What arrived before this call is cancelled; what is sent later, or being sent, runs. */
        aio_inbox_take(ctx, false);
        if (list_linked(&bh->remote.link)) {
            list_remove(&bh->remote.link);
            atomic_fetch_and_explicit(&bh->state, ~BH_REMOTE, memory_order_acq_rel);
        }
    }
}

void aio_bh_delete(AioBH *bh)
{
    AioContext *ctx;

    if (!bh) {
        return;
    }
    ctx = bh->ctx;
    if (in_home(ctx)) {
        aio_bh_cancel(bh);
        /* Still on its way only if another thread schedules it at this moment; then it is freed on arrival. */
        if (!(atomic_fetch_or_explicit(&bh->state, BH_DELETED, memory_order_acq_rel) & BH_REMOTE)) {
            bh_free(bh);
        }
    } else if (atomic_load_explicit(&ctx->inbox, memory_order_acquire) & AIO_INBOX_CLOSED) {
        /* Nobody runs the context any more: shutdown emptied its list. */
        bh_free(bh);
    } else if (!(atomic_fetch_or_explicit(&bh->state, BH_REMOTE | BH_DELETED, memory_order_acq_rel) & BH_REMOTE)) {
        aio_work_schedule(ctx, &bh->remote);
    }
}

/* --- One-shots --- */

typedef struct Oneshot {
    AioWork work;
    AioBHFn *fn;
    void *opaque;
} Oneshot;

static void oneshot_run(AioWork *work)
{
    Oneshot *o = container_of(work, Oneshot, work);
    AioBHFn *fn = o->fn;
    void *opaque = o->opaque;
    AioContext *ctx = aio_current;

    if (ctx->n_free_oneshots < ONESHOTS_KEPT) {
        work->next = ctx->free_oneshots;
        ctx->free_oneshots = work;
        ctx->n_free_oneshots++;
    } else {
        g_free(o);
    }
    fn(opaque);
}

void aio_bh_schedule_oneshot(AioContext *ctx, AioBHFn *fn, void *opaque)
{
    AioContext *here = aio_current;
    Oneshot *o;

    if (here && here->free_oneshots) {
        o = container_of(here->free_oneshots, Oneshot, work);
        here->free_oneshots = o->work.next;
        here->n_free_oneshots--;
    } else {
        o = g_new(Oneshot, 1);
        aio_work_init(&o->work, oneshot_run);
    }
    o->fn = fn;
    o->opaque = opaque;
    aio_work_schedule(ctx, &o->work);
}

void aio_work_free_cache(AioContext *ctx)
{
    while (ctx->free_oneshots) {
        AioWork *work = ctx->free_oneshots;

        ctx->free_oneshots = work->next;
        g_free(container_of(work, Oneshot, work));
    }
    ctx->n_free_oneshots = 0;
}

/* --- The bottom half phase --- */

bool aio_work_run(AioContext *ctx)
{
    AioWork marker;
    bool progress = false;

    if (list_empty(&ctx->work)) {
        return false;
    }
    /*
     * Run up to the marker only: what is scheduled meanwhile belongs to the next pass, so that work which schedules itself
     * again does not keep descriptors and completions waiting. A nested aio_poll() takes from the same list and may take
     * this marker out; then everything before it has run.
     */
    aio_work_init(&marker, NULL);
    list_append(&ctx->work, &marker.link);
    while (list_linked(&marker.link)) {
        AioWork *work = list_first(&ctx->work, AioWork, link);

        list_remove(&work->link);
        if (work->fn) {
            work->fn(work);
            progress = true;
        }
    }
    return progress;
}
