/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Command line syntaxes: keyval, the older options, and scalars. */
#include "qapi/opts.h"

#include <glib.h>
#include <string.h>

static void check_keyval(const char *params, const char *implied_key, const char *expected)
{
    Error *err = NULL;
    g_autoptr(json_t) value = keyval_parse(params, implied_key, NULL, &err);

    if (err) {
        g_error("'%s' gives %s", params, error_get_pretty(err));
    }
    g_autoptr(json_t) wanted = qjson_parse(expected, &error_abort);
    if (!json_equal(value, wanted)) {
        g_autoptr(GString) text = qjson_to_string(value, false);

        g_assert_cmpstr(text->str, ==, expected);
    }
}

static void check_message(Error *err, const char *expected)
{
    g_assert_nonnull(err);
    g_assert_cmpstr(error_get_pretty(err), ==, expected);
    error_free(err);
}

static void check_keyval_error(const char *params, const char *expected)
{
    Error *err = NULL;

    g_assert_null(keyval_parse(params, "driver", NULL, &err));
    check_message(err, expected);
}

static void test_keyval_accepts(void)
{
    check_keyval("", NULL, "{}");
    check_keyval("a=1", NULL, "{'a': '1'}");
    check_keyval("a=1,b=2,", NULL, "{'a': '1', 'b': '2'}");
    check_keyval("a=1,a=2", NULL, "{'a': '2'}");
    check_keyval("a=", NULL, "{'a': ''}");
    check_keyval("a=x=y", NULL, "{'a': 'x=y'}");
    check_keyval("a=x,,y,,,b=2", NULL, "{'a': 'x,y,', 'b': '2'}");
    check_keyval("foo", "driver", "{'driver': 'foo'}");
    check_keyval("foo,a=1", "driver", "{'driver': 'foo', 'a': '1'}");
    check_keyval("a=1,driver=x", "driver", "{'a': '1', 'driver': 'x'}");
    check_keyval("a.b.c=1,a.b.d=2,a.e=3", NULL, "{'a': {'b': {'c': '1', 'd': '2'}, 'e': '3'}}");
    check_keyval("a.1=y,a.0=x", NULL, "{'a': ['x', 'y']}");
    check_keyval("a.0.b=1,a.1.b=2", NULL, "{'a': [{'b': '1'}, {'b': '2'}]}");
    check_keyval("a.0.0=1", NULL, "{'a': [['1']]}");
    check_keyval("x-foo=1,A_b=2,__com.x=3", NULL, "{'x-foo': '1', 'A_b': '2', '__com': {'x': '3'}}");
}

static void test_keyval_rejects(void)
{
    static const struct {
        const char *params, *error;
    } cases[] = {
        {"a=1,b", "Expected '=' after parameter 'b'"},
        {"x,help", "Help is not available for this option"},
        {"help", "Help is not available for this option"},
        {"?", "Help is not available for this option"},
        {"=x", "Invalid parameter ''"},
        {",id=x", "Invalid parameter ''"},
        {"a.=x", "Invalid parameter 'a.'"},
        {".a=x", "Invalid parameter '.a'"},
        {"1a=x", "Invalid parameter '1a'"},
        {"a..b=x", "Invalid parameter 'a..b'"},
        {"a.-1=x", "Invalid parameter 'a.-1'"},
        {"a.1b=x", "Invalid parameter 'a.1b'"},
        {"a\xc3\xa9=x", "Invalid parameter 'a\xc3\xa9'"},
        {"a=1,a.b=2", "Parameters 'a.*' used inconsistently"},
        {"a.b=2,a=1", "Parameters 'a.*' used inconsistently"},
        {"a.b.c=2,a.b=3", "Parameters 'a.b.*' used inconsistently"},
        {"a.0=2,a.x=3", "Parameters 'a.*' used inconsistently"},
        {"a.1=2", "Parameter 'a.0' missing"},
        {"a.0=2,a.2=2", "Parameter 'a.1' missing"},
        {"a.b.00=2", "Parameter 'a.b.0' missing"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        check_keyval_error(cases[i].params, cases[i].error);
    }
}

static void test_keyval_help(void)
{
    bool help;
    g_autoptr(json_t) value = keyval_parse("foo,help,a=1", "driver", &help, &error_abort);

    g_assert_true(help);
    g_assert_cmpstr(json_string_value(json_object_get(value, "driver")), ==, "foo");
    g_autoptr(json_t) none = keyval_parse("foo,a=help", "driver", &help, &error_abort);
    g_assert_false(help);
    g_assert_cmpstr(json_string_value(json_object_get(none, "a")), ==, "help");
}

static void test_keyval_long_key(void)
{
    g_autofree char *key = g_strnfill(127, 'k');
    g_autofree char *good = g_strdup_printf("%s=1", key), *bad = g_strdup_printf("%sk=1", key);
    Error *err = NULL;
    json_t *value = keyval_parse(good, NULL, NULL, &error_abort);

    g_assert_cmpuint(json_object_size(value), ==, 1);
    json_decref(value);
    g_assert_null(keyval_parse(bad, NULL, NULL, &err));
    g_assert_true(g_str_has_prefix(error_get_pretty(err), "Invalid parameter 'kkk"));
    error_free(err);
}

/* Any text is either parsed or refused with an Error. */
static void test_keyval_random(void)
{
    static const char alphabet[] = "ab01.,=,-_?";

    for (int i = 0; i < 5000; i++) {
        char text[24];
        int n = g_test_rand_int_range(0, sizeof(text));
        Error *err = NULL;

        for (int k = 0; k < n; k++) {
            text[k] = alphabet[g_test_rand_int_range(0, sizeof(alphabet) - 1)];
        }
        text[n] = 0;
        json_t *value = keyval_parse(text, i & 1 ? "x" : NULL, NULL, &err);
        g_assert_true(!value != !err);
        json_decref(value);
        error_free(err);
    }
}

static char *reports;

static void keep_report(void *opaque, const char *text)
{
    char *joined = g_strconcat(reports, text, NULL);

    g_free(reports);
    reports = joined;
}

static const OptDesc descs[] = {
    {"path", OPT_STRING, NULL}, {"wait", OPT_BOOL, NULL}, {"port", OPT_NUMBER, NULL}, {"size", OPT_SIZE, NULL}, {NULL}};

static void test_opts_accepts(void)
{
    g_autoptr(Opts) opts =
        opts_parse("a,,b,id=x.1,wait=off,port=0x10,size=2k,path=last", "path", descs, NULL, &error_abort);

    g_assert_cmpstr(opts_id(opts), ==, "x.1");
    g_assert_cmpstr(opts_get(opts, "path"), ==, "last");
    g_assert_false(opts_get_bool(opts, "wait", true, &error_abort));
    g_assert_true(opts_get_bool(opts, "absent", true, &error_abort));
    g_assert_cmpuint(opts_get_number(opts, "port", 0, &error_abort), ==, 16);
    g_assert_cmpuint(opts_get_number(opts, "absent", 5, &error_abort), ==, 5);
    g_assert_cmpuint(opts_get_size(opts, "size", 0, 0, &error_abort), ==, 2048);
    g_assert_cmpuint(opts_get_size(opts, "absent", 'M', 9, &error_abort), ==, 9);
}

static void test_opts_edit(void)
{
    g_autoptr(Opts) opts = opts_parse("a=1,b=2,a=3", NULL, NULL, NULL, &error_abort);
    g_autofree char *taken = opts_take(opts, "a");

    g_assert_cmpstr(taken, ==, "3");
    g_assert_null(opts_get(opts, "a"));
    opts_set(opts, "c.d", "4");
    g_autoptr(json_t) obj = opts_to_json(opts);
    g_autoptr(json_t) wanted = qjson_parse("{'b': '2', 'c.d': '4'}", &error_abort);
    g_assert_true(json_equal(obj, wanted));
    g_assert_true(opts_del(opts, "b"));
    g_assert_false(opts_del(opts, "b"));
    g_assert_true(opts_del(opts, "c.d"));
    g_autoptr(json_t) nothing = opts_to_json(opts);
    g_assert_cmpuint(json_object_size(nothing), ==, 0);
}

static bool stop_at_b(void *opaque, const char *name, const char *value, Error **errp)
{
    g_string_append_printf(opaque, "%s=%s;", name, value);
    if (!strcmp(name, "b")) {
        error_setg(errp, "b");
        return false;
    }
    return true;
}

static void test_opts_foreach(void)
{
    g_autoptr(Opts) opts = opts_parse("a=1,b=2,c=3", NULL, NULL, NULL, &error_abort);
    g_autoptr(GString) seen = g_string_new(NULL);
    Error *err = NULL;

    g_assert_false(opts_foreach(opts, stop_at_b, seen, &err));
    check_message(err, "b");
    g_assert_cmpstr(seen->str, ==, "a=1;b=2;");
}

static void test_opts_rejects(void)
{
    static const struct {
        const char *params, *error, *hint;
    } cases[] = {
        {"foo=1", "Invalid parameter 'foo'", ""},
        {"=1", "Invalid parameter ''", ""},
        {"wait=1", "Parameter 'wait' expects 'on' or 'off'", ""},
        {"port=x", "Parameter 'port' expects a number", ""},
        {"port=99999999999999999999", "Value '99999999999999999999' is too large for parameter 'port'", ""},
        {"size=-5", "Value '-5' is out of range for parameter 'size'", ""},
        {"size=99999999999999999999", "Value '99999999999999999999' is out of range for parameter 'size'", ""},
        {"size=1Z", "Parameter 'size' expects a non-negative number below 2^64",
         "Optional suffix k, M, G, T, P or E means kilo-, mega-, giga-, tera-, peta-\nand exabytes, respectively.\n"},
        {"id=9", "Parameter 'id' expects an identifier",
         "Identifiers consist of letters, digits, '-', '.', '_', starting with a letter.\n"},
        {"id=", "Parameter 'id' expects an identifier",
         "Identifiers consist of letters, digits, '-', '.', '_', starting with a letter.\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Error *err = NULL;

        g_assert_null(opts_parse(cases[i].params, "path", descs, NULL, &err));
        g_assert_nonnull(err);
        g_assert_cmpstr(error_get_hint(err), ==, cases[i].hint);
        check_message(err, cases[i].error);
    }
}

static void test_opts_bare_word(void)
{
    reports = g_strdup("");
    error_set_sink(keep_report, NULL);
    g_autoptr(Opts) opts = opts_parse("path,foo,nowait,no", "path", NULL, NULL, &error_abort);
    error_set_sink(NULL, NULL);

    g_assert_cmpstr(opts_get(opts, "path"), ==, "path");
    g_assert_cmpstr(opts_get(opts, "foo"), ==, "on");
    g_assert_cmpstr(opts_get(opts, "wait"), ==, "off");
    g_assert_cmpstr(opts_get(opts, "no"), ==, "on");
    g_assert_cmpstr(reports, ==,
                    "warning: short-form boolean option 'foo' deprecated\nPlease use foo=on instead\n"
                    "warning: short-form boolean option 'nowait' deprecated\nPlease use wait=off instead\n"
                    "warning: short-form boolean option 'no' deprecated\nPlease use no=on instead\n");
    g_clear_pointer(&reports, g_free);
}

static void test_opts_help(void)
{
    bool help;
    Opts *opts = opts_parse("x,help", "path", descs, &help, &error_abort);

    g_assert_true(help);
    opts_free(opts);
    opts = opts_parse("help", "path", descs, NULL, &error_abort);
    g_assert_cmpstr(opts_get(opts, "path"), ==, "help");
    opts_free(opts);
    opts = opts_parse("help", NULL, NULL, NULL, &error_abort);
    g_assert_cmpstr(opts_get(opts, "help"), ==, "on");
    g_assert_null(reports);
    opts_free(opts);
}

static void test_opts_legacy(void)
{
    Opts *opts = opts_parse_legacy("server,nowait", NULL, NULL, &error_abort);

    g_assert_true(opts_get_bool(opts, "server", false, &error_abort));
    g_assert_false(opts_get_bool(opts, "wait", true, &error_abort));
    g_assert_null(reports);
    opts_free(opts);
}

static void test_opts_first_id(void)
{
    Opts *opts = opts_parse("id=a,x=1,id=b,x=2", NULL, NULL, NULL, &error_abort);

    g_assert_cmpstr(opts_id(opts), ==, "a");
    g_assert_cmpstr(opts_get(opts, "x"), ==, "2");
    opts_free(opts);
}

static void test_bool(void)
{
    static const char *const yes[] = {"on", "yes", "true", "y"}, *const no[] = {"off", "no", "false", "n"};
    static const char *const bad[] = {"", "1", "0", "On", "on ", "t"};
    bool value;

    for (int i = 0; i < 4; i++) {
        value = false;
        g_assert_true(qapi_parse_bool(yes[i], &value) && value);
        g_assert_true(qapi_parse_bool(no[i], &value) && !value);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(qapi_parse_bool(bad[i], &value));
    }
}

static void test_integers(void)
{
    int64_t i;
    uint64_t u;

    g_assert_true(qapi_parse_int64("-9223372036854775808", &i));
    g_assert_cmpint(i, ==, INT64_MIN);
    g_assert_true(qapi_parse_int64("0x10", &i));
    g_assert_cmpint(i, ==, 16);
    g_assert_true(qapi_parse_int64("010", &i));
    g_assert_cmpint(i, ==, 8);
    g_assert_false(qapi_parse_int64("9223372036854775808", &i));
    g_assert_false(qapi_parse_int64("", &i));
    g_assert_false(qapi_parse_int64("5x", &i));
    g_assert_false(qapi_parse_int64("1.5", &i));
    g_assert_true(qapi_parse_uint64("18446744073709551615", &u));
    g_assert_cmpuint(u, ==, UINT64_MAX);
    g_assert_true(qapi_parse_uint64("-1", &u));
    g_assert_cmpuint(u, ==, UINT64_MAX);
    g_assert_false(qapi_parse_uint64("18446744073709551616", &u));
    g_assert_false(qapi_parse_uint64("1k", &u));
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        QapiSizeResult result;
        uint64_t value;
    } cases[] = {
        {"0", QAPI_SIZE_OK, 0},
        {"512", QAPI_SIZE_OK, 512},
        {"512b", QAPI_SIZE_OK, 512},
        {"1k", QAPI_SIZE_OK, 1024},
        {"1K", QAPI_SIZE_OK, 1024},
        {"1.5k", QAPI_SIZE_OK, 1536},
        {".5M", QAPI_SIZE_OK, 524288},
        {"1.0", QAPI_SIZE_OK, 1},
        {"2G", QAPI_SIZE_OK, 2ull << 30},
        {"3T", QAPI_SIZE_OK, 3ull << 40},
        {"4P", QAPI_SIZE_OK, 4ull << 50},
        {"15E", QAPI_SIZE_OK, 15ull << 60},
        {"0x10", QAPI_SIZE_OK, 16},
        {"0x10k", QAPI_SIZE_OK, 16384},
        {"010", QAPI_SIZE_OK, 10},
        {"-0", QAPI_SIZE_OK, 0},
        {"18446744073709551615", QAPI_SIZE_OK, UINT64_MAX},
        {"18446744073709551616", QAPI_SIZE_RANGE, 0},
        {"16E", QAPI_SIZE_RANGE, 0},
        {"-5", QAPI_SIZE_RANGE, 0},
        {"-1k", QAPI_SIZE_RANGE, 0},
        {"", QAPI_SIZE_BAD, 0},
        {"x", QAPI_SIZE_BAD, 0},
        {"-", QAPI_SIZE_BAD, 0},
        {" 5", QAPI_SIZE_BAD, 0},
        {"+5", QAPI_SIZE_BAD, 0},
        {"1Z", QAPI_SIZE_BAD, 0},
        {"1e3", QAPI_SIZE_BAD, 0},
        {"1.5", QAPI_SIZE_BAD, 0},
        {"1.5b", QAPI_SIZE_BAD, 0},
        {"0x1.8M", QAPI_SIZE_BAD, 0},
        {"1kk", QAPI_SIZE_BAD, 0},
        {".", QAPI_SIZE_BAD, 0},
        {"0x", QAPI_SIZE_BAD, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t value = 0;

        if (qapi_parse_size(cases[i].text, 0, &value) != cases[i].result || value != cases[i].value) {
            g_error("'%s' gives %" G_GUINT64_FORMAT, cases[i].text, value);
        }
    }
    uint64_t value;
    g_assert_cmpint(qapi_parse_size("2", 'M', &value), ==, QAPI_SIZE_OK);
    g_assert_cmpuint(value, ==, 2 << 20);
    g_assert_cmpint(qapi_parse_size("2k", 'M', &value), ==, QAPI_SIZE_OK);
    g_assert_cmpuint(value, ==, 2048);
}

static void test_numbers(void)
{
    double value;

    g_assert_true(qapi_parse_number("1.5", &value));
    g_assert_true(value == 1.5);
    g_assert_false(qapi_parse_number("1.5x", &value));
    g_assert_false(qapi_parse_number("inf", &value));
    g_assert_false(qapi_parse_number("nan", &value));
    g_assert_false(qapi_parse_number("", &value));
}

static void test_ids(void)
{
    g_assert_true(qapi_id_wellformed("a"));
    g_assert_true(qapi_id_wellformed("Z9-._x"));
    g_assert_false(qapi_id_wellformed(""));
    g_assert_false(qapi_id_wellformed("9"));
    g_assert_false(qapi_id_wellformed("_a"));
    g_assert_false(qapi_id_wellformed("a b"));
    g_assert_false(qapi_id_wellformed("a/b"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi/keyval/accepts", test_keyval_accepts);
    g_test_add_func("/qapi/keyval/rejects-with-qemus-words", test_keyval_rejects);
    g_test_add_func("/qapi/keyval/help-is-told", test_keyval_help);
    g_test_add_func("/qapi/keyval/key-length-limit", test_keyval_long_key);
    g_test_add_func("/qapi/keyval/random-text-survived", test_keyval_random);
    g_test_add_func("/qapi/opts/accepts", test_opts_accepts);
    g_test_add_func("/qapi/opts/take-set-del", test_opts_edit);
    g_test_add_func("/qapi/opts/foreach-stops-on-error", test_opts_foreach);
    g_test_add_func("/qapi/opts/rejects-with-qemus-words", test_opts_rejects);
    g_test_add_func("/qapi/opts/bare-word-is-on-with-warning", test_opts_bare_word);
    g_test_add_func("/qapi/opts/help-is-told", test_opts_help);
    g_test_add_func("/qapi/opts/legacy-bare-words-without-warning", test_opts_legacy);
    g_test_add_func("/qapi/opts/first-id-stays", test_opts_first_id);
    g_test_add_func("/qapi/scalars/bool", test_bool);
    g_test_add_func("/qapi/scalars/integers", test_integers);
    g_test_add_func("/qapi/scalars/sizes", test_sizes);
    g_test_add_func("/qapi/scalars/numbers-are-finite", test_numbers);
    g_test_add_func("/qapi/scalars/ids", test_ids);
    return g_test_run();
}
