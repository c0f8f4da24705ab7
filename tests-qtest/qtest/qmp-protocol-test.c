/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP as a session: greeting, negotiation, ids, errors with their classes, bad input, events and their order. */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* A second QMP server of the binary, which nobody has negotiated with. */
typedef struct Session {
    QTest *t;
    Qmp *q;
    char *path;
} Session;

static Qmp *dial(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        qos_die("cannot connect to %s", path);
    }
    return qmp_new(fd, qos_hang_ms());
}

static Session open_session(bool negotiate)
{
    Session s = {.path = qos_scratch_path("qmp2")};

    s.t = start_none("-nodefaults -qmp unix:%s,server=on,wait=off", s.path);
    s.q = dial(s.path);
    if (negotiate) {
        json_decref(qmp_negotiate(s.q));
    }
    return s;
}

static void close_session(Session *s)
{
    qmp_free(s->q);
    qt_stop(s->t);
    g_free(s->path);
}

static void test_greeting(void)
{
    Session s = open_session(false);
    g_autofree char *line = qmp_any_line(s.q);

    g_assert_true(g_regex_match_simple("^{\"QMP\": {\"version\": {\"qemu\": {\"micro\": [0-9]+, \"minor\": [0-9]+, "
                                       "\"major\": [0-9]+}, \"package\": \"[^\"]*\"}, \"capabilities\": \\[\"oob\"\\]}}\r\n$",
                                       line, 0, 0));
    close_session(&s);
}

typedef struct Exchange {
    const char *name, *send, *reply;
} Exchange;

#define GENERIC(text) "{\"error\": {\"class\": \"GenericError\", \"desc\": \"" text "\"}}"
#define NOTFOUND(text) "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"" text "\"}}"

static const Exchange before[] = {
    {"command", "{\"execute\": \"query-version\"}",
     NOTFOUND("Expecting capabilities negotiation with 'qmp_capabilities'")},
    {"unknown-command", "{\"execute\": \"nosuch\"}",
     NOTFOUND("Expecting capabilities negotiation with 'qmp_capabilities'")},
    {"capabilities", "{\"execute\": \"qmp_capabilities\"}", "{\"return\": {}}"},
    {"capabilities-with-id", "{\"execute\": \"qmp_capabilities\", \"id\": 1}", "{\"return\": {}, \"id\": 1}"},
    {"oob", "{\"execute\": \"qmp_capabilities\", \"arguments\": {\"enable\": [\"oob\"]}}", "{\"return\": {}}"},
    {"unknown-capability", "{\"execute\": \"qmp_capabilities\", \"arguments\": {\"enable\": [\"foo\"]}}",
     GENERIC("Parameter 'null' does not accept value 'foo'")},
    {"no-execute", "{}", GENERIC("QMP input lacks member 'execute'")},
};

static const Exchange after[] = {
    {"again", "{\"execute\": \"qmp_capabilities\"}",
     NOTFOUND("Capabilities negotiation is already complete, command ignored")},
    {"query-status-like", "{\"execute\": \"query-name\"}", "{\"return\": {}}"},
    {"single-quotes", "{'execute': 'query-name'}", "{\"return\": {}}"},
    {"id-string", "{\"execute\": \"query-name\", \"id\": \"x y\"}", "{\"return\": {}, \"id\": \"x y\"}"},
    {"id-number", "{\"execute\": \"query-name\", \"id\": 4.5}", "{\"return\": {}, \"id\": 4.5}"},
    {"id-null", "{\"execute\": \"query-name\", \"id\": null}", "{\"return\": {}, \"id\": null}"},
    {"id-list", "{\"execute\": \"query-name\", \"id\": [1, \"a\", {}]}", "{\"return\": {}, \"id\": [1, \"a\", {}]}"},
    {"id-object", "{\"execute\": \"query-name\", \"id\": {\"a\": [true]}}", "{\"return\": {}, \"id\": {\"a\": [true]}}"},
    {"id-in-error", "{\"execute\": \"nosuch\", \"id\": 7}",
     "{\"id\": 7, \"error\": {\"class\": \"CommandNotFound\", \"desc\": \"The command nosuch has not been found\"}}"},
    {"unknown", "{\"execute\": \"nosuch\"}", NOTFOUND("The command nosuch has not been found")},
    {"execute-not-a-string", "{\"execute\": 1}", GENERIC("QMP input member 'execute' must be a string")},
    {"no-execute", "{\"arguments\": {}}", GENERIC("QMP input lacks member 'execute'")},
    {"extra-member", "{\"execute\": \"query-name\", \"foo\": 1}", GENERIC("QMP input member 'foo' is unexpected")},
    {"arguments-not-an-object", "{\"execute\": \"query-name\", \"arguments\": []}",
     GENERIC("QMP input member 'arguments' must be an object")},
    {"not-an-object", "[1]", GENERIC("QMP input must be a JSON object")},
    {"not-an-object-number", "5\n", GENERIC("QMP input must be a JSON object")},
    {"exec-oob-not-enabled", "{\"exec-oob\": \"query-name\"}", GENERIC("QMP input member 'exec-oob' is unexpected")},
    {"unexpected-argument", "{\"execute\": \"query-name\", \"arguments\": {\"x\": 1}}",
     GENERIC("Parameter 'x' is unexpected")},
    {"missing-argument", "{\"execute\": \"object-del\"}", GENERIC("Parameter 'id' is missing")},
    {"wrong-type", "{\"execute\": \"object-del\", \"arguments\": {\"id\": 1}}",
     GENERIC("Invalid parameter type for 'id', expected: string")},
    {"device-not-found", "{\"execute\": \"qom-get\", \"arguments\": {\"path\": \"/objects/zz\", \"property\": \"x\"}}",
     "{\"error\": {\"class\": \"DeviceNotFound\", \"desc\": \"Device '/objects/zz' not found\"}}"},
    {"type-not-found", "{\"execute\": \"qom-list-properties\", \"arguments\": {\"typename\": \"zz\"}}",
     "{\"error\": {\"class\": \"DeviceNotFound\", \"desc\": \"Class 'zz' not found\"}}"},
    {"query-iothreads-empty", "{\"execute\": \"query-iothreads\"}", "{\"return\": []}"},
    {"split-over-lines", "{\"execute\":\n\n \"query-name\"\n}", "{\"return\": {}}"},
    {"hmp-unknown", "{\"execute\": \"human-monitor-command\", \"arguments\": {\"command-line\": \"nosuch\"}}",
     "{\"return\": \"unknown command: 'nosuch'\\r\\n\"}"},
    {"empty-object", "{}", GENERIC("QMP input lacks member 'execute'")},
};

static void test_exchange(Session *s, const Exchange *e)
{
    g_autofree char *line = NULL;

    qmp_send_raw(s->q, e->send);
    qmp_send_raw(s->q, "\n");
    line = qmp_any_line(s->q);
    g_assert_true(g_str_has_suffix(line, "\r\n"));
    g_assert_cmpstr(g_strchomp(line), ==, e->reply);
    close_session(s);
}

static void test_before(gconstpointer data)
{
    Session s = open_session(false);

    g_free(qmp_any_line(s.q));
    test_exchange(&s, data);
}

static void test_after(gconstpointer data)
{
    Session s = open_session(true);

    test_exchange(&s, data);
}

/* Rubbish is answered with an error, and a good command behind it works. */
static const char *const rubbish[] = {
    "}", "]", ":", "{\"execute\" \"query-name\"}", "{\"execute\": }", "{'execute': 'query-name',}", "{execute: 1}",
    "tru", "{\"a\": 01}", "{\"a\": \"\\x\"}", "{\"a\": \"\\ud800\"}", "\001", "\xff", "{\"execute\": \"query-name\"]",
    "{\"a\": 1e}", "'unterminated",
};

static void test_rubbish(gconstpointer data)
{
    const char *text = data;
    Session s = open_session(true);
    bool error = false;

    qmp_send_raw(s.q, text);
    /* This byte is no JSON anywhere: it ends what may be open. */
    qmp_send_raw(s.q, "\n\377\n{\"execute\": \"query-name\", \"id\": \"end\"}\n");
    for (;;) {
        g_autofree char *line = qmp_any_line(s.q);

        g_assert_nonnull(line);
        if (strstr(line, "\"end\"")) {
            g_assert_cmpstr(g_strchomp(line), ==, "{\"return\": {}, \"id\": \"end\"}");
            break;
        }
        error = true;
        g_assert_nonnull(strstr(line, "\"GenericError\""));
    }
    g_assert_true(error);
    close_session(&s);
}

static void test_pipelined(void)
{
    Session s = open_session(true);
    g_autoptr(GString) all = g_string_new(NULL);

    for (int i = 0; i < 200; i++) {
        g_string_append_printf(all, "{\"execute\": \"query-name\", \"id\": %d}", i);
    }
    qmp_send_raw(s.q, all->str);
    for (int i = 0; i < 200; i++) {
        g_autofree char *line = qmp_reply_line(s.q);
        g_autofree char *expect = g_strdup_printf("{\"return\": {}, \"id\": %d}", i);

        g_assert_cmpstr(line, ==, expect);
    }
    close_session(&s);
}

static void test_deep_nesting(void)
{
    Session s = open_session(true);
    g_autofree char *open = g_strnfill(5000, '[');
    g_autofree char *line = NULL;

    qmp_send_raw(s.q, open);
    qmp_send_raw(s.q, "\n");
    line = qmp_any_line(s.q);
    g_assert_nonnull(strstr(line, "\"GenericError\""));
    qt_assert_alive(s.t);
    close_session(&s);
}

static void test_reconnect(void)
{
    Session s = open_session(true);

    for (int i = 0; i < 5; i++) {
        g_autofree char *line = NULL;

        qmp_free(s.q);
        s.q = dial(s.path);
        qmp_send_raw(s.q, "{\"execute\": \"query-name\"}\n");
        g_free(qmp_any_line(s.q));
        line = qmp_reply_line(s.q);
        /* A new client negotiates anew. */
        g_assert_cmpstr(line, ==, before[0].reply);
    }
    close_session(&s);
}

/* The server's own state survives a client that goes away in the middle of a command. */
static void test_half_a_command(void)
{
    Session s = open_session(true);

    qmp_send_raw(s.q, "{\"execute\": \"query-na");
    qmp_free(s.q);
    s.q = dial(s.path);
    json_decref(qmp_negotiate(s.q));
    json_decref(qmp_must(s.q, "query-name", NULL));
    close_session(&s);
}

static void test_stop_cont(void)
{
    QTest *t = qt_start("-nodefaults");
    json_t *v;

    json_decref(qmp_must(t->qmp, "cont", NULL));
    qmp_drop_events(t->qmp);
    for (int i = 0; i < 3; i++) {
        g_autofree char *first = NULL, *second = NULL;

        qmp_send_raw(t->qmp, i % 2 ? "{'execute': 'cont'}\n" : "{'execute': 'stop'}\n");
        first = qmp_any_line(t->qmp);
        second = qmp_any_line(t->qmp);
        /* The event precedes the reply. */
        g_assert_nonnull(strstr(first, i % 2 ? "\"event\": \"RESUME\"" : "\"event\": \"STOP\""));
        g_assert_cmpstr(second, ==, "{\"return\": {}}\r\n");
        v = qmp_must(t->qmp, "query-status", NULL);
        g_assert_cmpstr(json_string_value(json_object_get(v, "status")), ==, i % 2 ? "running" : "paused");
        json_decref(v);
    }
    qt_stop(t);
}

static void test_event_shape(void)
{
    QTest *t = qt_start("-nodefaults");
    g_autofree char *line = NULL;

    json_decref(qmp_must(t->qmp, "cont", NULL));
    qmp_drop_events(t->qmp);
    qmp_send_raw(t->qmp, "{'execute': 'stop'}\n");
    line = qmp_any_line(t->qmp);
    g_assert_true(g_regex_match_simple("^{\"timestamp\": {\"seconds\": [0-9]+, \"microseconds\": [0-9]+}, "
                                       "\"event\": \"STOP\"}\r\n$", line, 0, 0));
    g_free(qmp_any_line(t->qmp));
    qt_stop(t);
}

static void test_quit(void)
{
    QTest *t = qt_start("-nodefaults");
    g_autofree char *event = NULL, *reply = NULL, *end = NULL;

    qmp_send_raw(t->qmp, "{'execute': 'quit'}\n");
    event = qmp_any_line(t->qmp);
    reply = qmp_any_line(t->qmp);
    end = qmp_any_line(t->qmp);
    g_assert_nonnull(strstr(event, "\"event\": \"SHUTDOWN\", \"data\": {\"guest\": false, \"reason\": \"host-qmp-quit\"}"));
    g_assert_cmpstr(reply, ==, "{\"return\": {}}\r\n");
    g_assert_null(end);
    g_assert_cmpint(qt_wait_exit(t), ==, 0);
}

static void add_exchanges(const char *where, const Exchange *e, size_t n, GTestDataFunc fn)
{
    for (size_t i = 0; i < n; i++) {
        add_case(fn, &e[i], "/qmp/%s/%s", where, e[i].name);
    }
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    g_test_add_func("/qmp/greeting", test_greeting);
    add_exchanges("before-negotiation", before, G_N_ELEMENTS(before), test_before);
    add_exchanges("command", after, G_N_ELEMENTS(after), test_after);
    for (size_t i = 0; i < G_N_ELEMENTS(rubbish); i++) {
        add_case(test_rubbish, rubbish[i], "/qmp/rubbish/%zu", i);
    }
    g_test_add_func("/qmp/pipelined-commands-are-answered-in-order", test_pipelined);
    g_test_add_func("/qmp/deep-nesting-is-refused", test_deep_nesting);
    g_test_add_func("/qmp/reconnect-negotiates-anew", test_reconnect);
    g_test_add_func("/qmp/half-a-command-is-forgotten", test_half_a_command);
    g_test_add_func("/qmp/event/shape", test_event_shape);
    g_test_add_func("/qmp/event/stop-and-resume-precede-the-reply", test_stop_cont);
    g_test_add_func("/qmp/event/quit", test_quit);
    return g_test_run();
}
