/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench: measure virtio-blk-pci of any QEMU-compatible binary from outside. */
#include "vbb.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_signal(int sig)
{
    if (vbb_interrupted) {
        /* The guard process and the children's death signal clean up behind us. */
        _exit(128 + sig);
    }
    vbb_interrupted = sig;
}

/* An image without a name needs no removal. Every block is written, so that reads find data and not holes. */
static int make_image(const VbbConfig *cfg)
{
    g_autofree char *block = g_malloc(1 << 20);
    int fd = open(cfg->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) {
        qos_die("--dir %s: %s", cfg->dir, g_strerror(errno));
    }
    memset(block, 0x5a, 1 << 20);
    for (uint64_t off = 0; off < cfg->disk_size && !vbb_interrupted; off += 1 << 20) {
        size_t len = MIN(1 << 20, cfg->disk_size - off);

        if (pwrite(fd, block, len, (off_t)off) != (ssize_t)len) {
            qos_die("--dir %s: cannot fill an image of %" G_GUINT64_FORMAT " bytes: %s", cfg->dir, cfg->disk_size,
                    g_strerror(errno));
        }
    }
    return fd;
}

static void write_json(const char *path, json_t *v)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "we") : stdout;

    if (!f || json_dumpf(v, f, JSON_INDENT(2)) < 0 || fputc('\n', f) == EOF || fflush(f)) {
        qos_die("%s: %s", path, g_strerror(errno));
    }
    if (f != stdout) {
        fclose(f);
    }
    json_decref(v);
}

int main(int argc, char **argv)
{
    /* Needed until the very end. */
    static VbbConfig cfg;
    static VbbResult *results[2];
    const char *json_path;
    bool text, bad = false;

    qos_exit_on_error = true;
    vbb_parse_options(&cfg, argc, argv, &json_path);
    text = !json_path || strcmp(json_path, "-");
    qos_scratch();
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_signal);
    if (!strcmp(cfg.backend, "file") && !cfg.image) {
        cfg.image_fd = make_image(&cfg);
    }
    results[0] = g_new0(VbbResult, cfg.runs);
    results[1] = g_new0(VbbResult, cfg.runs);
    for (unsigned int i = 0; i < cfg.runs; i++) {
        for (int k = 0; k <= cfg.vs; k++) {
            if (vbb_interrupted || !vbb_run(&cfg, &cfg.target[k], &results[k][i])) {
                fprintf(stderr, "virtio-blk-bench: interrupted\n");
                return 128 + vbb_interrupted;
            }
            if (text) {
                vbb_print_result(&cfg, &cfg.target[k], &results[k][i]);
            }
            bad |= results[k][i].errors || results[k][i].bad_data;
        }
    }
    if (text) {
        vbb_print_summary(&cfg, results, cfg.runs);
    }
    if (json_path) {
        write_json(json_path, vbb_json(&cfg, results, cfg.runs));
    }
    return bad;
}
