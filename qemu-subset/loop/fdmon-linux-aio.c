/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitor "linux-aio": IOCB_CMD_POLL in the kernel context that also runs disk requests; one call sleeps on both. */
#include "loop/context.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <glib.h>
#include <libaio.h>
#include <sys/epoll.h>
#include <unistd.h>

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
    ListNode to_arm; /* AioHandler.mon_link */
    unsigned int taken; /* places of handlers, armed or to be armed, and of removed ones that are still to complete */
    AioHandler notifier, rest; /* the latter for @epfd; they live in none of the context's lists */
    int epfd;                  /* -1 until needed */
} KaioMonitor;

static void handler_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    AioHandler *h = container_of(c, AioHandler, completion);
    KaioMonitor *m = h->ctx->mon_state;

    h->armed = false;
    if (h->deleted) {
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

static void rest_fired(AioCompletion *c, int64_t res, uint32_t flags)
{
    KaioMonitor *m = container_of(c, KaioMonitor, rest.completion);
    struct epoll_event events[EPOLL_EVENTS];
    int n;

    m->rest.armed = false;
    list_append(&m->to_arm, &m->rest.mon_link);
    n = epoll_wait(m->epfd, events, EPOLL_EVENTS, 0);
    for (int i = 0; i < n; i++) {
        aio_handler_ready(m->ctx, events[i].data.ptr, events[i].events);
    }
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
    m->epfd = -1;
    list_init(&m->to_arm);
    init_own(m, &m->notifier, ctx->notifier.fd, notifier_fired);
    ctx->mon_state = m;
    return 0;
}

static void kaio_done(AioContext *ctx)
{
    KaioMonitor *m = ctx->mon_state;

    if (m->epfd >= 0) {
        close(m->epfd);
    }
    g_free(m);
    ctx->mon_state = NULL;
}

/* There is no place for @h in the kernel context. False if epoll cannot have it either. */
static bool watch_in_rest(KaioMonitor *m, AioHandler *h)
{
    struct epoll_event ev = {.events = h->events, .data.ptr = h};

    if (m->epfd < 0) {
        m->epfd = epoll_create1(EPOLL_CLOEXEC);
        if (m->epfd < 0) {
            return false;
        }
        init_own(m, &m->rest, m->epfd, rest_fired);
    }
    aio_stat_add(&m->ctx->stats.control_calls, 1);
    h->overflow = epoll_ctl(m->epfd, h->overflow ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, h->fd, &ev) == 0;
    return h->overflow;
}

static bool kaio_watch(AioContext *ctx, AioHandler *h, unsigned int old)
{
    KaioMonitor *m = ctx->mon_state;

    if (old && !h->overflow) {
        return true; /* not armed: the new events are used when it is */
    }
    if (h->overflow || m->taken >= PLACES) {
        return watch_in_rest(m, h);
    }
    h->completion.fn = handler_fired;
    m->taken++;
    list_append(&m->to_arm, &h->mon_link);
    return true;
}

static void kaio_unwatch(AioContext *ctx, AioHandler *h)
{
    KaioMonitor *m = ctx->mon_state;

    if (h->overflow) {
        epoll_ctl(m->epfd, EPOLL_CTL_DEL, h->fd, NULL);
    } else if (h->armed) {
        /* Its completion arrives in the ring, whether the poll was cancelled or had just fired. */
        aio_kaio_cancel_own(ctx, (struct iocb *)h->kernel);
    } else {
        list_remove(&h->mon_link);
        m->taken--;
    }
    aio_stat_add(&ctx->stats.control_calls, h->overflow || h->armed);
}

/* The kernel refuses this one descriptor: it was closed, for instance. Its handler will find out. */
static void refused(KaioMonitor *m, AioHandler *h)
{
    if (h != &m->notifier && h != &m->rest) {
        aio_handler_ready(m->ctx, h, POLLNVAL);
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
        if (ret == -EAGAIN) {
            break; /* short of memory or events: once more in the next pass */
        }
        if (ret <= 0) {
            h = list_first(&m->to_arm, AioHandler, mon_link);
            list_remove(&h->mon_link);
            list_append(&again, &h->mon_link);
            refused(m, h);
        }
    }
    list_splice(&m->to_arm, &again);
}

static void kaio_wait(AioContext *ctx, int64_t timeout_ns)
{
    KaioMonitor *m = ctx->mon_state;

    if (!list_empty(&m->to_arm)) {
        arm_all(ctx, m);
        if (!list_empty(&m->to_arm)) {
            return; /* must not sleep without watching everything */
        }
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
