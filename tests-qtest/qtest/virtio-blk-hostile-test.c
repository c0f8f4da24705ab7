/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Malformed rings and requests: the process lives, the device says that it needs a reset, and a reset heals it. */
#include "base/bswap.h"
#include "common.h"

#include <stdio.h>
#include <string.h>

#define OUTSIDE 0x7000000000ULL /* no RAM there */

/* Guest memory that every case may point at. */
typedef struct Bench {
    QTest *t;
    Vblk *b;
    Vq *vq;
    uint64_t mem; /* 128 KiB: header at 0, data at 4096, status at 0x1f000, indirect table at 0x10000 */
    uint64_t header, data, status, table;
} Bench;

typedef enum Outcome {
    BROKEN,  /* device needs reset, a line on stderr, no completion */
    STATUS,  /* completes with the given status */
    EITHER,  /* one of the two, and the process lives: QEMU's answer depends on memory layout */
} Outcome;

typedef struct Case {
    const char *name;
    void (*build)(Bench *x); /* fills descriptors and publishes */
    Outcome outcome;
    const char *message; /* BROKEN: on stderr; NULL: any, where it depends on the order of checks */
    uint8_t status;      /* STATUS */
    bool no_indirect;    /* without the feature */
} Case;

static void put_header(Bench *x, uint32_t type, uint64_t sector)
{
    uint8_t h[16] = {0};

    store_le32(h, type);
    store_le64(h + 8, sector);
    qt_ram_write(x->t, x->header, h, sizeof(h));
}

static void ind(Bench *x, unsigned int i, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
    uint8_t d[16];

    store_le64(d, addr);
    store_le32(d + 8, len);
    store_le16(d + 12, flags);
    store_le16(d + 14, next);
    qt_ram_write(x->t, x->table + 16 * i, d, sizeof(d));
}

enum { N = VQ_DESC_NEXT, W = VQ_DESC_WRITE, I = VQ_DESC_INDIRECT };

static void go(Bench *x, uint16_t head)
{
    vq_raw_avail(x->vq, head);
    vpci_notify(x->b->v, 0);
}

static void chain3(Bench *x, uint32_t type, uint64_t sector, uint64_t data, uint32_t len, uint16_t data_flags)
{
    put_header(x, type, sector);
    vq_raw_desc(x->vq, 0, x->header, 16, N, 1);
    vq_raw_desc(x->vq, 1, data, len, N | data_flags, 2);
    vq_raw_desc(x->vq, 2, x->status, 1, W, 0);
}

static void head_out_of_range(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    go(x, 300);
}

static void head_is_queue_size(Bench *x)
{
    go(x, x->vq->size);
}

static void head_is_ffff(Bench *x)
{
    go(x, 0xffff);
}

static void next_out_of_range(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_desc(x->vq, 1, x->data, 512, N | W, 999);
    go(x, 0);
}

static void loop_to_itself(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    vq_raw_desc(x->vq, 0, x->header, 16, N, 0);
    go(x, 0);
}

static void loop_of_two(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    vq_raw_desc(x->vq, 0, x->header, 16, N, 1);
    vq_raw_desc(x->vq, 1, x->data, 512, N | W, 1);
    go(x, 0);
}

static void loop_over_whole_ring(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    for (uint16_t i = 0; i < x->vq->size; i++) {
        vq_raw_desc(x->vq, i, x->data, 16, N, (uint16_t)((i + 1) % x->vq->size));
    }
    go(x, 0);
}

static void out_after_in(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_desc(x->vq, 2, x->status, 1, 0, 0);
    go(x, 0);
}

static void only_out(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    vq_raw_desc(x->vq, 0, x->header, 16, 0, 0);
    go(x, 0);
}

static void only_in(Bench *x)
{
    vq_raw_desc(x->vq, 0, x->status, 1, W, 0);
    go(x, 0);
}

static void zero_length(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 0, W);
    go(x, 0);
}

static void zero_length_header(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_desc(x->vq, 0, x->header, 0, N, 1);
    go(x, 0);
}

static void zero_length_status(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_desc(x->vq, 2, x->status, 0, W, 0);
    go(x, 0);
}

static void short_header(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    vq_raw_desc(x->vq, 0, x->header, 15, N, 1);
    vq_raw_desc(x->vq, 1, x->status, 1, W, 0);
    go(x, 0);
}

static void header_of_one_byte(Bench *x)
{
    vq_raw_desc(x->vq, 0, x->header, 1, N, 1);
    vq_raw_desc(x->vq, 1, x->status, 1, W, 0);
    go(x, 0);
}

static void discard_too_short(Bench *x)
{
    chain3(x, BLK_T_DISCARD, 0, x->data, 8, 0);
    go(x, 0);
}

static void write_zeroes_too_short(Bench *x)
{
    chain3(x, BLK_T_WRITE_ZEROES, 0, x->data, 15, 0);
    go(x, 0);
}

static void indirect_size(Bench *x, uint32_t len)
{
    put_header(x, BLK_T_IN, 0);
    ind(x, 0, x->header, 16, N, 1);
    ind(x, 1, x->data, 512, N | W, 2);
    ind(x, 2, x->status, 1, W, 0);
    vq_raw_desc(x->vq, 0, x->table, len, I, 0);
    go(x, 0);
}

static void indirect_of_15_bytes(Bench *x)
{
    indirect_size(x, 15);
}

static void indirect_of_17_bytes(Bench *x)
{
    indirect_size(x, 17);
}

static void indirect_of_nothing(Bench *x)
{
    indirect_size(x, 0);
}

static void indirect_next_out_of_table(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    ind(x, 0, x->header, 16, N, 1);
    ind(x, 1, x->data, 512, N | W, 50);
    ind(x, 2, x->status, 1, W, 0);
    vq_raw_desc(x->vq, 0, x->table, 48, I, 0);
    go(x, 0);
}

static void indirect_loop(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    ind(x, 0, x->header, 16, N, 1);
    ind(x, 1, x->data, 512, N | W, 1);
    vq_raw_desc(x->vq, 0, x->table, 48, I, 0);
    go(x, 0);
}

static void indirect_in_indirect(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    ind(x, 0, x->header, 16, N, 1);
    ind(x, 1, x->table + 256, 48, I | N, 2);
    ind(x, 2, x->status, 1, W, 0);
    vq_raw_desc(x->vq, 0, x->table, 48, I, 0);
    go(x, 0);
}

static void indirect_table_outside_ram(Bench *x)
{
    vq_raw_desc(x->vq, 0, OUTSIDE, 48, I, 0);
    go(x, 0);
}

static void data_outside_ram(Bench *x)
{
    chain3(x, BLK_T_IN, 0, OUTSIDE, 512, W);
    go(x, 0);
}

static void write_from_outside_ram(Bench *x)
{
    chain3(x, BLK_T_OUT, 0, OUTSIDE, 512, 0);
    go(x, 0);
}

static void data_at_top_of_address_space(Bench *x)
{
    chain3(x, BLK_T_IN, 0, 0xfffffffffffffe00ULL, 512, W);
    go(x, 0);
}

static void data_wraps_address_space(Bench *x)
{
    chain3(x, BLK_T_IN, 0, 0xffffffffffffff00ULL, 512, W);
    go(x, 0);
}

static void data_of_4_gib(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 0xffffffff, W);
    go(x, 0);
}

static void data_on_device_registers(Bench *x)
{
    chain3(x, BLK_T_IN, 0, pci_map_bar(x->b->v->pci, 1)->addr, 512, W);
    go(x, 0);
}

static void status_outside_ram(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_desc(x->vq, 2, OUTSIDE, 1, W, 0);
    go(x, 0);
}

static void header_outside_ram(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_desc(x->vq, 0, OUTSIDE, 16, N, 1);
    go(x, 0);
}

static void avail_index_jumps(Bench *x)
{
    vq_raw_avail_idx(x->vq, 0x4000);
    vpci_notify(x->b->v, 0);
}

static void avail_index_goes_back(Bench *x)
{
    vq_raw_avail_idx(x->vq, 0xffff);
    vpci_notify(x->b->v, 0);
}

static void wrong_direction_read(Bench *x)
{
    /* Data that the device may only read: there is no room for what was asked for. */
    chain3(x, BLK_T_IN, 0, x->data, 512, 0);
    go(x, 0);
}

static void wrong_direction_write(Bench *x)
{
    chain3(x, BLK_T_OUT, 0, x->data, 512, W);
    go(x, 0);
}

static void read_past_the_end(Bench *x)
{
    chain3(x, BLK_T_IN, x->b->sectors, x->data, 512, W);
    go(x, 0);
}

static void write_past_the_end(Bench *x)
{
    chain3(x, BLK_T_OUT, x->b->sectors, x->data, 512, 0);
    go(x, 0);
}

static void read_across_the_end(Bench *x)
{
    chain3(x, BLK_T_IN, x->b->sectors - 1, x->data, 1024, W);
    go(x, 0);
}

static void sector_overflows(Bench *x)
{
    chain3(x, BLK_T_IN, UINT64_MAX, x->data, 512, W);
    go(x, 0);
}

static void sector_times_512_overflows(Bench *x)
{
    chain3(x, BLK_T_OUT, 1ULL << 55, x->data, 512, 0);
    go(x, 0);
}

static void read_of_odd_bytes(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 513, W);
    go(x, 0);
}

static void write_of_odd_bytes(Bench *x)
{
    chain3(x, BLK_T_OUT, 0, x->data, 511, 0);
    go(x, 0);
}

static void read_of_nothing(Bench *x)
{
    put_header(x, BLK_T_IN, 0);
    vq_raw_desc(x->vq, 0, x->header, 16, N, 1);
    vq_raw_desc(x->vq, 1, x->status, 1, W, 0);
    go(x, 0);
}

static void unknown_type(Bench *x)
{
    chain3(x, 0x1234, 0, x->data, 512, W);
    go(x, 0);
}

static void secure_erase(Bench *x)
{
    chain3(x, BLK_T_SECURE_ERASE, 0, x->data, 16, 0);
    go(x, 0);
}

static void barrier_bit(Bench *x)
{
    chain3(x, BLK_T_IN | 0x80000000, 0, x->data, 512, W);
    go(x, 0);
}

static void flush_with_data(Bench *x)
{
    chain3(x, BLK_T_FLUSH, 77, x->data, 512, W);
    go(x, 0);
}

static void long_chain(Bench *x)
{
    /* 64 KiB in 252 descriptors of 256 bytes plus one with the rest. */
    uint32_t left = 65536;
    uint16_t i;

    put_header(x, BLK_T_IN, 0);
    vq_raw_desc(x->vq, 0, x->header, 16, N, 1);
    for (i = 1; left; i++) {
        uint32_t len = i < 253 ? 256 : left;

        vq_raw_desc(x->vq, i, x->data, len, N | W, i + 1);
        left -= len;
    }
    vq_raw_desc(x->vq, i, x->status, 1, W, 0);
    go(x, 0);
}

static void long_indirect_chain(Bench *x, unsigned int total)
{
    put_header(x, BLK_T_IN, 0);
    ind(x, 0, x->header, 16, N, 1);
    for (unsigned int i = 1; i + 1 < total; i++) {
        ind(x, i, x->data, 512, N | W, (uint16_t)(i + 1));
    }
    ind(x, total - 1, x->status, 1, W, 0);
    vq_raw_desc(x->vq, 0, x->table, 16 * total, I, 0);
    go(x, 0);
}

static void indirect_of_256(Bench *x)
{
    long_indirect_chain(x, 256);
}

static void indirect_of_1024(Bench *x)
{
    long_indirect_chain(x, 1024);
}

static void indirect_of_1025(Bench *x)
{
    long_indirect_chain(x, 1025);
}

static void indirect_64_kib_table(Bench *x)
{
    /* 4096 descriptors in the table, of which the chain uses three. */
    indirect_size(x, 65536);
}

static void same_head_twice(Bench *x)
{
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    vq_raw_avail(x->vq, 0);
    vq_raw_avail(x->vq, 0);
    vpci_notify(x->b->v, 0);
}

static const Case cases[] = {
    {"head/out-of-range", head_out_of_range, BROKEN, "Guest says index 300 is available"},
    {"head/queue-size", head_is_queue_size, BROKEN, "Guest says index 256 is available"},
    {"head/ffff", head_is_ffff, BROKEN, "Guest says index 65535 is available"},
    {"head/same-twice", same_head_twice, STATUS, NULL, BLK_S_OK},
    {"next/out-of-range", next_out_of_range, BROKEN, "Desc next is 999"},
    {"loop/itself", loop_to_itself, BROKEN, "Looped descriptor"},
    {"loop/two", loop_of_two, BROKEN, "Looped descriptor"},
    {"loop/whole-ring", loop_over_whole_ring, BROKEN, "Looped descriptor"},
    {"direction/out-after-in", out_after_in, BROKEN, "Incorrect order for descriptors"},
    {"direction/only-out", only_out, BROKEN, "virtio-blk missing headers"},
    {"direction/only-in", only_in, BROKEN, "virtio-blk missing headers"},
    {"direction/read-into-out-data", wrong_direction_read, STATUS, NULL, BLK_S_OK},
    {"direction/write-from-in-data", wrong_direction_write, STATUS, NULL, BLK_S_OK},
    {"length/zero-data", zero_length, BROKEN, "virtio: zero sized buffers are not allowed"},
    {"length/zero-header", zero_length_header, BROKEN, "virtio: zero sized buffers are not allowed"},
    {"length/zero-status", zero_length_status, BROKEN, "virtio: zero sized buffers are not allowed"},
    {"length/header-of-15", short_header, BROKEN, "virtio-blk request outhdr too short"},
    {"length/header-of-1", header_of_one_byte, BROKEN, "virtio-blk request outhdr too short"},
    {"length/discard-of-8", discard_too_short, BROKEN, "virtio-blk discard/write_zeroes header too short"},
    {"length/write-zeroes-of-15", write_zeroes_too_short, BROKEN,
     "virtio-blk discard/write_zeroes header too short"},
    {"length/read-of-513", read_of_odd_bytes, STATUS, NULL, BLK_S_IOERR},
    {"length/write-of-511", write_of_odd_bytes, STATUS, NULL, BLK_S_IOERR},
    {"length/read-of-nothing", read_of_nothing, STATUS, NULL, BLK_S_OK},
    {"length/data-of-4-gib", data_of_4_gib, EITHER},
    {"length/64-kib-in-254-descriptors", long_chain, STATUS, NULL, BLK_S_OK},
    {"indirect/table-of-15-bytes", indirect_of_15_bytes, BROKEN, "Invalid size for indirect buffer table"},
    {"indirect/table-of-17-bytes", indirect_of_17_bytes, BROKEN, "Invalid size for indirect buffer table"},
    {"indirect/table-of-nothing", indirect_of_nothing, BROKEN, "Invalid size for indirect buffer table"},
    {"indirect/next-out-of-table", indirect_next_out_of_table, BROKEN, "Desc next is 50"},
    {"indirect/loop", indirect_loop, BROKEN, "Looped descriptor"},
    {"indirect/nested", indirect_in_indirect, EITHER},
    {"indirect/table-outside-ram", indirect_table_outside_ram, BROKEN, NULL},
    {"indirect/chain-of-256", indirect_of_256, STATUS, NULL, BLK_S_OK},
    {"indirect/chain-of-1024", indirect_of_1024, STATUS, NULL, BLK_S_OK},
    {"indirect/chain-of-1025", indirect_of_1025, BROKEN, NULL},
    {"indirect/table-of-64-kib", indirect_64_kib_table, STATUS, NULL, BLK_S_OK},
    {"address/data-outside-ram", data_outside_ram, EITHER},
    {"address/write-from-outside-ram", write_from_outside_ram, EITHER},
    {"address/data-at-the-top", data_at_top_of_address_space, EITHER},
    {"address/data-wraps", data_wraps_address_space, EITHER},
    {"address/data-on-registers", data_on_device_registers, EITHER},
    {"address/status-outside-ram", status_outside_ram, EITHER},
    {"address/header-outside-ram", header_outside_ram, EITHER},
    {"avail/index-jumps", avail_index_jumps, BROKEN, NULL},
    {"avail/index-goes-back", avail_index_goes_back, BROKEN, NULL},
    {"sector/read-past-the-end", read_past_the_end, STATUS, NULL, BLK_S_IOERR},
    {"sector/write-past-the-end", write_past_the_end, STATUS, NULL, BLK_S_IOERR},
    {"sector/read-across-the-end", read_across_the_end, STATUS, NULL, BLK_S_IOERR},
    {"sector/all-ones", sector_overflows, STATUS, NULL, BLK_S_IOERR},
    {"sector/bytes-overflow", sector_times_512_overflows, STATUS, NULL, BLK_S_IOERR},
    {"type/unknown", unknown_type, STATUS, NULL, BLK_S_UNSUPP},
    {"type/secure-erase", secure_erase, STATUS, NULL, BLK_S_UNSUPP},
    {"type/barrier-bit", barrier_bit, STATUS, NULL, BLK_S_OK},
    {"type/flush-with-data", flush_with_data, STATUS, NULL, BLK_S_OK},
};

typedef struct Row {
    const Case *c;
    VirtioVia via;
    bool iothread;
} Row;

static void bench_init(Bench *x, QTest *t, VirtioVia via)
{
    VblkOpts o = {.via = via};

    x->t = t;
    x->b = vblk_new(t, &o);
    x->vq = x->b->vq[0];
    x->mem = guest_alloc(t, 128 << 10);
    qt_memset(t, x->mem, 0, 128 << 10);
    x->header = x->mem;
    x->data = x->mem + 4096;
    x->table = x->mem + 0x10000;
    x->status = x->mem + 0x1f000;
    qt_writeb(t, x->status, BLK_S_NONE);
}

static void expect_broken(Bench *x, const Case *c)
{
    bool legacy = x->b->v->via == VIRTIO_LEGACY;

    qt_wait_stderr(x->t, c->message ? c->message : ": ");
    /* Only version 1 has a bit to tell the driver. */
    for (int i = 0; !legacy && !(vpci_status(x->b->v) & VIRTIO_S_NEEDS_RESET); i++) {
        g_usleep(1000);
        if (i > qos_hang_ms()) {
            qos_die("%s: the device does not say that it needs a reset", c->name);
        }
    }
    g_assert_cmphex(vpci_status(x->b->v), ==, legacy ? 0x07 : 0x4f);
    g_assert_cmphex(vpci_isr(x->b->v), ==, legacy ? 0 : 3);
    g_assert_cmpuint(vq_used_idx(x->vq), ==, 0);
    g_assert_cmphex(qt_readb(x->t, x->status), ==, BLK_S_NONE);
    /* Broken until reset: a good request goes unanswered. */
    chain3(x, BLK_T_IN, 0, x->data, 512, W);
    go(x, 0);
    g_usleep(10000);
    g_assert_cmpuint(vq_used_idx(x->vq), ==, 0);
}

static void expect_status(Bench *x, const Case *c)
{
    for (int i = 0; !vq_used_idx(x->vq); i++) {
        g_usleep(1000);
        if (vpci_status(x->b->v) & VIRTIO_S_NEEDS_RESET) {
            g_autofree char *text = qt_stderr(x->t);

            qos_die("%s: the device needs a reset: %s", c->name, text);
        }
        if (i > qos_hang_ms()) {
            qos_die("%s: does not complete", c->name);
        }
    }
    g_assert_cmphex(qt_readb(x->t, x->status), ==, c->status);
    g_assert_cmphex(vpci_status(x->b->v) & VIRTIO_S_NEEDS_RESET, ==, 0);
}

static bool complained(QTest *t)
{
    g_autofree char *text = qt_stderr(t);

    return *text;
}

static void test_case(gconstpointer data)
{
    const Row *row = data;
    uint8_t buf[512] = {1};
    Bench x;
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on "
                        "-device virtio-blk-pci,drive=n%s,addr=4.0", row->iothread ? ",iothread=io0" : "");

    bench_init(&x, t, row->via);
    pci_map_bar(x.b->v->pci, 1);
    row->c->build(&x);
    switch (row->c->outcome) {
    case BROKEN:
        expect_broken(&x, row->c);
        break;
    case STATUS:
        expect_status(&x, row->c);
        break;
    case EITHER:
        for (int i = 0; !vq_used_idx(x.vq) && !complained(t); i++) {
            g_usleep(1000);
            if (i > qos_hang_ms()) {
                qos_die("%s: neither completes nor breaks", row->c->name);
            }
        }
        break;
    }
    qt_assert_alive(t);
    guest_free(t, x.mem);
    vblk_free(x.b);
    /* Status 0 heals it. */
    x.b = vblk_new(t, &(VblkOpts){.via = row->via});
    g_assert_cmpint(vblk_rw(x.b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmphex(buf[0], ==, 0);
    vblk_free(x.b);
    qt_stop(t);
}

int main(int argc, char **argv)
{
    static const char *const via_name[] = {"legacy", "modern"};

    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (int k = 0; k < 3; k++) {
            Row *row = g_new0(Row, 1);

            row->c = &cases[i];
            row->via = k == 0 ? VIRTIO_LEGACY : VIRTIO_MODERN;
            row->iothread = k != 2;
            add_case(test_case, row, "/virtio-blk/hostile/%s%s/%s", via_name[row->via],
                     row->iothread ? "" : "-main-loop", cases[i].name);
        }
    }
    return g_test_run();
}
