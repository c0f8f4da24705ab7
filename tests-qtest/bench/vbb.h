/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench: what its parts share. */
#ifndef BENCH_VBB_H
#define BENCH_VBB_H

#include "histogram.h"
#include "virtio-blk.h"

#include <pthread.h>

#define VBB_MAX_SIZES 8

typedef enum VbbPattern {
    VBB_READ,
    VBB_WRITE,
    VBB_RANDREAD,
    VBB_RANDWRITE,
    VBB_MIXED, /* random, read_percent reads */
} VbbPattern;

/* One binary and how it is started. */
typedef struct VbbTarget {
    const char *binary;
    const char *iothread_opts, *blockdev_opts, *device_opts, *extra_args; /* "" if none */
} VbbTarget;

typedef struct VbbConfig {
    VbbTarget target[2];
    bool vs; /* target[1] counts */
    unsigned int queues, threads, iothreads, depth, runs;
    unsigned int queue_size; /* 0: the device's default */
    double warmup, seconds;
    VbbPattern pattern;
    unsigned int read_percent;
    unsigned int nsizes;
    uint32_t size[VBB_MAX_SIZES];       /* bytes */
    unsigned int weight[VBB_MAX_SIZES]; /* percent */
    uint32_t max_size;
    bool verify;
    double rate; /* requests a second in all, 0: none */
    bool interrupts;
    const char *backend; /* "null-co" or "file" */
    const char *image;   /* NULL: an unnamed file in dir */
    const char *dir;
    const char *aio;
    bool direct;
    uint64_t disk_size;
    bool legacy, event_idx;
    int indirect; /* 0, 1, -1: where the queue is too short for direct chains */
    int pin_driver[64], npin_driver;
    int pin_device[64], npin_device;
    bool quiet;
    int image_fd; /* the unnamed file, or -1 */
} VbbConfig;

typedef struct VbbSlot {
    uint8_t *header, *data, *status;
    uint64_t start_ns;
    uint64_t block; /* verify: index into the queue's generation table */
    uint32_t len;
    uint16_t desc; /* the descriptor that holds the data length */
    bool write;
    uint8_t *len_field; /* where the data length lies in the descriptor */
    uint8_t *flags_field;
} VbbSlot;

/* A queue as its one driver thread sees it. */
typedef struct VbbQueue {
    const VbbConfig *cfg;
    struct VbbRun *run;
    unsigned int index;
    uint16_t mask, avail_idx, last_used, kicked;
    volatile uint16_t *avail_flags, *avail_ring, *avail_idx_p, *used_event;
    volatile uint16_t *used_flags, *used_idx_p, *avail_event;
    const volatile uint32_t *used_ring; /* pairs of id, length */
    volatile uint32_t *vector;          /* interrupts: the dword that the device's message sets */
    VbbSlot *slot;
    uint16_t *slot_of_desc;
    uint16_t *free_slot;
    unsigned int nfree, nslots;
    uint64_t first_sector, sectors; /* this queue's share of the disk */
    uint64_t next_seq;
    uint64_t rng;
    uint32_t *generation; /* verify: content of each block, bit 31 while in flight; 0: unknown */
    uint64_t blocks;
    uint64_t done, bytes, doorbells, irqs, errors, bad_data, avail_batches;
    Histogram hist;
} VbbQueue;

typedef struct VbbThread {
    struct VbbRun *run;
    unsigned int index;
    pthread_t id;
    double cpu_seconds;
} VbbThread;

enum { VBB_WARMUP, VBB_MEASURE, VBB_DRAIN };

/* One start of one binary. */
typedef struct VbbRun {
    const VbbConfig *cfg;
    QTest *t;
    Vblk *b;
    VbbQueue *queue;
    VbbThread *thread;
    int phase; /* VBB_*, written by the main thread */
    pthread_mutex_t socket_lock;
    char doorbell[64][48];
    double elapsed, device_cpu, start_seconds;
    long rss_before, rss_after;
    bool failed;
} VbbRun;

typedef struct VbbResult {
    double iops, mib_s, elapsed, start_seconds;
    double driver_cpu, device_cpu;
    double doorbells, irqs, batch; /* a request; batch: requests a publication of the available index */
    uint64_t requests, errors, bad_data;
    long rss_before, rss_after; /* KiB */
    Histogram hist;
    json_t *device_stats; /* x-query-iothread-stats, or NULL */
} VbbResult;

/* Set by a signal: end soon, leave nothing. */
extern volatile int vbb_interrupted;

static inline uint64_t vbb_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* vbb-options.c: fills @cfg or exits with a message. */
void vbb_parse_options(VbbConfig *cfg, int argc, char **argv, const char **json_path);
const char *vbb_pattern_name(VbbPattern p);

/* vbb-run.c: start, measure, stop. False if interrupted. */
bool vbb_run(const VbbConfig *cfg, const VbbTarget *target, VbbResult *result);

/* vbb-ring.c: the driver's hot path. */
void vbb_queue_init(VbbQueue *q, VbbRun *run, unsigned int index);
void vbb_queue_free(VbbQueue *q);
void *vbb_thread_main(void *opaque);

/* vbb-report.c */
void vbb_print_result(const VbbConfig *cfg, const VbbTarget *target, const VbbResult *r);
/* Medians, and ratios if there are two targets; results[t] has @n entries. */
void vbb_print_summary(const VbbConfig *cfg, VbbResult *results[2], unsigned int n);
json_t *vbb_json(const VbbConfig *cfg, VbbResult *results[2], unsigned int n);

#endif
