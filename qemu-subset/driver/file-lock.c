/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks that keep two processes from using one image in ways that conflict: byte ranges of open file descriptions. */
#include "driver/file-state.h"

#include <errno.h>
#include <fcntl.h>

/* One byte for each permission in use, and one for each that is not shared; others do the same. */
#define LOCK_USED_BASE 100
#define LOCK_UNSHARED_BASE 200

static const char *const perm_name[] = { "consistent read", "write", "write unchanged", "resize" };

static int set_lock(int fd, off_t start, short type)
{
    struct flock fl = { .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1 };

    return TEMP_FAILURE_RETRY(fcntl(fd, F_OFD_SETLK, &fl)) < 0 ? -errno : 0;
}

/* 1: somebody else holds that byte. */
static int test_lock(int fd, off_t start)
{
    struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = 1 };

    if (fcntl(fd, F_OFD_GETLK, &fl) < 0) {
        return -errno;
    }
    return fl.l_type != F_UNLCK;
}

/* Add the bits of @want to *@held. */
static int take(int fd, off_t base, uint32_t *held, uint32_t want, Error **errp)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(perm_name); i++) {
        uint32_t bit = 1u << i;

        if ((want & bit) && !(*held & bit)) {
            int ret = set_lock(fd, base + i, F_RDLCK);

            if (ret < 0) {
                error_setg_errno(errp, -ret, "Failed to lock byte %d", (int)(base + i));
                return ret;
            }
            *held |= bit;
        }
    }
    return 0;
}

/* Give up those bits of *@held that are not in @keep. */
static void release(int fd, off_t base, uint32_t *held, uint32_t keep)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(perm_name); i++) {
        if (*held & ~keep & (1u << i)) {
            set_lock(fd, base + i, F_UNLCK);
        }
    }
    *held &= keep;
}

static int look_for_conflict(int fd, off_t base, uint32_t bits, const char *shared_word, Error **errp)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(perm_name); i++) {
        int ret = bits & (1u << i) ? test_lock(fd, base + i) : 0;

        if (ret) {
            error_setg(errp, "Failed to get %s\"%s\" lock", shared_word, perm_name[i]);
            return ret < 0 ? ret : -EAGAIN;
        }
    }
    return 0;
}

int file_locks_check(FileLocks *l, int fd, uint32_t perm, uint32_t shared, Error **errp)
{
    uint32_t unshared = ~shared & BLK_PERM_ALL;
    int ret;

    if (!l->changing) {
        l->kept_used = l->used;
        l->kept_unshared = l->unshared;
        l->changing = true;
    }
    /* Take first, look then: of two processes that do so at the same time at least one sees the other. */
    ret = take(fd, LOCK_USED_BASE, &l->used, perm, errp);
    if (ret == 0) {
        ret = take(fd, LOCK_UNSHARED_BASE, &l->unshared, unshared, errp);
    }
    if (ret == 0) {
        ret = look_for_conflict(fd, LOCK_UNSHARED_BASE, perm & ~l->kept_used, "", errp);
    }
    if (ret == 0) {
        ret = look_for_conflict(fd, LOCK_USED_BASE, unshared & ~l->kept_unshared, "shared ", errp);
    }
    if (ret < 0) {
        file_locks_abort(l, fd);
    }
    return ret;
}

void file_locks_commit(FileLocks *l, int fd, uint32_t perm, uint32_t shared)
{
    release(fd, LOCK_USED_BASE, &l->used, perm);
    release(fd, LOCK_UNSHARED_BASE, &l->unshared, ~shared & BLK_PERM_ALL);
    l->changing = false;
}

void file_locks_abort(FileLocks *l, int fd)
{
    if (l->changing) {
        release(fd, LOCK_USED_BASE, &l->used, l->kept_used);
        release(fd, LOCK_UNSHARED_BASE, &l->unshared, l->kept_unshared);
        l->changing = false;
    }
}

void file_locks_drop(const FileLocks *l, int fd)
{
    uint32_t used = l->used, unshared = l->unshared;

    release(fd, LOCK_USED_BASE, &used, 0);
    release(fd, LOCK_UNSHARED_BASE, &unshared, 0);
}

int file_locks_copy(const FileLocks *l, int fd, Error **errp)
{
    uint32_t used = 0, unshared = 0;
    int ret = take(fd, LOCK_USED_BASE, &used, l->used, errp);

    return ret < 0 ? ret : take(fd, LOCK_UNSHARED_BASE, &unshared, l->unshared, errp);
}
