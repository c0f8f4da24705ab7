/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of iothread properties: every way to set one, every bad value with its text, change at run time. */
#include "common.h"

#include <stdio.h>
#include <string.h>

#define MAX64 "9223372036854775807"

typedef struct Prop {
    const char *name;
    bool v11_only;
    json_int_t def, def_v7; /* what a fresh object reads */
    json_int_t zero;        /* what 0 reads back as on v11; -1: 0 is refused */
    json_int_t max;
    const char *range;      /* the range in the complaint, NULL: thread-pool wording */
} Prop;

static const Prop props[] = {
    {"poll-max-ns", false, 32768, 32768, 0, INT64_MAX, "[0, " MAX64 "]"},
    {"poll-grow", false, 2, 0, 2, INT64_MAX, "[0, " MAX64 "]"},
    {"poll-shrink", false, 2, 0, 2, INT64_MAX, "[0, " MAX64 "]"},
    {"poll-weight", true, 3, 0, 3, 63, "[0, 63]"},
    {"aio-max-batch", false, 0, 0, 0, INT64_MAX, "[0, " MAX64 "]"},
    {"thread-pool-min", false, 0, 0, 0, 64, NULL},
    {"thread-pool-max", false, 64, 64, -1, INT32_MAX, NULL},
};

static const char *const way_name[] = WAY_NAMES;

typedef struct Case {
    const Prop *prop;
    Way way;
    char *text;     /* the value as text, or as JSON for the JSON ways */
    json_int_t value;
    char *error;    /* NULL: accepted */
} Case;

static bool lacks(const Prop *p)
{
    if (p->v11_only && !binary_is_v11()) {
        g_test_skip("the binary has no such property");
        return true;
    }
    return false;
}

static json_t *json_of(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    if (!v) {
        qos_die("test value %s is not JSON", text);
    }
    return v;
}

static void test_default(gconstpointer data)
{
    const Prop *p = data;
    QTest *t;

    if (lacks(p)) {
        return;
    }
    t = start_none("-object iothread,id=i0");
    g_assert_cmpint(iothread_get(t, "i0", p->name), ==, binary_is_v11() ? p->def : p->def_v7);
    qt_stop(t);
}

static char *add_by_qmp(QTest *t, const Case *c)
{
    json_t *r = qmp_execute(t->qmp, "object-add", "{s:s,s:s,s:o}", "qom-type", "iothread", "id", "i0",
                            c->prop->name, json_of(c->text));
    const char *desc = json_string_value(json_object_get(json_object_get(r, "error"), "desc"));
    char *copy = g_strdup(desc);

    json_decref(r);
    return copy;
}

static void test_create(gconstpointer data)
{
    const Case *c = data;
    json_int_t expect = c->value ? c->value : binary_is_v11() ? c->prop->zero : 0;
    g_autofree char *err = NULL;
    QTest *t;

    if (lacks(c->prop)) {
        return;
    }
    switch (c->way) {
    case WAY_QMP:
        t = start_none("-nodefaults");
        err = add_by_qmp(t, c);
        g_assert_cmpstr(err, ==, NULL);
        break;
    case WAY_HMP:
        t = start_none("-nodefaults");
        err = qmp_hmp(t->qmp, "object_add iothread,id=i0,%s=%s", c->prop->name, c->text);
        g_assert_cmpstr(err, ==, "");
        break;
    case WAY_CLI:
        t = start_none("-object iothread,id=i0,%s=%s", c->prop->name, c->text);
        break;
    default:
        t = start_none("-object '{\"qom-type\":\"iothread\",\"id\":\"i0\",\"%s\":%s}'", c->prop->name, c->text);
        break;
    }
    g_assert_cmpint(iothread_get(t, "i0", c->prop->name), ==, expect);
    qt_stop(t);
}

static void test_create_bad(gconstpointer data)
{
    const Case *c = data;
    g_autofree char *err = NULL, *expect = NULL;
    QTest *t;

    if (lacks(c->prop)) {
        return;
    }
    switch (c->way) {
    case WAY_QMP:
        t = start_none("-nodefaults");
        err = add_by_qmp(t, c);
        g_assert_cmpstr(err, ==, c->error);
        assert_no_object(t);
        qt_stop(t);
        break;
    case WAY_HMP:
        t = start_none("-nodefaults");
        err = qmp_hmp(t->qmp, "object_add iothread,id=i0,%s=%s", c->prop->name, c->text);
        expect = g_strdup_printf("Error: %s\r\n", c->error);
        g_assert_cmpstr(err, ==, expect);
        assert_no_object(t);
        qt_stop(t);
        break;
    case WAY_CLI:
        err = refusal("-object iothread,id=i0,%s=%s", c->prop->name, c->text);
        check_stderr(err, c->error);
        break;
    default:
        err = refusal("-object '{\"qom-type\":\"iothread\",\"id\":\"i0\",\"%s\":%s}'", c->prop->name, c->text);
        check_stderr(err, c->error);
        break;
    }
}

static void test_set(gconstpointer data)
{
    const Case *c = data;
    json_int_t expect = c->value ? c->value : binary_is_v11() ? c->prop->zero : 0;
    QTest *t;

    if (lacks(c->prop)) {
        return;
    }
    t = start_none("-object iothread,id=i0");
    if (c->way == WAY_QMP) {
        json_decref(qmp_must(t->qmp, "qom-set", "{s:s,s:s,s:o}", "path", "/objects/i0", "property", c->prop->name,
                             "value", json_of(c->text)));
    } else {
        g_autofree char *out = qmp_hmp(t->qmp, "qom-set /objects/i0 %s %s", c->prop->name, c->text);

        g_assert_cmpstr(out, ==, "");
    }
    g_assert_cmpint(iothread_get(t, "i0", c->prop->name), ==, expect);
    qt_stop(t);
}

static void test_set_bad(gconstpointer data)
{
    const Case *c = data;
    g_autofree char *out = NULL, *expect = NULL;
    json_int_t before;
    QTest *t;

    if (lacks(c->prop)) {
        return;
    }
    t = start_none("-object iothread,id=i0");
    before = iothread_get(t, "i0", c->prop->name);
    if (c->way == WAY_QMP) {
        out = qmp_must_fail(t->qmp, "qom-set", "{s:s,s:s,s:o}", "path", "/objects/i0", "property", c->prop->name,
                            "value", json_of(c->text));
        expect = g_strdup_printf("GenericError: %s", c->error);
    } else {
        out = qmp_hmp(t->qmp, "qom-set /objects/i0 %s %s", c->prop->name, c->text);
        expect = g_strdup_printf("Error: %s\r\n", c->error);
    }
    g_assert_cmpstr(out, ==, expect);
    /* QEMU keeps a thread-pool value that it refused; we do not. */
    if (c->prop->range || binary_is_ours()) {
        g_assert_cmpint(iothread_get(t, "i0", c->prop->name), ==, before);
    }
    qt_stop(t);
}

static void free_case(gpointer data)
{
    Case *c = data;

    g_free(c->text);
    g_free(c->error);
    g_free(c);
}

static void add(GTestDataFunc fn, const Prop *p, Way way, const char *group, const char *label, const char *text,
                json_int_t value, const char *error)
{
    Case *c = g_new0(Case, 1);
    g_autofree char *path = g_strdup_printf("/iothread/%s/%s/%s/%s", group, way_name[way], p->name, label);

    c->prop = p;
    c->way = way;
    c->text = g_strdup(text);
    c->value = value;
    c->error = g_strdup(error);
    g_test_add_data_func_full(path, c, fn, free_case);
}

static void add_good(const Prop *p)
{
    g_autofree char *max = g_strdup_printf("%" JSON_INTEGER_FORMAT, p->max);

    for (int way = 0; way < N_WAYS; way++) {
        if (p->zero >= 0) {
            add(test_create, p, way, "create", "0", "0", 0, NULL);
        }
        add(test_create, p, way, "create", "1", "1", 1, NULL);
        add(test_create, p, way, "create", "max", max, p->max, NULL);
    }
    add(test_create, p, WAY_CLI, "create", "0x10", "0x10", 16, NULL);
    for (int way = WAY_QMP; way <= WAY_HMP; way++) {
        if (p->zero >= 0) {
            add(test_set, p, way, "set", "0", "0", 0, NULL);
        }
        add(test_set, p, way, "set", "17", "17", 17, NULL);
        add(test_set, p, way, "set", "max", max, p->max, NULL);
    }
}

static void add_out_of_range(const Prop *p, const char *label, const char *text, const char *error)
{
    for (int way = 0; way < N_WAYS; way++) {
        add(test_create_bad, p, way, "refuse", label, text, 0, error);
    }
    add(test_set_bad, p, WAY_QMP, "refuse-set", label, text, 0, error);
    add(test_set_bad, p, WAY_HMP, "refuse-set", label, text, 0, error);
}

static void add_bad(const Prop *p)
{
    g_autofree char *range = g_strdup_printf("%s value must be in range %s", p->name,
                                             p->range ? p->range : "[0, " MAX64 "]");
    g_autofree char *json = g_strdup_printf("Invalid parameter type for '%s', expected: integer", p->name);
    g_autofree char *text = g_strdup_printf("Parameter '%s' expects an int64 value", p->name);
    g_autofree char *hmp_add = g_strdup_printf("Parameter '%s' expects integer", p->name);
    g_autofree char *hmp_set = g_strdup_printf("Parameter '%s' expects int64", p->name);
    static const char *const wrong_type[][2] = {{"string", "\"5\""}, {"bool", "true"}, {"fraction", "1.5"}};
    static const char *const wrong_text[][2] = {{"word", "abc"}, {"suffix", "1k"}, {"empty", ""}, {"2-to-the-63", "9223372036854775808"}};

    add_out_of_range(p, "minus-1", "-1", range);
    if (!strcmp(p->name, "poll-weight")) {
        add_out_of_range(p, "64", "64", range);
    } else if (!p->range) {
        add_out_of_range(p, "2-to-the-31", "2147483648", "bad thread-pool-min/thread-pool-max values");
        add_out_of_range(p, p->zero < 0 ? "0" : "above-max", p->zero < 0 ? "0" : "65",
                         "bad thread-pool-min/thread-pool-max values");
    }
    for (size_t i = 0; i < G_N_ELEMENTS(wrong_type); i++) {
        add(test_create_bad, p, WAY_QMP, "refuse", wrong_type[i][0], wrong_type[i][1], 0, json);
        add(test_create_bad, p, WAY_CLI_JSON, "refuse", wrong_type[i][0], wrong_type[i][1], 0, json);
        add(test_set_bad, p, WAY_QMP, "refuse-set", wrong_type[i][0], wrong_type[i][1], 0, json);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(wrong_text); i++) {
        add(test_create_bad, p, WAY_CLI, "refuse", wrong_text[i][0], wrong_text[i][1], 0, text);
        add(test_create_bad, p, WAY_HMP, "refuse", wrong_text[i][0], wrong_text[i][1], 0, hmp_add);
        if (*wrong_text[i][1]) {
            add(test_set_bad, p, WAY_HMP, "refuse-set", wrong_text[i][0], wrong_text[i][1], 0, hmp_set);
        }
    }
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(props); i++) {
        add_case(test_default, &props[i], "/iothread/default/%s", props[i].name);
        add_good(&props[i]);
        add_bad(&props[i]);
    }
    return g_test_run();
}
