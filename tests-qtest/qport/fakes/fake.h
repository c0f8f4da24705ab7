/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The least that the miniature trees need to compile; hooks record calls. */
#ifndef FAKE_H
#define FAKE_H

#include <string.h>
#include <stdbool.h>
#include <semaphore.h>
#include <stdlib.h>
#include <pthread.h>
#include <stdio.h>
#include <inttypes.h>
#include <glib.h>
#include <errno.h>
#include <assert.h>

#define CONFIG_LINUX_IO_URING 1
#define ARRAY_SIZE(array) G_N_ELEMENTS(array)
#define type_init(function)
#define ERRP_GUARD() do { } while (0)
#define QSIMPLEQ_INIT(head) (*(head) = 0)
#define qatomic_read(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define qatomic_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

typedef struct Error { char text[200]; } Error;
typedef Error **ErrorOut;

void error_setg(Error **errp, const char *format, ...);
void error_setg_errno(Error **errp, int number, const char *format, ...);
void error_append_hint(Error **errp, const char *format, ...);
void error_propagate(Error **errp, Error *error);

typedef struct {
    int count;
    struct { const char *name; void *get, *set, *info; } list[8];
} FakeClass;
typedef struct {
    int64_t poll_max_ns, poll_shrink, aio_max_batch, aio_max_events;
} FakeInfo;
typedef struct { char text[400]; } FakeMonitor;

void object_class_property_add(FakeClass *klass, const char *name, void *get,
                               void *set, void *info);
void monitor_printf(FakeMonitor *mon, const char *format, ...);
void fake_trace(int64_t value);
void fake_unsupported(void);

/* Threads */
typedef struct { pthread_t id; } QemuThread;
typedef struct { sem_t sem; } QemuSemaphore;
void qemu_thread_create(QemuThread *thread, const char *name,
                        void *(*run)(void *), void *arg);
void qemu_thread_join(QemuThread *thread);
void qemu_sem_post(QemuSemaphore *sem);
void qemu_sem_wait(QemuSemaphore *sem);
int qemu_get_thread_id(void);
#define rcu_register_thread() do { } while (0)
#define rcu_unregister_thread() do { } while (0)

/* Objects */
#define IOTHREAD(x) ((IOThread *)(x))
#define OBJECT(x) ((void *)(x))
const char *object_get_canonical_path_component(void *object);
typedef struct { const char *label; size_t place; } EventLoopBaseParamInfo;
void event_loop_base_set_param(void);

/* Contexts */
struct AioContext;
struct LinuxAioState;
extern struct AioContext *fake_main_context;
GSource *aio_get_g_source(struct AioContext *ctx, const char *name);
GMainContext *fake_attach(GSource *source);
void fake_push_default(GMainContext *context);
void fake_current(struct AioContext *ctx);
void fake_poll(struct AioContext *ctx);
void aio_context_unref(struct AioContext *ctx);
bool fake_pending(struct AioContext *ctx);
void aio_dispatch(struct AioContext *ctx);
bool fdmon_io_uring_setup(struct AioContext *ctx, Error **errp);
int64_t fake_clock(void);
bool fake_look(int64_t *timeout);

/* Linux AIO */
struct iocb;
struct io_event;
typedef int io_context_t;
typedef struct { int signals; } EventNotifier;
int io_setup(unsigned int events, io_context_t *ctx);
bool io_getevents_peek(io_context_t ctx, struct io_event **events);
bool event_notifier_test_and_clear(EventNotifier *e);
void fake_progress(void);
void fake_reap(struct LinuxAioState *s, unsigned int *in_flight);
void fake_io_submit(unsigned int len, ...);
#ifdef FAKE_LAIO_MAX_EVENTS
struct LinuxAioState *laio_init(int64_t max_events, Error **errp);
#else
struct LinuxAioState *laio_init(Error **errp);
#endif

/* io_uring */
#define IORING_SETUP_COOP_TASKRUN (1U << 8)
#define IORING_SETUP_TASKRUN_FLAG (1U << 9)
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#define IORING_SQ_TASKRUN (1U << 2)
struct io_uring {
    unsigned flags, queued, completed;
    pthread_t creator;
    struct { unsigned *kflags; } sq;
};
int io_uring_queue_init(unsigned entries, struct io_uring *ring,
                        unsigned flags);
unsigned io_uring_cq_ready(struct io_uring *ring);
unsigned io_uring_sq_ready(struct io_uring *ring);
int io_uring_submit(struct io_uring *ring);
void fake_sqe(struct io_uring *ring);
#define trace_fdmon_io_uring_add_sqe(ctx, opaque) ((void)(opaque))

#endif
