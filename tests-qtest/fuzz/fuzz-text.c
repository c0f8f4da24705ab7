/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the parsers of text, which meet whatever a client or a user typed. The first byte chooses one. */
#include "fuzz-input.h"

#include "qapi/json.h"
#include "qapi/opts.h"

#include <string.h>

static const OptDesc desc[] = {
    {"file", OPT_STRING}, {"readonly", OPT_BOOL}, {"index", OPT_NUMBER}, {"size", OPT_SIZE}, {"id", OPT_STRING}, {NULL}};

static void on_value(void *opaque, json_t *value, Error *err)
{
    if (value) {
        /* What was read can be written, and that reads as what is written alike; what was no UTF-8 is replaced. */
        g_autoptr(GString) text = qjson_to_string(value, false);
        g_autoptr(json_t) again = qjson_parse(text->str, NULL);
        g_assert(again);
        g_autoptr(GString) text2 = qjson_to_string(again, false);
        g_assert_cmpstr(text->str, ==, text2->str);
        json_decref(value);
    } else {
        g_assert(*error_get_pretty(err));
        error_free(err);
    }
}

/* In pieces of a few bytes, as a socket may bring it. */
static void stream(const char *text, size_t len, size_t piece)
{
    JsonParser *p = json_parser_new(on_value, NULL);

    for (size_t at = 0; at < len; at += piece) {
        json_parser_feed(p, text + at, MIN(piece, len - at));
    }
    json_parser_flush(p);
    json_parser_free(p);
}

static void whole(const char *text)
{
    Error *err = NULL;
    json_t *value = qjson_parse(text, &err);

    g_assert(!value == !!err);
    json_decref(value);
    error_free(err);
}

static void keyval(const char *text, bool with_help)
{
    Error *err = NULL;
    bool help = false;
    json_t *value = keyval_parse(text, "driver", with_help ? &help : NULL, &err);

    g_assert(!value == !!err);
    json_decref(value);
    error_free(err);
}

static void options(const char *text, const OptDesc *known)
{
    Error *err = NULL;
    bool help = false;
    Opts *opts = opts_parse(text, "file", known, &help, &err);

    g_assert(opts || err);
    if (opts) {
        json_decref(opts_to_json(opts));
        opts_get_size(opts, "size", 'M', 0, NULL);
        opts_get_number(opts, "index", 0, NULL);
    }
    opts_free(opts);
    error_free(err);
}

static void scalars(const char *text)
{
    uint64_t u;
    int64_t i;
    double d;
    bool b;

    qapi_parse_size(text, 0, &u);
    qapi_parse_size(text, 'M', &u);
    qapi_parse_uint64(text, &u);
    qapi_parse_int64(text, &i);
    qapi_parse_number(text, &d);
    qapi_parse_bool(text, &b);
    qapi_id_wellformed(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) {
        return 0;
    }
    g_autofree char *text = g_strndup((const char *)data + 1, size - 1);
    switch (data[0] % 8) {
    case 0:
        stream((const char *)data + 1, size - 1, 1 + data[0] / 8);
        break;
    case 1:
    case 2:
        whole(text);
        break;
    case 3:
    case 4:
        keyval(text, data[0] & 8);
        break;
    case 5:
        options(text, NULL);
        break;
    case 6:
        options(text, desc);
        break;
    default:
        scalars(text);
    }
    return 0;
}
