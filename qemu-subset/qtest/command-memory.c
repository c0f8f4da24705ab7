/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qtest commands that access memory and ports as a CPU does. */
#include "guest/memory.h"
#include "qtest/private.h"

#include <inttypes.h>
#include <string.h>

/* The bytes of one bulk command, to bound what a client makes us allocate. */
#define MAX_BULK (256u << 20)

/* --- Single accesses; the command's last letter is the width --- */

static bool port_number(QtestServer *s, const char *word, uint16_t *port)
{
    uint64_t n;

    if (!qtest_number(s, word, &n)) {
        return false;
    }
    if (n > UINT16_MAX) {
        qtest_sendf(s, "FAIL Port 0x%" PRIx64 " is out of range", n);
        return false;
    }
    *port = (uint16_t)n;
    return true;
}

static void out(QtestServer *s, char **words, unsigned int size)
{
    uint16_t port;
    uint64_t value;

    if (port_number(s, words[0], &port) && qtest_number(s, words[1], &value)) {
        guest_io_write(port, (uint32_t)value, size);
        qtest_send(s, "OK");
    }
}

static void in(QtestServer *s, char **words, unsigned int size)
{
    uint16_t port;

    if (port_number(s, words[0], &port)) {
        qtest_sendf(s, "OK 0x%04x", guest_io_read(port, size));
    }
}

static void mem_write(QtestServer *s, char **words, unsigned int size)
{
    uint64_t addr, value;

    if (qtest_number(s, words[0], &addr) && qtest_number(s, words[1], &value)) {
        guest_mem_write(addr, value, size);
        qtest_send(s, "OK");
    }
}

static void mem_read(QtestServer *s, char **words, unsigned int size)
{
    uint64_t addr;

    if (qtest_number(s, words[0], &addr)) {
        qtest_sendf(s, "OK 0x%016" PRIx64, guest_mem_read(addr, size));
    }
}

#define WIDTHS(op, handler)                                                                        \
    static void op##b(QtestServer *s, char **words)                                                \
    {                                                                                              \
        handler(s, words, 1);                                                                      \
    }                                                                                              \
    static void op##w(QtestServer *s, char **words)                                                \
    {                                                                                              \
        handler(s, words, 2);                                                                      \
    }                                                                                              \
    static void op##l(QtestServer *s, char **words)                                                \
    {                                                                                              \
        handler(s, words, 4);                                                                      \
    }

WIDTHS(out, out)
WIDTHS(in, in)
WIDTHS(write, mem_write)
WIDTHS(read, mem_read)

static void writeq(QtestServer *s, char **words)
{
    mem_write(s, words, 8);
}

static void readq(QtestServer *s, char **words)
{
    mem_read(s, words, 8);
}

/* --- Bulk --- */

static bool address_and_size(QtestServer *s, char **words, uint64_t min, uint64_t *addr, uint64_t *size)
{
    if (!qtest_number(s, words[0], addr) || !qtest_number(s, words[1], size)) {
        return false;
    }
    if (*size < min || *size > MAX_BULK) {
        qtest_sendf(s, "FAIL Size %" PRIu64 " is not between %" PRIu64 " and %u", *size, min, MAX_BULK);
        return false;
    }
    return true;
}

static void bulk_read(QtestServer *s, char **words)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t addr, size;

    if (!address_and_size(s, words, 1, &addr, &size)) {
        return;
    }
    g_autofree uint8_t *data = g_malloc(size);
    g_autofree char *line = g_malloc(size * 2 + 6);
    guest_mem_read_bulk(addr, data, size);
    char *p = g_stpcpy(line, "OK 0x");
    for (uint64_t i = 0; i < size; i++) {
        *p++ = digits[data[i] >> 4];
        *p++ = digits[data[i] & 15];
    }
    *p = 0;
    qtest_send(s, line);
}

static void bulk_write(QtestServer *s, char **words)
{
    uint64_t addr, size;
    size_t len = strlen(words[2]);

    if (!address_and_size(s, words, 0, &addr, &size)) {
        return;
    }
    if (len < 3) {
        qtest_send(s, "ERR invalid argument size");
        return;
    }
    if (words[2][0] != '0' || words[2][1] != 'x') {
        qtest_send(s, "FAIL Data does not start with 0x");
        return;
    }
    g_autofree uint8_t *data = g_malloc0(size);
    for (uint64_t i = 0; i < size && 2 * i + 3 < len; i++) {
        int high = g_ascii_xdigit_value(words[2][2 * i + 2]), low = g_ascii_xdigit_value(words[2][2 * i + 3]);
        if (high < 0 || low < 0) {
            qtest_sendf(s, "FAIL Byte %" PRIu64 " of the data is not hexadecimal", i);
            return;
        }
        data[i] = (uint8_t)(high << 4 | low);
    }
    guest_mem_write_bulk(addr, data, size);
    qtest_send(s, "OK");
}

static void b64_read(QtestServer *s, char **words)
{
    uint64_t addr, size;

    if (!address_and_size(s, words, 1, &addr, &size)) {
        return;
    }
    g_autofree uint8_t *data = g_malloc(size);
    guest_mem_read_bulk(addr, data, size);
    g_autofree char *text = g_base64_encode(data, size);
    g_autofree char *line = g_strconcat("OK ", text, NULL);
    qtest_send(s, line);
}

static void b64_write(QtestServer *s, char **words)
{
    uint64_t addr, size;
    gsize len;

    if (!address_and_size(s, words, 0, &addr, &size)) {
        return;
    }
    if (strlen(words[2]) < 3) {
        qtest_send(s, "ERR invalid argument size");
        return;
    }
    g_autofree guchar *data = g_base64_decode(words[2], &len);
    if (len != size) {
        qtest_logf(s, 'I', "b64write: data length mismatch (told %" PRIu64 ", found %zu)", size, len);
        size = MIN(size, len);
    }
    guest_mem_write_bulk(addr, data, size);
    qtest_send(s, "OK");
}

static void bulk_fill(QtestServer *s, char **words)
{
    uint64_t addr, size, value;

    if (qtest_number(s, words[0], &addr) && qtest_number(s, words[1], &size) && qtest_number(s, words[2], &value)) {
        guest_mem_fill(addr, (uint8_t)value, size);
        qtest_send(s, "OK");
    }
}

const QtestCommand qtest_memory_commands[] = {
    {"outb", 2, 2, outb, .needs_cpu = true},       {"outw", 2, 2, outw, .needs_cpu = true},
    {"outl", 2, 2, outl, .needs_cpu = true},       {"inb", 1, 1, inb, .needs_cpu = true},
    {"inw", 1, 1, inw, .needs_cpu = true},         {"inl", 1, 1, inl, .needs_cpu = true},
    {"writeb", 2, 2, writeb, .needs_cpu = true},   {"writew", 2, 2, writew, .needs_cpu = true},
    {"writel", 2, 2, writel, .needs_cpu = true},   {"writeq", 2, 2, writeq, .needs_cpu = true},
    {"readb", 1, 1, readb, .needs_cpu = true},     {"readw", 1, 1, readw, .needs_cpu = true},
    {"readl", 1, 1, readl, .needs_cpu = true},     {"readq", 1, 1, readq, .needs_cpu = true},
    {"read", 2, 2, bulk_read, .needs_cpu = true},  {"write", 3, 3, bulk_write, .needs_cpu = true},
    {"b64read", 2, 2, b64_read, .needs_cpu = true}, {"b64write", 3, 3, b64_write, .needs_cpu = true},
    {"memset", 3, 3, bulk_fill, .needs_cpu = true}, {0},
};
