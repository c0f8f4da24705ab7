/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Block nodes, their drivers and the graph that they form. */
#ifndef BLOCK_NODE_H
#define BLOCK_NODE_H

#include "block/request.h"
#include "qapi/qapi-types-block.h"

#include <jansson.h>
#include <pthread.h>

/* --- Permissions: what a parent uses, and what it lets other parents use --- */
#define BLK_PERM_CONSISTENT_READ (1u << 0)
#define BLK_PERM_WRITE (1u << 1)
#define BLK_PERM_WRITE_UNCHANGED (1u << 2)
#define BLK_PERM_RESIZE (1u << 3)
#define BLK_PERM_ALL 0xfu

typedef struct BlockDriver BlockDriver;
typedef struct BlockChild BlockChild;

typedef struct BlockLimits {
    uint32_t request_alignment; /* offset and length, bytes, power of two */
    uint32_t min_mem_alignment; /* memory, bytes: what suits; reported */
    uint32_t opt_mem_alignment;
    uint32_t required_mem_alignment; /* what the driver cannot do without: others are bounced; 0 or 1: nothing */
    uint32_t max_iov;
    uint64_t max_transfer;     /* bytes; 0: unlimited */
    uint64_t max_pdiscard, pdiscard_alignment;
    uint64_t max_pwrite_zeroes, pwrite_zeroes_alignment;
} BlockLimits;

typedef struct BlockNodeContext {
    AioContext *ctx;
    unsigned int users;
} BlockNodeContext;

/* Writes that must not overlap others, because they are a read and a write: see serial.c. */
typedef struct BlockSerial {
    _Atomic unsigned int active; /* read without the lock by every write */
    pthread_mutex_t lock; /* glib's is opaque to the thread sanitizer */
    ListNode ranges;
} BlockSerial;

/* Main thread only unless stated; the fields that the I/O path reads change only while the node is drained. */
struct BlockNode {
    const BlockDriver *drv;
    void *state; /* drv->state_size bytes, zeroed */
    char name[32];
    char *filename;    /* as query-block shows it: plain, or json:{...} */
    bool read_only, direct, no_flush, writeback, auto_read_only, force_share;
    bool discard_unmap;
    uint8_t detect_zeroes; /* BlockdevDetectZeroesOptions */
    uint64_t total_bytes;  /* multiple of 512 */
    BlockLimits limits;
    uint64_t forward_offset; /* where the first byte of a forwarding node lies in its child */
    BlockChild *file; /* the child that raw-like drivers forward to; NULL for protocols */
    ListNode children, parents, all; /* BlockChild by sibling / by parent list; the list of every node */
    int refcnt;
    int quiesce; /* drained sections that hold it */
    bool monitor_owned; /* made by blockdev-add and not yet deleted */
    bool probed;        /* raw because nothing else was recognised: sector 0 must not start to look like another format */
    bool text_options;  /* json: file names show values as the text that they were given as */
    GArray *contexts;   /* BlockNodeContext: who may submit; changed under serial.lock */
    BlockSerial serial; /* serial.c */
};

/*
 * A driver fills one way of doing I/O: submit() for those that forward or complete asynchronously without a stack of
 * their own; the co_* set for formats, which the generic layer runs in a coroutine of the submitting thread.
 */
struct BlockDriver {
    const char *format_name;
    size_t state_size;
    bool is_protocol; /* no file child; "filename" or nothing */
    /* submit() only moves a request on to node->file: alignment, splitting and serialising are left to that node. */
    bool forwards;

    /* @opts is the branch of the union for this driver. On failure the state has been cleaned by the driver itself. */
    int (*open)(BlockNode *node, const BlockdevOptions *opts, Error **errp);
    void (*close)(BlockNode *node);

    /* I/O path, any thread with a context; alignment and bounds have been checked against node->limits. */
    BlockResult (*submit)(BlockNode *node, BlockRequest *req);
    int (*co_preadv)(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, unsigned int niov);
    int (*co_pwritev)(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov, unsigned int niov,
                      unsigned int flags);
    int (*co_pwrite_zeroes)(BlockNode *node, uint64_t offset, uint64_t bytes, unsigned int flags);
    int (*co_pdiscard)(BlockNode *node, uint64_t offset, uint64_t bytes);
    int (*co_flush)(BlockNode *node);

    /* Make the driver ready for requests from @ctx; home of @ctx. Nothing to undo. NULL if nothing is needed. */
    int (*attach_context)(BlockNode *node, AioContext *ctx, Error **errp);

    /* Main thread, node drained. Bytes or -errno. */
    int64_t (*get_length)(BlockNode *node);
    int64_t (*get_allocated_size)(BlockNode *node);
    int (*truncate)(BlockNode *node, uint64_t bytes, Error **errp);
    void (*refresh_limits)(BlockNode *node, Error **errp);
    /* Permissions on the driver's own resource (file locks): prepare may fail; exactly one of commit/abort follows. */
    int (*check_perm)(BlockNode *node, uint32_t perm, uint32_t shared, Error **errp);
    void (*set_perm)(BlockNode *node, uint32_t perm, uint32_t shared);
    void (*abort_perm)(BlockNode *node);
    /* What the driver needs from its child when its own parents need @perm/@shared. NULL: the same. */
    void (*child_perm)(BlockNode *node, BlockChild *c, uint32_t perm, uint32_t shared, uint32_t *nperm, uint32_t *nshared);
    /*
     * Those options that decide which data the node shows (filename, offset, size), for the json: filename; a new object
     * without "driver" and children. NULL: none. And the plain filename for it; NULL if no plain one tells it all.
     */
    json_t *(*strong_options)(BlockNode *node);
    char *(*plain_filename)(BlockNode *node);
    /* For query-blockstats' "driver-specific", for "format-specific" of images; NULL: none. */
    BlockStatsSpecific *(*specific_stats)(BlockNode *node);
    ImageInfoSpecific *(*specific_info)(BlockNode *node);
};

/* How a parent takes part in what happens to its child. Main thread. */
typedef struct BlockParentOps {
    /* "block device 'X'" or "node 'X'", for permission errors; g_free() it. */
    char *(*describe)(BlockChild *c);
    /* Stop submitting, and report whether requests are still in flight. Calls nest. */
    void (*drained_begin)(BlockChild *c);
    bool (*drained_poll)(BlockChild *c);
    void (*drained_end)(BlockChild *c);
    void (*resized)(BlockChild *c);
} BlockParentOps;

struct BlockChild {
    BlockNode *node;
    const char *role; /* "file", "backing", "root" */
    const BlockParentOps *ops;
    void *parent; /* BlockNode or BlockBackend, as ops knows */
    uint32_t perm, shared;
    ListNode in_parent, in_node; /* parent's children, node's parents */
};

/* --- Opening and finding; main thread --- */

/* Open a node from validated options, children first. New reference, or NULL with @errp set. */
BlockNode *block_open(const BlockdevOptions *opts, Error **errp);
/* The same for a node whose format was guessed. */
BlockNode *block_open_probed(const BlockdevOptions *opts, Error **errp);
/*
 * A child of @parent that is being opened: a reference to a node, or a definition, which inherits read-only and cache
 * options of @parent where it says nothing.
 */
BlockNode *block_open_ref(BlockNode *parent, const BlockdevRef *ref, Error **errp);
BlockNode *block_node_ref(BlockNode *node);
void block_node_unref(BlockNode *node);
/* At program end: drop the monitor's reference to every node. */
void block_close_all(void);
/* By node-name; NULL if there is none. */
BlockNode *block_node_find(const char *name);
/* By node-name or backend name, with QEMU's error text. */
BlockNode *block_lookup(const char *device, const char *node_name, Error **errp);
/* Every node, newest first: pass NULL to begin. */
BlockNode *block_node_next(BlockNode *node);

/* Driver table (driver/table.c gives it once at start); NULL-terminated. */
void block_register_drivers(const BlockDriver *const *table);
const BlockDriver *block_find_driver(const char *format_name);

/* --- Graph; main thread, affected nodes drained --- */
BlockChild *block_attach_child(BlockNode *child, const char *role, const BlockParentOps *ops, void *parent,
                               ListNode *parent_list, uint32_t perm, uint32_t shared, Error **errp);
void block_detach_child(BlockChild *c);
/* For drivers that forward to one child of theirs: attaches as node->file with child_perm() decided permissions. */
int block_attach_file(BlockNode *node, BlockNode *child, Error **errp);
bool block_child_set_perm(BlockChild *c, uint32_t perm, uint32_t shared, Error **errp);

/* Quiesce @node and every parent above it, wait for their requests; sections nest. */
void block_drained_begin(BlockNode *node);
void block_drained_end(BlockNode *node);
void block_drain_all_begin(void);
void block_drain_all_end(void);

/* Change the length, tell parents. 0 or -errno with @errp set. */
int block_truncate(BlockNode *node, uint64_t bytes, Error **errp);
/* Let @ctx submit to @node and what is below; counts. Main thread. */
int block_attach_context(BlockNode *node, AioContext *ctx, Error **errp);
void block_detach_context(BlockNode *node, AioContext *ctx);
/* Recompute limits and length from the children up. */
int block_refresh(BlockNode *node, Error **errp);

/* --- I/O path; any thread with a context --- */

/* Pass @req to @node: checks bounds and alignment, takes the detour where they demand it. */
BlockResult block_submit(BlockNode *node, BlockRequest *req);
/*
 * From a coroutine or outside of one (then polls the current context): 0 or -errno. Outside of a channel's context only
 * in the main thread.
 */
int block_rw(BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov, unsigned int niov,
             unsigned int flags);
/* Memory suited for requests of @node; free() it. NULL when out of memory. */
void *block_buffer_alloc(BlockNode *node, size_t bytes);

#endif
