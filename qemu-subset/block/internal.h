/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this room share among themselves. */
#ifndef BLOCK_INTERNAL_H
#define BLOCK_INTERNAL_H

#include "block/backend.h"
#include "loop/coroutine.h"

#define SECTOR_SIZE 512u
/* Leaves room for rounding up to any alignment. */
#define BLOCK_MAX_LENGTH ((uint64_t)INT64_MAX & ~((UINT64_C(1) << 30) - 1))

/* --- node.c --- */
extern ListNode block_all_nodes;
/* Compute node->filename from the node and its children. */
void block_refresh_filename(BlockNode *node);
/* A copy of @v whose leaves are text, as on a command line. */
json_t *block_options_as_text(const json_t *v);
/* The options that define what the node shows, with "driver" and children; new reference. */
json_t *block_full_options(BlockNode *node);

/* --- graph.c --- */
bool block_node_has_context(const BlockNode *node, const AioContext *ctx);
extern const BlockParentOps block_node_parent_ops;

/* --- perm.c --- */
/* Give @c these permissions if nobody minds, and what follows from it below. */
bool block_perm_update(BlockChild *c, uint32_t perm, uint32_t shared, Error **errp);
/* Recompute below @node after a parent has gone; cannot fail. */
void block_perm_refresh(BlockNode *node);

/* --- serial.c --- */
/* Note @req, a write to @node, as in flight in this thread. The caller has seen that no serialising write overlaps. */
void block_track(BlockNode *node, BlockRequest *req);
static inline bool block_serialising(const BlockNode *node)
{
    return atomic_load_explicit(&node->serial.active, memory_order_acquire) != 0;
}
/* Wait until no serialising write of any thread overlaps; block_track() may follow without a yield in between. */
void coroutine_fn block_serial_wait(BlockNode *node, uint64_t offset, uint64_t bytes);

typedef struct SerialRange {
    ListNode link, waiters;
    uint64_t offset, bytes;
} SerialRange;
/* Keep the range for the caller alone: returns when every earlier write to it, of any thread, has ended. */
void coroutine_fn block_serial_begin(BlockNode *node, SerialRange *r, uint64_t offset, uint64_t bytes);
void block_serial_end(BlockNode *node, SerialRange *r);

/* --- detour.c --- */
/* Run @req in a coroutine: whatever the fast path cannot do. */
BlockResult block_detour(BlockNode *node, BlockRequest *req);
/* In a coroutine: any offset, length and memory. 0 or -errno. */
int coroutine_fn block_co_rw(BlockNode *node, BlockOp op, unsigned int flags, uint64_t offset, uint64_t bytes,
                             const struct iovec *iov, unsigned int niov);

/* --- channel.c, backend.c --- */
struct BlockBackend {
    char *name; /* NULL: anonymous */
    _Atomic int refcnt;
    BlockChild *root;
    uint32_t perm, shared;
    const BlockDeviceOps *ops;
    void *dev;
    ListNode channels, all;
    BlockChannel *main_channel; /* for blk_pread() and its like */
    int quiesce;
    bool write_cache;
    atomic_bool account_invalid, account_failed; /* count requests of that kind in the times; read by the homes */
    BlockdevOnError rerror, werror;
    bool iostatus_enabled;
    BlockDeviceIoStatus iostatus;
    BlockAccounting retired; /* of channels that are gone */
};

struct BlockChannel {
    BlockBackend *blk;
    AioContext *ctx;
    BlockNode *node; /* root of the backend; changes while drained */
    ListNode link;
    unsigned int users;
    atomic_bool fua; /* the write cache is off */

    /* Home. */
    bool quiesced;
    /* Written by the home, read by the main thread too. */
    AioCounter in_flight;
    AioCounter bytes[BLOCK_OPS], ops[BLOCK_OPS], failed[BLOCK_OPS], invalid[BLOCK_OPS], merged[BLOCK_OPS];
    AioCounter total_ns[BLOCK_OPS];
    AioCounter wr_highest_offset, last_access_ns;

    /*
     * Main asks by counting up, odd meaning to stop, and the home answers with the number that it obeyed; so an answer to
     * an earlier question is not taken for one to the last.
     */
    AioBH *quiesce_bh;
    atomic_uint quiesce_asked, quiesce_answered;
};

extern ListNode blk_all;
/* Ask the homes of all channels to stop or to go on; the answers come later. Main thread. */
void blk_channels_quiesce(BlockBackend *blk, bool on);
/* Something is in flight or not all homes have stopped yet. Main thread. */
bool blk_channels_busy(const BlockBackend *blk);
/* Tell the channels about another root, write cache setting. Main thread, drained. */
void blk_channels_update(BlockBackend *blk);
/* What permission messages call the backend; g_free() it. */
char *blk_describe(const BlockBackend *blk);
/* query-block shows io-status only if an error could stop the machine. */
bool blk_iostatus_visible(const BlockBackend *blk);
/* QOM path or id of the device, NULL if there is none. */
char *blk_dev_path(const BlockBackend *blk);

/* --- query.c --- */
/* @blk: the backend that uses the node; NULL: the node by itself. */
BlockDeviceInfo *block_device_info(BlockNode *node, const BlockBackend *blk);
BlockInfo *block_info(BlockBackend *blk);
/* Is @blk to be listed? */
bool block_info_visible(const BlockBackend *blk);

#endif
