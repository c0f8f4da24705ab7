/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error objects for what a person or a client reads, and the reports on stderr. */
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Error {
    ErrorClass cls;
    char *msg;
    char *hint; /* NULL: none */
};

Error *error_abort, *error_fatal;

static char *progname;
static bool with_timestamp;
static char *guest_name_prefix;

#define MAX_LOCATIONS 16
static __thread const char *locations[MAX_LOCATIONS];
static __thread unsigned int n_locations;
static __thread ErrorSink *sink;
static __thread void *sink_opaque;

static void error_handle_special(Error **errp, Error *err)
{
    if (errp == &error_abort) {
        fprintf(stderr, "Unexpected error: %s\n", err->msg);
        abort();
    }
    if (errp == &error_fatal) {
        error_report_err(err);
        exit(1);
    }
}

static void error_store(Error **errp, ErrorClass cls, char *msg)
{
    if (!errp) {
        g_free(msg);
        return;
    }
    Error *err = g_new0(Error, 1);
    err->cls = cls;
    err->msg = msg;
    error_handle_special(errp, err);
    g_assert(!*errp);
    *errp = err;
}

/* Declares @text with the message of a printf-like function whose last named parameter is "format". */
#define FORMAT_TEXT(text)                                                                          \
    va_list text##_args;                                                                           \
    va_start(text##_args, format);                                                                 \
    g_autofree char *text = g_strdup_vprintf(format, text##_args);                                 \
    va_end(text##_args)

void error_setg(Error **errp, const char *format, ...)
{
    FORMAT_TEXT(text);
    error_store(errp, ERROR_CLASS_GENERIC_ERROR, g_steal_pointer(&text));
}

void error_set(Error **errp, ErrorClass cls, const char *format, ...)
{
    FORMAT_TEXT(text);
    error_store(errp, cls, g_steal_pointer(&text));
}

void error_setg_errno(Error **errp, int os_errno, const char *format, ...)
{
    FORMAT_TEXT(text);
    error_store(errp, ERROR_CLASS_GENERIC_ERROR, g_strconcat(text, ": ", g_strerror(os_errno), NULL));
}

void error_append_hint(Error **errp, const char *format, ...)
{
    Error *err = errp ? *errp : NULL;

    if (err) {
        FORMAT_TEXT(more);
        g_autofree char *old = err->hint;
        err->hint = g_strconcat(old ? old : "", more, NULL);
    }
}

void error_prepend(Error **errp, const char *format, ...)
{
    Error *err = errp ? *errp : NULL;

    if (err) {
        FORMAT_TEXT(front);
        g_autofree char *old = err->msg;
        err->msg = g_strconcat(front, old, NULL);
    }
}

void error_propagate(Error **dst, Error *local)
{
    if (!local) {
        return;
    }
    if (dst) {
        error_handle_special(dst, local);
    }
    if (dst && !*dst) {
        *dst = local;
    } else {
        error_free(local);
    }
}

const char *error_get_pretty(const Error *err)
{
    return err->msg;
}

const char *error_get_hint(const Error *err)
{
    return err->hint ? err->hint : "";
}

ErrorClass error_get_class(const Error *err)
{
    return err->cls;
}

const char *error_class_name(ErrorClass cls)
{
    static const char *const names[] = {
        [ERROR_CLASS_GENERIC_ERROR] = "GenericError",
        [ERROR_CLASS_COMMAND_NOT_FOUND] = "CommandNotFound",
        [ERROR_CLASS_DEVICE_NOT_ACTIVE] = "DeviceNotActive",
        [ERROR_CLASS_DEVICE_NOT_FOUND] = "DeviceNotFound",
        [ERROR_CLASS_KVM_MISSING_CAP] = "KVMMissingCap",
    };
    return names[cls];
}

void error_free(Error *err)
{
    if (err) {
        g_free(err->hint);
        g_free(err->msg);
        g_free(err);
    }
}

/* One write a report, so that reports of several threads do not mix. */
static void emit(const char *kind, const char *msg, const char *hint)
{
    g_autoptr(GString) line = g_string_new(NULL);

    if (sink) {
        g_string_append_printf(line, "%s%s\n%s", kind, msg, hint);
        sink(sink_opaque, line->str);
        return;
    }
    if (with_timestamp) {
        g_autoptr(GDateTime) now = g_date_time_new_now_utc();
        g_autofree char *secs = g_date_time_format(now, "%Y-%m-%dT%H:%M:%S");

        g_string_append_printf(line, "%s.%06dZ ", secs, g_date_time_get_microsecond(now));
    }
    if (guest_name_prefix) {
        g_string_append_printf(line, "%s ", guest_name_prefix);
    }
    if (progname) {
        g_string_append_printf(line, "%s: ", progname);
    }
    if (n_locations) {
        g_string_append_printf(line, "%s: ", locations[n_locations - 1]);
    }
    g_string_append_printf(line, "%s%s\n%s", kind, msg, hint);
    fputs(line->str, stderr);
    fflush(stderr);
}

#define DEFINE_REPORT(name, kind)                                                                  \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        FORMAT_TEXT(text);                                                                         \
        emit(kind, text, "");                                                                      \
    }

DEFINE_REPORT(error_report, "")
DEFINE_REPORT(warn_report, "warning: ")
DEFINE_REPORT(info_report, "info: ")

void error_report_err(Error *err)
{
    emit("", err->msg, error_get_hint(err));
    error_free(err);
}

void warn_report_err(Error *err)
{
    emit("warning: ", err->msg, error_get_hint(err));
    error_free(err);
}

void error_location_push(const char *where)
{
    g_assert(n_locations < MAX_LOCATIONS);
    locations[n_locations++] = where;
}

void error_location_pop(void)
{
    g_assert(n_locations > 0);
    n_locations--;
}

void error_set_progname(const char *argv0)
{
    g_free(progname);
    progname = g_path_get_basename(argv0);
}

const char *error_get_progname(void)
{
    return progname ? progname : "";
}

void error_set_prefixes(bool timestamp, const char *guest_name)
{
    with_timestamp = timestamp;
    g_free(guest_name_prefix);
    guest_name_prefix = g_strdup(guest_name);
}

void error_set_sink(ErrorSink *new_sink, void *opaque)
{
    sink = new_sink;
    sink_opaque = opaque;
}
