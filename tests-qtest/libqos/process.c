/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Child processes and scratch files that vanish with the program, however it ends. */
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool qos_exit_on_error;

void qos_die(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fputs("libqos: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    if (qos_exit_on_error) {
        exit(1);
    }
    abort();
}

int qos_hang_ms(void)
{
    const char *s = g_getenv("QOS_HANG_SECONDS");

    return (s && atoi(s) > 0 ? atoi(s) : 60) * 1000;
}

static char scratch[128];
static pid_t scratch_owner;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    remove(path);
    return 0;
}

/* The guard outlives the program by a moment: end of file on the pipe tells it that nobody needs the files. */
static void run_guard(int pipe_rd)
{
    char byte;
    int null_fd = open("/dev/null", O_RDWR);

    setsid();
    for (int fd = 0; fd < 3; fd++) {
        dup2(null_fd, fd);
    }
    dup2(pipe_rd, 3);
    close_range(4, ~0U, 0);
    prctl(PR_SET_NAME, "qos-guard");
    while (read(3, &byte, 1) < 0 && errno == EINTR) {
    }
    nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

const char *qos_scratch(void)
{
    int p[2];
    pid_t pid;

    if (scratch_owner == getpid()) {
        return scratch;
    }
    g_snprintf(scratch, sizeof(scratch), "%s/qos-XXXXXX", g_get_tmp_dir());
    if (!mkdtemp(scratch) || pipe2(p, O_CLOEXEC) < 0) {
        qos_die("cannot make a scratch directory %s: %s", scratch, g_strerror(errno));
    }
    scratch_owner = getpid();
    pid = fork();
    if (pid < 0) {
        qos_die("fork: %s", g_strerror(errno));
    }
    if (pid == 0) {
        /* A second fork: the program must not find a child that it does not know in wait(). */
        if (fork() == 0) {
            run_guard(p[0]);
        }
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    close(p[0]);
    return scratch;
}

char *qos_scratch_path(const char *name)
{
    static unsigned int counter;

    return g_strdup_printf("%s/%s-%u", qos_scratch(), name, counter++);
}

static G_NORETURN void run_child(char *const *argv, const char *const *env, int err_fd,
                                 const int *keep_fds, pid_t parent, int report_fd)
{
    sigset_t none;
    int null_fd = open("/dev/null", O_RDONLY);
    int e;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(127);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    dup2(null_fd, 0);
    dup2(2, 1);
    dup2(err_fd, 2);
    for (; *keep_fds >= 0; keep_fds++) {
        fcntl(*keep_fds, F_SETFD, 0);
    }
    for (; env && *env; env++) {
        putenv((char *)*env);
    }
    execvp(argv[0], argv);
    e = errno;
    if (write(report_fd, &e, sizeof(e)) < 0) {
        _exit(126);
    }
    _exit(127);
}

Child *child_spawn(char *const *argv, const char *const *env, const int *keep_fds)
{
    g_autofree char *path = qos_scratch_path("stderr");
    int err_fd = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    pid_t parent = getpid();
    Child *child;
    int p[2], e = 0;
    pid_t pid;
    ssize_t n;

    if (err_fd < 0 || pipe2(p, O_CLOEXEC) < 0) {
        qos_die("cannot set up a child: %s", g_strerror(errno));
    }
    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        qos_die("fork: %s", g_strerror(errno));
    }
    if (pid == 0) {
        run_child(argv, env, err_fd, keep_fds, parent, p[1]);
    }
    close(err_fd);
    close(p[1]);
    n = read(p[0], &e, sizeof(e));
    close(p[0]);
    if (n == sizeof(e)) {
        waitpid(pid, NULL, 0);
        unlink(path);
        errno = e;
        return NULL;
    }
    child = g_new0(Child, 1);
    child->pid = pid;
    child->pidfd = syscall(SYS_pidfd_open, pid, 0);
    child->stderr_path = g_steal_pointer(&path);
    return child;
}

bool child_wait(Child *child, int timeout_ms)
{
    struct pollfd pfd = {.fd = child->pidfd, .events = POLLIN};

    if (child->reaped) {
        return true;
    }
    if (poll(&pfd, 1, timeout_ms) <= 0 || waitpid(child->pid, &child->status, WNOHANG) != child->pid) {
        return false;
    }
    child->reaped = true;
    return true;
}

char *child_stderr(const Child *child)
{
    char *text = NULL;

    return g_file_get_contents(child->stderr_path, &text, NULL, NULL) ? text : g_strdup("");
}

void child_free(Child *child)
{
    if (!child) {
        return;
    }
    if (!child->reaped) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, &child->status, 0);
    }
    close(child->pidfd);
    unlink(child->stderr_path);
    g_free(child->stderr_path);
    g_free(child);
}

double process_cpu_seconds(pid_t pid)
{
    clockid_t clock;
    struct timespec ts;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts) < 0) {
        return -1;
    }
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static long status_field(pid_t pid, const char *field)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/status", pid);
    g_autofree char *text = NULL;
    const char *p;

    if (!g_file_get_contents(path, &text, NULL, NULL) || !(p = strstr(text, field))) {
        return -1;
    }
    return strtol(p + strlen(field), NULL, 10);
}

long process_rss_kib(pid_t pid)
{
    return status_field(pid, "\nVmRSS:");
}

int process_threads(pid_t pid)
{
    return (int)status_field(pid, "\nThreads:");
}

int process_fds(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    int n = 0;

    if (!dir) {
        return -1;
    }
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        n += e->d_name[0] != '.';
    }
    closedir(dir);
    return n;
}
