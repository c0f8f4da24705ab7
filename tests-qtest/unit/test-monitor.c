/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Monitors over a socket pair: sessions, order, events and their limits, HMP arguments, the line editor. */
#include "loop/timer.h"
#include "unit/monitor-env.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Shows the arguments that it got. */
static void hmp_show(json_t *args, GString *out)
{
    GString *text = qjson_to_string(args, false);

    g_string_append_printf(out, "%s\n", text->str);
    g_string_free(text, TRUE);
}

static void hmp_report(json_t *args, GString *out)
{
    warn_report("careful");
}

static int floods;

/* More than a socket holds. */
static void hmp_flood(json_t *args, GString *out)
{
    floods++;
    g_string_set_size(out, 4 << 20);
    memset(out->str, 'x', out->len);
}

static void reconnect_meanwhile(json_t *args, GString *out);

static const HmpCommand test_commands[] = {
    {"flood", "", "", "says much", hmp_flood},
    {"reconnect", "", "", "the client hangs up and comes again", reconnect_meanwhile},
    {"none|n", "", "", "takes nothing", hmp_show},
    {"words", "a:s,b:s?", "a [b]", "takes words", hmp_show},
    {"rest", "a:s,b:S", "a b...", "takes the rest of the line", hmp_show},
    {"number", "n:i", "n", "takes a number", hmp_show},
    {"size", "n:o", "n", "takes a size", hmp_show},
    {"flag", "force:-f,on:b?", "[-f] [on]", "takes a flag", hmp_show},
    {"report", "", "", "reports", hmp_report},
    {"info thing", "", "", "shows a thing", hmp_show},
    {0},
};

static const HmpCommand *const hmp_tables[] = {hmp_help_commands, test_commands, NULL};

/* --- QMP --- */

static void test_needs_negotiation(void)
{
    start_qmp();
    say("{'execute': 'fast'}");
    hear("{\"error\": {\"class\": \"CommandNotFound\", "
         "\"desc\": \"Expecting capabilities negotiation with 'qmp_capabilities'\"}}\r\n");
    forget();
    negotiate();
    say("{'execute': 'qmp_capabilities'}");
    hear("\"Capabilities negotiation is already complete, command ignored\"");
    forget();
    say("{'execute': 'fast'}");
    hear("{\"return\": \"fast\"}\r\n");
    end();
}

static void test_order_is_kept(void)
{
    start_qmp();
    negotiate();
    say("{'execute': 'slow', 'id': 1}{'execute': 'fast', 'id': 2}");
    say("{'execute': 'fast', 'id': 3}");
    hear("\"id\": 3}");
    g_assert_cmpstr(heard->str, ==,
                    "{\"return\": \"slow\", \"id\": 1}\r\n{\"return\": \"fast\", \"id\": 2}\r\n"
                    "{\"return\": \"fast\", \"id\": 3}\r\n");
    end();
}

/* More requests than may wait arrive while one runs: none is lost. */
static void test_flood_is_answered(void)
{
    g_autoptr(GString) flood = g_string_new("{'execute': 'slow', 'id': 0}");

    for (int i = 1; i <= 200; i++) {
        g_string_append_printf(flood, "{'execute': 'fast', 'id': %d}", i);
    }
    start_qmp();
    negotiate();
    say(flood->str);
    hear("\"id\": 200}");
    end();
}

static void test_survives_garbage(void)
{
    start_qmp();
    negotiate();
    say("{'execute' 'fast'}");
    hear("JSON parse error");
    forget();
    say("\xff\x01[[[[}}}}");
    say("{'execute': 'fast'}");
    hear("{\"return\": \"fast\"}\r\n");
    end();
}

static void test_event_comes_before_reply(void)
{
    start_qmp();
    negotiate();
    say("{'execute': 'quit'}");
    hear("{\"return\": {}}\r\n");
    g_assert_nonnull(strstr(heard->str, "\"event\": \"SHUTDOWN\"}\r\n{\"return\": {}}\r\n"));
    g_assert_cmpint(quits, ==, 1);
    end();
}

static void test_no_event_before_negotiation(void)
{
    start_qmp();
    qapi_event_emit("EARLY", NULL);
    negotiate();
    qapi_event_emit("LATE", json_pack("{s:i}", "n", 1));
    hear("\"event\": \"LATE\", \"data\": {\"n\": 1}}\r\n");
    g_assert_null(strstr(heard->str, "EARLY"));
    end();
}

static void *emit_elsewhere(void *opaque)
{
    qapi_event_emit("FOREIGN", NULL);
    return NULL;
}

static void test_event_from_other_thread(void)
{
    start_qmp();
    negotiate();
    g_thread_join(g_thread_new("other", emit_elsewhere, NULL));
    hear("\"event\": \"FOREIGN\"}\r\n");
    end();
}

static int count(const char *text)
{
    int n = 0;

    for (const char *p = heard->str; (p = strstr(p, text)); p++) {
        n++;
    }
    return n;
}

static void emit_error(const char *path, const char *action, int n)
{
    qapi_event_emit("BLOCK_IO_ERROR",
                    json_pack("{s:s,s:s,s:i}", "qom-path", path, "action", action, "n", n));
}

/* A burst shows its first, and its last once the interval is over; guest time decides. */
static void test_event_rate_limit(void)
{
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL);

    start_qmp();
    negotiate();
    for (int i = 0; i < 20; i++) {
        emit_error("/a", "report", i);
    }
    emit_error("/b", "report", 100);
    emit_error("/a", "stop", 101);
    qapi_event_emit("MARK", NULL);
    hear("MARK");
    g_assert_cmpint(count("BLOCK_IO_ERROR"), ==, 3);
    g_assert_cmpint(count("\"n\": 0"), ==, 1);
    clock_virtual_set_ns(now + 1000000000);
    hear("\"n\": 19");
    g_assert_cmpint(count("BLOCK_IO_ERROR"), ==, 4);
    clock_virtual_set_ns(now + 3000000000);
    aio_poll(aio_context_main(), false);
    emit_error("/a", "report", 55);
    hear("\"n\": 55");
    end();
}

/* --- Clients that do not read --- */

static void keep_report(void *opaque, const char *text)
{
    g_string_append(opaque, text);
}

/* Each of a bit more than 64 KiB. */
static void emit_big_events(int n)
{
    g_autofree char *text = g_strnfill(1 << 16, 'x');

    for (int i = 0; i < n; i++) {
        qapi_event_emit("BIG", json_pack("{s:s}", "x", text));
    }
}

/* Read what comes until it is @bytes or, after 30 s or the end of the connection, less. */
static size_t swallow(size_t bytes, bool *ended)
{
    gint64 limit = g_get_monotonic_time() + 30 * G_USEC_PER_SEC;
    static char buf[1 << 20];
    size_t got = 0;

    *ended = false;
    while (got < bytes && !*ended && g_get_monotonic_time() < limit) {
        aio_poll(aio_context_main(), false);
        ssize_t n = read(client, buf, MIN(sizeof(buf), bytes - got));
        *ended = !n;
        got += n > 0 ? (size_t)n : 0;
    }
    return got;
}

static void test_unread_events(void)
{
    g_autoptr(GString) reports = g_string_new(NULL);
    bool ended;

    error_set_sink(keep_report, reports);
    start_qmp();
    negotiate();
    /* Just below the limit of 64 MiB, everything waits for a client that is slow. */
    emit_big_events(1000);
    swallow(1000 << 16, &ended);
    g_assert_false(ended);
    say("{'execute': 'fast'}");
    hear("{\"return\": \"fast\"}\r\n");
    g_assert_cmpstr(reports->str, ==, "");
    /* Beyond it the connection ends. */
    emit_big_events(1200);
    g_assert_cmpuint(swallow(SIZE_MAX, &ended), <, 64 << 20);
    g_assert_true(ended);
    g_autofree char *text = g_strdup_printf("chardev '%s': too much was left unread, hanging up", chardev_label(server));
    g_assert_nonnull(strstr(reports->str, text));
    g_string_truncate(reports, 0);
    emit_big_events(1);
    end();
    g_assert_cmpstr(reports->str, ==, "");
    error_set_sink(NULL, NULL);
}

static void test_unread_replies(void)
{
    enum { REQUESTS = 40 };
    bool ended;

    start_qmp();
    negotiate();
    for (int i = 0; i < REQUESTS; i++) {
        say("{'execute': 'big'}");
        aio_poll(aio_context_main(), false);
    }
    g_assert_cmpint(bigs, <, 20);
    g_assert_cmpuint(swallow(REQUESTS << 20, &ended), ==, REQUESTS << 20);
    g_assert_cmpint(bigs, ==, REQUESTS);
    end();
}

/* All requests come in one piece: those that are too many wait for the client, too. */
static void test_unread_replies_to_many(gconstpointer oob)
{
    enum { REQUESTS = 60 };
    g_autoptr(GString) text = g_string_new(NULL);
    int before = bigs;
    bool ended;

    start_qmp();
    say(oob ? "{'execute': 'qmp_capabilities', 'arguments': {'enable': ['oob']}}" : "{'execute': 'qmp_capabilities'}");
    hear("{\"return\": {}}\r\n");
    forget();
    for (int i = 0; i < REQUESTS; i++) {
        g_string_append(text, "{'execute': 'big'}");
    }
    say(text->str);
    for (int i = 0; i < 20; i++) {
        aio_poll(aio_context_main(), false);
    }
    g_assert_cmpint(bigs - before, <, 30);
    emit_big_events(1);
    g_assert_cmpuint(swallow(REQUESTS << 20, &ended), ==, REQUESTS << 20);
    g_assert_cmpint(bigs - before, ==, REQUESTS);
    say("{'execute': 'fast'}");
    hear("{\"return\": \"fast\"}\r\n");
    end();
}

/* Who leaves while some of its requests wait takes them along. */
static void test_unread_and_gone(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    int before = bigs;

    start_server(true);
    connect_to_server();
    negotiate();
    for (int i = 0; i < 60; i++) {
        g_string_append(text, "{'execute': 'big'}");
    }
    say(text->str);
    while (bigs == before) {
        aio_poll(aio_context_main(), false);
    }
    close(client);
    forget();
    connect_to_server();
    say("{'execute': 'qmp_capabilities'}{'execute': 'fast'}");
    hear("{\"return\": \"fast\"}\r\n");
    g_assert_null(strstr(heard->str, "error"));
    g_assert_cmpint(bigs - before, <, 30);
    end_server();
}

static void test_unread_output(void)
{
    enum { LINES = 20, BYTES = LINES * (4 << 20) };
    g_autoptr(GString) text = g_string_new(NULL);
    bool ended;

    start_hmp();
    floods = 0;
    for (int i = 0; i < LINES; i++) {
        g_string_append(text, "flood\n");
    }
    say(text->str);
    for (int i = 0; i < 20; i++) {
        aio_poll(aio_context_main(), false);
    }
    g_assert_cmpint(floods, <, 10);
    g_assert_cmpuint(swallow(BYTES, &ended), ==, BYTES);
    say("none\n");
    hear("{}");
    g_assert_cmpint(floods, ==, LINES);
    end();
}

static void test_chardev_is_exclusive(void)
{
    Error *err = NULL;

    start_qmp();
    g_assert_false(monitor_new_compat(server, true, false, &err));
    g_autofree char *text = g_strdup_printf("chardev '%s' is already in use", chardev_label(server));
    g_assert_cmpstr(error_get_pretty(err), ==, text);
    error_free(err);
    negotiate();
    end();
}

/* --- HMP --- */

typedef struct LineCase {
    const char *label, *line, *answer;
} LineCase;

static const LineCase line_cases[] = {
    {"empty", "", ""},
    {"spaces", "   ", ""},
    {"unknown", "nosuch", "unknown command: 'nosuch'\n"},
    {"unknown-info", "info nosuch", "unknown command: 'info nosuch'\n"},
    {"alias", "n", "{}\n"},
    {"extra", "none x", "none|n: extraneous characters at the end of line\nTry \"help none\" for more information\n"},
    {"word-missing", "words", "words: string expected\nTry \"help words\" for more information\n"},
    {"word-optional", "words x", "{\"a\": \"x\"}\n"},
    {"words", "words x y", "{\"b\": \"y\", \"a\": \"x\"}\n"},
    {"quoted", "words \"x y\" \"\\\"\"", "{\"b\": \"\\\"\", \"a\": \"x y\"}\n"},
    {"open-quote", "words \"x", "words: string expected\nTry \"help words\" for more information\n"},
    {"rest-of-line", "rest x y  z ", "{\"b\": \"y  z\", \"a\": \"x\"}\n"},
    {"number", "number 0x10", "{\"n\": 16}\n"},
    {"number-garbage", "number x",
     "invalid char 'x' in expression\nnumber: integer expected\nTry \"help number\" for more information\n"},
    {"size-in-mebibytes", "size 2", "{\"n\": 2097152}\n"},
    {"size-suffix", "size 2k", "{\"n\": 2048}\n"},
    {"size-garbage", "size x", "invalid size\nTry \"help size\" for more information\n"},
    {"flag-given", "flag -f", "{\"force\": true}\n"},
    {"flag-missing", "flag on", "{\"on\": true}\n"},
    {"report-is-an-answer", "report", "warning: careful\n"},
    {"info", "info thing", "{}\n"},
    {"help-of-one", "help number", "number n -- takes a number\n"},
    {"help-of-info", "info", "info thing  -- shows a thing\n"},
};

static void test_line(const void *opaque)
{
    const LineCase *c = opaque;
    g_autoptr(GString) out = g_string_new(NULL);

    hmp_run_line(c->line, out);
    if (g_str_has_prefix(c->label, "words") || g_str_has_prefix(c->label, "quoted") ||
        g_str_has_prefix(c->label, "rest")) {
        /* The order of members is the serializer's affair. */
        g_autoptr(json_t) got = qjson_parse(out->str, &error_abort), want = qjson_parse(c->answer, &error_abort);
        g_assert_true(json_equal(got, want));
        return;
    }
    g_assert_cmpstr(out->str, ==, c->answer);
}

static void test_echo(void)
{
    start_hmp();
    say("n\n");
    hear("{}\r\n(qemu) ");
    g_assert_cmpstr(heard->str, ==, "n\033[K\r\n{}\r\n(qemu) ");
    forget();
    say("nx\177\n");
    hear("{}\r\n(qemu) ");
    g_assert_true(g_str_has_suffix(heard->str, "n\033[K\r\n{}\r\n(qemu) "));
    end();
}

static void test_history_and_cursor(void)
{
    start_hmp();
    say("words b\n");
    hear("(qemu) ");
    forget();
    /* Up brings the line back; left, backspace and typing change it before the last letter. */
    say("\033[A\033[D\001\033[C\033[C\033[C\033[C\033[C\033[Cxy\n");
    hear("(qemu) ");
    g_assert_nonnull(strstr(heard->str, "{\"a\": \"xyb\"}\r\n"));
    forget();
    say("inf\tthing\n");
    hear("(qemu) ");
    end();
}

static void reconnect_meanwhile(json_t *args, GString *out)
{
    char c;

    close(client);
    connect_to_server();
    for (int i = 0; i < 20; i++) {
        aio_poll(aio_context_main(), false);
    }
    /* The session of the old client is still in use, by this command. */
    g_assert_cmpint(recv(client, &c, 1, MSG_PEEK), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
}

static void test_reconnect_during_command(void)
{
    start_server(false);
    connect_to_server();
    hear("(qemu) ");
    say("flood\nreconnect\nn\n");
    forget();
    hear("(qemu) ");
    g_assert_true(g_str_has_prefix(heard->str, "QEMU "));
    end_server();
}

static void test_pretty_is_for_qmp(void)
{
    Error *err = NULL;

    connect_client();
    g_assert_false(monitor_new_compat(server, false, true, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "'pretty' is not compatible with HMP monitors");
    error_free(err);
    close(client);
}

static void add_cases(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(line_cases); i++) {
        g_autofree char *path = g_strdup_printf("/monitor/hmp/line/%s", line_cases[i].label);
        g_test_add_data_func(path, &line_cases[i], test_line);
    }
}

int main(int argc, char **argv)
{
    monitor_env_init(&argc, &argv, hmp_tables);
    g_test_add_func("/monitor/qmp/needs-negotiation", test_needs_negotiation);
    g_test_add_func("/monitor/qmp/order-is-kept", test_order_is_kept);
    g_test_add_func("/monitor/qmp/flood-is-answered", test_flood_is_answered);
    g_test_add_func("/monitor/qmp/survives-garbage", test_survives_garbage);
    g_test_add_func("/monitor/qmp/event-comes-before-reply", test_event_comes_before_reply);
    g_test_add_func("/monitor/qmp/no-event-before-negotiation", test_no_event_before_negotiation);
    g_test_add_func("/monitor/qmp/event-from-other-thread", test_event_from_other_thread);
    g_test_add_func("/monitor/qmp/event-rate-limit", test_event_rate_limit);
    g_test_add_func("/monitor/qmp/events-that-nobody-reads-end-the-connection", test_unread_events);
    g_test_add_func("/monitor/qmp/replies-that-nobody-reads-hold-requests-back", test_unread_replies);
    g_test_add_data_func("/monitor/qmp/replies-that-nobody-reads-hold-back-what-came-at-once", NULL,
                         test_unread_replies_to_many);
    g_test_add_data_func("/monitor/qmp/replies-that-nobody-reads-hold-back-what-came-at-once-with-oob", "oob",
                         test_unread_replies_to_many);
    g_test_add_func("/monitor/qmp/requests-held-back-go-with-their-client", test_unread_and_gone);
    g_test_add_func("/monitor/hmp/output-that-nobody-reads-holds-lines-back", test_unread_output);
    g_test_add_func("/monitor/qmp/chardev-is-exclusive", test_chardev_is_exclusive);
    g_test_add_func("/monitor/hmp/echo-as-clients-filter-it", test_echo);
    g_test_add_func("/monitor/hmp/history-and-cursor", test_history_and_cursor);
    g_test_add_func("/monitor/hmp/reconnect-waits-for-the-command", test_reconnect_during_command);
    g_test_add_func("/monitor/hmp/pretty-is-for-qmp", test_pretty_is_for_qmp);
    add_cases();
    return monitor_env_run();
}
