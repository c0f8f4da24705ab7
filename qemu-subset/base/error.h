/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error objects for what a person or a client reads, and the reports on stderr. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* The classes that a QMP client can see. */
typedef enum ErrorClass {
    ERROR_CLASS_GENERIC_ERROR,
    ERROR_CLASS_COMMAND_NOT_FOUND,
    ERROR_CLASS_DEVICE_NOT_ACTIVE,
    ERROR_CLASS_DEVICE_NOT_FOUND,
    ERROR_CLASS_KVM_MISSING_CAP,
} ErrorClass;

typedef struct Error Error;

/*
 * Pass to an "Error **errp" parameter when failure is impossible (@error_abort: print and abort) or ends the
 * program (@error_fatal: print and exit with 1). NULL says that the caller wants no details.
 */
extern Error *error_abort, *error_fatal;

/* Set *@errp, which must be NULL or point to NULL. The message has no full stop and no newline. */
void error_setg(Error **errp, const char *format, ...) G_GNUC_PRINTF(2, 3);
void error_set(Error **errp, ErrorClass cls, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* Appends ": " and the text of @os_errno (positive). */
void error_setg_errno(Error **errp, int os_errno, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* A hint is printed on lines of its own after the message, and never sent over QMP; it brings its own newlines. */
void error_append_hint(Error **errp, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Put text in front of the message. */
void error_prepend(Error **errp, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Move @local (may be NULL) into *@dst, as error_setg() would; frees it if nobody wants it or *@dst is set. */
void error_propagate(Error **dst, Error *local);

const char *error_get_pretty(const Error *err);
const char *error_get_hint(const Error *err); /* "" if none */
ErrorClass error_get_class(const Error *err);
/* The name that QMP uses, "GenericError" for one. */
const char *error_class_name(ErrorClass cls);
void error_free(Error *err);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Error, error_free)

/*
 * Reports go to stderr as "PROG: LOCATION: message"; any thread. The location is the one of the calling thread's
 * innermost error_location_push(), such as "-device foo".
 */
void error_report(const char *format, ...) G_GNUC_PRINTF(1, 2);
void warn_report(const char *format, ...) G_GNUC_PRINTF(1, 2);
void info_report(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* Report @err with its hint, and free it. */
void error_report_err(Error *err);
void warn_report_err(Error *err);

/* The string must stay valid until the matching pop. */
void error_location_push(const char *where);
void error_location_pop(void);

/* Once at start: the name in front of every report (basename of argv[0]). */
void error_set_progname(const char *argv0);
const char *error_get_progname(void);
/* -msg timestamp=on, and guest-name=on with its name (NULL: none). */
void error_set_prefixes(bool timestamp, const char *guest_name);

/* Receives whole report lines instead of stderr in the calling thread (HMP does so); NULL restores. */
typedef void ErrorSink(void *opaque, const char *text);
void error_set_sink(ErrorSink *sink, void *opaque);

#endif
