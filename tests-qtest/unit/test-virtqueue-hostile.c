/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtqueues and drivers that break the rules: malformed rings, and changes while we look. */
#include "unit/virtqueue-fixture.h"

#include <stdatomic.h>

/* --- Malformed rings --- */

typedef struct BadCase {
    const char *name, *text;
    void (*build)(Fixture *f);
} BadCase;

static void bad_next(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, DATA_ADDR, 16, NEXT, 999);
    offer(f, 1);
}

static void bad_head(Fixture *f)
{
    offer(f, 300);
}

static void bad_loop(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, DATA_ADDR, 16, NEXT, 2);
    put_desc(f, DESC_ADDR, 2, DATA_ADDR, 16, NEXT, 1);
    offer(f, 1);
}

static void bad_self_loop(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, DATA_ADDR, 16, NEXT | WRITE, 1);
    offer(f, 1);
}

static void bad_order(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, DATA_ADDR, 16, NEXT | WRITE, 2);
    put_desc(f, DESC_ADDR, 2, DATA_ADDR, 16, 0, 0);
    offer(f, 1);
}

static void bad_zero_length(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, DATA_ADDR, 0, 0, 0);
    offer(f, 1);
}

static void bad_indirect_size(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, TABLE_ADDR, 24, INDIRECT, 0);
    offer(f, 1);
}

static void bad_indirect_empty(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, TABLE_ADDR, 0, INDIRECT, 0);
    offer(f, 1);
}

static void bad_indirect_unmapped(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, HOLE_ADDR, 32, INDIRECT, 0);
    offer(f, 1);
}

static void bad_indirect_past_ram(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, LOW_SIZE - 16, 32, INDIRECT, 0);
    offer(f, 1);
}

static void bad_indirect_next(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, TABLE_ADDR, 32, INDIRECT, 0);
    put_desc(f, TABLE_ADDR, 0, DATA_ADDR, 16, NEXT, 2);
    offer(f, 1);
}

static void bad_indirect_loop(Fixture *f)
{
    put_desc(f, DESC_ADDR, 1, TABLE_ADDR, 32, INDIRECT, 0);
    put_desc(f, TABLE_ADDR, 0, DATA_ADDR, 16, NEXT, 1);
    put_desc(f, TABLE_ADDR, 1, DATA_ADDR, 16, NEXT, 0);
    offer(f, 1);
}

static void bad_indirect_too_long(Fixture *f)
{
    for (unsigned int i = 0; i < 1025; i++) {
        put_desc(f, TABLE_ADDR, i, DATA_ADDR, 16, (i < 1024 ? NEXT : 0) | WRITE, i + 1);
    }
    put_desc(f, DESC_ADDR, 1, TABLE_ADDR, 1025 * 16, INDIRECT, 0);
    offer(f, 1);
}

static void bad_total_length(Fixture *f)
{
    put_desc(f, DESC_ADDR, 0, 0, UINT32_MAX, NEXT | WRITE, 1);
    put_desc(f, DESC_ADDR, 1, 0, UINT32_MAX, WRITE, 0);
    offer(f, 0);
}

static void bad_index_jump(Fixture *f)
{
    f->avail_idx = 200;
    publish(f);
}

static void bad_index_backwards(Fixture *f)
{
    f->avail_idx = UINT16_MAX;
    publish(f);
}

/* Heads may repeat, but no more buffers can be out than the ring has places. */
static void bad_too_many(Fixture *f)
{
    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, 0, 0);
    for (unsigned int i = 0; i < f->num; i++) {
        put_avail_entry(f, 0);
    }
    publish(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, f->num), ==, f->num);
    offer(f, 0);
    f->ptrs += f->num;
}

static const BadCase bad_cases[] = {
    {"next-out-of-range", "Desc next is 999", bad_next},
    {"head-out-of-range", "Guest says index 300 is available", bad_head},
    {"loop", "Looped descriptor", bad_loop},
    {"self-loop", "Looped descriptor", bad_self_loop},
    {"out-after-in", "Incorrect order for descriptors", bad_order},
    {"zero-length", "virtio: zero sized buffers are not allowed", bad_zero_length},
    {"indirect-size", "Invalid size for indirect buffer table", bad_indirect_size},
    {"indirect-empty", "Invalid size for indirect buffer table", bad_indirect_empty},
    {"indirect-unmapped", "Cannot map indirect buffer", bad_indirect_unmapped},
    {"indirect-past-ram", "Cannot map indirect buffer", bad_indirect_past_ram},
    {"indirect-next-out-of-range", "Desc next is 2", bad_indirect_next},
    {"indirect-loop", "Looped descriptor", bad_indirect_loop},
    {"indirect-too-long", "virtio: too many write descriptors in indirect table", bad_indirect_too_long},
    {"total-length", "virtio: bogus descriptor or out of resources", bad_total_length},
    {"index-jump", "Guest moved used index from 0 to 200", bad_index_jump},
    {"index-backwards", "Guest moved used index from 0 to 65535", bad_index_backwards},
    {"more-than-places", "Virtqueue size exceeded", bad_too_many},
};

static void test_bad(gconstpointer data)
{
    const BadCase *c = data;
    Fixture *f = setup(16, &plain);
    VirtQueueElement **ptrs = f->ptrs;

    c->build(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 0);
    g_assert_cmpuint(f->breaks, ==, 1);
    g_assert_cmpstr(f->text, ==, c->text);
    g_assert_true(virtqueue_is_broken(f->vq));
    /* Nothing more happens until the reset; then all is well. */
    g_assert_true(virtqueue_empty(f->vq));
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 0);
    g_assert_false(virtqueue_enable_notification(f->vq));
    g_assert_cmpuint(f->breaks, ==, 1);
    f->ptrs = ptrs;
    virtqueue_reset(f->vq);
    memset(f->low, 0, DATA_ADDR);
    f->avail_idx = 0;
    virtqueue_set_rings(f->vq, DESC_ADDR, AVAIL_ADDR, USED_ADDR);
    g_assert_true(virtqueue_start(f->vq, &plain));
    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, WRITE, 0);
    offer(f, 0);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 1), ==, 1);
    teardown(f);
}

static void test_good_before_bad(void)
{
    Fixture *f = setup(16, &plain);

    put_desc(f, DESC_ADDR, 0, DATA_ADDR, 16, WRITE, 0);
    put_desc(f, DESC_ADDR, 1, DATA_ADDR, 0, WRITE, 0);
    put_avail_entry(f, 0);
    put_avail_entry(f, 0);
    put_avail_entry(f, 1);
    put_avail_entry(f, 0);
    publish(f);
    g_assert_cmpuint(virtqueue_pop_batch(f->vq, f->ptrs, 16), ==, 2);
    g_assert_cmpuint(f->breaks, ==, 1);
    teardown(f);
}

static void test_bad_rings(void)
{
    static const uint64_t areas[][3] = {
        {HOLE_ADDR, AVAIL_ADDR, USED_ADDR},
        {DESC_ADDR, HOLE_ADDR, USED_ADDR},
        {DESC_ADDR, AVAIL_ADDR, HOLE_ADDR},
        {LOW_SIZE - 16, AVAIL_ADDR, USED_ADDR},
        {DESC_ADDR, LOW_SIZE - 4, USED_ADDR},
        {DESC_ADDR, AVAIL_ADDR, UINT64_MAX - 3},
    };
    static const char *const texts[] = {"Cannot map desc", "Cannot map avail", "Cannot map used",
                                        "Cannot map desc", "Cannot map avail", "Cannot map used"};

    for (unsigned int i = 0; i < G_N_ELEMENTS(areas); i++) {
        Fixture *f = setup(16, &plain);

        virtqueue_reset(f->vq);
        virtqueue_set_rings(f->vq, areas[i][0], areas[i][1], areas[i][2]);
        g_assert_false(virtqueue_start(f->vq, &plain));
        g_assert_cmpstr(f->text, ==, texts[i]);
        teardown(f);
    }
}

/* --- A driver that changes everything while we look --- */

static atomic_bool race_over;

static __attribute__((no_sanitize("thread"))) gpointer scribble(gpointer data)
{
    Fixture *f = data;
    GRand *rand = g_rand_new_with_seed(1);

    while (!atomic_load(&race_over)) {
        volatile uint8_t *p = f->low + DESC_ADDR;
        unsigned int i = (unsigned int)g_rand_int_range(rand, 0, 16);

        switch (g_rand_int_range(rand, 0, 5)) {
        case 0:
            *(volatile uint64_t *)(volatile void *)(p + 16 * i) = g_rand_boolean(rand) ? DATA_ADDR : g_rand_int(rand);
            break;
        case 1:
            *(volatile uint32_t *)(volatile void *)(p + 16 * i + 8) = (uint32_t)g_rand_int_range(rand, 0, 64);
            break;
        case 2:
            *(volatile uint32_t *)(volatile void *)(p + 16 * i + 12) =
                (uint32_t)g_rand_int_range(rand, 0, 4) | (uint32_t)g_rand_int_range(rand, 0, 20) << 16;
            break;
        case 3:
            *(volatile uint16_t *)(volatile void *)(f->low + AVAIL_ADDR + 4 + 2 * i) =
                (uint16_t)g_rand_int_range(rand, 0, 17);
            break;
        default:
            *(volatile uint16_t *)(volatile void *)(f->low + AVAIL_ADDR + 2) += 1;
        }
    }
    g_rand_free(rand);
    return NULL;
}

static bool inside(const uint8_t *p, size_t len, const uint8_t *base, size_t size)
{
    return p >= base && len <= size && p <= base + size - len;
}

static void test_race(void)
{
    Fixture *f = setup(16, &plain);
    GThread *thread;
    unsigned int rounds = 0, popped = 0;

    atomic_store(&race_over, false);
    thread = g_thread_new("scribble", scribble, f);
    while (rounds < 20000 || popped < 2000) {
        unsigned int n = virtqueue_pop_batch(f->vq, f->ptrs, 16);

        for (unsigned int i = 0; i < n; i++) {
            VirtQueueElement *e = f->ptrs[i];

            g_assert_cmpuint(e->out_num + e->in_num, <=, VIRTQUEUE_MAX_SIZE);
            for (unsigned int k = 0; k < e->out_num + e->in_num; k++) {
                /* RAM or a stand-in of at most a page; the latter is read through, which ASan watches. */
                if (!inside(e->iov[k].iov_base, e->iov[k].iov_len, f->low, LOW_SIZE) &&
                    !inside(e->iov[k].iov_base, e->iov[k].iov_len, f->high, HIGH_SIZE)) {
                    g_assert_cmpuint(e->iov[k].iov_len, <=, VIRTQUEUE_MAX_UNMAPPED);
                }
            }
            push(f, e, 1);
            popped++;
        }
        if (virtqueue_is_broken(f->vq)) {
            virtqueue_reset(f->vq);
            virtqueue_set_rings(f->vq, DESC_ADDR, AVAIL_ADDR, USED_ADDR);
            store_le16(f->low + AVAIL_ADDR + 2, 0);
            g_assert_true(virtqueue_start(f->vq, &plain));
        }
        rounds++;
    }
    atomic_store(&race_over, true);
    g_thread_join(thread);
    teardown(f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/virtqueue/pop/good-ones-before-a-bad-one", test_good_before_bad);
    for (unsigned int i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autofree char *path = g_strdup_printf("/virtqueue/broken-by/%s", bad_cases[i].name);

        g_test_add_data_func(path, &bad_cases[i], test_bad);
    }
    g_test_add_func("/virtqueue/broken-by/rings-outside-ram", test_bad_rings);
    g_test_add_func("/virtqueue/race/driver-scribbles-over-the-ring", test_race);
    return g_test_run();
}
