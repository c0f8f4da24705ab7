/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of iothread objects: names, unknown properties, listings, removal; and the main-loop object. */
#include "common.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const char *const way_name[] = WAY_NAMES;

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
    g_autofree char *set =
        qmp_must_fail(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/i0", "property", "nope", "value", 1);
    g_autofree char *got = qmp_must_fail(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/i0", "property", "nope");
    g_autofree char *type =
        qmp_must_fail(t->qmp, "qom-set", "{s:s,s:s,s:s}", "path", "/objects/i0", "property", "type", "value", "x");

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
    g_assert_cmpint(iothread_get(t, "i0", "aio-max-batch"), ==, 0);
    qt_stop(t);
}

static void test_id_is_free_after_delete(void)
{
    QTest *t = start_none("-object iothread,id=i0,aio-max-batch=5");

    json_decref(qmp_must(t->qmp, "object-del", "{s:s}", "id", "i0"));
    json_decref(qmp_must(t->qmp, "object-add", "{s:s,s:s}", "qom-type", "iothread", "id", "i0"));
    g_assert_cmpint(iothread_get(t, "i0", "aio-max-batch"), ==, 0);
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
    task = g_strdup_printf("/proc/%d/task/%d", t->child->pid, (int)json_integer_value(json_object_get(e, "thread-id")));
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

/* Signals that the thread @task has blocked, one bit each. */
static uint64_t blocked_signals(const QTest *t, const char *task)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%s/status", t->child->pid, task);
    g_autofree char *status = NULL;
    const char *mask;

    g_assert_true(g_file_get_contents(path, &status, NULL, NULL));
    mask = strstr(status, "SigBlk:");
    g_assert_nonnull(mask);
    return g_ascii_strtoull(mask + 7, NULL, 16);
}

/* A signal that ends the process must find the main thread, so the others block it. */
static void test_thread_blocks_signals(void)
{
    QTest *t = start_none("-object iothread,id=i0");
    json_t *list = qmp_must(t->qmp, "query-iothreads", NULL);
    g_autofree char *task =
        g_strdup_printf("%d", (int)json_integer_value(json_object_get(json_array_get(list, 0), "thread-id")));

    json_decref(list);
    /* SIGHUP, SIGINT and SIGTERM: bits 0, 1 and 14. */
    g_assert_cmphex(blocked_signals(t, task) & 0x4003, ==, 0x4003);
    qt_stop(t);
}

/* A fault of a thread's own is not blocked, or it would end the process before whoever is there to report it. */
static void test_own_faults_are_heard(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
#ifdef __SANITIZE_THREAD__
    const unsigned int runtime = 1; /* ThreadSanitizer has a thread of its own, which blocks all */
#else
    const unsigned int runtime = 0;
#endif
    g_autofree char *path = NULL;
    g_autoptr(GDir) dir = NULL;
    const char *task;
    unsigned int threads = 0, deaf = 0;
    uint64_t mask = 0;
    QTest *t;

    if (!binary_is_ours()) {
        g_test_skip("other binaries have their own ways");
        return;
    }
    t = qt_start("-machine pc -nodefaults -object iothread,id=i0");
    path = g_strdup_printf("/proc/%d/task", t->child->pid);
    dir = g_dir_open(path, 0, NULL);
    for (unsigned int i = 0; i < G_N_ELEMENTS(faults); i++) {
        mask |= UINT64_C(1) << (faults[i] - 1);
    }
    while ((task = g_dir_read_name(dir))) {
        deaf += (blocked_signals(t, task) & mask) != 0;
        threads++;
    }
    g_assert_cmpuint(deaf, <=, runtime);
    /* The main thread, the iothread and a processor. */
    g_assert_cmpuint(threads, >=, 3 + runtime);
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
                                 "  poll-shrink=2\r\n  poll-weight=3\r\n  aio-max-batch=4\r\n",
                                 tid);
    } else {
        expect = g_strdup_printf("i0:\r\n  thread_id=%lld\r\n  poll-max-ns=32768\r\n  poll-grow=0\r\n"
                                 "  poll-shrink=0\r\n  aio-max-batch=4\r\n",
                                 tid);
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
    static const char *const order[] = {"type",        "thread-pool-min", "aio-max-batch", "thread-pool-max",
                                        "poll-max-ns", "poll-weight",     "poll-grow",     "poll-shrink"};
    QTest *t;
    json_t *list, *e;
    size_t i, k = 0;

    if (!binary_is_v11()) {
        g_test_skip("older versions list others");
        return;
    }
    t = start_none("-nodefaults");
    list = qmp_must(t->qmp, "qom-list-properties", "{s:s}", "typename", "iothread");
    json_array_foreach (list, i, e) {
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
    g_assert_cmpint(iothread_get(t, "ml", "aio-max-batch"), ==, 3);
    g_assert_cmpint(iothread_get(t, "ml", "thread-pool-max"), ==, 5);
    json_decref(
        qmp_must(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/ml", "property", "aio-max-batch", "value", 9));
    g_assert_cmpint(iothread_get(t, "ml", "aio-max-batch"), ==, 9);
    poll = qmp_must_fail(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/ml", "property", "poll-max-ns");
    g_assert_cmpstr(poll, ==, "GenericError: Property 'main-loop.poll-max-ns' not found");
    again = qmp_must_fail(t->qmp, "object-add", "{s:s,s:s}", "qom-type", "main-loop", "id", "ml2");
    g_assert_cmpstr(again, ==, "GenericError: only one main-loop instance allowed");
    del = qmp_must_fail(t->qmp, "object-del", "{s:s}", "id", "ml");
    g_assert_cmpstr(del, ==,
                    binary_is_v11() ? "GenericError: Deleting main loop 'ml' is not supported"
                                    : "GenericError: object 'ml' is in use, can not be deleted");
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
    json_decref(
        qmp_must(t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/i0", "property", "aio-max-batch", "value", 4));
    g_assert_cmpint(iothread_get(t, "i0", "aio-max-batch"), ==, 4);
    qt_stop(t);
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
    g_test_add_func("/iothread/thread/blocks-signals", test_thread_blocks_signals);
    g_test_add_func("/iothread/thread/own-faults-are-heard", test_own_faults_are_heard);
    g_test_add_func("/iothread/thread/name", test_thread_name);
    g_test_add_func("/iothread/qom-list-properties/order", test_list_properties);
    g_test_add_func("/main-loop/life", test_main_loop);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    add_life();
    return g_test_run();
}
