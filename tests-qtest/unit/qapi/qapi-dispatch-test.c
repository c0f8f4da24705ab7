/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests through generated marshalling to handlers and back; protocol errors; events. */
#include "qapi/qapi-commands-test.h"
#include "qapi/qapi-commands.h"
#include "qapi/qapi-events-test.h"
#include "qapi/qapi-introspect.h"

#include <glib.h>
#include <string.h>

static int nothing_calls, silent_calls;

void qmp_test_nothing(Error **errp)
{
    nothing_calls++;
}

TestOptional *qmp_test_echo(bool has_number, int64_t number, const char *text, bool has_colour, TestColour colour,
                            TestOptional *nested, TestOptionalList *list, json_t *anything, bool has_if, bool q_if,
                            bool has_long, uint8_t q_long, Error **errp)
{
    TestOptional args = {.has_number = has_number, .number = number, .text = (char *)text, .has_colour = has_colour,
                         .colour = colour, .nested = nested, .list = list, .anything = anything, .has_if = has_if,
                         .q_if = q_if, .has_long = has_long, .q_long = q_long};

    return qapi_clone_TestOptional(&args);
}

TestUnion *qmp_test_boxed(TestUnion *arg, Error **errp)
{
    return qapi_clone_TestUnion(arg);
}

TestBase *qmp_test_add(int64_t a, bool has_b, int64_t b, const char *label, Error **errp)
{
    TestBase *base = g_new0(TestBase, 1);

    base->id = a + (has_b ? b : 0);
    base->name = g_strdup(label ? label : "none");
    return base;
}

int64_t qmp_test_scalar(int64_t value, Error **errp)
{
    return value * 2;
}

char *qmp_test_text(Error **errp)
{
    return g_strdup("text");
}

json_t *qmp_test_any(json_t *value, Error **errp)
{
    return json_incref(value);
}

TestColour qmp_test_enum(Error **errp)
{
    return TEST_COLOUR_DARK_BLUE;
}

intList *qmp_test_list(int64_t n, Error **errp)
{
    intList *list = NULL, **tail = &list;

    for (int64_t i = 0; i < n; i++) {
        QAPI_LIST_APPEND(tail, i);
    }
    return list;
}

TestBase *qmp_test_fail(const char *message, Error **errp)
{
    error_set(errp, ERROR_CLASS_DEVICE_NOT_FOUND, "%s", message);
    return NULL;
}

void qmp_test_raw(json_t *args, json_t **ret, Error **errp)
{
    if (json_object_get(args, "fail")) {
        *ret = json_string("must not be seen");
        error_setg(errp, "as told");
        return;
    }
    *ret = json_incref(args);
}

void qmp_test_silent(Error **errp)
{
    silent_calls++;
}

void qmp_test_oob(Error **errp)
{
}

static void check_with(const char *request, const QmpDispatchOptions *options, const char *expected)
{
    g_autoptr(json_t) json = qjson_parse(request, &error_abort);
    g_autoptr(json_t) reply = qmp_dispatch(qmp_commands, json, options);

    g_assert_nonnull(reply);
    g_autoptr(GString) text = qjson_to_string(reply, false);
    g_assert_cmpstr(text->str, ==, expected);
}

static void check(const char *request, const char *expected)
{
    QmpDispatchOptions options = {.machine_ready = true};

    check_with(request, &options, expected);
}

#define GENERIC(text) "{\"error\": {\"class\": \"GenericError\", \"desc\": \"" text "\"}}"

static void test_replies(void)
{
    nothing_calls = 0;
    check("{'execute': 'test-nothing'}", "{\"return\": {}}");
    check("{'execute': 'test-nothing', 'arguments': {}}", "{\"return\": {}}");
    g_assert_cmpint(nothing_calls, ==, 2);
    check("{'execute': 'test-add', 'arguments': {'a': 1}}", "{\"return\": {\"name\": \"none\", \"id\": 1}}");
    check("{'execute': 'test-add', 'arguments': {'a': 1, 'b': 2, 'label': 'l'}}",
          "{\"return\": {\"name\": \"l\", \"id\": 3}}");
    check("{'execute': 'test-scalar', 'arguments': {'value': 21}}", "{\"return\": 42}");
    check("{'execute': 'test-text'}", "{\"return\": \"text\"}");
    check("{'execute': 'test-any', 'arguments': {'value': [null]}}", "{\"return\": [null]}");
    check("{'execute': 'test-enum'}", "{\"return\": \"dark-blue\"}");
    check("{'execute': 'test-list', 'arguments': {'n': 3}}", "{\"return\": [0, 1, 2]}");
    check("{'execute': 'test-list', 'arguments': {'n': 0}}", "{\"return\": []}");
    check("{'execute': 'test-raw', 'arguments': {'x': 1}}", "{\"return\": {\"x\": 1}}");
    check("{'execute': 'test-boxed', 'arguments': {'colour': 'green', 'count': 3}}",
          "{\"return\": {\"colour\": \"green\", \"count\": 3}}");
    check("{'execute': 'test-echo', 'arguments': {'if': false, 'list': [{'text': 'x'}]}}",
          "{\"return\": {\"list\": [{\"text\": \"x\"}], \"if\": false}}");
}

static void test_id(void)
{
    check("{'id': 1, 'execute': 'test-nothing'}", "{\"return\": {}, \"id\": 1}");
    check("{'id': null, 'execute': 'test-nothing'}", "{\"return\": {}, \"id\": null}");
    check("{'id': {'a': [1]}, 'execute': 'nosuch'}",
          "{\"id\": {\"a\": [1]}, \"error\": {\"class\": \"CommandNotFound\", \"desc\": \"The command nosuch has not "
          "been found\"}}");
}

static void test_protocol_errors(void)
{
    check("[]", GENERIC("QMP input must be a JSON object"));
    check("5", GENERIC("QMP input must be a JSON object"));
    check("{}", GENERIC("QMP input lacks member 'execute'"));
    check("{'arguments': {}}", GENERIC("QMP input lacks member 'execute'"));
    check("{'execute': 1}", GENERIC("QMP input member 'execute' must be a string"));
    check("{'execute': 'test-nothing', 'foo': 1}", GENERIC("QMP input member 'foo' is unexpected"));
    check("{'execute': 'test-nothing', 'arguments': []}", GENERIC("QMP input member 'arguments' must be an object"));
    check("{'execute': 'nosuch'}", "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"The command nosuch has "
                                   "not been found\"}}");
    check("{'execute': 'test-gone'}", "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"The command test-gone "
                                      "has not been found\"}}");
}

static void test_argument_errors(void)
{
    nothing_calls = 0;
    check("{'execute': 'test-nothing', 'arguments': {'x': 1}}", GENERIC("Parameter 'x' is unexpected"));
    g_assert_cmpint(nothing_calls, ==, 0);
    check("{'execute': 'test-add'}", GENERIC("Parameter 'a' is missing"));
    check("{'execute': 'test-add', 'arguments': {'a': 1, 'label': 5}}",
          GENERIC("Invalid parameter type for 'label', expected: string"));
    check("{'execute': 'test-add', 'arguments': {'a': 1, 'label': 'x', 'c': 5}}",
          GENERIC("Parameter 'c' is unexpected"));
    check("{'execute': 'test-boxed', 'arguments': {'colour': 'x'}}",
          GENERIC("Parameter 'colour' does not accept value 'x'"));
}

static void test_handler_errors(void)
{
    check("{'execute': 'test-fail', 'arguments': {'message': 'm'}}",
          "{\"error\": {\"class\": \"DeviceNotFound\", \"desc\": \"m\"}}");
    check("{'execute': 'test-raw', 'arguments': {'fail': 1}}", GENERIC("as told"));
}

static void test_oob(void)
{
    QmpDispatchOptions with = {.machine_ready = true, .allow_oob = true};

    check("{'exec-oob': 'test-oob'}", GENERIC("QMP input member 'exec-oob' is unexpected"));
    check_with("{'exec-oob': 'test-oob'}", &with, "{\"return\": {}}");
    check_with("{'execute': 'test-oob'}", &with, "{\"return\": {}}");
    check_with("{'exec-oob': 'test-nothing'}", &with, GENERIC("The command test-nothing does not support OOB"));
    check_with("{'exec-oob': 1}", &with, GENERIC("QMP input member 'exec-oob' must be a string"));

    g_autoptr(json_t) both = qjson_parse("{'execute': 'test-oob', 'exec-oob': 'test-oob'}", &error_abort);
    g_autoptr(json_t) oob = qjson_parse("{'exec-oob': 'test-oob'}", &error_abort);
    g_autoptr(json_t) number = qjson_parse("{'exec-oob': 1}", &error_abort);
    g_autoptr(json_t) array = json_array();
    g_assert_false(qmp_is_oob(both));
    g_assert_true(qmp_is_oob(oob));
    g_assert_true(qmp_is_oob(number));
    g_assert_false(qmp_is_oob(array));
    check_with("{'execute': 'test-oob', 'exec-oob': 'test-oob'}", &with,
               GENERIC("QMP input member 'execute' clashes with 'exec-oob'"));
}

static void test_preconfig(void)
{
    QmpDispatchOptions early = {0};
    g_autoptr(json_t) silent = qjson_parse("{'execute': 'test-silent'}", &error_abort);

    check_with("{'execute': 'test-nothing'}", &early,
               GENERIC("The command 'test-nothing' is permitted only after machine initialization has completed"));
    silent_calls = 0;
    g_assert_null(qmp_dispatch(qmp_commands, silent, &early));
    g_assert_cmpint(silent_calls, ==, 1);
}

/* Without a success response an error is still answered. */
static void test_silent_errors(void)
{
    check("{'execute': 'test-silent', 'arguments': {'x': 1}}", GENERIC("Parameter 'x' is unexpected"));
}

static void test_table(void)
{
    const QmpCommand *oob = qmp_find_command(qmp_commands, "test-oob");
    const QmpCommand *silent = qmp_find_command(qmp_commands, "test-silent");

    g_assert_cmpuint(oob->flags, ==, QMP_ALLOW_OOB);
    g_assert_cmpuint(silent->flags, ==, QMP_NO_SUCCESS_RESPONSE | QMP_ALLOW_PRECONFIG);
    g_assert_null(qmp_find_command(qmp_commands, "test-gone"));
}

static void keep_event(void *opaque, const char *name, json_t *data)
{
    GString *out = opaque;

    g_string_append_printf(out, "%s ", name);
    if (data) {
        qjson_append(out, data, false);
    }
    json_decref(data);
}

static void test_events(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    TestColourList *colours = NULL;
    TestUnion boxed = {.colour = TEST_COLOUR_GREEN, .u.green.count = 3};

    QAPI_LIST_PREPEND(colours, TEST_COLOUR_GREEN);
    qapi_event_set_sink(keep_event, out);
    qapi_event_send_test_plain();
    qapi_event_send_test_data("n", true, 5, NULL, colours);
    qapi_event_send_test_data("n", false, 0, "note", NULL);
    qapi_event_send_test_boxed(&boxed);
    qapi_event_set_sink(NULL, NULL);
    g_assert_cmpstr(out->str, ==,
                    "TEST_PLAIN TEST_DATA {\"name\": \"n\", \"colours\": [\"green\"], \"count\": 5}"
                    "TEST_DATA {\"name\": \"n\", \"colours\": [], \"note\": \"note\"}"
                    "TEST_BOXED {\"colour\": \"green\", \"count\": 3}");
    qapi_free_TestColourList(colours);
}

static void test_events_without_sink(void)
{
    TestUnion boxed = {.colour = TEST_COLOUR_GREEN};

    qapi_event_set_sink(NULL, NULL);
    qapi_event_send_test_boxed(&boxed);
    qapi_event_send_test_plain();
}

static json_t *find_entry(json_t *entries, const char *name)
{
    size_t i;
    json_t *entry;

    json_array_foreach(entries, i, entry) {
        if (!strcmp(json_string_value(json_object_get(entry, "name")), name)) {
            return entry;
        }
    }
    return NULL;
}

static json_t *follow(json_t *entries, json_t *entry, const char *key)
{
    return find_entry(entries, json_string_value(json_object_get(entry, key)));
}

static void test_introspection(void)
{
    g_autoptr(json_t) entries = json_array();

    for (const char *const *text = qapi_schema_entries; *text; text++) {
        json_array_append_new(entries, qjson_parse(*text, &error_abort));
    }
    json_t *add = find_entry(entries, "test-add");
    g_autoptr(json_t) arguments = qjson_parse(
        "[{'name': 'a', 'type': 'int'}, {'name': 'b', 'type': 'int', 'default': null}, {'name': 'label', 'type': "
        "'str', 'default': null}]", &error_abort);
    g_assert_true(json_equal(json_object_get(follow(entries, add, "arg-type"), "members"), arguments));

    json_t *boxed = follow(entries, find_entry(entries, "test-boxed"), "arg-type");
    g_assert_cmpstr(json_string_value(json_object_get(boxed, "tag")), ==, "colour");
    g_assert_cmpuint(json_array_size(json_object_get(boxed, "variants")), ==, 3);

    json_t *oob = find_entry(entries, "test-oob");
    g_autoptr(json_t) features = qjson_parse("['deprecated']", &error_abort);
    g_assert_true(json_is_true(json_object_get(oob, "allow-oob")));
    g_assert_true(json_equal(json_object_get(oob, "features"), features));
    g_assert_null(find_entry(entries, "test-gone"));

    json_t *list = follow(entries, find_entry(entries, "test-list"), "ret-type");
    g_assert_cmpstr(json_string_value(json_object_get(list, "name")), ==, "[int]");
    g_assert_cmpstr(json_string_value(json_object_get(list, "element-type")), ==, "int");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi/dispatch/replies", test_replies);
    g_test_add_func("/qapi/dispatch/id-comes-back", test_id);
    g_test_add_func("/qapi/dispatch/protocol-errors", test_protocol_errors);
    g_test_add_func("/qapi/dispatch/argument-errors-before-handler", test_argument_errors);
    g_test_add_func("/qapi/dispatch/handler-errors", test_handler_errors);
    g_test_add_func("/qapi/dispatch/oob", test_oob);
    g_test_add_func("/qapi/dispatch/preconfig", test_preconfig);
    g_test_add_func("/qapi/dispatch/silent-command-still-reports-errors", test_silent_errors);
    g_test_add_func("/qapi/dispatch/table-flags", test_table);
    g_test_add_func("/qapi/events/data", test_events);
    g_test_add_func("/qapi/events/dropped-without-sink", test_events_without_sink);
    g_test_add_func("/qapi/introspection/describes-schema", test_introspection);
    return g_test_run();
}
