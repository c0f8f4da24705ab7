/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: the options that make one, long and short. */
#include "monitor/chardev-private.h"

#include <stdio.h>
#include <string.h>

static const ChardevClass *const backends[] = {
    &chardev_socket, &chardev_stdio, &chardev_file, &chardev_pty, &chardev_null,
};

static const ChardevClass *find_backend(const char *name)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(backends); i++) {
        if (name && !strcmp(backends[i]->name, name)) {
            return backends[i];
        }
    }
    return NULL;
}

static bool check_key(void *opaque, const char *name, const char *value, Error **errp)
{
    const ChardevClass *backend = opaque;

    if (!strcmp(name, "id") || !strcmp(name, "backend") || g_strv_contains(backend->params, name)) {
        return true;
    }
    error_setg(errp, "Invalid parameter '%s'", name);
    return false;
}

bool chardev_check_keys(const Opts *opts, Error **errp)
{
    const ChardevClass *backend = find_backend(opts_get(opts, "backend"));

    return !backend || opts_foreach(opts, check_key, (void *)backend, errp);
}

bool chardev_check_backend(const char *id, const Opts *opts, Error **errp)
{
    const char *name = opts_get(opts, "backend");

    if (!name) {
        error_setg(errp, "chardev: \"%s\" missing backend", id);
    } else if (!strcmp(name, "fd")) {
        error_setg(errp, "Parameter 'driver' expects a non-abstract device type");
    } else if (!find_backend(name)) {
        error_setg(errp, "'%s' is not a valid char driver name", name);
    } else {
        return true;
    }
    return false;
}

Chardev *chardev_add(const char *id, const Opts *opts, Error **errp)
{
    return chardev_create(id, find_backend(opts_get(opts, "backend")), opts, errp);
}

static Chardev *chardev_new(const char *id, const Opts *opts, GString *out, Error **errp)
{
    if (!chardev_check_backend(id, opts, errp)) {
        return NULL;
    }
    if (chardev_find(id)) {
        error_setg(errp, "Duplicate ID '%s' for chardev", id);
        return NULL;
    }
    Chardev *c = chardev_check_keys(opts, errp) ? chardev_add(id, opts, errp) : NULL;
    const char *pty = c ? chardev_pty_name(c) : NULL;
    if (pty) {
        g_autofree char *text = g_strdup_printf("char device redirected to %s (label %s)\n", pty, id);

        if (out) {
            g_string_append(out, text);
        } else {
            fputs(text, stdout);
            fflush(stdout);
        }
    }
    return c;
}

Chardev *chardev_new_opts(const char *params, Error **errp)
{
    g_autoptr(Opts) opts = opts_parse(params, "backend", NULL, NULL, errp);

    return opts ? chardev_new_parsed(opts, NULL, errp) : NULL;
}

Chardev *chardev_new_parsed(const Opts *opts, GString *out, Error **errp)
{
    const char *id = opts_id(opts);

    if (!id) {
        error_setg(errp, "chardev: no id specified");
        return NULL;
    }
    return chardev_new(id, opts, out, errp);
}

const char *chardev_backend_name(unsigned int i)
{
    return i < G_N_ELEMENTS(backends) ? backends[i]->name : NULL;
}

void chardev_list_backends(GString *out)
{
    const char *name;

    g_string_append(out, "Available chardev backend types: \n");
    for (unsigned int i = 0; (name = chardev_backend_name(i)); i++) {
        g_string_append_printf(out, "  %s\n", name);
    }
}

/* "tcp:HOST:PORT,..." and "unix:PATH,...": the address comes first, the rest are options of a socket. */
static Opts *short_socket(const char *text, Error **errp)
{
    bool is_unix = g_str_has_prefix(text, "unix:");
    const char *addr = strchr(text, ':') + 1;
    const char *comma = strchr(addr, ',');
    g_autofree char *where = comma ? g_strndup(addr, (gsize)(comma - addr)) : g_strdup(addr);
    char *colon = strrchr(where, ':');

    if (!is_unix && (!colon || !colon[1])) {
        return NULL;
    }
    Opts *opts = comma ? opts_parse_legacy(comma + 1, NULL, NULL, errp) : opts_new();
    if (!opts) {
        return NULL;
    }
    opts_set(opts, "backend", "socket");
    if (is_unix) {
        if (*where) {
            opts_set(opts, "path", where);
        }
        return opts;
    }
    *colon = '\0';
    opts_set(opts, "host", where);
    opts_set(opts, "port", colon + 1);
    return opts;
}

Opts *chardev_parse_short(const char *text, Error **errp)
{
    g_autoptr(Opts) opts = NULL;

    if (g_str_has_prefix(text, "unix:") || g_str_has_prefix(text, "tcp:")) {
        opts = short_socket(text, errp);
        return opts && opts_foreach(opts, check_key, (void *)&chardev_socket, errp) ? g_steal_pointer(&opts) : NULL;
    }
    opts = opts_new();
    if (g_str_has_prefix(text, "chardev:")) {
        opts_set(opts, "chardev", text + 8);
    } else if (g_str_has_prefix(text, "file:")) {
        opts_set(opts, "backend", "file");
        opts_set(opts, "path", text + 5);
    } else if (!strcmp(text, "stdio") || !strcmp(text, "null") || !strcmp(text, "pty")) {
        opts_set(opts, "backend", text);
    } else {
        error_setg(errp, "'%s' is not a valid char driver", text);
        return NULL;
    }
    return g_steal_pointer(&opts);
}

Chardev *chardev_new_parsed_short(const char *label, const Opts *opts, Error **errp)
{
    const char *id = opts_get(opts, "chardev");

    return id ? chardev_required(id, errp) : chardev_new(label, opts, NULL, errp);
}

Chardev *chardev_new_short(const char *label, const char *text, Error **errp)
{
    if (!strcmp(text, "none")) {
        return NULL;
    }
    g_autoptr(Opts) opts = chardev_parse_short(text, errp);

    return opts ? chardev_new_parsed_short(label, opts, errp) : NULL;
}
