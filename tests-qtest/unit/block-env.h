/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the block layer's unit tests share: a main loop, threads, temporary files and a driver that does as told. */
#ifndef UNIT_BLOCK_ENV_H
#define UNIT_BLOCK_ENV_H

#include "block/backend.h"
#include "driver/drivers.h"

#include <glib.h>

/* Main loop and driver table; before g_test_run(). Instead of null-aio there is the memory driver, see below. */
void env_init(int *argc, char ***argv);
/* g_test_run() and cleaning up. */
int env_run(void);

/* --- Nodes --- */

/* Open "driver=...,..." or JSON; error_abort on failure. The caller owns the reference. */
BlockNode *env_open(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* The same; the message (and NULL) when it fails. */
char *env_open_error(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* A backend on @node (takes the reference) that reads and writes. */
BlockBackend *env_backend(BlockNode *node);

/* A name of a temporary file of @bytes; env_unlink() gives it up and frees the name. */
char *env_file(uint64_t bytes);
void env_unlink(char *path);
/* Whether this build, the kernel and the temporary directory let a file be opened with @aio and O_DIRECT; else the test is
 * marked as skipped. */
bool env_engine_usable(const char *aio);

/* --- The memory driver: driver=null-aio,size=N in these programs --- */

typedef struct MemDisk {
    uint8_t *data; /* of size bytes, rounded up to 64 KiB */
    BlockLimits limits;
    bool manual;          /* requests wait for mem_complete() */
    bool asynchronous;    /* else they end in a bottom half; neither: at once */
    bool own_coroutines;  /* the node has co_* functions and no submit() */
    int error;            /* what the next failing requests end with */
    int fail_op;          /* BlockOp that fails, -1: none */
    _Atomic unsigned int calls[BLOCK_OPS];
    _Atomic uint64_t largest; /* bytes of one request */
    _Atomic unsigned int last_flags;
} MemDisk;

/* Settings for the next one to be opened; back to the defaults afterwards. */
extern MemDisk mem_next;
MemDisk *mem_disk(BlockNode *node);
/* Requests of the calling thread that wait. */
unsigned int mem_waiting(void);
/* End the oldest waiting request of the calling thread; its op. */
BlockOp mem_complete(int ret);

/* --- Threads with a loop --- */

typedef struct EnvThread EnvThread;
EnvThread *env_thread_start(void);
void env_thread_stop(EnvThread *t);
AioContext *env_thread_context(EnvThread *t);

/* --- Requests --- */

typedef struct EnvRequest {
    BlockRequest req;
    struct iovec iov[8];
    _Atomic bool over;
} EnvRequest;

/* Submit to @c in its home; ends in e->over. @buf may be NULL. */
void env_submit(BlockChannel *c, EnvRequest *e, BlockOp op, uint64_t offset, uint64_t bytes, void *buf);
/* Poll the calling thread's loop until @e is over, and return its result. */
int env_wait(EnvRequest *e);

#endif
