/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitor "epoll": epoll(7), level-triggered except for the notifier. */
#include "loop/context.h"

#include <errno.h>
#include <glib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More than that in one call gains nothing: the rest is reported by the next. */
#define EVENTS_A_CALL 128

typedef struct EpollMonitor {
    int fd;
    bool no_pwait2; /* kernel before 5.11 */
    struct epoll_event events[EVENTS_A_CALL];
} EpollMonitor;

/* The poll(2) and epoll(7) bits that we use are the same numbers. */
G_STATIC_ASSERT(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP);

static int epoll_init(AioContext *ctx, Error **errp)
{
    EpollMonitor *m = g_new0(EpollMonitor, 1);
    /* Edge-triggered: a write is reported once, so that nobody has to read the eventfd. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    int err;

    m->fd = epoll_create1(EPOLL_CLOEXEC);
    if (m->fd < 0 || epoll_ctl(m->fd, EPOLL_CTL_ADD, ctx->notifier.fd, &ev) < 0) {
        err = errno;
        error_setg_errno(errp, err, "Failed to set up epoll for the event loop");
        if (m->fd >= 0) {
            close(m->fd);
        }
        g_free(m);
        return -err;
    }
    ctx->mon_state = m;
    return 0;
}

static void epoll_done(AioContext *ctx)
{
    EpollMonitor *m = ctx->mon_state;

    close(m->fd);
    g_free(m);
    ctx->mon_state = NULL;
}

static bool epoll_watch(AioContext *ctx, AioHandler *h, unsigned int old)
{
    EpollMonitor *m = ctx->mon_state;
    struct epoll_event ev = {.events = h->events, .data.ptr = h};

    aio_stat_add(&ctx->stats.control_calls, 1);
    if (epoll_ctl(m->fd, old ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, h->fd, &ev) == 0) {
        return true;
    }
    if (errno == EEXIST || errno == ENOENT) {
        /* The file behind this number was exchanged, by dup2() or by closing it before its handler was removed. */
        return epoll_ctl(m->fd, errno == EEXIST ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, h->fd, &ev) == 0;
    }
    /* EPERM: a regular file; anything else is for the handler to find out when it uses the descriptor. */
    return false;
}

static void epoll_unwatch(AioContext *ctx, AioHandler *h)
{
    EpollMonitor *m = ctx->mon_state;

    aio_stat_add(&ctx->stats.control_calls, 1);
    /* Fails when the descriptor was closed already, which did the same. */
    epoll_ctl(m->fd, EPOLL_CTL_DEL, h->fd, NULL);
}

static int epoll_call(EpollMonitor *m, int64_t timeout_ns)
{
    struct timespec ts;
    int64_t ms;

    if (timeout_ns <= 0) {
        return epoll_wait(m->fd, m->events, EVENTS_A_CALL, timeout_ns);
    }
    if (!m->no_pwait2) {
        int n;

        ts = (struct timespec){.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
        n = epoll_pwait2(m->fd, m->events, EVENTS_A_CALL, &ts, NULL);
        if (n >= 0 || errno != ENOSYS) {
            return n;
        }
        m->no_pwait2 = true;
    }
    /* Rounded up: a pass that is too early would have to sleep again, without end when the rest is below 1 ms. */
    ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    return epoll_wait(m->fd, m->events, EVENTS_A_CALL, MIN(ms, INT32_MAX));
}

static void epoll_wait_events(AioContext *ctx, int64_t timeout_ns)
{
    EpollMonitor *m = ctx->mon_state;
    int n;

    aio_stat_add(&ctx->stats.wait_calls, 1);
    n = epoll_call(m, timeout_ns < 0 ? -1 : timeout_ns);
    for (int i = 0; i < n; i++) {
        AioHandler *h = m->events[i].data.ptr;

        if (h) {
            aio_handler_ready(ctx, h, m->events[i].events);
        }
    }
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
