/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random reads through each engine against bare loops over the same kernel interface, interleaved in one run. */
#include "bench/engine-bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_ROUNDS 101

typedef struct Runnable {
    const char *name;
    BenchFn *fn;
    bool bare;
} Runnable;

/* Each engine beside what it is compared with, so that both meet the same moment of the machine. */
static const Runnable runnables[] = {
    {"bare-libaio-32", bench_bare_libaio_32, true},
    {"bare-libaio", bench_bare_libaio, true},
    {"native", bench_native, false},
    {"bare-io_uring", bench_bare_uring, true},
    {"bare-io_uring-spin", bench_bare_uring_spin, true},
    {"bare-io_uring-file", bench_bare_uring_file, true}, /* registered, with DEFER_TASKRUN */
    {"bare-io_uring-buffers", bench_bare_uring_buffers, true},
    {"bare-io_uring-coop", bench_bare_uring_coop, true},
    {"bare-io_uring-defer", bench_bare_uring_defer, true},
    {"io_uring", bench_uring, false},
    {"bare-pread", bench_bare_pread, true},
    {"qemu-img-threads", bench_qemu_img, true},
    {"threads", bench_threads, false},
};
#define N_RUNNABLES ((int)G_N_ELEMENTS(runnables))

typedef struct Series {
    double rate[MAX_ROUNDS]; /* requests/s */
    double cpu_us;           /* a request, last round */
    double calls;            /* system calls a request; < 0: unknown */
    unsigned int rounds;
    const char *why; /* not NULL: could not be measured */
} Series;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double quantile(const double *values, unsigned int n, double q)
{
    double v[MAX_ROUNDS];

    memcpy(v, values, n * sizeof(double));
    qsort(v, n, sizeof(double), by_value);
    return v[(int)lround(q * (n - 1))];
}

static double median(const Series *s)
{
    return quantile(s->rate, s->rounds, 0.5);
}

/* A counter of system calls of this process and its threads to come; -1 if the kernel gives none. */
static int open_call_counter(void)
{
    static const char *const paths[] = {"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
                                        "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id"};
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1, .inherit = 1};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *text = NULL;

        if (g_file_get_contents(paths[i], &text, NULL, NULL)) {
            attr.config = (uint64_t)g_ascii_strtoll(text, NULL, 10);
            return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
        }
    }
    return -1;
}

/* Counting slows system calls down, so it has a run of its own. */
static void count_calls(const Runnable *r, const BenchConfig *cfg, Series *s)
{
    BenchResult res = {0};
    uint64_t calls = 0;
    int fd = open_call_counter();

    s->calls = -1;
    if (fd < 0 || r->fn == bench_qemu_img) {
        return;
    }
    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    if (r->fn(cfg, &res, &s->why)) {
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        if (read(fd, &calls, sizeof(calls)) == sizeof(calls) && res.requests) {
            s->calls = (double)calls / (double)res.requests;
        }
    }
    close(fd);
}

static void measure(const BenchConfig *cfg, unsigned int rounds, const char *only, Series *series)
{
    memset(series, 0, sizeof(*series) * (size_t)N_RUNNABLES);
    for (unsigned int round = 0; round < rounds; round++) {
        for (int i = 0; i < N_RUNNABLES; i++) {
            BenchResult res = {0};
            Series *s = &series[i];

            if (only && !runnables[i].bare && !strstr(only, runnables[i].name)) {
                s->why = "not asked for";
            }
            if (!s->why && runnables[i].fn(cfg, &res, &s->why)) {
                s->rate[s->rounds++] = (double)res.requests / res.seconds;
                s->cpu_us = res.cpu_seconds * 1e6 / (double)res.requests;
            }
        }
    }
    for (int i = 0; i < N_RUNNABLES; i++) {
        if (!series[i].why) {
            count_calls(&runnables[i], cfg, &series[i]);
        }
    }
}

/* NULL if it was not measured. */
static const Series *series_of(const Series *series, const char *name)
{
    for (int i = 0; i < N_RUNNABLES; i++) {
        if (!strcmp(runnables[i].name, name) && !series[i].why) {
            return &series[i];
        }
    }
    return NULL;
}

/* What an engine is compared with: the best bare loop over the same kernel interface. */
static const Series *reference(const BenchConfig *cfg, const Series *series, const char *name, const char **what)
{
    static const char *const rings[] = {"bare-io_uring", "bare-io_uring-coop", "bare-io_uring-defer"};
    const Series *best = NULL;

    if (!strcmp(name, "io_uring") && !cfg->poll_max_ns) {
        for (size_t i = 0; i < G_N_ELEMENTS(rings); i++) {
            const Series *s = series_of(series, rings[i]);

            if (s && (!best || median(s) > median(best))) {
                best = s;
                *what = rings[i];
            }
        }
        return best;
    }
    *what = !strcmp(name, "native")    ? "bare-libaio"
            : !strcmp(name, "threads") ? "qemu-img-threads"
                                       : "bare-io_uring-spin";
    return series_of(series, *what);
}

/* Round by round, as the machine may have become slower or faster between them. */
static void report_ratio(const Series *s, const Series *ref, const char *what, json_t *o)
{
    unsigned int n = MIN(s->rounds, ref->rounds);
    double ratio[MAX_ROUNDS] = {0}, low, middle, high;

    for (unsigned int i = 0; i < n; i++) {
        ratio[i] = s->rate[i] / ref->rate[i];
    }
    low = quantile(ratio, n, 0.1);
    middle = quantile(ratio, n, 0.5);
    high = quantile(ratio, n, 0.9);
    printf("  %5.2f [%4.2f %4.2f] of %s", middle, low, high, what);
    json_object_set_new(o, "ratio", json_real(middle));
    json_object_set_new(o, "ratio-low", json_real(low));
    json_object_set_new(o, "ratio-high", json_real(high));
    json_object_set_new(o, "reference", json_string(what));
}

static json_t *report(const BenchConfig *cfg, const Series *series)
{
    json_t *list = json_array();

    printf("depth %u\n", cfg->depth);
    for (int i = 0; i < N_RUNNABLES; i++) {
        const Series *s = &series[i];
        const Series *ref;
        double middle, low, high;
        const char *what;
        json_t *o;

        if (s->why) {
            continue;
        }
        low = quantile(s->rate, s->rounds, 0.1);
        middle = median(s);
        high = quantile(s->rate, s->rounds, 0.9);
        printf("  %-20s %9.0f /s  [%9.0f %9.0f]  cpu %6.2f us", runnables[i].name, middle, low, high, s->cpu_us);
        o = json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:f}", "name", runnables[i].name, "depth", (int)cfg->depth,
                      "requests-per-second", middle, "low", low, "high", high, "cpu-us", s->cpu_us, "system-calls",
                      s->calls);
        if (s->calls >= 0) {
            printf("  %6.3f calls", s->calls);
        } else {
            printf("       - calls");
        }
        ref = runnables[i].bare ? NULL : reference(cfg, series, runnables[i].name, &what);
        if (ref) {
            report_ratio(s, ref, what, o);
        }
        putchar('\n');
        json_array_append_new(list, o);
    }
    fflush(stdout);
    return list;
}

static int make_file(BenchConfig *cfg, const char *dir, char **path)
{
    g_autofree char *block = g_malloc0(1 << 20);

    *path = g_strdup_printf("%s/engine-bench-XXXXXX", dir);
    cfg->fd = mkstemp(*path);
    if (cfg->fd < 0) {
        return -errno;
    }
    for (uint64_t at = 0; at < cfg->size; at += 1 << 20) {
        if (pwrite(cfg->fd, block, 1 << 20, (off_t)at) != 1 << 20) {
            return -EIO;
        }
    }
    fsync(cfg->fd);
    close(cfg->fd);
    cfg->path = *path;
    cfg->fd = open(*path, O_RDWR | (cfg->direct ? O_DIRECT : 0));
    if (cfg->fd < 0) {
        return -errno;
    }
    /* What the file driver does; the bare loops get it as well. */
    cfg->nonblock = cfg->nonblock && engine_file_in_memory(cfg->fd);
    return cfg->nonblock && fcntl(cfg->fd, F_SETFL, fcntl(cfg->fd, F_GETFL) | O_NONBLOCK) ? -errno : 0;
}

static AioMonitor monitor_by_name(const char *name)
{
    for (AioMonitor m = 0; m < AIO_MONITOR__MAX; m++) {
        if (!strcmp(name, aio_monitor_name(m))) {
            return m;
        }
    }
    fprintf(stderr, "engine-bench: no monitor is called '%s'\n", name);
    exit(1);
}

static void run_all(BenchConfig *cfg, const char *depths, int rounds, const char *engines, const char *json)
{
    static Series series[G_N_ELEMENTS(runnables)];
    g_auto(GStrv) list = g_strsplit(depths, ",", -1);
    json_t *results = json_array();

    for (char **d = list; *d; d++) {
        cfg->depth = (unsigned int)CLAMP(atoi(*d), 1, 1024);
        measure(cfg, (unsigned int)CLAMP(rounds, 1, MAX_ROUNDS), engines, series);
        json_t *part = report(cfg, series);
        json_array_extend(results, part);
        json_decref(part);
    }
    if (json && json_dump_file(results, json, JSON_INDENT(2))) {
        fprintf(stderr, "engine-bench: cannot write '%s'\n", json);
    }
    json_decref(results);
}

int main(int argc, char **argv)
{
    BenchConfig cfg = {.direct = true, .uring_flags = AIO_URING_AUTO};
    g_autofree char *dir = g_strdup("/dev/shm"), *depths = g_strdup("1,8,32,128"), *json = NULL, *monitor = NULL;
    g_autofree char *engines = NULL, *qemu_img = NULL, *path = NULL;
    int rounds = 9, ms = 200, uring_flags = -1, size = 64, block = 4;
    gboolean cached = FALSE, workers = FALSE;
    GOptionEntry entries[] = {
        {"dir", 0, 0, G_OPTION_ARG_FILENAME, &dir, "where to make the file (default /dev/shm)", "DIR"},
        {"size", 0, 0, G_OPTION_ARG_INT, &size, "MiB of that file, a power of two (default 64)", "N"},
        {"block", 0, 0, G_OPTION_ARG_INT, &block, "KiB a request, a power of two (default 4)", "N"},
        {"depth", 0, 0, G_OPTION_ARG_STRING, &depths, "requests in flight (default 1,8,32,128)", "LIST"},
        {"rounds", 0, 0, G_OPTION_ARG_INT, &rounds, "interleaved rounds (default 9)", "N"},
        {"ms", 0, 0, G_OPTION_ARG_INT, &ms, "duration of each measurement (default 200)", "MS"},
        {"engines", 0, 0, G_OPTION_ARG_STRING, &engines, "only these (default all)", "LIST"},
        {"monitor", 0, 0, G_OPTION_ARG_STRING, &monitor, "auto, poll, epoll, io_uring or linux-aio", "NAME"},
        {"uring-flags", 0, 0, G_OPTION_ARG_INT, &uring_flags, "bits of AIO_URING_* (default: auto)", "BITS"},
        {"poll-max-ns", 0, 0, G_OPTION_ARG_INT64, &cfg.poll_max_ns, "polling in user space (default 0: none)", "NS"},
        {"aio-max-batch", 0, 0, G_OPTION_ARG_INT64, &cfg.max_batch, "batch limit (default 0: 32)", "N"},
        {"cached", 0, 0, G_OPTION_ARG_NONE, &cached, "without O_DIRECT", NULL},
        {"workers", 0, 0, G_OPTION_ARG_NONE, &workers, "x-nonblock=off: on tmpfs io_uring leaves requests to kernel threads",
         NULL},
        {"qemu-img", 0, 0, G_OPTION_ARG_FILENAME, &qemu_img, "compare threads with 'qemu-img bench' of this",
         "PROGRAM"},
        {"json", 0, 0, G_OPTION_ARG_FILENAME, &json, "write results there", "FILE"},
        {NULL},
    };
    g_autoptr(GOptionContext) options = g_option_context_new("- requests/s of each AIO engine");
    g_autoptr(GError) gerr = NULL;
    int ret;

    g_option_context_add_main_entries(options, entries, NULL);
    if (!g_option_context_parse(options, &argc, &argv, &gerr)) {
        fprintf(stderr, "engine-bench: %s\n", gerr->message);
        return 1;
    }
    if (size < 1 || size > 65536 || (size & (size - 1))) {
        fprintf(stderr, "engine-bench: --size must be a power of two between 1 and 65536\n");
        return 1;
    }
    if (block < 4 || block > 1024 || (block & (block - 1))) {
        fprintf(stderr, "engine-bench: --block must be a power of two between 4 and 1024\n");
        return 1;
    }
    cfg.size = (uint64_t)size << 20;
    cfg.block = (unsigned int)block << 10;
    cfg.monitor = monitor ? monitor_by_name(monitor) : AIO_MONITOR_AUTO;
    cfg.uring_flags = uring_flags >= 0 ? (unsigned int)uring_flags : AIO_URING_AUTO;
    cfg.direct = !cached;
    cfg.nonblock = !workers;
    cfg.duration_ns = ms * INT64_C(1000000);
    cfg.qemu_img = qemu_img;
    ret = make_file(&cfg, dir, &path);
    if (ret) {
        fprintf(stderr, "engine-bench: cannot make a file of %" PRIu64 " bytes in '%s': %s\n", cfg.size, dir,
                strerror(-ret));
    } else {
        run_all(&cfg, depths, rounds, engines, json);
        close(cfg.fd);
    }
    unlink(path);
    return ret ? 1 : 0;
}
