/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON text in QEMU's dialect: a streaming parser and a serializer whose output matches QEMU's byte for byte. */
#ifndef QAPI_JSON_H
#define QAPI_JSON_H

#include "base/error.h"

#include <jansson.h>

/*
 * Values are jansson's. Integers are 64-bit signed; an integer literal beyond that becomes a real. Strings may hold bytes
 * that are not UTF-8 (file names), and U+0000 as C0 80; so make strings from outside with json_string_nocheck() and
 * members with json_object_set_new_nocheck(). No function here is tied to a thread; a JsonParser belongs to one thread
 * at a time.
 */

typedef struct JsonParser JsonParser;

/*
 * One call per complete top-level value (@value owned by the callee, @err NULL) or per syntax error (@err owned by
 * the callee, @value NULL). The callback may feed the same parser no further, but may free nothing of it either.
 */
typedef void JsonParserEmit(void *opaque, json_t *value, Error *err);

/*
 * The dialect: strings in single or double quotes, "\'" as an escape, no comments. A value may be split over any
 * number of json_parser_feed() calls; newlines mean nothing. After an error the parser continues with the next
 * token that can start a value. Errors read "LINE:COLUMN: JSON parse error, WHAT", both counted from 1 over the
 * life of the parser. Nesting is limited to 1024, a string or number to 64 MiB, and a value to 2 Mi tokens.
 */
JsonParser *json_parser_new(JsonParserEmit *emit, void *opaque);
void json_parser_feed(JsonParser *parser, const char *buf, size_t len);
/* No more input: a value that is still open is an error, "premature end of input"; an ended number is emitted. */
void json_parser_flush(JsonParser *parser);
void json_parser_free(JsonParser *parser);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(JsonParser, json_parser_free)

/* Exactly one value; NULL with @errp set for bad text, no value or more than one. */
json_t *qjson_parse(const char *text, Error **errp);

/*
 * The text of @value, without a newline at the end: object members in QEMU's hash order, ", " and ": " as
 * separators, everything outside printable ASCII as \uXXXX. @pretty puts each member on its own line, indented by 4.
 */
GString *qjson_to_string(const json_t *value, bool pretty);
void qjson_append(GString *out, const json_t *value, bool pretty);

/*
 * The members of @obj in QEMU's order: an array of borrowed keys that ends with NULL, to be freed with g_free().
 * For whoever prints an object in another form (HMP does).
 */
const char **qjson_object_keys(const json_t *obj);

G_DEFINE_AUTOPTR_CLEANUP_FUNC(json_t, json_decref)

#endif
