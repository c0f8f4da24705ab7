/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process matters: background, pid file, parent death, signals. Main thread, at start. */
#ifndef TOOLS_DAEMON_H
#define TOOLS_DAEMON_H

#include "base/error.h"

/* Fork at once; the parent waits and exits with 0 after daemon_ready(), with 1 if the child ends before. */
bool daemon_start(Error **errp);
void daemon_ready(void);
/* Create and lock the pid file, mode 0600; removed by daemon_cleanup(). */
bool pidfile_create(const char *path, Error **errp);
void daemon_cleanup(void);
/* Ask the kernel to end us with SIGTERM when the parent ends. */
bool exit_with_parent(Error **errp);
/* TERM, INT and HUP end the program cleanly; PIPE is ignored. */
void signals_setup(void);

#endif
