/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rerror= and werror=: what a failed request leads to, the event that tells clients, io-status. */
#include "block/internal.h"

#include "qapi/qapi-events-block.h"

#include <string.h>

static void (*vmstop_hook)(void);

void blk_set_vmstop_hook(void (*hook)(void))
{
    vmstop_hook = hook;
}

void blk_set_on_error(BlockBackend *blk, BlockdevOnError rerror, BlockdevOnError werror)
{
    if (rerror != BLOCKDEV_ON_ERROR_AUTO) {
        blk->rerror = rerror;
    }
    if (werror != BLOCKDEV_ON_ERROR_AUTO) {
        blk->werror = werror;
    }
}

BlockdevOnError blk_on_error(const BlockBackend *blk, bool is_write)
{
    return is_write ? blk->werror : blk->rerror;
}

void blk_iostatus_reset(BlockBackend *blk)
{
    blk->iostatus = BLOCK_DEVICE_IO_STATUS_OK;
}

bool blk_iostatus_visible(const BlockBackend *blk)
{
    return blk->iostatus_enabled && (blk->werror == BLOCKDEV_ON_ERROR_ENOSPC || blk->werror == BLOCKDEV_ON_ERROR_STOP ||
                                     blk->rerror == BLOCKDEV_ON_ERROR_STOP);
}

BlockErrorAction blk_error_action(const BlockBackend *blk, bool is_read, int error)
{
    switch (is_read ? blk->rerror : blk->werror) {
    case BLOCKDEV_ON_ERROR_ENOSPC:
        return error == ENOSPC ? BLOCK_ERROR_ACTION_STOP : BLOCK_ERROR_ACTION_REPORT;
    case BLOCKDEV_ON_ERROR_STOP:
        return BLOCK_ERROR_ACTION_STOP;
    case BLOCKDEV_ON_ERROR_IGNORE:
        return BLOCK_ERROR_ACTION_IGNORE;
    default:
        return BLOCK_ERROR_ACTION_REPORT;
    }
}

typedef struct ErrorReport {
    BlockBackend *blk;
    BlockErrorAction action;
    bool is_read;
    int error;
} ErrorReport;

static void apply(void *opaque)
{
    g_autofree ErrorReport *r = opaque;
    BlockBackend *blk = r->blk;
    g_autofree char *path = blk_dev_path(blk);
    const BlockNode *node = blk_node(blk);
    bool visible = blk_iostatus_visible(blk);

    if (r->action == BLOCK_ERROR_ACTION_STOP && visible && blk->iostatus == BLOCK_DEVICE_IO_STATUS_OK) {
        blk->iostatus = r->error == ENOSPC ? BLOCK_DEVICE_IO_STATUS_NOSPACE : BLOCK_DEVICE_IO_STATUS_FAILED;
    }
    qapi_event_send_block_io_error(path ? path : "", blk_name(blk), node ? node->name : NULL,
                                   r->is_read ? IO_OPERATION_TYPE_READ : IO_OPERATION_TYPE_WRITE, r->action, visible,
                                   r->error == ENOSPC, strerror(r->error));
    if (r->action == BLOCK_ERROR_ACTION_STOP && vmstop_hook) {
        vmstop_hook();
    }
    blk_unref(blk);
}

void blk_error_apply(BlockBackend *blk, BlockErrorAction action, bool is_read, int error)
{
    ErrorReport *r = g_new(ErrorReport, 1);

    *r = (ErrorReport){ blk_ref(blk), action, is_read, error };
    aio_bh_schedule_oneshot(aio_context_main(), apply, r);
}
