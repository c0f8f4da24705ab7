/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Process matters: background, pid file, parent death, signals. */
#include "tools/daemon.h"

#include "guest/runstate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int ready_pipe = -1;
static char *pidfile_path;
static int pidfile_fd = -1;

bool daemon_start(Error **errp)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0) {
        error_setg_errno(errp, errno, "cannot daemonize");
        return false;
    }
    pid_t pid = fork();
    if (pid < 0) {
        error_setg_errno(errp, errno, "cannot daemonize");
        return false;
    }
    if (pid > 0) {
        char status;

        close(fds[1]);
        _exit(TEMP_FAILURE_RETRY(read(fds[0], &status, 1)) == 1 ? status : 1);
    }
    close(fds[0]);
    ready_pipe = fds[1];
    setsid();
    umask(027);
    return true;
}

void daemon_ready(void)
{
    char ok = 0;

    if (ready_pipe < 0) {
        return;
    }
    if (chdir("/") < 0) {
        error_report("not able to chdir to /: %s", strerror(errno));
        exit(1);
    }
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; null_fd >= 0 && fd < 3; fd++) {
        dup2(null_fd, fd);
    }
    if (null_fd > 2) {
        close(null_fd);
    }
    if (write(ready_pipe, &ok, 1) != 1) {
        exit(1);
    }
    close(ready_pipe);
    ready_pipe = -1;
}

bool pidfile_create(const char *path, Error **errp)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        error_setg_errno(errp, errno, "cannot create PID file: Could not create '%s'", path);
        return false;
    }
    if (fcntl(fd, F_SETLK, &lock) < 0) {
        error_setg_errno(errp, errno, "cannot create PID file: Cannot lock pid file");
        close(fd);
        return false;
    }
    g_autofree char *text = g_strdup_printf("%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        error_setg_errno(errp, errno, "cannot create PID file: Could not write '%s'", path);
        close(fd);
        return false;
    }
    pidfile_fd = fd;
    pidfile_path = g_canonicalize_filename(path, NULL);
    return true;
}

void daemon_cleanup(void)
{
    if (pidfile_path) {
        unlink(pidfile_path);
        close(pidfile_fd);
        g_clear_pointer(&pidfile_path, g_free);
    }
}

bool exit_with_parent(Error **errp)
{
    pid_t parent = getppid();

    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0) {
        error_setg_errno(errp, errno, "exit-with-parent");
        return false;
    }
    /* It may have ended before the kernel knew that we care. */
    if (getppid() != parent) {
        exit(0);
    }
    return true;
}

static void on_signal(int signum, siginfo_t *info, void *context)
{
    vm_shutdown_signal(signum, info->si_pid);
}

void signals_setup(void)
{
    struct sigaction end = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}
