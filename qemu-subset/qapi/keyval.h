/* SPDX-License-Identifier: GPL-2.0-or-later */
/* "key=value,..." command line arguments as nested JSON with string leaves, and the scalar syntaxes of such values. */
#ifndef QAPI_KEYVAL_H
#define QAPI_KEYVAL_H

#include "qapi/json.h"

/*
 * Parse @params: keys are separated by dots ("file.driver=x" nests, "a.0=x,a.1=y" makes a list), a comma inside a
 * value is doubled, the last of several equal keys wins. A first element without "=" is the value of @implied_key
 * unless that is NULL. "help" or "?" as an element sets *@help if @help is given, and is an error otherwise.
 * Returns a new object, or NULL with @errp set.
 */
json_t *keyval_parse(const char *params, const char *implied_key, bool *help, Error **errp);

/*
 * Scalars, as all of QEMU's text interfaces read them. They return false without an Error: the caller knows the words
 * to complain with. Integers are C literals in base 0 with nothing around them.
 */
bool qapi_parse_bool(const char *text, bool *value); /* on yes true y, off no false n */
bool qapi_parse_int64(const char *text, int64_t *value);
bool qapi_parse_uint64(const char *text, uint64_t *value); /* "-1" wraps, as in QEMU */
bool qapi_parse_number(const char *text, double *value); /* finite */

typedef enum QapiSizeResult {
    QAPI_SIZE_OK,
    QAPI_SIZE_BAD,      /* not a number with an optional suffix b, k, M, G, T, P or E */
    QAPI_SIZE_RANGE,    /* negative, or 2^64 and more */
} QapiSizeResult;
/* Bytes; @default_suffix (0, 'k', 'M', ...) applies when the text has none. A fraction needs a suffix above b. */
QapiSizeResult qapi_parse_size(const char *text, char default_suffix, uint64_t *value);

/* An id: a letter, then letters, digits, '-', '.' and '_'. */
bool qapi_id_wellformed(const char *id);

#endif
