/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole program but its main loop, for whoever wants to drive a machine in process. Main thread only. */
#ifndef TOOLS_SYSTEM_H
#define TOOLS_SYSTEM_H

#include <stdbool.h>

/*
 * Do what the command line says. @argv stays the caller's and must live on. False, with the error reported, if it cannot be
 * parsed; every later error, and help, ends the program. Standard files that are closed are opened on /dev/null.
 */
bool system_start(int argc, char **argv);
/* Take everything down again; nothing may be started after it. */
void system_finish(void);

#endif
