/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Switches of an iothread's loop from outside: what is in force, what a busy or poor kernel makes of them, what hangs. */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IMAGE_SIZE (1 << 20)
#define OFFSET 65536

typedef struct Setup {
    QTest *t;
    Vblk *b;
    char *image, *hold;
} Setup;

static bool setup(Setup *s, const char *iothread, const char *aio)
{
    VblkOpts vo = {.via = VIRTIO_MODERN, .queues = 1};
    g_autofree char *args = NULL, *fault = NULL;

    if (!shim_usable() || !engine_usable(aio, true)) {
        return false;
    }
    s->image = image_new(IMAGE_SIZE);
    s->hold = qos_scratch_path("hold");
    fault = g_strdup_printf("QOS_SHIM_HOLD=%s", s->hold);
    args = g_strdup_printf("-nodefaults -object iothread,id=io0%s "
                           "-blockdev driver=file,node-name=f,filename=%s,aio=%s,cache.direct=on "
                           "-device virtio-blk-pci,drive=f,iothread=io0,addr=4.0",
                           iothread, s->image, aio);
    s->t = shim_start(fault, args, NULL);
    s->b = vblk_new(s->t, &vo);
    s->b->page_aligned = true;
    return true;
}

static void teardown(Setup *s)
{
    vblk_free(s->b);
    qt_stop(s->t);
    unlink(s->image);
    g_free(s->image);
    g_free(s->hold);
}

static void read_some(Setup *s)
{
    g_autofree uint8_t *buf = g_malloc(4096), *expect = g_malloc(4096);

    fill_pattern(expect, OFFSET, 4096);
    for (int i = 0; i < 8; i++) {
        VblkReq *r = vblk_add(s->b, 0, BLK_T_IN, OFFSET / 512, NULL, 4096, NULL);

        vblk_kick(s->b, 0);
        g_assert_cmpint(vblk_finish(r, buf), ==, BLK_S_OK);
        g_assert_true(!memcmp(buf, expect, 4096));
    }
}

static json_t *get(QTest *t, const char *prop)
{
    return qmp_must(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/io0", "property", prop);
}

static char *get_text(QTest *t, const char *prop)
{
    json_t *v = get(t, prop);
    char *text = g_strdup(json_string_value(v));

    json_decref(v);
    return text;
}

static json_t *stats(QTest *t)
{
    json_t *list = qmp_must(t->qmp, "x-query-iothread-stats", NULL), *e = json_array_get(list, 0);

    g_assert_cmpstr(json_string_value(json_object_get(e, "id")), ==, "io0");
    json_incref(e);
    json_decref(list);
    return e;
}

static json_int_t number(json_t *obj, const char *name)
{
    json_t *v = json_object_get(obj, name);

    g_assert_true(json_is_integer(v));
    return json_integer_value(v);
}

/* --- A request that hangs --- */

static void hold(Setup *s)
{
    g_assert_true(g_file_set_contents(s->hold, "", 0, NULL));
}

static void let_go(Setup *s)
{
    g_assert_cmpint(unlink(s->hold), ==, 0);
}

/* Poll until the loop has taken the request: the first entry of "in-flight". */
static json_t *wait_in_flight(Setup *s)
{
    for (;;) {
        json_t *st = stats(s->t);
        json_t *e = json_array_get(json_object_get(json_object_get(st, "state"), "in-flight"), 0);

        json_incref(e);
        json_decref(st);
        if (e) {
            return e;
        }
        g_usleep(1000);
    }
}

static void test_hang_report(void)
{
    g_autofree char *plain = NULL, *verbose = NULL, *after = NULL;
    VblkReq *r;
    json_t *e, *oldest;
    Setup s;

    if (!setup(&s, "", "native")) {
        return;
    }
    hold(&s);
    r = vblk_add(s.b, 0, BLK_T_IN, OFFSET / 512, NULL, 4096, NULL);
    vblk_kick(s.b, 0);
    e = wait_in_flight(&s);
    oldest = json_object_get(e, "oldest");
    g_assert_cmpstr(json_string_value(json_object_get(e, "engine")), ==, "native");
    g_assert_cmpint(number(e, "requests"), ==, 1);
    g_assert_cmpstr(json_string_value(json_object_get(oldest, "operation")), ==, "read");
    g_assert_cmpint(number(oldest, "offset"), ==, OFFSET);
    g_assert_cmpint(number(oldest, "bytes"), ==, 4096);
    g_assert_cmpint(number(oldest, "age-ns"), >, 0);
    json_decref(e);

    plain = qmp_hmp(s.t->qmp, "info iothreads");
    verbose = qmp_hmp(s.t->qmp, "info iothreads -v");
    g_assert_null(strstr(plain, "state"));
    g_assert_true(g_str_has_prefix(verbose, plain));
    g_assert_nonnull(strstr(verbose, "in flight in native: 1, the oldest for "));
    g_assert_nonnull(strstr(verbose, " ms: read of 4096 bytes at 65536\r\n"));

    let_go(&s);
    g_assert_cmpint(vblk_finish(r, NULL), ==, BLK_S_OK);
    after = qmp_hmp(s.t->qmp, "info iothreads -v");
    g_assert_null(strstr(after, "in flight in native"));
    teardown(&s);
}

/* --- aio-max-events --- */

static char *set_events(Setup *s, int n)
{
    json_t *r = qmp_execute(s->t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/io0", "property", "aio-max-events",
                            "value", n);
    char *err = g_strdup(json_string_value(json_object_get(json_object_get(r, "error"), "desc")));

    json_decref(r);
    return err;
}

static void test_events(gconstpointer monitor)
{
    g_autofree char *opts = g_strdup_printf(",x-fdmon=%s", (const char *)monitor), *idle = NULL, *busy = NULL, *zero = NULL;
    VblkReq *r;
    Setup s;

    if (!setup(&s, opts, "native")) {
        return;
    }
    read_some(&s);
    idle = set_events(&s, 16);
    g_assert_cmpstr(idle, ==, NULL);
    g_assert_cmpint(iothread_get(s.t, "io0", "aio-max-events"), ==, 16);
    read_some(&s);

    hold(&s);
    r = vblk_add(s.b, 0, BLK_T_IN, OFFSET / 512, NULL, 4096, NULL);
    vblk_kick(s.b, 0);
    json_decref(wait_in_flight(&s));
    busy = set_events(&s, 32);
    g_assert_cmpstr(busy, ==, "Cannot change the number of AIO events of 'io0' to 32 while 1 requests are in flight");
    g_assert_cmpint(iothread_get(s.t, "io0", "aio-max-events"), ==, 16);
    let_go(&s);
    g_assert_cmpint(vblk_finish(r, NULL), ==, BLK_S_OK);

    zero = set_events(&s, 0);
    g_assert_nonnull(zero);
    g_assert_cmpint(iothread_get(s.t, "io0", "aio-max-events"), ==, 16);
    read_some(&s);
    teardown(&s);
}

static void test_no_aio(void)
{
    g_autofree char *why = NULL;

    if (!shim_usable()) {
        return;
    }
    g_assert_null(shim_start("QOS_SHIM_NO_AIO=1", "-object iothread,id=io0,x-fdmon=linux-aio", &why));
    g_assert_nonnull(strstr(why, "Failed to create a Linux AIO context of "));
    g_assert_nonnull(strstr(why, "fs.aio-max-nr = "));
    g_assert_nonnull(strstr(why, "sysctl fs.aio-max-nr="));
}

/* --- Which monitor, which flags --- */

static void test_monitor(gconstpointer monitor)
{
    g_autofree char *opts = g_strdup_printf(",x-fdmon=%s", (const char *)monitor), *is = NULL;
    Setup s;

    for (int i = 0; i < 3; i++) {
        static const char *const aio[] = {"threads", "native", "io_uring"};

        if (!setup(&s, opts, aio[i])) {
            return;
        }
        read_some(&s);
        g_free(is);
        is = get_text(s.t, "x-fdmon");
        g_assert_cmpstr(is, ==, monitor);
        teardown(&s);
    }
}

static void test_no_uring(void)
{
    g_autofree char *is = NULL, *flags = NULL, *why = NULL;
    QTest *t;

    if (!shim_usable()) {
        return;
    }
    t = shim_start("QOS_SHIM_NO_URING=1", "-object iothread,id=io0", NULL);
    is = get_text(t, "x-fdmon");
    flags = get_text(t, "x-io-uring-flags");
    g_assert_cmpstr(is, ==, "epoll");
    g_assert_cmpstr(flags, ==, "none");
    qt_stop(t);

    g_assert_null(shim_start("QOS_SHIM_NO_URING=1", "-object iothread,id=io0,x-fdmon=io_uring", &why));
    g_assert_nonnull(strstr(why, "Failed to set up an io_uring ring: Operation not permitted"));
}

static void test_flags(void)
{
    static const char *const lists[] = {"none", "coop-taskrun", "single-issuer:defer-taskrun"};

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        g_autofree char *opts = g_strdup_printf(",x-fdmon=io_uring,x-io-uring-flags=%s", lists[i]), *is = NULL;
        Setup s;

        if (!setup(&s, opts, "io_uring")) {
            return;
        }
        read_some(&s);
        is = get_text(s.t, "x-io-uring-flags");
        g_assert_cmpstr(is, ==, lists[i]);
        teardown(&s);
    }
}

static void refuse_flags(const char *list, const char *text)
{
    g_autofree char *err = refusal("-object iothread,id=io0,x-io-uring-flags=%s", list);

    g_assert_nonnull(strstr(err, text));
}

static void test_bad_flags(void)
{
    if (!shim_usable()) {
        return;
    }
    refuse_flags("fast", "Parameter 'x-io-uring-flags' does not accept value 'fast'");
    refuse_flags("defer-taskrun", "defer-taskrun needs single-issuer");
    refuse_flags("auto:single-issuer", "auto can be joined by registered-files and registered-buffers only");
    refuse_flags("registered-buffers:none", "does not accept value 'none'");
}

/* --- Statistics --- */

static void set_phase_times(Setup *s, bool on)
{
    json_t *is;

    json_decref(qmp_must(s->t->qmp, "qom-set", "{s:s,s:s,s:b}", "path", "/objects/io0", "property", "x-phase-times",
                         "value", on));
    is = get(s->t, "x-phase-times");
    g_assert_true(is == (on ? json_true() : json_false()));
}

static json_int_t sum_of(json_t *obj)
{
    const char *key;
    json_int_t sum = 0;
    json_t *v;

    g_assert_true(json_is_object(obj));
    json_object_foreach(obj, key, v) {
        sum += json_integer_value(v);
    }
    return sum;
}

static void test_phase_times(void)
{
    json_t *st;
    json_int_t first, second;
    Setup s;

    if (!setup(&s, "", "native")) {
        return;
    }
    read_some(&s);
    st = stats(s.t);
    g_assert_null(json_object_get(st, "phase-times"));
    json_decref(st);

    set_phase_times(&s, true);
    read_some(&s);
    read_some(&s);
    st = stats(s.t);
    first = sum_of(json_object_get(st, "phase-times"));
    g_assert_cmpint(first, >, 0);
    json_decref(st);

    set_phase_times(&s, false);
    read_some(&s);
    st = stats(s.t);
    first = sum_of(json_object_get(st, "phase-times"));
    json_decref(st);
    read_some(&s);
    st = stats(s.t);
    second = sum_of(json_object_get(st, "phase-times"));
    g_assert_cmpint(second, ==, first);
    json_decref(st);
    teardown(&s);
}

static void test_reap_histogram(void)
{
    json_int_t sum = 0;
    json_t *st, *v;
    size_t i;
    Setup s;

    if (!setup(&s, "", "native")) {
        return;
    }
    read_some(&s);
    st = stats(s.t);
    json_array_foreach(json_object_get(st, "reap-histogram"), i, v) {
        sum += json_integer_value(v);
    }
    g_assert_cmpint(sum, ==, number(st, "reaps"));
    g_assert_cmpint(sum, >, 0);
    g_assert_cmpint(number(st, "wait-calls"), >, 0);
    g_assert_cmpint(number(st, "notify-reads"), >=, 0);
    g_assert_cmpint(number(st, "control-calls"), >=, 0);
    json_decref(st);
    teardown(&s);
}

/* --- Offering the processor while polling --- */

static json_int_t yields_after_reads(Setup *s)
{
    json_int_t n;
    json_t *st;

    read_some(s);
    st = stats(s->t);
    n = number(st, "poll-yields");
    json_decref(st);
    return n;
}

static json_int_t yield_ns(Setup *s)
{
    json_t *v = get(s->t, "x-poll-yield-ns");
    json_int_t n = json_integer_value(v);

    json_decref(v);
    return n;
}

static void test_yield(void)
{
    json_int_t n = 0;
    Setup s;

    if (!setup(&s, ",poll-max-ns=1000000000,x-poll-yield-ns=1", "native")) {
        return;
    }
    g_assert_cmpint(yield_ns(&s), ==, 1);
    for (int i = 0; i < 1000 && !n; i++) {
        n = yields_after_reads(&s);
    }
    g_assert_cmpint(n, >, 0);

    json_decref(qmp_must(s.t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/io0", "property", "x-poll-yield-ns",
                         "value", 0));
    g_assert_cmpint(yield_ns(&s), ==, 0);
    n = yields_after_reads(&s);
    for (int i = 0; i < 10; i++) {
        g_assert_cmpint(yields_after_reads(&s), ==, n);
    }
    teardown(&s);
}

static void test_yield_default(void)
{
    Setup s;

    if (setup(&s, "", "native")) {
        g_assert_cmpint(yield_ns(&s), ==, 1000);
        teardown(&s);
    }
}

int main(int argc, char **argv)
{
    static const char *const monitors[] = {"poll", "epoll", "io_uring", "linux-aio"};

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    g_test_add_func("/loop-switch/hang-report/names-oldest-request", test_hang_report);
    for (size_t i = 0; i < G_N_ELEMENTS(monitors); i++) {
        add_case(test_events, monitors[i], "/loop-switch/%s/aio-max-events/changes-when-idle-only", monitors[i]);
        add_case(test_monitor, monitors[i], "/loop-switch/%s/serves-every-engine", monitors[i]);
    }
    g_test_add_func("/loop-switch/aio-max-nr/message-says-what-to-do", test_no_aio);
    g_test_add_func("/loop-switch/without-io_uring/auto-is-epoll", test_no_uring);
    g_test_add_func("/loop-switch/x-io-uring-flags/read-back", test_flags);
    g_test_add_func("/loop-switch/x-io-uring-flags/refused", test_bad_flags);
    g_test_add_func("/loop-switch/x-phase-times/at-run-time", test_phase_times);
    g_test_add_func("/loop-switch/x-poll-yield-ns/default", test_yield_default);
    g_test_add_func("/loop-switch/x-poll-yield-ns/at-run-time", test_yield);
    g_test_add_func("/loop-switch/statistics/reaps", test_reap_histogram);
    return g_test_run();
}
