/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens files of a feigned file system with the file-posix of a tree. */
#define _GNU_SOURCE
#include "checks.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>

static int fdset_fd = -1, flag_calls;
static long fs_type;    /* 0: fstatfs() fails */

static int fake_fstatfs(int fd, struct statfs *fs)
{
    if (!fs_type) {
        errno = EIO;
        return -1;
    }
    fs->f_type = fs_type;
    return 0;
}
#define fstatfs fake_fstatfs

static int strstart(const char *text, const char *prefix, const char **rest)
{
    assert(!rest);
    return g_str_has_prefix(text, prefix);
}

static int qemu_open(const char *path, int flags, Error **errp)
{
    return strstart(path, "/dev/fdset/", NULL) ? dup(fdset_fd)
                                               : open(path, flags);
}

/* The two names that releases have for it */
static int fcntl_setfl(int fd, int flag)
{
    flag_calls++;
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | flag) < 0 ? -errno : 0;
}
#define qemu_fcntl_addfl fcntl_setfl

#include "block/file-posix.c"

static bool nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    CHECK(flags >= 0);
    return flags & O_NONBLOCK;
}

static void opened(const char *path, long type, bool io_uring, bool want)
{
    BDRVRawState s = { .use_linux_io_uring = io_uring };
    Error *error = NULL;
    int fd, flags;

    fs_type = type;
    flag_calls = 0;
    CHECK(!raw_open_common(&s, path, &error) && !error);
    CHECK(nonblocking(s.fd) == want);
    CHECK(flag_calls == want);

    /* Same access, so the new descriptor shares what is open */
    flags = O_RDONLY;
    fd = raw_reconfigure_getfd(&s, path, &flags, &error);
    CHECK(fd >= 0 && fd != s.fd && nonblocking(fd) == want);
    close(fd);

    /* Other access, so the file is opened once more */
    flags = O_RDWR;
    fd = raw_reconfigure_getfd(&s, path, &flags, &error);
    CHECK(fd >= 0 && fd != s.fd && nonblocking(fd) == want);
    CHECK(flags == O_RDWR && s.open_flags == O_RDONLY);
    close(fd);
    close(s.fd);
}

int main(void)
{
    int file = memfd_create("file", MFD_CLOEXEC);
    char path[40];

    CHECK(file >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    opened(path, TMPFS_MAGIC, true, true);
    opened(path, RAMFS_MAGIC, true, true);
    opened(path, TMPFS_MAGIC, false, false);
    opened(path, XFS_SUPER_MAGIC, true, false);
    opened(path, 0, true, false);
    opened("/dev/null", TMPFS_MAGIC, true, false);

    /* Nothing reached the open file that the path was made from */
    CHECK(!nonblocking(file));
    fdset_fd = file;
    opened("/dev/fdset/3", TMPFS_MAGIC, true, false);
    return 0;
}
