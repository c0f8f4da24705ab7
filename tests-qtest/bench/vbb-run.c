/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench: one start of one binary, from command line to result. */
#include "vbb.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

volatile int vbb_interrupted;

static char *iothread_mapping(const VbbConfig *cfg)
{
    GString *s = g_string_new("[");

    for (unsigned int i = 0; i < cfg->iothreads; i++) {
        g_string_append_printf(s, "%s{\"iothread\":\"io%u\"}", i ? "," : "", i);
    }
    return g_string_free(g_string_append_c(s, ']'), FALSE);
}

/* "a=b,c=d" as members of a JSON object, values as strings except whole numbers and on/off. */
static void append_json_opts(GString *s, const char *opts)
{
    g_auto(GStrv) item = g_strsplit(opts, ",", -1);

    for (char **o = item; *o && **o; o++) {
        g_auto(GStrv) kv = g_strsplit(*o, "=", 2);
        const char *v = kv[1] ? kv[1] : "on";
        bool number = *v && strspn(v, "0123456789") == strlen(v);

        if (!strcmp(v, "on") || !strcmp(v, "off")) {
            g_string_append_printf(s, ",\"%s\":%s", kv[0], *v == 'o' && v[1] == 'n' ? "true" : "false");
        } else {
            g_string_append_printf(s, number ? ",\"%s\":%s" : ",\"%s\":\"%s\"", kv[0], v);
        }
    }
}

static void append_opts(GString *s, const char *opts)
{
    if (*opts) {
        g_string_append_printf(s, ",%s", opts);
    }
}

static char *device_arguments(const VbbConfig *cfg, const VbbTarget *target)
{
    GString *s = g_string_new("-nodefaults");

    for (unsigned int i = 0; i < cfg->iothreads; i++) {
        g_string_append_printf(s, " -object iothread,id=io%u", i);
        append_opts(s, target->iothread_opts);
    }
    if (!strcmp(cfg->backend, "file")) {
        g_string_append_printf(s, " -blockdev driver=file,node-name=disk,aio=%s,cache.direct=%s,filename=",
                               cfg->aio, cfg->direct ? "on" : "off");
        if (cfg->image) {
            g_string_append(s, cfg->image);
        } else {
            g_string_append_printf(s, "/proc/self/fd/%d", cfg->image_fd);
        }
    } else {
        g_string_append_printf(s, " -blockdev driver=%s,node-name=disk,size=%" G_GUINT64_FORMAT,
                               cfg->backend, cfg->disk_size);
    }
    append_opts(s, target->blockdev_opts);
    if (cfg->iothreads > 1) {
        g_autofree char *mapping = iothread_mapping(cfg);

        g_string_append_printf(s,
                               " -device '{\"driver\":\"virtio-blk-pci\",\"id\":\"vblk0\",\"drive\":\"disk\","
                               "\"addr\":\"4.0\",\"num-queues\":%u,\"iothread-vq-mapping\":%s",
                               cfg->queues, mapping);
        if (cfg->queue_size) {
            g_string_append_printf(s, ",\"queue-size\":%u", cfg->queue_size);
        }
        append_json_opts(s, target->device_opts);
        g_string_append(s, "}'");
    } else {
        g_string_append_printf(s, " -device virtio-blk-pci,id=vblk0,drive=disk,addr=4.0,num-queues=%u",
                               cfg->queues);
        if (cfg->iothreads) {
            g_string_append(s, ",iothread=io0");
        }
        if (cfg->queue_size) {
            g_string_append_printf(s, ",queue-size=%u", cfg->queue_size);
        }
        append_opts(s, target->device_opts);
    }
    if (*target->extra_args) {
        g_string_append_printf(s, " %s", target->extra_args);
    }
    return g_string_free(s, FALSE);
}

static unsigned int ram_mib(const VbbConfig *cfg)
{
    uint64_t slot = 128 + ((cfg->max_size + 4095ULL) & ~4095ULL);
    uint64_t bytes = cfg->queues * (cfg->depth * slot + (64 << 10)) + (4 << 20);

    return (unsigned int)MAX(16, (bytes >> 20) + 1);
}

static void pin_device(const VbbConfig *cfg, pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task", pid);
    DIR *dir = opendir(path);
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < cfg->npin_device; i++) {
        CPU_SET(cfg->pin_device[i], &set);
    }
    for (struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        if (atoi(e->d_name) > 0 && sched_setaffinity(atoi(e->d_name), sizeof(set), &set) < 0) {
            qos_die("cannot pin thread %s of the device: %s", e->d_name, g_strerror(errno));
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void start_device(VbbRun *run, const VbbTarget *target)
{
    const VbbConfig *cfg = run->cfg;
    g_autofree char *args = device_arguments(cfg, target);
    int fds[2] = {cfg->image_fd, -1};
    QTestOpts qo = {.binary = target->binary, .shared_mib = ram_mib(cfg), .fds = fds};
    VblkOpts vo = {
        .via = cfg->legacy ? VIRTIO_LEGACY : VIRTIO_MODERN,
        .queues = cfg->queues,
        .msix = cfg->interrupts,
        .without = cfg->event_idx ? 0 : VIRTIO_F(VIRTIO_F_EVENT_IDX),
    };
    uint64_t begin = vbb_now();
    char *why = NULL;

    run->t = qt_try_start(&qo, args, &why);
    if (!run->t) {
        qos_die("%s %s\n%s", target->binary, args, why);
    }
    run->start_seconds = (double)(vbb_now() - begin) / 1e9;
    if (cfg->npin_device) {
        pin_device(cfg, run->t->child->pid);
    }
    run->rss_before = process_rss_kib(run->t->child->pid);
    run->b = vblk_new(run->t, &vo);
    for (unsigned int i = 0; i < cfg->queues; i++) {
        uint64_t addr;
        bool port = vpci_doorbell(run->b->v, (uint16_t)i, &addr);

        g_snprintf(run->doorbell[i], sizeof(run->doorbell[i]), "%s 0x%" G_GINT64_MODIFIER "x %u\n",
                   port ? "outw" : "writew", addr, i);
    }
}

static void *zeroed(size_t n, size_t size)
{
    void *p;

    /* Queues of different threads must not share a cache line. */
    if (posix_memalign(&p, 64, n * size)) {
        qos_die("out of memory");
    }
    return memset(p, 0, n * size);
}

/* Sleep for @seconds in short steps; shows progress; ends early when interrupted or failed. */
static void let_run(VbbRun *run, double seconds, bool measuring)
{
    const VbbConfig *cfg = run->cfg;
    uint64_t begin = vbb_now(), shown = begin, now, total, last = 0;

    while ((now = vbb_now()) < begin + (uint64_t)(seconds * 1e9) && !vbb_interrupted &&
           !__atomic_load_n(&run->failed, __ATOMIC_RELAXED)) {
        g_usleep((gulong)MIN(50000, (begin + (uint64_t)(seconds * 1e9) - now) / 1000 + 1));
        if (cfg->quiet || !measuring || now - shown < 500000000) {
            continue;
        }
        total = 0;
        for (unsigned int i = 0; i < cfg->queues; i++) {
            total += __atomic_load_n(&run->queue[i].done, __ATOMIC_RELAXED);
        }
        fprintf(stderr, "\r%5.1f s  %.0f requests/s\033[K", (double)(now - begin) / 1e9,
                (double)(total - last) * 1e9 / (double)(now - shown));
        last = total;
        shown = now;
    }
    if (!cfg->quiet && measuring) {
        fprintf(stderr, "\r\033[K");
    }
}

static void set_phase(VbbRun *run, int phase)
{
    __atomic_store_n(&run->phase, phase, __ATOMIC_RELEASE);
}

static void measure(VbbRun *run)
{
    const VbbConfig *cfg = run->cfg;
    uint64_t t0;
    double cpu0;

    pthread_mutex_init(&run->socket_lock, NULL);
    for (unsigned int i = 0; i < cfg->threads; i++) {
        run->thread[i].run = run;
        run->thread[i].index = i;
        if (pthread_create(&run->thread[i].id, NULL, vbb_thread_main, &run->thread[i])) {
            qos_die("cannot start a thread");
        }
    }
    let_run(run, cfg->warmup, false);
    cpu0 = process_cpu_seconds(run->t->child->pid);
    t0 = vbb_now();
    set_phase(run, VBB_MEASURE);
    let_run(run, cfg->seconds, true);
    run->elapsed = (double)(vbb_now() - t0) / 1e9;
    run->device_cpu = process_cpu_seconds(run->t->child->pid) - cpu0;
    run->rss_after = process_rss_kib(run->t->child->pid);
    set_phase(run, VBB_DRAIN);
    for (unsigned int i = 0; i < cfg->threads; i++) {
        pthread_join(run->thread[i].id, NULL);
    }
    pthread_mutex_destroy(&run->socket_lock);
}

/* The socket holds replies to doorbells; bring it back into step. */
static void resync_socket(VbbRun *run)
{
    char *line;

    qt_send_raw(run->t, "clock_step_is_no_such_command\n", 30);
    while (strncmp(line = qt_reply(run->t), "FAIL", 4)) {
        g_free(line);
    }
    g_free(line);
}

static void collect(VbbRun *run, VbbResult *r)
{
    const VbbConfig *cfg = run->cfg;
    uint64_t bytes = 0, doorbells = 0, irqs = 0, batches = 0;
    json_t *reply;

    memset(r, 0, sizeof(*r));
    for (unsigned int i = 0; i < cfg->queues; i++) {
        VbbQueue *q = &run->queue[i];

        r->requests += q->done;
        r->errors += q->errors;
        r->bad_data += q->bad_data;
        bytes += q->bytes;
        doorbells += q->doorbells;
        irqs += q->irqs;
        batches += q->avail_batches;
        hist_merge(&r->hist, &q->hist);
    }
    for (unsigned int i = 0; i < cfg->threads; i++) {
        r->driver_cpu += run->thread[i].cpu_seconds;
    }
    r->elapsed = run->elapsed;
    r->start_seconds = run->start_seconds;
    r->iops = (double)r->requests / run->elapsed;
    r->mib_s = (double)bytes / run->elapsed / 1048576;
    r->device_cpu = run->device_cpu;
    r->doorbells = r->requests ? (double)doorbells / (double)r->requests : 0;
    r->irqs = r->requests ? (double)irqs / (double)r->requests : 0;
    r->batch = batches ? (double)r->requests / (double)batches : 0;
    r->rss_before = run->rss_before;
    r->rss_after = run->rss_after;
    reply = qmp_execute(run->t->qmp, "x-query-iothread-stats", NULL);
    r->device_stats = json_incref(json_object_get(reply, "return"));
    json_decref(reply);
}

bool vbb_run(const VbbConfig *cfg, const VbbTarget *target, VbbResult *result)
{
    VbbRun run = {.cfg = cfg};
    bool ok;

    start_device(&run, target);
    run.queue = zeroed(cfg->queues, (sizeof(VbbQueue) + 63) & ~63UL);
    run.thread = zeroed(cfg->threads, sizeof(VbbThread));
    for (unsigned int i = 0; i < cfg->queues; i++) {
        vbb_queue_init(&run.queue[i], &run, i);
    }
    measure(&run);
    if (run.failed && !vbb_interrupted) {
        g_autofree char *text = qt_stderr(run.t);

        qos_die("the device stopped answering; its stderr:\n%s", text);
    }
    ok = !vbb_interrupted;
    if (ok) {
        resync_socket(&run);
        collect(&run, result);
    }
    vblk_abandon(run.b);
    if (ok) {
        qt_stop(g_steal_pointer(&run.t));
    } else {
        qt_kill(g_steal_pointer(&run.t));
    }
    for (unsigned int i = 0; i < cfg->queues; i++) {
        vbb_queue_free(&run.queue[i]);
    }
    free(run.queue);
    free(run.thread);
    return ok;
}
