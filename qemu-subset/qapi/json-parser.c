/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tokens to JSON values: a push-down automaton that reports a mistake at once and skips the rest of the value. */
#include "qapi/json-lexer.h"
#include "qapi/json.h"
#include "qapi/unicode.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define MAX_NESTING 1024
#define MAX_TOKENS (2u << 20)

typedef enum Expect {
    EXPECT_VALUE,
    EXPECT_FIRST_ELEMENT, /* or "]" */
    EXPECT_FIRST_KEY,     /* or "}" */
    EXPECT_KEY,
    EXPECT_COLON,
    EXPECT_SEPARATOR, /* or the closing bracket */
    EXPECT_NOTHING,   /* the value is complete */
} Expect;

typedef struct Level {
    json_t *container;
    char *key; /* of the member whose value comes next */
} Level;

struct JsonParser {
    JsonLexer lexer;
    JsonParserEmit *emit;
    void *opaque;
    GArray *levels; /* of Level */
    json_t *value;  /* once complete */
    Error *err;     /* a mistake in the current token */
    bool skipping;  /* after a mistake, to the end of the value */
    Expect expect;
    int braces, brackets; /* open ones, while skipping too */
    unsigned int tokens;
};

static void set_error(JsonParser *p, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

static void set_error(JsonParser *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    error_setg(&p->err, "%u:%u: JSON parse error, %s", p->lexer.token_line, p->lexer.token_column, what);
}

static Level *top(JsonParser *p)
{
    return p->levels->len ? &g_array_index(p->levels, Level, p->levels->len - 1) : NULL;
}

static void drop_value(JsonParser *p)
{
    for (guint i = 0; i < p->levels->len; i++) {
        Level *level = &g_array_index(p->levels, Level, i);

        json_decref(level->container);
        g_free(level->key);
    }
    g_array_set_size(p->levels, 0);
    g_clear_pointer(&p->value, json_decref);
    p->expect = EXPECT_VALUE;
}

static void start_afresh(JsonParser *p)
{
    drop_value(p);
    p->skipping = false;
    p->braces = p->brackets = 0;
    p->tokens = 0;
}

static void deliver_value(JsonParser *p)
{
    json_t *value = g_steal_pointer(&p->value);

    start_afresh(p);
    p->emit(p->opaque, value, NULL);
}

static void deliver_error(JsonParser *p)
{
    drop_value(p);
    p->emit(p->opaque, NULL, g_steal_pointer(&p->err));
}

static int hex_digits(const char *s)
{
    int code = 0;

    for (int i = 0; i < 4; i++) {
        if (!g_ascii_isxdigit(s[i])) {
            return -1;
        }
        code = code << 4 | g_ascii_xdigit_value(s[i]);
    }
    return code;
}

/* The text after "\u", up to the string's end; appends to @out and returns the characters used, 0 after an error. */
static size_t unescape_unicode(JsonParser *p, const char *s, GString *out)
{
    int code = hex_digits(s);
    size_t used = 4;
    char utf8[4];

    if (code >= 0xd800 && code <= 0xdbff && s[4] == '\\' && s[5] == 'u') {
        int low = hex_digits(s + 6);

        if (low >= 0xdc00 && low <= 0xdfff) {
            code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
            used = 10;
        }
    }
    if (code < 0 || !unicode_valid(code)) {
        set_error(p, "\\u%.4s is not a valid Unicode character", s);
        return 0;
    }
    g_string_append_len(out, utf8, unicode_encode(code, utf8));
    return used;
}

static size_t unescape(JsonParser *p, const char *s, GString *out)
{
    static const char from[] = "\"'\\/bfnrt", to[] = "\"'\\/\b\f\n\r\t";
    const char *found = strchr(from, *s);

    if (*s == 'u') {
        size_t used = unescape_unicode(p, s + 1, out);

        return used ? used + 1 : 0;
    }
    if (!found || !*s) {
        set_error(p, "invalid escape sequence in string");
        return 0;
    }
    g_string_append_c(out, to[found - from]);
    return 1;
}

/* The content of a string token; NULL after an error. */
static char *string_content(JsonParser *p, const GString *token)
{
    g_autoptr(GString) out = g_string_sized_new(token->len);
    const char *s = token->str + 1, *end = token->str + token->len - 1;

    while (s < end) {
        size_t len = 1;

        if (*s == '\\') {
            len = unescape(p, s + 1, out);
            if (!len) {
                return NULL;
            }
            s += 1 + len;
            continue;
        }
        if (unicode_decode(s, &len) < 0) {
            set_error(p, "invalid UTF-8 sequence in string");
            return NULL;
        }
        g_string_append_len(out, s, len);
        s += len;
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static json_t *number_value(JsonParser *p, JsonTokenKind kind, const char *text)
{
    if (kind == TOKEN_INTEGER) {
        errno = 0;
        long long number = strtoll(text, NULL, 10);

        if (!errno) {
            return json_integer(number);
        }
    }
    double real = g_ascii_strtod(text, NULL);
    if (!isfinite(real)) {
        set_error(p, "number '%s' is out of range", text);
        return NULL;
    }
    return json_real(real);
}

static json_t *keyword_value(JsonParser *p, const char *text)
{
    if (!strcmp(text, "true")) {
        return json_true();
    }
    if (!strcmp(text, "false")) {
        return json_false();
    }
    if (!strcmp(text, "null")) {
        return json_null();
    }
    set_error(p, "invalid keyword '%s'", text);
    return NULL;
}

/* Put a complete @value where it belongs. */
static void place(JsonParser *p, json_t *value)
{
    Level *level = top(p);

    if (!level) {
        p->value = value;
        p->expect = EXPECT_NOTHING;
        return;
    }
    if (level->key && json_object_get(level->container, level->key)) {
        json_decref(value);
        set_error(p, "duplicate key");
        return;
    }
    if (level->key) {
        json_object_set_new_nocheck(level->container, level->key, value);
        g_clear_pointer(&level->key, g_free);
    } else {
        json_array_append_new(level->container, value);
    }
    p->expect = EXPECT_SEPARATOR;
}

static void open_container(JsonParser *p, char bracket)
{
    Level level = {bracket == '{' ? json_object() : json_array(), NULL};

    g_array_append_val(p->levels, level);
    p->expect = bracket == '{' ? EXPECT_FIRST_KEY : EXPECT_FIRST_ELEMENT;
}

static void close_container(JsonParser *p)
{
    json_t *container = top(p)->container;

    g_array_set_size(p->levels, p->levels->len - 1);
    place(p, container);
}

static void take_value(JsonParser *p, JsonTokenKind kind, const GString *text)
{
    json_t *value = NULL;

    if (kind == TOKEN_PUNCT) {
        if (text->str[0] == '{' || text->str[0] == '[') {
            open_container(p, text->str[0]);
        } else {
            set_error(p, "expecting value");
        }
        return;
    }
    if (kind == TOKEN_STRING) {
        g_autofree char *content = string_content(p, text);

        value = content ? json_string_nocheck(content) : NULL;
    } else if (kind == TOKEN_KEYWORD) {
        value = keyword_value(p, text->str);
    } else {
        value = number_value(p, kind, text->str);
    }
    if (value) {
        place(p, value);
    }
}

static void take_key(JsonParser *p, JsonTokenKind kind, const GString *text)
{
    if (kind != TOKEN_STRING) {
        set_error(p, "expecting key");
        return;
    }
    g_autofree char *key = string_content(p, text);
    if (!key) {
        return;
    }
    top(p)->key = g_steal_pointer(&key);
    p->expect = EXPECT_COLON;
}

static void take_separator(JsonParser *p, char c)
{
    bool object = json_is_object(top(p)->container);

    if (c == (object ? '}' : ']')) {
        close_container(p);
    } else if (c == ',') {
        p->expect = object ? EXPECT_KEY : EXPECT_VALUE;
    } else {
        set_error(p, "expected ',' or '%c'", object ? '}' : ']');
    }
}

static void step(JsonParser *p, JsonTokenKind kind, const GString *text)
{
    char punct = kind == TOKEN_PUNCT ? text->str[0] : 0;

    if ((p->expect == EXPECT_FIRST_KEY && punct == '}') || (p->expect == EXPECT_FIRST_ELEMENT && punct == ']')) {
        close_container(p);
        return;
    }
    switch (p->expect) {
    case EXPECT_FIRST_KEY:
    case EXPECT_KEY:
        take_key(p, kind, text);
        break;
    case EXPECT_COLON:
        if (punct == ':') {
            p->expect = EXPECT_VALUE;
        } else {
            set_error(p, "expecting ':'");
        }
        break;
    case EXPECT_SEPARATOR:
        take_separator(p, punct);
        break;
    default:
        take_value(p, kind, text);
        break;
    }
}

static void count_brackets(JsonParser *p, char punct)
{
    p->braces += punct == '{' ? 1 : punct == '}' ? -1 : 0;
    p->brackets += punct == '[' ? 1 : punct == ']' ? -1 : 0;
}

static bool within_brackets(const JsonParser *p)
{
    return (p->braces > 0 || p->brackets > 0) && p->braces >= 0 && p->brackets >= 0;
}

/* What is no token, and the end of the input, end the value too. */
static void take_end(JsonParser *p, JsonTokenKind kind, const GString *text)
{
    bool within = p->tokens && !p->skipping;

    start_afresh(p);
    if (kind == TOKEN_STRAY) {
        set_error(p, "stray '%s'", text->str);
    } else if (kind == TOKEN_TOO_LONG) {
        error_setg(&p->err, "JSON token size limit exceeded");
    } else if (within) {
        set_error(p, "premature end of input");
    }
    if (p->err) {
        deliver_error(p);
    }
}

static void take_token(void *opaque, JsonTokenKind kind, const GString *text)
{
    JsonParser *p = opaque;

    if (kind == TOKEN_STRAY || kind == TOKEN_TOO_LONG || kind == TOKEN_END) {
        take_end(p, kind, text);
        return;
    }
    count_brackets(p, kind == TOKEN_PUNCT ? text->str[0] : 0);
    if (!p->skipping) {
        if (p->braces + p->brackets > MAX_NESTING || ++p->tokens > MAX_TOKENS) {
            error_setg(&p->err, "JSON %s limit exceeded", p->tokens > MAX_TOKENS ? "token count" : "nesting depth");
        } else {
            step(p, kind, text);
        }
        if (p->err) {
            p->skipping = true;
            deliver_error(p);
        }
    }
    if (p->expect == EXPECT_NOTHING) {
        deliver_value(p);
    } else if (p->skipping && !within_brackets(p)) {
        start_afresh(p);
    }
}

JsonParser *json_parser_new(JsonParserEmit *emit, void *opaque)
{
    JsonParser *p = g_new0(JsonParser, 1);

    json_lexer_init(&p->lexer, take_token, p);
    p->levels = g_array_new(FALSE, FALSE, sizeof(Level));
    p->emit = emit;
    p->opaque = opaque;
    return p;
}

void json_parser_feed(JsonParser *parser, const char *buf, size_t len)
{
    json_lexer_feed(&parser->lexer, buf, len);
}

void json_parser_flush(JsonParser *parser)
{
    json_lexer_flush(&parser->lexer);
}

void json_parser_free(JsonParser *parser)
{
    if (!parser) {
        return;
    }
    drop_value(parser);
    g_array_free(parser->levels, TRUE);
    json_lexer_destroy(&parser->lexer);
    g_free(parser);
}

typedef struct OneValue {
    json_t *value;
    Error *err;
    unsigned int count;
} OneValue;

static void take_only(void *opaque, json_t *value, Error *err)
{
    OneValue *one = opaque;

    if (one->count++) {
        json_decref(value);
        error_free(err);
        return;
    }
    one->value = value;
    one->err = err;
}

json_t *qjson_parse(const char *text, Error **errp)
{
    OneValue one = {0};
    g_autoptr(JsonParser) parser = json_parser_new(take_only, &one);

    json_parser_feed(parser, text, strlen(text));
    json_parser_flush(parser);
    if (one.err) {
        error_propagate(errp, one.err);
        return NULL;
    }
    if (one.count != 1) {
        json_decref(one.value);
        error_setg(errp, one.count ? "Expecting at most one JSON value" : "Expecting a JSON value");
        return NULL;
    }
    return one.value;
}
