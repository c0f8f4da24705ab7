/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: what is refused, and peers that come and go. */
#include "unit/monitor-env.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct ChardevCase {
    const char *label, *params, *error;
} ChardevCase;

static const ChardevCase chardev_cases[] = {
    {"no-id", "null", "chardev: no id specified"},
    {"unknown-backend", "foo,id=x", "'foo' is not a valid char driver name"},
    {"unknown-parameter", "null,id=x,foo=1", "Invalid parameter 'foo'"},
    {"no-address", "socket,id=x", "Unable to parse FD number "},
    {"no-port", "socket,id=x,host=127.0.0.1", "chardev: socket: no port given"},
    {"not-a-socket", "socket,id=x,fd=99", "File descriptor '99' is not a socket"},
    {"wait-as-client", "socket,id=x,path=/nosuch,wait=off",
     "'wait' option is incompatible with socket in client connect mode"},
    {"no-server", "socket,id=x,path=/proc/nosuch/socket", "Failed to connect to '/proc/nosuch/socket': No such file or directory"},
    {"cannot-bind", "socket,id=x,path=/proc/nosuch/socket,server=on,wait=off",
     "Failed to bind socket to /proc/nosuch/socket: No such file or directory"},
    {"endless-reconnect-as-server", "socket,id=x,path=/nosuch,server=on,reconnect-ms=18446744073709551615",
     "'reconnect-ms' option is incompatible with socket in server listen mode"},
    {"reconnect-as-server", "socket,id=x,path=/nosuch,server=on,reconnect-ms=0",
     "'reconnect-ms' option is incompatible with socket in server listen mode"},
    {"reconnect-without-address", "socket,id=x,fd=0,reconnect-ms=1", "'reconnect-ms' option is incompatible with 'fd' address type"},
    {"server-garbage", "socket,id=x,path=/nosuch,server=perhaps", "Parameter 'server' expects 'on' or 'off'"},
    {"file-without-path", "file,id=x", "chardev: file: no filename given"},
};

static void test_chardev_fails(const void *opaque)
{
    const ChardevCase *c = opaque;
    Error *err = NULL;

    g_assert_null(chardev_new_opts(c->params, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, c->error);
    error_free(err);
    g_assert_null(chardev_find("x"));
}

static void test_stdio_without_input(void)
{
    int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
    Error *err = NULL;

    close(0);
    g_assert_null(chardev_new_opts("stdio,id=x", &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Could not make standard input non-blocking: Bad file descriptor");
    error_free(err);
    if (input >= 0) {
        dup2(input, 0);
        close(input);
    }
}

/* The peer waits in the backlog, which keeps the listener readable; the loop must not look at it all the time. */
static void test_accept_without_descriptors(void)
{
    enum { PASSES = 1000 };
    struct rlimit limit, none;
    int busy = 0;

    start_server(false);
    connect_to_server();
    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    none = (struct rlimit){0, limit.rlim_max};
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    for (int i = 0; i < PASSES; i++) {
        busy += aio_poll(aio_context_main(), false);
    }
    g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    /* Passes that take so long that a rest ends within them are rare even on a loaded host. */
    g_assert_cmpint(busy, <, PASSES / 2);
    hear("(qemu) ");
    end_server();
}

/* --- A server whose backlog is full: to connect to it blocks --- */

typedef struct BusyServer {
    int fd, fillers[8], n;
    char *address; /* as options of a character device */
} BusyServer;

static void listen_at(BusyServer *s, const struct sockaddr *addr, socklen_t len)
{
    s->fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    g_assert_cmpint(bind(s->fd, addr, len), ==, 0);
    g_assert_cmpint(listen(s->fd, 0), ==, 0);
}

/* Connect until it would block. */
static void fill_backlog(BusyServer *s)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);
    struct pollfd p = {.events = POLLOUT};
    bool in;

    g_assert_cmpint(getsockname(s->fd, (struct sockaddr *)&addr, &len), ==, 0);
    do {
        p.fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
        in = !connect(p.fd, (struct sockaddr *)&addr, len) || (errno == EINPROGRESS && poll(&p, 1, 200) == 1);
        if (in) {
            g_assert_cmpint(s->n, <, (int)G_N_ELEMENTS(s->fillers));
            s->fillers[s->n++] = p.fd;
        } else {
            close(p.fd);
        }
    } while (in);
}

static void start_busy_unix(BusyServer *s)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    g_autofree char *dir = g_dir_make_tmp("qemu-subset-XXXXXX", NULL);

    g_snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/busy", dir);
    s->address = g_strdup_printf("path=%s", addr.sun_path);
    listen_at(s, (struct sockaddr *)&addr, sizeof(addr));
    fill_backlog(s);
}

static void start_busy_tcp(BusyServer *s)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);

    listen_at(s, (struct sockaddr *)&addr, sizeof(addr));
    g_assert_cmpint(getsockname(s->fd, (struct sockaddr *)&addr, &len), ==, 0);
    s->address = g_strdup_printf("host=127.0.0.1,port=%d", ntohs(addr.sin_port));
    fill_backlog(s);
}

static void end_busy(BusyServer *s)
{
    g_autofree char *dir = g_path_get_dirname(s->address + strlen("path="));

    if (g_str_has_prefix(s->address, "path=")) {
        unlink(s->address + strlen("path="));
        rmdir(dir);
    }
    close(s->fd);
    g_free(s->address);
}

static void connect_to_busy(const BusyServer *s, const char *id)
{
    g_autofree char *params = g_strdup_printf("socket,id=%s,%s,reconnect-ms=20", id, s->address);

    server = chardev_new_opts(params, &error_abort);
}

/* Let those in that wait; the last one is our character device. */
static void accept_all(BusyServer *s)
{
    gint64 limit = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;

    for (int i = 0; i < s->n; i++) {
        int fd = accept(s->fd, NULL, NULL);
        g_assert_cmpint(fd, >=, 0);
        close(fd);
        close(s->fillers[i]);
    }
    while ((client = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK)) < 0) {
        g_assert_cmpint(g_get_monotonic_time(), <, limit);
        aio_poll(aio_context_main(), false);
    }
}

static void keep_report(void *opaque, const char *text)
{
    g_string_append(opaque, text);
}

static int count(const char *text, const char *part)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, part)); p++) {
        n++;
    }
    return n;
}

/* Whoever waits for a peer learns why it does not come, once. */
static void test_failure_is_told_once(const void *address)
{
    g_autoptr(GString) reports = g_string_new(NULL);
    g_autofree char *id = g_strdup_printf("nobody-%.4s", (const char *)address);
    g_autofree char *params = g_strdup_printf("socket,id=%s,%s,reconnect-ms=1", id, (const char *)address);
    g_autofree char *text = g_strdup_printf("Unable to connect character device %s: ", id);

    error_set_sink(keep_report, reports);
    chardev_new_opts(params, &error_abort);
    for (int i = 0; i < 50; i++) {
        aio_poll(aio_context_main(), false);
        g_usleep(1000);
    }
    error_set_sink(NULL, NULL);
    g_assert_cmpint(count(reports->str, text), ==, 1);
}

static void test_connect_to_busy(const void *start)
{
    BusyServer s = {0};

    ((void (*)(BusyServer *))start)(&s);
    alarm(60); /* if it blocks after all */
    connect_to_busy(&s, s.address[0] == 'p' ? "busy-unix" : "busy-tcp");
    g_assert_true(monitor_new_compat(server, true, false, &error_abort));
    for (int i = 0; i < 50; i++) {
        aio_poll(aio_context_main(), false);
        g_usleep(1000);
    }
    alarm(0);
    accept_all(&s);
    hear("\"capabilities\": [\"oob\"]}}\r\n");
    /* Where nobody listens, it tries in vain. */
    end_busy(&s);
    end();
}

static void run_passes(int n)
{
    for (int i = 0; i < n; i++) {
        aio_poll(aio_context_main(), false);
        g_usleep(1000);
    }
}

/* A device may go while its address is looked up, while it connects, and while it waits to try again. */
static void test_remove_while_connecting(void)
{
    BusyServer s = {0};

    start_busy_tcp(&s);
    for (int passes = 0; passes <= 50; passes += 50) {
        connect_to_busy(&s, "going");
        run_passes(passes);
        g_assert_true(chardev_remove("going", &error_abort));
        g_assert_null(chardev_find("going"));
        run_passes(50);
    }
    end_busy(&s);
    chardev_new_opts("socket,id=waiting,path=/nosuch/socket,reconnect-ms=20", &error_abort);
    g_assert_true(chardev_remove("waiting", &error_abort));
    run_passes(50);
}

static void test_remove_in_use(void)
{
    Object *objects = object_objects();
    Error *err = NULL;

    g_assert_false(chardev_remove("nosuch", &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Chardev 'nosuch' not found");
    error_free(err);
    err = NULL;
    start_server(true);
    g_autofree char *label = g_strdup(chardev_label(server)), *busy = g_strdup_printf("Chardev '%s' is busy", label);
    g_assert_false(chardev_remove(label, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, busy);
    error_free(err);
    connect_to_server();
    hear("\"QMP\"");
    object_unparent(g_ptr_array_index(objects->child_order, objects->child_order->len - 1));
    g_assert_true(chardev_remove(label, &error_abort));
    run_passes(5);
    g_assert_cmpint(read(client, &(char){0}, 1), ==, 0);
    end_server();
}

/* What is under way at the end is in nobody's way. The one has an address, the other still looks for it. */
static void test_end_while_connecting(void)
{
    BusyServer s = {0};

    start_busy_tcp(&s);
    connect_to_busy(&s, "connecting");
    for (int i = 0; i < 50; i++) {
        aio_poll(aio_context_main(), false);
        g_usleep(1000);
    }
    connect_to_busy(&s, "looking-up");
    end_busy(&s);
}

int main(int argc, char **argv)
{
    static const HmpCommand *const no_commands[] = {NULL};

    monitor_env_init(&argc, &argv, no_commands);
    g_test_add_func("/monitor/chardev/stdio-without-input-is-refused", test_stdio_without_input);
    g_test_add_func("/monitor/chardev/accept-without-descriptors-does-not-spin", test_accept_without_descriptors);
    g_test_add_data_func("/monitor/chardev/connect/unix-does-not-block", start_busy_unix, test_connect_to_busy);
    g_test_add_data_func("/monitor/chardev/connect/tcp-does-not-block", start_busy_tcp, test_connect_to_busy);
    for (unsigned int i = 0; i < G_N_ELEMENTS(chardev_cases); i++) {
        g_autofree char *path = g_strdup_printf("/monitor/chardev/%s-is-refused", chardev_cases[i].label);
        g_test_add_data_func(path, &chardev_cases[i], test_chardev_fails);
    }
    g_test_add_data_func("/monitor/chardev/connect/unix-failure-is-told-once", "path=/nosuch/socket",
                         test_failure_is_told_once);
    g_test_add_data_func("/monitor/chardev/connect/tcp-failure-is-told-once", "host=127.0.0.1,port=1",
                         test_failure_is_told_once);
    g_test_add_func("/monitor/chardev/remove/while-connecting", test_remove_while_connecting);
    g_test_add_func("/monitor/chardev/remove/in-use", test_remove_in_use);
    g_test_add_func("/monitor/chardev/connect/end-of-the-program", test_end_while_connecting);
    return monitor_env_run();
}
