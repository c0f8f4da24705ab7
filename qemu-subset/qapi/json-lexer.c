/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Characters to tokens, one character at a time, so that input may be cut anywhere. */
#include "qapi/json-lexer.h"

#include <string.h>

enum {
    LEX_START,
    LEX_STRING,
    LEX_WORD,
    LEX_MINUS,     /* needs a digit */
    LEX_ZERO,      /* no further digit allowed */
    LEX_DIGITS,
    LEX_POINT,     /* needs a digit */
    LEX_FRACTION,
    LEX_EXP,       /* needs a sign or digit */
    LEX_EXP_SIGN,  /* needs a digit */
    LEX_EXP_DIGITS,
    LEX_RECOVERY,  /* after a stray character: skip to where a value may start again */
};

void json_lexer_init(JsonLexer *lexer, JsonTokenFn *emit, void *opaque)
{
    *lexer = (JsonLexer){
        .state = LEX_START, .line = 1, .text = g_string_new(NULL), .emit = emit, .opaque = opaque};
}

void json_lexer_destroy(JsonLexer *lexer)
{
    g_string_free(lexer->text, TRUE);
}

static void finish(JsonLexer *lexer, JsonTokenKind kind)
{
    lexer->state = kind == TOKEN_STRAY || kind == TOKEN_TOO_LONG ? LEX_RECOVERY : LEX_START;
    lexer->emit(lexer->opaque, kind, lexer->text);
    g_string_truncate(lexer->text, 0);
    if (lexer->text->allocated_len > 65536) {
        g_string_free(lexer->text, TRUE);
        lexer->text = g_string_new(NULL);
    }
}

static void mark_start(JsonLexer *lexer)
{
    lexer->token_line = lexer->line;
    lexer->token_column = lexer->column + lexer->looked_ahead;
}

static void start_token(JsonLexer *lexer, char c)
{
    if (strchr(" \t\r\n", c) && c) {
        return;
    }
    mark_start(lexer);
    g_string_append_c(lexer->text, c);
    if (c && strchr("{}[],:", c)) {
        finish(lexer, TOKEN_PUNCT);
    } else if (c == '"' || c == '\'') {
        lexer->quote = c;
        lexer->escaped = false;
        lexer->state = LEX_STRING;
    } else if (g_ascii_islower(c)) {
        lexer->state = LEX_WORD;
    } else if (c == '-') {
        lexer->state = LEX_MINUS;
    } else if (c == '0') {
        lexer->state = LEX_ZERO;
    } else if (g_ascii_isdigit(c)) {
        lexer->state = LEX_DIGITS;
    } else {
        finish(lexer, TOKEN_STRAY);
    }
}

static void continue_string(JsonLexer *lexer, char c)
{
    unsigned char byte = c;

    g_string_append_c(lexer->text, c);
    if (byte < 0x20 || byte >= 0xfe) {
        finish(lexer, TOKEN_STRAY);
    } else if (lexer->escaped) {
        lexer->escaped = false;
    } else if (c == '\\') {
        lexer->escaped = true;
    } else if (c == lexer->quote) {
        finish(lexer, TOKEN_STRING);
    }
}

/* The state after @c inside a number or word; LEX_START when @c is not part of it, LEX_RECOVERY when it is wrong. */
static int next_state(int state, char c)
{
    bool digit = g_ascii_isdigit(c);

    switch (state) {
    case LEX_WORD:
        return g_ascii_islower(c) ? LEX_WORD : LEX_START;
    case LEX_MINUS:
        return c == '0' ? LEX_ZERO : digit ? LEX_DIGITS : LEX_RECOVERY;
    case LEX_ZERO:
    case LEX_DIGITS:
        if (digit) {
            return state == LEX_ZERO ? LEX_RECOVERY : LEX_DIGITS;
        }
        return c == '.' ? LEX_POINT : c == 'e' || c == 'E' ? LEX_EXP : LEX_START;
    case LEX_POINT:
        return digit ? LEX_FRACTION : LEX_RECOVERY;
    case LEX_FRACTION:
        return digit ? LEX_FRACTION : c == 'e' || c == 'E' ? LEX_EXP : LEX_START;
    case LEX_EXP:
        return digit ? LEX_EXP_DIGITS : c == '+' || c == '-' ? LEX_EXP_SIGN : LEX_RECOVERY;
    case LEX_EXP_SIGN:
        return digit ? LEX_EXP_DIGITS : LEX_RECOVERY;
    default:
        return digit ? LEX_EXP_DIGITS : LEX_START;
    }
}

static JsonTokenKind ended_kind(int state)
{
    switch (state) {
    case LEX_WORD:
        return TOKEN_KEYWORD;
    case LEX_ZERO:
    case LEX_DIGITS:
        return TOKEN_INTEGER;
    case LEX_FRACTION:
    case LEX_EXP_DIGITS:
        return TOKEN_FLOAT;
    default:
        return TOKEN_STRAY;
    }
}

static void continue_token(JsonLexer *lexer, char c)
{
    int next = next_state(lexer->state, c);

    if (next == LEX_START) {
        finish(lexer, ended_kind(lexer->state));
        lexer->looked_ahead = true;
        start_token(lexer, c);
        return;
    }
    g_string_append_c(lexer->text, c);
    if (next == LEX_RECOVERY) {
        finish(lexer, TOKEN_STRAY);
    } else {
        lexer->state = next;
    }
}

/* Structural characters, control characters except a tab, and bytes that UTF-8 never has end the recovery. */
static void recover(JsonLexer *lexer, char c)
{
    unsigned char byte = c;

    if (byte && strchr("{}[],:", c)) {
        lexer->state = LEX_START;
        lexer->looked_ahead = true;
        start_token(lexer, c);
    } else if ((byte < 0x20 && c != '\t') || byte >= 0xfe) {
        lexer->state = LEX_START;
    }
}

static void feed_char(JsonLexer *lexer, char c)
{
    lexer->looked_ahead = false;
    if (c == '\n') {
        lexer->line++;
        lexer->column = 0;
    } else {
        lexer->column++;
    }
    switch (lexer->state) {
    case LEX_START:
        start_token(lexer, c);
        break;
    case LEX_STRING:
        continue_string(lexer, c);
        break;
    case LEX_RECOVERY:
        recover(lexer, c);
        break;
    default:
        continue_token(lexer, c);
        break;
    }
    if (lexer->text->len > MAX_TOKEN_SIZE) {
        g_string_truncate(lexer->text, 0);
        finish(lexer, TOKEN_TOO_LONG);
    }
}

void json_lexer_feed(JsonLexer *lexer, const char *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        feed_char(lexer, buf[i]);
    }
}

void json_lexer_flush(JsonLexer *lexer)
{
    lexer->looked_ahead = lexer->state != LEX_START;
    if (lexer->looked_ahead && lexer->state != LEX_RECOVERY) {
        finish(lexer, ended_kind(lexer->state));
    }
    lexer->column++;
    mark_start(lexer);
    lexer->emit(lexer->opaque, TOKEN_END, lexer->text);
    lexer->state = LEX_START;
}
