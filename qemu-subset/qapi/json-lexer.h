/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Characters to tokens, one character at a time, so that input may be cut anywhere. */
#ifndef QAPI_JSON_LEXER_H
#define QAPI_JSON_LEXER_H

#include <glib.h>
#include <stdbool.h>

typedef enum JsonTokenKind {
    TOKEN_PUNCT,   /* one of {}[],: */
    TOKEN_STRING,  /* with its quotes */
    TOKEN_INTEGER,
    TOKEN_FLOAT,
    TOKEN_KEYWORD,
    TOKEN_STRAY,   /* no token starts or goes on like this */
    TOKEN_TOO_LONG,
    TOKEN_END,     /* end of input; its text is empty */
} JsonTokenKind;

#define MAX_TOKEN_SIZE (64u << 20)

/* The text ends with a NUL and is valid until the callback returns. */
typedef void JsonTokenFn(void *opaque, JsonTokenKind kind, const GString *text);

typedef struct JsonLexer {
    int state;
    char quote;
    bool escaped;
    unsigned int line, column; /* of the last character fed; 1-based */
    /*
     * Where the token began. Clients know QEMU's count: a character that also ended the token before it is one
     * column further on, and the end of the input counts as a character.
     */
    unsigned int token_line, token_column;
    bool looked_ahead;
    GString *text;
    JsonTokenFn *emit;
    void *opaque;
} JsonLexer;

void json_lexer_init(JsonLexer *lexer, JsonTokenFn *emit, void *opaque);
void json_lexer_feed(JsonLexer *lexer, const char *buf, size_t len);
/* Ends the token that is under way, as a stray one if it is not complete, and emits TOKEN_END. */
void json_lexer_flush(JsonLexer *lexer);
void json_lexer_destroy(JsonLexer *lexer);

#endif
