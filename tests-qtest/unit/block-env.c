/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the block layer's unit tests share. */
#include "unit/block-env.h"

#include "base/iov.h"
#include "block/commands.h"
#include "loop/coroutine.h"
#include "qapi/keyval.h"
#include "qapi/qapi-visit-block.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- The memory driver --- */

#define MEM_DEFAULTS                                                                                                  \
    (MemDisk)                                                                                                         \
    {                                                                                                                 \
        .fail_op = -1, .error = -EIO, .limits = { .request_alignment = 1 }                                            \
    }
MemDisk mem_next = { .fail_op = -1, .error = -EIO, .limits = { .request_alignment = 1 } };

typedef struct MemState {
    MemDisk disk;
    int64_t size;
} MemState;

static __thread GQueue *waiting;

MemDisk *mem_disk(BlockNode *node)
{
    while (node->file) {
        node = node->file->node;
    }
    return &((MemState *)node->state)->disk;
}

static int mem_open(BlockNode *node, const BlockdevOptions *opts, Error **errp)
{
    MemState *s = node->state;

    s->size = opts->u.null_aio.has_size ? opts->u.null_aio.size : 1 << 20;
    s->disk = mem_next;
    s->disk.data = g_malloc0((size_t)(s->size + 65535) & ~(size_t)65535);
    mem_next = MEM_DEFAULTS;
    return 0;
}

static void mem_close(BlockNode *node)
{
    g_free(mem_disk(node)->data);
}

static int64_t mem_get_length(BlockNode *node)
{
    return ((MemState *)node->state)->size;
}

static void mem_refresh_limits(BlockNode *node, Error **errp)
{
    node->limits = mem_disk(node)->limits;
}

static int mem_truncate(BlockNode *node, uint64_t bytes, Error **errp)
{
    MemState *s = node->state;

    if (bytes > (uint64_t)s->size) {
        error_setg(errp, "no more memory");
        return -ENOSPC;
    }
    s->size = (int64_t)bytes;
    return 0;
}

/* What every request that reaches a driver may rely on. */
static void check_request(const BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                          unsigned int niov)
{
    const BlockLimits *l = &node->limits;

    if (op == BLOCK_FLUSH) {
        return;
    }
    g_assert_cmpuint(offset % l->request_alignment, ==, 0);
    g_assert_cmpuint(bytes % l->request_alignment, ==, 0);
    g_assert_cmpuint(bytes, >, 0);
    if (op == BLOCK_READ || op == BLOCK_WRITE) {
        g_assert_cmpuint(iov_size(iov, niov), ==, bytes);
        g_assert_cmpuint(niov, <=, l->max_iov);
        g_assert(!l->max_transfer || bytes <= l->max_transfer);
        g_assert(l->required_mem_alignment <= 1 || iov_aligned(iov, niov, l->required_mem_alignment));
    }
}

static int transfer(BlockNode *node, BlockOp op, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                    unsigned int niov, unsigned int flags)
{
    MemDisk *d = mem_disk(node);
    uint64_t largest = d->largest;

    check_request(node, op, offset, bytes, iov, niov);
    d->calls[op]++;
    d->largest = MAX(largest, bytes);
    d->last_flags = flags;
    if (d->fail_op == (int)op) {
        return d->error;
    }
    switch (op) {
    case BLOCK_READ:
        iov_from_buf(iov, niov, 0, d->data + offset, bytes);
        break;
    case BLOCK_WRITE:
        iov_to_buf(iov, niov, 0, d->data + offset, bytes);
        break;
    case BLOCK_WRITE_ZEROES:
        memset(d->data + offset, 0, bytes);
        break;
    case BLOCK_DISCARD:
        memset(d->data + offset, 0xdd, bytes);
        break;
    default:
        break;
    }
    return 0;
}

static void end_bh(void *opaque)
{
    BlockRequest *req = opaque;

    block_request_end(req, transfer(*(BlockNode **)req->driver, req->op, req->offset, req->bytes, req->iov, req->niov,
                                    req->flags));
}

static BlockResult mem_submit(BlockNode *node, BlockRequest *req)
{
    MemDisk *d = mem_disk(node);

    *(BlockNode **)req->driver = node;
    if (d->manual) {
        if (!waiting) {
            waiting = g_queue_new();
        }
        g_queue_push_tail(waiting, req);
        return BLOCK_QUEUED;
    }
    if (d->asynchronous) {
        aio_bh_schedule_oneshot(aio_context_current(), end_bh, req);
        return BLOCK_QUEUED;
    }
    req->ret = transfer(node, req->op, req->offset, req->bytes, req->iov, req->niov, req->flags);
    return BLOCK_DONE;
}

unsigned int mem_waiting(void)
{
    return waiting ? g_queue_get_length(waiting) : 0;
}

BlockOp mem_complete(int ret)
{
    BlockRequest *req = g_queue_pop_head(waiting);
    BlockOp op;

    g_assert(req);
    op = req->op;
    if (ret >= 0) {
        ret = transfer(*(BlockNode **)req->driver, op, req->offset, req->bytes, req->iov, req->niov, req->flags);
    }
    block_request_end(req, ret);
    return op;
}

static void coroutine_fn pause_if_asked(BlockNode *node)
{
    if (mem_disk(node)->asynchronous) {
        aio_co_schedule(aio_context_current(), coroutine_self());
        coroutine_yield();
    }
}

static int coroutine_fn mem_co_preadv(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                                      unsigned int niov)
{
    pause_if_asked(node);
    return transfer(node, BLOCK_READ, offset, bytes, iov, niov, 0);
}

static int coroutine_fn mem_co_pwritev(BlockNode *node, uint64_t offset, uint64_t bytes, const struct iovec *iov,
                                       unsigned int niov, unsigned int flags)
{
    pause_if_asked(node);
    return transfer(node, BLOCK_WRITE, offset, bytes, iov, niov, flags);
}

static int coroutine_fn mem_co_flush(BlockNode *node)
{
    pause_if_asked(node);
    return transfer(node, BLOCK_FLUSH, 0, 0, NULL, 0, 0);
}

#define MEM_DRIVER(name)                                                                                              \
    .format_name = name, .state_size = sizeof(MemState), .is_protocol = true, .open = mem_open, .close = mem_close,   \
    .get_length = mem_get_length, .refresh_limits = mem_refresh_limits, .truncate = mem_truncate

static const BlockDriver mem_driver = { MEM_DRIVER("null-aio"), .submit = mem_submit };
/* In place of host_device. */
static const BlockDriver mem_co_driver = {
    MEM_DRIVER("null-co"), .co_preadv = mem_co_preadv, .co_pwritev = mem_co_pwritev, .co_flush = mem_co_flush,
};

static const BlockDriver *const test_drivers[] = {
    &block_driver_file, &block_driver_host_device, &mem_driver, &mem_co_driver, &block_driver_raw, NULL,
};

/* --- The program --- */

void env_init(int *argc, char ***argv)
{
    AioContextConfig cfg = { .name = "main", .uring_flags = AIO_URING_AUTO, .is_main = true };

    g_test_init(argc, argv, NULL);
    aio_context_set_main(aio_context_new(&cfg, &error_abort));
    block_register_drivers(test_drivers);
}

int env_run(void)
{
    int ret = g_test_run();

    g_assert_null(block_node_next(NULL));
    g_assert_null(blk_next(NULL));
    if (waiting) {
        g_queue_free(waiting);
    }
    aio_context_shutdown(aio_context_main());
    aio_context_unref(aio_context_main());
    return ret;
}

static BlockNode *open_text(const char *text, Error **errp)
{
    g_autoptr(json_t) json = *text == '{' ? qjson_parse(text, errp) : keyval_parse(text, "driver", NULL, errp);
    g_autoptr(Visitor) v = NULL;
    g_autoptr(BlockdevOptions) o = NULL;

    if (!json) {
        return NULL;
    }
    v = visitor_input_new(json, *text == '{' ? QAPI_JSON : QAPI_KEYVAL);
    return visit_type_BlockdevOptions(v, NULL, &o, errp) ? block_open(o, errp) : NULL;
}

BlockNode *env_open(const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return open_text(text, &error_abort);
}

char *env_open_error(const char *fmt, ...)
{
    g_autofree char *text = NULL;
    g_autoptr(Error) err = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_assert_null(open_text(text, &err));
    return g_strdup(error_get_pretty(err));
}

BlockBackend *env_backend(BlockNode *node)
{
    uint32_t perm = BLK_PERM_CONSISTENT_READ | (node->read_only ? 0 : BLK_PERM_WRITE);
    BlockBackend *blk = blk_new(perm, BLK_PERM_ALL);

    blk_insert_node(blk, node, &error_abort);
    block_node_unref(node);
    return blk;
}

/* The file has no name any more when this returns, so that nothing stays behind, however the program ends. */
char *env_file(uint64_t bytes)
{
    g_autofree char *path = g_strdup_printf("%s/block-test-XXXXXX", g_get_tmp_dir());
    int fd = mkstemp(path);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(ftruncate(fd, (off_t)bytes), ==, 0);
    return g_strdup_printf("/proc/self/fd/%d", fd);
}

void env_unlink(char *path)
{
    close(atoi(strrchr(path, '/') + 1));
    g_free(path);
}

bool env_engine_usable(const char *aio)
{
    char *path = env_file(4096);
    g_autofree char *text = g_strdup_printf("driver=file,cache.direct=on,aio=%s,filename=%s", aio, path);
    Error *err = NULL;
    BlockNode *node = open_text(text, &err);

    if (node) {
        block_node_unref(node);
    } else {
        g_test_skip(error_get_pretty(err));
        error_free(err);
    }
    env_unlink(path);
    return node != NULL;
}

/* --- Threads --- */

struct EnvThread {
    GThread *thread;
    AioContext *ctx;
    _Atomic bool ready, stop;
};

static void *thread_main(void *opaque)
{
    EnvThread *t = opaque;
    AioContextConfig cfg = { .name = "test", .uring_flags = AIO_URING_AUTO };

    t->ctx = aio_context_new(&cfg, &error_abort);
    t->ready = true;
    while (!t->stop) {
        aio_poll(t->ctx, true);
    }
    if (waiting) {
        g_queue_free(waiting);
    }
    aio_context_shutdown(t->ctx);
    return NULL;
}

EnvThread *env_thread_start(void)
{
    EnvThread *t = g_new0(EnvThread, 1);

    t->thread = g_thread_new("test", thread_main, t);
    while (!t->ready) {
        g_usleep(100);
    }
    return t;
}

static void stop_bh(void *opaque)
{
    ((EnvThread *)opaque)->stop = true;
}

void env_thread_stop(EnvThread *t)
{
    aio_bh_schedule_oneshot(t->ctx, stop_bh, t);
    g_thread_join(t->thread);
    aio_context_unref(t->ctx);
    g_free(t);
}

AioContext *env_thread_context(EnvThread *t)
{
    return t->ctx;
}

/* --- Requests --- */

static void request_done(BlockRequest *req)
{
    EnvRequest *e = container_of(req, EnvRequest, req);

    g_assert_false(e->over);
    e->over = true;
}

typedef struct SubmitCall {
    BlockChannel *c;
    EnvRequest *e;
} SubmitCall;

static void submit_in_home(void *opaque)
{
    SubmitCall *call = opaque;

    if (blk_submit(call->c, &call->e->req) == BLOCK_DONE) {
        call->e->over = true;
    }
}

void env_submit(BlockChannel *c, EnvRequest *e, BlockOp op, uint64_t offset, uint64_t bytes, void *buf)
{
    SubmitCall call = { c, e };

    e->over = false;
    e->iov[0] = (struct iovec){ buf, bytes };
    e->req = (BlockRequest){
        .op = op, .offset = offset, .bytes = bytes, .iov = e->iov, .niov = buf ? 1 : 0, .done = request_done,
    };
    aio_run_in_home(blk_channel_context(c), submit_in_home, &call);
}

int env_wait(EnvRequest *e)
{
    while (!e->over) {
        aio_poll(aio_context_current(), false);
    }
    return e->req.ret;
}
