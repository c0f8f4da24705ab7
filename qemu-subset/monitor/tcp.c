/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of TCP, and connections made in the background: a worker thread looks names up, the loop connects. */
#include "monitor/tcp.h"

#include "loop/worker-pool.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

struct TcpDial {
    WorkItem work; /* must not go away before it is done */
    char *host, *port;
    TcpDialDone *done; /* NULL: cancelled */
    void *opaque;
    struct addrinfo *all, *next; /* @next is the first that was not tried yet */
    Error *err;                  /* why there are no addresses */
    int fd;                      /* being connected; -1: none */
    int last_errno;
};

struct addrinfo *tcp_resolve(const char *host, const char *port, int flags, Error **errp)
{
    struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM}, *res = NULL;
    int err = getaddrinfo(host[0] ? host : NULL, port, &hints, &res);

    if (err) {
        error_setg(errp, "address resolution failed for %s:%s: %s", host, port, gai_strerror(err));
        return NULL;
    }
    return res;
}

static void dial_free(TcpDial *d)
{
    if (d->fd >= 0) {
        aio_set_fd_handler(aio_context_main(), d->fd, NULL, NULL, NULL, NULL, NULL);
        close(d->fd);
    }
    if (d->all) {
        freeaddrinfo(d->all);
    }
    error_free(d->err);
    g_free(d->host);
    g_free(d->port);
    g_free(d);
}

/* Takes @err. */
static void dial_over(TcpDial *d, int fd, Error *err)
{
    TcpDialDone *done = d->done;
    void *opaque = d->opaque;

    dial_free(d);
    done(opaque, fd, err);
}

static void on_connect_over(void *opaque);

static void try_next(TcpDial *d)
{
    Error *err = NULL;

    while (d->next) {
        const struct addrinfo *a = d->next;
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        d->next = a->ai_next;
        if (fd >= 0 && !connect(fd, a->ai_addr, a->ai_addrlen)) {
            dial_over(d, fd, NULL);
            return;
        }
        d->last_errno = errno;
        if (fd >= 0 && errno == EINPROGRESS) {
            d->fd = fd;
            aio_set_fd_handler(aio_context_main(), fd, NULL, on_connect_over, NULL, NULL, d);
            return;
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    error_setg_errno(&err, d->last_errno, "Failed to connect to '%s:%s'", d->host, d->port);
    dial_over(d, -1, err);
}

static void on_connect_over(void *opaque)
{
    TcpDial *d = opaque;
    int fd = d->fd, err = 0;
    socklen_t len = sizeof(err);

    aio_set_fd_handler(aio_context_main(), fd, NULL, NULL, NULL, NULL, NULL);
    d->fd = -1;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0) {
        err = errno;
    }
    if (!err) {
        dial_over(d, fd, NULL);
        return;
    }
    d->last_errno = err;
    close(fd);
    try_next(d);
}

static int resolve_in_worker(WorkItem *item)
{
    TcpDial *d = container_of(item, TcpDial, work);

    d->all = d->next = tcp_resolve(d->host, d->port, 0, &d->err);
    return 0;
}

static void resolved(WorkItem *item, int ret)
{
    TcpDial *d = container_of(item, TcpDial, work);

    d->work.func = NULL;
    if (!d->done) {
        dial_free(d);
    } else if (d->err) {
        dial_over(d, -1, g_steal_pointer(&d->err));
    } else {
        try_next(d);
    }
}

TcpDial *tcp_dial(const char *host, const char *port, TcpDialDone *done, void *opaque)
{
    TcpDial *d = g_new0(TcpDial, 1);

    d->work = (WorkItem){.func = resolve_in_worker, .done = resolved};
    d->host = g_strdup(host);
    d->port = g_strdup(port);
    d->done = done;
    d->opaque = opaque;
    d->fd = -1;
    worker_pool_submit(aio_worker_pool(aio_context_main()), &d->work);
    return d;
}

void tcp_dial_cancel(TcpDial *d)
{
    if (d->work.func) {
        d->done = NULL; /* the worker still has it */
    } else {
        dial_free(d);
    }
}
