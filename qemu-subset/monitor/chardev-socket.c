/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices on sockets: Unix and TCP, listening, connecting, or an inherited descriptor. */
#include "monitor/chardev-private.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* How long a listener rests when it could not accept a peer. */
#define ACCEPT_REST_NS 100000000

static bool unix_address(const char *path, struct sockaddr_un *sun, Error **errp)
{
    memset(sun, 0, sizeof(*sun));
    sun->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(sun->sun_path)) {
        error_setg(errp, "UNIX socket path '%s' is too long", path);
        error_append_hint(errp, "Path must be less than %zu bytes\n", sizeof(sun->sun_path));
        return false;
    }
    g_strlcpy(sun->sun_path, path, sizeof(sun->sun_path));
    return true;
}

/*
 * A socket that @use (connect or bind-and-listen) accepted for the first address that works; -1 with *@err_out set to
 * the errno of the last try.
 */
typedef bool UseSocket(int fd, const struct sockaddr *addr, socklen_t len);

static int socket_for(int family, int flags, const struct sockaddr *addr, socklen_t len, UseSocket *use, int *err_out)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    if (fd >= 0 && use(fd, addr, len)) {
        return fd;
    }
    *err_out = errno;
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static int tcp_socket(Chardev *c, int flags, UseSocket *use, int *err_out, Error **errp)
{
    struct addrinfo *res = tcp_resolve(c->host, c->port, flags, errp);
    int fd = -1;

    if (!res) {
        return -1;
    }
    for (struct addrinfo *a = res; a && fd < 0; a = a->ai_next) {
        fd = socket_for(a->ai_family, 0, a->ai_addr, a->ai_addrlen, use, err_out);
    }
    freeaddrinfo(res);
    return fd;
}

static bool use_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    return !connect(fd, addr, len);
}

static bool use_listen(int fd, const struct sockaddr *addr, socklen_t len)
{
    int one = 1;

    if (addr->sa_family != AF_UNIX) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    }
    return !bind(fd, addr, len) && !listen(fd, 1);
}

static int dial_unix(Chardev *c, int flags, Error **errp)
{
    struct sockaddr_un sun;
    int fd, err = 0;

    if (!unix_address(c->path, &sun, errp)) {
        return -1;
    }
    fd = socket_for(AF_UNIX, flags, (struct sockaddr *)&sun, sizeof(sun), use_connect, &err);
    if (fd < 0) {
        error_setg_errno(errp, err, "Failed to connect to '%s'", c->path);
    }
    return fd;
}

static int dial(Chardev *c, Error **errp)
{
    int fd, err = 0;

    if (c->path) {
        return dial_unix(c, 0, errp);
    }
    fd = tcp_socket(c, 0, use_connect, &err, errp);
    if (fd < 0 && err) {
        error_setg_errno(errp, err, "Failed to connect to '%s:%s'", c->host, c->port);
    }
    return fd;
}

static int listen_on(Chardev *c, Error **errp)
{
    struct sockaddr_un sun;
    struct stat st;
    int fd, err = 0;

    if (c->path) {
        if (!unix_address(c->path, &sun, errp)) {
            return -1;
        }
        /* A socket that a dead process left behind is in the way; any other file is not ours to remove. */
        if (!lstat(c->path, &st) && S_ISSOCK(st.st_mode)) {
            unlink(c->path);
        }
        fd = socket_for(AF_UNIX, 0, (struct sockaddr *)&sun, sizeof(sun), use_listen, &err);
        if (fd < 0) {
            error_setg_errno(errp, err, "Failed to bind socket to %s", c->path);
        }
        return fd;
    }
    fd = tcp_socket(c, AI_PASSIVE, use_listen, &err, errp);
    if (fd < 0 && err) {
        error_setg_errno(errp, err, "Failed to find an available port");
    }
    return fd;
}

static char *describe(const Chardev *c)
{
    const char *suffix = c->is_server ? ",server=on" : "";

    return c->path ? g_strdup_printf("unix:%s%s", c->path, suffix)
                   : g_strdup_printf("tcp:%s:%s%s", c->host, c->port, suffix);
}

/* "0" has become a number that somebody may connect to. */
static void learn_port(Chardev *c)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);
    char port[NI_MAXSERV];

    if (c->host && !getsockname(c->listen_fd, (struct sockaddr *)&addr, &len) &&
        !getnameinfo((struct sockaddr *)&addr, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV)) {
        g_free(c->port);
        c->port = g_strdup(port);
        g_free(c->filename);
        c->filename = describe(c);
    }
}

static void make_stream(Chardev *c, int fd)
{
    int one = 1;

    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (c->host) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    chardev_connected(c, fd, fd);
}

static void retry_after(Chardev *c, int64_t ns)
{
    aio_timer_mod_ns(&c->retry, clock_get_ns(CLOCK_TYPE_REALTIME) + ns);
}

static void on_connection(void *opaque);

static void watch_listener(Chardev *c, bool on)
{
    aio_set_fd_handler(aio_context_main(), c->listen_fd, on ? on_connection : NULL, NULL, NULL, NULL, c);
}

/* One peer at a time: others wait in the backlog until it has gone. */
static void on_connection(void *opaque)
{
    Chardev *c = opaque;
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);

    watch_listener(c, false);
    if (fd >= 0) {
        make_stream(c, fd);
    } else {
        /* No descriptor is free, perhaps: the peer stays in the backlog, and asking at once would never end. */
        retry_after(c, ACCEPT_REST_NS);
    }
}

static void dial_over(void *opaque, int fd, Error *err)
{
    Chardev *c = opaque;

    c->dialing = NULL;
    if (fd >= 0) {
        c->dial_failed = false;
        make_stream(c, fd);
        return;
    }
    /* The first failure tells it all: the next ones are not told. */
    if (!c->dial_failed) {
        error_report("Unable to connect character device %s: %s", c->label, error_get_pretty(err));
        c->dial_failed = true;
    }
    error_free(err);
    retry_after(c, c->reconnect_ns);
}

/* Who keeps trying may do so for long, and the main loop has other things to do meanwhile. */
static void dial_in_background(Chardev *c)
{
    if (c->path) {
        Error *err = NULL;
        int fd = dial_unix(c, SOCK_NONBLOCK, &err);

        dial_over(c, fd, err);
    } else {
        c->dialing = tcp_dial(c->host, c->port, dial_over, c);
    }
}

static void try_again(void *opaque)
{
    Chardev *c = opaque;

    if (c->listen_fd >= 0) {
        watch_listener(c, true);
    } else {
        dial_in_background(c);
    }
}

static bool inherit(Chardev *c, const char *text, Error **errp)
{
    int64_t fd;
    int type;
    socklen_t len = sizeof(type);

    if (!text || !qapi_parse_int64(text, &fd)) {
        error_setg(errp, "Unable to parse FD number %s", text ? text : "");
        return false;
    }
    if (fd < 0 || fd > INT32_MAX || getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0) {
        error_setg(errp, "File descriptor '%s' is not a socket", text);
        return false;
    }
    c->filename = g_strdup_printf("fd:%s", text);
    if (c->is_server) {
        c->listen_fd = (int)fd;
        watch_listener(c, true);
    } else {
        make_stream(c, (int)fd);
    }
    return true;
}

static bool open_server(Chardev *c, bool wait, Error **errp)
{
    c->listen_fd = listen_on(c, errp);
    if (c->listen_fd < 0) {
        return false;
    }
    learn_port(c);
    if (!wait) {
        watch_listener(c, true);
        return true;
    }
    info_report("QEMU waiting for connection on: disconnected:%s", c->filename);
    int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        error_setg_errno(errp, errno, "Failed to accept a connection on %s", c->filename);
        return false;
    }
    make_stream(c, fd);
    return true;
}

static bool open_client(Chardev *c, Error **errp)
{
    if (c->reconnect_ns) {
        dial_in_background(c);
        return true;
    }
    int fd = dial(c, errp);
    if (fd >= 0) {
        make_stream(c, fd);
    }
    return fd >= 0;
}

/* A century: what is longer is "never" as well, and would not fit a clock in nanoseconds. */
#define RECONNECT_MS_MAX (UINT64_C(100) * 365 * 24 * 3600 * 1000)

/* The options that are not the address. */
static bool parse_mode(Chardev *c, const Opts *opts, bool *wait, Error **errp)
{
    Error *err = NULL;
    uint64_t reconnect_ms;

    *wait = opts_get_bool(opts, "wait", true, &err);
    if (!err) {
        c->is_server = opts_get_bool(opts, "server", false, &err);
    }
    if (!err) {
        reconnect_ms = opts_get_number(opts, "reconnect-ms", 0, &err);
        c->reconnect_ns = (int64_t)MIN(reconnect_ms, RECONNECT_MS_MAX) * 1000000;
    }
    if (!err && opts_get(opts, "wait") && !c->is_server) {
        error_setg(&err, "'wait' option is incompatible with socket in client connect mode");
    }
    if (!err && opts_get(opts, "reconnect-ms") && !opts_get(opts, "path") && !opts_get(opts, "host")) {
        error_setg(&err, "'reconnect-ms' option is incompatible with 'fd' address type");
    }
    if (!err && opts_get(opts, "reconnect-ms") && c->is_server) {
        error_setg(&err, "'reconnect-ms' option is incompatible with socket in server listen mode");
    }
    error_propagate(errp, err);
    return !err;
}

static bool socket_open(Chardev *c, const Opts *opts, Error **errp)
{
    bool wait;

    aio_timer_init(&c->retry, aio_context_main(), CLOCK_TYPE_REALTIME, try_again, c);
    if (!parse_mode(c, opts, &wait, errp)) {
        return false;
    }
    c->path = g_strdup(opts_get(opts, "path"));
    c->host = g_strdup(opts_get(opts, "host"));
    c->port = g_strdup(opts_get(opts, "port"));
    if (!!c->path + !!c->host + !!opts_get(opts, "fd") > 1) {
        error_setg(errp, "None or one of 'path', 'fd' or 'host' option required.");
        return false;
    }
    if (!c->path && !c->host) {
        return inherit(c, opts_get(opts, "fd"), errp);
    }
    if (!c->path && !c->port) {
        error_setg(errp, "chardev: socket: no port given");
        return false;
    }
    c->filename = describe(c);
    return c->is_server ? open_server(c, wait, errp) : open_client(c, errp);
}

static void socket_disconnected(Chardev *c)
{
    if (c->listen_fd >= 0) {
        watch_listener(c, true);
    } else if (c->reconnect_ns) {
        retry_after(c, c->reconnect_ns);
    }
}

static void socket_close(Chardev *c)
{
    if (aio_timer_pending(&c->retry)) {
        aio_timer_del(&c->retry);
    }
    if (c->dialing) {
        tcp_dial_cancel(c->dialing);
    }
    if (c->listen_fd >= 0) {
        watch_listener(c, false);
        close(c->listen_fd);
        if (c->path) {
            unlink(c->path);
        }
    }
}

const ChardevClass chardev_socket = {
    .name = "socket",
    .params = (const char *const[]){"path", "host", "port", "fd", "server", "wait", "reconnect-ms", NULL},
    .open = socket_open,
    .disconnected = socket_disconnected,
    .close = socket_close,
};
