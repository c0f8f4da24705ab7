/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the file driver share. */
#ifndef DRIVER_FILE_STATE_H
#define DRIVER_FILE_STATE_H

#include "block/node.h"
#include "engine/engine.h"

/* Byte locks held on an image, for the permissions in use and for those not shared. Bits are BLK_PERM_*. */
typedef struct FileLocks {
    uint32_t used, unshared;           /* bytes that we hold */
    uint32_t kept_used, kept_unshared; /* what to go back to if a change is aborted */
    bool changing;
} FileLocks;

typedef struct FileState {
    EngineFile file;
    EngineKind kind;
    OnOffAuto nonblock; /* x-nonblock; off where it cannot be */
    int writable_fd; /* opened because permissions are about to need it, -1: none */
    char *filename;
    bool is_device; /* host_device */
    bool locking;
    FileLocks locks;
    /* Written by any thread. */
    atomic_uint_fast64_t discards_ok, discards_failed, discarded_bytes;
} FileState;

/*
 * Take the locks for @perm and @shared besides those held, and see whether another process minds: 0, or -EAGAIN or
 * another -errno with @errp set, and nothing has changed.
 */
int file_locks_check(FileLocks *l, int fd, uint32_t perm, uint32_t shared, Error **errp);
/* Release what @perm and @shared do not need. */
void file_locks_commit(FileLocks *l, int fd, uint32_t perm, uint32_t shared);
void file_locks_abort(FileLocks *l, int fd);
/* Unlock on the description behind @fd, which is about to be closed, what is held; *@l stays. */
void file_locks_drop(const FileLocks *l, int fd);
/* Take what is held on another description of the same file, too. 0 or -errno with @errp set. */
int file_locks_copy(const FileLocks *l, int fd, Error **errp);

/*
 * What O_DIRECT on @fd demands of offset and length, and of memory. 0 or -errno with @errp set.
 */
int file_probe_alignment(int fd, bool is_block_device, uint32_t *request, uint32_t *memory, Error **errp);

#endif
