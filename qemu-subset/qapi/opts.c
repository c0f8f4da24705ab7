/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The older option syntax: a flat, ordered list of key=value. */
#include "qapi/opts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct Setting {
    char *name, *value;
} Setting;

struct Opts {
    GArray *settings;
};

static Setting *at(const Opts *opts, guint i)
{
    return &g_array_index(opts->settings, Setting, i);
}

static void clear_setting(void *opaque)
{
    Setting *setting = opaque;

    g_free(setting->name);
    g_free(setting->value);
}

Opts *opts_new(void)
{
    Opts *opts = g_new0(Opts, 1);

    opts->settings = g_array_new(FALSE, FALSE, sizeof(Setting));
    g_array_set_clear_func(opts->settings, clear_setting);
    return opts;
}

void opts_free(Opts *opts)
{
    if (opts) {
        g_array_free(opts->settings, TRUE);
        g_free(opts);
    }
}

bool opt_value_bool(const char *name, const char *text, bool *value, Error **errp)
{
    if (!qapi_parse_bool(text, value)) {
        error_setg(errp, "Parameter '%s' expects 'on' or 'off'", name);
        return false;
    }
    return true;
}

bool opt_value_number(const char *name, const char *text, uint64_t *value, Error **errp)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 0);
    if (errno == ERANGE) {
        error_setg(errp, "Value '%s' is too large for parameter '%s'", text, name);
        return false;
    }
    if (end == text || *end) {
        error_setg(errp, "Parameter '%s' expects a number", name);
        return false;
    }
    *value = number;
    return true;
}

bool opt_value_size(const char *name, const char *text, char default_suffix, uint64_t *value, Error **errp)
{
    switch (qapi_parse_size(text, default_suffix, value)) {
    case QAPI_SIZE_OK:
        return true;
    case QAPI_SIZE_RANGE:
        error_setg(errp, "Value '%s' is out of range for parameter '%s'", text, name);
        return false;
    default:
        error_setg(errp, "Parameter '%s' expects a non-negative number below 2^64", name);
        error_append_hint(errp, "Optional suffix k, M, G, T, P or E means kilo-, mega-, giga-, tera-, peta-\n"
                                "and exabytes, respectively.\n");
        return false;
    }
}

bool opt_check_id(const char *id, Error **errp)
{
    if (!qapi_id_wellformed(id)) {
        error_setg(errp, "Parameter 'id' expects an identifier");
        error_append_hint(errp, "Identifiers consist of letters, digits, '-', '.', '_', starting with a letter.\n");
        return false;
    }
    return true;
}

static bool check_setting(const OptDesc *desc, const char *name, const char *value, Error **errp)
{
    uint64_t number;
    bool flag;

    if (!strcmp(name, "id")) {
        return opt_check_id(value, errp);
    }
    if (!desc) {
        return true;
    }
    while (desc->name && strcmp(desc->name, name)) {
        desc++;
    }
    if (!desc->name) {
        error_setg(errp, "Invalid parameter '%s'", name);
        return false;
    }
    switch (desc->type) {
    case OPT_BOOL:
        return opt_value_bool(name, value, &flag, errp);
    case OPT_NUMBER:
        return opt_value_number(name, value, &number, errp);
    case OPT_SIZE:
        return opt_value_size(name, value, 0, &number, errp);
    default:
        return true;
    }
}

/* Up to a single comma; returns what follows it. */
static const char *take_text(const char *s, char **text)
{
    GString *out = g_string_new(NULL);

    while (*s) {
        if (*s == ',' && *++s != ',') {
            break;
        }
        g_string_append_c(out, *s++);
    }
    *text = g_string_free(out, FALSE);
    return s;
}

static void bare_word(const char *word, char **name, char **value, bool warn)
{
    bool off = g_str_has_prefix(word, "no") && word[2];
    Error *warning = NULL;

    *name = g_strdup(word + (off ? 2 : 0));
    *value = g_strdup(off ? "off" : "on");
    if (warn) {
        error_setg(&warning, "short-form boolean option '%s' deprecated", word);
        error_append_hint(&warning, "Please use %s=%s instead\n", *name, *value);
        warn_report_err(warning);
    }
}

static Opts *parse(const char *params, const char *implied_key, const OptDesc *desc, bool *help, bool warn,
                   Error **errp)
{
    g_autoptr(Opts) opts = opts_new();

    if (help) {
        *help = false;
    }
    for (const char *s = params; *s; implied_key = NULL) {
        g_autofree char *name = NULL, *value = NULL;
        size_t len = strcspn(s, "=,");

        if (s[len] == '=') {
            name = g_strndup(s, len);
            s = take_text(s + len + 1, &value);
        } else {
            g_autofree char *word = NULL;

            s = take_text(s, &word);
            bool is_help = !strcmp(word, "help") || !strcmp(word, "?");
            if (help && is_help) {
                *help = true;
                continue;
            }
            if (implied_key) {
                name = g_strdup(implied_key);
                value = g_steal_pointer(&word);
            } else {
                bare_word(word, &name, &value, warn && !is_help);
            }
        }
        if (!check_setting(desc, name, value, errp)) {
            return NULL;
        }
        opts_set(opts, name, value);
    }
    return g_steal_pointer(&opts);
}

Opts *opts_parse(const char *params, const char *implied_key, const OptDesc *desc, bool *help, Error **errp)
{
    return parse(params, implied_key, desc, help, true, errp);
}

Opts *opts_parse_legacy(const char *params, const char *implied_key, const OptDesc *desc, Error **errp)
{
    return parse(params, implied_key, desc, NULL, false, errp);
}

const char *opts_get(const Opts *opts, const char *name)
{
    for (guint i = opts->settings->len; i-- > 0;) {
        if (!strcmp(at(opts, i)->name, name)) {
            return at(opts, i)->value;
        }
    }
    return NULL;
}

const char *opts_id(const Opts *opts)
{
    return opts_get(opts, "id");
}

bool opts_get_bool(const Opts *opts, const char *name, bool def, Error **errp)
{
    const char *text = opts_get(opts, name);
    bool value = def;

    return text && opt_value_bool(name, text, &value, errp) ? value : def;
}

uint64_t opts_get_number(const Opts *opts, const char *name, uint64_t def, Error **errp)
{
    const char *text = opts_get(opts, name);
    uint64_t value = def;

    return text && opt_value_number(name, text, &value, errp) ? value : def;
}

uint64_t opts_get_size(const Opts *opts, const char *name, char default_suffix, uint64_t def, Error **errp)
{
    const char *text = opts_get(opts, name);
    uint64_t value = def;

    return text && opt_value_size(name, text, default_suffix, &value, errp) ? value : def;
}

void opts_set(Opts *opts, const char *name, const char *value)
{
    Setting setting = {g_strdup(name), g_strdup(value)};

    if (!strcmp(name, "id") && opts_id(opts)) {
        clear_setting(&setting);
        return;
    }
    g_array_append_val(opts->settings, setting);
}

bool opts_del(Opts *opts, const char *name)
{
    bool found = false;

    for (guint i = opts->settings->len; i-- > 0;) {
        if (!strcmp(at(opts, i)->name, name)) {
            g_array_remove_index(opts->settings, i);
            found = true;
        }
    }
    return found;
}

char *opts_take(Opts *opts, const char *name)
{
    char *value = g_strdup(opts_get(opts, name));

    opts_del(opts, name);
    return value;
}

bool opts_foreach(const Opts *opts, OptsIter *fn, void *opaque, Error **errp)
{
    for (guint i = 0; i < opts->settings->len; i++) {
        if (!fn(opaque, at(opts, i)->name, at(opts, i)->value, errp)) {
            return false;
        }
    }
    return true;
}

json_t *opts_to_json(const Opts *opts)
{
    json_t *obj = json_object();

    for (guint i = 0; i < opts->settings->len; i++) {
        json_object_set_new_nocheck(obj, at(opts, i)->name, json_string_nocheck(at(opts, i)->value));
    }
    return obj;
}
