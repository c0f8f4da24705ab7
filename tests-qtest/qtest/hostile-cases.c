/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Malformed rings and requests, one a row. */
#include "hostile-cases.h"
#include "base/bswap.h"

#define OUTSIDE 0x7000000000ULL /* no RAM there */

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

void go(Bench *x, uint16_t head)
{
    vq_raw_avail(x->vq, head);
    vpci_notify(x->b->v, 0);
}

void chain3(Bench *x, uint32_t type, uint64_t sector, uint64_t data, uint32_t len, uint16_t data_flags)
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

const Case hostile_cases[] = {
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

const size_t n_hostile_cases = G_N_ELEMENTS(hostile_cases);
