/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What generated types share: enum tables, generic list cells and alternates. */
#include "qapi/util.h"

#include <string.h>

const char *qapi_enum_lookup(const QEnumLookup *lookup, int val)
{
    g_assert(val >= 0 && val < lookup->size);
    return lookup->array[val];
}

int qapi_enum_parse(const QEnumLookup *lookup, const char *name, int def, Error **errp)
{
    if (!name) {
        return def;
    }
    for (int i = 0; i < lookup->size; i++) {
        if (!strcmp(name, lookup->array[i])) {
            return i;
        }
    }
    error_setg(errp, "invalid parameter value: %s", name);
    return def;
}

QType qapi_json_qtype(const json_t *value)
{
    static const QType types[] = {
        [JSON_OBJECT] = QTYPE_QDICT, [JSON_ARRAY] = QTYPE_QLIST,  [JSON_STRING] = QTYPE_QSTRING,
        [JSON_INTEGER] = QTYPE_QNUM, [JSON_REAL] = QTYPE_QNUM,    [JSON_TRUE] = QTYPE_QBOOL,
        [JSON_FALSE] = QTYPE_QBOOL,  [JSON_NULL] = QTYPE_QNULL,
    };
    return value ? types[json_typeof(value)] : QTYPE_NONE;
}
