/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: what is refused, and peers that come and go. */
#include "unit/monitor-env.h"

#include <fcntl.h>
#include <sys/resource.h>
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

int main(int argc, char **argv)
{
    static const HmpCommand *const no_commands[] = {NULL};

    monitor_env_init(&argc, &argv, no_commands);
    g_test_add_func("/monitor/chardev/stdio-without-input-is-refused", test_stdio_without_input);
    g_test_add_func("/monitor/chardev/accept-without-descriptors-does-not-spin", test_accept_without_descriptors);
    for (unsigned int i = 0; i < G_N_ELEMENTS(chardev_cases); i++) {
        g_autofree char *path = g_strdup_printf("/monitor/chardev/%s-is-refused", chardev_cases[i].label);
        g_test_add_data_func(path, &chardev_cases[i], test_chardev_fails);
    }
    return monitor_env_run();
}
