/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory and files that rings register: what goes to the kernel, what is found again, what is let go. */
#include "loop-test.h"
#include "loop-thread.h"

#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define GiB ((uint64_t)1 << 30)

/* --- io_uring_register(2): refused, or noted and for memory only pretended --- */

static bool pretend;           /* the kernel is not asked about memory */
static unsigned int refuse_op; /* 0: none */
static int refuse_errno;
static unsigned int at_most; /* slots filled by one call; 0: all */
static unsigned int calls;
static struct iovec slots[2048];
static unsigned int table;

static int note_buffers(const void *arg, unsigned int opcode)
{
    const struct io_uring_rsrc_update2 *up = arg;

    if (opcode == IORING_REGISTER_BUFFERS2) {
        table = ((const struct io_uring_rsrc_register *)arg)->nr;
        return 0;
    }
    if (opcode == IORING_UNREGISTER_BUFFERS) {
        table = 0;
        return 0;
    }
    g_assert_cmpint(opcode, ==, IORING_REGISTER_BUFFERS_UPDATE);
    g_assert_cmpuint(up->offset + up->nr, <=, MIN(table, G_N_ELEMENTS(slots)));
    unsigned int n = at_most ? MIN(at_most, up->nr) : up->nr;
    memcpy(slots + up->offset, (const void *)(uintptr_t)up->data, n * sizeof(slots[0]));
    return (int)n;
}

int aio_uring_register_call(int fd, unsigned int opcode, const void *arg, unsigned int n)
{
    int ret;

    calls++;
    if (refuse_op && opcode == refuse_op) {
        return -refuse_errno;
    }
    if (pretend && (opcode == IORING_REGISTER_BUFFERS2 || opcode == IORING_REGISTER_BUFFERS_UPDATE ||
                    opcode == IORING_UNREGISTER_BUFFERS)) {
        return note_buffers(arg, opcode);
    }
    ret = (int)syscall(__NR_io_uring_register, fd, opcode, arg, n);
    return ret < 0 ? -errno : ret;
}

static AioContext *ring_context(unsigned int flags)
{
    AioContextConfig cfg = {.name = "ring", .monitor = AIO_MONITOR_IO_URING, .uring_flags = AIO_URING_AUTO | flags};
    g_autoptr(Error) err = NULL;
    AioContext *ctx = aio_context_new(&cfg, &err);

    pretend = false;
    refuse_op = at_most = calls = table = 0;
    memset(slots, 0, sizeof(slots));
    if (!ctx) {
        g_test_skip(error_get_pretty(err));
    }
    return ctx;
}

static unsigned int in_force(AioContext *ctx)
{
    return aio_context_uring_flags(ctx) & AIO_URING_REGISTERED;
}

/* --- Memory --- */

/* Address space that nobody will touch. */
static char *reserve(uint64_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    g_assert_true(p != MAP_FAILED);
    return p;
}

static void test_large_memory(void)
{
    enum { LAST = 12345 };
    const uint64_t low = 3 * GiB, high = 2 * GiB + LAST;
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_BUFFERS);
    char *a, *b;

    if (!ctx) {
        return;
    }
    pretend = true;
    at_most = 2;
    a = reserve(low);
    b = reserve(high);
    aio_memory_add(a, low);
    aio_memory_add(b, high);
    g_assert_cmphex(in_force(ctx), ==, 0); /* no engine has asked */
    g_assert_cmpuint(calls, ==, 0);
    g_assert_cmphex(aio_uring_registered(ctx), ==, AIO_URING_REGISTERED_BUFFERS);
    g_assert_cmphex(in_force(ctx), ==, AIO_URING_REGISTERED_BUFFERS);
    g_assert_cmpuint(calls, ==, 1 + 3);
    for (unsigned int i = 0; i < 3; i++) {
        g_assert_true(slots[i].iov_base == a + i * GiB && slots[i].iov_len == GiB);
        g_assert_true(slots[3 + i].iov_base == b + i * GiB);
        g_assert_cmpuint(slots[3 + i].iov_len, ==, i < 2 ? GiB : LAST);
    }

    g_assert_cmpint(aio_uring_buffer_index(ctx, a, 4096), ==, 0);
    g_assert_cmpint(aio_uring_buffer_index(ctx, a, GiB), ==, 0);
    g_assert_cmpint(aio_uring_buffer_index(ctx, a + GiB - 1, 1), ==, 0);
    g_assert_cmpint(aio_uring_buffer_index(ctx, a + GiB, 1), ==, 1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, a + low - 4096, 4096), ==, 2);
    g_assert_cmpint(aio_uring_buffer_index(ctx, b + 2 * GiB, LAST), ==, 5);
    g_assert_cmpint(aio_uring_buffer_index(ctx, b, 512), ==, 3);
    /* Partly outside, of a buffer or of all. */
    g_assert_cmpint(aio_uring_buffer_index(ctx, a + GiB - 1, 2), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, a, GiB + 1), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, b + 2 * GiB, LAST + 1), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, a - 1, 4096), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, b + high, 1), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, &ctx, sizeof(ctx)), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, b, SIZE_MAX), ==, -1);

    /* One goes: its slots are emptied, nothing is found in it. */
    calls = 0;
    g_assert_cmphex(aio_uring_registered(ctx), ==, AIO_URING_REGISTERED_BUFFERS);
    g_assert_cmpuint(calls, ==, 0);
    aio_memory_remove(a);
    g_assert_cmphex(aio_uring_registered(ctx), ==, AIO_URING_REGISTERED_BUFFERS);
    g_assert_true(slots[0].iov_base == b && slots[2].iov_len == LAST);
    for (unsigned int i = 3; i < 6; i++) {
        g_assert_null(slots[i].iov_base);
    }
    g_assert_cmpint(aio_uring_buffer_index(ctx, a, 1), ==, -1);
    g_assert_cmpint(aio_uring_buffer_index(ctx, b + GiB, 1), ==, 1);
    aio_memory_remove(b);
    g_assert_cmphex(aio_uring_registered(ctx), ==, 0);
    g_assert_cmphex(in_force(ctx), ==, 0);
    g_assert_null(slots[0].iov_base);
    loop_test_free(ctx);
    munmap(a, low);
    munmap(b, high);
}

/* More pieces than the table has slots: it is made anew. */
static void test_table_grows(void)
{
    const uint64_t huge = 1100 * GiB;
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_BUFFERS);
    unsigned int before;
    char *p;

    if (!ctx) {
        return;
    }
    p = mmap(NULL, huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        g_test_skip("no address space of this size");
        loop_test_free(ctx);
        return;
    }
    pretend = true;
    aio_memory_add(p, 4096);
    g_assert_cmphex(aio_uring_registered(ctx), ==, AIO_URING_REGISTERED_BUFFERS);
    before = table;
    aio_memory_remove(p);
    aio_memory_add(p, huge);
    g_assert_cmphex(aio_uring_registered(ctx), ==, AIO_URING_REGISTERED_BUFFERS);
    g_assert_cmpuint(before, <, 1100);
    g_assert_cmpuint(table, >=, 1100);
    g_assert_true(slots[1099].iov_base == p + 1099 * GiB);
    g_assert_cmpint(aio_uring_buffer_index(ctx, p + huge - 1, 1), ==, 1099);
    aio_memory_remove(p);
    munmap(p, huge);
    loop_test_free(ctx);
}

typedef struct Refusal {
    const char *name;
    unsigned int op;
    int err;
    const char *text, *hint;
} Refusal;

static const Refusal refusals[] = {
    {"memory-limit", IORING_REGISTER_BUFFERS_UPDATE, ENOMEM,
     "Cannot register 64 KiB of memory with the io_uring of 'ring': "
     "Cannot allocate memory",
     "RLIMIT_MEMLOCK (ulimit -l) is "},
    {"old-kernel", IORING_REGISTER_BUFFERS2, EINVAL, "Invalid argument", "needs Linux 5.19"},
    {"file-on-a-disk", IORING_REGISTER_BUFFERS_UPDATE, EOPNOTSUPP, "not supported", "memory-backend-memfd"},
};

/* The next request is not held up by another attempt; who sets the switch again makes one, and learns the reason. */
static void test_memory_refused(gconstpointer data)
{
    const Refusal *r = data;
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_BUFFERS);
    static char memory[65536];
    g_autoptr(Error) err = NULL;

    if (!ctx) {
        return;
    }
    pretend = true;
    refuse_op = r->op;
    refuse_errno = r->err;
    aio_memory_add(memory, sizeof(memory));
    g_assert_cmphex(aio_uring_registered(ctx), ==, 0);
    calls = 0;
    g_assert_cmphex(aio_uring_registered(ctx), ==, 0);
    g_assert_cmpuint(calls, ==, 0);
    g_assert_false(aio_context_set_uring_registered(ctx, AIO_URING_REGISTERED_BUFFERS, &err));
    g_assert_cmpuint(calls, >, 0);
    g_assert_nonnull(strstr(error_get_pretty(err), r->text));
    g_assert_nonnull(strstr(error_get_hint(err), r->hint));
    g_assert_cmphex(in_force(ctx), ==, 0);
    /* Files are another matter. */
    error_free(g_steal_pointer(&err));
    g_assert_false(aio_context_set_uring_registered(ctx, AIO_URING_REGISTERED, &err));
    g_assert_cmphex(in_force(ctx), ==, 0);
    g_assert_true(aio_context_set_uring_registered(ctx, AIO_URING_REGISTERED_FILES, &error_abort));
    g_assert_cmphex(in_force(ctx), ==, AIO_URING_REGISTERED_FILES);
    refuse_op = 0;
    g_assert_true(aio_context_set_uring_registered(ctx, AIO_URING_REGISTERED, &error_abort));
    g_assert_cmphex(in_force(ctx), ==, AIO_URING_REGISTERED);
    aio_memory_remove(memory);
    loop_test_free(ctx);
}

/* --- Files --- */

/* The writing end is open somewhere, else the reading end has come to its end. */
static bool writer_exists(const Pipe *p)
{
    char c;
    ssize_t n = read(p->r, &c, 1);

    g_assert_true(n == 0 || (n < 0 && errno == EAGAIN));
    return n < 0;
}

/* The caller's is the last descriptor of the writing end. */
static void close_free_pipe(Pipe *p)
{
    close(p->w);
    g_assert_false(writer_exists(p));
    close(p->r);
}

static void test_file_life(void)
{
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_FILES);
    AioFile f = {0}, never = {0};
    Pipe a, b;
    int index;

    if (!ctx) {
        return;
    }
    g_assert_cmphex(aio_uring_registered(ctx), ==, AIO_URING_REGISTERED_FILES);
    pipe_open(&a, ctx);
    pipe_open(&b, ctx);
    g_assert_cmpint(aio_uring_file_index(ctx, &never, a.w), ==, -1);
    aio_file_open(&f);
    index = aio_uring_file_index(ctx, &f, a.w);
    g_assert_cmpint(index, >=, 0);
    calls = 0;
    g_assert_cmpint(aio_uring_file_index(ctx, &f, a.w), ==, index);
    g_assert_cmpuint(calls, ==, 0);

    /* Another open file under the same number: at its next use the old one goes. */
    g_assert_cmpint(dup3(b.w, a.w, O_CLOEXEC), ==, a.w);
    g_assert_true(writer_exists(&a));
    aio_file_changed(&f);
    g_assert_cmpint(aio_uring_file_index(ctx, &f, a.w), ==, index);
    g_assert_false(writer_exists(&a));
    g_assert_cmpuint(calls, ==, 1);

    aio_file_close(&f);
    close(a.w);
    g_assert_true(writer_exists(&b));
    close(b.w);
    g_assert_false(writer_exists(&b));
    aio_file_close(&f); /* harmless */
    close(a.r);
    close(b.r);
    loop_test_free(ctx);
}

/* The kernel has no empty tables: descriptors are used as they are. */
static void test_files_refused(void)
{
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_FILES);
    g_autoptr(Error) err = NULL;

    if (!ctx) {
        return;
    }
    refuse_op = IORING_REGISTER_FILES2;
    refuse_errno = EINVAL;
    g_assert_cmphex(aio_uring_registered(ctx), ==, 0);
    g_assert_cmphex(in_force(ctx), ==, 0);
    calls = 0;
    g_assert_cmphex(aio_uring_registered(ctx), ==, 0);
    g_assert_cmpuint(calls, ==, 0);
    g_assert_false(aio_context_set_uring_registered(ctx, AIO_URING_REGISTERED_FILES, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Cannot register files with the io_uring of 'ring': Invalid argument");
    g_assert_nonnull(strstr(error_get_hint(err), "needs Linux 5.19"));
    refuse_op = 0;
    g_assert_true(aio_context_set_uring_registered(ctx, AIO_URING_REGISTERED_FILES, &error_abort));
    g_assert_cmphex(in_force(ctx), ==, AIO_URING_REGISTERED_FILES);
    loop_test_free(ctx);
}

/* A descriptor that cannot be registered is used as it is, after one attempt. */
static void test_bad_descriptor(void)
{
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_FILES);
    AioFile f = {0};

    if (!ctx) {
        return;
    }
    aio_uring_registered(ctx);
    aio_file_open(&f);
    g_assert_cmpint(aio_uring_file_index(ctx, &f, 1023), ==, -1);
    calls = 0;
    g_assert_cmpint(aio_uring_file_index(ctx, &f, 1023), ==, -1);
    g_assert_cmpuint(calls, ==, 0);
    aio_file_close(&f);
    loop_test_free(ctx);
}

static void test_slots_exhausted(void)
{
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_FILES);
    static AioFile f[AIO_FILE_SLOTS + 1];
    Pipe p;

    if (!ctx) {
        return;
    }
    pipe_open(&p, ctx);
    aio_uring_registered(ctx);
    for (unsigned int i = 0; i < G_N_ELEMENTS(f); i++) {
        aio_file_open(&f[i]);
        g_assert_cmpint(aio_uring_file_index(ctx, &f[i], p.w), ==, i < AIO_FILE_SLOTS ? (int)i : -1);
    }
    aio_file_close(&f[AIO_FILE_SLOTS]);
    aio_file_close(&f[7]);
    aio_file_open(&f[AIO_FILE_SLOTS]);
    g_assert_cmpint(aio_uring_file_index(ctx, &f[AIO_FILE_SLOTS], p.w), ==, 7);
    for (unsigned int i = 0; i < G_N_ELEMENTS(f); i++) {
        aio_file_close(&f[i]);
    }
    close_free_pipe(&p);
    loop_test_free(ctx);
}

/* --- Several rings --- */

typedef struct Use {
    AioContext *ctx;
    const AioFile *f;
    int fd, index;
} Use;

static void use_file(void *opaque)
{
    Use *u = opaque;

    u->index = -1;
    if (aio_uring_get(u->ctx, NULL) && aio_uring_registered(u->ctx) == AIO_URING_REGISTERED_FILES) {
        u->index = aio_uring_file_index(u->ctx, u->f, u->fd);
    }
}

/* Closing takes the file out of rings of other threads, and so does the end of a ring. */
static void test_rings_of_threads(void)
{
    enum { THREADS = 3 };
    AioContext *ctx = ring_context(0);
    AioContextConfig cfg = {.name = "other", .uring_flags = AIO_URING_AUTO};
    LoopThread *t[THREADS];
    Use use[THREADS];
    AioFile f = {0};
    Pipe p;

    if (!ctx) {
        return;
    }
    pipe_open(&p, ctx);
    aio_file_open(&f);
    for (int i = 0; i < THREADS; i++) {
        t[i] = loop_thread_new(&cfg);
        use[i] = (Use){t[i]->ctx, &f, p.w, -1};
        g_assert_true(aio_context_set_uring_registered(t[i]->ctx, AIO_URING_REGISTERED_FILES, &error_abort));
        aio_run_in_home(t[i]->ctx, use_file, &use[i]);
        g_assert_cmpint(use[i].index, ==, use[0].index);
        g_assert_cmpint(use[i].index, >=, 0);
    }
    loop_thread_free(t[0]);
    /* Switched off: nothing is left registered there. */
    g_assert_true(aio_context_set_uring_registered(t[1]->ctx, 0, &error_abort));
    aio_file_close(&f);
    close_free_pipe(&p);
    loop_thread_free(t[1]);
    loop_thread_free(t[2]);
    loop_test_free(ctx);
}

/* The kernel takes a ring apart in its own time; the file is free at once. */
static void test_ring_ends(void)
{
    AioContext *ctx = ring_context(AIO_URING_REGISTERED_FILES);
    AioFile f = {0};
    Pipe p;

    if (!ctx) {
        return;
    }
    pipe_open(&p, ctx);
    aio_file_open(&f);
    aio_uring_registered(ctx);
    g_assert_cmpint(aio_uring_file_index(ctx, &f, p.w), >=, 0);
    loop_test_free(ctx);
    close_free_pipe(&p);
    aio_file_close(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/register/memory/pieces-are-found-again", test_large_memory);
    g_test_add_func("/loop/register/memory/table-grows", test_table_grows);
    for (unsigned int i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strdup_printf("/loop/register/memory/refused-for-%s", refusals[i].name);

        g_test_add_data_func(path, &refusals[i], test_memory_refused);
    }
    g_test_add_func("/loop/register/file/follows-descriptor-and-closes", test_file_life);
    g_test_add_func("/loop/register/file/refused", test_files_refused);
    g_test_add_func("/loop/register/file/bad-descriptor", test_bad_descriptor);
    g_test_add_func("/loop/register/file/more-than-slots", test_slots_exhausted);
    g_test_add_func("/loop/register/file/rings-of-other-threads-let-go", test_rings_of_threads);
    g_test_add_func("/loop/register/file/end-of-ring-lets-go", test_ring_ends);
    return g_test_run();
}
