/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A monitor over a socket pair or a socket, and its client. */
#include "unit/monitor-env.h"

#include "loop/timer.h"
#include "qapi/qapi-commands-control.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* --- Commands of the test; the schema's control commands need handlers to link --- */

int quits;

void qmp_quit(Error **errp)
{
    quits++;
    qapi_event_emit("SHUTDOWN", NULL);
}

void qmp_stop(Error **errp)
{
}

void qmp_cont(Error **errp)
{
}

void qmp_system_reset(Error **errp)
{
}

StatusInfo *qmp_query_status(Error **errp)
{
    error_setg(errp, "no machine");
    return NULL;
}

/* Polls the loop while it runs, so that later requests arrive meanwhile. */
static void marshal_slow(json_t *args, json_t **ret, Error **errp)
{
    for (int i = 0; i < 20; i++) {
        aio_poll(aio_context_main(), false);
    }
    *ret = json_string("slow");
}

static void marshal_fast(json_t *args, json_t **ret, Error **errp)
{
    *ret = json_string("fast");
}

int bigs;

static void marshal_big(json_t *args, json_t **ret, Error **errp)
{
    g_autofree char *text = g_strnfill(1 << 20, 'x');

    bigs++;
    *ret = json_string(text);
}

static const QmpCommand qmp_table[] = {
    {"qmp_capabilities", qmp_marshal_qmp_capabilities, QMP_ALLOW_PRECONFIG},
    {"quit", qmp_marshal_quit, 0},
    {"slow", marshal_slow, 0},
    {"fast", marshal_fast, 0},
    {"big", marshal_big, 0},
    {0},
};

/* --- A client --- */

int client = -1;
Chardev *server;
GString *heard;

void connect_client(void)
{
    static int n;
    int fds[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    client = fds[0];
    g_autofree char *params = g_strdup_printf("socket,id=c%d,fd=%d", n++, fds[1]);
    server = chardev_new_opts(params, &error_abort);
}

void say(const char *text)
{
    g_assert_cmpint(write(client, text, strlen(text)), ==, (ssize_t)strlen(text));
}

void hear(const char *text)
{
    gint64 limit = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;

    if (!heard) {
        heard = g_string_new(NULL);
    }
    while (!strstr(heard->str, text)) {
        char buf[4096];

        if (g_get_monotonic_time() > limit) {
            g_error("no \"%s\" in \"%s\"", text, heard->str);
        }
        aio_poll(aio_context_main(), false);
        ssize_t n = read(client, buf, sizeof(buf));
        if (n > 0) {
            g_string_append_len(heard, buf, n);
        }
    }
}

void forget(void)
{
    g_string_truncate(heard, 0);
}

void start_qmp(void)
{
    connect_client();
    g_assert_true(monitor_new_compat(server, true, false, &error_abort));
    hear("\"capabilities\": [\"oob\"]}}\r\n");
    g_assert_true(g_str_has_prefix(heard->str, "{\"QMP\": {\"version\": {\"qemu\": {"));
    forget();
}

void start_hmp(void)
{
    connect_client();
    g_assert_true(monitor_new_compat(server, false, false, &error_abort));
    hear("(qemu) ");
    g_assert_true(g_str_has_prefix(heard->str, "QEMU 11.0.92 monitor - type 'help' for more information\r\n(qemu) "));
    forget();
}

void negotiate(void)
{
    say("{'execute': 'qmp_capabilities'}");
    hear("{\"return\": {}}\r\n");
    forget();
}

void end(void)
{
    close(client);
    client = -1;
    for (int i = 0; i < 5; i++) {
        aio_poll(aio_context_main(), false);
    }
    forget();
}

static struct sockaddr_un server_address = {.sun_family = AF_UNIX};

void start_server(bool qmp)
{
    static int n;
    g_autofree char *dir = g_dir_make_tmp("qemu-subset-XXXXXX", NULL);

    g_snprintf(server_address.sun_path, sizeof(server_address.sun_path), "%s/monitor", dir);
    g_autofree char *params = g_strdup_printf("socket,id=s%d,path=%s,server=on,wait=off", n++, server_address.sun_path);
    server = chardev_new_opts(params, &error_abort);
    g_assert_true(monitor_new_compat(server, qmp, false, &error_abort));
}

void end_server(void)
{
    g_autofree char *dir = g_path_get_dirname(server_address.sun_path);

    end();
    unlink(server_address.sun_path);
    rmdir(dir);
}

void connect_to_server(void)
{
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    g_assert_cmpint(connect(client, (struct sockaddr *)&server_address, sizeof(server_address)), ==, 0);
}

void monitor_env_init(int *argc, char ***argv, const HmpCommand *const *hmp_commands)
{
    AioContextConfig cfg = {.name = "main", .is_main = true};
    MonitorConfig config = {.qmp_commands = qmp_table, .hmp_commands = hmp_commands, .virtual_clock = true};

    g_test_init(argc, argv, NULL);
    signal(SIGPIPE, SIG_IGN);
    aio_context_set_main(aio_context_new(&cfg, &error_abort));
    clock_virtual_take_over();
    object_register_types();
    monitor_register_types();
    monitor_init(&config);
}

int monitor_env_run(void)
{
    int rc = g_test_run();

    AioContext *ctx = aio_context_main();

    monitor_cleanup();
    chardev_cleanup();
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return rc;
}
