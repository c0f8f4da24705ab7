/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtqueues against a model of the driver: chains, interrupts, notifications. */
#include "unit/virtqueue-fixture.h"

static const VirtQueueFeatures with_event_idx = {.event_idx = true};

/* --- Taking buffers --- */

static void test_chain(void)
{
    Fixture *f = setup(8, &plain);
    VirtQueueElement *e = f->ptrs[0];

    g_assert_true(virtqueue_empty(f->vq));
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 8), ==, 0);
    put_desc(f, DESC_ADDR, 5, DATA_ADDR, 16, NEXT, 2);
    put_desc(f, DESC_ADDR, 2, HIGH_BASE + 0x100, 512, NEXT | WRITE, 7);
    put_desc(f, DESC_ADDR, 7, DATA_ADDR + 0x1000, 1, WRITE, 0);
    offer(f, 5);
    g_assert_false(virtqueue_empty(f->vq));
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 8), ==, 1);
    g_assert_true(virtqueue_empty(f->vq));
    g_assert_cmpuint(e->out_num, ==, 1);
    g_assert_cmpuint(e->in_num, ==, 2);
    g_assert_cmpuint(e->out_bytes, ==, 16);
    g_assert_cmpuint(e->in_bytes, ==, 513);
    g_assert_true(e->iov[0].iov_base == f->low + DATA_ADDR && e->iov[0].iov_len == 16);
    g_assert_true(e->iov[1].iov_base == f->high + 0x100 && e->iov[1].iov_len == 512);
    g_assert_true(e->iov[2].iov_base == f->low + DATA_ADDR + 0x1000 && e->iov[2].iov_len == 1);
    g_assert_cmpuint(virtqueue_in_use(f->vq), ==, 1);
    push(f, e, 513);
    g_assert_cmpuint(used_idx(f), ==, 1);
    check_used(f, 0, 5, 513);
    g_assert_cmpuint(virtqueue_in_use(f->vq), ==, 0);
    g_assert_cmpuint(f->interrupts, ==, 1);
    teardown(f);
}

static void test_indirect(void)
{
    Fixture *f = setup(4, &plain);
    VirtQueueElement *e = f->ptrs[0];

    for (unsigned int i = 0; i < 10; i++) {
        put_desc(f, TABLE_ADDR, i, DATA_ADDR + 0x100 * i, 8 + i, (i < 9 ? NEXT : 0) | (i >= 4 ? WRITE : 0), i + 1);
    }
    /* Only the head says indirect; its WRITE flag and next mean nothing. */
    put_desc(f, DESC_ADDR, 3, TABLE_ADDR, 160, INDIRECT | WRITE, 999);
    offer(f, 3);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 1);
    g_assert_cmpuint(e->out_num, ==, 4);
    g_assert_cmpuint(e->in_num, ==, 6);
    for (unsigned int i = 0; i < 10; i++) {
        g_assert_true(e->iov[i].iov_base == f->low + DATA_ADDR + 0x100 * i && e->iov[i].iov_len == 8 + i);
    }
    push(f, e, 1);
    check_used(f, 0, 3, 1);
    teardown(f);
}

static void test_long_chain(void)
{
    Fixture *f = setup(1024, &plain);

    for (unsigned int i = 0; i < 1024; i++) {
        put_desc(f, DESC_ADDR, i, DATA_ADDR + 0x10 * i, 16, (i < 1023 ? NEXT : 0) | (i ? WRITE : 0), i + 1);
    }
    /* Both take all descriptors: their vectors must not be the same memory. */
    put_avail_entry(f, 0);
    put_avail_entry(f, 0);
    publish(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 2), ==, 2);
    g_assert_true(f->ptrs[0]->iov != f->ptrs[1]->iov);
    for (unsigned int k = 0; k < 2; k++) {
        VirtQueueElement *e = f->ptrs[k];

        g_assert_cmpuint(e->out_num, ==, 1);
        g_assert_cmpuint(e->in_num, ==, 1023);
        for (unsigned int i = 0; i < 1024; i++) {
            g_assert_true(e->iov[i].iov_base == f->low + DATA_ADDR + 0x10 * i && e->iov[i].iov_len == 16);
        }
    }
    g_assert_cmpuint(f->breaks, ==, 0);
    teardown(f);
}

static void test_unmapped(void)
{
    Fixture *f = setup(4, &plain);
    VirtQueueElement *e = f->ptrs[0];
    uint8_t zeroes[64] = {0};

    /* The end of RAM splits the first; the others have none at all. */
    put_desc(f, DESC_ADDR, 0, LOW_SIZE - 64, 128, NEXT, 1);
    put_desc(f, DESC_ADDR, 1, HOLE_ADDR, 1024, NEXT | WRITE, 2);
    put_desc(f, DESC_ADDR, 2, UINT64_MAX - 15, 16, WRITE, 0);
    offer(f, 0);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 1);
    g_assert_cmpuint(e->out_num, ==, 2);
    g_assert_cmpuint(e->in_num, ==, 2);
    g_assert_true(e->iov[0].iov_base == f->low + LOW_SIZE - 64 && e->iov[0].iov_len == 64);
    g_assert_cmpuint(e->iov[1].iov_len, ==, 64);
    g_assert_cmpmem(e->iov[1].iov_base, 64, zeroes, 64);
    g_assert_cmpuint(e->iov[2].iov_len, ==, 1024);
    memset(e->iov[2].iov_base, 0xaa, 1024);
    memset(e->iov[3].iov_base, 0xbb, 16);
    g_assert_cmpuint(f->breaks, ==, 0);
    push(f, e, 1040);

    /* More than a page of nothing is too much. */
    put_desc(f, DESC_ADDR, 3, HOLE_ADDR, VIRTQUEUE_MAX_UNMAPPED + 1, WRITE, 0);
    offer(f, 3);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 0);
    g_assert_cmpstr(f->text, ==, "virtio: bogus descriptor or out of resources");
    teardown(f);
}

static void test_size_not_a_power_of_two(void)
{
    Fixture *f = setup(8, &plain);
    unsigned int n = 0;

    virtqueue_stop(f->vq);
    virtqueue_set_size(f->vq, 5);
    f->num = 5;
    g_assert_true(virtqueue_start(f->vq, &plain));
    for (unsigned int i = 0; i < 5; i++) {
        put_desc(f, DESC_ADDR, i, DATA_ADDR, 16 + i, WRITE, 0);
    }
    for (unsigned int i = 0; i < 23; i++) {
        offer(f, i % 5);
        g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 1);
        g_assert_cmpuint(f->ptrs[0]->in_bytes, ==, 16 + i % 5);
        push(f, f->ptrs[0], i);
        check_used(f, n++, i % 5, i);
    }
    teardown(f);
}

/* --- Interrupts --- */

/* Pass @n buffers through the ring in one batch. */
static void pass(Fixture *f, unsigned int n)
{
    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, WRITE, 0);
    for (unsigned int i = 0; i < n; i++) {
        put_avail_entry(f, 0);
    }
    publish(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, n), ==, n);
    for (unsigned int i = 0; i < n; i++) {
        virtqueue_fill(f->vq, f->ptrs[i], 1);
    }
    virtqueue_flush(f->vq);
}

static void test_one_interrupt_a_batch(void)
{
    Fixture *f = setup(16, &plain);
    uint16_t before;

    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, WRITE, 0);
    for (unsigned int i = 0; i < 8; i++) {
        put_avail_entry(f, 0);
    }
    publish(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 8), ==, 8);
    before = used_idx(f);
    for (unsigned int i = 0; i < 8; i++) {
        virtqueue_fill(f->vq, f->ptrs[i], 1);
    }
    g_assert_cmpuint(used_idx(f), ==, before);
    g_assert_cmpuint(virtqueue_unflushed(f->vq), ==, 8);
    g_assert_cmpuint(f->interrupts, ==, 0);
    virtqueue_flush(f->vq);
    virtqueue_flush(f->vq);
    g_assert_cmpuint(used_idx(f), ==, (uint16_t)(before + 8));
    g_assert_cmpuint(f->interrupts, ==, 1);
    teardown(f);
}

static void test_no_interrupt_flag(void)
{
    Fixture *f = setup(16, &plain);

    store_le16(f->low + AVAIL_ADDR, 1);
    pass(f, 3);
    g_assert_cmpuint(f->interrupts, ==, 0);
    store_le16(f->low + AVAIL_ADDR, 0);
    pass(f, 3);
    g_assert_cmpuint(f->interrupts, ==, 1);
    teardown(f);
}

static void test_notify_on_empty(void)
{
    static const VirtQueueFeatures features = {.notify_on_empty = true};
    Fixture *f = setup(16, &features);

    store_le16(f->low + AVAIL_ADDR, 1);
    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, WRITE, 0);
    put_avail_entry(f, 0);
    put_avail_entry(f, 0);
    publish(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 2), ==, 2);
    push(f, f->ptrs[0], 1);
    g_assert_cmpuint(f->interrupts, ==, 0);
    push(f, f->ptrs[1], 1);
    g_assert_cmpuint(f->interrupts, ==, 1);
    teardown(f);
}

static void test_used_event(void)
{
    Fixture *f = setup(16, &with_event_idx);

    /* The first decision after a start has nothing to compare with. */
    pass(f, 1);
    g_assert_cmpuint(f->interrupts, ==, 1);
    set_used_event(f, 5);
    pass(f, 4); /* 1..5: index 5 itself is not yet written */
    g_assert_cmpuint(f->interrupts, ==, 1);
    pass(f, 1);
    g_assert_cmpuint(f->interrupts, ==, 2);
    pass(f, 16);
    g_assert_cmpuint(f->interrupts, ==, 2);
    teardown(f);
}

/* Over three wraps of the index: an interrupt exactly when the threshold is crossed. */
static void test_used_event_wrap(void)
{
    Fixture *f = setup(16, &with_event_idx);
    GRand *rand = g_rand_new_with_seed(7);
    uint64_t total = 0;

    pass(f, 1);
    total = 1;
    while (total < 3 * 65536) {
        unsigned int n = (unsigned int)g_rand_int_range(rand, 1, 17), before = f->interrupts;
        uint64_t event = total + (uint64_t)g_rand_int_range(rand, -20, 40);
        bool crossed = event >= total && event < total + n;

        set_used_event(f, (uint16_t)event);
        pass(f, n);
        total += n;
        g_assert_cmpuint(f->interrupts - before, ==, crossed);
    }
    g_rand_free(rand);
    teardown(f);
}

/* --- Notifications --- */

static void test_notification_flag(void)
{
    Fixture *f = setup(16, &plain);

    g_assert_cmpuint(load_le16(f->low + USED_ADDR), ==, 0);
    virtqueue_disable_notification(f->vq);
    g_assert_false(virtqueue_notification(f->vq));
    g_assert_cmpuint(load_le16(f->low + USED_ADDR), ==, 1);
    g_assert_false(virtqueue_enable_notification(f->vq));
    g_assert_cmpuint(load_le16(f->low + USED_ADDR), ==, 0);
    virtqueue_disable_notification(f->vq);
    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, WRITE, 0);
    offer(f, 0);
    g_assert_true(virtqueue_enable_notification(f->vq));
    teardown(f);
}

static void test_notification_event(void)
{
    Fixture *f = setup(16, &with_event_idx);

    g_assert_cmpuint(avail_event(f), ==, 0);
    virtqueue_disable_notification(f->vq);
    pass(f, 5);
    /* Nobody is asked to notify: the threshold has been passed. */
    g_assert_cmpuint(avail_event(f), ==, 0);
    g_assert_false(virtqueue_enable_notification(f->vq));
    g_assert_cmpuint(avail_event(f), ==, 5);
    virtqueue_disable_notification(f->vq);
    offer(f, 0);
    g_assert_true(virtqueue_enable_notification(f->vq));
    g_assert_cmpuint(load_le16(f->low + USED_ADDR), ==, 0);
    teardown(f);
}

static void test_stop_and_go_on(void)
{
    Fixture *f = setup(16, &plain);

    pass(f, 7);
    put_desc(f, DESC_ADDR, 3, DATA_ADDR, 33, WRITE, 0);
    offer(f, 3);
    virtqueue_stop(f->vq);
    g_assert_true(virtqueue_empty(f->vq));
    g_assert_true(virtqueue_start(f->vq, &plain));
    g_assert_false(virtqueue_empty(f->vq));
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 16), ==, 1);
    g_assert_cmpuint(f->ptrs[0]->in_bytes, ==, 33);
    push(f, f->ptrs[0], 33);
    check_used(f, 7, 3, 33);
    teardown(f);
}

static void test_legacy_layout(void)
{
    uint64_t avail, used;

    virtqueue_legacy_layout(0x5000, 256, 4096, &avail, &used);
    g_assert_cmpuint(avail, ==, 0x6000);
    g_assert_cmpuint(used, ==, 0x7000);
    virtqueue_legacy_layout(0x5000, 8, 4096, &avail, &used);
    g_assert_cmpuint(avail, ==, 0x5080);
    g_assert_cmpuint(used, ==, 0x6000);
}

/* --- Random chains against what the generator remembers --- */

typedef struct Segment {
    uint64_t addr;
    uint32_t len;
    bool in;
} Segment;

static uint64_t random_place(GRand *rand, uint32_t len)
{
    return g_rand_boolean(rand) ? DATA_ADDR + (uint64_t)g_rand_int_range(rand, 0, (int)(LOW_SIZE - DATA_ADDR - len))
                                : HIGH_BASE + (uint64_t)g_rand_int_range(rand, 0, (int)(HIGH_SIZE - len));
}

/* Writes a chain of 1..12 segments that starts at @head and uses descriptors from a shuffled list. */
static unsigned int random_chain(Fixture *f, GRand *rand, const uint16_t *free_list, unsigned int avail, Segment *seg,
                                 unsigned int *taken)
{
    bool indirect = g_rand_boolean(rand);
    unsigned int n = (unsigned int)g_rand_int_range(rand, 1, 13);
    unsigned int outs = (unsigned int)g_rand_int_range(rand, 0, (int)n + 1);
    uint64_t table = TABLE_ADDR + 0x100 * free_list[0];

    n = indirect ? n : MIN(n, avail);
    for (unsigned int i = 0; i < n; i++) {
        uint16_t flags = (i + 1 < n ? NEXT : 0) | (i >= outs ? WRITE : 0);

        seg[i].len = (uint32_t)g_rand_int_range(rand, 1, 2000);
        seg[i].addr = random_place(rand, seg[i].len);
        seg[i].in = i >= outs;
        if (indirect) {
            put_desc(f, table, i, seg[i].addr, seg[i].len, flags, i + 1);
        } else {
            put_desc(f, DESC_ADDR, free_list[i], seg[i].addr, seg[i].len, flags, i + 1 < n ? free_list[i + 1] : 0);
        }
    }
    if (indirect) {
        put_desc(f, DESC_ADDR, free_list[0], table, 16 * n, INDIRECT, 0);
    }
    *taken = indirect ? 1 : n;
    return n;
}

static void check_segments(Fixture *f, const VirtQueueElement *e, const Segment *seg, unsigned int n)
{
    g_assert_cmpuint(e->out_num + e->in_num, ==, n);
    for (unsigned int i = 0; i < n; i++) {
        uint8_t *host = seg[i].addr < LOW_SIZE ? f->low + seg[i].addr : f->high + (seg[i].addr - HIGH_BASE);

        g_assert_true(e->iov[i].iov_base == host);
        g_assert_cmpuint(e->iov[i].iov_len, ==, seg[i].len);
        g_assert_cmpint(i >= e->out_num, ==, seg[i].in);
    }
}

static void test_random(gconstpointer data)
{
    const VirtQueueFeatures *features = data;
    Fixture *f = setup(64, features);
    GRand *rand = g_rand_new_with_seed(42);
    uint16_t used = 0;

    for (unsigned int round = 0; round < 3000; round++) {
        uint16_t free_list[64] = {0}, heads[64];
        Segment segs[64][12];
        unsigned int lens[64], chains = 0, from = 0, popped, taken;

        for (unsigned int i = 0; i < 64; i++) {
            unsigned int k = (unsigned int)g_rand_int_range(rand, 0, (int)i + 1);

            free_list[i] = free_list[k];
            free_list[k] = (uint16_t)i;
        }
        for (int want = g_rand_int_range(rand, 1, 65); want && from < 64; want--) {
            heads[chains] = free_list[from];
            lens[chains] = random_chain(f, rand, free_list + from, 64 - from, segs[chains], &taken);
            put_avail_entry(f, heads[chains]);
            from += taken;
            chains++;
        }
        publish(f);
        for (popped = 0; popped < chains;) {
            unsigned int n =
                virtqueue_pop_batch(f->vq, f->ptrs + popped, (unsigned int)g_rand_int_range(rand, 1, 65 - (int)popped));

            g_assert_cmpuint(n, >, 0);
            for (unsigned int i = popped; i < popped + n; i++) {
                check_segments(f, f->ptrs[i], segs[i], lens[i]);
            }
            popped += n;
        }
        g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs + 64, 1), ==, 0);
        /* Give them back in any order. */
        while (popped) {
            unsigned int k = (unsigned int)g_rand_int_range(rand, 0, (int)popped);
            VirtQueueElement *e = f->ptrs[k];

            virtqueue_fill(f->vq, e, round + k);
            check_used(f, used++, e->head, round + k);
            popped--;
            f->ptrs[k] = f->ptrs[popped];
            f->ptrs[popped] = e;
        }
        virtqueue_flush(f->vq);
        g_assert_cmpuint(used_idx(f), ==, used);
    }
    g_assert_cmpuint(f->breaks, ==, 0);
    g_rand_free(rand);
    teardown(f);
}

/* Buffers end out of order and are handed back in order; a stop of the queue in between loses nothing. */
static void test_in_order(void)
{
    static const VirtQueueFeatures in_order = {.in_order = true};
    Fixture *f = setup(4, &in_order);

    for (unsigned int round = 0; round < 20000; round++) {
        uint16_t from = used_idx(f);

        for (unsigned int i = 0; i < 4; i++) {
            put_desc(f, DESC_ADDR, i, DATA_ADDR, 16, WRITE, 0);
            put_avail_entry(f, (uint16_t)(3 - i));
        }
        publish(f);
        g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 4);
        push(f, f->ptrs[1], 101);
        push(f, f->ptrs[3], 103);
        g_assert_cmpuint(used_idx(f), ==, from);
        if (round % 7 == 0) {
            virtqueue_stop(f->vq);
            g_assert_true(virtqueue_start(f->vq, &in_order));
        }
        push(f, f->ptrs[0], 100);
        g_assert_cmpuint(used_idx(f), ==, (uint16_t)(from + 2));
        push(f, f->ptrs[2], 102);
        g_assert_cmpuint(used_idx(f), ==, (uint16_t)(from + 4));
        for (uint16_t i = 0; i < 4; i++) {
            check_used(f, (uint16_t)(from + i), 3 - i, 100 + i);
        }
    }
    g_assert_cmpuint(virtqueue_in_use(f->vq), ==, 0);
    /* A reset forgets who was taken. */
    offer(f, 0);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 1);
    virtqueue_reset(f->vq);
    virtqueue_set_rings(f->vq, DESC_ADDR, AVAIL_ADDR, USED_ADDR);
    f->avail_idx = 0;
    store_le16(f->low + USED_ADDR + 2, 0);
    g_assert_true(virtqueue_start(f->vq, &in_order));
    offer(f, 2);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 1);
    push(f, f->ptrs[0], 5);
    check_used(f, 0, 2, 5);
    g_assert_cmpuint(used_idx(f), ==, 1);
    teardown(f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/virtqueue/pop/chain", test_chain);
    g_test_add_func("/virtqueue/pop/indirect", test_indirect);
    g_test_add_func("/virtqueue/pop/longest-chain-twice", test_long_chain);
    g_test_add_func("/virtqueue/pop/no-ram-reads-zero-and-swallows", test_unmapped);
    g_test_add_func("/virtqueue/pop/size-not-a-power-of-two", test_size_not_a_power_of_two);
    g_test_add_func("/virtqueue/interrupt/one-a-batch", test_one_interrupt_a_batch);
    g_test_add_func("/virtqueue/interrupt/flag-suppresses", test_no_interrupt_flag);
    g_test_add_func("/virtqueue/interrupt/notify-on-empty", test_notify_on_empty);
    g_test_add_func("/virtqueue/interrupt/used-event-is-honoured", test_used_event);
    g_test_add_func("/virtqueue/interrupt/used-event-over-index-wraps", test_used_event_wrap);
    g_test_add_func("/virtqueue/notification/flag", test_notification_flag);
    g_test_add_func("/virtqueue/notification/event-index", test_notification_event);
    g_test_add_func("/virtqueue/stop-and-go-on", test_stop_and_go_on);
    g_test_add_func("/virtqueue/legacy-layout", test_legacy_layout);
    g_test_add_data_func("/virtqueue/random/plain", &plain, test_random);
    g_test_add_data_func("/virtqueue/random/event-index", &with_event_idx, test_random);
    g_test_add_func("/virtqueue/split/in-order-hands-back-as-taken", test_in_order);
    return g_test_run();
}
