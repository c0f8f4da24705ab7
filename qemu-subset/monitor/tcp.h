/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of TCP, and connections that are made in the background. Main thread unless said otherwise. */
#ifndef MONITOR_TCP_H
#define MONITOR_TCP_H

#include "base/error.h"

struct addrinfo;

/* [any] The addresses of @host ("": any) and @port, with AI_* @flags; may block for long. NULL with @errp set. */
struct addrinfo *tcp_resolve(const char *host, const char *port, int flags, Error **errp);

typedef struct TcpDial TcpDial;
/* The connected socket, which does not block; or -1 and the reason, which the callee frees. */
typedef void TcpDialDone(void *opaque, int fd, Error *err);

/*
 * Try the addresses of @host:@port one after the other while the main loop runs on. @done is called once, from the main loop;
 * not after tcp_dial_cancel(). Looking up a name cannot be interrupted: the end of the program waits for it.
 */
TcpDial *tcp_dial(const char *host, const char *port, TcpDialDone *done, void *opaque);
void tcp_dial_cancel(TcpDial *d);

#endif
