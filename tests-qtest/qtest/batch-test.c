/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The size of batches that go to the kernel, seen by a shim in front of the system calls, and what statistics say. */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 64
#define IMAGE_SIZE (8 << 20)
#define STEP 16 /* sectors from request to request: neighbours are never adjacent, so nothing is merged */

/* What the shim saw. */
typedef struct Calls {
    unsigned int calls, requests, max, refused;
    unsigned int histogram[16];
} Calls;

typedef struct Case {
    const char *name;
    const char *aio;
    unsigned int queues;
    const char *iothread, *node; /* more options, with a leading comma */
    unsigned int limit;          /* no call carries more */
    unsigned int at_least;       /* the largest carries so many, 0: half the limit is the average */
    bool ours;                   /* QEMU lacks the property */
    const char *fault;           /* for the shim */
} Case;

typedef struct Setup {
    QTest *t;
    Vblk *b;
    char *image, *log;
    const Case *c;
} Setup;

/* Through a link, since LD_PRELOAD is a list that spaces and colons take apart and a build folder may have both. */
static char *preload_of(const char *shim)
{
    static char *link_path;

    if (!link_path) {
        link_path = qos_scratch_path("shim");
        if (symlink(shim, link_path) < 0) {
            qos_die("%s: %s", link_path, g_strerror(errno));
        }
    }
    return g_strdup_printf("LD_PRELOAD=%s", link_path);
}

static bool setup(Setup *s, const Case *c)
{
    QTestOpts o = {.shared_mib = 32};
    VblkOpts vo = {.via = VIRTIO_MODERN, .queues = c->queues};
    const char *shim = g_getenv("QOS_SYSCALL_SHIM"), *asan = g_getenv("ASAN_OPTIONS");
    g_autofree char *preload = NULL, *args = NULL, *log = NULL, *options = NULL;

    if (!shim) {
        g_test_skip("QOS_SYSCALL_SHIM does not name the shim");
        return false;
    }
    if (c->ours && !binary_is_ours()) {
        g_test_skip("the binary has no such property");
        return false;
    }
    if (!engine_usable(c->aio, true)) {
        return false;
    }
    s->c = c;
    s->image = image_new(IMAGE_SIZE);
    s->log = qos_scratch_path("calls");
    preload = preload_of(shim);
    log = g_strdup_printf("QOS_SHIM_LOG=%s", s->log);
    /* The runtime of a sanitizer insists on being first otherwise. */
    options = g_strdup_printf("ASAN_OPTIONS=%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "");
    o.env = (const char *const[]){preload, log, options, c->fault ? c->fault : NULL, NULL};
    args = g_strdup_printf("-nodefaults -object iothread,id=io0%s "
                           "-blockdev driver=file,node-name=f,filename=%s,aio=%s,cache.direct=on%s "
                           "-device virtio-blk-pci,drive=f,iothread=io0,addr=4.0,num-queues=%u",
                           c->iothread, s->image, c->aio, c->node, c->queues);
    s->t = qt_start_opts(&o, args);
    s->b = vblk_new(s->t, &vo);
    s->b->page_aligned = true;
    for (unsigned int q = 0; q < c->queues; q++) {
        s->b->vq[q]->corked = true;
    }
    /* The file is probed before the device runs: forget those calls. */
    if (truncate(s->log, 0) < 0) {
        qos_die("the shim wrote no log: is it loaded?");
    }
    return true;
}

static void teardown(Setup *s)
{
    vblk_free(s->b);
    qt_stop(s->t);
    unlink(s->image);
    unlink(s->log);
    g_free(s->image);
    g_free(s->log);
}

/* DEPTH requests on each queue, all visible to the device at its first look. */
static void run_load(Setup *s)
{
    g_autofree VblkReq **r = g_new0(VblkReq *, s->c->queues * DEPTH);
    unsigned int n = 0;

    for (unsigned int q = 0; q < s->c->queues; q++) {
        for (unsigned int i = 0; i < DEPTH; i++, n++) {
            r[n] = vblk_add(s->b, q, BLK_T_IN, n * STEP, NULL, 4096, NULL);
        }
    }
    for (unsigned int q = 0; q < s->c->queues; q++) {
        vblk_kick(s->b, q);
    }
    for (unsigned int i = 0; i < n; i++) {
        g_autofree uint8_t *buf = g_malloc(4096), *expect = g_malloc(4096);

        fill_pattern(expect, i * STEP * 512, 4096);
        g_assert_cmpint(vblk_finish(r[i], buf), ==, BLK_S_OK);
        g_assert_true(!memcmp(buf, expect, 4096));
    }
}

static unsigned int bucket_of(unsigned int n)
{
    unsigned int b = 0;

    while (n >>= 1) {
        b++;
    }
    return b;
}

/* Read the log of io_submit() and empty it. */
static Calls take_calls(Setup *s)
{
    Calls c = {0};
    FILE *f = fopen(s->log, "re");
    char name[64];
    long arg, ret, requests;

    while (f && fscanf(f, "%63s %ld %ld %ld", name, &arg, &ret, &requests) == 4) {
        if (strcmp(name, "io_submit")) {
            continue;
        }
        if (ret < 0) {
            c.refused++;
        } else if (requests) {
            c.calls++;
            c.requests += (unsigned int)requests;
            c.max = MAX(c.max, (unsigned int)requests);
            c.histogram[bucket_of((unsigned int)requests)]++;
        }
    }
    if (f) {
        fclose(f);
    }
    if (truncate(s->log, 0) < 0) {
        qos_die("%s: cannot empty it", s->log);
    }
    return c;
}

static json_t *stats(Setup *s)
{
    json_t *list = qmp_must(s->t->qmp, "x-query-iothread-stats", NULL), *e;
    size_t i;

    json_array_foreach(list, i, e) {
        if (!strcmp(json_string_value(json_object_get(e, "id")), "io0")) {
            json_incref(e);
            json_decref(list);
            return e;
        }
    }
    qos_die("x-query-iothread-stats does not list io0");
}

static json_int_t field(json_t *st, const char *name)
{
    json_t *v = json_object_get(st, name);

    g_assert_true(json_is_integer(v));
    return json_integer_value(v);
}

/* The statistics tell the same story as the system calls. */
static void compare_stats(Setup *s, const Calls *c)
{
    json_t *st, *h;

    if (!binary_is_ours()) {
        return;
    }
    st = stats(s);
    h = json_object_get(st, "batch-histogram");
    g_assert_cmpint(field(st, "submit-calls"), ==, c->calls);
    g_assert_cmpint(field(st, "requests"), ==, c->requests);
    g_assert_cmpint(field(st, "batch-max"), ==, c->max);
    g_assert_cmpint(field(st, "completions"), ==, c->requests);
    for (size_t i = 0; i < G_N_ELEMENTS(c->histogram); i++) {
        json_int_t n = i < json_array_size(h) ? json_integer_value(json_array_get(h, i)) : 0;

        g_assert_cmpint(n, ==, c->histogram[i]);
    }
    json_decref(st);
}

static void check_limits(const Case *c, const Calls *calls)
{
    g_assert_cmpuint(calls->requests, ==, c->queues * DEPTH);
    g_assert_cmpuint(calls->max, <=, c->limit);
    if (c->at_least) {
        g_assert_cmpuint(calls->max, >=, c->at_least);
    } else {
        g_assert_cmpuint(calls->requests * 2, >, calls->calls * c->limit);
    }
}

static void test_limit(gconstpointer data)
{
    const Case *c = data;
    Calls calls;
    Setup s;

    if (!setup(&s, c)) {
        return;
    }
    run_load(&s);
    calls = take_calls(&s);
    check_limits(c, &calls);
    compare_stats(&s, &calls);
    teardown(&s);
}

/* io_uring_enter(2) carries polls too, so the statistics are the witness and the calls the upper bound. */
static void test_limit_uring(gconstpointer data)
{
    const Case *c = data;
    json_t *st;
    Setup s;

    if (!setup(&s, c)) {
        return;
    }
    run_load(&s);
    st = stats(&s);
    g_assert_cmpint(field(st, "requests"), ==, c->queues * DEPTH);
    g_assert_cmpint(field(st, "completions"), ==, c->queues * DEPTH);
    g_assert_cmpint(field(st, "batch-max"), <=, c->limit);
    g_assert_cmpint(field(st, "batch-max"), >=, c->at_least ? c->at_least : (c->limit + 1) / 2);
    json_decref(st);
    teardown(&s);
}

static void set_batch(Setup *s, int n)
{
    json_decref(qmp_must(s->t->qmp, "qom-set", "{s:s,s:s,s:i}", "path", "/objects/io0", "property", "aio-max-batch",
                         "value", n));
}

/* A change with qom-set shows in the very next batches. */
static void test_run_time(gconstpointer data)
{
    static const unsigned int values[] = {8, 1, 64, 3, 16, 0};
    const Case *c = data;
    Setup s;

    if (!setup(&s, c)) {
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        unsigned int limit = values[i] ? values[i] : 32;
        Calls calls;

        set_batch(&s, (int)values[i]);
        run_load(&s);
        calls = take_calls(&s);
        g_assert_cmpuint(calls.requests, ==, c->queues * DEPTH);
        g_assert_cmpuint(calls.max, <=, limit);
        g_assert_cmpuint(calls.requests * 2, >, calls.calls * limit);
    }
    teardown(&s);
}

/* Settings change while requests are on their way: every one ends, none exceeds the largest limit that was set. */
static void test_while_io_runs(gconstpointer data)
{
    const Case *c = data;
    Setup s;
    Calls calls;

    if (!setup(&s, c)) {
        return;
    }
    for (int round = 0; round < 20; round++) {
        g_autofree VblkReq **r = g_new0(VblkReq *, DEPTH);

        for (unsigned int i = 0; i < DEPTH; i++) {
            r[i] = vblk_add(s.b, 0, BLK_T_IN, i * STEP, NULL, 4096, NULL);
        }
        vblk_kick(s.b, 0);
        set_batch(&s, round % 2 ? 2 : 16);
        for (unsigned int i = 0; i < DEPTH; i++) {
            g_assert_cmpint(vblk_finish(r[i], NULL), ==, BLK_S_OK);
        }
    }
    calls = take_calls(&s);
    g_assert_cmpuint(calls.requests, ==, 20 * DEPTH);
    g_assert_cmpuint(calls.max, <=, 32);
    teardown(&s);
}

/* More requests than the kernel context has events: all end, in batches that fit. */
static void test_beyond_events(gconstpointer data)
{
    const Case *c = data;
    unsigned int per_queue = 250, n = 0;
    g_autofree VblkReq **r = g_new0(VblkReq *, c->queues * per_queue);
    Calls calls;
    Setup s;

    if (!setup(&s, c)) {
        return;
    }
    for (unsigned int q = 0; q < c->queues; q++) {
        for (unsigned int i = 0; i < per_queue; i++, n++) {
            r[n] = vblk_add(s.b, q, BLK_T_IN, (n * STEP) % (IMAGE_SIZE / 512 - 8), NULL, 4096, NULL);
        }
    }
    for (unsigned int q = 0; q < c->queues; q++) {
        vblk_kick(s.b, q);
    }
    for (unsigned int i = 0; i < n; i++) {
        g_assert_cmpint(vblk_finish(r[i], NULL), ==, BLK_S_OK);
    }
    calls = take_calls(&s);
    g_assert_cmpuint(calls.requests, ==, n);
    g_assert_cmpuint(calls.max, <=, c->limit);
    g_assert_cmpuint(calls.max, >=, c->at_least);
    compare_stats(&s, &calls);
    teardown(&s);
}

/* The kernel refuses a call now and then, or takes a part: every request ends exactly once. */
static void test_fault(gconstpointer data)
{
    const Case *c = data;
    Calls calls;
    Setup s;

    if (!setup(&s, c)) {
        return;
    }
    for (int round = 0; round < 5; round++) {
        run_load(&s);
    }
    calls = take_calls(&s);
    /* With nothing in flight that could start the queue again, a refused request may go another way. */
    g_assert_cmpuint(calls.requests, <=, 5 * c->queues * DEPTH);
    g_assert_cmpuint(calls.requests + calls.refused, >=, 5 * c->queues * DEPTH);
    g_assert_cmpuint(calls.max, <=, c->limit);
    if (strstr(c->fault, "EAGAIN")) {
        g_assert_cmpuint(calls.refused, >, 0);
    }
    teardown(&s);
}

#define NATIVE(n, q, io, node, lim, least) {n, "native", q, io, node, lim, least, false, NULL}

static const Case limits[] = {
    NATIVE("default/1-queue", 1, "", "", 32, 0),
    NATIVE("default/4-queues", 4, "", "", 32, 0),
    NATIVE("iothread-0/1-queue", 1, ",aio-max-batch=0", "", 32, 0),
    NATIVE("iothread-0/4-queues", 4, ",aio-max-batch=0", "", 32, 0),
    NATIVE("iothread-1/1-queue", 1, ",aio-max-batch=1", "", 1, 0),
    NATIVE("iothread-1/4-queues", 4, ",aio-max-batch=1", "", 1, 0),
    NATIVE("iothread-8/1-queue", 1, ",aio-max-batch=8", "", 8, 0),
    NATIVE("iothread-8/4-queues", 4, ",aio-max-batch=8", "", 8, 0),
    NATIVE("iothread-16/4-queues", 4, ",aio-max-batch=16", "", 16, 0),
    NATIVE("iothread-32/1-queue", 1, ",aio-max-batch=32", "", 32, 0),
    NATIVE("iothread-32/4-queues", 4, ",aio-max-batch=32", "", 32, 0),
    NATIVE("iothread-1024/1-queue", 1, ",aio-max-batch=1024", "", 1024, DEPTH),
    NATIVE("iothread-1024/4-queues", 4, ",aio-max-batch=1024", "", 1024, DEPTH),
    NATIVE("iothread-huge/1-queue", 1, ",aio-max-batch=9223372036854775807", "", 1024, DEPTH),
    NATIVE("node-4/1-queue", 1, "", ",aio-max-batch=4", 4, 0),
    NATIVE("node-4/4-queues", 4, "", ",aio-max-batch=4", 4, 0),
    NATIVE("node-4-below-iothread-16", 1, ",aio-max-batch=16", ",aio-max-batch=4", 4, 0),
    NATIVE("node-16-above-iothread-4", 1, ",aio-max-batch=4", ",aio-max-batch=16", 4, 0),
    NATIVE("node-1024-cannot-raise-the-default", 1, "", ",aio-max-batch=1024", 32, 0),
    NATIVE("node-0-means-no-limit-of-its-own", 1, ",aio-max-batch=8", ",aio-max-batch=0", 8, 0),
};

static const Case uring_limits[] = {
    {"default", "io_uring", 4, "", "", 32, 0, true},
    {"iothread-1", "io_uring", 1, ",aio-max-batch=1", "", 1, 0, true},
    {"iothread-8", "io_uring", 4, ",aio-max-batch=8", "", 8, 0, true},
    {"iothread-1024", "io_uring", 1, ",aio-max-batch=1024", "", 1024, DEPTH, true},
    {"node-4", "io_uring", 1, "", ",aio-max-batch=4", 4, 0, true},
};

static const Case run_time[] = {
    NATIVE("1-queue", 1, ",aio-max-batch=8", "", 8, 0),
    NATIVE("4-queues", 4, ",aio-max-batch=8", "", 8, 0),
};

static const Case beyond[] = {
    NATIVE("1024-default-batch", 5, "", "", 32, 16),
    NATIVE("1024-large-batch", 5, ",aio-max-batch=1024", "", 1024, 200),
    {"small-context", "native", 4, ",aio-max-events=32,aio-max-batch=1024", "", 32, 16, true},
    {"one-event", "native", 2, ",aio-max-events=1", "", 1, 1, true},
};

static const Case faults[] = {
    {"every-2nd-call-says-eagain", "native", 1, "", "", 32, 0, false, "QOS_SHIM_EAGAIN=2"},
    {"every-3rd-call-says-eagain", "native", 4, ",aio-max-batch=8", "", 8, 0, false, "QOS_SHIM_EAGAIN=3"},
    {"one-at-a-time", "native", 1, "", "", 1, 0, false, "QOS_SHIM_PARTIAL=1"},
    {"seven-at-a-time", "native", 4, ",aio-max-batch=1024", "", 7, 0, false, "QOS_SHIM_PARTIAL=7"},
};

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        add_case(test_limit, &limits[i], "/batch/native/limit/%s", limits[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(uring_limits); i++) {
        add_case(test_limit_uring, &uring_limits[i], "/batch/io_uring/limit/%s", uring_limits[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(run_time); i++) {
        add_case(test_run_time, &run_time[i], "/batch/native/qom-set-takes-effect/%s", run_time[i].name);
    }
    add_case(test_while_io_runs, &run_time[0], "/batch/native/qom-set-while-io-runs");
    for (size_t i = 0; i < G_N_ELEMENTS(beyond); i++) {
        add_case(test_beyond_events, &beyond[i], "/batch/native/more-requests-than-events/%s", beyond[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(faults); i++) {
        add_case(test_fault, &faults[i], "/batch/native/fault/%s", faults[i].name);
    }
    return g_test_run();
}
