/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guest memory: bounds of RAM, splitting and clipping of accesses, what is not there. */
#include "guest/memory.h"

#include "base/bswap.h"

#include <string.h>

#define LOW 0x2000
#define HIGH_BASE 0x100000000ULL
#define HIGH 0x1000

static uint8_t *low, *high;

static void ram_setup(void)
{
    /* Exact heap blocks, so that a sanitizer sees one byte too many. */
    low = g_malloc0(LOW);
    high = g_malloc0(HIGH);
    const GuestRamRange ranges[] = {{0, LOW, low}, {HIGH_BASE, HIGH, high}};
    guest_ram_set(ranges, 2);
}

static void ram_teardown(void)
{
    guest_ram_set(NULL, 0);
    g_free(low);
    g_free(high);
}

static void test_pointer(void)
{
    uint64_t n;

    ram_setup();
    g_assert(guest_ram_ptr(0, 1, &n) == low && n == 1);
    g_assert(guest_ram_ptr(LOW - 4, 16, &n) == low + LOW - 4 && n == 4);
    g_assert(guest_ram_ptr(HIGH_BASE, UINT64_MAX, &n) == high && n == HIGH);
    g_assert(!guest_ram_ptr(LOW, 16, &n) && n == 16);
    g_assert(!guest_ram_ptr(HIGH_BASE - 8, 16, &n) && n == 8);
    g_assert(!guest_ram_ptr(UINT64_MAX, 16, &n) && n == 1);
    g_assert(!guest_ram_ptr(HIGH_BASE + HIGH, UINT64_MAX, &n) && n == 0 - (HIGH_BASE + HIGH));
    g_assert(guest_ram_whole(LOW - 16, 16) == low + LOW - 16);
    g_assert(!guest_ram_whole(LOW - 15, 16));
    ram_teardown();
}

static void test_copies(void)
{
    uint8_t buf[64], expect[64] = {0};

    ram_setup();
    memset(buf, 0xab, sizeof(buf));
    g_assert(!guest_ram_write(LOW - 8, buf, sizeof(buf)));
    memset(expect, 0xab, 8);
    g_assert(!guest_ram_read(LOW - 8, buf, sizeof(buf)));
    g_assert(!memcmp(buf, expect, sizeof(buf)));
    g_assert(guest_ram_write(HIGH_BASE + HIGH - 64, expect, 64));
    g_assert(!guest_ram_fill(0, 0x11, UINT64_MAX));
    g_assert(low[0] == 0x11 && low[LOW - 1] == 0x11 && high[HIGH - 1] == 0x11);
    /* The address space wraps: the end of it, then its beginning. */
    memset(buf, 0x77, sizeof(buf));
    g_assert(!guest_ram_write(UINT64_MAX - 7, buf, 16));
    g_assert(low[7] == 0x77 && low[8] == 0x11);
    g_assert(guest_ram_read(0, buf, 0));
    ram_teardown();
}

/* --- Regions --- */

typedef struct Access {
    uint64_t offset, value;
    unsigned int size;
    bool write;
} Access;

typedef struct Recorder {
    GuestRegion region;
    GuestRegionOps ops;
    GArray *log;
} Recorder;

static uint64_t record_read(void *opaque, uint64_t offset, unsigned int size)
{
    Recorder *r = opaque;
    Access a = {offset, 0, size, false};

    g_assert_cmpuint(offset + size, <=, r->region.size);
    g_assert(r->ops.sizes & size);
    g_array_append_val(r->log, a);
    return 0x8877665544332211ULL + offset;
}

static void record_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    Recorder *r = opaque;
    Access a = {offset, value, size, true};

    g_assert_cmpuint(offset + size, <=, r->region.size);
    g_assert(r->ops.sizes & size);
    g_array_append_val(r->log, a);
}

static void recorder_add(Recorder *r, GuestSpace space, uint64_t base, uint64_t size, unsigned int sizes, int priority)
{
    *r = (Recorder){.ops = {record_read, record_write, sizes}, .log = g_array_new(FALSE, FALSE, sizeof(Access))};
    r->region = (GuestRegion){.name = "recorder", .ops = &r->ops, .opaque = r, .space = space, .base = base,
                              .size = size, .priority = priority};
    guest_region_add(&r->region);
}

static void recorder_remove(Recorder *r)
{
    guest_region_remove(&r->region);
    guest_region_remove(&r->region);
    g_array_free(r->log, TRUE);
}

static void assert_access(Recorder *r, unsigned int i, uint64_t offset, unsigned int size)
{
    g_assert_cmpuint(i, <, r->log->len);
    Access *a = &g_array_index(r->log, Access, i);
    g_assert_cmpuint(a->offset, ==, offset);
    g_assert_cmpuint(a->size, ==, size);
}

static void test_split(void)
{
    Recorder r;

    recorder_add(&r, GUEST_SPACE_MEM, 0xf0000000, 0x100, 1 | 2 | 4, 0);
    guest_mem_read(0xf0000000, 8);
    assert_access(&r, 0, 0, 4);
    assert_access(&r, 1, 4, 4);
    guest_mem_write(0xf0000003, 0x0102030405060708, 8);
    assert_access(&r, 2, 3, 1);
    assert_access(&r, 3, 4, 4);
    assert_access(&r, 4, 8, 2);
    assert_access(&r, 5, 10, 1);
    g_assert_cmphex(g_array_index(r.log, Access, 2).value, ==, 0x08);
    g_assert_cmphex(g_array_index(r.log, Access, 3).value, ==, 0x04050607);
    recorder_remove(&r);
}

static void test_clip(void)
{
    Recorder r;

    /* An odd size, so that the last access is narrower than what is asked for. */
    recorder_add(&r, GUEST_SPACE_MEM, 0xf0000000, 0x7, 1 | 2 | 4 | 8, 0);
    g_assert_cmphex(guest_mem_read(0xf0000006, 4), ==, 0x17);
    g_assert_cmphex(guest_mem_read(0xeffffffe, 4), ==, 0x22110000 & 0xffff0000);
    guest_mem_write(0xf0000000, 0, 8);
    assert_access(&r, 2, 0, 4);
    assert_access(&r, 3, 4, 2);
    assert_access(&r, 4, 6, 1);
    recorder_remove(&r);
}

static void test_narrow(void)
{
    Recorder r;

    recorder_add(&r, GUEST_SPACE_MEM, 0xf0000000, 0x10, 4, 0);
    g_assert_cmphex(guest_mem_read(0xf0000000, 1), ==, 0);
    g_assert_cmphex(guest_mem_read(0xf0000002, 2), ==, 0);
    guest_mem_write(0xf0000001, 0xff, 1);
    g_assert_cmpuint(r.log->len, ==, 0);
    /* Bytes 2 and 3 are too narrow, 4..7 are not. */
    g_assert_cmphex(guest_mem_read(0xf0000002, 8), ==, 0x443322150000);
    recorder_remove(&r);
}

static void test_priority(void)
{
    Recorder a, b;

    recorder_add(&a, GUEST_SPACE_IO, 0x100, 8, 1 | 2 | 4, 0);
    recorder_add(&b, GUEST_SPACE_IO, 0x101, 1, 1, 1);
    guest_io_read(0x101, 1);
    g_assert_cmpuint(b.log->len, ==, 1);
    /* A wide access that starts in the lower region stays whole. */
    guest_io_write(0x100, 0x12345678, 4);
    g_assert_cmpuint(b.log->len, ==, 1);
    assert_access(&a, 0, 0, 4);
    recorder_remove(&b);
    guest_io_read(0x101, 1);
    assert_access(&a, 1, 1, 1);
    recorder_remove(&a);
}

static void test_unassigned(void)
{
    Recorder r;

    g_assert_cmphex(guest_mem_read(0xe0000000, 8), ==, 0);
    g_assert_cmphex(guest_io_read(0x1234, 4), ==, 0xffffffff);
    g_assert_cmphex(guest_io_read(0xffff, 1), ==, 0xff);
    guest_io_write(0xffff, 0, 4);
    guest_mem_write(UINT64_MAX, 0, 8);
    /* A region at the very end is cut off where the ports end. */
    recorder_add(&r, GUEST_SPACE_IO, 0xfffe, 16, 1, 0);
    g_assert_cmphex(guest_io_read(0xfffe, 4), ==, 0xffff1211);
    recorder_remove(&r);
}

static void test_ram_hides(void)
{
    Recorder r;
    uint8_t buf[32];

    ram_setup();
    recorder_add(&r, GUEST_SPACE_MEM, LOW - 0x10, 0x20, 1 | 2 | 4 | 8, 5);
    guest_mem_write(LOW - 8, 0x5a5a5a5a5a5a5a5a, 8);
    g_assert_cmpuint(r.log->len, ==, 0);
    g_assert_cmphex(load_le64(low + LOW - 8), ==, 0x5a5a5a5a5a5a5a5a);
    guest_mem_read_bulk(LOW - 8, buf, 16);
    assert_access(&r, 0, 0x10, 8);
    guest_mem_fill(LOW - 0x20, 0xc3, 0x40);
    g_assert_cmphex(low[LOW - 1], ==, 0xc3);
    g_assert_cmpuint(r.log->len, ==, 3);
    recorder_remove(&r);
    ram_teardown();
}

static GuestRegion *doomed;

static void remove_myself(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    guest_region_remove(doomed);
    g_free(doomed);
    doomed = NULL;
}

static void test_remove_in_callback(void)
{
    static const GuestRegionOps ops = {.write = remove_myself, .sizes = 1};

    doomed = g_new(GuestRegion, 1);
    *doomed = (GuestRegion){.name = "doomed", .ops = &ops, .space = GUEST_SPACE_IO, .base = 0x200, .size = 4};
    guest_region_add(doomed);
    guest_io_write(0x200, 0, 4);
    g_assert_null(doomed);
}

/* Whatever the widths and addresses: regions only see what they asked for, and RAM keeps what was written. */
static void test_random(void)
{
    Recorder r[4];
    uint8_t buf[256];

    ram_setup();
    recorder_add(&r[0], GUEST_SPACE_MEM, LOW - 3, 77, 1, 0);
    recorder_add(&r[1], GUEST_SPACE_MEM, LOW + 21, 33, 4, 1);
    recorder_add(&r[2], GUEST_SPACE_MEM, HIGH_BASE + HIGH + 4, 64, 2 | 8, 0);
    recorder_add(&r[3], GUEST_SPACE_MEM, UINT64_MAX - 40, 100, 1 | 8, 0);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bases[] = {0, LOW, HIGH_BASE, HIGH_BASE + HIGH, UINT64_MAX - 20};
        uint64_t addr = bases[g_test_rand_int_range(0, 5)] + (uint64_t)(int64_t)g_test_rand_int_range(-100, 100);
        uint64_t len = (uint64_t)g_test_rand_int_range(0, 256);

        switch (g_test_rand_int_range(0, 4)) {
        case 0:
            guest_mem_write_bulk(addr, buf, len);
            break;
        case 1:
            guest_mem_read_bulk(addr, buf, len);
            break;
        case 2:
            guest_mem_fill(addr, (uint8_t)i, len);
            break;
        default:
            guest_ram_write(addr, buf, len);
        }
    }
    for (int i = 0; i < 4; i++) {
        g_assert_cmpuint(r[i].log->len, >, 0);
        recorder_remove(&r[i]);
    }
    ram_teardown();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest/ram/pointer-stays-in-range", test_pointer);
    g_test_add_func("/guest/ram/copies-skip-what-is-no-ram", test_copies);
    g_test_add_func("/guest/access/wide-and-misaligned-are-split", test_split);
    g_test_add_func("/guest/access/clipped-at-region-end", test_clip);
    g_test_add_func("/guest/access/too-narrow-is-ignored", test_narrow);
    g_test_add_func("/guest/access/higher-priority-is-seen", test_priority);
    g_test_add_func("/guest/access/unassigned-reads", test_unassigned);
    g_test_add_func("/guest/access/ram-hides-regions", test_ram_hides);
    g_test_add_func("/guest/access/region-may-vanish-in-its-callback", test_remove_in_callback);
    g_test_add_func("/guest/access/random-accesses-are-safe", test_random);
    return g_test_run();
}
