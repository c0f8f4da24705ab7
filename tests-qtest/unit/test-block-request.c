/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests: bounds, alignment of every kind, splitting, zeroes, discards. */
#include "unit/block-env.h"

#include "base/iov.h"

#include <errno.h>
#include <string.h>

static void fill(uint8_t *buf, size_t n, unsigned int seed)
{
    for (size_t i = 0; i < n; i++) {
        buf[i] = (uint8_t)(seed + i * 7 + i / 251);
    }
}

static int submit_wait(BlockBackend *blk, BlockOp op, uint64_t offset, uint64_t bytes, void *buf, unsigned int flags)
{
    BlockChannel *c = blk_channel_get(blk, aio_context_main(), &error_abort);
    EnvRequest e = { 0 };
    int ret;

    env_submit(c, &e, op, offset, bytes, buf);
    ret = env_wait(&e);
    g_assert_cmpuint(e.req.op, ==, op);
    g_assert_cmpuint(e.req.offset, ==, offset);
    blk_channel_put(c);
    return ret;
}

/* --- Bounds --- */

static void test_bounds(void)
{
    BlockBackend *blk = env_backend(env_open("driver=raw,file.driver=null-aio,file.size=65536"));
    uint8_t buf[1024] = { 0 };

    g_assert_cmpint(blk_pread(blk, 65536 - 512, 512, buf), ==, 0);
    g_assert_cmpint(blk_pread(blk, 65536 - 511, 512, buf), ==, -EIO);
    g_assert_cmpint(blk_pread(blk, 65536, 1, buf), ==, -EIO);
    g_assert_cmpint(blk_pread(blk, UINT64_MAX - 5, 10, buf), ==, -EIO);
    g_assert_cmpint(blk_pread(blk, 65536, 0, buf), ==, 0);
    g_assert_cmpint(blk_pwrite(blk, 65537, 0, buf, 0), ==, -EIO);
    g_assert_cmpint(submit_wait(blk, BLOCK_DISCARD, 65536, 512, NULL, 0), ==, -EIO);
    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE_ZEROES, 65000, 1024, NULL, 0), ==, -EIO);
    blk_unref(blk);
}

static void test_read_only(void)
{
    BlockBackend *blk = env_backend(env_open("driver=null-aio,read-only=on,discard=unmap"));
    uint8_t buf[512] = { 0 };

    g_assert_cmpint(blk_pwrite(blk, 0, 512, buf, 0), ==, -EPERM);
    g_assert_cmpint(submit_wait(blk, BLOCK_DISCARD, 0, 512, NULL, 0), ==, -EPERM);
    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE_ZEROES, 0, 512, NULL, 0), ==, -EPERM);
    g_assert_cmpint(blk_flush(blk), ==, 0);
    g_assert_cmpint(blk_pread(blk, 0, 512, buf), ==, 0);
    blk_unref(blk);
}

static void test_no_medium(void)
{
    BlockBackend *blk = blk_new(0, BLK_PERM_ALL);
    uint8_t buf[512];

    g_assert_cmpint(blk_pread(blk, 0, 512, buf), ==, -ENOMEDIUM);
    blk_unref(blk);
}

static void test_error_passes(void)
{
    BlockBackend *blk = env_backend(env_open("driver=raw,file.driver=null-aio"));
    MemDisk *d = mem_disk(blk_node(blk));
    uint8_t buf[512] = { 0 };

    d->fail_op = BLOCK_WRITE;
    d->error = -ENOSPC;
    g_assert_cmpint(blk_pwrite(blk, 0, 512, buf, 0), ==, -ENOSPC);
    d->asynchronous = true;
    g_assert_cmpint(blk_pwrite(blk, 0, 512, buf, 0), ==, -ENOSPC);
    d->fail_op = BLOCK_FLUSH;
    g_assert_cmpint(blk_flush(blk), ==, -ENOSPC);
    blk_unref(blk);
}

/* --- Alignment --- */

typedef struct AlignCase {
    const char *driver; /* of the node below raw, NULL: a real file with cache.direct=on */
    const char *aio;
    bool asynchronous;
    uint32_t align, memory;
} AlignCase;

static const uint32_t offsets[] = { 0, 1, 511, 512, 513, 4095, 4096, 4097, 8192, 12289 };
static const uint32_t lengths[] = { 1, 2, 511, 512, 513, 4096, 4097, 8191, 8192, 16385 };
static const uint32_t skews[] = { 0, 1, 512 };
#define DISK_BYTES (128u * 1024)

/* One write and one read at every combination, each against a plain array that had the same writes. */
static void run_matrix(BlockBackend *blk)
{
    g_autofree uint8_t *model = g_malloc0(DISK_BYTES), *whole = g_malloc(DISK_BYTES);
    uint8_t *memory = NULL;
    unsigned int seed = 1;

    g_assert_cmpint(posix_memalign((void **)&memory, 4096, 32768), ==, 0);
    for (size_t o = 0; o < G_N_ELEMENTS(offsets); o++) {
        for (size_t l = 0; l < G_N_ELEMENTS(lengths); l++) {
            for (size_t k = 0; k < G_N_ELEMENTS(skews); k++) {
                uint8_t *buf = memory + skews[k];
                uint32_t offset = offsets[o], bytes = lengths[l];

                fill(buf, bytes, seed++);
                g_assert_cmpint(blk_pwrite(blk, offset, bytes, buf, 0), ==, 0);
                memcpy(model + offset, buf, bytes);
                memset(buf, 0xaa, bytes);
                g_assert_cmpint(blk_pread(blk, offset, bytes, buf), ==, 0);
                g_assert_cmpmem(buf, bytes, model + offset, bytes);
            }
        }
    }
    g_assert_cmpint(blk_pread(blk, 0, DISK_BYTES, whole), ==, 0);
    g_assert_cmpmem(whole, DISK_BYTES, model, DISK_BYTES);
    free(memory);
}

static void test_matrix(gconstpointer data)
{
    const AlignCase *a = data;
    BlockBackend *blk;

    mem_next.limits.request_alignment = a->align;
    mem_next.limits.required_mem_alignment = a->memory;
    mem_next.asynchronous = a->asynchronous;
    blk = env_backend(env_open("driver=raw,file.driver=%s,file.size=%u", a->driver, DISK_BYTES));
    run_matrix(blk);
    blk_unref(blk);
}

static void test_matrix_file(gconstpointer data)
{
    const AlignCase *a = data;

    if (!env_engine_usable(a->aio)) {
        return;
    }
    char *path = env_file(DISK_BYTES);
    BlockBackend *blk = env_backend(env_open("driver=raw,file.driver=file,file.filename=%s,file.cache.direct=on,file.aio=%s",
                                             path, a->aio));

    run_matrix(blk);
    blk_unref(blk);
    env_unlink(path);
}

static void test_offset_misaligns(void)
{
    g_autofree uint8_t *buf = g_malloc(16384), *back = g_malloc(16384);
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 4096;
    blk = env_backend(env_open("driver=raw,offset=512,file.driver=null-aio,file.size=65536"));
    d = mem_disk(blk_node(blk));
    fill(buf, 16384, 9);
    g_assert_cmpint(blk_pwrite(blk, 4096, 16384, buf, 0), ==, 0);
    g_assert_cmpmem(d->data + 4608, 16384, buf, 16384);
    g_assert_cmpint(d->data[4607], ==, 0);
    g_assert_cmpint(d->data[4608 + 16384], ==, 0);
    g_assert_cmpint(blk_pread(blk, 4096, 16384, back), ==, 0);
    g_assert_cmpmem(back, 16384, buf, 16384);
    blk_unref(blk);
}

static void test_fast_path_is_one_call(void)
{
    g_autofree uint8_t *buf = g_malloc0(8192);
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 512;
    blk = env_backend(env_open("driver=raw,file.driver=null-aio"));
    d = mem_disk(blk_node(blk));
    g_assert_cmpint(blk_pwrite(blk, 1024, 8192, buf, 0), ==, 0);
    g_assert_cmpint(blk_pread(blk, 1024, 8192, buf), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 1);
    g_assert_cmpuint(d->calls[BLOCK_READ], ==, 1);
    blk_unref(blk);
}

static void test_edges_only_are_read(void)
{
    g_autofree uint8_t *buf = g_malloc0(65536);
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 4096;
    blk = env_backend(env_open("driver=null-aio"));
    d = mem_disk(blk_node(blk));
    g_assert_cmpint(blk_pwrite(blk, 512, 65536, buf, 0), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_READ], ==, 2);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 1);
    g_assert_cmpint(blk_pwrite(blk, 512, 512, buf, 0), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_READ], ==, 3);
    blk_unref(blk);
}

static void test_read_error_stops_rmw(void)
{
    uint8_t buf[512] = { 1 };
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 4096;
    blk = env_backend(env_open("driver=null-aio"));
    d = mem_disk(blk_node(blk));
    d->fail_op = BLOCK_READ;
    g_assert_cmpint(blk_pwrite(blk, 512, 512, buf, 0), ==, -EIO);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 0);
    d->fail_op = -1;
    g_assert_cmpint(blk_pwrite(blk, 512, 512, buf, 0), ==, 0);
    g_assert_cmpint(d->data[512], ==, 1);
    blk_unref(blk);
}

/* --- Splitting --- */

static void test_split(void)
{
    g_autofree uint8_t *buf = g_malloc(100 * 512), *back = g_malloc(100 * 512);
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 512;
    mem_next.limits.max_transfer = 8 * 512 + 100;
    blk = env_backend(env_open("driver=null-aio"));
    d = mem_disk(blk_node(blk));
    fill(buf, 100 * 512, 3);
    g_assert_cmpint(blk_pwrite(blk, 512, 100 * 512, buf, 0), ==, 0);
    g_assert_cmpuint(d->largest, ==, 8 * 512);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 13);
    g_assert_cmpint(blk_pread(blk, 512, 100 * 512, back), ==, 0);
    g_assert_cmpmem(back, 100 * 512, buf, 100 * 512);
    blk_unref(blk);
}

static void test_many_pieces(void)
{
    BlockChannel *c;
    BlockBackend *blk;
    EnvRequest e = { 0 };
    uint8_t buf[8][512], model[8 * 512];

    mem_next.limits.max_iov = 3;
    blk = env_backend(env_open("driver=null-aio"));
    c = blk_channel_get(blk, aio_context_main(), &error_abort);
    fill(model, sizeof(model), 5);
    memcpy(buf, model, sizeof(model));
    for (int i = 0; i < 8; i++) {
        e.iov[i] = (struct iovec){ buf[i], 512 };
    }
    e.req = (BlockRequest){ .op = BLOCK_WRITE, .bytes = sizeof(buf), .iov = e.iov, .niov = 8 };
    g_assert_cmpint(blk_submit(c, &e.req), ==, BLOCK_DONE);
    g_assert_cmpint(e.req.ret, ==, 0);
    g_assert_cmpmem(mem_disk(blk_node(blk))->data, sizeof(model), model, sizeof(model));
    memset(buf, 0, sizeof(buf));
    e.req.op = BLOCK_READ;
    g_assert_cmpint(blk_submit(c, &e.req), ==, BLOCK_DONE);
    g_assert_cmpmem(buf, sizeof(buf), model, sizeof(model));
    blk_channel_put(c);
    blk_unref(blk);
}

/* --- Zeroes and discards --- */

static void test_zeroes(void)
{
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 4096;
    blk = env_backend(env_open("driver=raw,file.driver=null-aio"));
    d = mem_disk(blk_node(blk));
    memset(d->data, 0xff, 65536);
    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE_ZEROES, 4000, 12000, NULL, 0), ==, 0);
    for (unsigned int i = 0; i < 65536; i++) {
        g_assert_cmphex(d->data[i], ==, i >= 4000 && i < 16000 ? 0 : 0xff);
    }
    g_assert_cmpuint(d->calls[BLOCK_WRITE_ZEROES], ==, 1);
    blk_unref(blk);
}

static void test_zeroes_fallback(void)
{
    BlockBackend *blk = env_backend(env_open("driver=null-aio"));
    MemDisk *d = mem_disk(blk_node(blk));

    d->fail_op = BLOCK_WRITE_ZEROES;
    d->error = -ENOTSUP;
    memset(d->data, 0xff, 8192);
    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE_ZEROES, 512, 4096, NULL, 0), ==, 0);
    g_assert_cmphex(d->data[511], ==, 0xff);
    g_assert_cmphex(d->data[512], ==, 0);
    g_assert_cmphex(d->data[4607], ==, 0);
    g_assert_cmphex(d->data[4608], ==, 0xff);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 1);
    blk_unref(blk);
}

static void test_discard(void)
{
    BlockBackend *blk;
    MemDisk *d;

    mem_next.limits.request_alignment = 4096;
    blk = env_backend(env_open("driver=raw,discard=unmap,file.driver=null-aio"));
    d = mem_disk(blk_node(blk));
    g_assert_cmpint(submit_wait(blk, BLOCK_DISCARD, 512, 12288, NULL, 0), ==, 0);
    g_assert_cmphex(d->data[4095], ==, 0);
    g_assert_cmphex(d->data[4096], ==, 0xdd);
    g_assert_cmphex(d->data[12287], ==, 0xdd);
    g_assert_cmphex(d->data[12288], ==, 0);
    d->fail_op = BLOCK_DISCARD;
    d->error = -ENOTSUP;
    g_assert_cmpint(submit_wait(blk, BLOCK_DISCARD, 0, 4096, NULL, 0), ==, 0);
    d->error = -EIO;
    g_assert_cmpint(submit_wait(blk, BLOCK_DISCARD, 0, 4096, NULL, 0), ==, -EIO);
    blk_unref(blk);
}

static void test_discard_ignored(void)
{
    BlockBackend *blk = env_backend(env_open("driver=raw,file.driver=null-aio"));

    g_assert_cmpint(submit_wait(blk, BLOCK_DISCARD, 0, 4096, NULL, 0), ==, 0);
    g_assert_cmpuint(mem_disk(blk_node(blk))->calls[BLOCK_DISCARD], ==, 0);
    blk_unref(blk);
}

static void test_detect_zeroes(void)
{
    BlockBackend *blk = env_backend(env_open("driver=raw,discard=unmap,detect-zeroes=unmap,file.driver=null-aio"));
    MemDisk *d = mem_disk(blk_node(blk));
    uint8_t buf[1024] = { 0 };

    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE, 0, 1024, buf, 0), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_WRITE_ZEROES], ==, 1);
    g_assert_cmphex(d->last_flags, ==, BLOCK_F_MAY_UNMAP);
    buf[1023] = 1;
    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE, 0, 1024, buf, 0), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 1);
    buf[1023] = 0;
    buf[0] = 1;
    g_assert_cmpint(submit_wait(blk, BLOCK_WRITE, 0, 1024, buf, 0), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_WRITE], ==, 2);
    blk_unref(blk);
}

static void test_write_cache_off_is_fua(void)
{
    BlockBackend *blk = env_backend(env_open("driver=raw,file.driver=null-aio"));
    MemDisk *d = mem_disk(blk_node(blk));
    uint8_t buf[512] = { 1 };

    blk_pwrite(blk, 0, 512, buf, 0);
    g_assert_cmphex(d->last_flags, ==, 0);
    blk_set_write_cache(blk, false);
    blk_pwrite(blk, 0, 512, buf, 0);
    g_assert_cmphex(d->last_flags, ==, BLOCK_F_FUA);
    blk_pread(blk, 0, 512, buf);
    g_assert_cmphex(d->last_flags, ==, 0);
    blk_unref(blk);
}

static void test_no_flush(void)
{
    BlockBackend *blk = env_backend(env_open("driver=raw,file.driver=null-aio,file.cache.no-flush=on"));
    MemDisk *d = mem_disk(blk_node(blk));
    uint8_t buf[512] = { 1 };

    g_assert_cmpint(blk_flush(blk), ==, 0);
    g_assert_cmpuint(d->calls[BLOCK_FLUSH], ==, 0);
    blk_pwrite(blk, 0, 512, buf, BLOCK_F_FUA);
    g_assert_cmphex(d->last_flags, ==, 0);
    blk_unref(blk);
}

/* --- Allocations --- */

/* The linker sends calls of our code here (--wrap); the library's own calls are not seen. */
static _Atomic unsigned int allocations;
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t n);
gpointer __real_g_malloc(gsize n);
gpointer __real_g_malloc0(gsize n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t n);
gpointer __wrap_g_malloc(gsize n);
gpointer __wrap_g_malloc0(gsize n);

void *__wrap_malloc(size_t n)
{
    allocations++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    allocations++;
    return __real_calloc(n, size);
}

int __wrap_posix_memalign(void **p, size_t align, size_t n)
{
    allocations++;
    return __real_posix_memalign(p, align, n);
}

gpointer __wrap_g_malloc(gsize n)
{
    allocations++;
    return __real_g_malloc(n);
}

gpointer __wrap_g_malloc0(gsize n)
{
    allocations++;
    return __real_g_malloc0(n);
}

static void test_allocates_nothing(gconstpointer data)
{
    const AlignCase *a = data;

    if (!env_engine_usable(a->aio)) {
        return;
    }
    char *path = env_file(DISK_BYTES);
    BlockBackend *blk = env_backend(env_open("driver=raw,offset=4096,file.driver=file,file.filename=%s,file.cache.direct=on,"
                                             "file.aio=%s",
                                             path, a->aio));
    BlockChannel *c = blk_channel_get(blk, aio_context_main(), &error_abort);
    unsigned int before = 0;
    EnvRequest e = { 0 };
    uint8_t *page = NULL, odd[512] = { 0 };

    g_assert_cmpint(posix_memalign((void **)&page, 4096, 4096), ==, 0);
    memset(page, 1, 4096);
    /* The first rounds may make what the later ones use again. */
    for (unsigned int i = 0; i < 200; i++) {
        if (i == 100) {
            before = allocations;
        }
        env_submit(c, &e, i & 1 ? BLOCK_WRITE : BLOCK_READ, 4096 * (i % 8), 4096, page);
        g_assert_cmpint(env_wait(&e), ==, 0);
    }
    g_assert_cmpuint(allocations, ==, before);
    env_submit(c, &e, BLOCK_WRITE, 512, 512, odd);
    g_assert_cmpint(env_wait(&e), ==, 0);
    g_assert_cmpuint(allocations, >, before);
    blk_channel_put(c);
    blk_unref(blk);
    env_unlink(path);
    free(page);
}

/* --- Real files --- */

static void test_file_end(void)
{
    char *path = env_file(1000);
    BlockBackend *blk = env_backend(env_open("driver=file,filename=%s", path));
    uint8_t buf[1024];

    g_assert_cmpuint(blk_length(blk), ==, 1024);
    memset(buf, 0xaa, sizeof(buf));
    g_assert_cmpint(blk_pread(blk, 512, 512, buf), ==, 0);
    for (int i = 0; i < 512; i++) {
        g_assert_cmphex(buf[i], ==, 0);
    }
    g_assert_cmphex(buf[512], ==, 0xaa);
    blk_unref(blk);
    env_unlink(path);
}

static const AlignCase cases[] = {
    { .driver = "null-aio", .align = 1, .memory = 1 },
    { .driver = "null-aio", .align = 512, .memory = 1 },
    { .driver = "null-aio", .align = 512, .memory = 512 },
    { .driver = "null-aio", .align = 512, .memory = 4096 },
    { .driver = "null-aio", .align = 4096, .memory = 1 },
    { .driver = "null-aio", .align = 4096, .memory = 512 },
    { .driver = "null-aio", .align = 4096, .memory = 4096 },
    { .driver = "null-aio", .align = 512, .memory = 512, .asynchronous = true },
    { .driver = "null-aio", .align = 4096, .memory = 4096, .asynchronous = true },
    { .driver = "null-co", .align = 512, .memory = 512 },
    { .driver = "null-co", .align = 4096, .memory = 1, .asynchronous = true },
};
static const AlignCase engines[] = { { .aio = "threads" }, { .aio = "native" }, { .aio = "io_uring" } };

int main(int argc, char **argv)
{
    env_init(&argc, &argv);
    g_test_add_func("/block/request/bounds", test_bounds);
    g_test_add_func("/block/request/read-only-refuses-writes", test_read_only);
    g_test_add_func("/block/request/no-medium", test_no_medium);
    g_test_add_func("/block/request/error-passes-through", test_error_passes);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strdup_printf("/block/request/align/%s/%u-memory-%u%s", cases[i].driver, cases[i].align,
                                                cases[i].memory, cases[i].asynchronous ? "-async" : "");

        g_test_add_data_func(name, &cases[i], test_matrix);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(engines); i++) {
        g_autofree char *name = g_strdup_printf("/block/request/align/file-direct/%s", engines[i].aio);

        g_test_add_data_func(name, &engines[i], test_matrix_file);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(engines); i++) {
        g_autofree char *name = g_strdup_printf("/block/request/straight-way-allocates-nothing/%s", engines[i].aio);

        g_test_add_data_func(name, &engines[i], test_allocates_nothing);
    }
    g_test_add_func("/block/request/align/raw-offset-misaligns", test_offset_misaligns);
    g_test_add_func("/block/request/aligned-is-one-call", test_fast_path_is_one_call);
    g_test_add_func("/block/request/rmw/reads-edges-only", test_edges_only_are_read);
    g_test_add_func("/block/request/rmw/read-error-stops-it", test_read_error_stops_rmw);
    g_test_add_func("/block/request/split/max-transfer", test_split);
    g_test_add_func("/block/request/split/max-iov", test_many_pieces);
    g_test_add_func("/block/request/zeroes/misaligned-edges", test_zeroes);
    g_test_add_func("/block/request/zeroes/fall-back-to-writing", test_zeroes_fallback);
    g_test_add_func("/block/request/discard/shrinks-to-alignment", test_discard);
    g_test_add_func("/block/request/discard/ignored-by-default", test_discard_ignored);
    g_test_add_func("/block/request/detect-zeroes", test_detect_zeroes);
    g_test_add_func("/block/request/write-cache-off-is-fua", test_write_cache_off_is_fua);
    g_test_add_func("/block/request/no-flush", test_no_flush);
    g_test_add_func("/block/request/file-ends-inside-sector", test_file_end);
    return env_run();
}
