/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk requests in every framing, and what is refused. */
#include "base/bswap.h"
#include "virtio-blk/parse.h"

#include <glib.h>
#include <string.h>

#define MAX_SEGS 64

static const VirtIOBlkLimits limits = {
    .capacity = 2048,
    .logical_block = 512,
    .max_discard_sectors = 1000,
    .max_write_zeroes_sectors = 500,
};

/* A request: bytes to be read (header first) and bytes to be written (status last), cut into segments. */
typedef struct Request {
    uint8_t out[8192], in[8192];
    struct iovec iov[MAX_SEGS];
    unsigned int out_num, in_num;
    VirtIOBlkCommand cmd;
} Request;

static void put_header(Request *r, uint32_t type, uint64_t sector)
{
    memset(r->out, 0, 16);
    store_le32(r->out, type);
    store_le32(r->out + 4, 0xffffffff); /* ioprio means nothing */
    store_le64(r->out + 8, sector);
}

static void put_dwz(Request *r, uint64_t sector, uint32_t sectors, uint32_t flags)
{
    store_le64(r->out + 16, sector);
    store_le32(r->out + 24, sectors);
    store_le32(r->out + 28, flags);
}

/* Cut [buf, buf + len) at random places, at most @max pieces. */
static unsigned int cut(GRand *rand, uint8_t *buf, size_t len, struct iovec *iov, unsigned int max)
{
    unsigned int n = 0;

    while (len) {
        size_t piece = n + 1 == max || !rand ? len : (size_t)g_rand_int_range(rand, 1, (int)MIN(len, 40) + 1);

        iov[n++] = (struct iovec){buf, piece};
        buf += piece;
        len -= piece;
    }
    return n;
}

static void parse(Request *r, GRand *rand, size_t out_len, size_t in_len)
{
    r->out_num = cut(rand, r->out, out_len, r->iov, 30);
    r->in_num = cut(rand, r->in, in_len, r->iov + r->out_num, 30);
    memset(&r->cmd, 0x55, sizeof(r->cmd));
    virtio_blk_parse(&r->cmd, r->iov, r->out_num, r->in_num, &limits);
}

/* The data that the command describes is [buf, buf + len), in order. */
static void check_data(const Request *r, const uint8_t *buf, size_t len)
{
    for (unsigned int i = 0; i < r->cmd.niov; i++) {
        g_assert_true(r->cmd.iov[i].iov_base == buf);
        g_assert_cmpuint(r->cmd.iov[i].iov_len, >, 0);
        g_assert_cmpuint(r->cmd.iov[i].iov_len, <=, len);
        buf += r->cmd.iov[i].iov_len;
        len -= r->cmd.iov[i].iov_len;
    }
    g_assert_cmpuint(len, ==, 0);
}

static void expect_rejected(const Request *r, uint8_t result, bool invalid)
{
    g_assert_cmpint(r->cmd.kind, ==, VIRTIO_BLK_REJECTED);
    g_assert_cmpint(r->cmd.result, ==, result);
    g_assert_cmpint(r->cmd.invalid, ==, invalid);
    g_assert_nonnull(r->cmd.status);
}

static void expect_malformed(const Request *r, const char *text)
{
    g_assert_cmpint(r->cmd.kind, ==, VIRTIO_BLK_MALFORMED);
    g_assert_cmpstr(r->cmd.text, ==, text);
    g_assert_null(r->cmd.status);
}

static void test_framing(gconstpointer data)
{
    bool is_write = GPOINTER_TO_INT(data);
    GRand *rand = g_rand_new_with_seed(3);
    Request *r = g_new0(Request, 1);

    for (unsigned int i = 0; i < 5000; i++) {
        unsigned int sectors = (unsigned int)g_rand_int_range(rand, 0, 9);
        uint64_t sector = (uint64_t)g_rand_int_range(rand, 0, 2048 - 9);
        size_t len = 512 * sectors;

        put_header(r, is_write | (g_rand_boolean(rand) ? VIRTIO_BLK_T_BARRIER : 0), sector);
        parse(r, i % 8 ? rand : NULL, 16 + (is_write ? len : 0), 1 + (is_write ? 0 : len));
        g_assert_cmpint(r->cmd.kind, ==, is_write ? VIRTIO_BLK_WRITE : VIRTIO_BLK_READ);
        g_assert_cmpuint(r->cmd.offset, ==, sector * 512);
        g_assert_cmpuint(r->cmd.bytes, ==, len);
        check_data(r, is_write ? r->out + 16 : r->in, len);
        g_assert_true(r->cmd.status == r->in + (is_write ? 0 : len));
    }
    g_free(r);
    g_rand_free(rand);
}

static void test_missing(void)
{
    Request *r = g_new0(Request, 1);

    put_header(r, VIRTIO_BLK_T_IN, 0);
    parse(r, NULL, 0, 513);
    expect_malformed(r, "virtio-blk missing headers");
    parse(r, NULL, 16, 0);
    expect_malformed(r, "virtio-blk missing headers");
    for (unsigned int len = 1; len < 16; len++) {
        parse(r, NULL, len, 513);
        expect_malformed(r, "virtio-blk request outhdr too short");
    }
    g_free(r);
}

static void test_bounds(void)
{
    static const struct {
        uint64_t sector;
        size_t len;
        bool ok;
    } cases[] = {
        {2047, 512, true},         {2048, 512, false}, {2048, 0, true},   {2049, 0, false},
        {2046, 1536, false},       {0, 511, false},    {0, 513, false},   {UINT64_MAX, 512, false},
        {UINT64_MAX - 7, 4096, false}, {1ull << 55, 512, false}, {1ull << 63, 512, false},
    };
    Request *r = g_new0(Request, 1);

    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (unsigned int is_write = 0; is_write < 2; is_write++) {
            put_header(r, is_write, cases[i].sector);
            parse(r, NULL, 16 + (is_write ? cases[i].len : 0), 1 + (is_write ? 0 : cases[i].len));
            if (cases[i].ok) {
                g_assert_cmpint(r->cmd.kind, ==, is_write ? VIRTIO_BLK_WRITE : VIRTIO_BLK_READ);
            } else {
                expect_rejected(r, VIRTIO_BLK_S_IOERR, true);
                g_assert_cmpint(r->cmd.is_write, ==, (int)is_write);
            }
        }
    }
    g_free(r);
}

/* The largest request that sectors can count, and one more; the memory is never looked at. */
static void test_longest(void)
{
    const VirtIOBlkLimits huge = {.capacity = 1ull << 40, .logical_block = 512};
    uint8_t header[16] = {0}, status;

    for (unsigned int more = 0; more < 2; more++) {
        size_t len = 512 * ((size_t)VIRTIO_BLK_MAX_SECTORS + more);
        struct iovec iov[3] = {{header, 16}, {header, len}, {&status, 1}};
        VirtIOBlkCommand cmd;

        virtio_blk_parse(&cmd, iov, 1, 2, &huge);
        g_assert_cmpint(cmd.kind, ==, more ? VIRTIO_BLK_REJECTED : VIRTIO_BLK_READ);
    }
}

static void test_block_size(void)
{
    const VirtIOBlkLimits big = {.capacity = 2048, .logical_block = 4096};
    static const struct {
        uint64_t sector;
        size_t len;
        bool ok;
    } cases[] = {{8, 4096, true}, {0, 512, false}, {1, 4096, false}, {4, 4096, false}, {8, 4608, false}};
    Request *r = g_new0(Request, 1);

    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        put_header(r, VIRTIO_BLK_T_IN, cases[i].sector);
        r->out_num = cut(NULL, r->out, 16, r->iov, 1);
        r->in_num = cut(NULL, r->in, cases[i].len + 1, r->iov + 1, 1);
        virtio_blk_parse(&r->cmd, r->iov, 1, 1, &big);
        g_assert_cmpint(r->cmd.kind, ==, cases[i].ok ? VIRTIO_BLK_READ : VIRTIO_BLK_REJECTED);
    }
    g_free(r);
}

static void test_flush_and_id(void)
{
    Request *r = g_new0(Request, 1);

    for (unsigned int out = 0; out < 2; out++) {
        put_header(r, VIRTIO_BLK_T_FLUSH | out, 77);
        parse(r, NULL, 16, 1);
        g_assert_cmpint(r->cmd.kind, ==, VIRTIO_BLK_FLUSH);
        put_header(r, VIRTIO_BLK_T_GET_ID | out, 0);
        parse(r, NULL, 16, 21);
        g_assert_cmpint(r->cmd.kind, ==, VIRTIO_BLK_GET_ID);
        g_assert_cmpuint(r->cmd.bytes, ==, 20);
        check_data(r, r->in, 20);
        parse(r, NULL, 16, 1);
        g_assert_cmpuint(r->cmd.bytes, ==, 0);
    }
    g_free(r);
}

static void test_discard_write_zeroes(gconstpointer data)
{
    uint32_t type = GPOINTER_TO_UINT(data);
    bool zeroes = type == VIRTIO_BLK_T_WRITE_ZEROES;
    uint32_t max = zeroes ? 500 : 1000;
    GRand *rand = g_rand_new_with_seed(5);
    Request *r = g_new0(Request, 1);

    for (unsigned int i = 0; i < 100; i++) {
        put_header(r, type, 0);
        put_dwz(r, 3, max, 0);
        parse(r, i ? rand : NULL, 32, 1);
        g_assert_cmpint(r->cmd.kind, ==, zeroes ? VIRTIO_BLK_WRITE_ZEROES : VIRTIO_BLK_DISCARD);
        g_assert_cmpuint(r->cmd.offset, ==, 3 * 512);
        g_assert_cmpuint(r->cmd.bytes, ==, max * 512);
        g_assert_cmpuint(r->cmd.niov, ==, 0);
        g_assert_false(r->cmd.may_unmap);
    }
    put_dwz(r, 3, max + 1, 0);
    parse(r, NULL, 32, 1);
    expect_rejected(r, VIRTIO_BLK_S_IOERR, true);
    put_dwz(r, 2040, 9, 0);
    parse(r, NULL, 32, 1);
    expect_rejected(r, VIRTIO_BLK_S_IOERR, true);
    put_dwz(r, 0, 8, 2);
    parse(r, NULL, 32, 1);
    expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
    put_dwz(r, 0, 8, VIRTIO_BLK_WRITE_ZEROES_FLAG_UNMAP);
    parse(r, NULL, 32, 1);
    if (zeroes) {
        g_assert_true(r->cmd.may_unmap);
    } else {
        expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
    }
    /* Two segments, none, half of one, and the type without its OUT bit. */
    parse(r, NULL, 48, 1);
    expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
    parse(r, NULL, 16, 1);
    expect_malformed(r, "virtio-blk discard/write_zeroes header too short");
    parse(r, NULL, 31, 1);
    expect_malformed(r, "virtio-blk discard/write_zeroes header too short");
    put_header(r, type & ~1u, 0);
    parse(r, NULL, 32, 1);
    expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
    g_free(r);
    g_rand_free(rand);
}

static void test_scsi(void)
{
    Request *r = g_new0(Request, 1);

    put_header(r, VIRTIO_BLK_T_SCSI_CMD, 0);
    parse(r, NULL, 16, 1);
    expect_rejected(r, VIRTIO_BLK_S_IOERR, false);
    r->iov[0] = (struct iovec){r->out, 16};
    r->iov[1] = (struct iovec){r->out + 16, 6};
    r->iov[2] = (struct iovec){r->in, 96};
    r->iov[3] = (struct iovec){r->in + 96, 16};
    r->iov[4] = (struct iovec){r->in + 112, 1};
    memset(r->in, 0, sizeof(r->in));
    virtio_blk_parse(&r->cmd, r->iov, 2, 3, &limits);
    expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
    g_assert_cmpuint(load_le32(r->in + 96), ==, 255);
    g_free(r);
}

static void test_unknown(void)
{
    Request *r = g_new0(Request, 1);

    for (uint32_t type = 0; type < 300; type++) {
        bool known = type <= 2 || type == 4 || type == 5 || type == 8 || type == 9 || type == 11 || type == 13 ||
                     type == 3 || type == 16 || type == 17;

        if (!known) {
            put_header(r, type, 0);
            parse(r, NULL, 32, 1);
            expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
        }
    }
    /* A report of zones is answered if there is room for one, and an offence if there is not. */
    put_header(r, 16, 0);
    parse(r, NULL, 16, 129);
    expect_rejected(r, VIRTIO_BLK_S_UNSUPP, false);
    parse(r, NULL, 16, 128);
    expect_malformed(r, "in buffer too small for zone report");
    g_free(r);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/virtio-blk/parse/any-framing/read", GINT_TO_POINTER(0), test_framing);
    g_test_add_data_func("/virtio-blk/parse/any-framing/write", GINT_TO_POINTER(1), test_framing);
    g_test_add_func("/virtio-blk/parse/missing-or-short-headers", test_missing);
    g_test_add_func("/virtio-blk/parse/bounds", test_bounds);
    g_test_add_func("/virtio-blk/parse/longest-request", test_longest);
    g_test_add_func("/virtio-blk/parse/logical-block-size", test_block_size);
    g_test_add_func("/virtio-blk/parse/flush-and-id", test_flush_and_id);
    g_test_add_data_func("/virtio-blk/parse/discard", GUINT_TO_POINTER(VIRTIO_BLK_T_DISCARD), test_discard_write_zeroes);
    g_test_add_data_func("/virtio-blk/parse/write-zeroes", GUINT_TO_POINTER(VIRTIO_BLK_T_WRITE_ZEROES),
                         test_discard_write_zeroes);
    g_test_add_func("/virtio-blk/parse/scsi-is-refused", test_scsi);
    g_test_add_func("/virtio-blk/parse/unknown-types", test_unknown);
    return g_test_run();
}
