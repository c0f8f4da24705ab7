/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the command line asked for, beyond what the rooms keep themselves. */
#ifndef TOOLS_SETTINGS_H
#define TOOLS_SETTINGS_H

#include "tools/options.h"

#include <glib.h>

typedef struct Settings {
    bool stopped, nodefaults, nographic, daemonize, timestamp, guest_name_prefix;
    bool virtual_clock; /* -accel qtest */
    bool has_monitor, has_serial;
    char *name;
    const char *pidfile, *qtest, *qtest_log;
    const OptionUse *qtest_use;
    GPtrArray *objects; /* json_t, checked options in order */
} Settings;

/* Every error ends the program. By address: the call that sets it and its use are arguments of one call, in open order. */
void require(bool ok, Error **err);
/* "help" was asked for and has been printed. */
void exit_after_help(bool help);
/* In order: what only sets something is done, the syntax of the rest is checked; objects are kept for later. */
void settings_apply(Settings *s, OptionUse *uses);
/* These two come late, and their errors do not name the option. */
void settings_apply_vga(const OptionUse *uses);
void settings_check_cpu(const OptionUse *uses);

#endif
