/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitor "epoll": epoll(7), level-triggered except for the notifier. */
#include "loop/epoll-set.h"

#include <errno.h>
#include <glib.h>

/* More than that in one call gains nothing: the rest is reported by the next. */
#define EVENTS_A_CALL 128

typedef struct EpollMonitor {
    EpollSet set;
    bool no_pwait2; /* kernel before 5.11 */
    struct epoll_event events[EVENTS_A_CALL];
} EpollMonitor;

static int epoll_init(AioContext *ctx, Error **errp)
{
    EpollMonitor *m = g_new0(EpollMonitor, 1);
    /* Edge-triggered: a write is reported once, so that nobody has to read the eventfd. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u64 = EPOLL_SET_NO_HANDLER};
    int ret;

    epoll_set_init(&m->set);
    ret = epoll_set_open(&m->set);
    if (ret == 0 && epoll_ctl(m->set.fd, EPOLL_CTL_ADD, ctx->notifier.fd, &ev) < 0) {
        ret = -errno;
    }
    if (ret < 0) {
        error_setg_errno(errp, -ret, "Failed to set up epoll for the event loop");
        epoll_set_done(&m->set);
        g_free(m);
        return ret;
    }
    ctx->mon_state = m;
    return 0;
}

static void epoll_done(AioContext *ctx)
{
    EpollMonitor *m = ctx->mon_state;

    epoll_set_done(&m->set);
    g_free(m);
    ctx->mon_state = NULL;
}

static bool epoll_watch(AioContext *ctx, AioHandler *h, unsigned int old)
{
    return epoll_set_watch(ctx, &((EpollMonitor *)ctx->mon_state)->set, h, !old);
}

static void epoll_unwatch(AioContext *ctx, AioHandler *h)
{
    epoll_set_unwatch(ctx, &((EpollMonitor *)ctx->mon_state)->set, h);
}

static int epoll_call(EpollMonitor *m, int64_t timeout_ns)
{
    struct timespec ts;
    int64_t ms;

    if (timeout_ns <= 0) {
        return epoll_wait(m->set.fd, m->events, EVENTS_A_CALL, timeout_ns);
    }
    if (!m->no_pwait2) {
        int n;

        ts = (struct timespec){.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
        n = epoll_pwait2(m->set.fd, m->events, EVENTS_A_CALL, &ts, NULL);
        if (n >= 0 || errno != ENOSYS) {
            return n;
        }
        m->no_pwait2 = true;
    }
    /* Rounded up: a pass that is too early would have to sleep again, without end when the rest is below 1 ms. */
    ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    return epoll_wait(m->set.fd, m->events, EVENTS_A_CALL, MIN(ms, INT32_MAX));
}

static void epoll_wait_events(AioContext *ctx, int64_t timeout_ns)
{
    EpollMonitor *m = ctx->mon_state;
    int n;

    if (!list_empty(&m->set.refused)) {
        timeout_ns = epoll_set_retry(ctx, &m->set, timeout_ns);
    }
    aio_stat_add(&ctx->stats.wait_calls, 1);
    n = epoll_call(m, timeout_ns < 0 ? -1 : timeout_ns);
    epoll_set_report(ctx, &m->set, m->events, n);
}

const FDMonOps fdmon_epoll = {
    .name = "epoll",
    .init = epoll_init,
    .done = epoll_done,
    .watch = epoll_watch,
    .unwatch = epoll_unwatch,
    .wait = epoll_wait_events,
    .notifier_edge = true,
};
