/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handlers of file descriptors: registration, and the dispatch of those that are ready. */
#include "loop/context.h"

#include <glib.h>

AioHandler *aio_handler_find(AioContext *ctx, int fd)
{
    return (unsigned int)fd < ctx->by_fd_size ? ctx->by_fd[fd] : NULL;
}

static AioHandler *handler_new(AioContext *ctx, int fd)
{
    AioHandler *h = g_new0(AioHandler, 1);

    if ((unsigned int)fd >= ctx->by_fd_size) {
        unsigned int size = MAX((unsigned int)fd + 1, ctx->by_fd_size * 2);

        ctx->by_fd = g_renew(AioHandler *, ctx->by_fd, size);
        memset(ctx->by_fd + ctx->by_fd_size, 0, (size - ctx->by_fd_size) * sizeof(*ctx->by_fd));
        ctx->by_fd_size = size;
    }
    h->fd = fd;
    h->ctx = ctx;
    list_init(&h->ready_link);
    list_init(&h->poll_link);
    list_init(&h->mon_link);
    list_append(&ctx->handlers, &h->link);
    ctx->by_fd[fd] = h;
    return h;
}

void aio_handler_free(AioHandler *h)
{
    list_remove(&h->link);
    g_free(h);
}

static void handler_end_polling(AioHandler *h)
{
    if (h->begun) {
        h->begun = false;
        if (h->end) {
            h->end(h->opaque);
        }
    }
}

static void handler_unlist(AioHandler *h)
{
    list_remove(&h->poll_link);
    h->ps = (AioPollState){0};
}

static void handler_remove(AioContext *ctx, AioHandler *h)
{
    handler_end_polling(h);
    handler_unlist(h);
    list_remove(&h->ready_link);
    ctx->by_fd[h->fd] = NULL;
    h->deleted = true;
    if (h->always) {
        list_remove(&h->mon_link);
    } else {
        ctx->mon->unwatch(ctx, h);
    }
    /* It may be the one that is being dispatched, here or further up the stack: freed when the outermost pass ends. */
    list_remove(&h->link);
    list_append(&ctx->deleted, &h->link);
    if (!ctx->depth) {
        aio_handlers_free_deleted(ctx);
    }
}

void aio_handlers_free_deleted(AioContext *ctx)
{
    AioHandler *h, *next;

    list_for_each_safe(h, next, &ctx->deleted, link) {
        if (!h->armed) {
            aio_handler_free(h);
        }
    }
}

/* A one-shot monitor has @old in the kernel: forget it, and let a new one go on where it was. */
static AioHandler *handler_replace(AioContext *ctx, AioHandler *old)
{
    AioHandler *h, saved = *old;
    bool listed = old->ps.listed;

    ctx->depth++; /* keep @old until its completion arrives */
    handler_remove(ctx, old);
    ctx->depth--;
    h = handler_new(ctx, saved.fd);
    h->begin = saved.begin;
    h->end = saved.end;
    h->poll = saved.poll;
    h->opaque = saved.opaque;
    h->ps = saved.ps;
    if (listed) {
        list_append(&ctx->polled, &h->poll_link);
    }
    return h;
}

void aio_set_fd_handler(AioContext *ctx, int fd, AioHandlerFn *read, AioHandlerFn *write, AioPollFn *poll,
                        AioHandlerFn *poll_ready, void *opaque)
{
    AioHandler *h;
    unsigned int old, events = (read ? POLLIN : 0) | (write ? POLLOUT : 0);

    assert(in_home(ctx) && fd >= 0);
    h = aio_handler_find(ctx, fd);
    if (!events) {
        if (h) {
            handler_remove(ctx, h);
        }
        return;
    }
    if (h && h->armed && h->events != events) {
        h = handler_replace(ctx, h);
    }
    if (!h) {
        h = handler_new(ctx, fd);
    } else if (h->poll && (poll != h->poll || opaque != h->opaque)) {
        handler_end_polling(h);
        handler_unlist(h);
    }
    h->read = read;
    h->write = write;
    h->poll = poll;
    h->poll_ready = poll_ready;
    h->opaque = opaque;
    old = h->events;
    h->events = events;
    ctx->skipped = AIO_PASSES_WITHOUT_LOOK;
    if (events != old && !h->always && !ctx->mon->watch(ctx, h, old)) {
        h->always = true;
        list_append(&ctx->always, &h->mon_link);
    }
}

void aio_set_fd_poll(AioContext *ctx, int fd, AioHandlerFn *begin, AioHandlerFn *end)
{
    AioHandler *h = aio_handler_find(ctx, fd);

    assert(in_home(ctx));
    if (h) {
        handler_end_polling(h);
        h->begin = begin;
        h->end = end;
    }
}

void aio_handler_ready(AioContext *ctx, AioHandler *h, unsigned int revents)
{
    h->revents |= revents;
    if (!list_linked(&h->ready_link)) {
        list_append(&ctx->ready, &h->ready_link);
    }
}

/* While the kernel lacks memory the loop asks a thousand times a second, which neither delays nor costs much. */
#define SOON_NS 1000000

int64_t aio_soon(int64_t timeout_ns)
{
    return timeout_ns < 0 ? SOON_NS : MIN(timeout_ns, SOON_NS);
}

int64_t aio_handler_look(AioContext *ctx, AioHandler *h, int64_t timeout_ns)
{
    struct pollfd p = {.fd = h->fd, .events = (short)h->events};

    aio_stat_add(&ctx->stats.wait_calls, 1);
    if (poll(&p, 1, 0) > 0) {
        aio_handler_ready(ctx, h, (unsigned int)p.revents);
        return 0;
    }
    return aio_soon(timeout_ns);
}

/* A callback may remove the handler (the memory stays until the outermost pass ends) or poll the context. */
static void handler_dispatch(AioContext *ctx, AioHandler *h)
{
    unsigned int revents = h->revents;
    bool poll_said_yes = h->poll_said_yes;

    atomic_store_explicit(&ctx->stats.handler_fd, h->fd, memory_order_relaxed);
    list_remove(&h->ready_link);
    h->revents = 0;
    h->poll_said_yes = false;
    if (h->poll) {
        h->ps.hit = true;
        if (!h->ps.listed) {
            h->ps.listed = true;
            list_append(&ctx->polled, &h->poll_link);
        }
    }
    if (poll_said_yes) {
        if (h->poll_ready) {
            h->poll_ready(h->opaque);
        } else if (h->read) {
            revents |= POLLIN;
        }
    }
    if ((revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) && !h->deleted && h->read) {
        h->read(h->opaque);
    }
    /* A hang-up is for the reader; without one somebody has to be told, as the kernel goes on reporting it. */
    if (h->write && !h->deleted && ((revents & (POLLOUT | POLLERR | POLLNVAL)) || ((revents & POLLHUP) && !h->read))) {
        h->write(h->opaque);
    }
}

bool aio_handlers_dispatch(AioContext *ctx)
{
    bool progress = false;

    while (!list_empty(&ctx->ready)) {
        handler_dispatch(ctx, list_first(&ctx->ready, AioHandler, ready_link));
        progress = true;
    }
    return progress;
}

void aio_handlers_destroy(AioContext *ctx)
{
    AioHandler *h, *next;

    list_for_each_safe(h, next, &ctx->handlers, link) {
        handler_end_polling(h);
        aio_handler_free(h);
    }
    list_for_each_safe(h, next, &ctx->deleted, link) {
        aio_handler_free(h);
    }
    list_init(&ctx->ready);
    list_init(&ctx->polled);
    list_init(&ctx->always);
    g_clear_pointer(&ctx->by_fd, g_free);
    ctx->by_fd_size = 0;
}
