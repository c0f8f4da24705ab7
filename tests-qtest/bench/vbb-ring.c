/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-bench: the driver's hot path, on rings in memory that the device shares. */
#include "vbb.h"
#include "base/bswap.h"

#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#define IN_FLIGHT 0x80000000U
/* No interrupt is due before the used index has gone half way round. */
#define NEVER_SOON 0x7fff

#if defined(__x86_64__)
#define cpu_relax() __builtin_ia32_pause()
#else
#define cpu_relax() __asm__ volatile("" ::: "memory")
#endif

static uint64_t rng_next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static void *ram(const VbbQueue *q, uint64_t addr)
{
    return q->run->t->ram + addr;
}

/*
 * What driver and device exchange about a slot, as a guest's driver keeps it: header and status share a line of the cache,
 * an indirect table has the next one, and neighbours do not fall into the same set.
 */
#define SMALL_SIZE 128
#define STATUS_OFFSET 16
#define TABLE_OFFSET 64

/* The chain of one slot: header, data, status; in the ring's table or in an indirect one. */
static void init_slot(VbbQueue *q, Vq *vq, unsigned int i, bool indirect, uint64_t small)
{
    VbbSlot *s = &q->slot[i];
    uint64_t data = guest_alloc(q->run->t, q->cfg->max_size);
    uint16_t first = (uint16_t)(indirect ? i : 3 * i), base = indirect ? 0 : first;
    uint8_t *table = indirect ? ram(q, small + TABLE_OFFSET) : ram(q, vq->desc + 16UL * first);

    s->header = ram(q, small);
    s->status = ram(q, small + STATUS_OFFSET);
    s->data = ram(q, data);
    memset(s->header, 0, 16);
    memset(s->data, 0xa5, q->cfg->max_size);
    for (uint16_t k = 0; k < 3; k++) {
        uint8_t *d = table + 16 * k;

        store_le64(d, k == 0 ? small : k == 1 ? data : small + STATUS_OFFSET);
        store_le32(d + 8, k == 0 ? 16 : k == 1 ? q->cfg->max_size : 1);
        store_le16(d + 12, (uint16_t)(k == 0 ? VQ_DESC_NEXT
                                      : k == 1 ? VQ_DESC_NEXT | VQ_DESC_WRITE
                                               : VQ_DESC_WRITE));
        store_le16(d + 14, (uint16_t)(k < 2 ? base + k + 1 : 0));
    }
    s->len_field = table + 16 + 8;
    s->flags_field = table + 16 + 12;
    s->desc = first;
    if (indirect) {
        vq_raw_desc(vq, first, small + TABLE_OFFSET, 48, VQ_DESC_INDIRECT, 0);
    }
    q->slot_of_desc[first] = (uint16_t)i;
    q->free_slot[i] = (uint16_t)i;
}

void vbb_queue_init(VbbQueue *q, VbbRun *run, unsigned int index)
{
    const VbbConfig *cfg = run->cfg;
    Vq *vq = run->b->vq[index];
    bool indirect = cfg->indirect == 1 || (cfg->indirect < 0 && 3 * cfg->depth > vq->size);
    uint64_t small = guest_alloc(run->t, cfg->depth * SMALL_SIZE);

    q->cfg = cfg;
    q->run = run;
    q->index = index;
    if (indirect && !run->b->indirect) {
        qos_die("the device does not offer indirect descriptors, and depth %u needs them", cfg->depth);
    }
    if (cfg->depth * (indirect ? 1 : 3) > vq->size) {
        qos_die("depth %u does not fit a queue of %u descriptors", cfg->depth, vq->size);
    }
    q->mask = vq->size - 1;
    q->avail_flags = ram(q, vq->avail);
    q->avail_idx_p = ram(q, vq->avail + 2);
    q->avail_ring = ram(q, vq->avail + 4);
    q->used_event = ram(q, vq->avail + 4 + 2UL * vq->size);
    q->used_flags = ram(q, vq->used);
    q->used_idx_p = ram(q, vq->used + 2);
    q->used_ring = ram(q, vq->used + 4);
    q->avail_event = ram(q, vq->used + 4 + 8UL * vq->size);
    q->vector = cfg->interrupts ? ram(q, run->b->v->vectors + 4 * (index + 1)) : NULL;
    q->nslots = q->nfree = cfg->depth;
    q->slot = g_new0(VbbSlot, cfg->depth);
    q->free_slot = g_new0(uint16_t, cfg->depth);
    q->slot_of_desc = g_new0(uint16_t, vq->size);
    for (unsigned int i = 0; i < cfg->depth; i++) {
        init_slot(q, vq, i, indirect, small + i * SMALL_SIZE);
    }
    q->sectors = run->b->sectors / cfg->queues;
    q->first_sector = q->sectors * index;
    q->blocks = q->sectors * 512 / cfg->max_size;
    if (q->blocks < cfg->depth) {
        qos_die("the disk is too small for %u queues of depth %u", cfg->queues, cfg->depth);
    }
    q->rng = 0x9e3779b97f4a7c15ULL * (index + 1);
    if (cfg->verify) {
        q->generation = g_new0(uint32_t, q->blocks);
    }
    if (!cfg->interrupts && !run->b->vq[index]->event_idx) {
        *q->avail_flags = VQ_AVAIL_NO_INTERRUPT;
    }
    *q->used_event = cfg->interrupts ? 0 : NEVER_SOON;
}

void vbb_queue_free(VbbQueue *q)
{
    g_free(q->slot);
    g_free(q->free_slot);
    g_free(q->slot_of_desc);
    g_free(q->generation);
}

static uint64_t word_at(uint64_t block, uint32_t generation, uint32_t i)
{
    return (block * 0x9e3779b97f4a7c15ULL) ^ ((uint64_t)generation << 32) ^ i;
}

static void fill_data(VbbSlot *s, uint64_t block, uint32_t generation)
{
    uint64_t *w = (uint64_t *)(void *)s->data;

    for (uint32_t i = 0; i < s->len / 8; i++) {
        w[i] = word_at(block, generation, i);
    }
}

static bool check_data(const VbbSlot *s, uint64_t block, uint32_t generation)
{
    const uint64_t *w = (const uint64_t *)(const void *)s->data;

    for (uint32_t i = 0; i < s->len / 8; i++) {
        if (w[i] != word_at(block, generation, i)) {
            return false;
        }
    }
    return true;
}

static uint32_t pick_size(VbbQueue *q)
{
    const VbbConfig *cfg = q->cfg;
    unsigned int r;

    if (cfg->nsizes == 1) {
        return cfg->size[0];
    }
    r = (unsigned int)(rng_next(&q->rng) >> 33) % 100;
    for (unsigned int i = 0; i + 1 < cfg->nsizes; i++) {
        if (r < cfg->weight[i]) {
            return cfg->size[i];
        }
        r -= cfg->weight[i];
    }
    return cfg->size[cfg->nsizes - 1];
}

static uint64_t pick_block(VbbQueue *q)
{
    const VbbConfig *cfg = q->cfg;
    uint64_t block;

    if (cfg->pattern == VBB_READ || cfg->pattern == VBB_WRITE) {
        block = q->next_seq++ % q->blocks;
    } else {
        /* Scaled, not divided: a division takes longer than all the rest here. */
        block = (uint64_t)((unsigned __int128)rng_next(&q->rng) * q->blocks >> 64);
    }
    if (q->generation) {
        /* Two requests on one block at a time have no defined outcome. */
        while (q->generation[block] & IN_FLIGHT) {
            block = (block + 1) % q->blocks;
        }
        q->generation[block] |= IN_FLIGHT;
    }
    return block;
}

static bool pick_write(VbbQueue *q)
{
    switch (q->cfg->pattern) {
    case VBB_READ:
    case VBB_RANDREAD:
        return false;
    case VBB_WRITE:
    case VBB_RANDWRITE:
        return true;
    default:
        return (rng_next(&q->rng) >> 33) % 100 >= q->cfg->read_percent;
    }
}

/* Make one request available; the index is published by publish(). */
static void put_request(VbbQueue *q, uint64_t start_ns)
{
    uint16_t i = q->free_slot[--q->nfree];
    VbbSlot *s = &q->slot[i];
    uint64_t block = pick_block(q);
    bool write = pick_write(q);
    uint32_t len = pick_size(q);

    s->block = block;
    s->start_ns = start_ns;
    if (len != s->len || write != s->write || !s->len) {
        s->len = len;
        s->write = write;
        store_le32(s->len_field, len);
        store_le16(s->flags_field, VQ_DESC_NEXT | (write ? 0 : VQ_DESC_WRITE));
        store_le32(s->header, write ? BLK_T_OUT : BLK_T_IN);
    }
    store_le64(s->header + 8, q->first_sector + block * (q->cfg->max_size / 512));
    *s->status = BLK_S_NONE;
    if (q->generation && write) {
        uint32_t gen = ((q->generation[block] & ~IN_FLIGHT) + 1) & ~IN_FLIGHT;

        q->generation[block] = (gen ? gen : 1) | IN_FLIGHT;
        fill_data(s, block + q->first_sector, gen ? gen : 1);
    }
    q->avail_ring[q->avail_idx++ & q->mask] = s->desc;
}

/* The doorbell goes through the socket; its replies are read before the next one, so nobody waits for them. */
static void ring_doorbell(VbbQueue *q)
{
    VbbRun *run = q->run;
    const char *line = run->doorbell[q->index];
    char sink[4096];

    pthread_mutex_lock(&run->socket_lock);
    while (recv(run->t->fd, sink, sizeof(sink), MSG_DONTWAIT) > 0) {
    }
    if (send(run->t->fd, line, strlen(line), MSG_NOSIGNAL) < 0) {
        __atomic_store_n(&run->failed, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&run->socket_lock);
    q->doorbells++;
}

static void publish(VbbQueue *q)
{
    uint16_t old = q->kicked, new = q->avail_idx;
    bool wanted;

    __atomic_store_n(q->avail_idx_p, new, __ATOMIC_RELEASE);
    q->kicked = new;
    q->avail_batches++;
    /* Pairs with the device's fence between asking for notifications and its last look at the index. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (q->run->b->vq[q->index]->event_idx) {
        wanted = (uint16_t)(new - *q->avail_event - 1) < (uint16_t)(new - old);
    } else {
        wanted = !(*q->used_flags & VQ_USED_NO_NOTIFY);
    }
    if (wanted) {
        ring_doorbell(q);
    }
}

static void end_request(VbbQueue *q, VbbSlot *s, uint64_t now, bool measuring)
{
    if (*s->status != BLK_S_OK) {
        q->errors++;
    }
    if (q->generation) {
        uint32_t gen = q->generation[s->block] &= ~IN_FLIGHT;

        if (!s->write && gen && !check_data(s, s->block + q->first_sector, gen)) {
            q->bad_data++;
        }
    }
    if (measuring) {
        __atomic_store_n(&q->done, q->done + 1, __ATOMIC_RELAXED); /* the progress display reads it */
        q->bytes += s->len;
        hist_add(&q->hist, now > s->start_ns ? now - s->start_ns : 0);
    }
}

static unsigned int reap_once(VbbQueue *q, bool measuring)
{
    uint16_t used = __atomic_load_n(q->used_idx_p, __ATOMIC_ACQUIRE);
    unsigned int n = 0;
    uint64_t now;

    if (used == q->last_used) {
        return 0;
    }
    now = vbb_now();
    for (; q->last_used != used; q->last_used++, n++) {
        uint32_t id = q->used_ring[2 * (q->last_used & q->mask)];
        uint16_t i = q->slot_of_desc[id & q->mask];

        end_request(q, &q->slot[i], now, measuring);
        q->free_slot[q->nfree++] = i;
    }
    return n;
}

static unsigned int reap(VbbQueue *q, bool measuring)
{
    unsigned int n, total = 0;

    if (!q->cfg->interrupts) {
        total = reap_once(q, measuring);
        if (total) {
            *q->used_event = q->last_used + NEVER_SOON;
        }
        return total;
    }
    if (!*q->vector) {
        return 0;
    }
    *q->vector = 0;
    q->irqs += measuring;
    do {
        n = reap_once(q, measuring);
        total += n;
        *q->used_event = q->last_used;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } while (n);
    return total;
}

/* Drop what the warm-up counted. */
static void start_measuring(VbbQueue *q)
{
    q->done = q->bytes = q->doorbells = q->irqs = q->avail_batches = 0;
    memset(&q->hist, 0, sizeof(q->hist));
}

static unsigned int fill_queue(VbbQueue *q, double interval, double *next)
{
    unsigned int n = 0;
    uint64_t now;

    if (!q->nfree) {
        return 0;
    }
    now = vbb_now();
    if (!*next) {
        *next = (double)now;
    }
    while (q->nfree && (interval == 0 || *next <= (double)now)) {
        /* At a given rate latency counts from when a request was due, so that a stall is not hidden. */
        put_request(q, interval > 0 ? (uint64_t)*next : now);
        *next += interval;
        n++;
        if (interval > 0) {
            break;
        }
    }
    if (n) {
        publish(q);
    }
    return n;
}

/* One round over this thread's queues; returns whether anything moved, adds what is in flight to *@in_flight. */
static bool round_of(VbbThread *th, int phase, double interval, double *next, unsigned int *in_flight)
{
    const VbbConfig *cfg = th->run->cfg;
    bool moved = false;

    for (unsigned int i = th->index; i < cfg->queues; i += cfg->threads) {
        VbbQueue *q = &th->run->queue[i];

        moved |= reap(q, phase == VBB_MEASURE) > 0;
        if (phase != VBB_DRAIN) {
            moved |= fill_queue(q, interval, next) > 0;
        }
        *in_flight += q->nslots - q->nfree;
    }
    return moved;
}

static double thread_cpu(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void *vbb_thread_main(void *opaque)
{
    VbbThread *th = opaque;
    const VbbConfig *cfg = th->run->cfg;
    double interval = cfg->rate > 0 ? 1e9 * cfg->threads / cfg->rate : 0, next = 0, cpu0 = 0;
    int phase = VBB_WARMUP, idle = 0;
    uint64_t drain_since = 0;

    if (cfg->npin_driver) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cfg->pin_driver[th->index % (unsigned int)cfg->npin_driver], &set);
        sched_setaffinity(0, sizeof(set), &set);
    }
    for (;;) {
        int now_phase = __atomic_load_n(&th->run->phase, __ATOMIC_RELAXED);
        unsigned int in_flight = 0;

        if (now_phase != phase) {
            if (now_phase == VBB_MEASURE) {
                cpu0 = thread_cpu();
                for (unsigned int i = th->index; i < cfg->queues; i += cfg->threads) {
                    start_measuring(&th->run->queue[i]);
                }
            } else {
                th->cpu_seconds = thread_cpu() - cpu0;
                drain_since = vbb_now();
            }
            phase = now_phase;
        }
        if (round_of(th, phase, interval, &next, &in_flight)) {
            idle = 0;
        } else if (++idle > 256) {
            /* With fewer CPUs than spinning threads the device must get its turn. */
            sched_yield();
        } else {
            cpu_relax();
        }
        if (phase == VBB_DRAIN) {
            if (!in_flight) {
                return NULL;
            }
            if (vbb_now() - drain_since > 10000000000ULL) {
                __atomic_store_n(&th->run->failed, true, __ATOMIC_RELAXED);
                return NULL;
            }
        }
    }
}
