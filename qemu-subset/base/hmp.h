/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a room hands to the human monitor: tables of commands that get arguments and write text. */
#ifndef BASE_HMP_H
#define BASE_HMP_H

#include <glib.h>
#include <jansson.h>

/*
 * @args is an object with one member for each argument given. @out collects the answer with '\n' line ends; the monitor
 * turns them into "\r\n". Main thread.
 */
typedef void HmpFn(json_t *args, GString *out);

typedef struct HmpCommand {
    const char *name; /* "stop|s": aliases after '|'; "info block" for a sub-command of info */
    /*
     * Arguments, comma separated NAME:TYPE: s a word, B the name of a block device, S the rest of the line, i an integer expression, o a size (bytes, with suffix
     * M by default), b on|off, O key=value options of which
     * "driver" is implied (an object of strings, with "help": true if that was among them), -x a flag (true when given). A '?' after the type makes it optional.
     */
    const char *args;
    const char *params; /* shown by help */
    const char *help;
    HmpFn *fn;
} HmpCommand;

/* Report @err the way HMP does ("Error: ...", then its hint), and free it. */
#define hmp_error(out, err)                                                                        \
    do {                                                                                           \
        g_string_append_printf(out, "Error: %s\n%s", error_get_pretty(err), error_get_hint(err));   \
        error_free(err);                                                                           \
    } while (0)

#endif
