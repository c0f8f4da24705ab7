/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Generated types through every visitor. */
#include "qapi/keyval.h"
#include "qapi/qapi-visit-test.h"

#include <glib.h>
#include <string.h>

static char *text_of(json_t *value)
{
    g_autoptr(json_t) owned = value;
    g_autoptr(GString) text = qjson_to_string(owned, false);

    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* @text read as TYPE and written again gives itself; the clone too, after the original is gone. */
#define CHECK_ROUND_TRIP(TYPE, text)                                                               \
    do {                                                                                           \
        g_autoptr(json_t) json_ = qjson_parse(text, &error_abort);                                 \
        TYPE *obj_ = TYPE##_from_json(json_, QAPI_JSON, &error_abort);                             \
        g_autofree char *in_ = text_of(json_incref(json_));                                        \
        g_autofree char *out_ = text_of(TYPE##_to_json(obj_));                                     \
        g_assert_cmpstr(out_, ==, in_);                                                            \
        TYPE *copy_ = qapi_clone_##TYPE(obj_);                                                     \
        qapi_free_##TYPE(obj_);                                                                    \
        g_autofree char *cloned_ = text_of(TYPE##_to_json(copy_));                                 \
        g_assert_cmpstr(cloned_, ==, in_);                                                         \
        qapi_free_##TYPE(copy_);                                                                   \
    } while (0)

#define CHECK_ERROR(TYPE, syntax, text, expected)                                                  \
    do {                                                                                           \
        Error *err_ = NULL;                                                                        \
        g_autoptr(json_t) json_ = qjson_parse(text, &error_abort);                                 \
        TYPE *obj_ = TYPE##_from_json(json_, syntax, &err_);                                       \
        g_assert_null(obj_);                                                                       \
        g_assert_nonnull(err_);                                                                    \
        g_assert_cmpstr(error_get_pretty(err_), ==, expected);                                     \
        error_free(err_);                                                                          \
    } while (0)

#define SCALARS                                                                                    \
    "{'i': -1, 'i8': -128, 'i16': 32767, 'i32': -2147483648, 'i64': 9223372036854775807, 'u8': 255, 'u16': 65535, "   \
    "'u32': 4294967295, 'u64': 1, 'size': 4096, 'flag': true, 'real': 1.5, 'text': 'x', 'anything': [1, {'a': 2}], "  \
    "'nothing': null, 'colour': 'dark-blue'}"

static void test_round_trips(void)
{
    CHECK_ROUND_TRIP(TestScalars, SCALARS);
    CHECK_ROUND_TRIP(TestEmpty, "{}");
    CHECK_ROUND_TRIP(TestOptional, "{}");
    CHECK_ROUND_TRIP(TestOptional, "{'number': 0, 'text': '', 'colour': 'red', 'nested': {'nested': {'number': 3}}, "
                                   "'list': [{}, {'text': 'x'}], 'anything': null, 'if': false, 'long': 0}");
    CHECK_ROUND_TRIP(TestLists, "{'numbers': [], 'small': [], 'texts': [], 'reals': [], 'flags': [], 'colours': [], "
                                "'structs': [], 'unions': [], 'choices': [], 'things': []}");
    CHECK_ROUND_TRIP(TestLists, "{'numbers': [1, -2], 'small': [0, 255, 7], 'texts': ['a', ''], 'reals': [0.5, 1.5], "
                                "'flags': [true, false], 'colours': ['red', 'green'], 'structs': [{'id': 1, 'name': "
                                "'x'}], 'unions': [{'colour': 'green', 'count': 4}], 'choices': ['x', 1, true, null, "
                                "[1, 2], {'id': 1, 'name': 'y'}], 'things': [{}, null, 3]}");
    CHECK_ROUND_TRIP(TestDerived, "{'id': 1, 'name': 'n', 'extra': 'e'}");
    CHECK_ROUND_TRIP(TestUnion, "{'colour': 'red', 'id': 1, 'name': 'n'}");
    CHECK_ROUND_TRIP(TestUnion, "{'colour': 'dark-blue', 'label': 'l'}");
    CHECK_ROUND_TRIP(TestUnion, "{'colour': 'green', 'count': 1, 'inner': {'colour': 'green', 'count': 2}}");
}

static void test_values_arrive(void)
{
    g_autoptr(json_t) json = qjson_parse(SCALARS, &error_abort);
    g_autoptr(TestScalars) s = TestScalars_from_json(json, QAPI_JSON, &error_abort);

    g_assert_cmpint(s->i, ==, -1);
    g_assert_cmpint(s->i8, ==, -128);
    g_assert_cmpint(s->i16, ==, 32767);
    g_assert_cmpint(s->i32, ==, INT32_MIN);
    g_assert_cmpint(s->i64, ==, INT64_MAX);
    g_assert_cmpuint(s->u8, ==, 255);
    g_assert_cmpuint(s->u16, ==, 65535);
    g_assert_cmpuint(s->u32, ==, UINT32_MAX);
    g_assert_cmpuint(s->size, ==, 4096);
    g_assert_true(s->flag);
    g_assert_true(s->real == 1.5);
    g_assert_cmpstr(s->text, ==, "x");
    g_assert_cmpint(s->colour, ==, TEST_COLOUR_DARK_BLUE);
    g_assert_true(json_is_null(s->nothing));
}

static void test_optional(void)
{
    g_autoptr(json_t) json = qjson_parse("{'number': 0, 'list': []}", &error_abort);
    g_autoptr(TestOptional) o = TestOptional_from_json(json, QAPI_JSON, &error_abort);

    g_assert_true(o->has_number);
    g_assert_false(o->has_colour);
    g_assert_false(o->has_if);
    g_assert_false(o->has_long);
    g_assert_null(o->text);
    g_assert_null(o->nested);
    g_assert_null(o->list);
}

/* A base's members come first, so a pointer to the derived struct serves as one to the base. */
static void test_base_layout(void)
{
    g_autoptr(json_t) json = qjson_parse("{'id': 7, 'name': 'n'}", &error_abort);
    g_autoptr(TestDerived) derived = TestDerived_from_json(json, QAPI_JSON, &error_abort);
    TestBase *base = (TestBase *)derived;

    g_assert_cmpint(base->id, ==, 7);
    g_assert_cmpstr(base->name, ==, "n");
}

static void test_alternate_kinds(void)
{
    static const struct {
        const char *text;
        QType type;
    } cases[] = {{"'x'", QTYPE_QSTRING}, {"1", QTYPE_QNUM},    {"true", QTYPE_QBOOL},
                 {"null", QTYPE_QNULL},  {"[1]", QTYPE_QLIST}, {"{'id': 1, 'name': 'x'}", QTYPE_QDICT}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(json_t) json = qjson_parse(cases[i].text, &error_abort);
        g_autoptr(TestChoice) choice = TestChoice_from_json(json, QAPI_JSON, &error_abort);

        g_assert_cmpint(choice->type, ==, cases[i].type);
    }
}

static void test_json_errors(void)
{
    CHECK_ERROR(TestBase, QAPI_JSON, "{}", "Parameter 'id' is missing");
    CHECK_ERROR(TestBase, QAPI_JSON, "{'id': 1}", "Parameter 'name' is missing");
    CHECK_ERROR(TestBase, QAPI_JSON, "{'id': 1, 'name': 'x', 'foo': 2}", "Parameter 'foo' is unexpected");
    CHECK_ERROR(TestBase, QAPI_JSON, "{'id': '5'}", "Invalid parameter type for 'id', expected: integer");
    CHECK_ERROR(TestBase, QAPI_JSON, "{'id': 1.5}", "Invalid parameter type for 'id', expected: integer");
    CHECK_ERROR(TestBase, QAPI_JSON, "{'id': 9223372036854775808}",
                "Invalid parameter type for 'id', expected: integer");
    CHECK_ERROR(TestBase, QAPI_JSON, "{'id': 1, 'name': null}", "Invalid parameter type for 'name', expected: string");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'if': 1}", "Invalid parameter type for 'if', expected: boolean");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'nested': 1}", "Invalid parameter type for 'nested', expected: object");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'list': {}}", "Invalid parameter type for 'list', expected: array");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'colour': 'pink'}", "Parameter 'colour' does not accept value 'pink'");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'colour': 3}", "Invalid parameter type for 'colour', expected: string");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'long': 256}", "Parameter 'long' expects uint8_t");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'long': -1}", "Parameter 'long' expects uint8_t");
    CHECK_ERROR(TestUnion, QAPI_JSON, "{'label': 'x'}", "Parameter 'colour' is missing");
    CHECK_ERROR(TestUnion, QAPI_JSON, "{'colour': 'red'}", "Parameter 'id' is missing");
    CHECK_ERROR(TestUnion, QAPI_JSON, "{'colour': 'dark-blue', 'count': 1}", "Parameter 'count' is unexpected");
    CHECK_ERROR(TestNarrow, QAPI_JSON, "true", "Invalid parameter type for 'null', expected: TestNarrow");
    CHECK_ERROR(TestNarrow, QAPI_JSON, "'pink'", "Parameter 'null' does not accept value 'pink'");
    CHECK_ERROR(TestBase, QAPI_JSON, "[]", "Invalid parameter type for '<anonymous>', expected: object");
}

static void test_error_paths(void)
{
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'nested': {'nested': {'number': 'x'}}}",
                "Invalid parameter type for 'nested.nested.number', expected: integer");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'list': [{}, {'foo': 1}]}", "Parameter 'list[1].foo' is unexpected");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'list': [{}, 5]}", "Invalid parameter type for 'list[1]', expected: object");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'list': [{}, {'number': 'x'}]}",
                "Parameter 'list.1.number' expects integer");
    CHECK_ERROR(TestUnion, QAPI_JSON, "{'colour': 'green', 'count': 1, 'inner': {'colour': 'green', 'count': -1}}",
                "Parameter 'count' expects uint16_t");
    CHECK_ERROR(TestLists, QAPI_JSON, "{'numbers': [1, 'x']}",
                "Invalid parameter type for 'numbers[1]', expected: integer");
}

static void test_keyval(void)
{
    g_autoptr(json_t) json = keyval_parse("number=0x10,text=a,colour=green,nested.if=on,list.0.long=7", NULL, NULL,
                                          &error_abort);
    g_autoptr(TestOptional) o = TestOptional_from_json(json, QAPI_KEYVAL, &error_abort);

    g_assert_cmpint(o->number, ==, 16);
    g_assert_cmpstr(o->text, ==, "a");
    g_assert_cmpint(o->colour, ==, TEST_COLOUR_GREEN);
    g_assert_true(o->nested->q_if);
    g_assert_cmpint(o->list->value->q_long, ==, 7);
    g_assert_null(o->list->next);
}

static void test_keyval_errors(void)
{
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'number': 'x'}", "Parameter 'number' expects integer");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'number': ''}", "Parameter 'number' expects integer");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'if': '1'}", "Parameter 'if' expects 'on' or 'off'");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'long': '256'}", "Parameter 'long' expects uint8_t");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'foo': '256'}", "Parameter 'foo' is unexpected");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'if': {'x': 'y'}}", "Parameters 'if.*' are unexpected");
    CHECK_ERROR(TestOptional, QAPI_KEYVAL, "{'list': 'x'}", "Invalid parameter type for 'list', expected: array");
}

static void test_opts(void)
{
    g_autoptr(json_t) json = qjson_parse("{'numbers': '1-3', 'small': '7', 'texts': 'a', 'reals': '0.5', "
                                         "'flags': 'on', 'colours': 'red', 'structs': 'x'}", &error_abort);
    g_autoptr(Visitor) v = visitor_input_new(json, QAPI_OPTS);
    g_autoptr(intList) numbers = NULL;
    g_autoptr(uint8List) small = NULL;

    visit_open(v, NULL, &error_abort);
    visit_type_intList(v, "numbers", &numbers, &error_abort);
    visit_type_uint8List(v, "small", &small, &error_abort);
    visit_close(v);
    g_assert_cmpint(numbers->value, ==, 1);
    g_assert_cmpint(numbers->next->value, ==, 2);
    g_assert_cmpint(numbers->next->next->value, ==, 3);
    g_assert_null(numbers->next->next->next);
    g_assert_cmpint(small->value, ==, 7);
    g_assert_null(small->next);
}

static void test_opts_errors(void)
{
    CHECK_ERROR(TestBase, QAPI_OPTS, "{'name': 'x'}", "Parameter 'id' is missing");
    CHECK_ERROR(TestBase, QAPI_OPTS, "{'id': 'x'}", "Parameter 'id' expects an int64 value");
    CHECK_ERROR(TestBase, QAPI_OPTS, "{'id': '1', 'name': 'x', 'foo': 'y'}", "Invalid parameter 'foo'");
    CHECK_ERROR(TestOptional, QAPI_OPTS, "{'if': 'x'}", "Parameter 'if' expects 'on' or 'off'");
    CHECK_ERROR(TestOptional, QAPI_OPTS, "{'long': 'x'}", "Parameter 'long' expects a uint64 value");
    CHECK_ERROR(intList, QAPI_OPTS, "'3-1'", "Parameter 'null' expects list of uint64 values or ranges");
    CHECK_ERROR(intList, QAPI_OPTS, "'0-99999999'", "Parameter 'null' expects list of uint64 values or ranges");
}

/* A nested struct finds its members among the flat ones; each belongs to whoever asks. */
static void test_opts_flat(void)
{
    g_autoptr(json_t) json = qjson_parse("{'colour': 'green', 'count': '3', 'label': 'l'}", &error_abort);
    g_autoptr(TestUnion) u = TestUnion_from_json(json, QAPI_OPTS, &error_abort);

    g_assert_cmpint(u->u.green.count, ==, 3);
    g_assert_cmpstr(u->label, ==, "l");
}

static void check_string(const char *text, bool (*visit)(Visitor *v, Error **errp), const char *expected)
{
    g_autoptr(Visitor) v = visitor_string_input_new(text);
    Error *err = NULL;

    g_assert_false(visit(v, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, expected);
    error_free(err);
}

static bool visit_p_int(Visitor *v, Error **errp)
{
    int64_t value = 0;

    return visit_type_int(v, "p", &value, errp);
}

static bool visit_p_uint(Visitor *v, Error **errp)
{
    uint32_t value = 0;

    return visit_type_uint32(v, "p", &value, errp);
}

static bool visit_p_size(Visitor *v, Error **errp)
{
    uint64_t value = 0;

    return visit_type_size(v, "p", &value, errp);
}

static bool visit_p_bool(Visitor *v, Error **errp)
{
    bool value = false;

    return visit_type_bool(v, "p", &value, errp);
}

static void test_string(void)
{
    g_autoptr(Visitor) v = visitor_string_input_new("0x20");
    int64_t value = 0;

    g_assert_true(visit_type_int(v, "p", &value, &error_abort));
    g_assert_cmpint(value, ==, 32);
    check_string("foo", visit_p_int, "Parameter 'p' expects int64");
    check_string("foo", visit_p_uint, "Parameter 'p' expects uint64");
    check_string("4294967296", visit_p_uint, "Parameter 'p' expects uint32_t");
    check_string("foo", visit_p_size, "Parameter 'p' expects size");
    check_string("1", visit_p_bool, "Parameter 'p' expects 'on' or 'off'");
}

/* QEMU's clients rely on -1 for "all ones"; what is beyond int64 keeps the precision of a double. */
static void test_uint64(void)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {{"-1", UINT64_MAX}, {"9223372036854775808", 1ull << 63}, {"12", 12}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(json_t) json = qjson_parse(cases[i].text, &error_abort);
        g_autoptr(Visitor) v = visitor_input_new(json, QAPI_JSON);
        uint64_t value = 0;

        g_assert_true(visit_type_uint64(v, "p", &value, &error_abort));
        g_assert_cmpuint(value, ==, cases[i].value);
    }
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'long': 99999999999999999999}", "Parameter 'long' expects uint64");
    CHECK_ERROR(TestOptional, QAPI_JSON, "{'long': 1.0}", "Parameter 'long' expects uint64");
}

static void test_enums(void)
{
    Error *err = NULL;

    g_assert_cmpstr(TestColour_str(TEST_COLOUR_DARK_BLUE), ==, "dark-blue");
    g_assert_cmpint(TEST_COLOUR__MAX, ==, 3);
    g_assert_cmpint(KIND_2ND, ==, 1);
    g_assert_cmpstr(TestKinds_str(KIND_A_B), ==, "a_b");
    g_assert_cmpint(qapi_enum_parse(&TestColour_lookup, "green", -1, &error_abort), ==, TEST_COLOUR_GREEN);
    g_assert_cmpint(qapi_enum_parse(&TestColour_lookup, NULL, 7, &error_abort), ==, 7);
    g_assert_cmpint(qapi_enum_parse(&TestColour_lookup, "pink", -1, &err), ==, -1);
    g_assert_cmpstr(error_get_pretty(err), ==, "invalid parameter value: pink");
    error_free(err);
}

static void test_conditions(void)
{
    static const char *const expected[] = {"always", "when-on", "when-not-off", "when-either"};

    g_assert_cmpint(TEST_CONDITIONAL__MAX, ==, G_N_ELEMENTS(expected));
    for (int i = 0; i < TEST_CONDITIONAL__MAX; i++) {
        g_assert_cmpstr(TestConditional_str(i), ==, expected[i]);
    }
}

static void test_list_macros(void)
{
    intList *list = NULL, **tail = &list;

    QAPI_LIST_APPEND(tail, 2);
    QAPI_LIST_APPEND(tail, 3);
    QAPI_LIST_PREPEND(list, 1);
    g_autofree char *text = text_of(intList_to_json(list));
    g_assert_cmpstr(text, ==, "[1, 2, 3]");
    qapi_free_intList(list);
}

static void test_free_null(void)
{
    qapi_free_TestUnion(NULL);
    qapi_free_intList(NULL);
    g_assert_null(qapi_clone_TestUnion(NULL));
}

/* A file name that is not UTF-8 goes through. */
static void test_raw_bytes(void)
{
    TestBase base = {.id = 1, .name = (char *)"\xff"};
    g_autofree char *text = text_of(TestBase_to_json(&base));

    g_assert_cmpstr(text, ==, "{\"name\": \"\\uFFFD\", \"id\": 1}");
}

static TestUnion *random_union(int depth)
{
    TestUnion *u = g_new0(TestUnion, 1);

    u->colour = g_test_rand_int_range(0, TEST_COLOUR__MAX);
    u->label = g_test_rand_bit() ? g_strdup("label") : NULL;
    if (u->colour == TEST_COLOUR_RED) {
        u->u.red.id = g_test_rand_int();
        u->u.red.name = g_strdup_printf("%d", g_test_rand_int());
        u->u.red.extra = g_test_rand_bit() ? g_strdup("extra") : NULL;
    } else if (u->colour == TEST_COLOUR_GREEN) {
        u->u.green.count = g_test_rand_int_range(0, 65536);
        u->u.green.inner = depth ? random_union(depth - 1) : NULL;
    }
    return u;
}

static void test_random_round_trip(void)
{
    for (int i = 0; i < 1000; i++) {
        g_autoptr(TestUnion) u = random_union(5);
        g_autoptr(json_t) json = TestUnion_to_json(u);
        g_autoptr(TestUnion) again = TestUnion_from_json(json, QAPI_JSON, &error_abort);
        g_autoptr(json_t) json_again = TestUnion_to_json(again);

        g_assert_true(json_equal(json, json_again));
    }
}

/* Change the @n-th value found in the tree, counting through containers; returns what is left of @n. */
static int damage(json_t *value, int n)
{
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach(value, key, member) {
        if (n-- == 0) {
            json_object_set_new(value, key, g_test_rand_bit() ? json_null() : json_string("damage"));
            return -1;
        }
        n = damage(member, n);
        if (n < 0) {
            return n;
        }
    }
    json_array_foreach(value, i, member) {
        if (n-- == 0) {
            json_array_set_new(value, i, json_object());
            return -1;
        }
        n = damage(member, n);
        if (n < 0) {
            return n;
        }
    }
    return n;
}

/* Input that goes wrong anywhere leaves nothing behind (for the leak checker) and says what was wrong. */
static void test_damaged_input(void)
{
    int failures = 0;

    for (int n = 0; n < 60; n++) {
        g_autoptr(json_t) json = qjson_parse(
            "{'numbers': [1, -2], 'small': [0, 255, 7], 'texts': ['a', ''], 'reals': [0.5, 1.5], 'flags': [true], "
            "'colours': ['red', 'green'], 'structs': [{'id': 1, 'name': 'x'}], 'unions': [{'colour': 'green', 'count': "
            "4, 'inner': {'colour': 'red', 'id': 1, 'name': 'x'}}], 'choices': ['x', [1, 2], {'id': 1, 'name': 'y'}], "
            "'things': [{}, null, 3]}", &error_abort);
        Error *err = NULL;

        damage(json, n);
        TestLists *lists = TestLists_from_json(json, QAPI_JSON, &err);
        g_assert_true(!lists != !err);
        failures += !lists;
        qapi_free_TestLists(lists);
        error_free(err);
    }
    g_assert_cmpint(failures, >, 20);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi/visitor/json/round-trips", test_round_trips);
    g_test_add_func("/qapi/visitor/json/values-arrive", test_values_arrive);
    g_test_add_func("/qapi/visitor/json/absent-optionals", test_optional);
    g_test_add_func("/qapi/visitor/json/errors-in-qemus-words", test_json_errors);
    g_test_add_func("/qapi/visitor/json/errors-name-the-path", test_error_paths);
    g_test_add_func("/qapi/visitor/json/uint64", test_uint64);
    g_test_add_func("/qapi/visitor/json/bytes-that-are-not-utf8", test_raw_bytes);
    g_test_add_func("/qapi/visitor/json/random-round-trip", test_random_round_trip);
    g_test_add_func("/qapi/visitor/json/damaged-input-is-freed", test_damaged_input);
    g_test_add_func("/qapi/visitor/keyval/values-arrive", test_keyval);
    g_test_add_func("/qapi/visitor/keyval/errors-in-qemus-words", test_keyval_errors);
    g_test_add_func("/qapi/visitor/opts/lists-and-ranges", test_opts);
    g_test_add_func("/qapi/visitor/opts/flat", test_opts_flat);
    g_test_add_func("/qapi/visitor/opts/errors-in-qemus-words", test_opts_errors);
    g_test_add_func("/qapi/visitor/string/values-and-errors", test_string);
    g_test_add_func("/qapi/types/base-members-first", test_base_layout);
    g_test_add_func("/qapi/types/alternate-tells-kinds", test_alternate_kinds);
    g_test_add_func("/qapi/types/enum-names", test_enums);
    g_test_add_func("/qapi/types/conditions-resolved", test_conditions);
    g_test_add_func("/qapi/types/list-macros", test_list_macros);
    g_test_add_func("/qapi/types/null-is-freed-and-cloned", test_free_null);
    return g_test_run();
}
