/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What generated types share: enum tables, generic list cells and alternates. */
#ifndef QAPI_UTIL_H
#define QAPI_UTIL_H

#include "base/error.h"

#include <jansson.h>

/* Names of an enum's values, indexed by value. */
typedef struct QEnumLookup {
    const char *const *array;
    int size;
} QEnumLookup;

/* The name of @value, which must be valid. */
const char *qapi_enum_lookup(const QEnumLookup *names, int value);
/*
 * The value named @name; @fallback if @name is NULL or unknown, and in the latter case "invalid parameter value: NAME"
 * in @errp.
 */
int qapi_enum_parse(const QEnumLookup *names, const char *name, int fallback, Error **errp);

/* Every generated FooList starts like this; the value follows at the alignment of its type. */
typedef struct GenericList {
    struct GenericList *next;
} GenericList;

typedef enum QType {
    QTYPE_NONE,
    QTYPE_QNULL,
    QTYPE_QNUM,
    QTYPE_QSTRING,
    QTYPE_QDICT,
    QTYPE_QLIST,
    QTYPE_QBOOL,
    QTYPE__MAX,
} QType;
QType qapi_json_qtype(const json_t *value);

/* Every generated alternate starts like this. */
typedef struct GenericAlternate {
    QType type;
} GenericAlternate;

/* Put @element in front of @list; append one at the end, where @tail is a pointer to the last "next" (moves on). */
#define QAPI_LIST_PREPEND(list, element)                                                           \
    do {                                                                                           \
        __typeof__(list) cell_ = g_new0(__typeof__(*(list)), 1);                                   \
        cell_->value = (element);                                                                  \
        cell_->next = (list);                                                                      \
        (list) = cell_;                                                                            \
    } while (0)
#define QAPI_LIST_APPEND(tail, element)                                                            \
    do {                                                                                           \
        __typeof__(*(tail)) cell_ = g_new0(__typeof__(**(tail)), 1);                               \
        cell_->value = (element);                                                                  \
        *(tail) = cell_;                                                                           \
        (tail) = &cell_->next;                                                                     \
    } while (0)

#endif
