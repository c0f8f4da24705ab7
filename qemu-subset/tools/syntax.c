/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The syntax of options, checked in the order typed before any of them has an effect. */
#include "tools/syntax.h"

#include "block/commands.h"
#include "monitor/chardev.h"

#include <string.h>

static bool unique_id(const OptionUse *u, const OptionUse *all, const char *kind, Error **errp)
{
    const char *id = opts_id(u->opts);

    for (const OptionUse *other = all; id && other < u; other++) {
        if (other->id == u->id && other->opts && !g_strcmp0(opts_id(other->opts), id)) {
            error_setg(errp, "Duplicate ID '%s' for %s", id, kind);
            return false;
        }
    }
    return true;
}

static bool parse(OptionUse *u, const OptionUse *all, const char *implied_key, bool *help, const char *kind,
                  Error **errp)
{
    u->opts = opts_parse(u->arg, implied_key, NULL, help, errp);
    return u->opts && unique_id(u, all, kind, errp);
}

static bool parse_device(OptionUse *u, const OptionUse *all, Error **errp)
{
    if (u->arg[0] != '{') {
        return parse(u, all, "driver", &u->help, "device", errp);
    }
    u->json = qjson_parse(u->arg, errp);
    return u->json != NULL;
}

static bool parse_mon(OptionUse *u, Error **errp)
{
    static const OptDesc desc[] = {
        {"chardev", OPT_STRING}, {"mode", OPT_STRING}, {"pretty", OPT_BOOL}, {"id", OPT_STRING}, {NULL}};

    u->opts = opts_parse(u->arg, "chardev", desc, NULL, errp);
    return u->opts != NULL;
}

static bool parse_monitor(OptionUse *u, Error **errp)
{
    const char *device = g_str_has_prefix(u->arg, "mon:") ? u->arg + 4 : u->arg;
    Error *err = NULL;

    if (u->id == OPTION_MONITOR && !strcmp(device, "none")) {
        return true;
    }
    u->opts = chardev_parse_short(device, &err);
    if (u->opts) {
        return true;
    }
    if (err) {
        error_report_err(err);
    }
    error_setg(errp, "parse error: %s", u->arg);
    return false;
}

bool syntax_check(OptionUse *u, const OptionUse *all, Error **errp)
{
    switch (u->id) {
    case OPTION_BLOCKDEV:
        return blockdev_check_option(u->arg, errp);
    case OPTION_CHARDEV:
        return parse(u, all, "backend", &u->help, "chardev", errp);
    case OPTION_DEVICE:
        return parse_device(u, all, errp);
    case OPTION_DRIVE:
        return parse(u, all, NULL, NULL, "drive", errp);
    case OPTION_MON:
        return parse_mon(u, errp);
    case OPTION_MONITOR:
    case OPTION_QMP:
    case OPTION_QMP_PRETTY:
        return parse_monitor(u, errp);
    default:
        return true;
    }
}
