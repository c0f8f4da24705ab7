/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of qemu-system-x86_64: the table of options and the walk over argv. */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include "qapi/opts.h"

typedef enum OptionId {
    OPTION_ACCEL,
    OPTION_AUDIO,
    OPTION_BLOCKDEV,
    OPTION_BOOT,
    OPTION_CHARDEV,
    OPTION_CPU,
    OPTION_DAEMONIZE,
    OPTION_DEVICE,
    OPTION_DISPLAY,
    OPTION_DRIVE,
    OPTION_GLOBAL,
    OPTION_HELP,
    OPTION_MACHINE,
    OPTION_MEMORY,
    OPTION_MON,
    OPTION_MONITOR,
    OPTION_MSG,
    OPTION_NAME,
    OPTION_NIC,
    OPTION_NODEFAULTS,
    OPTION_NOGRAPHIC,
    OPTION_NO_REBOOT,
    OPTION_NO_SHUTDOWN,
    OPTION_NO_USER_CONFIG,
    OPTION_OBJECT,
    OPTION_PARALLEL,
    OPTION_PIDFILE,
    OPTION_QMP,
    OPTION_QMP_PRETTY,
    OPTION_QTEST,
    OPTION_QTEST_LOG,
    OPTION_RTC,
    OPTION_RUN_WITH,
    OPTION_SERIAL,
    OPTION_SMP,
    OPTION_STOPPED,
    OPTION_UUID,
    OPTION_VERSION,
    OPTION_VGA,
    OPTION_DISK, /* a word without a dash */
    OPTIONS,
} OptionId;

/* One option as it was typed, in order. */
typedef struct OptionUse {
    OptionId id;
    const char *arg; /* NULL for options that take none */
    char *location;  /* "-device foo", for reports */
    /* What the syntax check made of it: one of them, or none for an option that needs no check of its own. */
    Opts *opts;
    json_t *json;
    bool help; /* "help" is among @opts */
} OptionUse;

/*
 * Cut argv into options. NULL-terminated by id OPTIONS; NULL with an error reported: unknown, missing argument, or one of QEMU's options
 * that is not here, which is refused by name. Free with options_free().
 */
OptionUse *options_parse(int argc, char **argv);
void options_free(OptionUse *uses);

/* -help and -version, to stdout. */
void options_print_help(void);
void options_print_version(void);

#endif
