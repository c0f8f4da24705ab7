/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The qtest server: lines in, replies out, and the log of both. */
#include "guest/machine.h"
#include "qtest/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for the largest write command; whoever sends more without a newline is no qtest client. */
#define MAX_LINE (768u << 20)

static QtestServer *the_server;

/* --- Log --- */

static void log_prefix(QtestServer *s, char kind)
{
    double t = (double)(g_get_monotonic_time() - s->opened_us) / G_USEC_PER_SEC;

    fprintf(s->log, "[%c +%.06f] ", kind, t);
}

void qtest_logf(QtestServer *s, char kind, const char *fmt, ...)
{
    va_list ap;

    if (!s->log) {
        return;
    }
    log_prefix(s, kind);
    va_start(ap, fmt);
    vfprintf(s->log, fmt, ap);
    va_end(ap);
    fputc('\n', s->log);
    fflush(s->log);
}

static void log_line(QtestServer *s, char kind, const char *line)
{
    if (s->log) {
        log_prefix(s, kind);
        fputs(line, s->log);
        fputc('\n', s->log);
        fflush(s->log);
    }
}

/* --- Output --- */

void qtest_send(QtestServer *s, const char *line)
{
    if (!s->connected) {
        return;
    }
    log_line(s, 'S', line);
    s->options.write(s->options.opaque, line, strlen(line));
    s->options.write(s->options.opaque, "\n", 1);
}

void qtest_sendf(QtestServer *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *line = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    qtest_send(s, line);
}

/* --- Commands --- */

bool qtest_number(QtestServer *s, const char *word, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoull(word, &end, 0);
    if (end == word || *end || errno || g_ascii_isspace(word[0])) {
        qtest_sendf(s, "FAIL Invalid number '%.64s'", word);
        return false;
    }
    return true;
}

static const QtestCommand *find_command(QtestServer *s, const char *name)
{
    const QtestCommand *const tables[] = {qtest_memory_commands, qtest_machine_commands};

    for (unsigned int i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (const QtestCommand *c = tables[i]; c->name; c++) {
            if (!strcmp(c->name, name)) {
                return c->needs_clock && !s->options.virtual_clock ? NULL : c;
            }
        }
    }
    return NULL;
}

static void run_line(QtestServer *s, char *line)
{
    if (!*line || *line == '#') {
        return;
    }
    log_line(s, 'R', line);
    /* An invalid character would end up in a reply. */
    if (!g_utf8_validate(line, -1, NULL)) {
        qtest_send(s, "FAIL Line is not valid UTF-8");
        return;
    }
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    const QtestCommand *c = find_command(s, words[0]);
    unsigned int args = g_strv_length(words) - 1;

    if (!c) {
        qtest_sendf(s, "FAIL Unknown command '%.64s'", words[0]);
    } else if (args < c->min_args) {
        qtest_sendf(s, "FAIL Too few arguments for '%s'", c->name);
    } else if (args > c->max_args) {
        qtest_sendf(s, "FAIL Too many arguments for '%s'", c->name);
    } else if (c->needs_cpu && !machine_has_cpus()) {
        qtest_send(s, "FAIL This machine has no CPU that could access memory or ports");
    } else {
        c->fn(s, words + 1);
    }
}

/* A command may run the loop, and that may feed more, close and reopen: nothing is kept over run_line(). */
static void process(QtestServer *s)
{
    s->processing = true;
    while (s->connected) {
        char *start = s->input->str + s->consumed;
        char *nl = memchr(start, '\n', s->input->len - s->consumed);
        if (!nl) {
            break;
        }
        size_t len = (size_t)(nl - start);
        g_autofree char *line = g_strndup(start, len);
        s->consumed += len + 1;
        if (s->skipping) {
            s->skipping = false;
            qtest_send(s, "FAIL Line is too long");
        } else if (strlen(line) < len) {
            qtest_send(s, "FAIL Line contains a NUL");
        } else {
            run_line(s, line);
        }
    }
    g_string_erase(s->input, 0, (gssize)s->consumed);
    s->consumed = 0;
    s->processing = false;
    if (s->input->len > MAX_LINE) {
        s->skipping = true;
    }
    if (s->skipping) {
        g_string_truncate(s->input, 0);
    }
}

void qtest_feed(QtestServer *s, const char *buf, size_t len)
{
    g_string_append_len(s->input, buf, (gssize)len);
    if (!s->processing) {
        process(s);
    }
}

/* --- Connection --- */

void qtest_opened(QtestServer *s)
{
    s->connected = true;
    s->skipping = false;
    s->opened_us = g_get_monotonic_time();
    g_hash_table_remove_all(s->irq_levels);
    if (s->log) {
        fprintf(s->log, "[I %.06f] OPENED\n", 0.000001);
        fflush(s->log);
    }
}

void qtest_closed(QtestServer *s)
{
    if (!s->connected) {
        return;
    }
    qtest_logf(s, 'I', "CLOSED");
    s->connected = false;
    g_string_truncate(s->input, 0);
    s->consumed = 0;
}

bool qtest_client_connected(void)
{
    return the_server && the_server->connected;
}

static void open_log(QtestServer *s)
{
    const char *path = s->options.log;

    if (!path) {
        s->log = stderr;
        s->log_is_stderr = true;
    } else if (strcmp(path, "none")) {
        s->log = fopen(path, "we");
    }
}

QtestServer *qtest_server_new(const QtestOptions *options, Error **errp)
{
    if (the_server) {
        error_setg(errp, "Only one instance of qtest can be created");
        return NULL;
    }
    QtestServer *s = g_new0(QtestServer, 1);
    s->options = *options;
    s->input = g_string_new(NULL);
    s->irq_levels = g_hash_table_new(NULL, NULL);
    open_log(s);
    s->options.log = NULL; /* the caller's string */
    the_server = s;
    return s;
}

void qtest_server_free(QtestServer *s)
{
    if (!s) {
        return;
    }
    g_assert(!s->processing);
    qtest_irq_release(s);
    if (s->log && !s->log_is_stderr) {
        fclose(s->log);
    }
    g_string_free(s->input, TRUE);
    g_hash_table_destroy(s->irq_levels);
    g_free(s);
    the_server = NULL;
}
