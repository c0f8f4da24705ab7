/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A monitor over a socket pair or a socket, and its client. */
#ifndef UNIT_MONITOR_ENV_H
#define UNIT_MONITOR_ENV_H

#include "loop/aio.h"
#include "monitor/monitor.h"

extern int quits, bigs; /* commands that ran: quit, and big, which returns a mebibyte */
extern int client;      /* the client's socket, which does not block; -1: none */
extern Chardev *server; /* the latest */
extern GString *heard;  /* by the client since forget() */

/* Once a program; @hmp_commands as in MonitorConfig. */
void monitor_env_init(int *argc, char ***argv, const HmpCommand *const *hmp_commands);
int monitor_env_run(void);

/* A socket pair with nothing on it yet; the same with a QMP or HMP monitor that has said its greeting. End it with end(). */
void connect_client(void);
void start_qmp(void);
void start_hmp(void);
void negotiate(void);
void end(void);

/* A monitor that listens in a directory of its own, and a client that connects to it. End it with end_server(). */
void start_server(bool qmp);
void connect_to_server(void);
void end_server(void);

void say(const char *text);
/* Run the loop until the server has said @text. */
void hear(const char *text);
void forget(void);

#endif
