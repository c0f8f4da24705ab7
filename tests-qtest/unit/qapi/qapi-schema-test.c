/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The real schema: what its types accept, with QEMU's complaints, and that its description is closed. */
#include "qapi/keyval.h"
#include "qapi/qapi-introspect.h"
#include "qapi/qapi-visit-block.h"
#include "qapi/qapi-visit-control.h"
#include "qapi/qapi-visit-introspect.h"
#include "qapi/qapi-visit-misc.h"
#include "qapi/qapi-visit-qom.h"

#include <glib.h>
#include <string.h>

static BlockdevOptions *blockdev(const char *params, Error **errp)
{
    g_autoptr(json_t) json = keyval_parse(params, "driver", NULL, errp);

    return json ? BlockdevOptions_from_json(json, QAPI_KEYVAL, errp) : NULL;
}

static void check_blockdev_error(const char *params, const char *expected)
{
    Error *err = NULL;

    g_assert_null(blockdev(params, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, expected);
    error_free(err);
}

static void test_blockdev(void)
{
    g_autoptr(BlockdevOptions) o =
        blockdev("raw,node-name=n,offset=0x200,file.driver=file,file.filename=/a,,b,file.cache.direct=on,"
                 "file.aio=native",
                 &error_abort);

    g_assert_cmpint(o->driver, ==, BLOCKDEV_DRIVER_RAW);
    g_assert_cmpstr(o->node_name, ==, "n");
    g_assert_true(o->u.raw.has_offset);
    g_assert_cmpint(o->u.raw.offset, ==, 512);
    g_assert_cmpint(o->u.raw.file->type, ==, QTYPE_QDICT);
    BlockdevOptions *file = o->u.raw.file->u.definition;
    g_assert_cmpint(file->driver, ==, BLOCKDEV_DRIVER_FILE);
    g_assert_cmpstr(file->u.file.filename, ==, "/a,b");
    g_assert_true(file->cache->direct);
    g_assert_cmpint(file->u.file.aio, ==, BLOCKDEV_AIO_OPTIONS_NATIVE);
}

static void test_blockdev_reference(void)
{
    g_autoptr(BlockdevOptions) o = blockdev("driver=raw,file=f", &error_abort);

    g_assert_cmpint(o->u.raw.file->type, ==, QTYPE_QSTRING);
    g_assert_cmpstr(o->u.raw.file->u.reference, ==, "f");
}

static void test_blockdev_errors(void)
{
    check_blockdev_error("", "Parameter 'driver' is missing");
    check_blockdev_error("foo", "Parameter 'driver' does not accept value 'foo'");
    check_blockdev_error("null-co,,x", "Invalid parameter ''");
    check_blockdev_error("null-co,size=x", "Parameter 'size' expects integer");
    check_blockdev_error("null-co,foo=x", "Parameter 'foo' is unexpected");
    check_blockdev_error("raw", "Parameter 'file' is missing");
    check_blockdev_error("raw,file.driver=null-co,file.foo=x", "Parameter 'file.foo' is unexpected");
    check_blockdev_error("raw,file=b,read-only=x", "Parameter 'read-only' expects 'on' or 'off'");
    check_blockdev_error("file,filename=x,aio=foo", "Parameter 'aio' does not accept value 'foo'");
}

static void check_object_error(const char *json_text, QapiSyntax syntax, const char *expected)
{
    g_autoptr(json_t) json = qjson_parse(json_text, &error_abort);
    Error *err = NULL;

    g_assert_null(ObjectOptions_from_json(json, syntax, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, expected);
    error_free(err);
}

static void test_object_errors(void)
{
    check_object_error("{'id': 'a'}", QAPI_JSON, "Parameter 'qom-type' is missing");
    check_object_error("{'qom-type': 'device', 'id': 'a'}", QAPI_JSON,
                       "Parameter 'qom-type' does not accept value 'device'");
    check_object_error("{'qom-type': 'iothread'}", QAPI_JSON, "Parameter 'id' is missing");
    check_object_error("{'qom-type': 'iothread', 'id': 'a', 'props': {}}", QAPI_JSON,
                       "Parameter 'props' is unexpected");
    check_object_error("{'qom-type': 'iothread', 'id': 'a', 'poll-max-ns': '5'}", QAPI_JSON,
                       "Invalid parameter type for 'poll-max-ns', expected: integer");
    check_object_error("{'qom-type': 'iothread', 'id': 'a', 'poll-max-ns': 'x'}", QAPI_OPTS,
                       "Parameter 'poll-max-ns' expects an int64 value");
    check_object_error("{'qom-type': 'iothread', 'id': 'a', 'foo': 'x'}", QAPI_OPTS, "Invalid parameter 'foo'");
    check_object_error("{'qom-type': 'main-loop', 'id': 'a', 'poll-max-ns': '1'}", QAPI_OPTS,
                       "Invalid parameter 'poll-max-ns'");
    check_object_error("{'qom-type': 'memory-backend-ram', 'id': 'a', 'size': 'x'}", QAPI_OPTS,
                       "Parameter 'size' expects a size value");
    check_object_error("{'qom-type': 'memory-backend-ram', 'id': 'a', 'size': 'x'}", QAPI_KEYVAL,
                       "Parameter 'size' expects size");
    /* What the objects refuse, the schema does not offer. */
    check_object_error("{'qom-type': 'memory-backend-ram', 'id': 'a', 'size': 1, 'prealloc-threads': 1}", QAPI_JSON,
                       "Parameter 'prealloc-threads' is unexpected");
    check_object_error("{'qom-type': 'memory-backend-ram', 'id': 'a', 'size': 1, 'host-nodes': [0]}", QAPI_JSON,
                       "Parameter 'host-nodes' is unexpected");
    check_object_error("{'qom-type': 'memory-backend-ram', 'id': 'a'}", QAPI_JSON, "Parameter 'size' is missing");
}

static void test_object(void)
{
    g_autoptr(json_t) json =
        qjson_parse("{'qom-type': 'memory-backend-ram', 'id': 'm', 'size': '1.5M', 'merge': 'off'}", &error_abort);
    g_autoptr(ObjectOptions) o = ObjectOptions_from_json(json, QAPI_OPTS, &error_abort);
    g_autoptr(json_t) typed = ObjectOptions_to_json(o);
    g_autoptr(json_t) wanted =
        qjson_parse("{'qom-type': 'memory-backend-ram', 'id': 'm', 'size': 1572864, 'merge': false}", &error_abort);

    g_assert_true(json_equal(typed, wanted));
}

static void test_iothread_info_order(void)
{
    IOThreadInfo info = {.id = (char *)"i0", .thread_id = 1, .poll_max_ns = 32768, .poll_grow = 2, .poll_shrink = 2,
                         .poll_weight = 3, .aio_max_batch = 0};
    g_autoptr(json_t) json = IOThreadInfo_to_json(&info);
    g_autoptr(GString) text = qjson_to_string(json, false);

    g_assert_cmpstr(text->str, ==, "{\"poll-shrink\": 2, \"thread-id\": 1, \"poll-weight\": 3, \"aio-max-batch\": 0, "
                                   "\"poll-grow\": 2, \"poll-max-ns\": 32768, \"id\": \"i0\"}");
}

static void test_enable_error(void)
{
    g_autoptr(json_t) json = qjson_parse("['foo']", &error_abort);
    Error *err = NULL;

    g_assert_null(QMPCapabilityList_from_json(json, QAPI_JSON, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Parameter 'null' does not accept value 'foo'");
    error_free(err);
}

/* Each entry is a valid SchemaInfo, its name is unique, and whatever it refers to is there. */
static void test_introspection_is_closed(void)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) wanted = g_ptr_array_new_with_free_func(g_free);

    for (const char *const *text = qapi_schema_entries; *text; text++) {
        g_autoptr(json_t) json = qjson_parse(*text, &error_abort);
        g_autoptr(SchemaInfo) info = SchemaInfo_from_json(json, QAPI_JSON, &error_abort);

        g_assert_true(g_hash_table_add(names, g_strdup(info->name)));
        if (info->meta_type == SCHEMA_META_TYPE_COMMAND) {
            g_ptr_array_add(wanted, g_strdup(info->u.command.arg_type));
            g_ptr_array_add(wanted, g_strdup(info->u.command.ret_type));
        } else if (info->meta_type == SCHEMA_META_TYPE_ARRAY) {
            g_ptr_array_add(wanted, g_strdup(info->u.array.element_type));
        } else if (info->meta_type == SCHEMA_META_TYPE_OBJECT) {
            for (SchemaInfoObjectMemberList *m = info->u.object.members; m; m = m->next) {
                g_ptr_array_add(wanted, g_strdup(m->value->type));
            }
            for (SchemaInfoObjectVariantList *m = info->u.object.variants; m; m = m->next) {
                g_ptr_array_add(wanted, g_strdup(m->value->type));
            }
        }
    }
    g_assert_cmpuint(wanted->len, >, 100);
    for (guint i = 0; i < wanted->len; i++) {
        g_assert_true(g_hash_table_contains(names, g_ptr_array_index(wanted, i)));
    }
    g_assert_true(g_hash_table_contains(names, "query-iothreads"));
    g_assert_true(g_hash_table_contains(names, "BLOCK_IO_ERROR"));
}

/* Clients must not rely on the names of types, so they do not see them. */
static void test_introspection_masks_types(void)
{
    for (const char *const *text = qapi_schema_entries; *text; text++) {
        g_autoptr(json_t) json = qjson_parse(*text, &error_abort);
        const char *meta = json_string_value(json_object_get(json, "meta-type"));
        const char *name = json_string_value(json_object_get(json, "name"));

        if (!strcmp(meta, "object") || !strcmp(meta, "enum") || !strcmp(meta, "alternate")) {
            g_assert_cmpuint(strspn(name, "0123456789"), ==, strlen(name));
        } else if (!strcmp(meta, "array")) {
            g_assert_true(name[0] == '[' && name[strlen(name) - 1] == ']');
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/qapi/schema/blockdev/keyval", test_blockdev);
    g_test_add_func("/qapi/schema/blockdev/reference", test_blockdev_reference);
    g_test_add_func("/qapi/schema/blockdev/errors", test_blockdev_errors);
    g_test_add_func("/qapi/schema/object/typed-from-text", test_object);
    g_test_add_func("/qapi/schema/object/errors", test_object_errors);
    g_test_add_func("/qapi/schema/iothread-info-in-qemus-order", test_iothread_info_order);
    g_test_add_func("/qapi/schema/capability-error", test_enable_error);
    g_test_add_func("/qapi/schema/introspection/closed", test_introspection_is_closed);
    g_test_add_func("/qapi/schema/introspection/types-are-masked", test_introspection_masks_types);
    return g_test_run();
}
