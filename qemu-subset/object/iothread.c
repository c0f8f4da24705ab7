/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iothread and main-loop object types: event loop parameters as properties. */
#include "base/signals.h"
#include "object/iothread.h"
#include "object/private.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

typedef struct EventLoopBase {
    Object obj;
    AioContext *ctx; /* NULL until complete */
    int64_t aio_max_batch;
    int64_t aio_max_events;
    int64_t thread_pool_min, thread_pool_max;
    unsigned int uring_flags; /* asked for; set-up flags are those of the creation for ever */
} EventLoopBase;

struct IOThread {
    EventLoopBase base;
    int64_t poll_max_ns, poll_grow, poll_shrink, poll_weight, poll_yield_ns;
    int monitor; /* AioMonitor asked for */
    bool phase_times;
    char *id;
    pthread_t thread;
    pid_t thread_id;
    bool running; /* written in the home only once the thread runs */
    Error *start_error;
    pthread_mutex_t lock; /* covers started; thread start only */
    pthread_cond_t cond;
    bool started;
};

#define BASE(obj) ((EventLoopBase *)(obj))
#define IOTHREAD(obj) ((IOThread *)(obj))

static EventLoopBase *main_loop_object;

AioContext *iothread_context(IOThread *t)
{
    return t->base.ctx;
}

const char *iothread_id(const IOThread *t)
{
    return t->id;
}

pid_t iothread_thread_id(const IOThread *t)
{
    return t->thread_id;
}

void iothread_params(const IOThread *t, int64_t *poll_max_ns, int64_t *poll_grow, int64_t *poll_shrink,
                     int64_t *poll_weight, int64_t *aio_max_batch)
{
    *poll_max_ns = t->poll_max_ns;
    *poll_grow = t->poll_grow;
    *poll_shrink = t->poll_shrink;
    *poll_weight = t->poll_weight;
    *aio_max_batch = t->base.aio_max_batch;
}

IOThread *iothread_by_id(const char *id)
{
    Object *obj = object_child(object_objects(), id);

    return obj && object_is_a(obj, TYPE_IOTHREAD) ? IOTHREAD(obj) : NULL;
}

/* --- Parameters: one setter; apply() hands the stored values to the loop --- */

static void apply_params(EventLoopBase *b)
{
    if (!b->ctx) {
        return;
    }
    aio_context_set_max_batch(b->ctx, b->aio_max_batch);
    aio_context_set_thread_pool(b->ctx, (int)b->thread_pool_min, (int)b->thread_pool_max);
    if (object_is_a(&b->obj, TYPE_IOTHREAD)) {
        IOThread *t = (IOThread *)b;
        AioPollParams p = {t->poll_max_ns, t->poll_grow, t->poll_shrink, t->poll_weight, t->poll_yield_ns};
        aio_context_set_poll_params(b->ctx, &p);
        aio_context_set_phase_times(b->ctx, t->phase_times);
    }
}

static int64_t *param_of(Object *obj, const ObjectProperty *p)
{
    return (int64_t *)((char *)obj + p->offset);
}

static json_t *get_param(Object *obj, const ObjectProperty *p, Error **errp)
{
    return json_integer(*param_of(obj, p));
}

static bool check_pool(const EventLoopBase *b, Error **errp)
{
    if (b->thread_pool_min > b->thread_pool_max || b->thread_pool_max < 1 ||
        b->thread_pool_max > INT_MAX) {
        error_setg(errp, "bad thread-pool-min/thread-pool-max values");
        return false;
    }
    return true;
}

/* Once the loop runs every change is checked as a whole and undone if it is refused. */
static bool set_param(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    int64_t *param = param_of(obj, p);
    int64_t old = *param, v = json_integer_value(value);

    if (!object_check_range(p, v, errp)) {
        return false;
    }
    *param = v || !p->opaque ? v : *(const int64_t *)p->opaque;
    if (BASE(obj)->ctx) {
        if (!check_pool(BASE(obj), errp)) {
            *param = old;
            return false;
        }
        apply_params(BASE(obj));
    }
    return true;
}

static bool set_max_events(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    EventLoopBase *b = BASE(obj);
    int64_t v = json_integer_value(value);

    if (!object_check_range(p, v, errp)) {
        return false;
    }
    if (b->ctx && aio_context_set_max_events(b->ctx, (unsigned int)v, errp) < 0) {
        return false;
    }
    b->aio_max_events = v;
    return true;
}

/* --- Flags of the loop's io_uring --- */

/* Those in force once the ring exists; what was asked for before. */
static json_t *get_uring_flags(Object *obj, const ObjectProperty *p, Error **errp)
{
    EventLoopBase *b = BASE(obj);
    g_autofree char *text = uring_flags_to_text(b->ctx ? aio_context_uring_flags(b->ctx) : b->uring_flags);

    return json_string(text);
}

/*
 * The loop runs with a ring that was, or will be, made for @made_for: what of @flags belongs to the set-up must say that,
 * or what is read back.
 */
static bool change_uring_flags(EventLoopBase *b, AioContext *ctx, unsigned int made_for, unsigned int flags,
                               Error **errp)
{
    unsigned int set_up = flags & ~AIO_URING_REGISTERED;

    made_for &= ~AIO_URING_REGISTERED;
    flags &= AIO_URING_REGISTERED;
    if (set_up != made_for && set_up != (aio_context_uring_flags(ctx) & ~AIO_URING_REGISTERED)) {
        error_setg(errp, "x-io-uring-flags of a running event loop: only registered-files and registered-buffers can change");
        return false;
    }
    if (!aio_context_set_uring_registered(ctx, flags, errp)) {
        return false;
    }
    b->uring_flags = made_for | flags;
    return true;
}

static bool set_uring_flags(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    EventLoopBase *b = BASE(obj);
    unsigned int flags;

    if (!uring_flags_parse(json_string_value(value), &flags, errp)) {
        return false;
    }
    if (b->ctx) {
        return change_uring_flags(b, b->ctx, b->uring_flags, flags, errp);
    }
    b->uring_flags = flags;
    return true;
}

#define PARAM(pname, type, member, lo, hi)                                                         \
    {                                                                                              \
        .name = pname, .kind = PROP_INT, .get = get_param, .set = set_param,                       \
        .offset = offsetof(type, member), .min = lo, .max = hi,                                    \
    }
/* Zero stands for a default that reads back as such. */
#define PARAM_DEFAULT(pname, type, member, lo, hi, def)                                            \
    {                                                                                              \
        .name = pname, .kind = PROP_INT, .get = get_param, .set = set_param,                       \
        .offset = offsetof(type, member), .min = lo, .max = hi, .opaque = &(const int64_t){def},   \
    }

static const ObjectProperty base_properties[] = {
    PARAM("thread-pool-min", EventLoopBase, thread_pool_min, 0, INT64_MAX),
    PARAM("aio-max-batch", EventLoopBase, aio_max_batch, 0, INT64_MAX),
    PARAM("thread-pool-max", EventLoopBase, thread_pool_max, 0, INT64_MAX),
    {.name = "aio-max-events", .kind = PROP_INT, .get = get_param, .set = set_max_events,
     .offset = offsetof(EventLoopBase, aio_max_events), .min = 1, .max = 65536,
     .description = "size of the kernel's AIO context"},
    {.name = "x-io-uring-flags", .kind = PROP_STRING, .get = get_uring_flags, .set = set_uring_flags,
     .description = "set-up flags of the loop's io_uring, and registered-files, registered-buffers"},
    {0},
};

static void base_init(Object *obj)
{
    BASE(obj)->aio_max_events = 1024;
    BASE(obj)->thread_pool_max = 64;
    BASE(obj)->uring_flags = AIO_URING_AUTO;
}

/* --- main-loop --- */

static bool main_loop_complete(Object *obj, Error **errp)
{
    EventLoopBase *b = BASE(obj);

    if (main_loop_object) {
        error_setg(errp, "only one main-loop instance allowed");
        return false;
    }
    if (!check_pool(b, errp)) {
        return false;
    }
    AioContext *ctx = aio_context_main();
    if (!change_uring_flags(b, ctx, AIO_URING_AUTO, b->uring_flags, errp)) {
        return false;
    }
    if (b->aio_max_events != aio_context_max_events(ctx) &&
        aio_context_set_max_events(ctx, (unsigned int)b->aio_max_events, errp) < 0) {
        aio_context_set_uring_registered(ctx, 0, NULL);
        return false;
    }
    b->ctx = aio_context_ref(ctx);
    main_loop_object = b;
    apply_params(b);
    return true;
}

static void main_loop_finalize(Object *obj)
{
    if (main_loop_object == BASE(obj)) {
        main_loop_object = NULL;
        aio_context_unref(BASE(obj)->ctx);
    }
}

static bool main_loop_can_be_deleted(Object *obj, Error **errp)
{
    error_setg(errp, "Deleting main loop '%s' is not supported", obj->name);
    return false;
}

/* --- iothread: monitor and ring flags --- */

static const char *const monitor_names[] = {"auto", "poll", "epoll", "io_uring", "linux-aio", NULL};
_Static_assert(G_N_ELEMENTS(monitor_names) == AIO_MONITOR__MAX + 1, "a name for each AioMonitor");

static bool refuse_running(Object *obj, const ObjectProperty *p, Error **errp)
{
    if (!BASE(obj)->ctx) {
        return false;
    }
    error_setg(errp, "Property '%s.%s' can only be set when the object is created", obj->type->name,
               p->name);
    return true;
}

static json_t *get_monitor(Object *obj, const ObjectProperty *p, Error **errp)
{
    AioContext *ctx = BASE(obj)->ctx;

    return json_string(monitor_names[ctx ? (int)aio_context_monitor(ctx) : IOTHREAD(obj)->monitor]);
}

static bool set_monitor(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return !refuse_running(obj, p, errp) && object_set_enum(obj, p, value, errp);
}

static json_t *get_phase_times(Object *obj, const ObjectProperty *p, Error **errp)
{
    return json_boolean(IOTHREAD(obj)->phase_times);
}

static bool set_phase_times(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    IOTHREAD(obj)->phase_times = json_is_true(value);
    if (BASE(obj)->ctx) {
        aio_context_set_phase_times(BASE(obj)->ctx, IOTHREAD(obj)->phase_times);
    }
    return true;
}

static const ObjectProperty iothread_properties[] = {
    PARAM("poll-max-ns", IOThread, poll_max_ns, 0, INT64_MAX),
    PARAM_DEFAULT("poll-weight", IOThread, poll_weight, 0, 63, AIO_POLL_WEIGHT_DEFAULT),
    PARAM_DEFAULT("poll-grow", IOThread, poll_grow, 0, INT64_MAX, AIO_POLL_GROW_DEFAULT),
    PARAM_DEFAULT("poll-shrink", IOThread, poll_shrink, 0, INT64_MAX, AIO_POLL_SHRINK_DEFAULT),
    {.name = "x-fdmon", .kind = PROP_ENUM, .get = get_monitor, .set = set_monitor,
     .values = monitor_names, .offset = offsetof(IOThread, monitor),
     .description = "how the loop waits for file descriptors"},
    {.name = "x-poll-yield-ns", .kind = PROP_INT, .get = get_param, .set = set_param,
     .offset = offsetof(IOThread, poll_yield_ns), .min = 0, .max = INT64_MAX,
     .description = "polling offers the processor to other threads from this time on; 0: never"},
    {.name = "x-phase-times", .kind = PROP_BOOL, .get = get_phase_times, .set = set_phase_times,
     .description = "measure the time spent in each phase of the loop"},
    {0},
};

/* --- iothread: the thread --- */

static void iothread_report_start(IOThread *t)
{
    pthread_mutex_lock(&t->lock);
    t->started = true;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->lock);
}

static void *iothread_run(void *opaque)
{
    IOThread *t = opaque;
    AioContextConfig cfg = {
        .name = t->id,
        .monitor = (AioMonitor)t->monitor,
        .uring_flags = t->base.uring_flags,
        .max_events = (unsigned int)t->base.aio_max_events,
    };

    t->thread_id = gettid();
    AioContext *ctx = aio_context_new(&cfg, &t->start_error);
    if (ctx) {
        t->base.ctx = ctx;
        t->running = true;
        /* Before the first pass, so that no request ever sees the defaults instead. */
        apply_params(&t->base);
    }
    iothread_report_start(t);
    while (ctx && t->running) {
        aio_poll(ctx, true);
    }
    if (ctx) {
        aio_context_shutdown(ctx);
    }
    return NULL;
}

static void iothread_stop_bh(void *opaque)
{
    ((IOThread *)opaque)->running = false;
}

static bool iothread_start(IOThread *t, Error **errp)
{
    sigset_t old;

    /* Signals are for the main thread. */
    signals_block(&old);
    int ret = pthread_create(&t->thread, NULL, iothread_run, t);
    signals_restore(&old);
    if (ret) {
        error_setg_errno(errp, ret, "cannot create the thread of iothread '%s'", t->id);
        return false;
    }
    g_autofree char *name = g_strdup_printf("IO %s", t->id);
    name[MIN(strlen(name), 15)] = '\0';
    pthread_setname_np(t->thread, name);

    pthread_mutex_lock(&t->lock);
    while (!t->started) {
        pthread_cond_wait(&t->cond, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    if (!t->base.ctx) {
        pthread_join(t->thread, NULL);
        error_propagate(errp, g_steal_pointer(&t->start_error));
        return false;
    }
    return true;
}

static void iothread_init(Object *obj)
{
    IOThread *t = IOTHREAD(obj);

    t->poll_max_ns = 32768; /* as QEMU */
    t->poll_grow = AIO_POLL_GROW_DEFAULT;
    t->poll_shrink = AIO_POLL_SHRINK_DEFAULT;
    t->poll_weight = AIO_POLL_WEIGHT_DEFAULT;
    t->poll_yield_ns = AIO_POLL_YIELD_NS_DEFAULT;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->cond, NULL);
}

static bool iothread_complete(Object *obj, Error **errp)
{
    IOThread *t = IOTHREAD(obj);

    t->id = g_strdup(obj->name);
    return check_pool(&t->base, errp) && iothread_start(t, errp);
}

static void iothread_finalize(Object *obj)
{
    IOThread *t = IOTHREAD(obj);

    if (t->base.ctx) {
        aio_bh_schedule_oneshot(t->base.ctx, iothread_stop_bh, t);
        pthread_join(t->thread, NULL);
        aio_context_unref(t->base.ctx);
    }
    g_free(t->id);
    error_free(t->start_error);
    pthread_cond_destroy(&t->cond);
    pthread_mutex_destroy(&t->lock);
}

static const char *const creatable[] = {"user-creatable", NULL};

static const ObjectType types[] = {
    {.name = "event-loop-base", .parent = "object", .size = sizeof(EventLoopBase), .abstract = true,
     .interfaces = creatable, .properties = base_properties, .init = base_init},
    {.name = TYPE_MAIN_LOOP, .parent = "event-loop-base", .complete = main_loop_complete,
     .finalize = main_loop_finalize, .can_be_deleted = main_loop_can_be_deleted},
    {.name = TYPE_IOTHREAD, .parent = "event-loop-base", .size = sizeof(IOThread),
     .properties = iothread_properties, .init = iothread_init, .complete = iothread_complete,
     .finalize = iothread_finalize},
};

void iothread_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}

void object_register_types(void)
{
    object_register_base_types();
    iothread_register_types();
}
