/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options that only set something, and the shape of -object. */
#include "tools/settings.h"

#include "guest/machine.h"
#include "object/object.h"
#include "qapi/keyval.h"
#include "qapi/opts.h"
#include "tools/daemon.h"
#include "tools/syntax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

void require(bool ok, Error **err)
{
    if (!ok) {
        if (*err) {
            error_report_err(*err);
        }
        exit(1);
    }
}

void exit_after_help(bool help)
{
    if (help) {
        exit(0);
    }
}

/* "none", perhaps as a value of @key, perhaps with further settings that only matter to the real thing. */
static bool only_none(const char *arg, const char *key, Error **errp)
{
    g_autoptr(Opts) opts = opts_parse(arg, key, NULL, NULL, errp);
    const char *value = opts ? opts_get(opts, key) : NULL;

    if (!opts) {
        return false;
    }
    if (!value || strcmp(value, "none")) {
        error_setg(errp, "Parameter '%s' does not accept value '%s'", key, value ? value : "");
        return false;
    }
    return true;
}

static bool check_display(const char *arg, Error **errp)
{
    g_autoptr(json_t) options = keyval_parse(arg, "type", NULL, errp);
    const char *key;
    json_t *value;

    if (!options) {
        return false;
    }
    const char *type = json_string_value(json_object_get(options, "type"));
    if (g_strcmp0(type, "none")) {
        error_setg(errp, type ? "Parameter 'type' does not accept value '%s'" : "Parameter 'type' is missing", type);
        return false;
    }
    json_object_foreach(options, key, value) {
        if (strcmp(key, "type")) {
            error_setg(errp, "Parameter '%s' is unexpected", key);
            return false;
        }
    }
    return true;
}

static bool check_rtc(const char *arg, Error **errp)
{
    static const OptDesc desc[] = {{"base", OPT_STRING}, {"clock", OPT_STRING}, {"driftfix", OPT_STRING}, {NULL}};
    g_autoptr(Opts) opts = opts_parse(arg, NULL, desc, NULL, errp);

    return opts != NULL;
}

static bool set_name(Settings *s, const char *arg, Error **errp)
{
    static const OptDesc desc[] = {
        {"guest", OPT_STRING}, {"process", OPT_STRING}, {"debug-threads", OPT_BOOL}, {NULL}};
    g_autoptr(Opts) opts = opts_parse(arg, "guest", desc, NULL, errp);

    if (!opts) {
        return false;
    }
    const char *process = opts_get(opts, "process");
    if (process) {
        prctl(PR_SET_NAME, process);
    }
    g_free(s->name);
    s->name = g_strdup(opts_get(opts, "guest"));
    machine_set_name(s->name);
    return true;
}

static bool set_messages(Settings *s, const char *arg, Error **errp)
{
    static const OptDesc desc[] = {{"timestamp", OPT_BOOL}, {"guest-name", OPT_BOOL}, {NULL}};
    g_autoptr(Opts) opts = opts_parse(arg, NULL, desc, NULL, errp);

    if (!opts) {
        return false;
    }
    s->timestamp = opts_get_bool(opts, "timestamp", s->timestamp, NULL);
    s->guest_name_prefix = opts_get_bool(opts, "guest-name", s->guest_name_prefix, NULL);
    return true;
}

static bool run_with(const char *arg, Error **errp)
{
    static const OptDesc desc[] = {{"exit-with-parent", OPT_BOOL}, {NULL}};
    g_autoptr(Opts) opts = opts_parse(arg, NULL, desc, NULL, errp);

    if (!opts) {
        return false;
    }
    return !opts_get_bool(opts, "exit-with-parent", false, NULL) || exit_with_parent(errp);
}

static bool set_uuid(const char *arg, Error **errp)
{
    uint8_t uuid[16];
    unsigned int n = 0;

    for (const char *p = arg; n < 16 && g_ascii_isxdigit(p[0]) && g_ascii_isxdigit(p[1]); p += 2) {
        uuid[n++] = (uint8_t)(g_ascii_xdigit_value(p[0]) << 4 | g_ascii_xdigit_value(p[1]));
        if (n == 4 || n == 6 || n == 8 || n == 10) {
            p += *(p + 2) == '-';
        }
    }
    if (n < 16 || !g_uuid_string_is_valid(arg)) {
        error_setg(errp, "failed to parse UUID string: wrong format");
        return false;
    }
    machine_set_uuid(uuid);
    return true;
}

static bool set_vga(const char *arg, Error **errp)
{
    if (strcmp(arg, "none")) {
        error_setg(errp, "unknown vga type: %s", arg);
        return false;
    }
    return true;
}

/* -object: its shape is checked here, where the option can be named; it is made later. */
static bool check_object(Settings *s, const char *arg, bool *help, Error **errp)
{
    json_t *options = NULL;

    if (arg[0] == '{') {
        options = qjson_parse(arg, errp);
    } else {
        g_autoptr(Opts) opts = opts_parse(arg, "qom-type", NULL, help, errp);
        options = opts ? opts_to_json(opts) : NULL;
    }
    if (!options) {
        return false;
    }
    if (*help) {
        g_autoptr(GString) text = g_string_new(NULL);
        bool ok = object_help(json_string_value(json_object_get(options, "qom-type")), text, errp);
        fputs(text->str, stdout);
        json_decref(options);
        return ok;
    }
    json_t *typed = user_creatable_check(options, arg[0] == '{' ? PROPERTY_JSON : PROPERTY_TEXT_OBJECT, errp);
    json_decref(options);
    options = typed;
    if (!options) {
        return false;
    }
    const char *id = json_string_value(json_object_get(options, "id"));
    for (guint i = 0; id && i < s->objects->len; i++) {
        json_t *other = g_ptr_array_index(s->objects, i);
        if (!g_strcmp0(id, json_string_value(json_object_get(other, "id")))) {
            error_setg(errp, "Duplicate ID '%s' for object", id);
            json_decref(options);
            return false;
        }
    }
    g_ptr_array_add(s->objects, options);
    return true;
}

static bool apply_simple(Settings *s, OptionUse *u, const OptionUse *all, bool *help, Error **errp)
{
    switch (u->id) {
    case OPTION_HELP:
        options_print_help();
        return *help = true;
    case OPTION_VERSION:
        options_print_version();
        return *help = true;
    case OPTION_MACHINE:
        return machine_option(u->arg, help, errp);
    case OPTION_ACCEL:
        s->virtual_clock = true;
        return machine_accel_option(u->arg, help, errp);
    case OPTION_MEMORY:
        return machine_memory_option(u->arg, errp);
    case OPTION_UUID:
        return set_uuid(u->arg, errp);
    case OPTION_GLOBAL:
        return device_global_option(u->arg, errp);
    case OPTION_OBJECT:
        return check_object(s, u->arg, help, errp);
    case OPTION_NAME:
        return set_name(s, u->arg, errp);
    case OPTION_MSG:
        return set_messages(s, u->arg, errp);
    case OPTION_RUN_WITH:
        return run_with(u->arg, errp);
    case OPTION_DISPLAY:
        return check_display(u->arg, errp);
    case OPTION_RTC:
        return check_rtc(u->arg, errp);
    case OPTION_AUDIO:
        return only_none(u->arg, "driver", errp);
    case OPTION_NIC:
        return only_none(u->arg, "type", errp);
    default:
        return syntax_check(u, all, errp);
    }
}

static void note_flag(Settings *s, const OptionUse *u)
{
    switch (u->id) {
    case OPTION_STOPPED:
        s->stopped = true;
        break;
    case OPTION_NODEFAULTS:
        s->nodefaults = true;
        break;
    case OPTION_NOGRAPHIC:
        s->nographic = true;
        machine_set_nographic();
        break;
    case OPTION_DAEMONIZE:
        s->daemonize = true;
        break;
    case OPTION_PIDFILE:
        s->pidfile = u->arg;
        break;
    case OPTION_QTEST:
        s->qtest_use = u;
        break;
    case OPTION_QTEST_LOG:
        s->qtest_log = u->arg;
        break;
    case OPTION_MON:
    case OPTION_MONITOR:
        s->has_monitor = true;
        break;
    case OPTION_SERIAL:
        s->has_serial = true;
        break;
    default:
        break;
    }
}

void settings_apply(Settings *s, OptionUse *uses)
{
    for (OptionUse *u = uses; u->id != OPTIONS; u++) {
        Error *err = NULL;
        bool help = false;

        error_location_push(u->location);
        require(apply_simple(s, u, uses, &help, &err), &err);
        exit_after_help(help);
        note_flag(s, u);
        error_location_pop();
        error_set_prefixes(false, s->guest_name_prefix ? s->name : NULL);
    }
    error_set_prefixes(s->timestamp, s->guest_name_prefix ? s->name : NULL);
}

void settings_apply_vga(const OptionUse *uses)
{
    for (const OptionUse *u = uses; u->id != OPTIONS; u++) {
        Error *err = NULL;

        require(u->id != OPTION_VGA || set_vga(u->arg, &err), &err);
    }
}

void settings_check_cpu(const OptionUse *uses)
{
    for (const OptionUse *u = uses; u->id != OPTIONS; u++) {
        Error *err = NULL;

        require(u->id != OPTION_CPU || machine_cpu_option(u->arg, &err), &err);
    }
}
