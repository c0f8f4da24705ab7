/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the tree 'new' with series 2 to 6. */
#include "checks.h"
#include "iothread.h"

struct LinuxAioState {      /* as the patched engine has it */
    AioContext *aio_context;
    io_context_t ctx;
    unsigned int max_events;
    EventNotifier e;
    struct {
        unsigned int in_queue;
        unsigned int in_flight;
    } io_q;
};

void iothread_init(EventLoopBase *base, ErrorOut errp);
void iothread_stop(IOThread *iothread);
void query_one_iothread(IOThread *iothread, FakeInfo *info);
void main_loop_update_params(EventLoopBase *base, Error **errp);
void event_loop_base_class_init(FakeClass *klass);
void ioq_submit(struct LinuxAioState *s);
uint64_t laio_max_batch(struct LinuxAioState *s);
struct LinuxAioState *aio_setup_linux_aio(AioContext *ctx, Error **errp);

#define COOP (IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG)
#define ALL (COOP | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_NO_SQARRAY)

static void setup(IOThread *iothread)
{
    memset(iothread, 0, sizeof(*iothread));
    iothread->thread_id = -1;
    sem_init(&iothread->init_done_sem.sem, 0, 0);
    iothread->parent_obj.aio_max_batch = 11;
    iothread->parent_obj.aio_max_events = 22;
    fake_attempt_count = 0;
    fake_ring_error = 0;
    fake_kernel_flags = UINT_MAX;
}

static void check_set_up(void)
{
    IOThread iothread;
    Error *error = NULL;
    FakeInfo info;

    setup(&iothread);
    iothread_init(&iothread.parent_obj, &error);
    CHECK(!error && iothread.ctx && iothread.worker_context);
    CHECK(!pthread_equal(iothread.ctx->fdmon_io_uring.creator,
                         pthread_self()));
    CHECK(iothread.ctx->fdmon_io_uring.flags == ALL);
    CHECK(fake_attempt_count == 1);
    CHECK(iothread.ctx->aio_max_batch == 11);
    CHECK(iothread.ctx->aio_max_events == 22);
    query_one_iothread(&iothread, &info);
    CHECK(info.aio_max_batch == 11 && info.aio_max_events == 22);
    iothread_stop(&iothread);
}

static void check_no_context(void)
{
    IOThread iothread;
    Error *error = NULL;

    setup(&iothread);
    fake_ring_error = ENOMEM;
    iothread_init(&iothread.parent_obj, &error);
    CHECK(error && !strcmp(error->text, "no ring"));
    CHECK(!iothread.ctx && !iothread.worker_context);
    CHECK(iothread.thread_id == -1 && !iothread.start_error);
    CHECK(fake_attempt_count == 1);
    iothread_stop(&iothread);       /* as finalizing the object does */
}

static void check_bad_parameter(void)
{
    IOThread iothread;
    Error *error = NULL;

    setup(&iothread);
    iothread.poll_shrink = -1;
    iothread_init(&iothread.parent_obj, &error);
    CHECK(error && !strcmp(error->text, "negative"));
    CHECK(iothread.stopping && !iothread.running);
    iothread_stop(&iothread);
}

static void fallback(unsigned kernel, unsigned attempts, unsigned want)
{
    IOThread iothread;
    Error *error = NULL;

    setup(&iothread);
    fake_kernel_flags = kernel;
    iothread_init(&iothread.parent_obj, &error);
    CHECK(!error && iothread.ctx->fdmon_io_uring.flags == want);
    CHECK(fake_attempt_count == attempts);
    iothread_stop(&iothread);
}

static void check_fallback(void)
{
    AioContext *ctx;

    fallback(ALL, 1, ALL);
    fallback(ALL & ~IORING_SETUP_NO_SQARRAY, 2,
             ALL & ~IORING_SETUP_NO_SQARRAY);
    fallback(COOP, 3, COOP);
    fallback(0, 4, 0);

    /* The main loop asks for nothing */
    fake_attempt_count = 0;
    fake_kernel_flags = UINT_MAX;
    ctx = aio_context_new(NULL);
    CHECK(ctx && fake_attempt_count == 1 && fake_attempts[0] == 0);
}

static void check_polling(void)
{
    AioContext *ctx = aio_context_new_for_thread(NULL);

    CHECK(!ctx->fdmon_ops->need_wait(ctx));
    fake_kflags = IORING_SQ_TASKRUN;
    CHECK(ctx->fdmon_ops->need_wait(ctx));
    fake_kflags = ~IORING_SQ_TASKRUN;
    CHECK(!ctx->fdmon_ops->need_wait(ctx));
    fake_kflags = 0;
}

static void check_batches(void)
{
    AioContext *ctx = aio_context_new(NULL);

    fake_submits = 0;
    for (int i = 0; i < 100; i++) {
        ctx->fdmon_ops->add_sqe(ctx, NULL);
    }
    CHECK(fake_submits == 0);

    ctx->fdmon_io_uring.queued = 0;
    ctx->aio_max_batch = 3;
    fake_interrupts = 2;
    for (int i = 0; i < 7; i++) {
        ctx->fdmon_ops->add_sqe(ctx, NULL);
    }
    CHECK(fake_submits == 2 && fake_submitted[0] == 3);
    CHECK(fake_submitted[1] == 3 && ctx->fdmon_io_uring.queued == 1);
    CHECK(fake_interrupts == 0);
}

static void check_events(void)
{
    AioContext *ctx = aio_context_new(NULL);
    struct LinuxAioState *s;
    Error *error = NULL;

    s = aio_setup_linux_aio(ctx, &error);
    CHECK(s && fake_setup_events == 1024 && s->max_events == 1024);

    ctx->aio_max_events = INT64_MAX;
    s = aio_setup_linux_aio(ctx, &error);
    CHECK(fake_setup_events == INT_MAX);

    ctx->aio_max_events = 3000;
    s = aio_setup_linux_aio(ctx, &error);
    CHECK(fake_setup_events == 3000);
    s->aio_context = ctx;

    /* More than the array on the stack holds takes several turns */
    fake_submits = 0;
    s->io_q.in_queue = 2500;
    ioq_submit(s);
    CHECK(fake_submits == 3 && fake_submitted[0] == 1024);
    CHECK(fake_submitted[2] == 2500 - 2048 && s->io_q.in_flight == 2500);

    /* Never more than there is room for */
    fake_submits = 0;
    s->io_q.in_queue = 1000;
    ioq_submit(s);
    CHECK(fake_submits == 1 && fake_submitted[0] == 500);
    CHECK(s->io_q.in_flight == 3000 && s->io_q.in_queue == 500);
    ctx->aio_max_batch = 10;
    s->io_q.in_flight = 2995;
    CHECK(laio_max_batch(s) == 5);

    fake_setup_result = -EAGAIN;
    CHECK(!aio_setup_linux_aio(ctx, &error));
    CHECK(strstr(error->text, "aio-max-nr") && strstr(error->text, "3000"));
}

static void check_main_loop(void)
{
    EventLoopBase base = { .aio_max_batch = 1, .aio_max_events = 2 };
    FakeClass klass = { 0 };

    fake_main_context = aio_context_new(NULL);
    main_loop_update_params(&base, NULL);
    CHECK(fake_main_context->aio_max_batch == 1);
    CHECK(fake_main_context->aio_max_events == 2);

    event_loop_base_class_init(&klass);
    CHECK(klass.count == 3);
    CHECK(!strcmp(klass.list[1].name, "aio-max-events"));
    CHECK(((EventLoopBaseParamInfo *)klass.list[1].info)->place ==
          offsetof(EventLoopBase, aio_max_events));
}

int main(void)
{
    check_set_up();
    check_no_context();
    check_bad_parameter();
    check_fallback();
    check_polling();
    check_batches();
    check_events();
    check_main_loop();
    return 0;
}
