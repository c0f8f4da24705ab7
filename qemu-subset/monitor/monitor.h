/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP and HMP servers over character devices. Main thread only. */
#ifndef MONITOR_MONITOR_H
#define MONITOR_MONITOR_H

#include "base/hmp.h"
#include "monitor/chardev.h"
#include "object/object.h"
#include "qapi/dispatch.h"

#define TYPE_MONITOR_QMP "monitor-qmp"
#define TYPE_MONITOR_HMP "monitor-hmp"

/* What QEMU version we are compatible with, and who we are; for greetings and -version. */
#define QEMU_VERSION_MAJOR 11
#define QEMU_VERSION_MINOR 0
#define QEMU_VERSION_MICRO 92

typedef struct MonitorConfig {
    const QmpCommand *qmp_commands;        /* ended by a NULL name */
    const HmpCommand *const *hmp_commands; /* NULL-terminated list of tables, each ended by a NULL name */
    bool virtual_clock;                    /* events are rate-limited in guest time, as under qtest */
    bool (*machine_ready)(void);           /* false: only commands that preconfig allows; NULL: always ready */
    bool (*quitting)(void);                /* true: no further command, no prompt; NULL: never */
} MonitorConfig;

/* Once at start, before any monitor exists; sets the sink of QAPI events. */
void monitor_init(const MonitorConfig *config);
/* At the end, before chardev_cleanup(). */
void monitor_cleanup(void);
/* Registers the types monitor-qmp and monitor-hmp. */
void monitor_register_types(void);

/* -mon, -qmp, -qmp-pretty, -monitor: an object /objects/compat_monitorN on @c. False with @errp set. */
bool monitor_new_compat(Chardev *c, bool qmp, bool pretty, Error **errp);

/* The monitor's own HMP commands: help and info, and those about itself and character devices. */
extern const HmpCommand hmp_help_commands[], monitor_hmp_commands[], chardev_hmp_commands[];

/* Run one HMP line and append its answer to @out, with '\n' line ends. */
void hmp_run_line(const char *line, GString *out);

#endif
