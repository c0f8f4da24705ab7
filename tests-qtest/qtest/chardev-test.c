/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices that come and go at run time, by QMP and HMP: their replies, and what they do. */
#include "common.h"

#include <string.h>
#include <unistd.h>

/* A request, or a line of HMP; PATH stands for a name in the scratch directory, in both. */
typedef struct Step {
    const char *send, *answer;
} Step;

typedef struct Dialogue {
    const char *name;
    Step steps[12];
} Dialogue;

#define ADD(id, backend) "{'execute': 'chardev-add', 'arguments': {'id': '" id "', 'backend': {" backend "}}}"
#define CHANGE(id, backend) "{'execute': 'chardev-change', 'arguments': {'id': '" id "', 'backend': {" backend "}}}"
#define REMOVE(id) "{'execute': 'chardev-remove', 'arguments': {'id': '" id "'}}"
#define BREAK(id) "{'execute': 'chardev-send-break', 'arguments': {'id': '" id "'}}"
#define NUL "'type': 'null', 'data': {}"
#define FILE_AT(path) "'type': 'file', 'data': {'out': '" path "'}"
#define SOCKET(addr, more) "'type': 'socket', 'data': {'addr': {" addr "}" more "}"
#define UNIX(path) "'type': 'unix', 'data': {'path': '" path "'}"
#define INET(port) "'type': 'inet', 'data': {'host': '127.0.0.1', 'port': '" port "'}"
#define FD(name) "'type': 'fd', 'data': {'str': '" name "'}"
#define AS_CLIENT ", 'server': false"
#define DONE "{\"return\": {}}"
#define FAILS(text) "{\"error\": {\"class\": \"GenericError\", \"desc\": \"" text "\"}}"
#define CANNOT_ADD(text) FAILS("Failed to add chardev 'a': " text)

/* "boot" is there from the beginning; the monitor that speaks is "compat_monitor0". */
static const Dialogue dialogues[] = {
    {"qmp/add-and-remove", {{ADD("a", NUL), DONE}, {ADD("a", NUL), FAILS("Chardev with id 'a' already exists")},
                            {REMOVE("a"), DONE}, {REMOVE("a"), FAILS("Chardev 'a' not found")}, {ADD("a", NUL), DONE}}},
    {"qmp/any-id", {{ADD("1 x", NUL), DONE}, {ADD("", NUL), DONE}, {REMOVE("1 x"), DONE}, {REMOVE(""), DONE}}},
    {"qmp/from-the-command-line", {{ADD("boot", NUL), FAILS("Chardev with id 'boot' already exists")}, {REMOVE("boot"), DONE},
                                   {ADD("boot", NUL), DONE}}},
    {"qmp/in-use", {{REMOVE("compat_monitor0"), FAILS("Chardev 'compat_monitor0' is busy")},
                    {CHANGE("compat_monitor0", NUL), FAILS("Chardev user does not support chardev hotswap")}}},
    {"qmp/break", {{BREAK("a"), FAILS("Chardev 'a' not found")}, {BREAK("boot"), DONE}, {BREAK("compat_monitor0"), DONE}}},
    {"qmp/change", {{CHANGE("a", NUL), FAILS("Chardev 'a' does not exist")}, {CHANGE("boot", FILE_AT("PATH")), DONE},
                    {CHANGE("boot", FILE_AT("/nosuch/x")),
                     FAILS("Failed to add chardev 'boot': Could not open '/nosuch/x': No such file or directory")},
                    {REMOVE("boot"), FAILS("Chardev 'boot' not found")}}},
    {"qmp/type", {{ADD("a", "'data': {}"), FAILS("Parameter 'backend.type' is missing")},
                  {ADD("a", "'type': 'null'"), FAILS("Parameter 'backend.data' is missing")},
                  {ADD("a", "'type': 'foo', 'data': {}"), FAILS("Parameter 'type' does not accept value 'foo'")},
                  {ADD("a", "'type': 'null', 'data': {'x': 1}"), FAILS("Parameter 'backend.data.x' is unexpected")}}},
    {"qmp/file", {{ADD("a", "'type': 'file', 'data': {}"), FAILS("Parameter 'backend.data.out' is missing")},
                  {ADD("a", FILE_AT("/nosuch/x")), CANNOT_ADD("Could not open '/nosuch/x': No such file or directory")},
                  {ADD("a", FILE_AT("PATH")), DONE}}},
    {"qmp/socket-listens-by-default",
     {{ADD("a", SOCKET(UNIX("/nosuch/p"), "")), CANNOT_ADD("Failed to bind socket to /nosuch/p: No such file or directory")},
      {ADD("a", SOCKET(UNIX("PATH"), "")), DONE}, {"info chardev", "a: filename=disconnected:unix:PATH,server=on\r\n"}}},
    {"qmp/socket-connects",
     {{ADD("a", SOCKET(UNIX("/nosuch/p"), AS_CLIENT)), CANNOT_ADD("Failed to connect to '/nosuch/p': No such file or directory")},
      {ADD("a", SOCKET(INET("1"), AS_CLIENT)), CANNOT_ADD("Failed to connect to '127.0.0.1:1': Connection refused")},
      {ADD("a", SOCKET(UNIX("PATH"), "")), DONE}, {ADD("b", SOCKET(UNIX("PATH"), AS_CLIENT)), DONE}, {REMOVE("b"), DONE}}},
    {"qmp/socket-waits-as-listener-only",
     {{ADD("a", SOCKET(UNIX("PATH"), AS_CLIENT ", 'wait': false")),
       CANNOT_ADD("'wait' option is incompatible with socket in client connect mode")}}},
    {"qmp/socket-of-nobody", {{ADD("a", SOCKET(FD("1"), "")), CANNOT_ADD("File descriptor named '1' has not been found")},
                              {ADD("a", SOCKET(FD("x"), AS_CLIENT)), CANNOT_ADD("File descriptor named 'x' has not been found")}}},
    {"hmp/add-and-remove",
     {{"chardev-add null,id=a", ""},
      {"chardev-add null,id=a", "Error: attempt to add duplicate property 'a' to object (type 'container')\r\n"},
      {"chardev-remove a", ""}, {"chardev-remove a", "Error: Chardev 'a' not found\r\n"}}},
    {"hmp/in-use", {{"chardev-remove compat_monitor0", "Error: Chardev 'compat_monitor0' is busy\r\n"},
                    {"chardev-change compat_monitor0 null", "Error: Chardev user does not support chardev hotswap\r\n"}}},
    {"hmp/options",
     {{"chardev-add", "chardev-add: string expected\r\nTry \"help chardev-add\" for more information\r\n"},
      {"chardev-add null", "Error: chardev: no id specified\r\n"},
      {"chardev-add id=a", "Error: chardev: \"a\" missing backend\r\n"},
      {"chardev-add foo,id=a", "Error: 'foo' is not a valid char driver name\r\n"},
      {"chardev-add null,id=a,x=1", "Invalid parameter 'x'\r\nError: Parsing chardev args failed\r\n"},
      {"chardev-add null,id=1x", "Parameter 'id' expects an identifier\r\nIdentifiers consist of letters, digits, '-', '.', '_', "
                                 "starting with a letter.\r\nError: Parsing chardev args failed\r\n"},
      {"chardev-add file,id=a", "Error: chardev: file: no filename given\r\n"},
      {"chardev-add socket,id=a,fd=1", "Error: File descriptor named '1' has not been found\r\n"},
      {"chardev-add socket,id=a", "Error: File descriptor named '' has not been found\r\n"},
      {"chardev-add socket,id=a,path=PATH,server=on,wait=off", ""}}},
    {"hmp/change",
     {{"chardev-change a null", "Error: Chardev 'a' does not exist\r\n"},
      {"chardev-change boot null,id=b", "Error: Unexpected 'id' parameter\r\n"},
      {"chardev-change boot foo", "Error: 'foo' is not a valid char driver name\r\n"},
      {"chardev-change boot path=PATH", "Error: chardev: \"(null)\" missing backend\r\n"},
      {"chardev-change boot null,x=1", "Invalid parameter 'x'\r\nError: Parsing chardev args failed\r\n"},
      {"chardev-change boot socket,fd=1", "Error: Failed to add chardev 'boot': File descriptor named '1' has not been found\r\n"}}},
    {"hmp/break", {{"chardev-send-break a", "Error: Chardev 'a' not found\r\n"}, {"chardev-send-break boot", ""}}},
};

static char *with_path(const char *text, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(text, "PATH", -1);

    return g_strjoinv(path, parts);
}

static char *hmp_reply(QTest *t, const char *line)
{
    return qmp_hmp(t->qmp, "%s", line);
}

static void test_dialogue(gconstpointer data)
{
    const Dialogue *d = data;
    g_autofree char *path = qos_scratch_path("chardev");
    g_autofree char *monitor = qos_scratch_path("monitor");
    QTest *t = start_none("-nodefaults -chardev null,id=boot -qmp unix:%s,server=on,wait=off", monitor);

    for (const Step *s = d->steps; s->send; s++) {
        g_autofree char *send = with_path(s->send, path), *answer = with_path(s->answer, path), *got = NULL;

        if (*send == '{') {
            qmp_send_raw(t->qmp, send);
            got = qmp_reply_line(t->qmp);
            g_assert_cmpstr(got, ==, answer);
        } else {
            got = hmp_reply(t, send);
            if (g_str_has_prefix(send, "info ")) {
                g_assert_nonnull(strstr(got, answer));
            } else {
                g_assert_cmpstr(got, ==, answer);
            }
        }
    }
    qt_stop(t);
    unlink(path);
}

static void test_pty(void)
{
    QTest *t = start_none("-nodefaults");
    json_t *ret = qmp_must(t->qmp, "chardev-add", "{s:s, s:{s:s, s:{}}}", "id", "p", "backend", "type", "pty", "data");
    const char *pty = json_string_value(json_object_get(ret, "pty"));
    g_autofree char *expect = g_strdup_printf("p: filename=pty:%s\r\n", pty), *list = hmp_reply(t, "info chardev");
    g_autofree char *told = hmp_reply(t, "chardev-add pty,id=h");

    g_assert_nonnull(strstr(list, expect));
    g_assert_cmpint(access(pty, R_OK | W_OK), ==, 0);
    g_assert_true(g_regex_match_simple("^char device redirected to /dev/pts/[0-9]+ \\(label h\\)\r\n$", told, 0, 0));
    json_decref(qmp_must(t->qmp, "chardev-remove", "{s:s}", "id", "p"));
    json_decref(ret);
    qt_stop(t);
}

/* What the commands take is told the same way everywhere. */
static void test_backends(void)
{
    QTest *t = start_none("-nodefaults");
    json_t *ret = qmp_must(t->qmp, "query-chardev-backends", NULL), *item;
    g_autofree char *help = hmp_reply(t, "chardev-add help");
    size_t i;

    g_assert_true(g_str_has_prefix(help, "Available chardev backend types: \r\n"));
    g_assert_cmpuint(json_array_size(ret), >=, 5);
    json_array_foreach(ret, i, item) {
        g_autofree char *line = g_strdup_printf("  %s\r\n", json_string_value(json_object_get(item, "name")));

        g_assert_nonnull(strstr(help, line));
    }
    json_decref(ret);
    qt_stop(t);
}

static const char *const hmp_names[] = {"chardev-add", "chardev-change", "chardev-remove", "chardev-send-break"};

static void test_help(void)
{
    QTest *t = start_none("-nodefaults");
    g_autofree char *help = hmp_reply(t, "help");

    for (size_t i = 0; i < G_N_ELEMENTS(hmp_names); i++) {
        g_autofree char *start = g_strdup_printf("\n%s ", hmp_names[i]);

        g_assert_nonnull(strstr(help, start));
    }
    qt_stop(t);
}

/* A second monitor from nothing and back, twice, by the first one. */
static void test_monitor(void)
{
    g_autofree char *path = qos_scratch_path("run-time");
    QTest *t;

    if (!binary_is_v11()) {
        g_test_skip("monitors cannot be made at run time");
        return;
    }
    t = start_none("-nodefaults");
    for (int i = 0; i < 2; i++) {
        json_decref(qmp_must(t->qmp, "chardev-add", "{s:s, s:{s:s, s:{s:{s:s, s:{s:s}}}}}", "id", "c", "backend", "type",
                             "socket", "data", "addr", "type", "unix", "data", "path", path));
        json_decref(qmp_must(t->qmp, "object-add", "{s:s, s:s, s:s}", "qom-type", "monitor-qmp", "id", "m", "chardev", "c"));
        Qmp *q = qmp_dial(path);
        json_decref(qmp_negotiate(q));
        json_decref(qmp_must(q, "query-name", NULL));
        g_autofree char *busy = qmp_must_fail(q, "chardev-remove", "{s:s}", "id", "c");
        g_assert_cmpstr(busy, ==, "GenericError: Chardev 'c' is busy");
        json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "m"));
        json_decref(qmp_must(t->qmp, "chardev-remove", "{s:s}", "id", "c"));
        /* The peer learns of it, and the socket has gone with its device. */
        g_autofree char *line = qmp_any_line(q);
        g_assert_null(line);
        g_assert_cmpint(access(path, F_OK), ==, -1);
        qmp_free(q);
    }
    qt_stop(t);
}

/* Where there was room for a listener is told. */
static void test_port(void)
{
    QTest *t = start_none("-nodefaults");
    g_autofree char *list = NULL;

    json_decref(qmp_must(t->qmp, "chardev-add", "{s:s, s:{s:s, s:{s:{s:s, s:{s:s, s:s}}}}}", "id", "c", "backend", "type",
                         "socket", "data", "addr", "type", "inet", "data", "host", "127.0.0.1", "port", "0"));
    list = hmp_reply(t, "info chardev");
    g_assert_true(g_regex_match_simple("c: filename=disconnected:tcp:127.0.0.1:[1-9][0-9]*,server=on\r\n", list, 0, 0));
    qt_stop(t);
}

/* Who connects in the background may go at any time. */
static void test_reconnect(void)
{
    QTest *t;

    if (!binary_is_v11()) {
        g_test_skip("reconnect-ms is newer");
        return;
    }
    t = start_none("-nodefaults");
    for (int i = 0; i < 3; i++) {
        json_decref(qmp_must(t->qmp, "chardev-add", "{s:s, s:{s:s, s:{s:{s:s, s:{s:s, s:s}}, s:b, s:i}}}", "id", "c", "backend",
                             "type", "socket", "data", "addr", "type", "inet", "data", "host", "localhost", "port", "1",
                             "server", 0, "reconnect-ms", 1));
        if (i) {
            qt_wait_stderr(t, "Unable to connect character device c: ");
        }
        json_decref(qmp_must(t->qmp, "chardev-remove", "{s:s}", "id", "c"));
    }
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(dialogues); i++) {
        add_case(test_dialogue, &dialogues[i], "/chardev/%s", dialogues[i].name);
    }
    g_test_add_func("/chardev/pty-tells-its-name", test_pty);
    g_test_add_func("/chardev/backends-are-listed", test_backends);
    g_test_add_func("/chardev/commands-are-in-help", test_help);
    g_test_add_func("/chardev/monitor-at-run-time", test_monitor);
    g_test_add_func("/chardev/listener-tells-its-port", test_port);
    g_test_add_func("/chardev/removed-while-connecting", test_reconnect);
    return g_test_run();
}
