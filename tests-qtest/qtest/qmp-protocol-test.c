/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP as a session: greeting, negotiation, ids, errors with their classes, bad input, events and their order. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A second QMP server of the binary, which nobody has negotiated with. */
typedef struct Session {
    QTest *t;
    Qmp *q;
    char *path;
} Session;

static Session open_session(bool negotiate)
{
    Session s = {.path = qos_scratch_path("qmp2")};

    s.t = start_none("-nodefaults -qmp unix:%s,server=on,wait=off", s.path);
    s.q = qmp_dial(s.path);
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

enum { COMMAND, ENABLE_OOB };

static const Exchange before[] = {
    [COMMAND] = {"command", "{\"execute\": \"query-version\"}",
     NOTFOUND("Expecting capabilities negotiation with 'qmp_capabilities'")},
    [ENABLE_OOB] = {"oob", "{\"execute\": \"qmp_capabilities\", \"arguments\": {\"enable\": [\"oob\"]}}", "{\"return\": {}}"},
    {"unknown-command", "{\"execute\": \"nosuch\"}",
     NOTFOUND("Expecting capabilities negotiation with 'qmp_capabilities'")},
    {"capabilities", "{\"execute\": \"qmp_capabilities\"}", "{\"return\": {}}"},
    {"capabilities-with-id", "{\"execute\": \"qmp_capabilities\", \"id\": 1}", "{\"return\": {}, \"id\": 1}"},
    {"exec-oob", "{\"exec-oob\": \"query-version\"}", GENERIC("QMP input member 'exec-oob' is unexpected")},
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

/* --- Out of band --- */

static Session open_oob_session(void)
{
    Session s = open_session(false);
    g_autofree char *reply = NULL;

    g_free(qmp_any_line(s.q));
    qmp_send_raw(s.q, before[ENABLE_OOB].send);
    reply = qmp_reply_line(s.q);
    g_assert_cmpstr(reply, ==, "{\"return\": {}}");
    return s;
}

#define NO_OOB(id) "{\"id\": " id ", \"error\": {\"class\": \"GenericError\", \"desc\": \"The command query-name does not support OOB\"}}"
#define WITH_ID(class, text) "{\"id\": 1, \"error\": {\"class\": \"" class "\", \"desc\": \"" text "\"}}"

static const Exchange oob[] = {
    {"of-a-command-that-has-to-wait", "{\"exec-oob\": \"query-name\", \"id\": 1}", NO_OOB("1")},
    {"without-id", "{\"exec-oob\": \"query-name\"}", GENERIC("The command query-name does not support OOB")},
    {"of-the-negotiation", "{\"exec-oob\": \"qmp_capabilities\"}", GENERIC("The command qmp_capabilities does not support OOB")},
    {"unknown", "{\"exec-oob\": \"nosuch\", \"id\": 1}", WITH_ID("CommandNotFound", "The command nosuch has not been found")},
    {"not-a-string", "{\"exec-oob\": 7, \"id\": 1}", WITH_ID("GenericError", "QMP input member 'exec-oob' must be a string")},
    {"extra-member", "{\"exec-oob\": \"query-name\", \"foo\": 1, \"id\": 1}",
     WITH_ID("GenericError", "QMP input member 'foo' is unexpected")},
    {"in-both-ways", "{\"execute\": \"query-name\", \"exec-oob\": \"query-name\", \"id\": 1}",
     WITH_ID("GenericError", "QMP input member 'execute' clashes with 'exec-oob'")},
    {"in-band", "{\"execute\": \"query-name\", \"id\": 1}", "{\"return\": {}, \"id\": 1}"},
};

static void test_oob(gconstpointer data)
{
    Session s = open_oob_session();

    test_exchange(&s, data);
}

/* The ids of the next @n replies, in their order: "1 2 3". */
static char *reply_ids(Qmp *q, int n)
{
    GString *ids = g_string_new(NULL);

    for (int i = 0; i < n; i++) {
        g_autofree char *line = qmp_reply_line(q);
        json_t *reply = json_loads(line, 0, NULL);

        g_string_append_printf(ids, "%s%d", i ? " " : "", (int)json_integer_value(json_object_get(reply, "id")));
        json_decref(reply);
    }
    return g_string_free(ids, FALSE);
}

/* Requests 1 to @n, and 100 out of band, in one piece. */
static void send_requests(Qmp *q, int n)
{
    g_autoptr(GString) all = g_string_new(NULL);

    for (int i = 1; i <= n; i++) {
        g_string_append_printf(all, "{\"execute\": \"query-name\", \"id\": %d}", i);
    }
    g_string_append(all, "{\"exec-oob\": \"query-name\", \"id\": 100}");
    qmp_send_raw(q, all->str);
}

/* What is executed out of band overtakes requests that wait; the ninth of those keeps it from being looked at. */
static void test_oob_overtakes(void)
{
    static const char *const orders[] = {
        "100", "100 1", "100 1 2", "100 1 2 3", "100 1 2 3 4", "100 1 2 3 4 5", "100 1 2 3 4 5 6", "100 1 2 3 4 5 6 7",
        "1 100 2 3 4 5 6 7 8", "1 2 100 3 4 5 6 7 8 9", "1 2 3 100 4 5 6 7 8 9 10",
    };
    Session s = open_oob_session();

    if (!binary_is_ours()) {
        /* There two threads do it, and the order is a matter of speed. */
        g_test_skip("the order is not always the same in other binaries");
    }
    for (int n = 0; binary_is_ours() && n < (int)G_N_ELEMENTS(orders); n++) {
        g_autofree char *ids = NULL;

        send_requests(s.q, n);
        ids = reply_ids(s.q, n + 1);
        g_assert_cmpstr(ids, ==, orders[n]);
    }
    close_session(&s);
}

/* Errors in the text of a request wait for their turn, and so does everything where the capability is not enabled. */
static void test_oob_leaves_order(void)
{
    Session s = open_session(true);
    g_autofree char *ids = NULL, *first = NULL, *second = NULL, *third = NULL;

    send_requests(s.q, 12);
    ids = reply_ids(s.q, 13);
    g_assert_cmpstr(ids, ==, "1 2 3 4 5 6 7 8 9 10 11 12 100");
    close_session(&s);

    s = open_oob_session();
    qmp_send_raw(s.q, "{\"execute\": \"query-name\", \"id\": 1}{\"exec-oob\" \"query-name\"}\n[1]");
    first = qmp_reply_line(s.q);
    second = qmp_reply_line(s.q);
    third = qmp_reply_line(s.q);
    g_assert_cmpstr(first, ==, "{\"return\": {}, \"id\": 1}");
    g_assert_nonnull(strstr(second, "JSON parse error"));
    g_assert_cmpstr(third, ==, GENERIC("QMP input must be a JSON object"));
    close_session(&s);
}

/* The requests that come with the negotiation are under its rules from the next one on. */
static void test_oob_from_negotiation_on(void)
{
    Session s = open_session(false);
    g_autofree char *ids = NULL, *last = NULL;

    if (!binary_is_ours()) {
        g_test_skip("the order is not always the same in other binaries");
        close_session(&s);
        return;
    }
    g_free(qmp_any_line(s.q));
    qmp_send_raw(s.q, "{\"exec-oob\": \"query-name\", \"id\": 1}"
                      "{\"execute\": \"qmp_capabilities\", \"id\": 2, \"arguments\": {\"enable\": [\"oob\", \"oob\"]}}"
                      "{\"execute\": \"query-name\", \"id\": 3}{\"exec-oob\": \"query-name\", \"id\": 4}");
    ids = reply_ids(s.q, 4);
    g_assert_cmpstr(ids, ==, "1 2 4 3");
    /* The next client starts without. */
    qmp_free(s.q);
    s.q = qmp_dial(s.path);
    json_decref(qmp_negotiate(s.q));
    qmp_send_raw(s.q, "{\"exec-oob\": \"query-name\"}");
    last = qmp_reply_line(s.q);
    g_assert_cmpstr(last, ==, GENERIC("QMP input member 'exec-oob' is unexpected"));
    close_session(&s);
}

/* Until the binary has taken everything that was sent. */
static void wait_until_taken(Qmp *q)
{
    int unread = 0;

    do {
        g_usleep(100);
        g_assert_cmpint(ioctl(qmp_fd(q), SIOCOUTQ, &unread), ==, 0);
    } while (unread);
}

/* A command that blocks the main loop: what comes meanwhile is answered when it is over, and nothing gets lost. */
static void test_oob_while_blocked(void)
{
    Session s = open_oob_session();
    g_autofree char *fifo = qos_scratch_path("fifo"), *blocking = NULL, *ids = NULL;
    int fd;

    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    blocking = g_strdup_printf("{\"execute\": \"blockdev-add\", \"id\": 50, \"arguments\": {\"driver\": \"file\", "
                               "\"node-name\": \"n\", \"filename\": \"%s\", \"read-only\": true}}", fifo);
    qmp_send_raw(s.q, blocking);
    wait_until_taken(s.q);
    send_requests(s.q, 2);
    /* Opening the other end works once the file is being opened, which is over then. */
    while ((fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
        g_assert_cmpint(errno, ==, ENXIO);
        g_usleep(1000);
    }
    ids = reply_ids(s.q, 4);
    /* A thread for monitors, which others have, does not wait for the main loop. */
    g_assert_cmpstr(ids, ==, binary_is_ours() ? "50 100 1 2" : "100 50 1 2");
    close(fd);
    unlink(fifo);
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
        s.q = qmp_dial(s.path);
        qmp_send_raw(s.q, "{\"execute\": \"query-name\"}\n");
        g_free(qmp_any_line(s.q));
        line = qmp_reply_line(s.q);
        /* A new client negotiates anew. */
        g_assert_cmpstr(line, ==, before[COMMAND].reply);
    }
    close_session(&s);
}

/* The server's own state survives a client that goes away in the middle of a command. */
static void test_half_a_command(void)
{
    Session s = open_session(true);

    qmp_send_raw(s.q, "{\"execute\": \"query-na");
    qmp_free(s.q);
    s.q = qmp_dial(s.path);
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
    add_exchanges("out-of-band", oob, G_N_ELEMENTS(oob), test_oob);
    g_test_add_func("/qmp/out-of-band/overtakes-at-most-eight", test_oob_overtakes);
    g_test_add_func("/qmp/out-of-band/leaves-other-order-alone", test_oob_leaves_order);
    g_test_add_func("/qmp/out-of-band/from-negotiation-on", test_oob_from_negotiation_on);
    g_test_add_func("/qmp/out-of-band/while-the-main-loop-is-blocked", test_oob_while_blocked);
    g_test_add_func("/qmp/deep-nesting-is-refused", test_deep_nesting);
    g_test_add_func("/qmp/reconnect-negotiates-anew", test_reconnect);
    g_test_add_func("/qmp/half-a-command-is-forgotten", test_half_a_command);
    g_test_add_func("/qmp/event/shape", test_event_shape);
    g_test_add_func("/qmp/event/stop-and-resume-precede-the-reply", test_stop_cont);
    g_test_add_func("/qmp/event/quit", test_quit);
    return g_test_run();
}
