/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A QMP client: commands, the queue of events, HMP through it. Main thread only. */
#ifndef LIBQOS_QMP_H
#define LIBQOS_QMP_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

typedef struct Qmp Qmp;

/* Take over a connected socket. The greeting is the first thing to read. @hang_ms bounds every wait. */
Qmp *qmp_new(int fd, int hang_ms);
void qmp_free(Qmp *q);
int qmp_fd(const Qmp *q);

/* Read the greeting and negotiate. Returns the greeting, owned by the caller. Dies on a breach. */
json_t *qmp_negotiate(Qmp *q);

/*
 * Execute @name with arguments in the notation of json_pack() (NULL: none); returns the whole reply, owned by the
 * caller. Events that come first are queued.
 */
json_t *qmp_execute(Qmp *q, const char *name, const char *args_fmt, ...);
json_t *qmp_vexecute(Qmp *q, const char *name, const char *args_fmt, va_list ap);
/* The same; dies on an error reply and returns the "return" value. */
json_t *qmp_must(Qmp *q, const char *name, const char *args_fmt, ...);
/* The same for failures: dies on success and returns "CLASS: DESC"; free with g_free(). */
char *qmp_must_fail(Qmp *q, const char *name, const char *args_fmt, ...);

/* Send text as it is; the reply is read with qmp_reply_line(). */
void qmp_send_raw(Qmp *q, const char *text);
/* False if the peer has gone. */
bool qmp_try_send(Qmp *q, const char *text);
/* Next line that is not an event, without its line end; free with g_free(). NULL at end of file. */
char *qmp_reply_line(Qmp *q);
/* Next line of any kind with its line end ("\r\n" where that is kept); NULL at end of file. */
char *qmp_any_line(Qmp *q);

/* Oldest event called @name, waiting for it; owned by the caller. Other events stay queued. */
json_t *qmp_event(Qmp *q, const char *name);
/* Number of queued events called @name, after reading what has arrived. */
unsigned int qmp_events_pending(Qmp *q, const char *name);
void qmp_drop_events(Qmp *q);
/* False at end of file on the connection, else reads what is there without waiting. */
bool qmp_poll(Qmp *q);

/* human-monitor-command; returns the text, free with g_free(). */
char *qmp_hmp(Qmp *q, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

#endif
