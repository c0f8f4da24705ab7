/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of iothread properties: every way to set one, every bad value with its text, change at run time. */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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

/* The ways in. */
typedef enum Way { WAY_QMP, WAY_HMP, WAY_CLI, WAY_CLI_JSON, N_WAYS } Way;
static const char *const way_name[] = {"object-add", "object_add", "command-line", "command-line-json"};

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

static QTest *start_none(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
static QTest *start_none(const char *fmt, ...)
{
    QTestOpts o = {.machine = "none"};
    g_autofree char *args = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return qt_start_opts(&o, args);
}

static char *refusal(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* stderr of a start that must fail. */
static char *refusal(const char *fmt, ...)
{
    QTestOpts o = {.machine = "none"};
    g_autofree char *args = NULL;
    char *why = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    if (qt_try_start(&o, args, &why)) {
        qos_die("'%s' was accepted", args);
    }
    return why;
}

static json_int_t get(QTest *t, const char *id, const char *prop)
{
    g_autofree char *path = g_strdup_printf("/objects/%s", id);
    json_t *v = qmp_must(t->qmp, "qom-get", "{s:s,s:s}", "path", path, "property", prop);
    json_int_t n = json_integer_value(v);

    g_assert_true(json_is_integer(v));
    json_decref(v);
    return n;
}

static json_t *json_of(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    if (!v) {
        qos_die("test value %s is not JSON", text);
    }
    return v;
}

static void check_stderr(const char *text, const char *message)
{
    g_autofree char *line = g_strconcat(": ", message, "\n", NULL);

    if (!strstr(text, line)) {
        qos_die("expected '...%s' on stderr, got: %s", line, text);
    }
}

static void test_default(gconstpointer data)
{
    const Prop *p = data;
    QTest *t;

    if (lacks(p)) {
        return;
    }
    t = start_none("-object iothread,id=i0");
    g_assert_cmpint(get(t, "i0", p->name), ==, binary_is_v11() ? p->def : p->def_v7);
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
    g_assert_cmpint(get(t, "i0", c->prop->name), ==, expect);
    qt_stop(t);
}

/* A refused creation leaves no object behind. */
static void assert_no_object(QTest *t)
{
    g_autofree char *err =
        qmp_must_fail(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/i0", "property", "type");

    g_assert_cmpstr(err, ==, "DeviceNotFound: Device '/objects/i0' not found");
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
    g_assert_cmpint(get(t, "i0", c->prop->name), ==, expect);
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
    before = get(t, "i0", c->prop->name);
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
        g_assert_cmpint(get(t, "i0", c->prop->name), ==, before);
    }
    qt_stop(t);
}

static void test_refused_set_poisons_nothing(void)
{
    g_autofree char *err = NULL;
    QTest *t;

    if (!binary_is_ours()) {
        g_test_skip("QEMU refuses every later qom-set until the value is corrected");
        return;
    }
    t = start_none("-object iothread,id=i0");
    err = qmp_must_fail(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/i0", "property", "thread-pool-min",
                        "value", 65);
    g_assert_cmpstr(err, ==, "GenericError: bad thread-pool-min/thread-pool-max values");
    json_decref(qmp_must(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/i0", "property", "aio-max-batch",
                         "value", 4));
    g_assert_cmpint(get(t, "i0", "aio-max-batch"), ==, 4);
    qt_stop(t);
}

static void test_pool_min_above_max(gconstpointer data)
{
    bool cli = data != NULL;
    g_autofree char *err = NULL;
    QTest *t;

    if (cli) {
        err = refusal("-object iothread,id=i0,thread-pool-min=9,thread-pool-max=8");
        check_stderr(err, "bad thread-pool-min/thread-pool-max values");
        return;
    }
    t = start_none("-nodefaults");
    err = qmp_must_fail(t->qmp, "object-add", "{s:s,s:s,s:i,s:i}", "qom-type", "iothread", "id", "i0",
                        "thread-pool-min", 9, "thread-pool-max", 8);
    g_assert_cmpstr(err, ==, "GenericError: bad thread-pool-min/thread-pool-max values");
    assert_no_object(t);
    /* Above the default of the other one is no error when both come together. */
    json_decref(qmp_must(t->qmp, "object-add", "{s:s,s:s,s:i,s:i}", "qom-type", "iothread", "id", "i0",
                         "thread-pool-min", 100, "thread-pool-max", 200));
    qt_stop(t);
}

static void test_unknown(gconstpointer data)
{
    Way way = (Way)GPOINTER_TO_UINT(data);
    g_autofree char *err = NULL;
    QTest *t = NULL;

    switch (way) {
    case WAY_QMP:
        t = start_none("-nodefaults");
        err = qmp_must_fail(t->qmp, "object-add", "{s:s,s:s,s:i}", "qom-type", "iothread", "id", "i0", "foo", 1);
        g_assert_cmpstr(err, ==, "GenericError: Parameter 'foo' is unexpected");
        break;
    case WAY_HMP:
        t = start_none("-nodefaults");
        err = qmp_hmp(t->qmp, "object_add iothread,id=i0,foo=1");
        g_assert_cmpstr(err, ==, "Error: Parameter 'foo' is unexpected\r\n");
        break;
    case WAY_CLI:
        err = refusal("-object iothread,id=i0,foo=1");
        check_stderr(err, "-object iothread,id=i0,foo=1: Invalid parameter 'foo'");
        break;
    default:
        err = refusal("-object '{\"qom-type\":\"iothread\",\"id\":\"i0\",\"foo\":1}'");
        g_assert_nonnull(strstr(err, "Parameter 'foo' is unexpected\n"));
        break;
    }
    if (t) {
        assert_no_object(t);
        qt_stop(t);
    }
}

static void test_unknown_at_run_time(void)
{
    QTest *t = start_none("-object iothread,id=i0");
    g_autofree char *set = qmp_must_fail(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/i0", "property",
                                         "nope", "value", 1);
    g_autofree char *got =
        qmp_must_fail(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/i0", "property", "nope");
    g_autofree char *type = qmp_must_fail(t->qmp, "qom-set", "{s:s,s:s,s:s}", "path", "/objects/i0", "property",
                                          "type", "value", "x");

    g_assert_cmpstr(set, ==, "GenericError: Property 'iothread.nope' not found");
    g_assert_cmpstr(got, ==, "GenericError: Property 'iothread.nope' not found");
    g_assert_cmpstr(type, ==, "GenericError: Property 'iothread.type' is not writable");
    qt_stop(t);
}

/* Every row a creation that is refused for its id or type. */
static const struct Naming {
    const char *name, *cli, *cli_text, *id, *type, *qmp_text;
} namings[] = {
    {"no-id", "iothread", "Parameter 'id' is missing", NULL, "iothread", "Parameter 'id' is missing"},
    {"duplicate-id", "iothread,id=a -object iothread,id=a", "Duplicate ID 'a' for object", "dup", "iothread",
     "attempt to add duplicate property 'dup' to object (type 'container')"},
    {"bad-id", "iothread,id=1a", "Parameter 'id' expects an identifier", "1a", "iothread",
     "Parameter 'id' expects an identifier"},
    {"unknown-type", "nosuch,id=a", "Parameter 'qom-type' does not accept value 'nosuch'", "a", "nosuch",
     "Parameter 'qom-type' does not accept value 'nosuch'"},
};

static void test_naming(gconstpointer data)
{
    const struct Naming *n = data;
    g_autofree char *err = refusal("-object %s", n->cli), *qmp = NULL, *expect = NULL;
    QTest *t = start_none("-object iothread,id=dup");

    check_stderr(err, n->cli_text);
    qmp = n->id ? qmp_must_fail(t->qmp, "object-add", "{s:s,s:s}", "qom-type", n->type, "id", n->id)
                : qmp_must_fail(t->qmp, "object-add", "{s:s}", "qom-type", n->type);
    expect = g_strdup_printf("GenericError: %s", n->qmp_text);
    g_assert_cmpstr(qmp, ==, expect);
    qt_stop(t);
}

static const char *device_args = "-nodefaults -object iothread,id=i0 -blockdev null-co,node-name=n "
                                 "-device virtio-blk-pci,drive=n,iothread=i0,addr=4.0";

static void test_delete_idle(gconstpointer data)
{
    bool hmp = data != NULL;
    QTest *t = start_none("-object iothread,id=i0 -object iothread,id=i1");
    json_t *list;

    if (hmp) {
        g_autofree char *out = qmp_hmp(t->qmp, "object_del i0");

        g_assert_cmpstr(out, ==, "");
    } else {
        json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "i0"));
    }
    list = qmp_must(t->qmp, "query-iothreads", NULL);
    g_assert_cmpuint(json_array_size(list), ==, 1);
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(list, 0), "id")), ==, "i1");
    json_decref(list);
    assert_no_object(t);
    qt_stop(t);
}

static void test_delete_unknown(gconstpointer data)
{
    QTest *t = start_none("-nodefaults");
    g_autofree char *err = NULL;

    if (data) {
        err = qmp_hmp(t->qmp, "object_del zz");
        g_assert_cmpstr(err, ==, "Error: object 'zz' not found\r\n");
    } else {
        err = qmp_must_fail(t->qmp, "object-del", "{s:s}", "id", "zz");
        g_assert_cmpstr(err, ==, "GenericError: object 'zz' not found");
    }
    qt_stop(t);
}

static void test_delete_in_use(gconstpointer data)
{
    QTest *t;
    g_autofree char *err = NULL;

    if (!binary_is_ours()) {
        g_test_skip("QEMU deletes an iothread that a device uses");
        return;
    }
    t = qt_start("%s", device_args);
    if (data) {
        err = qmp_hmp(t->qmp, "object_del i0");
        g_assert_cmpstr(err, ==, "Error: object 'i0' is in use, can not be deleted\r\n");
    } else {
        err = qmp_must_fail(t->qmp, "object-del", "{s:s}", "id", "i0");
        g_assert_cmpstr(err, ==, "GenericError: object 'i0' is in use, can not be deleted");
    }
    g_assert_cmpint(get(t, "i0", "aio-max-batch"), ==, 0);
    qt_stop(t);
}

static void test_id_is_free_after_delete(void)
{
    QTest *t = start_none("-object iothread,id=i0,aio-max-batch=5");

    json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "i0"));
    json_decref(qmp_must(t->qmp, "object-add", "{s:s,s:s}", "qom-type", "iothread", "id", "i0"));
    g_assert_cmpint(get(t, "i0", "aio-max-batch"), ==, 0);
    qt_stop(t);
}

static void test_query_iothreads(void)
{
    QTest *t = start_none("-object iothread,id=i0,poll-max-ns=11,poll-grow=12,poll-shrink=13,aio-max-batch=14");
    json_t *list = qmp_must(t->qmp, "query-iothreads", NULL), *e = json_array_get(list, 0);
    g_autofree char *task = NULL;

    g_assert_cmpuint(json_array_size(list), ==, 1);
    g_assert_cmpuint(json_object_size(e), ==, binary_is_v11() ? 7 : 6);
    g_assert_cmpint(json_integer_value(json_object_get(e, "poll-max-ns")), ==, 11);
    g_assert_cmpint(json_integer_value(json_object_get(e, "poll-grow")), ==, 12);
    g_assert_cmpint(json_integer_value(json_object_get(e, "poll-shrink")), ==, 13);
    g_assert_cmpint(json_integer_value(json_object_get(e, "aio-max-batch")), ==, 14);
    if (binary_is_v11()) {
        g_assert_cmpint(json_integer_value(json_object_get(e, "poll-weight")), ==, 3);
    }
    task = g_strdup_printf("/proc/%d/task/%d", t->child->pid,
                           (int)json_integer_value(json_object_get(e, "thread-id")));
    g_assert_true(g_file_test(task, G_FILE_TEST_IS_DIR));
    json_decref(list);
    qt_stop(t);
}

static void test_thread_name(void)
{
    QTest *t;
    json_t *list;
    g_autofree char *path = NULL, *comm = NULL;

    if (!binary_is_v11()) {
        g_test_skip("threads are named only on request in old versions");
        return;
    }
    t = start_none("-object iothread,id=i0");
    list = qmp_must(t->qmp, "query-iothreads", NULL);
    path = g_strdup_printf("/proc/%d/task/%d/comm", t->child->pid,
                           (int)json_integer_value(json_object_get(json_array_get(list, 0), "thread-id")));
    json_decref(list);
    g_assert_true(g_file_get_contents(path, &comm, NULL, NULL));
    g_assert_cmpstr(comm, ==, "IO i0\n");
    qt_stop(t);
}

static void test_info_iothreads(void)
{
    QTest *t = start_none("-object iothread,id=i0,aio-max-batch=4");
    json_t *list = qmp_must(t->qmp, "query-iothreads", NULL);
    long long tid = json_integer_value(json_object_get(json_array_get(list, 0), "thread-id"));
    g_autofree char *text = qmp_hmp(t->qmp, "info iothreads");
    g_autofree char *expect = NULL;

    if (binary_is_v11()) {
        expect = g_strdup_printf("i0:\r\n  thread_id=%lld\r\n  poll-max-ns=32768\r\n  poll-grow=2\r\n"
                                 "  poll-shrink=2\r\n  poll-weight=3\r\n  aio-max-batch=4\r\n", tid);
    } else {
        expect = g_strdup_printf("i0:\r\n  thread_id=%lld\r\n  poll-max-ns=32768\r\n  poll-grow=0\r\n"
                                 "  poll-shrink=0\r\n  aio-max-batch=4\r\n", tid);
    }
    g_assert_cmpstr(text, ==, expect);
    json_decref(list);
    qt_stop(t);
}

static void test_no_iothreads(void)
{
    QTest *t = start_none("-nodefaults");
    json_t *list = qmp_must(t->qmp, "query-iothreads", NULL);
    g_autofree char *text = qmp_hmp(t->qmp, "info iothreads");

    g_assert_cmpuint(json_array_size(list), ==, 0);
    g_assert_cmpstr(text, ==, "");
    json_decref(list);
    qt_stop(t);
}

static void test_list_properties(void)
{
    static const char *const order[] = {"type", "thread-pool-min", "aio-max-batch", "thread-pool-max",
                                        "poll-max-ns", "poll-weight", "poll-grow", "poll-shrink"};
    QTest *t;
    json_t *list, *e;
    size_t i, k = 0;

    if (!binary_is_v11()) {
        g_test_skip("older versions list others");
        return;
    }
    t = start_none("-nodefaults");
    list = qmp_must(t->qmp, "qom-list-properties", "{s:s}", "typename", "iothread");
    json_array_foreach(list, i, e) {
        const char *name = json_string_value(json_object_get(e, "name"));

        if (g_str_has_prefix(name, "x-") || !strcmp(name, "aio-max-events")) {
            continue; /* ours */
        }
        g_assert_cmpuint(k, <, G_N_ELEMENTS(order));
        g_assert_cmpstr(name, ==, order[k]);
        g_assert_cmpstr(json_string_value(json_object_get(e, "type")), ==, k ? "int" : "string");
        k++;
    }
    g_assert_cmpuint(k, ==, G_N_ELEMENTS(order));
    json_decref(list);
    qt_stop(t);
}

static void test_main_loop(void)
{
    QTest *t = start_none("-object main-loop,id=ml,aio-max-batch=3,thread-pool-max=5");
    g_autofree char *again = NULL, *poll = NULL, *del = NULL;
    json_t *list = qmp_must(t->qmp, "query-iothreads", NULL);

    g_assert_cmpuint(json_array_size(list), ==, 0);
    json_decref(list);
    g_assert_cmpint(get(t, "ml", "aio-max-batch"), ==, 3);
    g_assert_cmpint(get(t, "ml", "thread-pool-max"), ==, 5);
    json_decref(qmp_must(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/ml", "property", "aio-max-batch",
                         "value", 9));
    g_assert_cmpint(get(t, "ml", "aio-max-batch"), ==, 9);
    poll = qmp_must_fail(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/ml", "property", "poll-max-ns");
    g_assert_cmpstr(poll, ==, "GenericError: Property 'main-loop.poll-max-ns' not found");
    again = qmp_must_fail(t->qmp, "object-add", "{s:s,s:s}", "qom-type", "main-loop", "id", "ml2");
    g_assert_cmpstr(again, ==, "GenericError: only one main-loop instance allowed");
    del = qmp_must_fail(t->qmp, "object-del", "{s:s}", "id", "ml");
    g_assert_cmpstr(del, ==, binary_is_v11() ? "GenericError: Deleting main loop 'ml' is not supported"
                                             : "GenericError: object 'ml' is in use, can not be deleted");
    qt_stop(t);
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
    g_test_add_data_func(path, c, fn);
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

static void add_life(void)
{
    for (int way = 0; way < N_WAYS; way++) {
        add_case(test_unknown, GUINT_TO_POINTER(way), "/iothread/refuse/%s/unknown-property", way_name[way]);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(namings); i++) {
        add_case(test_naming, &namings[i], "/iothread/refuse/naming/%s", namings[i].name);
    }
    for (int hmp = 0; hmp < 2; hmp++) {
        const char *name = hmp ? "object_del" : "object-del";

        add_case(test_delete_idle, GINT_TO_POINTER(hmp), "/iothread/%s/idle-goes", name);
        add_case(test_delete_unknown, GINT_TO_POINTER(hmp), "/iothread/%s/unknown-is-refused", name);
        add_case(test_delete_in_use, GINT_TO_POINTER(hmp), "/iothread/%s/in-use-is-refused", name);
        add_case(test_pool_min_above_max, GINT_TO_POINTER(hmp), "/iothread/refuse/%s/pool-min-above-max",
                 way_name[hmp ? WAY_CLI : WAY_QMP]);
    }
    g_test_add_func("/iothread/object-del/id-is-free-again", test_id_is_free_after_delete);
    g_test_add_func("/iothread/refuse-set/unknown-property", test_unknown_at_run_time);
    g_test_add_func("/iothread/refuse-set/poisons-nothing", test_refused_set_poisons_nothing);
    g_test_add_func("/iothread/query-iothreads/has-every-field", test_query_iothreads);
    g_test_add_func("/iothread/query-iothreads/empty-without", test_no_iothreads);
    g_test_add_func("/iothread/info-iothreads/format", test_info_iothreads);
    g_test_add_func("/iothread/thread/name", test_thread_name);
    g_test_add_func("/iothread/qom-list-properties/order", test_list_properties);
    g_test_add_func("/main-loop/life", test_main_loop);
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
    add_life();
    return g_test_run();
}
