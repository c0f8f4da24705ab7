/* SPDX-License-Identifier: GPL-2.0-or-later */
/* UTF-8 as JSON strings carry it: U+0000 travels as C0 80, so that strings stay C strings. */
#include "qapi/unicode.h"

bool unicode_valid(unsigned int code)
{
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    bool noncharacter = (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe;

    return code <= 0x10ffff && !surrogate && !noncharacter;
}

/* How many continuation bytes @lead asks for, counting the forms of up to six bytes; -1 if it cannot lead. */
static int continuation_bytes(unsigned char lead)
{
    if (lead < 0xc0 || lead >= 0xfe) {
        return -1;
    }
    return lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : lead < 0xf8 ? 3 : lead < 0xfc ? 4 : 5;
}

int unicode_decode(const char *s, size_t *len)
{
    static const unsigned int smallest[] = {0, 0x80, 0x800, 0x10000, 0x200000, 0x4000000};
    unsigned char lead = s[0];
    int more = continuation_bytes(lead);

    *len = 1;
    if (lead < 0x80) {
        return lead;
    }
    if (more < 0) {
        return -1;
    }
    unsigned int code = lead & (0x3f >> more);
    for (int i = 1; i <= more; i++, (*len)++) {
        if ((s[i] & 0xc0) != 0x80) {
            return -1;
        }
        code = code << 6 | (s[i] & 0x3f);
    }
    if (code == 0 && more == 1) {
        return 0;
    }
    return code >= smallest[more] && unicode_valid(code) ? (int)code : -1;
}

size_t unicode_encode(unsigned int code, char *out)
{
    if (code && code < 0x80) {
        out[0] = code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = 0xc0 | code >> 6;
        out[1] = 0x80 | (code & 0x3f);
        return 2;
    }
    if (code < 0x10000) {
        out[0] = 0xe0 | code >> 12;
        out[1] = 0x80 | (code >> 6 & 0x3f);
        out[2] = 0x80 | (code & 0x3f);
        return 3;
    }
    out[0] = 0xf0 | code >> 18;
    out[1] = 0x80 | (code >> 12 & 0x3f);
    out[2] = 0x80 | (code >> 6 & 0x3f);
    out[3] = 0x80 | (code & 0x3f);
    return 4;
}
