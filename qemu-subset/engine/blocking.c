/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests done by system calls that block; in worker threads. */
#include "engine/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ZEROES_BYTES 65536
#define ZEROES_IOV 64

static const char zeroes[ZEROES_BYTES] __attribute__((aligned(4096)));

static bool lacks(_Atomic bool *what)
{
    return atomic_load_explicit(what, memory_order_relaxed);
}

static void note_lack(_Atomic bool *what)
{
    atomic_store_explicit(what, true, memory_order_relaxed);
}

static int sync_data(EngineFile *file)
{
    int ret;

    do {
        ret = fdatasync(file->fd);
    } while (ret && errno == EINTR);
    if (ret) {
        ret = -errno;
        engine_note_sync_error(file, ret);
    }
    return ret;
}

static int transfer(EngineRequest *req)
{
    static const struct timespec moment = {.tv_nsec = 1000000};

    while (req->progress < req->bytes) {
        const struct iovec *iov;
        unsigned int niov;
        ssize_t n;

        engine_remaining(req, &iov, &niov);
        if (req->op == ENGINE_READ) {
            n = preadv2(req->file->fd, iov, (int)niov, (off_t)(req->offset + req->progress), 0);
        } else {
            n = pwritev2(req->file->fd, iov, (int)niov, (off_t)(req->offset + req->progress),
                         engine_rw_flags(req));
        }
        switch (engine_judge(req, n < 0 ? -errno : n)) {
        case VERDICT_OVER:
            return req->ret;
        case VERDICT_AGAIN:
            break;
        case VERDICT_WORKER:
            if (req->progress < req->bytes) {
                nanosleep(&moment, NULL); /* it said "try again" too often */
            }
            break;
        }
    }
    /* Only a write that needs one more step comes here. */
    return sync_data(req->file);
}

/* 0 or -errno; -ENOTSUP in all its spellings is -ENOTSUP. */
static int allocate(EngineFile *file, int mode, uint64_t offset, uint64_t bytes)
{
    int ret;

    do {
        ret = fallocate(file->fd, mode, (off_t)offset, (off_t)bytes);
    } while (ret && errno == EINTR);
    if (!ret) {
        return 0;
    }
    switch (errno) {
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOTTY:
    case ENODEV:
        return -ENOTSUP;
    }
    return -errno;
}

static int write_zero_bytes(EngineRequest *req)
{
    while (req->progress < req->bytes) {
        struct iovec iov[ZEROES_IOV];
        uint64_t left = req->bytes - req->progress;
        int niov = 0;
        ssize_t n;

        for (; left && niov < ZEROES_IOV; niov++) {
            iov[niov].iov_base = (void *)zeroes;
            iov[niov].iov_len = MIN(left, ZEROES_BYTES);
            left -= iov[niov].iov_len;
        }
        n = pwritev2(req->file->fd, iov, niov, (off_t)(req->offset + req->progress), 0);
        if (n > 0) {
            req->progress += (uint64_t)n;
        } else if (n == 0) {
            return -ENOSPC;
        } else if (errno != EINTR && errno != EAGAIN) {
            return -errno;
        }
    }
    return 0;
}

static int punch(EngineRequest *req)
{
    EngineFile *file = req->file;
    int ret = -ENOTSUP;

    if (!lacks(&file->no_punch_hole)) {
        ret = allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, req->offset, req->bytes);
        if (ret == -ENOTSUP) {
            note_lack(&file->no_punch_hole);
        }
    }
    return ret;
}

/* Does the range end behind the end of a regular file, so that punching a hole would not be enough? */
static bool grows_file(const EngineRequest *req)
{
    struct stat st;

    return !req->file->is_block_device && !fstat(req->file->fd, &st) && S_ISREG(st.st_mode) &&
           req->offset + req->bytes > (uint64_t)st.st_size;
}

static int zero_range(EngineRequest *req)
{
    EngineFile *file = req->file;
    int mode = FALLOC_FL_ZERO_RANGE | (file->is_block_device ? FALLOC_FL_KEEP_SIZE : 0);
    int ret = -ENOTSUP;

    if (!lacks(&file->no_fallocate_zero)) {
        ret = allocate(file, mode, req->offset, req->bytes);
        if (ret == -ENOTSUP) {
            note_lack(&file->no_fallocate_zero);
        }
    }
    return ret;
}

static int write_zeroes(EngineRequest *req)
{
    int ret = -ENOTSUP;

    if ((req->flags & ENGINE_F_MAY_UNMAP) && !grows_file(req)) {
        ret = punch(req);
    }
    if (ret == -ENOTSUP) {
        ret = zero_range(req);
    }
    if (ret == -ENOTSUP && !req->file->is_block_device) {
        /* A hole that is allocated afterwards, which also makes the file longer where it must. */
        ret = punch(req);
        if (!ret) {
            ret = allocate(req->file, 0, req->offset, req->bytes);
        }
    }
    if (ret == -ENOTSUP && !(req->flags & ENGINE_F_NO_FALLBACK)) {
        ret = write_zero_bytes(req);
    }
    if (!ret && (req->flags & ENGINE_F_FUA)) {
        ret = sync_data(req->file);
    }
    return ret;
}

static int discard(EngineRequest *req)
{
    uint64_t range[2] = {req->offset, req->bytes};
    int ret;

    if (!req->file->is_block_device) {
        return punch(req);
    }
    do {
        ret = ioctl(req->file->fd, BLKDISCARD, range);
    } while (ret && errno == EINTR);
    return !ret ? 0 : errno == EOPNOTSUPP || errno == ENOTTY ? -ENOTSUP : -errno;
}

static int truncate_file(EngineRequest *req)
{
    int ret;

    if (req->file->is_block_device) {
        return -ENOTSUP;
    }
    do {
        ret = ftruncate(req->file->fd, (off_t)req->offset);
    } while (ret && errno == EINTR);
    return ret ? -errno : 0;
}

int engine_work(WorkItem *item)
{
    EngineRequest *req = container_of(item, EngineRequest, work);

    switch ((EngineOp)req->op) {
    case ENGINE_READ:
    case ENGINE_WRITE:
        return transfer(req);
    case ENGINE_FLUSH:
        return sync_data(req->file);
    case ENGINE_WRITE_ZEROES:
        return write_zeroes(req);
    case ENGINE_DISCARD:
        return discard(req);
    case ENGINE_TRUNCATE:
        return truncate_file(req);
    }
    return -EINVAL;
}
