/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of monitor/ only. */
#ifndef MONITOR_PRIVATE_H
#define MONITOR_PRIVATE_H

#include "monitor/monitor.h"

extern MonitorConfig monitor_config;

typedef struct QmpMonitor QmpMonitor;
typedef struct HmpMonitor HmpMonitor;

/* --- QMP sessions (qmp.c) --- */
/* Deliver an event, already a whole message, to every negotiated session. */
void qmp_broadcast(const json_t *message);
const ObjectType *qmp_monitor_type(void);

/* --- Events (events.c) --- */
void events_init(void);
void events_cleanup(void);

/* --- HMP --- */
const ObjectType *hmp_monitor_type(void);
/* Every command name and alias that begins with @prefix, "info" sub-commands when @prefix has them. */
GPtrArray *hmp_complete(const char *prefix);
const HmpCommand *hmp_find(const char *line, const char **rest);

/*
 * --- Line editing ---
 * One at a time owns the terminal (line-edit.c, made with libedit), or NULL from line_edit_new() where there is none.
 */
typedef void LineFn(void *opaque, const char *line);
bool line_edit_available(void);
void line_edit_start(const char *prompt, LineFn *fn, void *opaque);
void line_edit_stop(void);

/* The plain editor for pipes and sockets, which echoes as QEMU's does (readline.c). */
typedef struct Readline Readline;
Readline *readline_new(const char *prompt, void (*write)(void *opaque, const char *text), LineFn *fn, void *opaque);
void readline_free(Readline *rl);
void readline_show_prompt(Readline *rl);
void readline_feed(Readline *rl, const uint8_t *buf, size_t len);

#endif
