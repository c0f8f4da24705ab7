/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding out what O_DIRECT on a file demands, by trying. */
#include "driver/file-state.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What the kernel's XFS answers to its ioctl 30; its header is not everywhere. */
typedef struct XfsDirectLimits {
    uint32_t memory, min_bytes, max_bytes;
} XfsDirectLimits;
#define XFS_DIRECT_LIMITS _IOR('X', 30, XfsDirectLimits)

static const uint32_t candidates[] = { 1, 512, 1024, 2048, 4096 };

/* Only EINVAL speaks of alignment; any other failure is not to be settled here. */
static bool read_accepted(int fd, void *buf, size_t bytes)
{
    return TEMP_FAILURE_RETRY(pread(fd, buf, bytes, 0)) >= 0 || errno != EINVAL;
}

static uint32_t ask_kernel(int fd, bool is_block_device)
{
    XfsDirectLimits xfs;
    uint32_t found = 0;
    int sector;

    if (is_block_device && ioctl(fd, BLKSSZGET, &sector) == 0 && sector > 0) {
        found = (uint32_t)sector;
    }
    if (ioctl(fd, XFS_DIRECT_LIMITS, &xfs) == 0) {
        found = xfs.min_bytes;
    }
    return found;
}

/*
 * The smallest candidate that is good as a length, or if @bytes is not 0 as a distance from aligned memory at which that
 * many are read; @unknown if even 1 is. 0: none.
 */
static uint32_t smallest_accepted(int fd, char *buf, uint32_t bytes, uint32_t unknown)
{
    for (size_t i = 0; i < G_N_ELEMENTS(candidates); i++) {
        uint32_t n = candidates[i];

        if (bytes ? read_accepted(fd, buf + n, bytes) : read_accepted(fd, buf, n)) {
            return n > 1 ? n : unknown;
        }
    }
    return 0;
}

int file_probe_alignment(int fd, bool is_block_device, uint32_t *request, uint32_t *memory, Error **errp)
{
    uint32_t max = (uint32_t)MAX(4096, sysconf(_SC_PAGESIZE));
    struct statfs st;
    void *buf;

    if (fstatfs(fd, &st) == 0 && st.f_type == NFS_SUPER_MAGIC) {
        *request = *memory = 1;
        return 0;
    }
    if (posix_memalign(&buf, max, 2 * (size_t)max)) {
        error_setg(errp, "Could not allocate memory to probe the alignment");
        return -ENOMEM;
    }
    *request = ask_kernel(fd, is_block_device);
    if (!*request) {
        *request = smallest_accepted(fd, buf, 0, max);
    }
    *memory = *request ? smallest_accepted(fd, buf, MAX(*request, max), *request) : 0;
    free(buf);
    if (!*memory) {
        error_setg(errp, "Could not find working O_DIRECT alignment");
        error_append_hint(errp, "Try cache.direct=off\n");
        return -EINVAL;
    }
    return 0;
}
