/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors watched by an epoll instance, and what happens when the kernel has no memory to watch another one. */
#include "loop/epoll-set.h"

#include <errno.h>
#include <glib.h>
#include <unistd.h>

/* The poll(2) and epoll(7) bits that we use are the same numbers. */
G_STATIC_ASSERT(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR && EPOLLHUP == POLLHUP);

void epoll_set_init(EpollSet *set)
{
    set->fd = -1;
    list_init(&set->refused);
}

int epoll_set_open(EpollSet *set)
{
    if (set->fd < 0) {
        set->fd = epoll_create1(EPOLL_CLOEXEC);
    }
    return set->fd < 0 ? -errno : 0;
}

void epoll_set_done(EpollSet *set)
{
    if (set->fd >= 0) {
        close(set->fd);
    }
}

static int control(AioContext *ctx, EpollSet *set, int op, int fd, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.u64 = (unsigned int)fd};

    aio_stat_add(&ctx->stats.control_calls, 1);
    return epoll_ctl(set->fd, op, fd, &ev) < 0 ? -errno : 0;
}

/* 0 or -errno; whether there is an entry already may be guessed wrongly. */
static int put(AioContext *ctx, EpollSet *set, const AioHandler *h, bool is_new)
{
    int ret = epoll_set_open(set);

    if (ret < 0) {
        return ret;
    }
    ret = control(ctx, set, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, h->fd, h->events);
    if (ret == -EEXIST) {
        /* What was behind this number before was left here, or has been exchanged by dup2(). */
        ret = control(ctx, set, EPOLL_CTL_MOD, h->fd, h->events);
    } else if (ret == -ENOENT) {
        ret = control(ctx, set, EPOLL_CTL_ADD, h->fd, h->events);
    }
    return ret;
}

static bool may_come_later(int err)
{
    return err == -ENOMEM || err == -ENOSPC || err == -EMFILE || err == -ENFILE;
}

bool epoll_set_watch(AioContext *ctx, EpollSet *set, AioHandler *h, bool is_new)
{
    int ret = put(ctx, set, h, is_new);

    list_remove(&h->mon_link);
    if (may_come_later(ret)) {
        list_append(&set->refused, &h->mon_link);
        return true;
    }
    /* EPERM: a regular file; anything else is for the handler to find out when it uses the descriptor. */
    return ret == 0;
}

void epoll_set_unwatch(AioContext *ctx, EpollSet *set, AioHandler *h)
{
    list_remove(&h->mon_link);
    if (set->fd >= 0) {
        /* Fails when the descriptor was closed already, which did the same. */
        control(ctx, set, EPOLL_CTL_DEL, h->fd, 0);
    }
}

void epoll_set_report(AioContext *ctx, EpollSet *set, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        AioHandler *h;

        if (events[i].data.u64 == EPOLL_SET_NO_HANDLER) {
            continue;
        }
        h = aio_handler_find(ctx, (int)events[i].data.u64);
        if (h) {
            aio_handler_ready(ctx, h, events[i].events);
        } else {
            control(ctx, set, EPOLL_CTL_DEL, (int)events[i].data.u64, 0);
        }
    }
}

int64_t epoll_set_retry(AioContext *ctx, EpollSet *set, int64_t timeout_ns)
{
    AioHandler *h, *next;

    list_for_each_safe(h, next, &set->refused, mon_link) {
        int ret = put(ctx, set, h, true);

        if (may_come_later(ret)) {
            timeout_ns = aio_handler_look(ctx, h, timeout_ns);
            continue;
        }
        list_remove(&h->mon_link);
        if (ret < 0) {
            h->always = true;
            list_append(&ctx->always, &h->mon_link);
            timeout_ns = 0;
        }
    }
    return timeout_ns;
}
