/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench: text and JSON results. */
#include "vbb.h"

#include <stdio.h>
#include <stdlib.h>

static const double quantiles[] = {0.5, 0.9, 0.99, 0.999};
static const char *const quantile_name[] = {"p50", "p90", "p99", "p99.9"};

static double per_request_ns(double seconds, const VbbResult *r)
{
    return r->requests ? seconds * 1e9 / (double)r->requests : 0;
}

void vbb_print_result(const VbbConfig *cfg, const VbbTarget *target, const VbbResult *r)
{
    printf("%s\n", target->binary);
    printf("  %.0f requests/s  %.1f MiB/s", r->iops, r->mib_s);
    if (r->errors || r->bad_data) {
        printf("  ERRORS: %" G_GUINT64_FORMAT ", wrong data: %" G_GUINT64_FORMAT, r->errors, r->bad_data);
    }
    printf("\n  latency us: min %.1f  mean %.1f", (double)r->hist.min / 1e3,
           r->hist.count ? (double)r->hist.sum / (double)r->hist.count / 1e3 : 0);
    for (size_t i = 0; i < G_N_ELEMENTS(quantiles); i++) {
        printf("  %s %.1f", quantile_name[i], (double)hist_quantile(&r->hist, quantiles[i]) / 1e3);
    }
    printf("  max %.1f\n", (double)r->hist.max / 1e3);
    printf("  a request: %.4f doorbells, %.4f interrupts, CPU %.0f ns device + %.0f ns driver; batch %.1f\n",
           r->doorbells, r->irqs, per_request_ns(r->device_cpu, r), per_request_ns(r->driver_cpu, r),
           r->batch);
    printf("  resident %.1f MiB before I/O, %.1f MiB after; start %.0f ms\n",
           (double)r->rss_before / 1024, (double)r->rss_after / 1024, r->start_seconds * 1e3);
    fflush(stdout);
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(const double *v, unsigned int n)
{
    g_autofree double *s = g_memdup2(v, n * sizeof(*v));

    qsort(s, n, sizeof(*s), compare_double);
    return n % 2 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}

static double iops_of(const VbbResult *r)
{
    return r->iops;
}

static double p50_of(const VbbResult *r)
{
    return (double)hist_quantile(&r->hist, 0.5) / 1e3;
}

static double device_cpu_of(const VbbResult *r)
{
    return per_request_ns(r->device_cpu, r);
}

static double rss_of(const VbbResult *r)
{
    return (double)r->rss_before / 1024;
}

static double start_of(const VbbResult *r)
{
    return r->start_seconds * 1e3;
}

static const struct Metric {
    const char *key, *text;
    double (*get)(const VbbResult *r);
} metrics[] = {
    {"iops", "requests/s", iops_of},
    {"latency-p50-us", "median latency, us", p50_of},
    {"device-cpu-ns", "device CPU, ns a request", device_cpu_of},
    {"rss-mib", "resident before I/O, MiB", rss_of},
    {"start-ms", "start to first answer, ms", start_of},
};

/* Median of each target, and of the ratios of runs that were neighbours in time, with their extremes. */
static void summarize(const struct Metric *m, VbbResult *results[2], unsigned int n, bool vs,
                      double med[2], double ratio[3])
{
    g_autofree double *a = g_new(double, n), *b = g_new(double, n), *r = g_new(double, n);

    for (unsigned int i = 0; i < n; i++) {
        a[i] = m->get(&results[0][i]);
        b[i] = vs ? m->get(&results[1][i]) : 0;
        r[i] = b[i] > 0 ? a[i] / b[i] : 0;
    }
    med[0] = median(a, n);
    med[1] = median(b, n);
    qsort(r, n, sizeof(*r), compare_double);
    ratio[0] = median(r, n);
    ratio[1] = r[0];
    ratio[2] = r[n - 1];
}

void vbb_print_summary(const VbbConfig *cfg, VbbResult *results[2], unsigned int n)
{
    if (n < 2 && !cfg->vs) {
        return;
    }
    printf("\nmedians of %u runs%s\n", n, cfg->vs ? ", A and B taking turns; ratio A/B, median [smallest, largest]" : "");
    if (cfg->vs) {
        printf("  A %s\n  B %s\n", cfg->target[0].binary, cfg->target[1].binary);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(metrics); i++) {
        double med[2], ratio[3];

        summarize(&metrics[i], results, n, cfg->vs, med, ratio);
        printf("  %-26s %12.1f", metrics[i].text, med[0]);
        if (cfg->vs) {
            printf(" %12.1f   ratio %.3f [%.3f, %.3f]", med[1], ratio[0], ratio[1], ratio[2]);
        }
        printf("\n");
    }
}

static json_t *json_result(const VbbResult *r)
{
    json_t *lat = json_pack("{s:f,s:f,s:f}", "min", (double)r->hist.min, "max", (double)r->hist.max, "mean",
                            r->hist.count ? (double)r->hist.sum / (double)r->hist.count : 0.0);
    json_t *v;

    for (size_t i = 0; i < G_N_ELEMENTS(quantiles); i++) {
        json_object_set_new(lat, quantile_name[i],
                            json_integer((json_int_t)hist_quantile(&r->hist, quantiles[i])));
    }
    v = json_pack("{s:f,s:f,s:I,s:I,s:I,s:f,s:o,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:f}", "iops", r->iops, "mib-per-s",
                  r->mib_s, "requests", (json_int_t)r->requests, "errors", (json_int_t)r->errors, "bad-data",
                  (json_int_t)r->bad_data, "seconds", r->elapsed, "latency-ns", lat, "doorbells-per-request",
                  r->doorbells, "interrupts-per-request", r->irqs, "requests-per-batch", r->batch,
                  "driver-cpu-seconds", r->driver_cpu, "device-cpu-seconds", r->device_cpu, "rss-kib-before",
                  (json_int_t)r->rss_before, "rss-kib-after", (json_int_t)r->rss_after, "start-seconds",
                  r->start_seconds);
    if (r->device_stats) {
        json_object_set(v, "device-stats", r->device_stats);
    }
    return v;
}

static json_t *json_config(const VbbConfig *cfg)
{
    json_t *sizes = json_array();

    for (unsigned int i = 0; i < cfg->nsizes; i++) {
        json_array_append_new(sizes, json_pack("{s:I,s:i}", "bytes", (json_int_t)cfg->size[i], "percent",
                                               (int)cfg->weight[i]));
    }
    return json_pack("{s:i,s:i,s:i,s:i,s:s,s:i,s:o,s:s,s:s?,s:s,s:b,s:b,s:b,s:f,s:f,s:f,s:b}", "queues",
                     (int)cfg->queues, "threads", (int)cfg->threads, "iothreads", (int)cfg->iothreads, "depth",
                     (int)cfg->depth, "pattern", vbb_pattern_name(cfg->pattern), "read-percent",
                     (int)cfg->read_percent, "sizes", sizes, "backend", cfg->backend, "image", cfg->image, "aio",
                     cfg->aio, "direct", (int)cfg->direct, "legacy", (int)cfg->legacy, "interrupts",
                     (int)cfg->interrupts, "rate", cfg->rate, "seconds", cfg->seconds, "warmup", cfg->warmup,
                     "verify", (int)cfg->verify);
}

json_t *vbb_json(const VbbConfig *cfg, VbbResult *results[2], unsigned int n)
{
    json_t *targets = json_array(), *summary = json_object();

    for (int k = 0; k <= cfg->vs; k++) {
        json_t *runs = json_array();

        for (unsigned int i = 0; i < n; i++) {
            json_array_append_new(runs, json_result(&results[k][i]));
        }
        json_array_append_new(targets, json_pack("{s:s,s:o}", "binary", cfg->target[k].binary, "runs", runs));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(metrics); i++) {
        double med[2], ratio[3];
        json_t *m;

        summarize(&metrics[i], results, n, cfg->vs, med, ratio);
        m = json_pack("{s:f}", "a", med[0]);
        if (cfg->vs) {
            json_object_update_new(m, json_pack("{s:f,s:f,s:f,s:f}", "b", med[1], "ratio", ratio[0], "ratio-min",
                                                ratio[1], "ratio-max", ratio[2]));
        }
        json_object_set_new(summary, metrics[i].key, m);
    }
    return json_pack("{s:o,s:o,s:o}", "config", json_config(cfg), "targets", targets, "summary", summary);
}
