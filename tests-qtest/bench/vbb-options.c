/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench: the command line. */
#include "vbb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const pattern_names[] = {"read", "write", "randread", "randwrite", "mixed"};

const char *vbb_pattern_name(VbbPattern p)
{
    return pattern_names[p];
}

static G_NORETURN void bad(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
static void bad(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fputs("virtio-blk-bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputs("\n(--help lists the options)\n", stderr);
    va_end(ap);
    exit(2);
}

static uint64_t parse_bytes(const char *s, const char *what)
{
    char *end;
    double v = strtod(s, &end);
    const char *p = *end ? strchr("kMGKmg", *end) : NULL;
    int shift = p ? 10 * ((int)((p - "kMGKmg") % 3) + 1) : 0;

    if (end == s || v < 0 || (*end && (!p || end[1]))) {
        bad("%s: '%s' is not a number of bytes (suffix k, M or G)", what, s);
    }
    return (uint64_t)(v * (double)(1ULL << shift));
}

static bool parse_onoff(const char *s, const char *what)
{
    if (strcmp(s, "on") && strcmp(s, "off")) {
        bad("%s expects on or off, not '%s'", what, s);
    }
    return s[1] == 'n';
}

/* "4k" or "4k:70,64k:30". */
static void parse_sizes(VbbConfig *cfg, const char *s)
{
    g_auto(GStrv) item = g_strsplit(s, ",", -1);
    unsigned int total = 0;

    for (char **i = item; *i; i++) {
        g_auto(GStrv) part = g_strsplit(*i, ":", 2);

        if (cfg->nsizes == VBB_MAX_SIZES) {
            bad("--bs: at most %d sizes", VBB_MAX_SIZES);
        }
        cfg->size[cfg->nsizes] = (uint32_t)parse_bytes(part[0] ? part[0] : "", "--bs");
        cfg->weight[cfg->nsizes] = part[0] && part[1] ? (unsigned int)atoi(part[1]) : 100;
        if (!cfg->size[cfg->nsizes] || cfg->size[cfg->nsizes] % 512 || cfg->size[cfg->nsizes] > 16 << 20) {
            bad("--bs: '%s' is not a multiple of 512 up to 16M", *i);
        }
        total += cfg->weight[cfg->nsizes];
        cfg->max_size = MAX(cfg->max_size, cfg->size[cfg->nsizes]);
        cfg->nsizes++;
    }
    if (total != 100) {
        bad("--bs: the percentages of '%s' sum to %u", s, total);
    }
}

static int parse_cpus(const char *s, int *cpu)
{
    g_auto(GStrv) item = g_strsplit(s, ",", -1);
    int n = 0;

    for (char **i = item; *i && n < 64; i++) {
        char *end;

        cpu[n++] = (int)strtol(*i, &end, 10);
        if (end == *i || *end || cpu[n - 1] < 0 || cpu[n - 1] >= sysconf(_SC_NPROCESSORS_CONF)) {
            bad("there is no CPU '%s'", *i);
        }
    }
    return n;
}

typedef struct Raw {
    char *binary, *vs, *bs, *rw, *completion, *backend, *image, *dir, *aio, *direct, *size, *via;
    char *event_idx, *indirect, *pin, *pin_device, *json;
    char *opts[2][4];
    int queues, threads, iothreads, depth, runs, queue_size, read_percent;
    double warmup, seconds, rate;
    gboolean verify, quiet;
} Raw;

static void parse_command_line(Raw *r, int *argc, char ***argv)
{
    const GOptionEntry entries[] = {
        {"binary", 'b', 0, G_OPTION_ARG_FILENAME, &r->binary, "binary to measure [$QTEST_QEMU_BINARY]", "PATH"},
        {"vs", 0, 0, G_OPTION_ARG_FILENAME, &r->vs, "measure against this one, taking turns (A B A B ...)", "PATH"},
        {"runs", 'n', 0, G_OPTION_ARG_INT, &r->runs, "runs of each binary [1; with --vs 3]", "N"},
        {"time", 't', 0, G_OPTION_ARG_DOUBLE, &r->seconds, "seconds to measure in each run [2]", "S"},
        {"warmup", 0, 0, G_OPTION_ARG_DOUBLE, &r->warmup, "seconds of load before that [0.5]", "S"},
        {"queues", 'q', 0, G_OPTION_ARG_INT, &r->queues, "virtqueues [1]", "N"},
        {"depth", 'd', 0, G_OPTION_ARG_INT, &r->depth, "requests in flight in each queue [32]", "N"},
        {"threads", 'T', 0, G_OPTION_ARG_INT, &r->threads, "driver threads; queues are dealt to them in turn [1]", "N"},
        {"iothreads", 'I', 0, G_OPTION_ARG_INT, &r->iothreads, "IOThreads of the device; 0: main loop; more than 1 uses iothread-vq-mapping [1]", "N"},
        {"rw", 0, 0, G_OPTION_ARG_STRING, &r->rw, "read, write, randread, randwrite or mixed (random) [randread]", "WHAT"},
        {"read-percent", 0, 0, G_OPTION_ARG_INT, &r->read_percent, "share of reads in mixed [70]", "N"},
        {"bs", 0, 0, G_OPTION_ARG_STRING, &r->bs, "bytes a request, or a mix such as 4k:70,64k:30 [4k]", "SIZES"},
        {"verify", 0, 0, G_OPTION_ARG_NONE, &r->verify, "writes carry data that later reads check (needs one size and --backend file)", NULL},
        {"rate", 0, 0, G_OPTION_ARG_DOUBLE, &r->rate, "requests a second in all, 0: as fast as possible; latency then counts from when a request was due [0]", "N"},
        {"completion", 0, 0, G_OPTION_ARG_STRING, &r->completion, "poll the used ring, or look at it upon an MSI-X message [poll]", "poll|irq"},
        {"via", 0, 0, G_OPTION_ARG_STRING, &r->via, "interface of the device [modern]", "modern|legacy"},
        {"event-idx", 0, 0, G_OPTION_ARG_STRING, &r->event_idx, "negotiate event indexes [on]", "on|off"},
        {"indirect", 0, 0, G_OPTION_ARG_STRING, &r->indirect, "indirect descriptors; auto: only where the queue is too short without [auto]", "on|off|auto"},
        {"queue-size", 0, 0, G_OPTION_ARG_INT, &r->queue_size, "the device's queue-size property [its default]", "N"},
        {"backend", 0, 0, G_OPTION_ARG_STRING, &r->backend, "null-co, null-aio or file [null-co]", "NAME"},
        {"image", 0, 0, G_OPTION_ARG_FILENAME, &r->image, "image for --backend file; writes destroy it [an unnamed file]", "PATH"},
        {"dir", 0, 0, G_OPTION_ARG_FILENAME, &r->dir, "file system of the unnamed image [/dev/shm]", "DIR"},
        {"size", 0, 0, G_OPTION_ARG_STRING, &r->size, "size of disk or unnamed image [128M]", "BYTES"},
        {"aio", 0, 0, G_OPTION_ARG_STRING, &r->aio, "threads, native or io_uring [native]", "ENGINE"},
        {"direct", 0, 0, G_OPTION_ARG_STRING, &r->direct, "cache.direct, that is O_DIRECT [on]", "on|off"},
        {"pin", 0, 0, G_OPTION_ARG_STRING, &r->pin, "CPUs for the driver threads, one each in turn", "CPU,CPU"},
        {"pin-device", 0, 0, G_OPTION_ARG_STRING, &r->pin_device, "CPUs for all threads of the device", "CPU,CPU"},
        {"iothread-opts", 0, 0, G_OPTION_ARG_STRING, &r->opts[0][0], "more properties of each iothread, such as aio-max-batch=8", "K=V,.."},
        {"blockdev-opts", 0, 0, G_OPTION_ARG_STRING, &r->opts[0][1], "more options of the node", "K=V,.."},
        {"device-opts", 0, 0, G_OPTION_ARG_STRING, &r->opts[0][2], "more properties of the device", "K=V,.."},
        {"args", 0, 0, G_OPTION_ARG_STRING, &r->opts[0][3], "more arguments for the binary", "TEXT"},
        {"vs-iothread-opts", 0, 0, G_OPTION_ARG_STRING, &r->opts[1][0], "the same four for --vs; [those of the first]", "K=V,.."},
        {"vs-blockdev-opts", 0, 0, G_OPTION_ARG_STRING, &r->opts[1][1], "", "K=V,.."},
        {"vs-device-opts", 0, 0, G_OPTION_ARG_STRING, &r->opts[1][2], "", "K=V,.."},
        {"vs-args", 0, 0, G_OPTION_ARG_STRING, &r->opts[1][3], "", "TEXT"},
        {"json", 0, 0, G_OPTION_ARG_FILENAME, &r->json, "write everything as JSON there; '-' is stdout, instead of text", "FILE"},
        {"quiet", 0, 0, G_OPTION_ARG_NONE, &r->quiet, "no progress on the terminal", NULL},
        {NULL},
    };
    g_autoptr(GOptionContext) ctx = g_option_context_new("- measure virtio-blk-pci from outside");
    GError *err = NULL;

    g_option_context_set_summary(
        ctx, "Starts a QEMU-compatible binary under the qtest protocol with guest RAM shared between both, sets\n"
             "virtio-blk-pci up through the socket and then drives the rings directly. A binary without the qtest\n"
             "accelerator (a distribution's) is started with \"-accel tcg -S\": its vCPU never runs, the device does.\n"
             "Interrupted, it leaves no process, file or socket behind.");
    g_option_context_add_main_entries(ctx, entries, NULL);
    if (!g_option_context_parse(ctx, argc, argv, &err)) {
        bad("%s", err->message);
    }
    if (*argc > 1) {
        bad("what is '%s'?", (*argv)[1]);
    }
}

static unsigned int in_range(int v, int min, int max, const char *what)
{
    if (v < min || v > max) {
        bad("%s must be between %d and %d, not %d", what, min, max, v);
    }
    return (unsigned int)v;
}

static void set_targets(VbbConfig *cfg, Raw *r)
{
    cfg->vs = r->vs != NULL;
    cfg->target[0].binary = r->binary ? r->binary : qt_binary();
    cfg->target[1].binary = r->vs;
    if (!cfg->target[0].binary) {
        bad("no binary: give --binary or set QTEST_QEMU_BINARY");
    }
    for (int k = 0; k < 2; k++) {
        const char *o[4];

        for (int i = 0; i < 4; i++) {
            o[i] = r->opts[k][i] ? r->opts[k][i] : k && r->opts[0][i] ? r->opts[0][i] : "";
        }
        cfg->target[k].iothread_opts = o[0];
        cfg->target[k].blockdev_opts = o[1];
        cfg->target[k].device_opts = o[2];
        cfg->target[k].extra_args = o[3];
    }
}

static void set_load(VbbConfig *cfg, Raw *r)
{
    size_t p;

    for (p = 0; p < G_N_ELEMENTS(pattern_names) && strcmp(pattern_names[p], r->rw ? r->rw : "randread"); p++) {
    }
    if (p == G_N_ELEMENTS(pattern_names)) {
        bad("--rw: '%s' is none of read, write, randread, randwrite, mixed", r->rw);
    }
    cfg->pattern = (VbbPattern)p;
    cfg->read_percent = in_range(r->read_percent, 0, 100, "--read-percent");
    parse_sizes(cfg, r->bs ? r->bs : "4k");
    cfg->verify = r->verify;
    if (cfg->verify && (cfg->nsizes > 1 || strcmp(cfg->backend, "file"))) {
        bad("--verify needs one block size and --backend file");
    }
    if (r->rate < 0 || r->seconds <= 0 || r->warmup < 0) {
        bad("--rate, --time and --warmup take positive numbers");
    }
    cfg->rate = r->rate;
    cfg->seconds = r->seconds;
    cfg->warmup = r->warmup;
    if (r->completion && strcmp(r->completion, "poll") && strcmp(r->completion, "irq")) {
        bad("--completion is poll or irq, not '%s'", r->completion);
    }
    cfg->interrupts = r->completion && !strcmp(r->completion, "irq");
}

static void set_device(VbbConfig *cfg, Raw *r)
{
    cfg->backend = r->backend ? r->backend : "null-co";
    if (strcmp(cfg->backend, "file") && strcmp(cfg->backend, "null-co") && strcmp(cfg->backend, "null-aio")) {
        bad("--backend is null-co, null-aio or file, not '%s'", cfg->backend);
    }
    cfg->image = r->image;
    cfg->image_fd = -1;
    cfg->dir = r->dir ? r->dir : "/dev/shm";
    cfg->aio = r->aio ? r->aio : "native";
    cfg->direct = parse_onoff(r->direct ? r->direct : "on", "--direct");
    cfg->disk_size = parse_bytes(r->size ? r->size : "128M", "--size") & ~511ULL;
    if (r->via && strcmp(r->via, "modern") && strcmp(r->via, "legacy")) {
        bad("--via is modern or legacy, not '%s'", r->via);
    }
    cfg->legacy = r->via && !strcmp(r->via, "legacy");
    cfg->event_idx = parse_onoff(r->event_idx ? r->event_idx : "on", "--event-idx");
    cfg->indirect = !r->indirect || !strcmp(r->indirect, "auto") ? -1 : parse_onoff(r->indirect, "--indirect");
    cfg->queue_size = in_range(r->queue_size, 0, 1024, "--queue-size");
}

void vbb_parse_options(VbbConfig *cfg, int argc, char **argv, const char **json_path)
{
    static Raw raw; /* the configuration points into it */
    Raw *r = &raw;

    r->queues = r->threads = r->iothreads = 1;
    r->depth = 32;
    r->read_percent = 70;
    r->seconds = 2;
    r->warmup = 0.5;
    parse_command_line(r, &argc, &argv);
    memset(cfg, 0, sizeof(*cfg));
    set_targets(cfg, r);
    cfg->queues = in_range(r->queues, 1, 64, "--queues");
    cfg->threads = in_range(r->threads, 1, r->queues, "--threads");
    cfg->iothreads = in_range(r->iothreads, 0, r->queues, "--iothreads");
    cfg->depth = in_range(r->depth, 1, 1024, "--depth");
    cfg->runs = in_range(r->runs ? r->runs : cfg->vs ? 3 : 1, 1, 1000, "--runs");
    set_device(cfg, r);
    set_load(cfg, r);
    cfg->npin_driver = r->pin ? parse_cpus(r->pin, cfg->pin_driver) : 0;
    cfg->npin_device = r->pin_device ? parse_cpus(r->pin_device, cfg->pin_device) : 0;
    cfg->quiet = r->quiet || !isatty(2);
    *json_path = r->json;
}
