/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bodies of the fakes; what a test looks at is in the fake_* variables. */
#include "checks.h"

unsigned fake_submitted[16];
unsigned fake_submits;
unsigned fake_setup_events;
int fake_setup_result;
unsigned fake_attempts[16];
unsigned fake_attempt_count;
unsigned fake_kernel_flags = UINT_MAX;
int fake_ring_error;
int fake_reaps;
int fake_late_completions;
int fake_clears;
int fake_reaps_at_clear;
unsigned fake_kflags;
int fake_interrupts;
int64_t fake_now, fake_look_ns;
unsigned fake_looks, fake_found_at;
void (*fake_on_dispatch)(struct AioContext *ctx);
struct AioContext *fake_main_context;

static void set_text(Error **errp, const char *format, va_list args)
{
    assert(errp && !*errp);
    *errp = g_new0(Error, 1);
    vsnprintf((*errp)->text, sizeof((*errp)->text), format, args);
}

void error_setg(Error **errp, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    set_text(errp, format, args);
    va_end(args);
}

void error_setg_errno(Error **errp, int number, const char *format, ...)
{
    va_list args;

    assert(number > 0);
    va_start(args, format);
    set_text(errp, format, args);
    va_end(args);
}

void error_append_hint(Error **errp, const char *format, ...)
{
    size_t used = strlen((*errp)->text);
    va_list args;

    va_start(args, format);
    vsnprintf((*errp)->text + used, sizeof((*errp)->text) - used, format, args);
    va_end(args);
}

void error_propagate(Error **errp, Error *error)
{
    assert(!*errp && error);
    *errp = error;
}

void object_class_property_add(FakeClass *klass, const char *name, void *get,
                               void *set, void *info)
{
    klass->list[klass->count].name = name;
    klass->list[klass->count].get = get;
    klass->list[klass->count].set = set;
    klass->list[klass->count++].info = info;
}

void monitor_printf(FakeMonitor *mon, const char *format, ...)
{
    size_t used = strlen(mon->text);
    va_list args;

    va_start(args, format);
    vsnprintf(mon->text + used, sizeof(mon->text) - used, format, args);
    va_end(args);
}

void fake_trace(int64_t value)
{
}

void fake_unsupported(void)
{
    abort();
}

void qemu_thread_create(QemuThread *thread, const char *name,
                        void *(*run)(void *), void *arg)
{
    assert(name && !pthread_create(&thread->id, NULL, run, arg));
}

void qemu_thread_join(QemuThread *thread)
{
    assert(!pthread_join(thread->id, NULL));
}

void qemu_sem_post(QemuSemaphore *sem)
{
    sem_post(&sem->sem);
}

void qemu_sem_wait(QemuSemaphore *sem)
{
    while (sem_wait(&sem->sem) && errno == EINTR) {
    }
}

int qemu_get_thread_id(void)
{
    return 77;
}

const char *object_get_canonical_path_component(void *object)
{
    return "t0";
}

void event_loop_base_set_param(void)
{
}

GSource *aio_get_g_source(struct AioContext *ctx, const char *name)
{
    assert(ctx && name);
    return g_idle_source_new();
}

GMainContext *fake_attach(GSource *source)
{
    return g_main_context_new();
}

void fake_push_default(GMainContext *context)
{
    assert(context);
}

void fake_current(struct AioContext *ctx)
{
    assert(ctx);
}

void fake_poll(struct AioContext *ctx)
{
    sched_yield();
}

void aio_context_unref(struct AioContext *ctx)
{
    g_free(ctx);
}

bool fake_pending(struct AioContext *ctx)
{
    return false;
}

void aio_dispatch(struct AioContext *ctx)
{
    if (fake_on_dispatch) {
        fake_on_dispatch(ctx);
    }
}

int64_t fake_clock(void)
{
    return fake_now;
}

/* Takes time, and finds something at last if it is to find anything */
bool fake_look(int64_t *timeout)
{
    fake_now += fake_look_ns;
    if (++fake_looks != fake_found_at) {
        return false;
    }
    *timeout = 0;
    return true;
}

int io_setup(unsigned int events, io_context_t *ctx)
{
    fake_setup_events = events;
    return fake_setup_result;
}

/* Completions that arrive while the notifier is being cleared */
bool io_getevents_peek(io_context_t ctx, struct io_event **events)
{
    return fake_late_completions > 0;
}

bool event_notifier_test_and_clear(EventNotifier *e)
{
    fake_clears++;
    fake_reaps_at_clear = fake_reaps;
    return true;
}

void fake_progress(void)
{
}

void fake_reap(struct LinuxAioState *s, unsigned int *in_flight)
{
    if (fake_reaps++) {
        fake_late_completions = 0;
    }
}

void fake_io_submit(unsigned int len, ...)
{
    fake_submitted[fake_submits++ % ARRAY_SIZE(fake_submitted)] = len;
}

int io_uring_queue_init(unsigned entries, struct io_uring *ring,
                        unsigned flags)
{
    fake_attempts[fake_attempt_count++ % ARRAY_SIZE(fake_attempts)] = flags;
    if (fake_ring_error) {
        return -fake_ring_error;
    }
    if (flags & ~fake_kernel_flags) {
        return -EINVAL;
    }
    ring->flags = flags;
    ring->creator = pthread_self();
    ring->sq.kflags = &fake_kflags;
    return 0;
}

unsigned io_uring_cq_ready(struct io_uring *ring)
{
    return ring->completed;
}

unsigned io_uring_sq_ready(struct io_uring *ring)
{
    return ring->queued;
}

int io_uring_submit(struct io_uring *ring)
{
    unsigned queued = ring->queued;

    if (fake_interrupts > 0) {
        fake_interrupts--;
        return -EINTR;
    }
    fake_io_submit(queued);
    ring->queued = 0;
    return queued;
}

void fake_sqe(struct io_uring *ring)
{
    ring->queued++;
}
