/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packed virtqueues against a model of the driver. */
#include "unit/virtqueue-fixture.h"

#define F_AVAIL (1u << 7)
#define F_USED (1u << 15)

static const VirtQueueFeatures packed = {.packed = true};
static const VirtQueueFeatures packed_event_idx = {.packed = true, .event_idx = true};

/* Where the driver stands: next place to fill, next place to look for a used entry. */
typedef struct Driver {
    Fixture *f;
    unsigned int next, used, free;
    bool next_wrap, used_wrap;
} Driver;

static Driver driver(unsigned int num, const VirtQueueFeatures *features)
{
    Driver d = {.next_wrap = true, .used_wrap = true, .free = num};

    d.f = setup(MAX(num, 4), features);
    if (num != d.f->num) {
        virtqueue_stop(d.f->vq);
        virtqueue_set_size(d.f->vq, num);
        d.f->num = num;
        g_assert_true(virtqueue_start(d.f->vq, features));
    }
    return d;
}

static uint8_t *place(Driver *d, unsigned int i)
{
    return d->f->low + DESC_ADDR + 16 * i;
}

typedef struct Buf {
    uint64_t addr;
    uint32_t len;
    uint16_t flags;
} Buf;

/* A chain of @n descriptors; the flags of its first come last, as the driver must. */
static void add(Driver *d, uint16_t id, const Buf *buf, unsigned int n)
{
    unsigned int first = d->next;
    uint16_t first_flags = 0;

    g_assert_cmpuint(d->free, >=, n);
    for (unsigned int i = 0; i < n; i++) {
        uint8_t *p = place(d, d->next);
        uint16_t flags = buf[i].flags | (i + 1 < n ? NEXT : 0) | (d->next_wrap ? F_AVAIL : F_USED);

        store_le64(p, buf[i].addr);
        store_le32(p + 8, buf[i].len);
        store_le16(p + 12, i + 1 == n ? id : 0xdead);
        if (i) {
            store_le16(p + 14, flags);
        } else {
            first_flags = flags;
        }
        if (++d->next == d->f->num) {
            d->next = 0;
            d->next_wrap = !d->next_wrap;
        }
    }
    store_le16(place(d, first) + 14, first_flags);
    d->free -= n;
}

static bool used_ready(Driver *d)
{
    uint16_t flags = load_le16(place(d, d->used) + 14);

    return !!(flags & F_AVAIL) == d->used_wrap && !!(flags & F_USED) == d->used_wrap;
}

static void take_used(Driver *d, uint16_t id, uint32_t len, unsigned int ring_len)
{
    g_assert_true(used_ready(d));
    g_assert_cmpuint(load_le16(place(d, d->used) + 12), ==, id);
    g_assert_cmpuint(load_le32(place(d, d->used) + 8), ==, len);
    d->used += ring_len;
    d->free += ring_len;
    if (d->used >= d->f->num) {
        d->used -= d->f->num;
        d->used_wrap = !d->used_wrap;
    }
}

static void set_driver_event(Driver *d, unsigned int pos, bool wrap, uint16_t flags)
{
    store_le16(d->f->low + AVAIL_ADDR, (uint16_t)(pos | wrap << 15));
    store_le16(d->f->low + AVAIL_ADDR + 2, flags);
}

static uint16_t device_event(Driver *d)
{
    return load_le16(d->f->low + USED_ADDR);
}

static uint16_t device_event_flags(Driver *d)
{
    return load_le16(d->f->low + USED_ADDR + 2);
}

static const Buf one = {DATA_ADDR, 16, WRITE};

static void test_chain(void)
{
    Driver d = driver(8, &packed);
    Fixture *f = d.f;
    VirtQueueElement *e = f->ptrs[0];
    const Buf bufs[3] = {{DATA_ADDR, 16, 0}, {HIGH_BASE, 512, WRITE}, {DATA_ADDR + 64, 1, WRITE}};

    g_assert_true(virtqueue_empty(f->vq));
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 8), ==, 0);
    add(&d, 77, bufs, 3);
    g_assert_false(virtqueue_empty(f->vq));
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 8), ==, 1);
    g_assert_cmpuint(e->head, ==, 77);
    g_assert_cmpuint(e->out_num, ==, 1);
    g_assert_cmpuint(e->in_num, ==, 2);
    g_assert_cmpuint(e->in_bytes, ==, 513);
    g_assert_true(e->iov[1].iov_base == f->high && e->iov[1].iov_len == 512);
    g_assert_true(virtqueue_empty(f->vq));
    g_assert_false(used_ready(&d));
    push(f, e, 513);
    take_used(&d, 77, 513, 3);
    g_assert_cmpuint(f->interrupts, ==, 1);
    teardown(f);
}

static void test_indirect(void)
{
    Driver d = driver(4, &packed);
    Fixture *f = d.f;
    const Buf buf = {TABLE_ADDR, 160, INDIRECT};
    VirtQueueElement *e = f->ptrs[0];

    for (unsigned int i = 0; i < 10; i++) {
        /* Order is by place; NEXT and the id mean nothing in a table. */
        put_desc(f, TABLE_ADDR, i, DATA_ADDR + 0x100 * i, 8 + i, 0xffff, i >= 4 ? WRITE : NEXT);
    }
    add(&d, 3, &buf, 1);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 1);
    g_assert_cmpuint(e->out_num, ==, 4);
    g_assert_cmpuint(e->in_num, ==, 6);
    for (unsigned int i = 0; i < 10; i++) {
        g_assert_true(e->iov[i].iov_base == f->low + DATA_ADDR + 0x100 * i && e->iov[i].iov_len == 8 + i);
    }
    push(f, e, 5);
    take_used(&d, 3, 5, 1);
    teardown(f);
}

/* Nothing of a batch can be seen before the flush, and then all of it. */
static void test_batch(void)
{
    Driver d = driver(8, &packed);
    Fixture *f = d.f;

    for (uint16_t i = 0; i < 5; i++) {
        add(&d, i, &one, 1);
    }
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 3), ==, 3);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs + 3, 8), ==, 2);
    for (unsigned int i = 0; i < 5; i++) {
        virtqueue_fill(f->vq, f->ptrs[4 - i], i);
        g_assert_false(used_ready(&d));
    }
    virtqueue_flush(f->vq);
    for (unsigned int i = 0; i < 5; i++) {
        take_used(&d, (uint16_t)(4 - i), i, 1);
    }
    g_assert_false(used_ready(&d));
    g_assert_cmpuint(f->interrupts, ==, 1);
    teardown(f);
}

static void test_random(gconstpointer data)
{
    unsigned int num = GPOINTER_TO_UINT(data);
    Driver d = driver(num, &packed_event_idx);
    Fixture *f = d.f;
    GRand *rand = g_rand_new_with_seed(num);
    unsigned int lens[64], bytes[64];

    for (unsigned int round = 0; round < 4000; round++) {
        unsigned int n = 0, popped = 0;

        while (d.free && n < 20 && (!n || g_rand_int_range(rand, 0, 4))) {
            unsigned int len = (unsigned int)g_rand_int_range(rand, 1, (int)MIN(d.free, 5) + 1);
            Buf bufs[5];

            bytes[n] = 0;
            for (unsigned int i = 0; i < len; i++) {
                bufs[i] = (Buf){DATA_ADDR + (uint64_t)g_rand_int_range(rand, 0, 1 << 16),
                                (uint32_t)g_rand_int_range(rand, 1, 3000), WRITE};
                bytes[n] += bufs[i].len;
            }
            add(&d, (uint16_t)n, bufs, len);
            lens[n++] = len;
        }
        while (popped < n) {
            popped += virtqueue_pop_batch(f->vq, f->ptrs + popped, (unsigned int)g_rand_int_range(rand, 1, 8));
        }
        g_assert_cmpuint(popped, ==, n);
        g_assert_true(virtqueue_empty(f->vq));
        while (n) {
            unsigned int k = (unsigned int)g_rand_int_range(rand, 0, (int)n), id = f->ptrs[k]->head;
            VirtQueueElement *e = f->ptrs[k];

            g_assert_cmpuint(e->in_bytes, ==, bytes[id]);
            g_assert_cmpuint(e->in_num, ==, lens[id]);
            push(f, e, round);
            take_used(&d, (uint16_t)id, round, lens[id]);
            f->ptrs[k] = f->ptrs[--n];
            f->ptrs[n] = e;
        }
        if (round % 100 == 0) {
            virtqueue_stop(f->vq);
            g_assert_true(virtqueue_start(f->vq, &packed_event_idx));
        }
    }
    g_assert_cmpuint(f->breaks, ==, 0);
    g_rand_free(rand);
    teardown(f);
}

static void pass(Driver *d, unsigned int n)
{
    Fixture *f = d->f;

    for (unsigned int i = 0; i < n; i++) {
        add(d, (uint16_t)i, &one, 1);
    }
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, n), ==, n);
    for (unsigned int i = 0; i < n; i++) {
        virtqueue_fill(f->vq, f->ptrs[i], i);
    }
    virtqueue_flush(f->vq);
    for (unsigned int i = 0; i < n; i++) {
        take_used(d, (uint16_t)i, i, 1);
    }
}

static void test_interrupt(void)
{
    Driver d = driver(16, &packed_event_idx);

    set_driver_event(&d, 0, true, 1);
    pass(&d, 1);
    g_assert_cmpuint(d.f->interrupts, ==, 0);
    set_driver_event(&d, 0, true, 0);
    pass(&d, 1);
    g_assert_cmpuint(d.f->interrupts, ==, 1);
    /* Entry 5 is what the driver waits for. */
    set_driver_event(&d, 5, true, 2);
    pass(&d, 3);
    g_assert_cmpuint(d.f->interrupts, ==, 1);
    pass(&d, 1);
    g_assert_cmpuint(d.f->interrupts, ==, 2);
    pass(&d, 4);
    g_assert_cmpuint(d.f->interrupts, ==, 2);
    /* A decision across the seam is in the driver's favour, the next ones are exact again. */
    set_driver_event(&d, 6, false, 2);
    pass(&d, 8);
    g_assert_cmpuint(d.f->interrupts, ==, 3);
    pass(&d, 4);
    g_assert_cmpuint(d.f->interrupts, ==, 3);
    pass(&d, 1);
    g_assert_cmpuint(d.f->interrupts, ==, 4);
    teardown(d.f);
}

static void test_notification(void)
{
    Driver d = driver(4, &packed_event_idx), e = {0};

    g_assert_cmpuint(device_event_flags(&d), ==, 2);
    g_assert_cmpuint(device_event(&d), ==, 1u << 15);
    virtqueue_disable_notification(d.f->vq);
    g_assert_cmpuint(device_event_flags(&d), ==, 1);
    pass(&d, 3);
    pass(&d, 2);
    g_assert_false(virtqueue_enable_notification(d.f->vq));
    g_assert_cmpuint(device_event_flags(&d), ==, 2);
    g_assert_cmpuint(device_event(&d), ==, 1); /* second round: the wrap counter is 0 */
    virtqueue_disable_notification(d.f->vq);
    add(&d, 1, &one, 1);
    g_assert_true(virtqueue_enable_notification(d.f->vq));
    teardown(d.f);

    e = driver(4, &packed);
    g_assert_cmpuint(device_event_flags(&e), ==, 0);
    virtqueue_disable_notification(e.f->vq);
    g_assert_cmpuint(device_event_flags(&e), ==, 1);
    virtqueue_enable_notification(e.f->vq);
    g_assert_cmpuint(device_event_flags(&e), ==, 0);
    teardown(e.f);
}

/* --- Malformed rings --- */

static void raw(Driver *d, unsigned int i, uint64_t addr, uint32_t len, uint16_t flags)
{
    put_desc(d->f, DESC_ADDR, i, addr, len, 0, flags);
}

static void expect_broken(Driver *d, const char *text)
{
    g_assert_cmpuint(virtqueue_pop_batch(d->f->vq, d->f->ptrs, 4), ==, 0);
    g_assert_cmpstr(d->f->text, ==, text);
    g_assert_true(virtqueue_empty(d->f->vq));
    teardown(d->f);
}

static void test_broken(void)
{
    Driver d = driver(8, &packed);

    for (unsigned int i = 0; i < 8; i++) {
        raw(&d, i, DATA_ADDR, 16, F_AVAIL | NEXT);
    }
    expect_broken(&d, "Looped descriptor");
    d = driver(8, &packed);
    raw(&d, 0, DATA_ADDR, 0, F_AVAIL);
    expect_broken(&d, "virtio: zero sized buffers are not allowed");
    d = driver(8, &packed);
    raw(&d, 0, DATA_ADDR, 16, F_AVAIL | NEXT | WRITE);
    raw(&d, 1, DATA_ADDR, 16, F_AVAIL);
    expect_broken(&d, "Incorrect order for descriptors");
    d = driver(8, &packed);
    raw(&d, 0, TABLE_ADDR, 24, F_AVAIL | INDIRECT);
    expect_broken(&d, "Invalid size for indirect buffer table");
    d = driver(8, &packed);
    raw(&d, 0, HOLE_ADDR, 32, F_AVAIL | INDIRECT);
    expect_broken(&d, "Cannot map indirect buffer");
}

/* The driver hands over the same places again before it got them back. */
static void test_too_many(void)
{
    Driver d = driver(4, &packed);
    Fixture *f = d.f;

    for (uint16_t i = 0; i < 4; i++) {
        add(&d, i, &one, 1);
    }
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 4);
    raw(&d, 0, DATA_ADDR, 16, F_USED | WRITE);
    f->ptrs += 4;
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 0);
    g_assert_cmpstr(f->text, ==, "Virtqueue size exceeded");
    f->ptrs -= 4;
    teardown(f);
}

static void test_in_order(void)
{
    static const VirtQueueFeatures in_order = {.packed = true, .in_order = true};
    Driver d = driver(7, &in_order);
    Fixture *f = d.f;
    const Buf two[2] = {{DATA_ADDR, 16, 0}, {DATA_ADDR + 64, 1, WRITE}};

    for (unsigned int round = 0; round < 1000; round++) {
        add(&d, 0, two, 2);
        add(&d, 1, &one, 1);
        add(&d, 2, two, 2);
        g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 4), ==, 3);
        push(f, f->ptrs[2], 1);
        push(f, f->ptrs[1], 16);
        g_assert_false(used_ready(&d));
        push(f, f->ptrs[0], 0);
        take_used(&d, 0, 0, 2);
        take_used(&d, 1, 16, 1);
        take_used(&d, 2, 1, 2);
        g_assert_false(used_ready(&d));
    }
    teardown(f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/virtqueue/packed/chain", test_chain);
    g_test_add_func("/virtqueue/packed/indirect", test_indirect);
    g_test_add_func("/virtqueue/packed/batch-becomes-visible-at-once", test_batch);
    g_test_add_data_func("/virtqueue/packed/random/64", GUINT_TO_POINTER(64), test_random);
    g_test_add_data_func("/virtqueue/packed/random/5", GUINT_TO_POINTER(5), test_random);
    g_test_add_data_func("/virtqueue/packed/random/1", GUINT_TO_POINTER(1), test_random);
    g_test_add_func("/virtqueue/packed/interrupt", test_interrupt);
    g_test_add_func("/virtqueue/packed/notification", test_notification);
    g_test_add_func("/virtqueue/packed/broken-by-malformed-chains", test_broken);
    g_test_add_func("/virtqueue/packed/broken-by-more-than-places", test_too_many);
    g_test_add_func("/virtqueue/packed/in-order-hands-back-as-taken", test_in_order);
    return g_test_run();
}
