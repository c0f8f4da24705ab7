/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that fail on demand: those of the event loop and its threads. */
#include "unit/fault-shim.h"

#include <errno.h>
#include <glib.h>
#include <libaio.h>
#include <liburing.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAIL(call)                                                                                 \
    do {                                                                                           \
        if (fault_hit(call)) {                                                                     \
            errno = fault_errno(call);                                                             \
            return -1;                                                                             \
        }                                                                                          \
    } while (0)

#define FAIL_NEGATIVE(call)                                                                        \
    do {                                                                                           \
        if (fault_hit(call)) {                                                                     \
            return -fault_errno(call);                                                             \
        }                                                                                          \
    } while (0)

#define WRAP(type, name, params)                                                                   \
    type __wrap_##name params;                                                                     \
    type __real_##name params;                                                                     \
    type __wrap_##name params

/* --- Monitors --- */

WRAP(int, ppoll, (struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *set))
{
    FAIL(FAULT_PPOLL);
    return __real_ppoll(fds, n, timeout, set);
}

WRAP(int, epoll_create1, (int flags))
{
    FAIL(FAULT_EPOLL_CREATE);
    return __real_epoll_create1(flags);
}

WRAP(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event))
{
    FAIL(FAULT_EPOLL_CTL);
    return __real_epoll_ctl(epfd, op, fd, event);
}

WRAP(int, epoll_wait, (int epfd, struct epoll_event *events, int n, int timeout))
{
    FAIL(FAULT_EPOLL_WAIT);
    return __real_epoll_wait(epfd, events, n, timeout);
}

WRAP(int, epoll_pwait2,
     (int epfd, struct epoll_event *events, int n, const struct timespec *timeout, const sigset_t *set))
{
    FAIL(FAULT_EPOLL_WAIT);
    return __real_epoll_pwait2(epfd, events, n, timeout, set);
}

/* --- The notifier; nothing else in the programs reads or writes eight bytes --- */

WRAP(int, eventfd, (unsigned int value, int flags))
{
    FAIL(FAULT_EVENTFD);
    return __real_eventfd(value, flags);
}

WRAP(ssize_t, write, (int fd, const void *buf, size_t n))
{
    if (n == sizeof(uint64_t) && fault_hit(FAULT_EVENTFD_WRITE)) {
        if (fault_errno(FAULT_EVENTFD_WRITE) == EAGAIN) {
            __real_write(fd, buf, n);
        }
        errno = fault_errno(FAULT_EVENTFD_WRITE);
        return -1;
    }
    return __real_write(fd, buf, n);
}

WRAP(ssize_t, read, (int fd, void *buf, size_t n))
{
    if (n == sizeof(uint64_t)) {
        FAIL(FAULT_EVENTFD_READ);
    }
    return __real_read(fd, buf, n);
}

/* --- Kernel queues --- */

WRAP(int, io_setup, (int events, io_context_t *ctx))
{
    FAIL_NEGATIVE(FAULT_IO_SETUP);
    return __real_io_setup(events, ctx);
}

WRAP(int, io_cancel, (io_context_t ctx, struct iocb *iocb, struct io_event *event))
{
    FAIL_NEGATIVE(FAULT_IO_CANCEL);
    return __real_io_cancel(ctx, iocb, event);
}

WRAP(int, io_getevents, (io_context_t ctx, long min, long n, struct io_event *events, struct timespec *timeout))
{
    FAIL_NEGATIVE(FAULT_IO_GETEVENTS);
    return __real_io_getevents(ctx, min, n, events, timeout);
}

WRAP(int, io_uring_queue_mmap, (int fd, struct io_uring_params *p, struct io_uring *ring))
{
    FAIL_NEGATIVE(FAULT_URING_MAP);
    return __real_io_uring_queue_mmap(fd, p, ring);
}

WRAP(int, io_uring_register_ring_fd, (struct io_uring *ring))
{
    FAIL_NEGATIVE(FAULT_URING_REGISTER);
    return __real_io_uring_register_ring_fd(ring);
}

/* --- Threads --- */

WRAP(long, syscall, (long nr, long a, long b, long c, long d, long e, long f))
{
    if (nr == __NR_io_uring_setup) {
        FAIL(FAULT_URING_SETUP);
    } else if (nr == SYS_futex && b == FUTEX_WAIT_PRIVATE) {
        FAIL(FAULT_FUTEX_WAIT);
    }
    return __real_syscall(nr, a, b, c, d, e, f);
}

WRAP(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *opaque))
{
    if (fault_hit(FAULT_THREAD)) {
        return fault_errno(FAULT_THREAD);
    }
    return __real_pthread_create(thread, attr, start, opaque);
}
