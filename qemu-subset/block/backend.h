/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BlockBackend: what a device or export holds; counts requests in flight, applies policy, accounts. */
#ifndef BLOCK_BACKEND_H
#define BLOCK_BACKEND_H

#include "block/node.h"

typedef struct BlockBackend BlockBackend;

typedef struct BlockAccounting {
    uint64_t bytes[BLOCK_OPS], ops[BLOCK_OPS], failed[BLOCK_OPS], invalid[BLOCK_OPS], merged[BLOCK_OPS];
    uint64_t total_ns[BLOCK_OPS];
    uint64_t wr_highest_offset;
    int64_t last_access_ns;
} BlockAccounting;

/*
 * A device's side. All calls come in the main thread, but for the two that say otherwise.
 */
typedef struct BlockDeviceOps {
    /* Owner of @c's thread: stop taking new requests off the queue / go on. Called in the home of the channel. */
    void (*channel_quiesce)(void *dev, BlockChannel *c);
    void (*channel_resume)(void *dev, BlockChannel *c);
    void (*resized)(void *dev);
    /* QOM path or id for query-block and messages; g_free() it. */
    char *(*get_path)(void *dev);
} BlockDeviceOps;

/* --- Life; main thread --- */
BlockBackend *blk_new(uint32_t perm, uint32_t shared);
/* With a name that query-block lists (-drive id=); fails with QEMU's text on a duplicate. */
bool blk_set_name(BlockBackend *blk, const char *name, Error **errp);
/* Make it anonymous, as drive_del does: nobody finds it any more. */
void blk_clear_name(BlockBackend *blk);
const char *blk_name(const BlockBackend *blk);
BlockBackend *blk_ref(BlockBackend *blk);
void blk_unref(BlockBackend *blk);
BlockBackend *blk_by_name(const char *name);
BlockBackend *blk_next(BlockBackend *blk); /* NULL begins */
int blk_insert_node(BlockBackend *blk, BlockNode *node, Error **errp);
void blk_remove_node(BlockBackend *blk);
BlockNode *blk_node(const BlockBackend *blk);
bool blk_set_perm(BlockBackend *blk, uint32_t perm, uint32_t shared, Error **errp);
/* One device at a time; -EBUSY. Switches on io-status. */
int blk_attach_dev(BlockBackend *blk, const BlockDeviceOps *ops, void *dev);
void blk_detach_dev(BlockBackend *blk, void *dev);
void *blk_dev(const BlockBackend *blk);
uint64_t blk_length(const BlockBackend *blk);
bool blk_writable(const BlockBackend *blk);
/* Guest-visible write cache: off makes every write FUA. */
void blk_set_write_cache(BlockBackend *blk, bool on);
bool blk_write_cache(const BlockBackend *blk);
/* "auto" keeps what is set: report and enospc, or what -drive said. */
void blk_set_on_error(BlockBackend *blk, BlockdevOnError rerror, BlockdevOnError werror);
BlockdevOnError blk_on_error(const BlockBackend *blk, bool is_write);
/* Whether requests that the guest built wrongly, or that failed, count in idle time and total times; true at first. */
void blk_set_accounting(BlockBackend *blk, bool invalid, bool failed);
void blk_accounting(const BlockBackend *blk, bool *invalid, bool *failed);
/* What query-block reports; set by the error policy, reset by cont. */
void blk_iostatus_reset(BlockBackend *blk);

/* --- Channels: the per-thread side of a backend; counters without atomics --- */

/* The channel of @blk for @ctx, made on first use; attaches the drivers below to @ctx. Main thread. NULL with @errp. */
BlockChannel *blk_channel_get(BlockBackend *blk, AioContext *ctx, Error **errp);
/* Nothing in flight. Main thread, and not from the done() of a request of this channel. */
void blk_channel_put(BlockChannel *c);
AioContext *blk_channel_context(const BlockChannel *c);

/*
 * Submit in the home of the channel. Counts it in flight until it ends; accounts bytes and latency. The device's
 * done() sees the raw result: policy is decided by blk_error_action().
 */
BlockResult blk_submit(BlockChannel *c, BlockRequest *req);
unsigned int blk_channel_in_flight(const BlockChannel *c);
/* True while the backend is drained: the device must not submit. Home. */
bool blk_channel_quiesced(const BlockChannel *c);
/* A request that never reached the graph because the guest built it wrongly. Home. */
void blk_account_invalid(BlockChannel *c, BlockOp op);
/* @n further requests of the guest were part of the one that has just ended with @ret. Home. */
void blk_account_merged(BlockChannel *c, BlockOp op, unsigned int n, int ret);

/* BlockErrorAction is the type that clients see; short names for its values. */
#define BLOCK_ERROR_REPORT BLOCK_ERROR_ACTION_REPORT
#define BLOCK_ERROR_IGNORE BLOCK_ERROR_ACTION_IGNORE
#define BLOCK_ERROR_STOP BLOCK_ERROR_ACTION_STOP
/* [any] What rerror/werror say of @error (positive errno). */
BlockErrorAction blk_error_action(const BlockBackend *blk, bool is_read, int error);
/* [any] Carry it out: BLOCK_IO_ERROR, io-status, and for STOP the run state, in the main thread. */
void blk_error_apply(BlockBackend *blk, BlockErrorAction action, bool is_read, int error);

/* Sum over all channels. Main thread. */
void blk_stats(const BlockBackend *blk, BlockAccounting *out);

/* Main thread: stop all channels' users and wait until nothing is in flight; nests. */
void blk_drained_begin(BlockBackend *blk);
void blk_drained_end(BlockBackend *blk);

/* Called by blk_error_apply() in the main thread to stop the machine; guest/ sets it once. */
void blk_set_vmstop_hook(void (*hook)(void));

/* The handler-less helper for monitors and tools: from the main thread, polls until done. 0 or -errno. */
int blk_pread(BlockBackend *blk, uint64_t offset, uint64_t bytes, void *buf);
int blk_pwrite(BlockBackend *blk, uint64_t offset, uint64_t bytes, const void *buf, unsigned int flags);
int blk_flush(BlockBackend *blk);

#endif
