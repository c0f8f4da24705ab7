/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitor "poll": ppoll(2) over an array that follows the handlers. */
#include "loop/context.h"

#include <errno.h>
#include <glib.h>

typedef struct PollMonitor {
    struct pollfd *fds;   /* [0] is the notifier */
    AioHandler **handlers;
    unsigned int n, size;
} PollMonitor;

static void poll_grow(PollMonitor *m)
{
    if (m->n == m->size) {
        m->size = m->size ? m->size * 2 : 16;
        m->fds = g_renew(struct pollfd, m->fds, m->size);
        m->handlers = g_renew(AioHandler *, m->handlers, m->size);
    }
}

static int poll_init(AioContext *ctx, Error **errp)
{
    PollMonitor *m = g_new0(PollMonitor, 1);

    poll_grow(m);
    m->fds[0] = (struct pollfd){.fd = ctx->notifier.fd, .events = POLLIN};
    m->handlers[0] = NULL;
    m->n = 1;
    ctx->mon_state = m;
    return 0;
}

static void poll_done(AioContext *ctx)
{
    PollMonitor *m = ctx->mon_state;

    g_free(m->fds);
    g_free(m->handlers);
    g_free(m);
    ctx->mon_state = NULL;
}

static bool poll_watch(AioContext *ctx, AioHandler *h, unsigned int old)
{
    PollMonitor *m = ctx->mon_state;

    if (!old) {
        poll_grow(m);
        h->index = m->n++;
        m->handlers[h->index] = h;
        m->fds[h->index].fd = h->fd;
        m->fds[h->index].revents = 0;
    }
    m->fds[h->index].events = h->events;
    return true;
}

static void poll_unwatch(AioContext *ctx, AioHandler *h)
{
    PollMonitor *m = ctx->mon_state;

    m->n--;
    m->fds[h->index] = m->fds[m->n];
    m->handlers[h->index] = m->handlers[m->n];
    m->handlers[h->index]->index = h->index;
}

static void poll_wait(AioContext *ctx, int64_t timeout_ns)
{
    PollMonitor *m = ctx->mon_state;
    struct timespec ts = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    int left;

    aio_stat_add(&ctx->stats.wait_calls, 1);
    /* EINTR: the caller gets its turn; timeouts are computed from absolute times in each pass. */
    left = ppoll(m->fds, m->n, timeout_ns < 0 ? NULL : &ts, NULL);
    for (unsigned int i = 0; i < m->n && left > 0; i++) {
        if (!m->fds[i].revents) {
            continue;
        }
        left--;
        if (i == 0) {
            aio_notifier_ready(ctx);
        } else {
            aio_handler_ready(ctx, m->handlers[i], m->fds[i].revents);
        }
    }
}

const FDMonOps fdmon_poll = {
    .name = "poll",
    .init = poll_init,
    .done = poll_done,
    .watch = poll_watch,
    .unwatch = poll_unwatch,
    .wait = poll_wait,
};
