/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON text: what the parser accepts and says, how it recovers, and what the serializer writes. */
#include "qapi/json.h"

#include <glib.h>
#include <math.h>
#include <string.h>

/* Everything that a parser emits, one line each: the value's text, or "!" and the error. */
static void collect(void *opaque, json_t *value, Error *err)
{
    GString *out = opaque;

    if (out->len) {
        g_string_append_c(out, '\n');
    }
    g_assert(!value != !err);
    if (value) {
        qjson_append(out, value, false);
        json_decref(value);
    } else {
        g_string_append_printf(out, "!%s", error_get_pretty(err));
        error_free(err);
    }
}

static char *parse_all(const char *text, size_t len, size_t chunk)
{
    GString *out = g_string_new(NULL);
    g_autoptr(JsonParser) parser = json_parser_new(collect, out);

    for (size_t pos = 0; pos < len; pos += chunk) {
        json_parser_feed(parser, text + pos, MIN(chunk, len - pos));
    }
    json_parser_flush(parser);
    return g_string_free(out, FALSE);
}

/* However the text is cut, the result is the same. */
static void check_stream(const char *text, const char *expected)
{
    for (size_t chunk = 1; chunk <= 7; chunk += 2) {
        g_autofree char *got = parse_all(text, strlen(text), chunk);

        g_assert_cmpstr(got, ==, expected);
    }
}

static void check_text(const char *text, const char *expected)
{
    Error *err = NULL;
    g_autoptr(json_t) value = qjson_parse(text, &err);

    if (err) {
        g_error("'%s' gives %s", text, error_get_pretty(err));
    }
    g_autoptr(GString) got = qjson_to_string(value, false);
    g_assert_cmpstr(got->str, ==, expected);
}

static void check_error(const char *text, const char *expected)
{
    Error *err = NULL;
    json_t *value = qjson_parse(text, &err);

    g_assert_null(value);
    g_assert_nonnull(err);
    g_assert_cmpstr(error_get_pretty(err), ==, expected);
    error_free(err);
}

static void test_scalars(void)
{
    check_text("0", "0");
    check_text("-0", "0");
    check_text("-0.0", "-0");
    check_text("9223372036854775807", "9223372036854775807");
    check_text("-9223372036854775808", "-9223372036854775808");
    check_text("99999999999999999999", "1e+20");
    check_text("0.1", "0.10000000000000001");
    check_text("1e5", "100000");
    check_text("1.5E+3", "1500");
    check_text("true", "true");
    check_text(" false\n", "false");
    check_text("null", "null");
}

static void test_strings(void)
{
    check_text("'single'", "\"single\"");
    check_text("'a\\'b\"c'", "\"a'b\\\"c\"");
    check_text("\"\\b\\f\\n\\r\\t\\/\\\\\"", "\"\\b\\f\\n\\r\\t/\\\\\"");
    check_text("'\\u0000\\u007f\\u20ac'", "\"\\u0000\\u007F\\u20AC\"");
    check_text("'\\ud83d\\ude00'", "\"\\uD83D\\uDE00\"");
    check_text("'\xf0\x9f\x98\x80\xc3\xa9\x7f'", "\"\\uD83D\\uDE00\\u00E9\\u007F\"");
    check_text("'\xc0\x80'", "\"\\u0000\"");
}

static void test_containers(void)
{
    check_text("{}", "{}");
    check_text("[ ]", "[]");
    check_text("[1,[2,{'a':[]}],'x']", "[1, [2, {\"a\": []}], \"x\"]");
    check_text("{'a':{'b':{}}}", "{\"a\": {\"b\": {}}}");
}

static void test_errors(void)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{1:2}", "1:2: JSON parse error, expecting key"},
        {"{'a':1,}", "1:8: JSON parse error, expecting key"},
        {"{]", "1:2: JSON parse error, expecting key"},
        {"[1,]", "1:4: JSON parse error, expecting value"},
        {"[}", "1:2: JSON parse error, expecting value"},
        {"]", "1:1: JSON parse error, expecting value"},
        {"{'a':]", "1:6: JSON parse error, expecting value"},
        {"{'a' 1}", "1:6: JSON parse error, expecting ':'"},
        {"{'a'}", "1:5: JSON parse error, expecting ':'"},
        {"{'a':1 2}", "1:8: JSON parse error, expected ',' or '}'"},
        {"{'a':1]", "1:8: JSON parse error, expected ',' or '}'"},
        {"[1}", "1:4: JSON parse error, expected ',' or ']'"},
        {"{'a':1;", "1:8: JSON parse error, stray ';'"},
        {"[1\n 2]", "2:2: JSON parse error, expected ',' or ']'"},
        {"{'a':1,'a':2}", "1:12: JSON parse error, duplicate key"},
        {"nul ", "1:1: JSON parse error, invalid keyword 'nul'"},
        {"@", "1:1: JSON parse error, stray '@'"},
        {"01", "1:1: JSON parse error, stray '01'"},
        {"-x", "1:1: JSON parse error, stray '-x'"},
        {"1.x", "1:1: JSON parse error, stray '1.x'"},
        {"1e+x", "1:1: JSON parse error, stray '1e+x'"},
        {"\"ab\tc\"", "1:1: JSON parse error, stray '\"ab\t'"},
        {"'\\q'", "1:1: JSON parse error, invalid escape sequence in string"},
        {"'\\ud800x'", "1:1: JSON parse error, \\ud800 is not a valid Unicode character"},
        {"'\\udc00'", "1:1: JSON parse error, \\udc00 is not a valid Unicode character"},
        {"'\\u12g4'", "1:1: JSON parse error, \\u12g4 is not a valid Unicode character"},
        {"'\\u12'", "1:1: JSON parse error, \\u12' is not a valid Unicode character"},
        {"'\\uFFFE'", "1:1: JSON parse error, \\uFFFE is not a valid Unicode character"},
        {"'\xed\xa0\x80'", "1:1: JSON parse error, invalid UTF-8 sequence in string"},
        {"'\xe2\x82'", "1:1: JSON parse error, invalid UTF-8 sequence in string"},
        {"1e999", "1:1: JSON parse error, number '1e999' is out of range"},
        {"{", "1:2: JSON parse error, premature end of input"},
        {"{'a': [1, 2", "1:13: JSON parse error, premature end of input"},
        {"", "Expecting a JSON value"},
        {" \n", "Expecting a JSON value"},
        {"1 2", "Expecting at most one JSON value"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check_error(cases[i].text, cases[i].error);
    }
}

/* A string that the input ends in is not a value; neither is it silently dropped. */
static void test_unfinished_string(void)
{
    check_error("{'a': 'b", "1:7: JSON parse error, stray ''b'");
    check_error("'b", "1:1: JSON parse error, stray ''b'");
    check_error("-", "1:1: JSON parse error, stray '-'");
}

static void test_stream(void)
{
    check_stream("{'a':1}{'b':2}\n[3] 4 5", "{\"a\": 1}\n{\"b\": 2}\n[3]\n4\n5");
    check_stream("{\n'a'\n:\n1\n}\n", "{\"a\": 1}");
    check_stream("12\n", "12");
}

/* One complaint per bad value, and the next value is fine. */
static void test_recovery(void)
{
    check_stream("{'a' {'b': [1 2]}}[1]", "!1:6: JSON parse error, expecting ':'\n[1]");
    check_stream("foo\n[1]", "!1:1: JSON parse error, invalid keyword 'foo'\n[1]");
    check_stream("@@@ abc\n[1]", "!1:1: JSON parse error, stray '@'\n[1]");
    check_stream("@@@ abc[1]", "!1:1: JSON parse error, stray '@'\n[1]");
    check_stream("{'a': \xff[1]", "!1:7: JSON parse error, stray '\xff'\n[1]");
    check_stream("'abc\ndef\n[1]", "!1:1: JSON parse error, stray ''abc\n'\n[1]");
    check_stream("[@[1]", "!1:2: JSON parse error, stray '@'\n[1]");
    check_stream("{'a' [1", "!1:6: JSON parse error, expecting ':'");
    check_stream("{'a':1;'b':2}", "!1:8: JSON parse error, stray ';'\n!1:12: JSON parse error, expecting value\n2\n"
                                  "!1:14: JSON parse error, expecting value");
}

static void test_position_counts_over_connection(void)
{
    check_stream("{}\n{}\n  ]\n[1 2]",
                 "{}\n{}\n!3:3: JSON parse error, expecting value\n!4:4: JSON parse error, expected ',' or ']'");
}

static void test_nesting_limit(void)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (int i = 0; i < 1024; i++) {
        g_string_append_c(text, '[');
    }
    for (int i = 0; i < 1024; i++) {
        g_string_append_c(text, ']');
    }
    json_t *value = qjson_parse(text->str, &error_abort);
    g_assert_nonnull(value);
    json_decref(value);
    g_string_prepend(text, "[");
    check_error(text->str, "JSON nesting depth limit exceeded");
}

static void test_token_limit(void)
{
    GString *text = g_string_new("[0");

    for (int i = 0; i < (1 << 20); i++) {
        g_string_append(text, ",0");
    }
    g_string_append_c(text, ']');
    check_error(text->str, "JSON token count limit exceeded");
    g_string_free(text, TRUE);
}

/* Feeds a token of 64 MiB and more in pieces; memory use stays bounded by the limit. */
static void test_token_size_limit(void)
{
    g_autofree char *piece = g_strnfill(1 << 20, 'x');
    GString *out = g_string_new(NULL);
    JsonParser *parser = json_parser_new(collect, out);

    json_parser_feed(parser, "'", 1);
    for (int i = 0; i < 66; i++) {
        json_parser_feed(parser, piece, 1 << 20);
    }
    json_parser_feed(parser, "\n[1]", 4);
    g_assert_cmpstr(out->str, ==, "!JSON token size limit exceeded\n[1]");
    json_parser_free(parser);
    g_string_free(out, TRUE);
}

/* A copy whose members were inserted in the reverse order. */
static json_t *reversed(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_array(value)) {
        json_t *array = json_array();

        json_array_foreach(value, i, member) {
            json_array_append_new(array, reversed(member));
        }
        return array;
    }
    if (!json_is_object(value)) {
        return json_deep_copy(value);
    }
    g_autoptr(GPtrArray) keys = g_ptr_array_new();
    json_object_foreach((json_t *)value, key, member) {
        g_ptr_array_add(keys, (void *)key);
    }
    json_t *obj = json_object();
    for (guint k = keys->len; k-- > 0;) {
        key = g_ptr_array_index(keys, k);
        json_object_set_new(obj, key, reversed(json_object_get(value, key)));
    }
    return obj;
}

/*
 * Replies captured from QEMU. Within a bucket the newest member comes first, so inserting all members of a reply
 * from its end gives the same reply.
 */
static void test_captured_order(void)
{
    static const char *const replies[] = {
        "{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 92, \"minor\": 0, \"major\": 11}, \"package\": \"\"}, "
        "\"capabilities\": [\"oob\"]}}",
        "{\"return\": [{\"poll-shrink\": 2, \"thread-id\": 7, \"poll-weight\": 3, \"aio-max-batch\": 0, "
        "\"poll-grow\": 2, \"poll-max-ns\": 32768, \"id\": \"i0\"}]}",
        "{\"return\": {\"status\": \"running\", \"running\": true}}",
        "{\"return\": {\"status\": \"prelaunch\", \"singlestep\": false, \"running\": false}, \"id\": 1.5}",
        "{\"id\": 1, \"error\": {\"class\": \"GenericError\", \"desc\": \"x\"}}",
        "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, \"event\": \"SHUTDOWN\", \"data\": {\"guest\": false, "
        "\"reason\": \"host-qmp-quit\"}}",
        "{\"device\": \"d0\", \"nospace\": false, \"node-name\": \"n\", \"qom-path\": \"/machine\", \"reason\": \"x\", "
        "\"operation\": \"read\", \"action\": \"report\"}",
        "{\"offset\": 1, \"speed\": 0, \"ready\": false}",
        "[{\"frontend-open\": true, \"filename\": \"unix:/p\", \"label\": \"qmpchr\"}]",
        "[{\"thread-id\": 1, \"qom-type\": \"qemu64-x86_64-cpu\", \"props\": {\"core-id\": 0, \"thread-id\": 0, "
        "\"socket-id\": 0}, \"qom-path\": \"/machine\", \"cpu-index\": 0, \"target\": \"x86_64\"}]",
        "[{\"share\": false, \"reserve\": true, \"prealloc\": false, \"host-nodes\": [], \"size\": 1, \"merge\": true, "
        "\"dump\": true, \"policy\": \"default\", \"id\": \"pc.ram\"}]",
        "{\"iops_rd\": 0, \"detect_zeroes\": \"off\", \"active\": true, \"image\": {\"limits\": "
        "{\"request-alignment\": 1, \"min-mem-alignment\": 512, \"opt-mem-alignment\": 4096, \"max-iov\": 1024}, "
        "\"virtual-size\": 1, \"filename\": \"F\", \"format\": \"raw\", \"actual-size\": 1, \"dirty-flag\": false}, "
        "\"iops_wr\": 0, \"ro\": false, \"children\": [{\"node-name\": \"#block028\", \"child\": \"file\"}], "
        "\"node-name\": \"#block117\", \"backing_file_depth\": 0, \"drv\": \"raw\", \"iops\": 0, \"bps_wr\": 0, "
        "\"write_threshold\": 0, \"encrypted\": false, \"bps\": 0, \"bps_rd\": 0, \"cache\": {\"no-flush\": false, "
        "\"direct\": false, \"writeback\": true}, \"file\": \"F\"}",
        "{\"name\": \"query-status\", \"ret-type\": \"1\", \"meta-type\": \"command\", \"arg-type\": \"0\"}",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(replies); i++) {
        g_autoptr(json_t) value = qjson_parse(replies[i], &error_abort);
        g_autoptr(json_t) again = reversed(value);
        g_autoptr(GString) text = qjson_to_string(again, false);

        g_assert_cmpstr(text->str, ==, replies[i]);
    }
}

static void test_same_bucket_newest_first(void)
{
    check_text("{'z':1,'a':2,'major':1,'minor':2,'micro':3}",
               "{\"micro\": 3, \"minor\": 2, \"a\": 2, \"z\": 1, \"major\": 1}");
    check_text("{'micro':1,'minor':2,'major':3}", "{\"minor\": 2, \"micro\": 1, \"major\": 3}");
}

static void test_pretty(void)
{
    g_autoptr(json_t) value = qjson_parse("{'id':{'a':{},'b':[],'c':[1,{'x':[]}]}}", &error_abort);
    g_autoptr(GString) text = qjson_to_string(value, true);

    g_assert_cmpstr(text->str, ==,
                    "{\n    \"id\": {\n        \"a\": {\n        },\n        \"b\": [\n        ],\n"
                    "        \"c\": [\n            1,\n            {\n                \"x\": [\n                ]\n"
                    "            }\n        ]\n    }\n}");
}

/* File names need not be UTF-8. */
static void test_invalid_utf8(void)
{
    g_autoptr(json_t) value = json_string_nocheck(
        "A\xf0\x80\x80\x80"
        "B\xc0\xaf"
        "C\xed\xa0\x80"
        "D\xe2\x82"
        "E\xff\xfe"
        "F\x80\x80"
        "G\xef\xbf\xbe"
        "H\xf4\x90\x80\x80"
        "I\xf8\x88\x80\x80\x80"
        "J\xc0\x80"
        "K\xe2\x28\xa1"
        "L\xf0\x9f\x98");
    g_autoptr(GString) text = qjson_to_string(value, false);

    g_assert_cmpstr(text->str, ==,
                    "\"A\\uFFFDB\\uFFFDC\\uFFFDD\\uFFFDE\\uFFFD\\uFFFDF\\uFFFD\\uFFFDG\\uFFFDH\\uFFFDI\\uFFFDJ\\u0000"
                    "K\\uFFFD(\\uFFFDL\\uFFFD\"");
}

static json_t *random_value(int depth);

static json_t *random_string(void)
{
    static const char *const pieces[] = {"a", "\"", "\\", "\n", "\x7f", "\xc3\xa9", "\xe2\x82\xac",
                                         "\xf0\x9f\x98\x80", "\xc0\x80", "'", " ", "/"};
    g_autoptr(GString) out = g_string_new(NULL);

    for (int n = g_test_rand_int_range(0, 9); n > 0; n--) {
        g_string_append(out, pieces[g_test_rand_int_range(0, G_N_ELEMENTS(pieces))]);
    }
    return json_string_nocheck(out->str);
}

static json_t *random_container(int depth, bool object)
{
    json_t *container = object ? json_object() : json_array();

    for (int n = g_test_rand_int_range(0, 6); n > 0; n--) {
        if (object) {
            g_autoptr(json_t) key = random_string();

            json_object_set_new_nocheck(container, json_string_value(key), random_value(depth - 1));
        } else {
            json_array_append_new(container, random_value(depth - 1));
        }
    }
    return container;
}

static json_t *random_value(int depth)
{
    switch (g_test_rand_int_range(0, depth > 0 ? 8 : 6)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(g_test_rand_bit());
    case 2:
        return json_integer((json_int_t)((uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int()));
    case 3:
        return json_integer(g_test_rand_int_range(-9, 10));
    case 4:
        return json_real(g_test_rand_double_range(-1e6, 1e6));
    case 5:
        return random_string();
    default:
        return random_container(depth, g_test_rand_bit());
    }
}

static void test_random_round_trip(void)
{
    for (int i = 0; i < 2000; i++) {
        g_autoptr(json_t) value = random_value(5);
        g_autoptr(GString) text = qjson_to_string(value, i & 1);
        g_autoptr(json_t) again = qjson_parse(text->str, &error_abort);

        g_assert_true(json_equal(value, again));
    }
}

/* Whatever bytes arrive, the parser survives, and a good value after a reset byte is understood. */
static void test_random_garbage(void)
{
    static const char alphabet[] = "{}[],:'\"\\u0123456789abcdeEtrufalsn.+- \n\t\xff\x80\xc3";

    for (int i = 0; i < 2000; i++) {
        g_autoptr(GString) text = g_string_new(NULL);

        for (int n = g_test_rand_int_range(0, 60); n > 0; n--) {
            g_string_append_c(text, alphabet[g_test_rand_int_range(0, sizeof(alphabet) - 1)]);
        }
        g_string_append(text, "\xff\n{\"last\": 1}");
        g_autofree char *one = parse_all(text->str, text->len, 1);
        g_autofree char *whole = parse_all(text->str, text->len, text->len);
        g_assert_cmpstr(one, ==, whole);
        g_assert_true(g_str_has_suffix(one, "\n{\"last\": 1}"));
    }
}

static void test_object_keys(void)
{
    g_autoptr(json_t) value = qjson_parse("{'major':1,'minor':2,'micro':3}", &error_abort);
    g_autofree const char **keys = qjson_object_keys(value);

    g_assert_cmpstr(keys[0], ==, "micro");
    g_assert_cmpstr(keys[1], ==, "minor");
    g_assert_cmpstr(keys[2], ==, "major");
    g_assert_null(keys[3]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi/json/parse/scalars", test_scalars);
    g_test_add_func("/qapi/json/parse/strings", test_strings);
    g_test_add_func("/qapi/json/parse/containers", test_containers);
    g_test_add_func("/qapi/json/parse/errors-say-where-and-what", test_errors);
    g_test_add_func("/qapi/json/parse/unfinished-token-is-an-error", test_unfinished_string);
    g_test_add_func("/qapi/json/parse/stream-may-be-cut-anywhere", test_stream);
    g_test_add_func("/qapi/json/parse/recovers-after-error", test_recovery);
    g_test_add_func("/qapi/json/parse/position-counts-over-connection", test_position_counts_over_connection);
    g_test_add_func("/qapi/json/parse/nesting-limit", test_nesting_limit);
    g_test_add_func("/qapi/json/parse/token-count-limit", test_token_limit);
    g_test_add_func("/qapi/json/parse/token-size-limit", test_token_size_limit);
    g_test_add_func("/qapi/json/parse/random-garbage-survived", test_random_garbage);
    g_test_add_func("/qapi/json/write/order-of-captured-replies", test_captured_order);
    g_test_add_func("/qapi/json/write/newest-first-within-bucket", test_same_bucket_newest_first);
    g_test_add_func("/qapi/json/write/pretty", test_pretty);
    g_test_add_func("/qapi/json/write/invalid-utf8-becomes-fffd", test_invalid_utf8);
    g_test_add_func("/qapi/json/write/random-round-trip", test_random_round_trip);
    g_test_add_func("/qapi/json/write/object-keys-in-order", test_object_keys);
    return g_test_run();
}
