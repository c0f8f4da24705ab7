/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory and files registered with a ring. The kernel looks at a slot when it begins a request, which may be long after
 * it took the SQE. So a slot that is in use changes only while no request uses any; until then new ones do without.
 * Those in which nothing is, or which belong to a file without requests, change at any time.
 */
#include "loop/uring-int.h"

#include <errno.h>
#include <glib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* For 1 TiB; the kernel's table has a pointer for each, so a later list hardly needs another table. */
#define MIN_BUFFER_SLOTS 1024

__attribute__((weak)) int aio_uring_register_call(int fd, unsigned int opcode, const void *arg, unsigned int n)
{
    int ret = (int)syscall(__NR_io_uring_register, fd, opcode, arg, n);

    return ret < 0 ? -errno : ret;
}

static int make_table(const AioUring *u, unsigned int opcode, unsigned int slots)
{
    struct io_uring_rsrc_register r = {.nr = slots, .flags = IORING_RSRC_REGISTER_SPARSE};

    return aio_uring_register_call(u->ring.ring_fd, opcode, &r, sizeof(r));
}

/* Fill the first @n buffers. 0, or -errno when *@done of them have been filled. */
static int fill_buffers(const AioUring *u, const struct iovec *iov, unsigned int n, unsigned int *done)
{
    for (*done = 0; *done < n;) {
        struct io_uring_rsrc_update2 up = {.offset = *done, .data = (uintptr_t)(iov + *done), .nr = n - *done};
        int ret = aio_uring_register_call(u->ring.ring_fd, IORING_REGISTER_BUFFERS_UPDATE, &up, sizeof(up));

        if (ret <= 0) {
            return ret ? ret : -EIO;
        }
        *done += (unsigned int)ret;
    }
    return 0;
}

/* What is in force, for who asks. */
static void publish(AioContext *ctx, AioUringTables *t)
{
    unsigned int flags = aio_context_uring_flags(ctx) & ~AIO_URING_REGISTERED;

    atomic_store_explicit(&ctx->uring_flags, flags | t->in_force, memory_order_relaxed);
}

static void hint_kernel(Error **errp, int err)
{
    if (err == EINVAL || err == ENOSYS) {
        error_append_hint(errp, "That needs Linux 5.19.\n");
    }
}

/* --- Buffers --- */

static void memory_error(AioContext *ctx, uint64_t bytes, int err, Error **errp)
{
    struct rlimit limit = {0};

    error_setg_errno(errp, err, "Cannot register %" PRIu64 " KiB of memory with the io_uring of '%s'", bytes / 1024,
                     ctx->name);
    hint_kernel(errp, err);
    if (err == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
        error_append_hint(errp,
                          "It is locked in memory, once for each ring; RLIMIT_MEMLOCK (ulimit -l) is %" PRIu64
                          " KiB and may have to be raised.\n",
                          (uint64_t)limit.rlim_cur / 1024);
    } else if (err == EOPNOTSUPP || err == EFAULT) {
        error_append_hint(errp,
                          "Memory backed by a file on a disk cannot be locked; that of memory-backend-memfd can.\n");
    }
}

static unsigned int buffers_of(const AioMemory *m)
{
    return (unsigned int)(m->size / AIO_BUFFER_MAX + (m->size % AIO_BUFFER_MAX != 0));
}

static void drop_buffers(AioContext *ctx, AioUring *u)
{
    AioUringTables *t = &u->tables;
    g_autofree struct iovec *none = g_new0(struct iovec, t->n_buffers);
    unsigned int done;
    int ret = fill_buffers(u, none, t->n_buffers, &done);

    if (ret == 0) {
        t->n_buffers = 0;
    } else {
        warn_report("The io_uring of '%s' keeps memory locked: %s", ctx->name, strerror(-ret));
    }
    t->in_force &= ~AIO_URING_REGISTERED_BUFFERS;
}

static int buffer_table(const AioUring *u, AioUringTables *t, unsigned int n)
{
    int ret = 0;

    if (t->buffer_slots && t->buffer_slots < n) {
        ret = aio_uring_register_call(u->ring.ring_fd, IORING_UNREGISTER_BUFFERS, NULL, 0);
        if (ret == 0) {
            t->buffer_slots = t->n_buffers = 0;
        }
    }
    if (ret == 0 && t->buffer_slots < n) {
        t->buffer_slots = MAX(n, MIN_BUFFER_SLOTS);
        ret = make_table(u, IORING_REGISTER_BUFFERS2, t->buffer_slots);
        t->buffer_slots = ret < 0 ? 0 : t->buffer_slots;
    }
    return ret;
}

/* Note the places of @list, and return an iovec for each buffer. */
static struct iovec *lay_out(AioUringTables *t, const AioMemory *list, unsigned int n, unsigned int n_buffers)
{
    struct iovec *iov = g_new(struct iovec, n_buffers), *to = iov;

    t->memory = g_renew(AioUringMemory, t->memory, n);
    t->n_memory = n;
    t->last = 0;
    for (unsigned int i = 0; i < n; i++) {
        t->memory[i] = (AioUringMemory){(uintptr_t)list[i].host, list[i].size, (unsigned int)(to - iov)};
        for (uint64_t at = 0; at < list[i].size; at += AIO_BUFFER_MAX) {
            *to++ = (struct iovec){(char *)list[i].host + at, MIN(AIO_BUFFER_MAX, list[i].size - at)};
        }
    }
    return iov;
}

/* All of the list, or nothing: part of it would make some of the guest's requests slower than others. */
static bool register_memory(AioContext *ctx, AioUring *u, Error **errp)
{
    AioUringTables *t = &u->tables;
    unsigned int n, count = 0, done = 0;
    g_autofree AioMemory *list = aio_memory_list(&n, &t->memory_generation);
    g_autofree struct iovec *iov = NULL;
    uint64_t bytes = 0;
    int ret;

    for (unsigned int i = 0; i < n; i++) {
        count += buffers_of(&list[i]);
        bytes += list[i].size;
    }
    if (!count) {
        return true;
    }
    iov = lay_out(t, list, n, count);
    ret = buffer_table(u, t, count);
    if (ret == 0) {
        ret = fill_buffers(u, iov, count, &done);
        t->n_buffers = MAX(t->n_buffers, done);
    }
    if (ret < 0) {
        drop_buffers(ctx, u);
        t->refused |= AIO_URING_REGISTERED_BUFFERS;
        memory_error(ctx, bytes, -ret, errp);
        return false;
    }
    t->in_force |= AIO_URING_REGISTERED_BUFFERS;
    return true;
}

/* Stop using what @flag says. False if it cannot be dropped yet: then the tables stay stale. */
static bool may_drop(AioUringTables *t, unsigned int flag)
{
    t->in_force &= ~flag;
    t->stale |= t->in_flight != 0;
    return !t->in_flight;
}

static bool update_buffers(AioContext *ctx, AioUring *u, Error **errp)
{
    AioUringTables *t = &u->tables;
    bool want = t->want & AIO_URING_REGISTERED_BUFFERS;

    if (want && ((t->in_force | t->refused) & AIO_URING_REGISTERED_BUFFERS) &&
        t->memory_generation == aio_memory_generation()) {
        return true;
    }
    /* What drop_buffers() could not do is told, and the slots are filled with something else now. */
    if (t->n_buffers) {
        if (!may_drop(t, AIO_URING_REGISTERED_BUFFERS)) {
            return true;
        }
        drop_buffers(ctx, u);
    }
    return !want || register_memory(ctx, u, errp);
}

static const AioUringMemory *find_memory(AioUringTables *t, uintptr_t p)
{
    for (unsigned int i = 0; i < t->n_memory; i++) {
        if (p - t->memory[i].host < t->memory[i].size) {
            t->last = i;
            return &t->memory[i];
        }
    }
    return NULL;
}

int aio_uring_buffer_index(AioContext *ctx, const void *p, size_t bytes)
{
    AioUringTables *t = &((AioUring *)ctx->uring)->tables;
    const AioUringMemory *m = &t->memory[t->last];
    uint64_t at = (uintptr_t)p - m->host;

    if (G_UNLIKELY(at >= m->size)) {
        m = find_memory(t, (uintptr_t)p);
        if (!m) {
            return -1;
        }
        at = (uintptr_t)p - m->host;
    }
    if (bytes > m->size - at || at % AIO_BUFFER_MAX + bytes > AIO_BUFFER_MAX) {
        return -1;
    }
    return (int)(m->first + at / AIO_BUFFER_MAX);
}

/* --- Files --- */

static bool make_files(AioContext *ctx, AioUring *u, Error **errp)
{
    AioUringTables *t = &u->tables;
    struct rlimit limit;
    unsigned int n = AIO_FILE_SLOTS;
    int ret;

    /* The kernel wants the table to be no larger. */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        n = (unsigned int)MIN(n, MAX(limit.rlim_cur, 1));
    }
    ret = make_table(u, IORING_REGISTER_FILES2, n);
    if (ret < 0) {
        t->refused |= AIO_URING_REGISTERED_FILES;
        error_setg_errno(errp, -ret, "Cannot register files with the io_uring of '%s'", ctx->name);
        hint_kernel(errp, -ret);
        return false;
    }
    t->n_files = n;
    t->files = g_new0(AioUringFile, n);
    return true;
}

static int set_file(const AioUring *u, unsigned int slot, int fd)
{
    struct io_uring_rsrc_update2 up = {.offset = slot, .data = (uintptr_t)&fd, .nr = 1};
    int ret = aio_uring_register_call(u->ring.ring_fd, IORING_REGISTER_FILES_UPDATE2, &up, sizeof(up));

    return ret == 0 ? -EIO : MIN(ret, 0);
}

static void forget_file(AioContext *ctx, AioUring *u, unsigned int slot)
{
    AioUringFile *f = &u->tables.files[slot];
    int ret = f->registered ? set_file(u, slot, -1) : 0;

    if (ret < 0) {
        warn_report("The io_uring of '%s' keeps a file open: %s", ctx->name, strerror(-ret));
    }
    *f = (AioUringFile){0};
}

static void drop_files(AioContext *ctx, AioUring *u)
{
    for (unsigned int i = 0; i < u->tables.n_files; i++) {
        forget_file(ctx, u, i);
    }
    aio_files_let_go(ctx);
}

void aio_uring_forget_file(AioContext *ctx, unsigned int slot)
{
    AioUring *u = ctx->uring;

    assert(in_home(ctx));
    if (u && slot < u->tables.n_files) {
        forget_file(ctx, u, slot);
    }
}

static bool update_files(AioContext *ctx, AioUring *u, Error **errp)
{
    AioUringTables *t = &u->tables;
    bool want = t->want & AIO_URING_REGISTERED_FILES;

    if (!want) {
        if (may_drop(t, AIO_URING_REGISTERED_FILES)) {
            drop_files(ctx, u);
        }
        return true;
    }
    if (t->refused & AIO_URING_REGISTERED_FILES) {
        return true;
    }
    if (!t->n_files && !make_files(ctx, u, errp)) {
        return false;
    }
    t->in_force |= AIO_URING_REGISTERED_FILES;
    return true;
}

static void register_file(AioContext *ctx, AioUring *u, unsigned int slot, unsigned int generation, int fd)
{
    AioUringFile *f = &u->tables.files[slot];
    int ret;

    aio_file_hold(slot, ctx);
    ret = set_file(u, slot, fd);
    if (ret < 0) {
        warn_report("Cannot register a file with the io_uring of '%s': %s", ctx->name, strerror(-ret));
        forget_file(ctx, u, slot);
    }
    *f = (AioUringFile){generation, ret == 0};
}

int aio_uring_file_index(AioContext *ctx, const AioFile *file, int fd)
{
    AioUring *u = ctx->uring;
    unsigned int slot = file->slot - 1;
    unsigned int generation = atomic_load_explicit(&((AioFile *)file)->generation, memory_order_acquire);

    if (slot >= u->tables.n_files) {
        return -1;
    }
    if (G_UNLIKELY(u->tables.files[slot].generation != generation)) {
        register_file(ctx, u, slot, generation, fd);
    }
    return u->tables.files[slot].registered ? (int)slot : -1;
}

/* --- Both --- */

/*
 * Make the tables what is wanted, as far as requests in flight allow, without what the kernel refuses: false with @errp
 * set for that, and with a warning if it is both.
 */
static bool update(AioContext *ctx, AioUring *u, Error **errp)
{
    Error *err = NULL;
    bool ok;

    u->tables.stale = false;
    ok = update_buffers(ctx, u, errp);
    if (!update_files(ctx, u, &err)) {
        if (ok) {
            error_propagate(errp, err);
        } else {
            warn_report_err(err);
        }
        ok = false;
    }
    publish(ctx, &u->tables);
    return ok;
}

static void update_and_warn(AioContext *ctx, AioUring *u)
{
    Error *err = NULL;

    if (!update(ctx, u, &err)) {
        warn_report_err(err);
    }
}

unsigned int aio_uring_registered(AioContext *ctx)
{
    AioUring *u = ctx->uring;
    AioUringTables *t = &u->tables;
    bool behind = (t->want & AIO_URING_REGISTERED_BUFFERS) && t->memory_generation != aio_memory_generation();

    t->used = true;
    if (G_UNLIKELY(t->stale || behind)) {
        update_and_warn(ctx, u);
    }
    /* Or requests that use one of the two would put off a change of the other for as long as they keep coming. */
    return G_UNLIKELY(t->stale) ? 0 : t->in_force;
}

void aio_uring_uses_registered(AioContext *ctx, struct io_uring_sqe *sqe)
{
    sqe->user_data |= AIO_COMPLETION_REGISTERED;
    ((AioUring *)ctx->uring)->tables.in_flight++;
}

void aio_uring_registered_done(AioContext *ctx)
{
    AioUring *u = ctx->uring;

    /* At once, as the memory may be wanted back, and no request has to come. */
    if (!--u->tables.in_flight && u->tables.stale) {
        update_and_warn(ctx, u);
    }
}

bool aio_uring_set_registered(AioContext *ctx, unsigned int flags, Error **errp)
{
    AioUring *u = ctx->uring;
    AioUringTables *t = &u->tables;
    unsigned int old = t->want;

    t->want = flags;
    t->stale = true;
    t->refused = 0;
    if (t->used && !update(ctx, u, errp)) {
        t->want = old;
        update(ctx, u, NULL); /* asks for nothing that was refused */
        return false;
    }
    return true;
}

void aio_uring_tables_init(AioContext *ctx)
{
    AioUringTables *t = &((AioUring *)ctx->uring)->tables;

    t->want = ctx->uring_want & AIO_URING_REGISTERED;
    t->stale = t->want;
}

void aio_uring_tables_destroy(AioContext *ctx)
{
    AioUring *u = ctx->uring;
    AioUringTables *t = &u->tables;

    /* The kernel takes the ring apart some time later; files and memory are to be free now. */
    if (t->n_buffers) {
        drop_buffers(ctx, u);
    }
    drop_files(ctx, u);
    g_free(t->files);
    g_free(t->memory);
}
