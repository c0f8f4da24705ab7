/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What generated types share: enum tables, generic list cells and alternates. */
#include "qapi/util.h"

#include <string.h>

QType qapi_json_qtype(const json_t *value)
{
    static const QType types[] = {
        [JSON_OBJECT] = QTYPE_QDICT, [JSON_ARRAY] = QTYPE_QLIST,  [JSON_STRING] = QTYPE_QSTRING,
        [JSON_INTEGER] = QTYPE_QNUM, [JSON_REAL] = QTYPE_QNUM,    [JSON_TRUE] = QTYPE_QBOOL,
        [JSON_FALSE] = QTYPE_QBOOL,  [JSON_NULL] = QTYPE_QNULL,
    };
    return value ? types[json_typeof(value)] : QTYPE_NONE;
}

/* The value that @name stands for; -1 if for none. */
static int value_of(const QEnumLookup *names, const char *name)
{
    int value = names->size - 1;

    while (value >= 0 && strcmp(names->array[value], name) != 0) {
        value--;
    }
    return value;
}

int qapi_enum_parse(const QEnumLookup *names, const char *name, int fallback, Error **errp)
{
    if (name) {
        int value = value_of(names, name);

        if (value >= 0) {
            return value;
        }
        error_setg(errp, "invalid parameter value: %s", name);
    }
    return fallback;
}

const char *qapi_enum_lookup(const QEnumLookup *names, int value)
{
    g_assert_cmpint(value, >=, 0);
    g_assert_cmpint(value, <, names->size);
    return names->array[value];
}
