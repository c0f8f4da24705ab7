/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP and HMP commands about character devices: what there is, and coming and going at run time. */
#include "monitor/private.h"

#include "qapi/qapi-commands-char.h"

#include <inttypes.h>
#include <string.h>

ChardevInfoList *qmp_query_chardev(Error **errp)
{
    ChardevInfoList *list = NULL;

    for (Chardev *c = chardev_next(NULL); c; c = chardev_next(c)) {
        ChardevInfo *info = g_new0(ChardevInfo, 1);
        info->label = g_strdup(chardev_label(c));
        info->filename = chardev_filename(c);
        info->frontend_open = chardev_frontend_open(c);
        QAPI_LIST_PREPEND(list, info);
    }
    return list;
}

ChardevBackendInfoList *qmp_query_chardev_backends(Error **errp)
{
    ChardevBackendInfoList *list = NULL;
    const char *name;

    for (unsigned int i = 0; (name = chardev_backend_name(i)); i++) {
        ChardevBackendInfo *info = g_new0(ChardevBackendInfo, 1);
        info->name = g_strdup(name);
        QAPI_LIST_PREPEND(list, info);
    }
    return list;
}

/* --- From the schema's types to options --- */

static void set_flag(Opts *opts, const char *name, bool value)
{
    opts_set(opts, name, value ? "on" : "off");
}

static void set_address(Opts *opts, const SocketAddressLegacy *addr)
{
    switch (addr->type) {
    case SOCKET_ADDRESS_TYPE_INET:
        opts_set(opts, "host", addr->u.inet.data->host);
        opts_set(opts, "port", addr->u.inet.data->port);
        break;
    case SOCKET_ADDRESS_TYPE_UNIX:
        opts_set(opts, "path", addr->u.q_unix.data->path);
        break;
    default:
        opts_set(opts, "fd", addr->u.fd.data->str);
        break;
    }
}

/* Defaults are not those of the command line, where sockets connect, and where listeners wait. */
static void set_socket(Opts *opts, const ChardevSocket *s)
{
    bool server = !s->has_server || s->server;

    set_address(opts, s->addr);
    set_flag(opts, "server", server);
    if (s->has_wait || server) {
        set_flag(opts, "wait", s->has_wait && s->wait);
    }
    if (s->has_reconnect_ms) {
        g_autofree char *ms = g_strdup_printf("%" PRId64, MAX(s->reconnect_ms, 0));

        opts_set(opts, "reconnect-ms", ms);
    }
}

static Opts *backend_to_opts(const ChardevBackend *b)
{
    Opts *opts = opts_new();

    opts_set(opts, "backend", ChardevBackendType_str(b->type));
    switch (b->type) {
    case CHARDEV_BACKEND_TYPE_FILE:
        opts_set(opts, "path", b->u.file.data->out);
        set_flag(opts, "append", b->u.file.data->append);
        break;
    case CHARDEV_BACKEND_TYPE_SOCKET:
        set_socket(opts, b->u.socket.data);
        break;
    case CHARDEV_BACKEND_TYPE_STDIO:
        set_flag(opts, "signal", !b->u.stdio.data->has_signal || b->u.stdio.data->signal);
        break;
    default:
        break;
    }
    return opts;
}

/* --- Commands --- */

/*
 * A number means an inherited descriptor on the command line only: a client names what it has handed over, and there is no
 * command to do that.
 */
static bool lacks_descriptor(const Opts *opts, Error **errp)
{
    const char *fd = opts_get(opts, "fd");

    if (strcmp(opts_get(opts, "backend"), "socket") || opts_get(opts, "path") || opts_get(opts, "host")) {
        return false;
    }
    error_setg(errp, "File descriptor named '%s' has not been found", fd ? fd : "");
    return true;
}

static ChardevReturn *add(const char *id, const Opts *opts, Error **errp)
{
    Error *err = NULL;
    Chardev *c = lacks_descriptor(opts, &err) ? NULL : chardev_add(id, opts, &err);

    if (!c) {
        error_prepend(&err, "Failed to add chardev '%s': ", id);
        error_propagate(errp, err);
        return NULL;
    }
    ChardevReturn *ret = g_new0(ChardevReturn, 1);
    ret->pty = g_strdup(chardev_pty_name(c));
    return ret;
}

static ChardevReturn *change(const char *id, const Opts *opts, Error **errp)
{
    Chardev *c = chardev_find(id);

    if (!c) {
        error_setg(errp, "Chardev '%s' does not exist", id);
        return NULL;
    }
    if (chardev_frontend_open(c)) {
        error_setg(errp, "Chardev user does not support chardev hotswap");
        return NULL;
    }
    chardev_remove(id, &error_abort);
    return add(id, opts, errp);
}

ChardevReturn *qmp_chardev_add(const char *id, ChardevBackend *backend, Error **errp)
{
    g_autoptr(Opts) opts = backend_to_opts(backend);

    if (chardev_find(id)) {
        error_setg(errp, "Chardev with id '%s' already exists", id);
        return NULL;
    }
    return add(id, opts, errp);
}

ChardevReturn *qmp_chardev_change(const char *id, ChardevBackend *backend, Error **errp)
{
    g_autoptr(Opts) opts = backend_to_opts(backend);

    return change(id, opts, errp);
}

void qmp_chardev_remove(const char *id, Error **errp)
{
    chardev_remove(id, errp);
}

/* No frontend here cares. */
void qmp_chardev_send_break(const char *id, Error **errp)
{
    if (!chardev_find(id)) {
        error_setg(errp, "Chardev '%s' not found", id);
    }
}

/* --- HMP --- */

static const char *argument(const json_t *args, const char *name)
{
    return json_string_value(json_object_get(args, name));
}

static void hmp_info_chardev(json_t *args, GString *out)
{
    for (Chardev *c = chardev_next(NULL); c; c = chardev_next(c)) {
        g_autofree char *filename = chardev_filename(c);

        g_string_append_printf(out, "%s: filename=%s\n", chardev_label(c), filename);
    }
}

static Opts *parse_options(const json_t *args, GString *out)
{
    Error *err = NULL;
    g_autoptr(Opts) opts = opts_parse(argument(args, "args"), "backend", NULL, NULL, &err);

    if (!opts || !chardev_check_keys(opts, &err)) {
        error_report_err(err);
        g_string_append(out, "Error: Parsing chardev args failed\n");
        return NULL;
    }
    return g_steal_pointer(&opts);
}

static void finish(Error *err, GString *out)
{
    if (err) {
        hmp_error(out, err);
    }
}

static void add_parsed(const Opts *opts, GString *out, Error **errp)
{
    const char *id = opts_id(opts);

    if (id && chardev_find(id)) {
        error_setg(errp, "attempt to add duplicate property '%s' to object (type 'container')", id);
    } else if (!id || (chardev_check_backend(id, opts, errp) && !lacks_descriptor(opts, errp))) {
        chardev_new_parsed(opts, out, errp);
    }
}

static void hmp_chardev_add(json_t *args, GString *out)
{
    g_autoptr(Opts) opts = parse_options(args, out);
    const char *backend = opts ? opts_get(opts, "backend") : NULL;
    Error *err = NULL;

    if (!opts) {
        return;
    }
    if (backend && (!strcmp(backend, "help") || !strcmp(backend, "?"))) {
        chardev_list_backends(out);
        return;
    }
    add_parsed(opts, out, &err);
    finish(err, out);
}

static void hmp_chardev_change(json_t *args, GString *out)
{
    g_autoptr(Opts) opts = parse_options(args, out);
    Error *err = NULL;

    if (!opts) {
        return;
    }
    if (opts_id(opts)) {
        error_setg(&err, "Unexpected 'id' parameter");
    } else if (chardev_check_backend("(null)", opts, &err)) {
        qapi_free_ChardevReturn(change(argument(args, "id"), opts, &err));
    }
    finish(err, out);
}

static void hmp_chardev_remove(json_t *args, GString *out)
{
    Error *err = NULL;

    qmp_chardev_remove(argument(args, "id"), &err);
    finish(err, out);
}

static void hmp_chardev_send_break(json_t *args, GString *out)
{
    Error *err = NULL;

    qmp_chardev_send_break(argument(args, "id"), &err);
    finish(err, out);
}

const HmpCommand chardev_hmp_commands[] = {
    {"info chardev", "", "", "show the character devices", hmp_info_chardev},
    {"chardev-add", "args:s", "args", "make a character device, with the options of -chardev", hmp_chardev_add},
    {"chardev-change", "id:s,args:s", "id args", "replace a character device that nothing uses", hmp_chardev_change},
    {"chardev-remove", "id:s", "id", "remove a character device that nothing uses", hmp_chardev_remove},
    {"chardev-send-break", "id:s", "id", "send a break to what uses a character device", hmp_chardev_send_break},
    {0},
};
