/* SPDX-License-Identifier: GPL-2.0-or-later */
/* null-co and null-aio: disks without data, for measuring what is above them. */
#include "driver/drivers.h"

#include "base/iov.h"
#include "loop/timer.h"

#define NULL_DEFAULT_SIZE (1LL << 30)

typedef struct NullState {
    int64_t length;
    int64_t latency_ns;
    bool read_zeroes, has_size, has_read_zeroes;
} NullState;

static int null_open(BlockNode *node, const BlockdevOptions *opts, Error **errp)
{
    /* Both drivers have the same options. */
    const BlockdevOptionsNull *o = opts->driver == BLOCKDEV_DRIVER_NULL_CO ? &opts->u.null_co : &opts->u.null_aio;
    NullState *s = node->state;

    s->has_size = o->has_size;
    s->length = o->has_size ? o->size : NULL_DEFAULT_SIZE;
    s->latency_ns = o->has_latency_ns ? (int64_t)o->latency_ns : 0;
    s->has_read_zeroes = o->has_read_zeroes;
    s->read_zeroes = o->has_read_zeroes && o->read_zeroes;
    if (s->latency_ns < 0) {
        error_setg(errp, "latency-ns is invalid");
        return -EINVAL;
    }
    if (s->length < 0) {
        error_setg(errp, "size is invalid");
        return -EINVAL;
    }
    return 0;
}

static void null_close(BlockNode *node)
{
}

static void null_timer(void *opaque)
{
    block_request_end(opaque, 0);
}

/* @expire_ns: absolute; 0: in the same pass of the loop. */
static BlockResult end_later(BlockRequest *req, int64_t expire_ns)
{
    AioTimer *t = (AioTimer *)req->driver;

    G_STATIC_ASSERT(sizeof(*t) <= sizeof(req->driver));
    aio_timer_init(t, aio_context_current(), CLOCK_TYPE_REALTIME, null_timer, req);
    aio_timer_mod_ns(t, expire_ns);
    return BLOCK_QUEUED;
}

static inline BlockResult null_submit(NullState *s, BlockRequest *req, bool at_once)
{
    if (req->op == BLOCK_READ && s->read_zeroes) {
        iov_memset(req->iov, req->niov, 0, 0, req->bytes);
    }
    if (G_UNLIKELY(s->latency_ns)) {
        int64_t now = clock_get_ns(CLOCK_TYPE_REALTIME);

        return end_later(req, s->latency_ns < INT64_MAX - now ? now + s->latency_ns : INT64_MAX);
    }
    if (!at_once) {
        return end_later(req, 0);
    }
    req->ret = 0;
    return BLOCK_DONE;
}

static BlockResult null_co_submit(BlockNode *node, BlockRequest *req)
{
    return null_submit(node->state, req, true);
}

static BlockResult null_aio_submit(BlockNode *node, BlockRequest *req)
{
    return null_submit(node->state, req, false);
}

static int64_t null_get_length(BlockNode *node)
{
    return ((NullState *)node->state)->length;
}

static int64_t null_get_allocated_size(BlockNode *node)
{
    return 0;
}

static void null_refresh_limits(BlockNode *node, Error **errp)
{
    node->limits.request_alignment = 1;
    node->limits.min_mem_alignment = 512;
    node->limits.opt_mem_alignment = 4096;
}

static json_t *null_strong_options(BlockNode *node)
{
    const NullState *s = node->state;
    json_t *o = json_object();

    if (s->has_size) {
        json_object_set_new(o, "size", json_integer(s->length));
    }
    if (s->has_read_zeroes) {
        json_object_set_new(o, "read-zeroes", json_boolean(s->read_zeroes));
    }
    return o;
}

static char *null_plain_filename(BlockNode *node)
{
    const NullState *s = node->state;

    return s->has_size || s->has_read_zeroes ? NULL : g_strconcat(node->drv->format_name, "://", NULL);
}

#define NULL_DRIVER(name, submit_fn)                                                                                  \
    {                                                                                                                 \
        .format_name = name, .state_size = sizeof(NullState), .is_protocol = true, .open = null_open,                 \
        .close = null_close, .submit = submit_fn, .get_length = null_get_length,                                      \
        .get_allocated_size = null_get_allocated_size, .refresh_limits = null_refresh_limits,                         \
        .strong_options = null_strong_options, .plain_filename = null_plain_filename,                                 \
    }

const BlockDriver block_driver_null_co = NULL_DRIVER("null-co", null_co_submit);
const BlockDriver block_driver_null_aio = NULL_DRIVER("null-aio", null_aio_submit);
