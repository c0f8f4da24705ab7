/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descriptors watched by an epoll instance, for the monitors that have one. */
#ifndef LOOP_EPOLL_SET_H
#define LOOP_EPOLL_SET_H

#include "loop/context.h"

#include <sys/epoll.h>

/*
 * What the kernel keeps is the number of a descriptor and no pointer: a change that it refused for want of memory then
 * leaves behind an entry that reports too much or somebody who is gone, which is recognised when it does.
 */
typedef struct EpollSet {
    int fd;           /* -1 until the first descriptor */
    ListNode refused; /* AioHandler.mon_link: the kernel had no memory for these, or for their new events */
} EpollSet;

/* The data of an entry that belongs to no handler. */
#define EPOLL_SET_NO_HANDLER UINT64_MAX

/* Home, all of it. @set->fd stays -1; epoll_set_open() is 0 or -errno and does nothing if it is open. */
void epoll_set_init(EpollSet *set);
int epoll_set_open(EpollSet *set);
void epoll_set_done(EpollSet *set);

/* As the functions of FDMonOps. What there is no memory for now counts as watched, and is tried again. */
bool epoll_set_watch(AioContext *ctx, EpollSet *set, AioHandler *h, bool is_new);
void epoll_set_unwatch(AioContext *ctx, EpollSet *set, AioHandler *h);
/* Report what epoll_wait(2) said. */
void epoll_set_report(AioContext *ctx, EpollSet *set, const struct epoll_event *events, int n);

/* For monitors, before they wait: those of @refused, tried again or looked at. Returns how long the wait may be. */
int64_t epoll_set_retry(AioContext *ctx, EpollSet *set, int64_t timeout_ns);

#endif
