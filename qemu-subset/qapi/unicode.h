/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UTF-8 as JSON strings carry it: U+0000 travels as C0 80, so that strings stay C strings. */
#ifndef QAPI_UNICODE_H
#define QAPI_UNICODE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The code point at @s (NUL-terminated, not empty), or -1 if the sequence is malformed, overlong, a surrogate, a
 * noncharacter or beyond U+10FFFF. *@len is how many bytes belong together: a whole bad sequence is one mistake.
 */
int unicode_decode(const char *s, size_t *len);
/* A scalar value that is not a noncharacter. */
bool unicode_valid(unsigned int code);
/* Writes up to 4 bytes, no NUL; returns how many. @code must be valid. */
size_t unicode_encode(unsigned int code, char *out);

#endif
