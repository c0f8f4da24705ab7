/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the tree 'old' with series 1, 3 and 6. */
#include "checks.h"
#include "iothread.c"
#include "block/linux-aio.c"

bool aio_ctx_dispatch(AioContext *ctx);
void hmp_info_iothreads(FakeMonitor *mon, FakeInfo *value);

typedef void Set(void *obj, int64_t *v, const char *name, void *opaque,
                 ErrorOut errp);
typedef void Get(void *obj, int64_t *v, const char *name, void *opaque,
                 ErrorOut errp);

static void check_property(void)
{
    IOThread iothread = { .thread_id = -1 };
    FakeClass klass = { 0 };
    FakeMonitor mon = { "" };
    FakeInfo info = { 0 };
    Error *error = NULL;
    int64_t value = 5, got = 0;
    int last;

    iothread_class_init(&klass);
    last = klass.count - 1;
    CHECK(klass.count == 3 && !strcmp(klass.list[last].name, "aio-max-batch"));

    /* Before the context exists the value is only kept */
    ((Set *)klass.list[last].set)(&iothread, &value, "", klass.list[last].info,
                                  &error);
    CHECK(!error && iothread.aio_max_batch == 5 && !iothread.ctx);
    iothread_complete(&iothread, &error);
    CHECK(!error && iothread.ctx->aio_max_batch == 5);

    value = 7;
    ((Set *)klass.list[last].set)(&iothread, &value, "", klass.list[last].info,
                                  &error);
    CHECK(!error && iothread.ctx->aio_max_batch == 7);
    value = -1;
    ((Set *)klass.list[last].set)(&iothread, &value, "", klass.list[last].info,
                                  &error);
    CHECK(error && iothread.ctx->aio_max_batch == 7);
    ((Get *)klass.list[last].get)(&iothread, &got, "", klass.list[last].info,
                                  NULL);
    CHECK(got == 7);

    /* The polling parameters are still handed over */
    error = NULL;
    value = 3;
    ((Set *)klass.list[1].set)(&iothread, &value, "", klass.list[1].info,
                               &error);
    CHECK(!error && iothread.ctx->poll_shrink == 3);

    query_one_iothread(&iothread, &info);
    hmp_info_iothreads(&mon, &info);
    CHECK(strstr(mon.text, "aio-max-batch: 7\n"));
}

static void submit(LinuxAioState *s, unsigned in_flight, int64_t max_batch,
                   unsigned want)
{
    fake_submits = 0;
    s->io_q.in_flight = in_flight;
    s->io_q.in_queue = 0;
    s->aio_context->aio_max_batch = max_batch;
    for (unsigned i = 1; i < want; i++) {
        laio_do_submit(s);
    }
    CHECK(fake_submits == 0);
    laio_do_submit(s);
    CHECK(fake_submits == 1 && fake_submitted[0] == want);
}

static void check_batches(void)
{
    AioContext ctx = { 0 };
    LinuxAioState s = { .aio_context = &ctx, .io_q.plugged = 1 };

    submit(&s, 0, 0, 32);
    submit(&s, 0, 5, 5);
    submit(&s, 0, INT64_MAX, 1024);
    submit(&s, 1022, 5, 2);
    submit(&s, 1024 - 32, 0, 32);
    s.io_q.plugged = 0;
    submit(&s, 0, 5, 1);
}

static void check_late_clear(void)
{
    LinuxAioState s = { 0 };

    qemu_laio_completion_cb(&s);
    CHECK(fake_clears == 1 && fake_reaps_at_clear == 1 && fake_reaps == 1);

    fake_late_completions = 1;
    qemu_laio_completion_cb(&s);
    CHECK(fake_clears == 2 && fake_late_completions == 0);

    /* Nothing in flight: only the second call can submit what is queued */
    fake_reaps = 0;
    s.io_q.in_queue = 1;
    qemu_laio_completion_cb(&s);
    CHECK(fake_reaps == 2);
    fake_reaps = 0;
    s.io_q.in_flight = 1;
    qemu_laio_completion_cb(&s);
    CHECK(fake_reaps == 1);
}

static void awake(AioContext *ctx)
{
    CHECK(ctx->notify_me == 2);
    ctx->notify_me |= 8;
}

static void check_dispatch(void)
{
    AioContext ctx = { .notify_me = 3 };

    fake_on_dispatch = awake;
    aio_ctx_dispatch(&ctx);
    CHECK(ctx.notify_me == 10);
}

int main(void)
{
    check_property();
    check_batches();
    check_late_clear();
    check_dispatch();
    return 0;
}
