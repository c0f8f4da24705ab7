/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the character device core and its backends. */
#ifndef MONITOR_CHARDEV_PRIVATE_H
#define MONITOR_CHARDEV_PRIVATE_H

#include "loop/timer.h"
#include "monitor/chardev.h"
#include "monitor/tcp.h"

struct Chardev {
    ListNode link;
    char *label, *filename;
    const struct ChardevClass *backend;
    int in_fd, out_fd; /* -1 while there is no peer */
    bool pollable;     /* regular files are not: they are written at once */
    int paused;
    bool held;    /* see chardev_hold_input() */
    bool hung_up; /* by ourselves: disconnected when held input is looked at again */
    const ChardevFrontend *fe;
    void *fe_opaque;
    GByteArray *pending; /* output; the peer took the first @taken bytes of it */
    guint taken;
    GByteArray *rest; /* input that the frontend left for later */
    bool more;        /* the frontend wants to be called again, with the rest or without */
    AioBH *rest_bh;   /* passes it on */
    int64_t turn_end; /* when the frontend should return */
    bool watching_write;

    /* sockets */
    int listen_fd;
    char *path, *host, *port;
    bool is_server;
    int64_t reconnect_ns;
    AioTimer retry;   /* to connect, or to accept */
    TcpDial *dialing; /* NULL: not at present */
    bool dial_failed; /* since there was a peer, and that was told */
};

typedef struct ChardevClass {
    const char *name;
    const char *const *params; /* known keys, NULL-terminated */
    bool (*open)(Chardev *c, const Opts *opts, Error **errp);
    /* The peer has gone: wait for the next one, or do nothing. */
    void (*disconnected)(Chardev *c);
    void (*close)(Chardev *c);
} ChardevClass;

extern const ChardevClass chardev_socket, chardev_stdio, chardev_file, chardev_pty, chardev_null;

/* A device that is registered and open; NULL with @errp set. The caller has looked at @id and at the keys of @opts. */
Chardev *chardev_create(const char *id, const ChardevClass *backend, const Opts *opts, Error **errp);
/* Streams are there: watch them and tell the frontend. */
void chardev_connected(Chardev *c, int in_fd, int out_fd);

#endif
