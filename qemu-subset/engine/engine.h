/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AIO engines: one interface over Linux AIO, io_uring and worker threads. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "loop/registration.h"
#include "loop/worker-pool.h"

#include <sys/uio.h>

typedef enum EngineKind { ENGINE_THREADS, ENGINE_NATIVE, ENGINE_IO_URING, ENGINE_KINDS } EngineKind;

typedef enum EngineOp {
    ENGINE_READ,
    ENGINE_WRITE,
    ENGINE_FLUSH,        /* fdatasync(2) */
    ENGINE_WRITE_ZEROES, /* fallocate(2), or writing zeroes where the file system has no better way */
    ENGINE_DISCARD,      /* punch a hole; -ENOTSUP where impossible */
    ENGINE_TRUNCATE,     /* to offset */
} EngineOp;

#define ENGINE_F_FUA (1u << 0)        /* stable when done: RWF_DSYNC, or followed by fdatasync */
#define ENGINE_F_MAY_UNMAP (1u << 1)  /* WRITE_ZEROES may punch a hole */
#define ENGINE_F_NO_FALLBACK (1u << 2)/* WRITE_ZEROES: -ENOTSUP rather than writing zeroes */

/* An open file as engines see it; the driver owns it and keeps it unchanged while requests are in flight. */
typedef struct EngineFile {
    int fd;
    bool direct;             /* O_DIRECT */
    bool nonblock;           /* O_NONBLOCK: io_uring carries requests out in the thread that submits them */
    bool is_block_device;
    bool writable;
    uint32_t request_align;  /* bytes; offset and length of every request */
    uint32_t memory_align;   /* bytes; addresses and lengths of every iovec */
    uint64_t max_batch;      /* of the node; 0: only the loop's limit */
    /* What the file system was found to lack; written by any thread, only ever set. */
    _Atomic bool no_fallocate_zero, no_punch_hole, no_dsync;
    /*
     * Positive errno of a flush that failed without O_DIRECT, never cleared: the kernel then counts the pages as clean and
     * a second flush would succeed though the data is lost. So all later ones fail like the first.
     */
    _Atomic int lost_writes;
    AioFile registration; /* zero, unless engine_file_open() was called */
} EngineFile;

typedef struct EngineRequest EngineRequest;

/* Calls back in the home of the submitting context, exactly once, never from within engine_submit(). @ret: 0 or -errno. */
typedef void EngineDoneFn(EngineRequest *req, int ret);

struct EngineRequest {
    /* Set by the caller; the iovec array and its memory stay valid until the end of the request. */
    EngineFile *file;
    const struct iovec *iov;
    unsigned int niov; /* 1..IOV_MAX */
    uint8_t op;        /* EngineOp */
    uint8_t flags;     /* ENGINE_F_* */
    uint64_t offset, bytes;
    EngineDoneFn *done;

    /* Private to the engines; zero before the first use, left alone afterwards. */
    int ret;
    uint8_t state; /* debug builds abort on a second or a lost ending */
    uint8_t kind;
    bool dsync; /* the present attempt carries RWF_DSYNC */
    uint64_t progress; /* bytes already transferred: short transfers continue from here */
    int64_t begun_ns, queued_ns; /* read once for all that come together */
    ListNode live_link;
    struct iovec *partial; /* allocated only after a short transfer inside a vector */
    union {
        struct {
            AioCompletion completion;
            FifoNode link;
            uint64_t kernel[8]; /* struct iocb; checked where it is used */
        };
        WorkItem work;
    };
};

typedef enum EngineResult {
    ENGINE_QUEUED, /* done() will be called */
    ENGINE_DONE,   /* over already: the result is in req->ret and done() will not be called */
} EngineResult;

/* Submit @req with the engine @kind in the current thread's context. */
EngineResult engine_submit(EngineKind kind, EngineRequest *req);

/*
 * An engine may keep a file registered with the kernel, beyond close(2). Tell it when @file has been opened for it; when
 * another open file has taken its descriptor's place (requests may be in flight); and before it is closed, with nothing in
 * flight, from a thread with a context, which is polled. Without the first, the file is never registered.
 */
void engine_file_open(EngineKind kind, EngineFile *file);
void engine_file_changed(EngineFile *file);
void engine_file_close(EngineFile *file);

/*
 * Make the engine's state for @ctx ready (home). 0, or -errno with @errp set: not built, refused by the kernel, limits.
 * engine_submit() needs it to have succeeded for this context; engine_attach() is cheap when it already has.
 */
int engine_attach(EngineKind kind, AioContext *ctx, Error **errp);

/*
 * [any] Whether the file system of @fd keeps files in memory, so that a request costs a copy and waits for nothing (tmpfs(5),
 * ramfs). io_uring does not know that, and hands each request to a kernel thread unless the file has O_NONBLOCK.
 */
bool engine_file_in_memory(int fd);

/* [any] "threads", "native", "io_uring"; whether this build has it. */
const char *engine_name(EngineKind kind);
bool engine_built(EngineKind kind);
/* [any] Probe whether the kernel lets us use it, without keeping anything. 0 or -errno with @errp set. */
int engine_probe(EngineKind kind, Error **errp);

#endif
