/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Start and stop a binary under the qtest protocol. */
#include "qtest.h"
#include "alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

const char *qt_binary(void)
{
    const char *s = g_getenv("QTEST_QEMU_BINARY");

    return s && *s ? s : NULL;
}

static int listen_on(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || listen(fd, 1) < 0) {
        qos_die("cannot listen on %s: %s", path, g_strerror(errno));
    }
    return fd;
}

/* The next connection, or -1 if the child ends first. */
static int accept_from(int listener, Child *child)
{
    struct pollfd pfd[2] = {{.fd = listener, .events = POLLIN}, {.fd = child->pidfd, .events = POLLIN}};
    int n = poll(pfd, 2, qos_hang_ms());

    if (n == 0) {
        g_autofree char *text = child_stderr(child);

        qos_die("the binary neither connects nor ends; its stderr:\n%s", text);
    }
    return pfd[0].revents & POLLIN ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
}

static void make_shared_ram(QTest *t, unsigned int mib)
{
    t->ram_size = (size_t)mib << 20;
    t->ram_fd = memfd_create("qos-ram", MFD_CLOEXEC);
    if (t->ram_fd < 0 || ftruncate(t->ram_fd, (off_t)t->ram_size) < 0) {
        qos_die("cannot make guest RAM: %s", g_strerror(errno));
    }
    t->ram = mmap(NULL, t->ram_size, PROT_READ | PROT_WRITE, MAP_SHARED, t->ram_fd, 0);
    if (t->ram == MAP_FAILED) {
        qos_die("cannot map guest RAM: %s", g_strerror(errno));
    }
}

static void add(GPtrArray *argv, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
static void add(GPtrArray *argv, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_ptr_array_add(argv, g_strdup_vprintf(fmt, ap));
    va_end(ap);
}

static GPtrArray *build_argv(QTest *t, const QTestOpts *o, const char *args, const char *sock[2])
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    const char *machine = o->machine ? o->machine : "pc";
    g_auto(GStrv) words = NULL;
    GError *err = NULL;
    int nwords = 0;

    if (*args && !g_shell_parse_argv(args, &nwords, &words, &err) &&
        !g_error_matches(err, G_SHELL_ERROR, G_SHELL_ERROR_EMPTY_STRING)) {
        qos_die("arguments '%s': %s", args, err->message);
    }
    g_clear_error(&err);
    add(argv, "%s", o->binary ? o->binary : qt_binary());
    add(argv, "-qtest");
    add(argv, "unix:%s", sock[0]);
    add(argv, "-qtest-log");
    add(argv, "%s", g_getenv("QTEST_LOG") ? "/dev/fd/1" : "/dev/null");
    add(argv, "-qmp");
    add(argv, "unix:%s", sock[1]);
    add(argv, "-display");
    add(argv, "none");
    if (o->shared_mib) {
        add(argv, "-m");
        add(argv, "%u", o->shared_mib);
        add(argv, "-object");
        add(argv, "memory-backend-file,id=qos-ram,size=%uM,share=on,mem-path=/proc/self/fd/%d",
            o->shared_mib, t->ram_fd);
        add(argv, "-machine");
        add(argv, "%s,memory-backend=qos-ram", machine);
    } else {
        add(argv, "-machine");
        add(argv, "%s", machine);
    }
    for (int i = 0; i < nwords; i++) {
        add(argv, "%s", words[i]);
    }
    add(argv, "-accel");
    add(argv, "%s", t->qtest_accel ? "qtest" : "tcg");
    if (!t->qtest_accel) {
        add(argv, "-S");
    }
    g_ptr_array_add(argv, NULL);
    return argv;
}

static void free_state(QTest *t)
{
    if (t->fd >= 0) {
        close(t->fd);
    }
    qmp_free(t->qmp);
    child_free(t->child);
    g_string_free(t->in, TRUE);
    g_byte_array_free(t->irq_levels, TRUE);
    guest_alloc_destroy(t->alloc);
    if (t->ram) {
        munmap(t->ram, t->ram_size);
        close(t->ram_fd);
    }
    g_free(t);
}

static QTest *start_with(const QTestOpts *o, const char *args, bool qtest_accel, char **why)
{
    g_autofree char *p0 = qos_scratch_path("qtest"), *p1 = qos_scratch_path("qmp");
    const char *sock[2] = {p0, p1};
    int l0 = listen_on(p0), l1 = listen_on(p1), qmp_sock = -1;
    QTest *t = g_new0(QTest, 1);
    g_autoptr(GPtrArray) argv = NULL;
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    int end = -1;

    t->fd = -1;
    t->qtest_accel = qtest_accel;
    t->in = g_string_new(NULL);
    t->irq_levels = g_byte_array_new();
    t->next_io = 0xc000;
    t->next_mem = 0xe0000000;
    if (o->shared_mib) {
        make_shared_ram(t, o->shared_mib);
    }
    argv = build_argv(t, o, args, sock);
    for (const int *fd = o->fds; fd && *fd >= 0; fd++) {
        g_array_append_val(fds, *fd);
    }
    if (o->shared_mib) {
        g_array_append_val(fds, t->ram_fd);
    }
    g_array_append_val(fds, end);
    t->child = child_spawn((char *const *)argv->pdata, o->env, (const int *)(void *)fds->data);
    if (!t->child) {
        *why = g_strdup_printf("%s: %s\n", (char *)argv->pdata[0], g_strerror(errno));
    } else {
        t->fd = accept_from(l0, t->child);
        qmp_sock = t->fd < 0 ? -1 : accept_from(l1, t->child);
        if (qmp_sock < 0) {
            child_wait(t->child, qos_hang_ms());
            *why = child_stderr(t->child);
        }
    }
    close(l0);
    close(l1);
    unlink(p0);
    unlink(p1);
    if (qmp_sock < 0) {
        free_state(t);
        return NULL;
    }
    t->qmp = qmp_new(qmp_sock, qos_hang_ms());
    return t;
}

static bool ended_during_init(QTest *t, char **why)
{
    static const char *const step[] = {NULL, "{\"execute\": \"qmp_capabilities\"}\n"};
    static const char *const expect[] = {"\"QMP\"", "\"return\""};

    /* Devices are made after the sockets are there: only an answer says that the whole command line was good. */
    for (int i = 0; i < 2; i++) {
        g_autofree char *line = NULL;

        if (step[i] && !qmp_try_send(t->qmp, step[i])) {
            break;
        }
        line = qmp_reply_line(t->qmp);
        if (!line || !strstr(line, expect[i])) {
            break;
        }
        if (i == 1) {
            return false;
        }
    }
    child_wait(t->child, qos_hang_ms());
    *why = child_stderr(t->child);
    return true;
}

QTest *qt_try_start(const QTestOpts *opts, const char *args, char **why)
{
    static GHashTable *without_qtest; /* binaries that were found to lack the accelerator */
    static const QTestOpts defaults;
    const QTestOpts *o = opts ? opts : &defaults;
    const char *binary = o->binary ? o->binary : qt_binary();
    g_autofree char *answer = NULL;
    QTest *t;

    if (!binary) {
        qos_die("QTEST_QEMU_BINARY is not set");
    }
    if (!without_qtest) {
        without_qtest = g_hash_table_new(g_str_hash, g_str_equal);
    }
    t = start_with(o, args, !g_hash_table_contains(without_qtest, binary), why);
    if (!t && strstr(*why, "invalid accelerator qtest")) {
        g_hash_table_add(without_qtest, (char *)g_intern_string(binary));
        g_clear_pointer(why, g_free);
        t = start_with(o, args, false, why);
    }
    if (t && ended_during_init(t, why)) {
        free_state(t);
        if (!strstr(*why, "invalid accelerator qtest")) {
            return NULL;
        }
        g_hash_table_add(without_qtest, (char *)g_intern_string(binary));
        g_clear_pointer(why, g_free);
        return qt_try_start(opts, args, why);
    }
    if (!t) {
        return NULL;
    }
    answer = qt_command(t, "endianness");
    if (strcmp(answer, "OK little")) {
        qos_die("endianness: %s", answer);
    }
    return t;
}

QTest *qt_start_opts(const QTestOpts *opts, const char *args)
{
    char *why = NULL;
    QTest *t = qt_try_start(opts, args, &why);

    if (!t) {
        qos_die("%s %s: did not start: %s", qt_binary(), args, why);
    }
    return t;
}

QTest *qt_start(const char *fmt, ...)
{
    g_autofree char *args = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return qt_start_opts(NULL, args);
}

char *qt_stderr(const QTest *t)
{
    return child_stderr(t->child);
}

void qt_wait_stderr(QTest *t, const char *text)
{
    g_autofree char *all = NULL;

    for (int ms = 0; ms < qos_hang_ms(); ms += 5) {
        g_free(all);
        all = qt_stderr(t);
        if (strstr(all, text)) {
            return;
        }
        g_usleep(5000);
    }
    qos_die("stderr never had '%s', but: %s", text, all);
}

static void dump_stderr(const QTest *t)
{
    g_autofree char *text = qt_stderr(t);

    if (*text) {
        fprintf(stderr, "libqos: stderr of process %d:\n%s", t->child->pid, text);
    }
}

int qt_wait_exit(QTest *t)
{
    int status;

    if (!child_wait(t->child, qos_hang_ms())) {
        dump_stderr(t);
        qos_die("process %d does not end", t->child->pid);
    }
    status = t->child->status;
    if (status) {
        dump_stderr(t);
    }
    free_state(t);
    return status;
}

void qt_stop(QTest *t)
{
    int status;

    kill(t->child->pid, SIGTERM);
    status = qt_wait_exit(t);
    if (status) {
        qos_die("the binary ended with %s %d", WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

void qt_kill(QTest *t)
{
    free_state(t);
}

void qt_assert_alive(QTest *t)
{
    g_autofree char *answer = qt_command(t, "endianness");

    g_assert_cmpstr(answer, ==, "OK little");
    g_assert_false(child_wait(t->child, 0));
}
