/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of qtest/ only. */
#ifndef QTEST_PRIVATE_H
#define QTEST_PRIVATE_H

#include "guest/qdev.h"
#include "qtest/qtest.h"

#include <stdint.h>
#include <stdio.h>

struct QtestServer {
    QtestOptions options;
    FILE *log; /* NULL: none */
    bool log_is_stderr;
    bool connected;
    int64_t opened_us;
    GString *input;
    size_t consumed; /* bytes of input whose lines have run */
    bool skipping;   /* inside a line that is too long */
    bool processing; /* a command may run the loop, and the loop may feed us */

    DeviceState *irq_device; /* NULL: nothing is intercepted */
    GHashTable *irq_levels;  /* line number -> last level, absent: 0 */
};

/* @words: arguments behind the command's name, NULL-terminated; at least as many as the table asks for. */
typedef void QtestHandler(QtestServer *s, char **words);

typedef struct QtestCommand {
    const char *name; /* NULL ends a table */
    unsigned int min_args, max_args;
    QtestHandler *fn;
    bool needs_cpu;   /* refused on a machine without an address space */
    bool needs_clock; /* only with the qtest accelerator */
} QtestCommand;

extern const QtestCommand qtest_memory_commands[], qtest_machine_commands[];

/* One reply, or one asynchronous message: a line without its newline. */
void qtest_send(QtestServer *s, const char *line);
void qtest_sendf(QtestServer *s, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
void qtest_logf(QtestServer *s, char kind, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

/* A C integer in base 0; otherwise false, and the client has its FAIL. */
bool qtest_number(QtestServer *s, const char *word, uint64_t *value);
/* Stop watching interrupt lines. */
void qtest_irq_release(QtestServer *s);

#endif
