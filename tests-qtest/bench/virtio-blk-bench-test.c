/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench and its histogram: right numbers, checked options, nothing left behind. Speed is no matter here. */
#include "common.h"
#include "histogram.h"
#include "process.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Histogram --- */

static void test_exact_below_128(void)
{
    static Histogram h;

    for (uint64_t v = 0; v < 128; v++) {
        hist_add(&h, v);
    }
    for (unsigned int v = 0; v < 128; v++) {
        g_assert_cmpuint(h.bucket[v], ==, 1);
    }
    g_assert_cmpuint(hist_quantile(&h, 0.5), ==, 64);
    g_assert_cmpuint(h.min, ==, 0);
    g_assert_cmpuint(h.max, ==, 127);
}

/* Over nine decades a lone value is known within 1/64 of itself, and buckets never go down. */
static void test_precision(void)
{
    unsigned int last = 0;

    for (uint64_t v = 1; v < 1ULL << 40; v += v / 100 + 1) {
        static Histogram h;
        uint64_t q;

        memset(&h, 0, sizeof(h));
        hist_add(&h, v / 2);
        hist_add(&h, v);
        hist_add(&h, v * 2);
        q = hist_quantile(&h, 0.5);
        g_assert_cmpuint(q, >=, v - v / 64);
        g_assert_cmpuint(q, <=, v + v / 64);
        g_assert_cmpuint(hist_index(v), >=, last);
        last = hist_index(v);
    }
}

static void test_quantiles(void)
{
    static Histogram h;

    for (int i = 0; i < 990; i++) {
        hist_add(&h, 1000);
    }
    for (int i = 0; i < 10; i++) {
        hist_add(&h, 1000000);
    }
    g_assert_cmpuint(hist_quantile(&h, 0.5), <, 1020);
    g_assert_cmpuint(hist_quantile(&h, 0.98), <, 1020);
    g_assert_cmpuint(hist_quantile(&h, 0.999), >, 980000);
    g_assert_cmpuint(hist_quantile(&h, 1.0), ==, 1000000);
}

static void test_merge(void)
{
    static Histogram a, b, empty;

    hist_add(&a, 10);
    hist_add(&b, 5);
    hist_add(&b, 100);
    hist_merge(&a, &b);
    hist_merge(&a, &empty);
    g_assert_cmpuint(a.count, ==, 3);
    g_assert_cmpuint(a.sum, ==, 115);
    g_assert_cmpuint(a.min, ==, 5);
    g_assert_cmpuint(a.max, ==, 100);
    g_assert_cmpuint(hist_quantile(&empty, 0.5), ==, 0);
}

/* --- The program --- */

static const char *bench(void)
{
    const char *path = g_getenv("QOS_BENCH");

    if (!path || !g_getenv("QTEST_QEMU_BINARY")) {
        g_test_skip("QOS_BENCH and QTEST_QEMU_BINARY do not name the programs");
        return NULL;
    }
    return path;
}

static json_t *run_json(const char *options)
{
    g_autofree char *file = qos_scratch_path("json"), *program = g_shell_quote(bench());
    g_autofree char *line = NULL, *out = NULL, *err = NULL;
    json_t *v;
    int status;

    line = g_strdup_printf("%s --time 0.2 --warmup 0.05 --quiet --json %s %s", program, file, options);
    if (!g_spawn_command_line_sync(line, &out, &err, &status, NULL) || status) {
        qos_die("%s: status %d\n%s%s", line, status, out, err);
    }
    v = json_load_file(file, 0, NULL);
    g_assert_nonnull(v);
    return v;
}

static json_t *first_run(json_t *v)
{
    return json_array_get(json_object_get(json_array_get(json_object_get(v, "targets"), 0), "runs"), 0);
}

static double number(json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

typedef struct Load {
    const char *name, *options;
    const char *aio; /* only where this engine is to be had, with O_DIRECT */
} Load;

static const Load loads[] = {
    {"default", ""},
    {"legacy", "--via legacy"},
    {"four-queues-two-threads", "-q 4 -T 2"},
    {"depth-1", "-d 1"},
    {"indirect", "-d 128"},
    {"no-event-idx", "--event-idx off"},
    {"interrupts", "--completion irq"},
    {"interrupts-legacy", "--completion irq --via legacy -q 2"},
    {"size-mix", "--bs 512:50,4k:30,64k:20 --rw mixed"},
    {"main-loop", "-I 0"},
    {"file-threads", "--backend file --aio threads --size 16M --dir /tmp", "threads"},
    {"file-native", "--backend file --aio native --size 16M --dir /tmp", "native"},
    {"file-io_uring", "--backend file --aio io_uring --size 16M --dir /tmp", "io_uring"},
    {"verify", "--backend file --size 4M --rw mixed --verify -q 2 --aio threads --direct off --dir /tmp"},
    {"verify-64k", "--backend file --size 16M --rw mixed --bs 64k -d 8 --verify --aio io_uring --dir /tmp", "io_uring"},
};

static void test_load(gconstpointer data)
{
    const Load *l = data;
    json_t *v, *r;

    if (!bench() || (l->aio && !engine_usable(l->aio, true))) {
        return;
    }
    v = run_json(l->options);
    r = first_run(v);
    g_assert_cmpfloat(number(r, "requests"), >, 0);
    g_assert_cmpfloat(number(r, "errors"), ==, 0);
    g_assert_cmpfloat(number(r, "bad-data"), ==, 0);
    g_assert_cmpfloat(number(r, "iops"), >, 0);
    g_assert_cmpfloat(number(json_object_get(r, "latency-ns"), "min"), >, 0);
    g_assert_cmpfloat(number(json_object_get(r, "latency-ns"), "p50"), <=, number(json_object_get(r, "latency-ns"), "max"));
    if (strstr(l->options, "irq")) {
        g_assert_cmpfloat(number(r, "interrupts-per-request"), >, 0);
    }
    json_decref(v);
}

/* Three hundred requests a second for a while are not far more: the limit limits. */
static void test_rate(void)
{
    json_t *v;

    if (!bench()) {
        return;
    }
    v = run_json("--rate 300");
    g_assert_cmpfloat(number(first_run(v), "requests"), <=, 300 * number(first_run(v), "seconds") + 33);
    json_decref(v);
}

static void test_two_targets(void)
{
    g_autofree char *options = NULL;
    json_t *v, *s;

    if (!bench()) {
        return;
    }
    options = g_strdup_printf("--vs %s --runs 2", g_getenv("QTEST_QEMU_BINARY"));
    v = run_json(options);
    g_assert_cmpuint(json_array_size(json_object_get(v, "targets")), ==, 2);
    s = json_object_get(json_object_get(v, "summary"), "iops");
    g_assert_cmpfloat(number(s, "ratio"), >, 0);
    g_assert_cmpfloat(number(s, "ratio-min"), <=, number(s, "ratio-max"));
    json_decref(v);
}

static const char *const wrong[] = {
    "--nosuch", "--rw foo", "--bs 100", "--bs 4k:50", "--bs zz", "-q 0", "-q 65", "-T 2", "-d 0", "--pin 9999",
    "--completion sleep", "--backend foo", "--direct maybe", "--verify", "--rate -1", "--via pigeon", "stray",
};

static void test_wrong(gconstpointer data)
{
    g_autofree char *program = NULL, *line = NULL, *err = NULL;
    int status;

    if (!bench()) {
        return;
    }
    program = g_shell_quote(bench());
    line = g_strdup_printf("%s %s", program, (const char *)data);
    g_assert_true(g_spawn_command_line_sync(line, NULL, &err, &status, NULL));
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 2);
    g_assert_true(g_str_has_prefix(err, "virtio-blk-bench: "));
}

/* Processes whose command line has @text. */
static int count_processes(const char *text)
{
    g_autofree char *self = g_strdup_printf("%d", getpid());
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    int n = 0;

    for (const char *e = g_dir_read_name(dir); e; e = g_dir_read_name(dir)) {
        g_autofree char *path = g_strdup_printf("/proc/%s/cmdline", e), *all = NULL;
        gsize len;

        if (!g_ascii_isdigit(*e) || !strcmp(e, self) || !g_file_get_contents(path, &all, &len, NULL)) {
            continue;
        }
        for (gsize i = 0; i < len; i++) {
            all[i] = all[i] ? all[i] : ' ';
        }
        n += g_strstr_len(all, (gssize)len, text) != NULL;
    }
    return n;
}

/* Ended from outside in the middle of a run, it takes its device and its files along. */
static void test_interrupted(gconstpointer data)
{
    int sig = GPOINTER_TO_INT(data);
    g_autofree char *dir = qos_scratch_path("tmp"), *env = g_strdup_printf("TMPDIR=%s", dir);
    g_autofree char *mark = g_strdup_printf("iothread,id=io0,poll-max-ns=%d", 1000000 + getpid());
    g_autofree char *opts = g_strdup_printf("poll-max-ns=%d", 1000000 + getpid());
    Child *c;

    if (!bench()) {
        return;
    }
    g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
    c = child_spawn((char *[]){(char *)bench(), (char *)"--time", (char *)"60", (char *)"--iothread-opts", opts,
                               (char *)"--quiet", NULL},
                    (const char *const[]){env, NULL}, (const int[]){-1});
    for (int i = 0; !count_processes(mark); i++) {
        g_usleep(10000);
        g_assert_cmpint(i, <, qos_hang_ms() / 10);
    }
    g_usleep(300000);
    kill(c->pid, sig);
    g_assert_true(child_wait(c, qos_hang_ms()));
    child_free(c);
    for (int i = 0; i < qos_hang_ms() / 10 && (count_processes(mark) || rmdir(dir) < 0); i++) {
        g_usleep(10000);
    }
    g_assert_cmpint(count_processes(mark), ==, 0);
    g_assert_false(g_file_test(dir, G_FILE_TEST_EXISTS));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/bench/histogram/exact-below-128", test_exact_below_128);
    g_test_add_func("/bench/histogram/precision", test_precision);
    g_test_add_func("/bench/histogram/quantiles", test_quantiles);
    g_test_add_func("/bench/histogram/merge", test_merge);
    for (size_t i = 0; i < G_N_ELEMENTS(loads); i++) {
        g_autofree char *path = g_strdup_printf("/bench/virtio-blk/load/%s", loads[i].name);

        g_test_add_data_func(path, &loads[i], test_load);
    }
    g_test_add_func("/bench/virtio-blk/rate-limits", test_rate);
    g_test_add_func("/bench/virtio-blk/two-targets", test_two_targets);
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *path = g_strdup_printf("/bench/virtio-blk/refuses/%zu", i);

        g_test_add_data_func(path, wrong[i], test_wrong);
    }
    g_test_add_data_func("/bench/virtio-blk/leaves-nothing/sigint", GINT_TO_POINTER(SIGINT), test_interrupted);
    g_test_add_data_func("/bench/virtio-blk/leaves-nothing/sigterm", GINT_TO_POINTER(SIGTERM), test_interrupted);
    g_test_add_data_func("/bench/virtio-blk/leaves-nothing/sigkill", GINT_TO_POINTER(SIGKILL), test_interrupted);
    return g_test_run();
}
