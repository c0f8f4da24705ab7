/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitor "io_uring": one-shot polls in the context's ring, armed by the same system call that waits. */
#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <glib.h>
#include <liburing.h>

typedef struct UringMonitor {
    ListNode to_arm, to_cancel; /* AioHandler.mon_link; the latter were removed and are still armed */
    AioContext *ctx;
    AioCompletion notifier;
    bool notifier_armed;
} UringMonitor;

static void notifier_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    UringMonitor *m = container_of(c, UringMonitor, notifier);

    /* Nothing to do but to have woken up; a multishot poll reports each write, without the eventfd being read. */
    m->notifier_armed = flags & IORING_CQE_F_MORE;
}

static void handler_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    AioHandler *h = container_of(c, AioHandler, completion);
    UringMonitor *m = h->ctx->mon_state;

    h->armed = false;
    if (h->deleted) {
        list_remove(&h->mon_link);
        return;
    }
    /* A poll is over when it has reported; the next one looks at the level again, after the callbacks ran. */
    list_append(&m->to_arm, &h->mon_link);
    if (res >= 0) {
        aio_handler_ready(h->ctx, h, (unsigned int)res);
    } else {
        /* The kernel was short of memory; or the descriptor was closed, which poll(2) tells its handler. */
        aio_handler_look(h->ctx, h, 0);
    }
}

static int uring_init(AioContext *ctx, Error **errp)
{
    UringMonitor *m;

    if (!aio_uring_get(ctx, errp)) {
        return -ENOSYS;
    }
    m = g_new0(UringMonitor, 1);
    m->ctx = ctx;
    m->notifier.fn = notifier_fired;
    list_init(&m->to_arm);
    list_init(&m->to_cancel);
    ctx->mon_state = m;
    return 0;
}

static void uring_done(AioContext *ctx)
{
    g_free(ctx->mon_state);
    ctx->mon_state = NULL;
}

static bool uring_watch(AioContext *ctx, AioHandler *h, unsigned int old)
{
    UringMonitor *m = ctx->mon_state;

    h->completion.fn = handler_fired;
    if (!old) {
        list_append(&m->to_arm, &h->mon_link);
    }
    return true;
}

/* False if there is no place for the request. */
static bool cancel(AioContext *ctx, AioHandler *h)
{
    struct io_uring_sqe *sqe = aio_uring_sqe_own(ctx, NULL);

    if (sqe) {
        io_uring_prep_poll_remove(sqe, (uintptr_t)&h->completion | AIO_COMPLETION_OWN);
    }
    return sqe;
}

static void uring_unwatch(AioContext *ctx, AioHandler *h)
{
    UringMonitor *m = ctx->mon_state;

    list_remove(&h->mon_link);
    if (!h->armed) {
        return;
    }
    aio_stat_add(&ctx->stats.control_calls, 1);
    if (!cancel(ctx, h)) {
        list_append(&m->to_cancel, &h->mon_link);
    }
    /* At once: the poll holds the file open, and whoever closes the descriptor next expects its peer to notice. */
    while (aio_uring_enter(ctx, 0, -1) == -EINTR) {
    }
}

static void arm_all(AioContext *ctx, UringMonitor *m)
{
    struct io_uring_sqe *sqe;
    AioHandler *removed, *next;

    list_for_each_safe(removed, next, &m->to_cancel, mon_link) {
        if (cancel(ctx, removed)) {
            list_remove(&removed->mon_link);
        }
    }
    while (!list_empty(&m->to_arm)) {
        AioHandler *h = list_first(&m->to_arm, AioHandler, mon_link);

        sqe = aio_uring_sqe_own(ctx, &h->completion);
        if (!sqe) {
            break; /* the kernel is short of something; what is not armed now is armed in the next pass */
        }
        io_uring_prep_poll_add(sqe, h->fd, h->events);
        list_remove(&h->mon_link);
        h->armed = true;
    }
    if (!m->notifier_armed && (sqe = aio_uring_sqe_own(ctx, &m->notifier))) {
        io_uring_prep_poll_multishot(sqe, ctx->notifier.fd, POLLIN);
        m->notifier_armed = true;
    }
}

static void uring_wait(AioContext *ctx, int64_t timeout_ns)
{
    UringMonitor *m = ctx->mon_state;
    bool complete;
    int ret;

    arm_all(ctx, m);
    complete = list_empty(&m->to_arm) && list_empty(&m->to_cancel) && m->notifier_armed;
    /* To look costs a system call only if there is something to submit, or if the kernel has asked for one. */
    if (timeout_ns == 0 && !aio_uring_unsubmitted(ctx)) {
        return;
    }
    aio_stat_add(&ctx->stats.wait_calls, 1);
    /* Must not sleep without watching everything. */
    ret = aio_uring_enter(ctx, timeout_ns != 0 && complete, timeout_ns);
    if (timeout_ns != 0 && aio_uring_refused(ret)) {
        /* Short of memory, as a rule. To ask again at once would keep a processor busy for as long as that lasts. */
        aio_uring_rest(ctx, aio_soon(timeout_ns));
    }
}

const FDMonOps fdmon_io_uring = {
    .name = "io_uring",
    .init = uring_init,
    .done = uring_done,
    .watch = uring_watch,
    .unwatch = uring_unwatch,
    .wait = uring_wait,
    .notifier_edge = true,
};
