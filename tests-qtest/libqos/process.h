/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes and scratch files that vanish with the program, however it ends. Main thread only. */
#ifndef LIBQOS_PROCESS_H
#define LIBQOS_PROCESS_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * A failed expectation of the library (time-out, protocol breach) prints its message and ends the program:
 * abort() by default, so that a test case counts as crashed; exit(1) when a tool sets this.
 */
extern bool qos_exit_on_error;
G_NORETURN void qos_die(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* How long the library waits before it calls a silence a hang, in milliseconds; slow builds may raise it. */
int qos_hang_ms(void);

/*
 * The program's scratch directory, made at the first call. A guard process removes it when the program has gone,
 * also after SIGKILL.
 */
const char *qos_scratch(void);
/* A fresh path in there, "NAME-N"; free with g_free(). */
char *qos_scratch_path(const char *name);

typedef struct Child {
    pid_t pid;
    int pidfd;
    char *stderr_path;
    bool reaped;
    int status; /* as from waitpid(), valid once reaped */
} Child;

/*
 * Start @argv, looked up in PATH. stdin reads /dev/null, stdout joins our stderr, and stderr goes to a scratch
 * file. @env (may be NULL) lists NAME=VALUE to add. The descriptors in @keep_fds (ended by -1) stay open in the child.
 * It has a process group of its own, so that a terminal's ^C is for us alone, and gets SIGKILL when we die.
 * Returns NULL with errno set if there is no such program.
 */
Child *child_spawn(char *const *argv, const char *const *env, const int *keep_fds);
/* True once it has ended; @timeout_ms 0 asks, -1 waits for ever. */
bool child_wait(Child *child, int timeout_ms);
/* What it wrote to stderr so far; free with g_free(). */
char *child_stderr(const Child *child);
/* Kill it if it still runs, reap it, remove its files. NULL is allowed. */
void child_free(Child *child);

/* User plus system time of all threads, in seconds, and resident memory in KiB; -1 if the process has gone. */
double process_cpu_seconds(pid_t pid);
long process_rss_kib(pid_t pid);
/* Number of threads, or of open descriptors; -1 if the process has gone. */
int process_threads(pid_t pid);
int process_fds(pid_t pid);

#endif
