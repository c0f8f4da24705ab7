/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: registry, frontends, buffered output and input. */
#include "monitor/chardev-private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static ListNode all = {&all, &all};

/* How long an exiting process waits for a reader that does not read. */
#define FLUSH_TIMEOUT_MS 1000

/* A peer that leaves so many bytes unread is not read itself: what it asks for would only make them more. */
#define UNREAD_PAUSE (16u << 20)

/* How long a frontend may work on input in one pass of the main loop. Many commands last less, and nobody feels the delay. */
#define TURN_NS 2000000

/* How soon held input is looked at again. */
#define HOLD_NS 1000000

static bool hold_all;
static AioTimer hold_timer;
static int64_t (*turn_clock)(void);

static void update_watch(Chardev *c);

/* Standard streams stay open: they are not ours. */
static void close_fds(Chardev *c)
{
    AioContext *ctx = aio_context_main();
    int in = c->in_fd, out = c->out_fd;

    c->in_fd = c->out_fd = -1;
    c->watching_write = false;
    if (in >= 0) {
        aio_set_fd_handler(ctx, in, NULL, NULL, NULL, NULL, NULL);
    }
    if (out >= 0 && out != in) {
        aio_set_fd_handler(ctx, out, NULL, NULL, NULL, NULL, NULL);
    }
    if (in > 2) {
        close(in);
    }
    if (out > 2 && out != in) {
        close(out);
    }
}

static guint unread(const Chardev *c)
{
    return c->pending->len - c->taken;
}

/* Gives the memory back, which an empty array would keep. */
static void forget_pending(Chardev *c)
{
    g_byte_array_free(c->pending, TRUE);
    c->pending = g_byte_array_new();
    c->taken = 0;
}

/* @n more bytes of the output are with the peer. What is left moves only when it is the smaller part. */
static void take_pending(Chardev *c, guint n)
{
    c->taken += n;
    if (c->taken >= unread(c)) {
        g_byte_array_remove_range(c->pending, 0, c->taken);
        c->taken = 0;
    }
}

static void disconnect(Chardev *c)
{
    close_fds(c);
    forget_pending(c);
    g_byte_array_set_size(c->rest, 0);
    c->more = c->hung_up = false;
    if (c->fe && c->fe->event) {
        c->fe->event(c->fe_opaque, CHARDEV_CLOSED);
    }
    if (c->backend->disconnected) {
        c->backend->disconnected(c);
    }
}

static bool must_hold(void)
{
    return hold_all || aio_poll_is_nested(aio_context_main());
}

static void arm_hold_timer(void)
{
    aio_timer_mod_ns(&hold_timer, clock_get_ns(CLOCK_TYPE_REALTIME) + HOLD_NS);
}

static void hold_over(void *opaque)
{
    Chardev *c;

    if (must_hold()) {
        arm_hold_timer();
        return;
    }
    list_for_each(c, &all, link) {
        if (!c->held) {
            continue;
        }
        c->held = false;
        if (c->hung_up) {
            error_report("chardev '%s': too much was left unread, hanging up", c->label);
            disconnect(c);
        } else {
            update_watch(c);
        }
    }
}

/* Not watched meanwhile: a level-triggered descriptor would keep the nested loop from sleeping. */
static void hold(Chardev *c)
{
    if (!hold_timer.fn) {
        aio_timer_init(&hold_timer, aio_context_main(), CLOCK_TYPE_REALTIME, hold_over, NULL);
    }
    c->held = true;
    update_watch(c);
    if (!aio_timer_pending(&hold_timer)) {
        arm_hold_timer();
    }
}

void chardev_hang_up(Chardev *c)
{
    if (c->out_fd >= 0 && !c->hung_up) {
        c->hung_up = true;
        forget_pending(c);
        hold(c);
    }
}

bool chardev_enough(const Chardev *c)
{
    return unread(c) >= UNREAD_PAUSE;
}

size_t chardev_unread(const Chardev *c)
{
    return unread(c);
}

void chardev_hold_input(bool yes)
{
    hold_all = yes;
}

void chardev_set_turn_clock(int64_t (*clock)(void))
{
    turn_clock = clock;
}

static int64_t turn_now(void)
{
    return turn_clock ? turn_clock() : clock_get_ns(CLOCK_TYPE_REALTIME);
}

bool chardev_turn_over(Chardev *c)
{
    c->more = c->more || turn_now() >= c->turn_end;
    return c->more;
}

static void pass_on(Chardev *c, const uint8_t *buf, size_t len)
{
    size_t n = len;

    if (c->fe) {
        c->more = false;
        c->turn_end = turn_now() + TURN_NS;
        n = c->fe->read(c->fe_opaque, buf, len);
    }
    /* There may be neither a peer nor a frontend any more. */
    if (!c->fe || c->in_fd < 0) {
        return;
    }
    if (n < len) {
        g_byte_array_append(c->rest, buf + n, (guint)(len - n));
    }
    if (c->rest->len || c->more) {
        update_watch(c);
    }
}

static bool may_read(const Chardev *c)
{
    return c->in_fd >= 0 && c->pollable && c->fe && !c->paused && !c->held && !chardev_enough(c);
}

static void pass_rest(void *opaque)
{
    Chardev *c = opaque;
    GByteArray *rest = c->rest;

    if (must_hold()) {
        hold(c);
    } else if (may_read(c)) {
        c->rest = g_byte_array_new();
        pass_on(c, rest->len ? rest->data : (const uint8_t *)"", rest->len);
        g_byte_array_unref(rest);
        update_watch(c);
    }
}

static void on_readable(void *opaque)
{
    Chardev *c = opaque;
    uint8_t buf[65536];
    ssize_t n;

    if (must_hold()) {
        hold(c);
        return;
    }
    n = read(c->in_fd, buf, sizeof(buf));

    if (n > 0) {
        pass_on(c, buf, (size_t)n);
        return;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (c->out_fd == c->in_fd) {
        disconnect(c);
        return;
    }
    /* Standard input has ended; what is said on standard output is still wanted. */
    aio_set_fd_handler(aio_context_main(), c->in_fd, NULL, NULL, NULL, NULL, NULL);
    c->in_fd = -1;
}

/* Returns false once the peer is gone. */
static bool push_pending(Chardev *c)
{
    while (unread(c)) {
        ssize_t n = write(c->out_fd, c->pending->data + c->taken, unread(c));
        if (n > 0) {
            take_pending(c, (guint)n);
        } else if (n < 0 && errno == EAGAIN) {
            return true;
        } else if (n >= 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

static void on_writable(void *opaque)
{
    Chardev *c = opaque;

    if (push_pending(c)) {
        update_watch(c);
    } else if (must_hold()) {
        /* The frontend is in the middle of something: it learns of the end when reading goes on. */
        forget_pending(c);
        hold(c);
    } else {
        disconnect(c);
    }
}

static void update_watch(Chardev *c)
{
    AioContext *ctx = aio_context_main();
    bool want_read = may_read(c), want_write = c->out_fd >= 0 && c->pollable && unread(c);

    if (want_read && (c->rest->len || c->more)) {
        aio_bh_schedule(c->rest_bh);
        aio_poll_look_next(ctx);
        want_read = false;
    }
    if (c->in_fd >= 0 && c->in_fd == c->out_fd) {
        aio_set_fd_handler(ctx, c->in_fd, want_read ? on_readable : NULL,
                           want_write ? on_writable : NULL, NULL, NULL, c);
        return;
    }
    if (c->in_fd >= 0) {
        aio_set_fd_handler(ctx, c->in_fd, want_read ? on_readable : NULL, NULL, NULL, NULL, c);
    }
    if (c->out_fd >= 0 && want_write != c->watching_write) {
        aio_set_fd_handler(ctx, c->out_fd, NULL, want_write ? on_writable : NULL, NULL, NULL, c);
        c->watching_write = want_write;
    }
}

void chardev_connected(Chardev *c, int in_fd, int out_fd)
{
    c->in_fd = in_fd;
    c->out_fd = out_fd;
    update_watch(c);
    if (c->fe && c->fe->event) {
        c->fe->event(c->fe_opaque, CHARDEV_OPENED);
    }
}

void chardev_write(Chardev *c, const void *buf, size_t len)
{
    const uint8_t *p = buf;

    if (c->out_fd < 0 || c->hung_up) {
        return;
    }
    while (len && !unread(c)) {
        ssize_t n = write(c->out_fd, p, len);
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            /* A broken pipe is noticed by the watch, where it cannot surprise a caller. */
            break;
        }
    }
    if (len) {
        g_byte_array_append(c->pending, p, (guint)len);
        update_watch(c);
    }
}

void chardev_pause(Chardev *c)
{
    if (!c->paused++) {
        update_watch(c);
    }
}

void chardev_resume(Chardev *c)
{
    g_assert(c->paused > 0);
    if (!--c->paused) {
        update_watch(c);
    }
}

bool chardev_set_frontend(Chardev *c, const ChardevFrontend *ops, void *opaque, Error **errp)
{
    if (c->fe) {
        error_setg(errp, "chardev '%s' is already in use", c->label);
        return false;
    }
    c->fe = ops;
    c->fe_opaque = opaque;
    update_watch(c);
    if (ops->event && (c->in_fd >= 0 || c->out_fd >= 0)) {
        ops->event(opaque, CHARDEV_OPENED);
    }
    return true;
}

void chardev_clear_frontend(Chardev *c)
{
    c->fe = NULL;
    c->more = false;
    g_byte_array_set_size(c->rest, 0);
    update_watch(c);
}

Chardev *chardev_find(const char *id)
{
    Chardev *c;

    list_for_each (c, &all, link) {
        if (!strcmp(c->label, id)) {
            return c;
        }
    }
    return NULL;
}

Chardev *chardev_required(const char *id, Error **errp)
{
    if (!id) {
        error_setg(errp, "Parameter 'chardev' is missing");
        return NULL;
    }
    Chardev *c = chardev_find(id);
    if (!c) {
        error_setg(errp, "chardev \"%s\" not found", id);
    }
    return c;
}

Chardev *chardev_next(Chardev *c)
{
    ListNode *n = c ? c->link.next : all.next;

    return n == &all ? NULL : list_entry(n, Chardev, link);
}

const char *chardev_label(const Chardev *c)
{
    return c->label;
}

char *chardev_filename(const Chardev *c)
{
    const char *name = c->filename ? c->filename : c->backend->name;

    return c->backend == &chardev_socket && c->in_fd < 0 ? g_strdup_printf("disconnected:%s", name) : g_strdup(name);
}

const char *chardev_pty_name(const Chardev *c)
{
    return c->backend == &chardev_pty ? c->filename + strlen("pty:") : NULL;
}

bool chardev_frontend_open(const Chardev *c)
{
    return c->fe != NULL;
}

bool chardev_is_tty(const Chardev *c)
{
    return c->backend == &chardev_stdio && isatty(0) && isatty(1);
}

static void chardev_free(Chardev *c)
{
    if (c->backend->close) {
        c->backend->close(c);
    }
    close_fds(c);
    list_remove(&c->link);
    g_byte_array_free(c->pending, TRUE);
    g_byte_array_free(c->rest, TRUE);
    aio_bh_delete(c->rest_bh);
    g_free(c->path);
    g_free(c->host);
    g_free(c->port);
    g_free(c->filename);
    g_free(c->label);
    g_free(c);
}

Chardev *chardev_create(const char *id, const ChardevClass *backend, const Opts *opts, Error **errp)
{
    Chardev *c = g_new0(Chardev, 1);

    c->label = g_strdup(id);
    c->backend = backend;
    c->in_fd = c->out_fd = c->listen_fd = -1;
    c->pollable = true;
    c->pending = g_byte_array_new();
    c->rest = g_byte_array_new();
    c->rest_bh = aio_bh_new(aio_context_main(), pass_rest, c);
    list_append(&all, &c->link);
    if (!backend->open(c, opts, errp)) {
        chardev_free(c);
        return NULL;
    }
    return c;
}

bool chardev_remove(const char *id, Error **errp)
{
    Chardev *c = chardev_find(id);

    if (!c) {
        error_setg(errp, "Chardev '%s' not found", id);
        return false;
    }
    if (c->fe) {
        error_setg(errp, "Chardev '%s' is busy", id);
        return false;
    }
    if (c->out_fd >= 0) {
        push_pending(c);
    }
    chardev_free(c);
    return true;
}

void chardev_cleanup(void)
{
    while (!list_empty(&all)) {
        Chardev *c = list_first(&all, Chardev, link);

        while (c->out_fd >= 0 && unread(c) && push_pending(c) && unread(c)) {
            struct pollfd p = {.fd = c->out_fd, .events = POLLOUT};
            if (poll(&p, 1, FLUSH_TIMEOUT_MS) <= 0) {
                break;
            }
        }
        c->fe = NULL;
        chardev_free(c);
    }
    if (hold_timer.fn) {
        aio_timer_del(&hold_timer);
        hold_timer.fn = NULL;
    }
}
