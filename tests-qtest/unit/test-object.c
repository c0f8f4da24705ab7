/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The object tree, properties with their conversions, and iothread objects. */
#include "object/iothread.h"
#include "object/object.h"

#include "qapi/json.h"

#include <string.h>
#include <unistd.h>

/* --- A type with a property of each kind --- */

typedef struct Sample {
    Object obj;
    bool flag;
    char *text;
    int64_t i;
    uint16_t u16;
    uint32_t u32;
    int32_t i32;
    uint64_t u64;
    uint64_t size;
    int choice;
    int completed;
} Sample;

static int finalized;

static const char *const choices[] = {"red", "green", NULL};

static const ObjectProperty sample_properties[] = {
    {.name = "flag", .kind = PROP_BOOL, .get = object_get_bool, .set = object_set_bool, .offset = offsetof(Sample, flag)},
    {.name = "text", .kind = PROP_STRING, .get = object_get_string, .set = object_set_string, .offset = offsetof(Sample, text)},
    {.name = "i", .kind = PROP_INT, .get = object_get_int64, .set = object_set_int64, .offset = offsetof(Sample, i), .min = -5, .max = 5},
    {.name = "u16", .kind = PROP_UINT16, .get = object_get_uint16, .set = object_set_uint16, .offset = offsetof(Sample, u16)},
    {.name = "u32", .kind = PROP_UINT32, .get = object_get_uint32, .set = object_set_uint32, .offset = offsetof(Sample, u32)},
    {.name = "i32", .kind = PROP_INT32, .get = object_get_int32, .set = object_set_int32, .offset = offsetof(Sample, i32)},
    {.name = "u64", .kind = PROP_UINT64, .get = object_get_uint64, .set = object_set_uint64, .offset = offsetof(Sample, u64)},
    {.name = "size", .kind = PROP_SIZE, .get = object_get_uint64, .set = object_set_uint64, .offset = offsetof(Sample, size)},
    {.name = "choice", .kind = PROP_ENUM, .get = object_get_enum, .set = object_set_enum, .values = choices, .offset = offsetof(Sample, choice)},
    {.name = "read-only", .kind = PROP_INT, .get = object_get_int64, .offset = offsetof(Sample, i)},
    {.name = "write-only", .kind = PROP_INT, .set = object_set_int64, .offset = offsetof(Sample, i)},
    {0},
};

static bool sample_complete(Object *obj, Error **errp)
{
    Sample *s = (Sample *)obj;

    if (s->i == 5) {
        error_setg(errp, "five is right out");
        return false;
    }
    s->completed++;
    return true;
}

static void sample_finalize(Object *obj)
{
    g_free(((Sample *)obj)->text);
    finalized++;
}

static const char *const creatable[] = {"user-creatable", NULL};

static const ObjectType test_types[] = {
    {.name = "sample-base", .parent = "object", .abstract = true, .size = sizeof(Sample), .interfaces = creatable,
     .properties = sample_properties, .finalize = sample_finalize, .complete = sample_complete},
    {.name = "sample", .parent = "sample-base"},
};

static void expect(Error *err, const char *text)
{
    if (!text) {
        g_assert_null(err);
        return;
    }
    g_assert_nonnull(err);
    g_assert_cmpstr(error_get_pretty(err), ==, text);
    error_free(err);
}

/* --- Conversions: what is given, what is read back or said --- */

typedef struct Case {
    const char *label, *property, *given; /* JSON, or text for the three text kinds */
    const char *back, *error;
} Case;

static const Case json_cases[] = {
    {"bool", "flag", "true", "true", NULL},
    {"bool-from-int", "flag", "1", NULL, "Invalid parameter type for 'flag', expected: boolean"},
    {"string", "text", "'x y'", "\"x y\"", NULL},
    {"string-from-null", "text", "null", NULL, "Invalid parameter type for 'text', expected: string"},
    {"int", "i", "-5", "-5", NULL},
    {"int-below-range", "i", "-6", NULL, "i value must be in range [-5, 5]"},
    {"int-above-range", "i", "6", NULL, "i value must be in range [-5, 5]"},
    {"int-from-string", "i", "'5'", NULL, "Invalid parameter type for 'i', expected: integer"},
    {"int-from-bool", "i", "true", NULL, "Invalid parameter type for 'i', expected: integer"},
    {"int-from-real", "i", "1.5", NULL, "Invalid parameter type for 'i', expected: integer"},
    {"int-above-64-bits", "i", "9223372036854775808", NULL, "Invalid parameter type for 'i', expected: integer"},
    {"uint16", "u16", "65535", "65535", NULL},
    {"uint16-too-large", "u16", "65536", NULL, "Parameter 'u16' expects uint16_t"},
    {"uint16-from-string", "u16", "'1'", NULL, "Parameter 'u16' expects uint64"},
    {"uint32-too-large", "u32", "4294967296", NULL, "Parameter 'u32' expects uint32_t"},
    {"int32", "i32", "-2147483648", "-2147483648", NULL},
    {"int32-too-small", "i32", "-2147483649", NULL, "Parameter 'i32' expects int32_t"},
    {"uint64", "u64", "9223372036854775807", "9223372036854775807", NULL},
    {"size", "size", "1024", "1024", NULL},
    {"size-from-string", "size", "'1k'", NULL, "Parameter 'size' expects uint64"},
    {"enum", "choice", "'green'", "\"green\"", NULL},
    {"enum-unknown", "choice", "'blue'", NULL, "Parameter 'choice' does not accept value 'blue'"},
    {"enum-from-int", "choice", "1", NULL, "Invalid parameter type for 'choice', expected: string"},
    {"unknown", "nope", "1", NULL, "Property 'sample.nope' not found"},
    {"read-only", "read-only", "1", NULL, "Property 'sample.read-only' is not writable"},
    {"type", "type", "'x'", NULL, "Property 'sample.type' is not writable"},
};

static const Case text_cases[] = {
    {"bool-on", "flag", "on", "true", NULL},
    {"bool-y", "flag", "y", "true", NULL},
    {"bool-one", "flag", "1", NULL, "Parameter 'flag' expects 'on' or 'off'"},
    {"hex", "u16", "0x10", "16", NULL},
    {"octal", "u16", "010", "8", NULL},
    {"suffix-on-int", "u16", "1k", NULL, "Parameter 'u16' expects integer"},
    {"empty-int", "u16", "", NULL, "Parameter 'u16' expects integer"},
    {"size-suffix", "size", "2M", "2097152", NULL},
    {"size-fraction", "size", "1.5k", "1536", NULL},
    {"size-garbage", "size", "big", NULL, "Parameter 'size' expects a size value"},
    {"enum", "choice", "green", "\"green\"", NULL},
    {"enum-unknown", "choice", "blue", NULL, "Parameter 'choice' does not accept value 'blue'"},
    {"string-is-kept", "text", "5", "\"5\"", NULL},
};

static void check_back(Object *obj, const Case *c, Error *err)
{
    expect(err, c->error);
    if (c->back) {
        g_autoptr(json_t) value = object_get(obj, c->property, &error_abort);
        GString *text = qjson_to_string(value, false);
        g_assert_cmpstr(text->str, ==, c->back);
        g_string_free(text, TRUE);
    }
}

static void test_json(const void *opaque)
{
    const Case *c = opaque;
    Object *obj = object_new("sample");
    g_autoptr(json_t) value = qjson_parse(c->given, &error_abort);
    Error *err = NULL;

    g_assert_cmpint(object_set(obj, c->property, value, &err), ==, !c->error);
    check_back(obj, c, err);
    object_unref(obj);
}

static void test_text(const void *opaque)
{
    const Case *c = opaque;
    Object *obj = object_new("sample");
    Error *err = NULL;

    g_assert_cmpint(object_set_text(obj, c->property, c->given, PROPERTY_TEXT_DEVICE, &err), ==, !c->error);
    check_back(obj, c, err);
    object_unref(obj);
}

static void test_wording(void)
{
    Object *obj = object_new("sample");
    Error *err = NULL;

    object_set_text(obj, "i", "x", PROPERTY_TEXT_OBJECT, &err);
    expect(g_steal_pointer(&err), "Parameter 'i' expects an int64 value");
    object_set_text(obj, "i", "x", PROPERTY_TEXT_HMP, &err);
    expect(g_steal_pointer(&err), "Parameter 'i' expects int64");
    object_get(obj, "write-only", &err);
    expect(g_steal_pointer(&err), "Property 'sample.write-only' is not readable");
    object_unref(obj);
}

/* --- Tree --- */

static void test_paths(void)
{
    Object *a = object_container("/tree/a"), *b = object_container("/tree/b");
    Object *in_a = object_new("sample"), *in_b = object_new("sample");
    bool ambiguous;

    object_add_child(a, "dev[*]", in_a, &error_abort);
    object_add_child(b, "dev[*]", in_b, &error_abort);
    g_autofree char *path = object_path(in_b);
    g_assert_cmpstr(path, ==, "/tree/b/dev[0]");
    g_assert_true(object_resolve(path, NULL) == in_b);
    g_assert_true(object_resolve("b/dev[0]", NULL) == in_b);
    g_assert_null(object_resolve("dev[0]", &ambiguous));
    g_assert_true(ambiguous);
    g_assert_null(object_resolve("/tree/c", &ambiguous));
    g_assert_false(ambiguous);
    g_assert_null(object_resolve("", NULL));

    Error *err = NULL;
    Object *other = object_new("sample");
    g_assert_false(object_add_child(a, "dev[0]", other, &err));
    expect(err, "attempt to add duplicate property 'dev[0]' to object (type 'container')");
    object_unref(other);

    finalized = 0;
    object_unref(in_a);
    object_unref(in_b);
    g_assert_cmpint(finalized, ==, 0);
    object_unparent(in_a);
    object_unparent(in_b);
    g_assert_cmpint(finalized, ==, 2);
    object_unparent(object_resolve("/tree", NULL));
}

static void test_children_die_with_parent(void)
{
    Object *parent = object_new("container"), *child = object_new("sample");

    object_add_child(parent, "c", child, &error_abort);
    object_unref(child);
    finalized = 0;
    object_unref(parent);
    g_assert_cmpint(finalized, ==, 1);
}

/* --- User-creatable objects --- */

typedef struct AddCase {
    const char *label, *options, *error;
} AddCase;

static const AddCase add_cases[] = {
    {"no-type", "{'id': 'x'}", "Parameter 'qom-type' is missing"},
    {"unknown-type", "{'qom-type': 'nosuch', 'id': 'x'}", "Parameter 'qom-type' does not accept value 'nosuch'"},
    {"abstract-type", "{'qom-type': 'sample-base', 'id': 'x'}", "Parameter 'qom-type' does not accept value 'sample-base'"},
    {"not-creatable", "{'qom-type': 'container', 'id': 'x'}", "Parameter 'qom-type' does not accept value 'container'"},
    {"no-id", "{'qom-type': 'sample'}", "Parameter 'id' is missing"},
    {"bad-id", "{'qom-type': 'sample', 'id': '0x'}", "Parameter 'id' expects an identifier"},
    {"unknown-property", "{'qom-type': 'sample', 'id': 'x', 'foo': 1}", "Parameter 'foo' is unexpected"},
    {"read-only-property", "{'qom-type': 'sample', 'id': 'x', 'read-only': 1}", "Parameter 'read-only' is unexpected"},
    {"bad-value", "{'qom-type': 'sample', 'id': 'x', 'i': 77}", "i value must be in range [-5, 5]"},
    {"complete-fails", "{'qom-type': 'sample', 'id': 'x', 'i': 5}", "five is right out"},
};

static void test_add_fails(const void *opaque)
{
    const AddCase *c = opaque;
    g_autoptr(json_t) options = qjson_parse(c->options, &error_abort);
    Error *err = NULL;

    g_assert_false(user_creatable_add(options, &err));
    expect(err, c->error);
    g_assert_null(object_child(object_objects(), "x"));
}

static void test_add_and_delete(void)
{
    g_autoptr(json_t) options = qjson_parse("{'qom-type': 'sample', 'id': 'x', 'i': 3, 'text': 't'}", &error_abort);
    Error *err = NULL;

    g_assert_true(user_creatable_add(options, &error_abort));
    Sample *s = (Sample *)object_child(object_objects(), "x");
    g_assert_cmpint(s->completed, ==, 1);
    g_assert_cmpint(s->i, ==, 3);
    g_assert_false(user_creatable_add(options, &err));
    expect(g_steal_pointer(&err), "attempt to add duplicate property 'x' to object (type 'container')");
    object_use(&s->obj);
    g_assert_false(user_creatable_del("x", &err));
    expect(g_steal_pointer(&err), "object 'x' is in use, can not be deleted");
    object_unuse(&s->obj);
    finalized = 0;
    g_assert_true(user_creatable_del("x", &error_abort));
    g_assert_cmpint(finalized, ==, 1);
    g_assert_false(user_creatable_del("x", &err));
    expect(err, "object 'x' not found");
}

/* --- iothread --- */

static IOThread *make_iothread(const char *extra)
{
    g_autofree char *text = g_strdup_printf("{'qom-type': 'iothread', 'id': 'i0'%s}", extra);
    g_autoptr(json_t) options = qjson_parse(text, &error_abort);

    user_creatable_add(options, &error_abort);
    return iothread_by_id("i0");
}

static int64_t get_int(IOThread *t, const char *name)
{
    g_autoptr(json_t) v = object_get(iothread_object(t), name, &error_abort);
    return json_integer_value(v);
}

static bool set_int(IOThread *t, const char *name, int64_t value, Error **errp)
{
    g_autoptr(json_t) v = json_integer(value);
    return object_set(iothread_object(t), name, v, errp);
}

static void note_thread(void *opaque)
{
    *(pid_t *)opaque = gettid();
}

static void test_iothread_runs(void)
{
    IOThread *t = make_iothread("");
    pid_t seen = 0;

    aio_run_in_home(iothread_context(t), note_thread, &seen);
    g_assert_cmpint(seen, ==, iothread_thread_id(t));
    g_assert_cmpint(seen, !=, gettid());
    g_assert_cmpint(get_int(t, "poll-max-ns"), ==, 32768);
    g_assert_cmpint(get_int(t, "poll-weight"), ==, 3);
    user_creatable_del("i0", &error_abort);
}

static void test_iothread_params_reach_loop(void)
{
    IOThread *t = make_iothread(", 'aio-max-batch': 7, 'thread-pool-min': 2, 'thread-pool-max': 3");
    AioContext *ctx = iothread_context(t);
    int min, max;

    g_assert_cmpint(aio_context_max_batch(ctx), ==, 7);
    aio_context_thread_pool(ctx, &min, &max);
    g_assert_cmpint(min, ==, 2);
    g_assert_cmpint(max, ==, 3);
    set_int(t, "aio-max-batch", 9, &error_abort);
    g_assert_cmpint(aio_context_max_batch(ctx), ==, 9);
    set_int(t, "poll-grow", 0, &error_abort);
    g_assert_cmpint(get_int(t, "poll-grow"), ==, AIO_POLL_GROW_DEFAULT);
    user_creatable_del("i0", &error_abort);
}

/* A refused value changes nothing and does not stand in the way of the next. */
static void test_iothread_refused_set(void)
{
    IOThread *t = make_iothread("");
    Error *err = NULL;

    g_assert_false(set_int(t, "thread-pool-min", 65, &err));
    expect(g_steal_pointer(&err), "bad thread-pool-min/thread-pool-max values");
    g_assert_cmpint(get_int(t, "thread-pool-min"), ==, 0);
    g_assert_false(set_int(t, "thread-pool-max", 0, &err));
    expect(g_steal_pointer(&err), "bad thread-pool-min/thread-pool-max values");
    g_assert_false(set_int(t, "thread-pool-min", -1, &err));
    expect(g_steal_pointer(&err), "thread-pool-min value must be in range [0, 9223372036854775807]");
    g_assert_false(set_int(t, "x-poll-yield-ns", -1, &err));
    expect(g_steal_pointer(&err), "x-poll-yield-ns value must be in range [0, 9223372036854775807]");
    g_assert_false(set_int(t, "poll-weight", 64, &err));
    expect(g_steal_pointer(&err), "poll-weight value must be in range [0, 63]");
    g_assert_true(set_int(t, "aio-max-batch", 4, &error_abort));
    g_assert_true(set_int(t, "thread-pool-min", 64, &error_abort));
    user_creatable_del("i0", &error_abort);
}

static void test_iothread_monitor(const void *monitor)
{
    g_autofree char *extra = g_strdup_printf(", 'x-fdmon': '%s'", (const char *)monitor);
    g_autofree char *text = g_strdup_printf("{'qom-type': 'iothread', 'id': 'i0'%s}", extra);
    g_autoptr(json_t) options = qjson_parse(text, &error_abort);
    Error *err = NULL;
    pid_t seen = 0;

    if (!user_creatable_add(options, &err)) {
        g_test_skip(error_get_pretty(err));
        error_free(err);
        return;
    }
    IOThread *t = iothread_by_id("i0");
    g_autoptr(json_t) in_force = object_get(iothread_object(t), "x-fdmon", &error_abort);
    g_assert_cmpstr(json_string_value(in_force), ==, monitor);
    aio_run_in_home(iothread_context(t), note_thread, &seen);
    g_assert_cmpint(seen, ==, iothread_thread_id(t));
    g_autoptr(json_t) other = json_string("poll");
    g_assert_false(object_set(iothread_object(t), "x-fdmon", other, &err));
    expect(err, "Property 'iothread.x-fdmon' can only be set when the object is created");
    user_creatable_del("i0", &error_abort);
}

typedef struct FlagsCase {
    const char *text, *reads, *error;
} FlagsCase;

static const FlagsCase flags_cases[] = {
    {"auto", "auto", NULL},
    {"none", "none", NULL},
    {"auto:registered-files", "auto:registered-files", NULL},
    {"registered-buffers:auto:registered-files", "auto:registered-files:registered-buffers", NULL},
    {"registered-buffers", "registered-buffers", NULL},
    {"registered-ring:registered-ring", "registered-ring", NULL},
    {"defer-taskrun:single-issuer", "single-issuer:defer-taskrun", NULL},
    {"defer-taskrun:registered-files", NULL, "x-io-uring-flags: defer-taskrun needs single-issuer"},
    {"auto:no-sqarray", NULL, "x-io-uring-flags: auto can be joined by registered-files and registered-buffers only"},
    {"", NULL, "Parameter 'x-io-uring-flags' does not accept value ''"},
    {"none:registered-files", NULL, "Parameter 'x-io-uring-flags' does not accept value 'none'"},
    {"registered-buffer", NULL, "Parameter 'x-io-uring-flags' does not accept value 'registered-buffer'"},
};

/* Before the loop runs the property reads back what was asked for; a refused value leaves it alone. */
static void test_uring_flags(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(flags_cases); i++) {
        const FlagsCase *c = &flags_cases[i];
        Object *obj = object_new("iothread");
        g_autoptr(json_t) value = json_string(c->text);
        Error *err = NULL;

        g_assert_true(object_set(obj, "x-io-uring-flags", value, &err) == !c->error);
        if (c->error) {
            expect(err, c->error);
        }
        g_autoptr(json_t) is = object_get(obj, "x-io-uring-flags", &error_abort);
        g_assert_cmpstr(json_string_value(is), ==, c->reads ? c->reads : "auto");
        object_unref(obj);
    }
}

static void test_main_loop(void)
{
    g_autoptr(json_t) options = qjson_parse("{'qom-type': 'main-loop', 'id': 'ml', 'aio-max-batch': 5}", &error_abort);
    g_autoptr(json_t) again = qjson_parse("{'qom-type': 'main-loop', 'id': 'm2'}", &error_abort);
    Error *err = NULL;

    user_creatable_add(options, &error_abort);
    g_assert_cmpint(aio_context_max_batch(aio_context_main()), ==, 5);
    g_assert_false(user_creatable_add(again, &err));
    expect(g_steal_pointer(&err), "only one main-loop instance allowed");
    g_assert_false(user_creatable_del("ml", &err));
    expect(err, "Deleting main loop 'ml' is not supported");
    g_assert_null(object_type_find_property(object_find_type("main-loop"), "poll-max-ns"));
}

int main(int argc, char **argv)
{
    static const char *const monitors[] = {"poll", "epoll", "io_uring", "linux-aio"};
    AioContextConfig cfg = {.name = "main", .is_main = true};

    g_test_init(&argc, &argv, NULL);
    aio_context_set_main(aio_context_new(&cfg, &error_abort));
    object_register_types();
    for (unsigned int i = 0; i < G_N_ELEMENTS(test_types); i++) {
        object_register_type(&test_types[i]);
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(json_cases); i++) {
        g_autofree char *path = g_strdup_printf("/object/set/json/%s", json_cases[i].label);
        g_test_add_data_func(path, &json_cases[i], test_json);
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(text_cases); i++) {
        g_autofree char *path = g_strdup_printf("/object/set/text/%s", text_cases[i].label);
        g_test_add_data_func(path, &text_cases[i], test_text);
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(add_cases); i++) {
        g_autofree char *path = g_strdup_printf("/object/add/%s-leaves-nothing", add_cases[i].label);
        g_test_add_data_func(path, &add_cases[i], test_add_fails);
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(monitors); i++) {
        g_autofree char *path = g_strdup_printf("/iothread/x-fdmon/%s", monitors[i]);
        g_test_add_data_func(path, monitors[i], test_iothread_monitor);
    }
    g_test_add_func("/object/set/text/wording-names-the-interface", test_wording);
    g_test_add_func("/object/tree/paths", test_paths);
    g_test_add_func("/object/tree/children-die-with-parent", test_children_die_with_parent);
    g_test_add_func("/object/add/use-protects-from-deletion", test_add_and_delete);
    g_test_add_func("/iothread/runs-in-its-own-thread", test_iothread_runs);
    g_test_add_func("/iothread/parameters-reach-the-loop", test_iothread_params_reach_loop);
    g_test_add_func("/iothread/refused-value-changes-nothing", test_iothread_refused_set);
    g_test_add_func("/iothread/x-io-uring-flags/text", test_uring_flags);
    g_test_add_func("/main-loop/one-instance-not-deletable", test_main_loop);
    return g_test_run();
}
