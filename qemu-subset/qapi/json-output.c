/* SPDX-License-Identifier: GPL-2.0-or-later */
/* JSON values to text, with members in the order in which QEMU's hash table gives them. */
#include "qapi/json.h"
#include "qapi/unicode.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define N_BUCKETS 512

/* The string hash of the gdbm and tdb databases, in 32-bit arithmetic. */
static unsigned int key_bucket(const char *key)
{
    uint32_t hash = 0x238f13afu * (uint32_t)strlen(key);

    for (uint32_t i = 0; key[i]; i++) {
        hash += (uint32_t)(unsigned char)key[i] << (i * 5 % 24);
    }
    return (1103515243u * hash + 12345u) % N_BUCKETS;
}

typedef struct Slot {
    unsigned int bucket;
    unsigned int inserted;
    const char *key;
} Slot;

/* Within a bucket the latest insertion comes first. */
static int compare_slots(const void *a, const void *b)
{
    const Slot *x = a, *y = b;

    if (x->bucket != y->bucket) {
        return x->bucket < y->bucket ? -1 : 1;
    }
    return x->inserted > y->inserted ? -1 : 1;
}

const char **qjson_object_keys(const json_t *obj)
{
    size_t n = json_object_size(obj);
    g_autofree Slot *slots = g_new(Slot, n + 1);
    const char **keys = g_new(const char *, n + 1);
    unsigned int i = 0;

    /* jansson iterates in the order of insertion */
    for (void *iter = json_object_iter((json_t *)obj); iter; iter = json_object_iter_next((json_t *)obj, iter)) {
        const char *key = json_object_iter_key(iter);

        slots[i] = (Slot){key_bucket(key), i, key};
        i++;
    }
    qsort(slots, n, sizeof(Slot), compare_slots);
    for (i = 0; i < n; i++) {
        keys[i] = slots[i].key;
    }
    keys[n] = NULL;
    return keys;
}

static void append_code(GString *out, int code)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = code > 0 && code < 0x80 ? strchr(escaped, code) : NULL;

    if (code < 0) {
        code = 0xfffd;
    }
    if (found) {
        g_string_append_printf(out, "\\%c", letters[found - escaped]);
    } else if (code >= 0x20 && code < 0x7f) {
        g_string_append_c(out, code);
    } else if (code < 0x10000) {
        g_string_append_printf(out, "\\u%04X", code);
    } else {
        code -= 0x10000;
        g_string_append_printf(out, "\\u%04X\\u%04X", 0xd800 | code >> 10, 0xdc00 | (code & 0x3ff));
    }
}

static void append_string(GString *out, const char *s)
{
    g_string_append_c(out, '"');
    while (*s) {
        size_t len;
        int code = unicode_decode(s, &len);

        append_code(out, code);
        s += len;
    }
    g_string_append_c(out, '"');
}

static void append_real(GString *out, double real)
{
    char buf[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append(out, g_ascii_formatd(buf, sizeof(buf), "%.17g", real));
}

/* What goes in front of an element, and of the closing bracket. */
static void separate(GString *out, bool first, bool closing, bool pretty, int depth)
{
    if (!first && !closing) {
        g_string_append(out, pretty ? "," : ", ");
    }
    if (pretty) {
        g_string_append_printf(out, "\n%*s", 4 * depth, "");
    }
}

static void append_value(GString *out, const json_t *value, bool pretty, int depth);

static void append_object(GString *out, const json_t *obj, bool pretty, int depth)
{
    g_autofree const char **keys = qjson_object_keys(obj);

    g_string_append_c(out, '{');
    for (int i = 0; keys[i]; i++) {
        separate(out, i == 0, false, pretty, depth + 1);
        append_string(out, keys[i]);
        g_string_append(out, ": ");
        append_value(out, json_object_get(obj, keys[i]), pretty, depth + 1);
    }
    separate(out, false, true, pretty, depth);
    g_string_append_c(out, '}');
}

static void append_array(GString *out, const json_t *array, bool pretty, int depth)
{
    g_string_append_c(out, '[');
    for (size_t i = 0; i < json_array_size(array); i++) {
        separate(out, i == 0, false, pretty, depth + 1);
        append_value(out, json_array_get(array, i), pretty, depth + 1);
    }
    separate(out, false, true, pretty, depth);
    g_string_append_c(out, ']');
}

static void append_value(GString *out, const json_t *value, bool pretty, int depth)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        append_object(out, value, pretty, depth);
        break;
    case JSON_ARRAY:
        append_array(out, value, pretty, depth);
        break;
    case JSON_STRING:
        append_string(out, json_string_value(value));
        break;
    case JSON_INTEGER:
        g_string_append_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        append_real(out, json_real_value(value));
        break;
    case JSON_TRUE:
        g_string_append(out, "true");
        break;
    case JSON_FALSE:
        g_string_append(out, "false");
        break;
    case JSON_NULL:
        g_string_append(out, "null");
        break;
    }
}

void qjson_append(GString *out, const json_t *value, bool pretty)
{
    append_value(out, value, pretty, 0);
}

GString *qjson_to_string(const json_t *value, bool pretty)
{
    GString *out = g_string_new(NULL);

    qjson_append(out, value, pretty);
    return out;
}
