/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands of the qtest protocol, and fw_cfg on top of them. */
#include "qtest.h"
#include "base/bswap.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

void qt_send_raw(QTest *t, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(t->fd, bytes, len, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            g_autofree char *text = qt_stderr(t);

            qos_die("qtest socket: %s; stderr of the binary:\n%s", g_strerror(errno), text);
        }
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
}

/* False at a time-out of @timeout_ms; dies at end of file. */
static bool fill(QTest *t, int timeout_ms)
{
    struct pollfd pfd = {.fd = t->fd, .events = POLLIN};
    char buf[65536];
    ssize_t n;

    if (poll(&pfd, 1, timeout_ms) <= 0) {
        return false;
    }
    n = recv(t->fd, buf, sizeof(buf), 0);
    if (n <= 0) {
        g_autofree char *text = NULL;

        child_wait(t->child, 1000);
        text = qt_stderr(t);
        qos_die("the binary closed the qtest socket; its stderr:\n%s", text);
    }
    g_string_append_len(t->in, buf, n);
    return true;
}

static void note_irq(QTest *t, const char *line)
{
    unsigned int n;
    char word[8];

    if (sscanf(line, "IRQ %7s %u", word, &n) != 2 || n > 4096) {
        qos_die("qtest: bad message '%s'", line);
    }
    while (t->irq_levels->len <= n) {
        g_byte_array_append(t->irq_levels, (const guint8 *)"", 1);
    }
    t->irq_levels->data[n] = !strcmp(word, "raise");
    t->irq_messages++;
}

/* A reply line that has arrived; IRQ messages in front of it are noted. */
static char *take_reply(QTest *t)
{
    const char *end;

    while ((end = memchr(t->in->str, '\n', t->in->len))) {
        gsize len = (gsize)(end - t->in->str);
        char *line = g_strndup(t->in->str, len);

        g_string_erase(t->in, 0, (gssize)len + 1);
        if (!g_str_has_prefix(line, "IRQ ")) {
            return line;
        }
        note_irq(t, line);
        g_free(line);
    }
    return NULL;
}

char *qt_reply(QTest *t)
{
    char *line;

    while (!(line = take_reply(t))) {
        if (!fill(t, qos_hang_ms())) {
            qos_die("qtest: no answer within %d s", qos_hang_ms() / 1000);
        }
    }
    return line;
}

char *qt_command(QTest *t, const char *fmt, ...)
{
    g_autofree char *line = NULL, *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    line = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    text = g_strconcat(line, "\n", NULL);
    qt_send_raw(t, text, strlen(text));
    return qt_reply(t);
}

/* The part after "OK"; dies if it is not "OK". */
static const char *ok(const char *reply, const char *what)
{
    if (strncmp(reply, "OK", 2)) {
        qos_die("qtest: %s: %s", what, reply);
    }
    return reply[2] == ' ' ? reply + 3 : reply + 2;
}

static void do_out(QTest *t, char size, uint16_t port, uint32_t v)
{
    g_autofree char *r = qt_command(t, "out%c 0x%x 0x%x", size, port, v);

    ok(r, "out");
}

static uint32_t do_in(QTest *t, char size, uint16_t port)
{
    g_autofree char *r = qt_command(t, "in%c 0x%x", size, port);

    return (uint32_t)strtoul(ok(r, "in"), NULL, 0);
}

static void do_write(QTest *t, char size, uint64_t addr, uint64_t v)
{
    g_autofree char *r =
        qt_command(t, "write%c 0x%" G_GINT64_MODIFIER "x 0x%" G_GINT64_MODIFIER "x", size, addr, v);

    ok(r, "write");
}

static uint64_t do_read(QTest *t, char size, uint64_t addr)
{
    g_autofree char *r = qt_command(t, "read%c 0x%" G_GINT64_MODIFIER "x", size, addr);

    return strtoull(ok(r, "read"), NULL, 0);
}

#define PORT_AND_MEMORY(letter, bits)                                                              \
    void qt_write##letter(QTest *t, uint64_t addr, uint##bits##_t v)                               \
    {                                                                                              \
        do_write(t, #letter[0], addr, v);                                                          \
    }                                                                                              \
    uint##bits##_t qt_read##letter(QTest *t, uint64_t addr)                                        \
    {                                                                                              \
        return (uint##bits##_t)do_read(t, #letter[0], addr);                                       \
    }
#define PORT(letter, bits)                                                                         \
    void qt_out##letter(QTest *t, uint16_t port, uint##bits##_t v)                                 \
    {                                                                                              \
        do_out(t, #letter[0], port, v);                                                            \
    }                                                                                              \
    uint##bits##_t qt_in##letter(QTest *t, uint16_t port)                                          \
    {                                                                                              \
        return (uint##bits##_t)do_in(t, #letter[0], port);                                         \
    }

PORT(b, 8)
PORT(w, 16)
PORT(l, 32)
PORT_AND_MEMORY(b, 8)
PORT_AND_MEMORY(w, 16)
PORT_AND_MEMORY(l, 32)
PORT_AND_MEMORY(q, 64)

void qt_memread(QTest *t, uint64_t addr, void *buf, size_t len)
{
    g_autofree char *r = NULL;
    uint8_t *out = buf;
    const char *hex;

    if (!len) {
        return;
    }
    r = qt_command(t, "read 0x%" G_GINT64_MODIFIER "x 0x%zx", addr, len);
    hex = ok(r, "read");
    if (strlen(hex) != 2 + 2 * len) {
        qos_die("qtest: read: %zu bytes asked for, reply has %zu characters", len, strlen(hex));
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(g_ascii_xdigit_value(hex[2 + 2 * i]) << 4 |
                           g_ascii_xdigit_value(hex[3 + 2 * i]));
    }
}

void qt_memwrite(QTest *t, uint64_t addr, const void *buf, size_t len)
{
    g_autoptr(GString) line = g_string_new(NULL);
    g_autofree char *r = NULL;

    if (!len) {
        return;
    }
    g_string_printf(line, "write 0x%" G_GINT64_MODIFIER "x 0x%zx 0x", addr, len);
    for (size_t i = 0; i < len; i++) {
        static const char digits[] = "0123456789abcdef";
        uint8_t b = ((const uint8_t *)buf)[i];

        g_string_append_c(line, digits[b >> 4]);
        g_string_append_c(line, digits[b & 15]);
    }
    g_string_append_c(line, '\n');
    qt_send_raw(t, line->str, line->len);
    r = qt_reply(t);
    ok(r, "write");
}

void qt_b64read(QTest *t, uint64_t addr, void *buf, size_t len)
{
    g_autofree char *r = NULL;
    g_autofree guchar *data = NULL;
    gsize n;

    if (!len) {
        return;
    }
    r = qt_command(t, "b64read 0x%" G_GINT64_MODIFIER "x 0x%zx", addr, len);
    data = g_base64_decode(ok(r, "b64read"), &n);
    if (n != len) {
        qos_die("qtest: b64read: %zu bytes asked for, %zu came", len, n);
    }
    memcpy(buf, data, len);
}

void qt_b64write(QTest *t, uint64_t addr, const void *buf, size_t len)
{
    g_autofree char *data = g_base64_encode(buf, len);
    g_autofree char *r = NULL;

    if (!len) {
        return;
    }
    r = qt_command(t, "b64write 0x%" G_GINT64_MODIFIER "x 0x%zx %s", addr, len, data);
    ok(r, "b64write");
}

void qt_memset(QTest *t, uint64_t addr, uint8_t byte, size_t len)
{
    g_autofree char *r =
        qt_command(t, "memset 0x%" G_GINT64_MODIFIER "x 0x%zx 0x%x", addr, len, byte);

    ok(r, "memset");
}

void qt_ram_read(QTest *t, uint64_t addr, void *buf, size_t len)
{
    if (t->ram && addr < t->ram_size && len <= t->ram_size - addr) {
        memcpy(buf, t->ram + addr, len);
    } else {
        qt_memread(t, addr, buf, len);
    }
}

void qt_ram_write(QTest *t, uint64_t addr, const void *buf, size_t len)
{
    if (t->ram && addr < t->ram_size && len <= t->ram_size - addr) {
        memcpy(t->ram + addr, buf, len);
    } else {
        qt_memwrite(t, addr, buf, len);
    }
}

static int64_t clock_reply(const char *reply)
{
    return strtoll(ok(reply, "clock"), NULL, 0);
}

int64_t qt_clock_step(QTest *t, int64_t ns)
{
    g_autofree char *r = qt_command(t, "clock_step %" G_GINT64_FORMAT, ns);

    return clock_reply(r);
}

int64_t qt_clock_step_next(QTest *t)
{
    g_autofree char *r = qt_command(t, "clock_step");

    return clock_reply(r);
}

int64_t qt_clock_set(QTest *t, int64_t ns)
{
    g_autofree char *r = qt_command(t, "clock_set %" G_GINT64_FORMAT, ns);

    return clock_reply(r);
}

void qt_irq_intercept_in(QTest *t, const char *qom_path)
{
    g_autofree char *r = qt_command(t, "irq_intercept_in %s", qom_path);

    ok(r, "irq_intercept_in");
}

void qt_irq_intercept_out(QTest *t, const char *qom_path)
{
    g_autofree char *r = qt_command(t, "irq_intercept_out %s", qom_path);

    ok(r, "irq_intercept_out");
}

void qt_set_irq_in(QTest *t, const char *qom_path, const char *name, int n, int level)
{
    g_autofree char *r = qt_command(t, "set_irq_in %s %s %d %d", qom_path,
                                    name ? name : "unnamed-gpio-in", n, level);

    ok(r, "set_irq_in");
}

/* Messages precede the reply to any command, so one round trip brings all that were sent before it. */
static void sync_irqs(QTest *t)
{
    g_autofree char *r = qt_command(t, "endianness");

    ok(r, "endianness");
}

bool qt_irq_level(QTest *t, unsigned int n)
{
    sync_irqs(t);
    return n < t->irq_levels->len && t->irq_levels->data[n];
}

uint64_t qt_irq_messages(QTest *t)
{
    sync_irqs(t);
    return t->irq_messages;
}

void qt_fw_cfg_read(QTest *t, uint16_t key, void *buf, size_t len)
{
    qt_outw(t, 0x510, key);
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)buf)[i] = qt_inb(t, 0x511);
    }
}

uint16_t qt_fw_cfg_file(QTest *t, const char *name, uint32_t *size)
{
    uint8_t entry[64];
    uint32_t count;

    qt_fw_cfg_read(t, 0x19, entry, 4);
    count = load_be32(entry);
    for (uint32_t i = 0; i < count && i < 256; i++) {
        /* The selector keeps its position: read on. */
        for (size_t b = 0; b < sizeof(entry); b++) {
            entry[b] = qt_inb(t, 0x511);
        }
        if (!strncmp((char *)entry + 8, name, sizeof(entry) - 8)) {
            *size = load_be32(entry);
            return load_be16(entry + 4);
        }
    }
    return 0;
}
