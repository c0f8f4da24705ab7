/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The syntaxes of booleans, numbers, sizes and ids in option values. */
#include "qapi/keyval.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool qapi_parse_bool(const char *text, bool *value)
{
    static const char *const yes[] = {"on", "yes", "true", "y", NULL};
    static const char *const no[] = {"off", "no", "false", "n", NULL};

    if (g_strv_contains(yes, text)) {
        *value = true;
    } else if (g_strv_contains(no, text)) {
        *value = false;
    } else {
        return false;
    }
    return true;
}

bool qapi_parse_int64(const char *text, int64_t *value)
{
    char *end;

    errno = 0;
    long long number = strtoll(text, &end, 0);
    if (errno || end == text || *end) {
        return false;
    }
    *value = number;
    return true;
}

bool qapi_parse_uint64(const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 0);
    if (errno || end == text || *end) {
        return false;
    }
    *value = number;
    return true;
}

bool qapi_parse_number(const char *text, double *value)
{
    char *end;

    errno = 0;
    double number = g_ascii_strtod(text, &end);
    if (errno || end == text || *end || !isfinite(number)) {
        return false;
    }
    *value = number;
    return true;
}

/* Bits to shift for a suffix; -1 if it is none. */
static int suffix_shift(char suffix)
{
    static const char suffixes[] = "BKMGTPE";
    const char *found = suffix ? strchr(suffixes, g_ascii_toupper(suffix)) : NULL;

    return found ? 10 * (int)(found - suffixes) : -1;
}

QapiSizeResult qapi_parse_size(const char *text, char default_suffix, uint64_t *value)
{
    bool negative = *text == '-', hex, digits;
    const char *s = text + negative;
    double fraction = 0;
    char *end;

    hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X') && g_ascii_isxdigit(s[2]);
    digits = g_ascii_isdigit(*s);
    if (!digits && !(s[0] == '.' && g_ascii_isdigit(s[1]))) {
        return QAPI_SIZE_BAD;
    }
    errno = 0;
    unsigned long long whole = digits ? strtoull(s, &end, hex ? 16 : 10) : 0;
    bool overflow = errno == ERANGE;
    s = digits ? end : s;
    if (*s == '.' && !hex) {
        const char *first = s;

        for (double scale = 0.1; g_ascii_isdigit(*++s); scale /= 10) {
            fraction += (*s - '0') * scale;
        }
        if (s == first + 1 && !digits) {
            return QAPI_SIZE_BAD;
        }
    }
    int shift = *s ? suffix_shift(*s) : default_suffix ? suffix_shift(default_suffix) : 0;
    if (shift < 0 || (*s && s[1]) || (fraction > 0 && shift == 0)) {
        return QAPI_SIZE_BAD;
    }
    double bytes = fraction * (double)(1ull << shift);
    uint64_t rest = (uint64_t)bytes;
    rest += bytes - (double)rest >= 0.5;
    if (overflow || whole > UINT64_MAX >> shift || (whole << shift) > UINT64_MAX - rest) {
        return QAPI_SIZE_RANGE;
    }
    if (negative && (whole || rest)) {
        return QAPI_SIZE_RANGE;
    }
    *value = (whole << shift) + rest;
    return QAPI_SIZE_OK;
}

bool qapi_id_wellformed(const char *id)
{
    if (!g_ascii_isalpha(*id)) {
        return false;
    }
    while (*++id) {
        if (!g_ascii_isalnum(*id) && !strchr("-._", *id)) {
            return false;
        }
    }
    return true;
}
