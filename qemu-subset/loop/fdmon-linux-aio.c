/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitor "linux-aio": IOCB_CMD_POLL in the kernel context that also runs disk requests; one call sleeps on both. */
#include "loop/epoll-set.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <glib.h>
#include <libaio.h>

G_STATIC_ASSERT(sizeof(struct iocb) == sizeof(((AioHandler *)0)->kernel));

/*
 * Polls that may be in the kernel at a time, cancelled ones included; kaio.c makes room for some more, of which the notifier
 * and the epoll that watches the remaining descriptors need two.
 */
#define PLACES 250
#define ARM_AT_ONCE 64
#define EPOLL_EVENTS 128

typedef struct KaioMonitor {
    AioContext *ctx;
    ListNode to_arm, to_cancel; /* AioHandler.mon_link; the latter were removed and are still armed */
    unsigned int taken; /* places of handlers, armed or to be armed, and of removed ones that are still to complete */
    AioHandler notifier, rest; /* the latter for @set; they live in none of the context's lists */
    EpollSet set;
} KaioMonitor;

static void handler_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    AioHandler *h = container_of(c, AioHandler, completion);
    KaioMonitor *m = h->ctx->mon_state;

    h->armed = false;
    if (h->deleted) {
        list_remove(&h->mon_link);
        m->taken--;
        return;
    }
    /* Armed again before the next wait, after the callbacks ran: then the kernel looks at the level. */
    list_append(&m->to_arm, &h->mon_link);
    aio_handler_ready(h->ctx, h, res < 0 ? POLLNVAL : (unsigned int)res);
}

static void notifier_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    KaioMonitor *m = container_of(c, KaioMonitor, notifier.completion);

    m->notifier.armed = false;
    list_append(&m->to_arm, &m->notifier.mon_link);
    aio_notifier_ready(m->ctx);
}

static void look_at_rest(KaioMonitor *m)
{
    struct epoll_event events[EPOLL_EVENTS];

    epoll_set_report(m->ctx, &m->set, events, epoll_wait(m->set.fd, events, EPOLL_EVENTS, 0));
}

static void rest_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    KaioMonitor *m = container_of(c, KaioMonitor, rest.completion);

    m->rest.armed = false;
    list_append(&m->to_arm, &m->rest.mon_link);
    look_at_rest(m);
}

static void init_own(KaioMonitor *m, AioHandler *h, int fd, void (*fn)(AioCompletion *, int64_t, uint32_t))
{
    h->ctx = m->ctx;
    h->fd = fd;
    h->events = POLLIN;
    h->completion.fn = fn;
    list_init(&h->mon_link);
    list_append(&m->to_arm, &h->mon_link);
}

static int kaio_init(AioContext *ctx, Error **errp)
{
    KaioMonitor *m;

    if (!aio_kaio_get(ctx, errp)) {
        return -EAGAIN;
    }
    m = g_new0(KaioMonitor, 1);
    m->ctx = ctx;
    epoll_set_init(&m->set);
    list_init(&m->to_arm);
    list_init(&m->to_cancel);
    init_own(m, &m->notifier, ctx->notifier.fd, notifier_fired);
    ctx->mon_state = m;
    return 0;
}

static void kaio_done(AioContext *ctx)
{
    KaioMonitor *m = ctx->mon_state;

    epoll_set_done(&m->set);
    g_free(m);
    ctx->mon_state = NULL;
}

/* The epoll instance exists from the first descriptor on that it is needed for. */
static void watch_rest(KaioMonitor *m)
{
    if (m->set.fd >= 0 && !m->rest.ctx) {
        init_own(m, &m->rest, m->set.fd, rest_fired);
    }
}

static bool kaio_watch(AioContext *ctx, AioHandler *h, unsigned int old)
{
    KaioMonitor *m = ctx->mon_state;

    if (old && !h->overflow) {
        return true; /* not armed: the new events are used when it is */
    }
    if (h->overflow || m->taken >= PLACES) {
        bool watched = epoll_set_watch(ctx, &m->set, h, !h->overflow);

        watch_rest(m);
        h->overflow = true;
        return watched;
    }
    h->completion.fn = handler_fired;
    m->taken++;
    list_append(&m->to_arm, &h->mon_link);
    return true;
}

static bool is_passing(int err)
{
    return err == -EAGAIN || err == -EINTR || err == -ENOMEM || err == -EBUSY;
}

/* Its completion arrives in the ring, whether the poll is cancelled or has just fired. */
static void cancel(AioContext *ctx, KaioMonitor *m, AioHandler *h)
{
    aio_stat_add(&ctx->stats.control_calls, 1);
    list_remove(&h->mon_link);
    if (is_passing(aio_kaio_cancel_own(ctx, (struct iocb *)h->kernel))) {
        list_append(&m->to_cancel, &h->mon_link);
    }
}

static void kaio_unwatch(AioContext *ctx, AioHandler *h)
{
    KaioMonitor *m = ctx->mon_state;

    if (h->overflow) {
        epoll_set_unwatch(ctx, &m->set, h);
    } else if (h->armed) {
        cancel(ctx, m, h);
    } else {
        list_remove(&h->mon_link);
        m->taken--;
    }
}

/* Submit one poll for each handler in to_arm. */
static void arm_all(AioContext *ctx, KaioMonitor *m)
{
    ListNode again;

    list_init(&again);
    while (!list_empty(&m->to_arm)) {
        struct iocb *iocbs[ARM_AT_ONCE];
        AioHandler *h;
        int n = 0, ret;

        list_for_each(h, &m->to_arm, mon_link) {
            struct iocb *iocb = (struct iocb *)h->kernel;

            if (n == ARM_AT_ONCE) {
                break;
            }
            io_prep_poll(iocb, h->fd, h->events);
            iocb->data = (void *)((uintptr_t)&h->completion | AIO_COMPLETION_OWN);
            iocbs[n++] = iocb;
        }
        aio_stat_add(&ctx->stats.control_calls, 1);
        ret = aio_kaio_submit_own(ctx, iocbs, (unsigned int)n);
        for (int i = 0; i < ret; i++) {
            h = list_first(&m->to_arm, AioHandler, mon_link);
            list_remove(&h->mon_link);
            h->armed = true;
        }
        if (is_passing(ret)) {
            break; /* short of memory or events: once more in the next pass */
        }
        if (ret <= 0) {
            /* This one cannot be had: it was closed, for instance. poll(2) will tell its handler. */
            h = list_first(&m->to_arm, AioHandler, mon_link);
            list_remove(&h->mon_link);
            list_append(&again, &h->mon_link);
        }
    }
    list_splice(&m->to_arm, &again);
}

/* What the kernel refuses to do at this moment. Returns how long the wait may be. */
static int64_t make_do(AioContext *ctx, KaioMonitor *m, int64_t timeout_ns)
{
    AioHandler *h, *next;
    ListNode again;

    list_init(&again);
    list_splice(&again, &m->to_cancel);
    list_for_each_safe(h, next, &again, mon_link) {
        cancel(ctx, m, h);
    }
    if (!list_empty(&m->set.refused)) {
        timeout_ns = epoll_set_retry(ctx, &m->set, timeout_ns);
        watch_rest(m);
    }
    if (!list_empty(&m->to_arm)) {
        arm_all(ctx, m);
    }
    list_for_each(h, &m->to_arm, mon_link) {
        if (h == &m->rest) {
            look_at_rest(m);
        } else if (h != &m->notifier) {
            timeout_ns = aio_handler_look(ctx, h, timeout_ns);
        }
    }
    if (!list_empty(&m->to_cancel) || !list_empty(&m->to_arm)) {
        timeout_ns = aio_soon(timeout_ns);
    }
    return list_empty(&ctx->ready) ? timeout_ns : 0;
}

static void kaio_wait(AioContext *ctx, int64_t timeout_ns)
{
    KaioMonitor *m = ctx->mon_state;

    if (!list_empty(&m->to_arm) || !list_empty(&m->to_cancel) || !list_empty(&m->set.refused)) {
        timeout_ns = make_do(ctx, m, timeout_ns);
    }
    /* To look needs no call: what is ready completed while it was armed, and is in the ring. */
    if (timeout_ns != 0) {
        aio_kaio_wait(ctx, timeout_ns);
    }
}

/* The kernel context is about to be replaced: everything that was armed has to be armed in the new one. */
static void kaio_queue_replaced(AioContext *ctx)
{
    KaioMonitor *m = ctx->mon_state;
    AioHandler *h;

    list_for_each(h, &ctx->handlers, link) {
        if (h->armed) {
            h->armed = false;
            list_append(&m->to_arm, &h->mon_link);
        }
    }
    list_for_each(h, &ctx->deleted, link) {
        m->taken -= h->armed;
        h->armed = false;
        list_remove(&h->mon_link);
    }
    if (m->notifier.armed) {
        m->notifier.armed = false;
        list_append(&m->to_arm, &m->notifier.mon_link);
    }
    if (m->rest.armed) {
        m->rest.armed = false;
        list_append(&m->to_arm, &m->rest.mon_link);
    }
}

const FDMonOps fdmon_linux_aio = {
    .name = "linux-aio",
    .init = kaio_init,
    .done = kaio_done,
    .watch = kaio_watch,
    .unwatch = kaio_unwatch,
    .wait = kaio_wait,
    .queue_replaced = kaio_queue_replaced,
};
