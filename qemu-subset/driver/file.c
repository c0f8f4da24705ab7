/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file and host_device: images in files and on devices of the host, through one of the AIO engines. */
#include "driver/drivers.h"
#include "driver/file-state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

G_STATIC_ASSERT(sizeof(EngineRequest) <= sizeof(((BlockRequest *)NULL)->driver));
G_STATIC_ASSERT((int)BLOCK_F_FUA == (int)ENGINE_F_FUA);
G_STATIC_ASSERT((int)BLOCK_F_MAY_UNMAP == (int)ENGINE_F_MAY_UNMAP);
G_STATIC_ASSERT((int)BLOCK_F_NO_FALLBACK == (int)ENGINE_F_NO_FALLBACK);

/* --- Requests --- */

static inline BlockRequest *request_of(EngineRequest *er)
{
    return container_of((uint64_t *)er, BlockRequest, driver[0]);
}

static void file_done(EngineRequest *er, int ret)
{
    block_request_end(request_of(er), ret);
}

static void count_discard(FileState *s, uint64_t bytes, int ret)
{
    if (ret < 0) {
        atomic_fetch_add(&s->discards_failed, 1);
    } else {
        atomic_fetch_add(&s->discards_ok, 1);
        atomic_fetch_add(&s->discarded_bytes, bytes);
    }
}

static void discard_done(EngineRequest *er, int ret)
{
    count_discard(container_of(er->file, FileState, file), er->bytes, ret);
    block_request_end(request_of(er), ret);
}

static BlockResult file_submit(BlockNode *node, BlockRequest *req)
{
    static const uint8_t op[BLOCK_OPS] = {
        [BLOCK_READ] = ENGINE_READ,
        [BLOCK_WRITE] = ENGINE_WRITE,
        [BLOCK_FLUSH] = ENGINE_FLUSH,
        [BLOCK_DISCARD] = ENGINE_DISCARD,
        [BLOCK_WRITE_ZEROES] = ENGINE_WRITE_ZEROES,
    };
    FileState *s = node->state;
    EngineRequest *er = (EngineRequest *)req->driver;

    er->file = &s->file;
    er->iov = req->iov;
    er->niov = req->niov;
    er->op = op[req->op];
    er->flags = req->flags;
    er->offset = req->offset;
    er->bytes = req->bytes;
    er->done = req->op == BLOCK_DISCARD ? discard_done : file_done;
    if (engine_submit(s->kind, er) == ENGINE_QUEUED) {
        return BLOCK_QUEUED;
    }
    if (req->op == BLOCK_DISCARD) {
        count_discard(s, req->bytes, er->ret);
    }
    req->ret = er->ret;
    return BLOCK_DONE;
}

static int file_attach_context(BlockNode *node, AioContext *ctx, Error **errp)
{
    return engine_attach(((FileState *)node->state)->kind, ctx, errp);
}

/* --- Opening --- */

static bool choose_engine(FileState *s, const BlockNode *node, const BlockdevOptionsFile *o, Error **errp)
{
    const char *name = o->has_aio ? BlockdevAioOptions_str(o->aio) : engine_name(ENGINE_THREADS);

    s->kind = ENGINE_THREADS;
    while (strcmp(engine_name(s->kind), name)) {
        s->kind++;
    }
    if (s->kind == ENGINE_NATIVE && engine_built(s->kind) && !node->direct) {
        error_setg(errp, "aio=native was specified, but it requires cache.direct=on, which was not specified.");
        return false;
    }
    if (engine_probe(s->kind, errp) < 0) {
        return false;
    }
    s->nonblock = o->has_x_nonblock ? o->x_nonblock : ON_OFF_AUTO_AUTO;
    if (s->kind != ENGINE_IO_URING || s->is_device) {
        if (s->nonblock == ON_OFF_AUTO_ON) {
            error_setg(errp, "x-nonblock=on requires aio=io_uring and a regular file");
            return false;
        }
        s->nonblock = ON_OFF_AUTO_OFF;
    }
    s->file.max_batch = o->has_aio_max_batch ? (uint64_t)o->aio_max_batch : 0;
    return true;
}

static int open_flags(const BlockNode *node, bool writable)
{
    return O_CLOEXEC | (writable ? O_RDWR : O_RDONLY) | (node->direct ? O_DIRECT : 0);
}

/* After open(2), which O_NONBLOCK would make fail where a lease has to be broken. 0, or -errno with @errp set. */
static int set_nonblock(FileState *s, int fd, Error **errp)
{
    int flags;

    if (s->file.fd < 0) { /* else requests are reading it, and another description of the file has what the first one had */
        s->file.nonblock = s->nonblock == ON_OFF_AUTO_ON || (s->nonblock == ON_OFF_AUTO_AUTO && engine_file_in_memory(fd));
    }
    if (!s->file.nonblock) {
        return 0;
    }
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        int err = errno;

        error_setg_errno(errp, err, "Could not set O_NONBLOCK on '%s'", s->filename);
        return -err;
    }
    return 0;
}

/* A file descriptor, or -errno with @errp set. */
static int open_fd(const BlockNode *node, const char *filename, bool writable, Error **errp)
{
    static const char fdset[] = "/dev/fdset/";
    int fd, err;

    if (!*filename) {
        error_setg(errp, "The '%s' block driver requires a file name", node->drv->format_name);
        return -EINVAL;
    }
    if (g_str_has_prefix(filename, fdset)) {
        /* Nothing can add to a set, so there is none. */
        bool number = g_ascii_isdigit(filename[strlen(fdset)]);

        error_setg(errp, number ? "Failed to find fdset %s" : "Could not parse fdset %s", filename);
        return -ENOENT;
    }
    fd = open(filename, open_flags(node, writable));
    err = errno;
    if (fd >= 0) {
        int ret = set_nonblock(node->state, fd, errp);

        if (ret < 0) {
            close(fd);
        }
        return ret < 0 ? ret : fd;
    }
    if (err == EINVAL && node->direct) {
        int plain = open(filename, open_flags(node, writable) & ~O_DIRECT);

        if (plain >= 0) {
            close(plain);
            error_setg(errp, "Could not open '%s': filesystem does not support O_DIRECT", filename);
            return -err;
        }
    }
    error_setg_errno(errp, err, "Could not open '%s'", filename);
    return -err;
}

/* A block device may open for writing and still not take it. */
static int check_device_writable(int fd, Error **errp)
{
    struct stat st;
    int read_only;

    if (fstat(fd, &st) == 0 && S_ISBLK(st.st_mode) && ioctl(fd, BLKROGET, &read_only) == 0 && read_only) {
        error_setg(errp, "The device is not writable");
        return -EACCES;
    }
    return 0;
}

static int check_type(FileState *s, Error **errp)
{
    struct stat st;

    if (fstat(s->file.fd, &st) < 0) {
        int err = errno;

        error_setg_errno(errp, err, "Could not stat file");
        return -err;
    }
    s->file.is_block_device = S_ISBLK(st.st_mode);
    if (!s->is_device && !S_ISREG(st.st_mode)) {
        error_setg(errp, "'file' driver requires '%s' to be a regular file", s->filename);
        return -EINVAL;
    }
    if (s->is_device && !S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode)) {
        error_setg(errp, "'host_device' driver requires '%s' to be either a character or block device", s->filename);
        return -EINVAL;
    }
    return s->file.writable ? check_device_writable(s->file.fd, errp) : 0;
}

static void file_close(BlockNode *node)
{
    FileState *s = node->state;

    if (s->file.fd >= 0) {
        engine_file_close(&s->file);
        close(s->file.fd);
    }
    g_free(s->filename);
}

static int file_open_common(BlockNode *node, const BlockdevOptionsFile *o, bool is_device, Error **errp)
{
    FileState *s = node->state;
    int ret = -EINVAL;

    s->file.fd = s->writable_fd = -1;
    s->is_device = is_device;
    s->filename = g_strdup(o->filename);
    s->locking = !o->has_locking || o->locking != ON_OFF_AUTO_OFF;
    if (!choose_engine(s, node, o, errp)) {
        goto fail;
    }
    /* With auto-read-only the first writer opens it for writing, and sees the error if that is refused. */
    s->file.writable = !node->read_only && !node->auto_read_only;
    ret = s->file.fd = open_fd(node, s->filename, s->file.writable, errp);
    if (ret < 0) {
        goto fail;
    }
    ret = check_type(s, errp);
    if (ret < 0) {
        goto fail;
    }
    s->file.direct = node->direct;
    s->file.request_align = s->file.memory_align = 1;
    if (node->direct) {
        ret = file_probe_alignment(s->file.fd, s->file.is_block_device, &s->file.request_align, &s->file.memory_align, errp);
        if (ret < 0) {
            goto fail;
        }
    }
    engine_file_open(s->kind, &s->file);
    return 0;

fail:
    file_close(node);
    return ret;
}

static int file_open(BlockNode *node, const BlockdevOptions *opts, Error **errp)
{
    return file_open_common(node, &opts->u.file, false, errp);
}

static int host_device_open(BlockNode *node, const BlockdevOptions *opts, Error **errp)
{
    return file_open_common(node, &opts->u.host_device, true, errp);
}

/* --- Lengths and limits --- */

static int64_t file_get_length(BlockNode *node)
{
    FileState *s = node->state;
    uint64_t bytes;
    off_t end;

    if (s->file.is_block_device && ioctl(s->file.fd, BLKGETSIZE64, &bytes) == 0) {
        return (int64_t)bytes;
    }
    end = lseek(s->file.fd, 0, SEEK_END);
    return end < 0 ? -errno : end;
}

static int64_t file_get_allocated_size(BlockNode *node)
{
    struct stat st;

    return fstat(((FileState *)node->state)->file.fd, &st) < 0 ? -errno : (int64_t)st.st_blocks * 512;
}

typedef struct Resize {
    EngineRequest er;
    bool over;
} Resize;

static void resize_done(EngineRequest *er, int ret)
{
    container_of(er, Resize, er)->over = true;
}

/* In a worker thread, since giving back many blocks takes long: the main loop and what it serves go on meanwhile. */
static int resize_file(FileState *s, uint64_t bytes, Error **errp)
{
    Resize r = {.er = {.file = &s->file, .op = ENGINE_TRUNCATE, .offset = bytes, .done = resize_done}};
    int ret = engine_attach(ENGINE_THREADS, aio_context_main(), errp);

    if (ret < 0) {
        return ret;
    }
    if (engine_submit(ENGINE_THREADS, &r.er) == ENGINE_QUEUED) {
        AIO_WAIT_WHILE(!r.over);
    }
    if (r.er.ret < 0) {
        error_setg_errno(errp, -r.er.ret, "Failed to resize the file");
    }
    return r.er.ret;
}

static int file_truncate(BlockNode *node, uint64_t bytes, Error **errp)
{
    FileState *s = node->state;

    if (s->is_device) {
        int64_t length = file_get_length(node);

        if (length < 0 || bytes > (uint64_t)length) {
            error_setg(errp, "Cannot grow device files");
            return -EINVAL;
        }
        return 0;
    }
    return resize_file(s, bytes, errp);
}

static void file_refresh_limits(BlockNode *node, Error **errp)
{
    const FileState *s = node->state;
    BlockLimits *l = &node->limits;

    l->request_alignment = s->file.request_align;
    l->min_mem_alignment = s->file.memory_align;
    l->required_mem_alignment = s->file.memory_align;
    l->opt_mem_alignment = MAX(s->file.memory_align, (uint32_t)sysconf(_SC_PAGESIZE));
}

/* --- Permissions --- */

static void drop_writable_fd(FileState *s)
{
    if (s->writable_fd >= 0) {
        close(s->writable_fd);
        s->writable_fd = -1;
    }
}

/* Open for writing if @perm wants that for the first time. */
static int prepare_writing(const BlockNode *node, FileState *s, uint32_t perm, Error **errp)
{
    int ret;

    if (!(perm & (BLK_PERM_WRITE | BLK_PERM_WRITE_UNCHANGED | BLK_PERM_RESIZE)) || s->file.writable || node->read_only ||
        s->writable_fd >= 0) {
        return 0;
    }
    ret = s->writable_fd = open_fd(node, s->filename, true, errp);
    return ret < 0 ? ret : check_device_writable(ret, errp);
}

static int prepare_locks(const BlockNode *node, FileState *s, uint32_t perm, uint32_t shared, Error **errp)
{
    Error *err = NULL;
    int ret;

    if (!s->locking) {
        return 0;
    }
    ret = file_locks_check(&s->locks, s->file.fd, perm, node->force_share ? BLK_PERM_ALL : shared, &err);
    if (ret < 0) {
        error_append_hint(&err, "Is another process using the image [%s]?\n", s->filename);
        error_propagate(errp, err);
        return ret;
    }
    return s->writable_fd >= 0 ? file_locks_copy(&s->locks, s->writable_fd, errp) : 0;
}

static void file_abort_perm(BlockNode *node)
{
    FileState *s = node->state;

    drop_writable_fd(s);
    file_locks_abort(&s->locks, s->file.fd);
}

static int file_check_perm(BlockNode *node, uint32_t perm, uint32_t shared, Error **errp)
{
    FileState *s = node->state;
    int ret = prepare_writing(node, s, perm, errp);

    if (ret >= 0) {
        ret = prepare_locks(node, s, perm, shared, errp);
    }
    if (ret < 0) {
        file_abort_perm(node);
        return ret;
    }
    return 0;
}

/*
 * Under the number that requests of other threads may be using at this moment. The new description has the locks, too; the old
 * one gives them up, as a ring may go on using it for a while.
 */
static void commit_writing(FileState *s)
{
    Error *err = NULL;

    file_locks_drop(&s->locks, s->file.fd);
    if (TEMP_FAILURE_RETRY(dup3(s->writable_fd, s->file.fd, O_CLOEXEC)) < 0) {
        /* Permissions cannot be refused any more: writes fail, and who next asks for the permission tries again. */
        error_report("Could not make '%s' writable: %s", s->filename, strerror(errno));
        if (file_locks_copy(&s->locks, s->file.fd, &err) < 0) {
            error_report_err(err);
        }
    } else {
        s->file.writable = true;
        engine_file_changed(&s->file);
    }
    drop_writable_fd(s);
}

static void file_set_perm(BlockNode *node, uint32_t perm, uint32_t shared)
{
    FileState *s = node->state;

    if (s->writable_fd >= 0) {
        commit_writing(s);
    }
    if (s->locking) {
        file_locks_commit(&s->locks, s->file.fd, perm, node->force_share ? BLK_PERM_ALL : shared);
    }
}

/* --- What clients are shown --- */

static json_t *file_strong_options(BlockNode *node)
{
    return json_pack("{s:s}", "filename", ((FileState *)node->state)->filename);
}

static char *file_plain_filename(BlockNode *node)
{
    return g_strdup(((FileState *)node->state)->filename);
}

static BlockStatsSpecific *file_specific_stats(BlockNode *node)
{
    FileState *s = node->state;
    BlockStatsSpecific *stats = g_new0(BlockStatsSpecific, 1);
    BlockStatsSpecificFile *f = s->is_device ? &stats->u.host_device : &stats->u.file;

    stats->driver = s->is_device ? BLOCKDEV_DRIVER_HOST_DEVICE : BLOCKDEV_DRIVER_FILE;
    f->discard_nb_ok = atomic_load(&s->discards_ok);
    f->discard_nb_failed = atomic_load(&s->discards_failed);
    f->discard_bytes_ok = atomic_load(&s->discarded_bytes);
    return stats;
}

static ImageInfoSpecific *file_specific_info(BlockNode *node)
{
    ImageInfoSpecific *info = g_new0(ImageInfoSpecific, 1);

    info->type = IMAGE_INFO_SPECIFIC_TYPE_FILE;
    info->u.file.data = g_new0(ImageInfoSpecificFile, 1);
    return info;
}

#define FILE_DRIVER(name, open_fn)                                                                                    \
    {                                                                                                                 \
        .format_name = name, .state_size = sizeof(FileState), .is_protocol = true, .open = open_fn,                   \
        .close = file_close, .submit = file_submit, .attach_context = file_attach_context,                            \
        .get_length = file_get_length, .get_allocated_size = file_get_allocated_size, .truncate = file_truncate,      \
        .refresh_limits = file_refresh_limits, .check_perm = file_check_perm, .set_perm = file_set_perm,              \
        .abort_perm = file_abort_perm, .strong_options = file_strong_options,                                         \
        .plain_filename = file_plain_filename, .specific_stats = file_specific_stats,                                 \
        .specific_info = file_specific_info,                                                                          \
    }

const BlockDriver block_driver_file = FILE_DRIVER("file", file_open);
const BlockDriver block_driver_host_device = FILE_DRIVER("host_device", host_device_open);
