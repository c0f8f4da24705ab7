/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices without a connection: stdio, file, pty, null. */
#include "monitor/chardev-private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

/* --- stdio --- */

static const Chardev *stdio_owner;
static bool stdio_forbidden;
static struct termios saved_tty;
static bool tty_changed;
static int saved_flags;

void chardev_forbid_stdio(void)
{
    stdio_forbidden = true;
}

static bool stdio_open(Chardev *c, const Opts *opts, Error **errp)
{
    Error *err = NULL;
    bool keep_signals = opts_get_bool(opts, "signal", true, &err);

    if (err) {
        error_propagate(errp, err);
        return false;
    }
    if (stdio_forbidden) {
        error_setg(errp, "cannot use stdio with -daemonize");
        return false;
    }
    if (stdio_owner) {
        error_setg(errp, "cannot use stdio by multiple character devices");
        return false;
    }
    saved_flags = fcntl(0, F_GETFL);
    if (saved_flags < 0 || fcntl(0, F_SETFL, saved_flags | O_NONBLOCK) < 0) {
        error_setg_errno(errp, errno, "Could not make standard input non-blocking");
        return false;
    }
    stdio_owner = c;
    if (isatty(0) && !tcgetattr(0, &saved_tty)) {
        struct termios raw = saved_tty;

        raw.c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | IEXTEN);
        if (!keep_signals) {
            raw.c_lflag &= ~(tcflag_t)ISIG;
        }
        tty_changed = !tcsetattr(0, TCSANOW, &raw);
    }
    chardev_connected(c, 0, 1);
    return true;
}

void chardev_lend_terminal(void)
{
    if (tty_changed) {
        tcsetattr(0, TCSANOW, &saved_tty);
        tty_changed = false;
    }
}

static void stdio_close(Chardev *c)
{
    if (c != stdio_owner) {
        return;
    }
    chardev_lend_terminal();
    /* The open file behind descriptor 0 is shared with whoever started us. */
    fcntl(0, F_SETFL, saved_flags);
    stdio_owner = NULL;
}

const ChardevClass chardev_stdio = {
    .name = "stdio",
    .params = (const char *const[]){"signal", NULL},
    .open = stdio_open,
    .close = stdio_close,
};

/* --- file --- */

static bool file_open(Chardev *c, const Opts *opts, Error **errp)
{
    const char *path = opts_get(opts, "path");
    Error *err = NULL;
    bool append = opts_get_bool(opts, "append", false, &err);

    if (err) {
        error_propagate(errp, err);
        return false;
    }
    if (!path) {
        error_setg(errp, "chardev: file: no filename given");
        return false;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666);
    if (fd < 0) {
        error_setg_errno(errp, errno, "Could not open '%s'", path);
        return false;
    }
    c->pollable = false;
    chardev_connected(c, -1, fd);
    return true;
}

const ChardevClass chardev_file = {
    .name = "file",
    .params = (const char *const[]){"path", "append", NULL},
    .open = file_open,
};

/* --- pty --- */

static bool pty_open(Chardev *c, const Opts *opts, Error **errp)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    struct termios raw;

    if (fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0) {
        error_setg_errno(errp, errno, "Failed to create PTY");
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    /* Keep the other side open ourselves: without it reading would fail until somebody opens it. */
    c->listen_fd = open(ptsname(fd), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (c->listen_fd >= 0 && !tcgetattr(c->listen_fd, &raw)) {
        cfmakeraw(&raw);
        tcsetattr(c->listen_fd, TCSANOW, &raw);
    }
    c->filename = g_strdup_printf("pty:%s", ptsname(fd));
    chardev_connected(c, fd, fd);
    return true;
}

static void pty_close(Chardev *c)
{
    if (c->listen_fd >= 0) {
        close(c->listen_fd);
    }
}

const ChardevClass chardev_pty = {
    .name = "pty",
    .params = (const char *const[]){NULL},
    .open = pty_open,
    .close = pty_close,
};

/* --- null --- */

static bool null_open(Chardev *c, const Opts *opts, Error **errp)
{
    return true;
}

const ChardevClass chardev_null = {
    .name = "null",
    .params = (const char *const[]){NULL},
    .open = null_open,
};
