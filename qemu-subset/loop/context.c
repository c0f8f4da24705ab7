/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Life of an AioContext, its parameters, and the list of all contexts. */
#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <glib.h>

/* As QEMU, which has it fixed. */
#define MAX_EVENTS_DEFAULT 1024
/* Passes that shutdown makes for bottom halves that go on scheduling themselves. */
#define SHUTDOWN_PASSES 100000

_Thread_local AioContext *aio_current;

static AioContext *main_context;
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static ListNode registry = {&registry, &registry};

static const char *const monitor_names[AIO_MONITOR__MAX] = {
    [AIO_MONITOR_AUTO] = "auto",           [AIO_MONITOR_POLL] = "poll",           [AIO_MONITOR_EPOLL] = "epoll",
    [AIO_MONITOR_IO_URING] = "io_uring", [AIO_MONITOR_LINUX_AIO] = "linux-aio",
};

static const FDMonOps *const monitors[AIO_MONITOR__MAX] = {
    [AIO_MONITOR_POLL] = &fdmon_poll,
    [AIO_MONITOR_EPOLL] = &fdmon_epoll,
    [AIO_MONITOR_IO_URING] = &fdmon_io_uring,
    [AIO_MONITOR_LINUX_AIO] = &fdmon_linux_aio,
};

void aio_context_for_each(void (*fn)(AioContext *ctx, void *opaque), void *opaque)
{
    pthread_mutex_lock(&registry_lock);
    /* By hand: the list's head is not aligned as a context is, and may not even look like one. */
    for (ListNode *n = registry.next; n != &registry; n = n->next) {
        fn(list_entry(n, AioContext, registry), opaque);
    }
    pthread_mutex_unlock(&registry_lock);
}

/* AUTO: the best that the kernel lets us have; which one that is can be asked for. */
static int start_monitor(AioContext *ctx, AioMonitor wanted, Error **errp)
{
    static const AioMonitor preference[] = {AIO_MONITOR_IO_URING, AIO_MONITOR_EPOLL, AIO_MONITOR_POLL};
    int ret = -ENOSYS;

    for (unsigned int i = 0; i < G_N_ELEMENTS(preference); i++) {
        bool last = i == G_N_ELEMENTS(preference) - 1 || wanted != AIO_MONITOR_AUTO;

        ctx->monitor = wanted == AIO_MONITOR_AUTO ? preference[i] : wanted;
        ctx->mon = monitors[ctx->monitor];
        ret = ctx->mon->init(ctx, last ? errp : NULL);
        if (ret == 0 || last) {
            break;
        }
    }
    return ret;
}

static void context_init(AioContext *ctx, const AioContextConfig *cfg)
{
    ctx->name = g_strdup(cfg->name ? cfg->name : "loop");
    ctx->uring_want = cfg->uring_flags;
    ctx->is_main = cfg->is_main;
    ctx->params = (AioPollParams){0, AIO_POLL_GROW_DEFAULT, AIO_POLL_SHRINK_DEFAULT, AIO_POLL_WEIGHT_DEFAULT};
    ctx->poll = ctx->params;
    ctx->pool_max = 64;
    pthread_mutex_init(&ctx->params_lock, NULL);
    list_init(&ctx->work);
    list_init(&ctx->ready);
    list_init(&ctx->polled);
    list_init(&ctx->always);
    list_init(&ctx->handlers);
    list_init(&ctx->deleted);
    atomic_init(&ctx->refs, 1);
    atomic_init(&ctx->max_events, cfg->max_events ? cfg->max_events : MAX_EVENTS_DEFAULT);
    atomic_init(&ctx->virtual_deadline, INT64_MAX);
}

static void context_free(AioContext *ctx)
{
    event_notifier_cleanup(&ctx->notifier);
    pthread_mutex_destroy(&ctx->params_lock);
    g_free(ctx->name);
    free(ctx);
}

AioContext *aio_context_new(const AioContextConfig *cfg, Error **errp)
{
    AioContext *ctx;
    int ret;

    assert(!aio_current);
    ctx = aligned_alloc(64, sizeof(*ctx));
    memset(ctx, 0, sizeof(*ctx));
    context_init(ctx, cfg);
    ret = event_notifier_init(&ctx->notifier);
    if (ret < 0) {
        error_setg_errno(errp, -ret, "Failed to create the event notifier of '%s'", ctx->name);
        context_free(ctx);
        return NULL;
    }
    aio_current = ctx;
    if (start_monitor(ctx, cfg->monitor, errp) < 0) {
        aio_uring_destroy(ctx);
        aio_kaio_destroy(ctx);
        aio_current = NULL;
        context_free(ctx);
        return NULL;
    }
    pthread_mutex_lock(&registry_lock);
    list_append(&registry, &ctx->registry);
    pthread_mutex_unlock(&registry_lock);
    return ctx;
}

AioContext *aio_context_ref(AioContext *ctx)
{
    atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    return ctx;
}

void aio_context_unref(AioContext *ctx)
{
    if (ctx && atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) == 1) {
        assert(atomic_load_explicit(&ctx->inbox, memory_order_relaxed) == AIO_INBOX_CLOSED);
        context_free(ctx);
    }
}

static bool in_flight(AioContext *ctx)
{
    return aio_uring_in_flight(ctx) || (aio_kaio_exists(ctx) && aio_kaio_in_flight(ctx)) ||
           aio_sources_busy(ctx);
}

/* Run what is pending: first with waiting for requests, then for bottom halves until none is left. */
static void run_pending(AioContext *ctx)
{
    unsigned int passes = 0;

    while (in_flight(ctx)) {
        aio_poll(ctx, true);
    }
    while (!list_empty(&ctx->work) || !aio_inbox_empty(ctx)) {
        aio_poll(ctx, false);
        if (++passes == SHUTDOWN_PASSES) {
            warn_report("event loop '%s' is shut down with bottom halves that schedule themselves", ctx->name);
            break;
        }
    }
}

void aio_context_shutdown(AioContext *ctx)
{
    assert(in_home(ctx) && !ctx->depth && !ctx->closing);
    ctx->closing = true;
    do {
        run_pending(ctx);
        aio_sources_destroy(ctx);
        run_pending(ctx);
    } while (!aio_inbox_close(ctx));
    pthread_mutex_lock(&registry_lock);
    list_remove(&ctx->registry);
    pthread_mutex_unlock(&registry_lock);
    while (!list_empty(&ctx->work)) {
        list_remove(ctx->work.next);
    }
    aio_handlers_destroy(ctx);
    aio_timers_destroy(ctx);
    ctx->mon->done(ctx);
    aio_uring_destroy(ctx);
    aio_kaio_destroy(ctx);
    aio_work_free_cache(ctx);
    aio_current = NULL;
}

AioContext *aio_context_current(void)
{
    return aio_current;
}

AioContext *aio_context_main(void)
{
    return main_context;
}

void aio_context_set_main(AioContext *ctx)
{
    main_context = ctx;
}

bool aio_context_in_home(const AioContext *ctx)
{
    return in_home(ctx);
}

AioMonitor aio_context_monitor(const AioContext *ctx)
{
    return ctx->monitor;
}

const char *aio_monitor_name(AioMonitor m)
{
    return monitor_names[m];
}

unsigned int aio_context_uring_flags(const AioContext *ctx)
{
    return atomic_load_explicit(&((AioContext *)ctx)->uring_flags, memory_order_relaxed);
}

AioStats *aio_context_stats(AioContext *ctx)
{
    return &ctx->stats;
}

/* --- Parameters --- */

void aio_context_set_poll_params(AioContext *ctx, const AioPollParams *p)
{
    pthread_mutex_lock(&ctx->params_lock);
    ctx->params = *p;
    ctx->params.grow = p->grow > 0 ? p->grow : AIO_POLL_GROW_DEFAULT;
    ctx->params.shrink = p->shrink > 0 ? p->shrink : AIO_POLL_SHRINK_DEFAULT;
    ctx->params.weight = p->weight > 0 && p->weight < 64 ? p->weight : AIO_POLL_WEIGHT_DEFAULT;
    ctx->params.yield_ns = MAX(p->yield_ns, 0);
    if (ctx->is_main) {
        ctx->params.max_ns = 0;
    }
    atomic_fetch_add_explicit(&ctx->params_gen, 1, memory_order_relaxed);
    pthread_mutex_unlock(&ctx->params_lock);
}

void aio_context_set_phase_times(AioContext *ctx, bool on)
{
    atomic_store_explicit(&ctx->phase_times, on, memory_order_relaxed);
}

bool aio_context_phase_times(const AioContext *ctx)
{
    return atomic_load_explicit(&((AioContext *)ctx)->phase_times, memory_order_relaxed);
}

void aio_context_set_max_batch(AioContext *ctx, int64_t max_batch)
{
    atomic_store_explicit(&ctx->max_batch, max_batch, memory_order_relaxed);
}

int64_t aio_context_max_batch(const AioContext *ctx)
{
    return atomic_load_explicit(&((AioContext *)ctx)->max_batch, memory_order_relaxed);
}

static void params_changed(void *opaque)
{
    aio_sources_params_changed(opaque);
}

void aio_context_set_thread_pool(AioContext *ctx, int min, int max)
{
    pthread_mutex_lock(&ctx->params_lock);
    ctx->pool_min = min;
    ctx->pool_max = max;
    pthread_mutex_unlock(&ctx->params_lock);
    aio_bh_schedule_oneshot(ctx, params_changed, ctx);
}

void aio_context_thread_pool(const AioContext *ctx, int *min, int *max)
{
    pthread_mutex_t *lock = &((AioContext *)ctx)->params_lock;

    pthread_mutex_lock(lock);
    *min = ctx->pool_min;
    *max = ctx->pool_max;
    pthread_mutex_unlock(lock);
}

unsigned int aio_context_max_events(const AioContext *ctx)
{
    return atomic_load_explicit(&((AioContext *)ctx)->max_events, memory_order_relaxed);
}

typedef struct Resize {
    AioContext *ctx;
    unsigned int max_events;
    Error **errp;
    int ret;
} Resize;

static void resize_in_home(void *opaque)
{
    Resize *r = opaque;
    AioContext *ctx = r->ctx;

    if (aio_kaio_exists(ctx) && r->max_events != aio_context_max_events(ctx)) {
        if (aio_kaio_in_flight(ctx)) {
            error_setg(r->errp, "Cannot change the number of AIO events of '%s' to %u while %u requests are in flight",
                       ctx->name, r->max_events, aio_kaio_in_flight(ctx));
            r->ret = -EBUSY;
            return;
        }
        r->ret = aio_kaio_resize(ctx, r->max_events, r->errp);
    }
    if (r->ret == 0) {
        atomic_store_explicit(&ctx->max_events, r->max_events, memory_order_relaxed);
    }
}

int aio_context_set_max_events(AioContext *ctx, unsigned int max_events, Error **errp)
{
    Resize r = {.ctx = ctx, .max_events = max_events ? max_events : MAX_EVENTS_DEFAULT, .errp = errp};

    aio_run_in_home(ctx, resize_in_home, &r);
    return r.ret;
}

typedef struct Registered {
    AioContext *ctx;
    unsigned int flags;
    Error **errp;
    bool ok;
} Registered;

static void set_registered_in_home(void *opaque)
{
    Registered *r = opaque;
    AioContext *ctx = r->ctx;

    r->ok = !ctx->uring || aio_uring_set_registered(ctx, r->flags, r->errp);
    if (r->ok) {
        ctx->uring_want = (ctx->uring_want & ~AIO_URING_REGISTERED) | r->flags;
    }
}

bool aio_context_set_uring_registered(AioContext *ctx, unsigned int flags, Error **errp)
{
    Registered r = {.ctx = ctx, .flags = flags & AIO_URING_REGISTERED, .errp = errp};

    aio_run_in_home(ctx, set_registered_in_home, &r);
    return r.ok;
}
