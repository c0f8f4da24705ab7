/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The qtest protocol itself: replies byte for byte, and life under malformed lines. */
#include "common.h"

#include <stdio.h>
#include <string.h>

typedef struct Exchange {
    const char *name;
    const char *command; /* may be several lines; the reply to the last counts */
    const char *reply;
} Exchange;

static const Exchange exchanges[] = {
    {"endianness", "endianness", "OK little"},
    {"outb", "outb 0x80 0x1", "OK"},
    {"inb-at-least-four-digits", "inb 0x1234", "OK 0x00ff"},
    {"inw", "inw 0x1234", "OK 0xffff"},
    {"inl", "inl 0x1234", "OK 0xffffffff"},
    {"inl-of-device-id", "outl 0xcf8 0x80000000\ninl 0xcfc", "OK 0x12378086"},
    {"numbers-decimal", "outl 3320 2147483648\ninl 3324", "OK 0x12378086"},
    {"numbers-octal", "outl 06370 020000000000\ninl 06374", "OK 0x12378086"},
    {"writeb-readb", "writeb 0x100000 0x1ff\nreadb 0x100000", "OK 0x00000000000000ff"},
    {"writew-readw", "writew 0x100000 0x1234\nreadw 0x100000", "OK 0x0000000000001234"},
    {"writel-readl", "writel 0x100000 0x12345678\nreadl 0x100000", "OK 0x0000000012345678"},
    {"writeq-readq", "writeq 0x100000 0x123456789abcdef0\nreadq 0x100000", "OK 0x123456789abcdef0"},
    {"little-endian", "writel 0x100000 0x11223344\nreadb 0x100000", "OK 0x0000000000000044"},
    {"unaligned", "writeq 0x100003 0x1122334455667788\nreadq 0x100003", "OK 0x1122334455667788"},
    {"write-read", "write 0x100000 4 0xDeadBeef\nread 0x100000 4", "OK 0xdeadbeef"},
    {"write-short-data-pads-zero", "memset 0x100000 4 0xff\nwrite 0x100000 4 0xab\nread 0x100000 4", "OK 0xab000000"},
    {"write-without-data", "write 0x100000 4 0x", "ERR invalid argument size"},
    {"b64write-read", "b64write 0x100000 4 AQIDBA==\nread 0x100000 4", "OK 0x01020304"},
    {"write-b64read", "write 0x100000 4 0x01020304\nb64read 0x100000 4", "OK AQIDBA=="},
    {"memset", "memset 0x100000 8 0x5a\nread 0x100000 8", "OK 0x5a5a5a5a5a5a5a5a"},
    {"memset-of-nothing", "memset 0x100000 0 0", "OK"},
    {"memset-value-is-a-byte", "memset 0x100000 1 0x1ab\nreadb 0x100000", "OK 0x00000000000000ab"},
    {"unassigned-memory", "readq 0xd0000000", "OK 0x0000000000000000"},
    {"unknown", "foo", "FAIL Unknown command 'foo'"},
    {"unknown-with-arguments", "foo 1 2", "FAIL Unknown command 'foo'"},
    {"case-matters", "OUTB 0x80 1", "FAIL Unknown command 'OUTB'"},
    {"comment-is-ignored", "# hello\nendianness", "OK little"},
    {"empty-line-is-ignored", "\n\nendianness", "OK little"},
    {"intercept-unknown-device", "irq_intercept_in /nosuch", "FAIL Unknown device"},
    {"intercept-out-unknown-device", "irq_intercept_out /nosuch", "FAIL Unknown device"},
    {"intercept-in", "irq_intercept_in ioapic", "OK"},
    {"intercept-in-twice", "irq_intercept_in ioapic\nirq_intercept_in ioapic", "OK"},
};

/* Replies to every line but ignored ones; returns that of the last. */
static char *exchange(QTest *t, const char *lines)
{
    g_auto(GStrv) line = g_strsplit(lines, "\n", -1);
    char *reply = NULL;

    for (char **l = line; *l; l++) {
        if (!**l || **l == '#') {
            g_autofree char *text = g_strconcat(*l, "\n", NULL);

            qt_send_raw(t, text, strlen(text));
            continue;
        }
        g_free(reply);
        reply = qt_command(t, "%s", *l);
    }
    return reply;
}

static void test_exchange(gconstpointer data)
{
    const Exchange *e = data;
    g_autofree char *reply = NULL;
    QTest *t;

    if (strchr("#\n", *e->command) && !binary_is_v11()) {
        g_test_skip("old versions do not ignore such lines");
        return;
    }
    t = qt_start("-nodefaults");
    reply = exchange(t, e->command);
    g_assert_cmpstr(reply, ==, e->reply);
    qt_stop(t);
}

/* QEMU aborts on each of these. We answer with an error and go on. */
static const char *const malformed[] = {
    "outb", "outb 0x80", "outb 0x80 zz", "outb zz 1", "outb 0x10000 1", "inb", "inb 0x10000", "inl x",
    "writeb", "writeb 0x100000", "writeb 0x100000 -", "writeq 0x100000 0x11111111111111111", "readb", "readq zz",
    "read", "read 0x100000", "read 0x100000 0", "read 0x100000 zz", "read 0x100000 0xffffffffffffffff",
    "write 0x100000", "write 0x100000 4", "write 0x100000 0xffffffffffffffff 0x00",
    "b64read 0x100000", "b64read 0x100000 0xffffffffffffffff", "b64write 0x100000 4", 
    "memset 0x100000", "memset 0x100000 1", "memset 0x100000 zz 1", "clock_step zz", "clock_set", "clock_set zz",
    "irq_intercept_in", "irq_intercept_out", "set_irq_in", "set_irq_in ioapic", "set_irq_in /nosuch unnamed-gpio-in 0 1",
    "set_irq_in ioapic unnamed-gpio-in 4000 1", "set_irq_in ioapic nosuch 0 1", "set_irq_in ioapic unnamed-gpio-in zz 1",
    "outb  0x80 1", " endianness", "module_load", "module_load a",
};

static void test_malformed(gconstpointer data)
{
    const char *line = data;
    g_autofree char *reply = NULL;
    QTest *t;

    if (!binary_is_ours()) {
        g_test_skip("QEMU aborts on malformed lines");
        return;
    }
    t = qt_start("-nodefaults");
    reply = qt_command(t, "%s", line);
    g_assert_true(g_str_has_prefix(reply, "FAIL ") || g_str_has_prefix(reply, "ERR "));
    qt_assert_alive(t);
    qt_stop(t);
}

/* Lines come in pieces, and several in one piece. */
static void test_pieces(void)
{
    QTest *t = qt_start("-nodefaults");
    const char *text = "writel 0x100000 0x77\nreadl 0x100000\n";

    for (const char *p = text; *p; p++) {
        qt_send_raw(t, p, 1);
        if (p - text == 5 || p - text == 30) {
            g_usleep(2000);
        }
    }
    for (int i = 0; i < 2; i++) {
        g_autofree char *r = qt_reply(t);

        g_assert_cmpstr(r, ==, i ? "OK 0x0000000000000077" : "OK");
    }
    qt_send_raw(t, "endianness\nendianness\nfoo\nendianness\n", 37);
    for (int i = 0; i < 4; i++) {
        g_autofree char *r = qt_reply(t);

        g_assert_cmpstr(r, ==, i == 2 ? "FAIL Unknown command 'foo'" : "OK little");
    }
    qt_stop(t);
}

static void test_long_line(void)
{
    enum { LEN = 1 << 20 };
    g_autofree uint8_t *out = g_malloc(LEN), *in = g_malloc(LEN);
    QTest *t = qt_start("-nodefaults");

    fill_pattern(out, 0, LEN);
    qt_memwrite(t, 0x200000, out, LEN);
    qt_memread(t, 0x200000, in, LEN);
    g_assert_true(!memcmp(in, out, LEN));
    memset(in, 0, LEN);
    qt_b64read(t, 0x200000, in, LEN);
    g_assert_true(!memcmp(in, out, LEN));
    qt_memset(t, 0x200000, 0, LEN);
    qt_b64write(t, 0x200000, out, LEN);
    memset(in, 0, LEN);
    qt_memread(t, 0x200000, in, LEN);
    g_assert_true(!memcmp(in, out, LEN));
    qt_stop(t);
}

static bool clock_here(void)
{
    if (!binary_has_qtest_accel()) {
        g_test_skip("no clock commands without the qtest accelerator");
        return false;
    }
    return true;
}

static void test_clock_step(void)
{
    QTest *t;
    int64_t now;

    if (!clock_here()) {
        return;
    }
    t = qt_start("-nodefaults");
    now = qt_clock_step(t, 1);
    g_assert_cmpint(qt_clock_step(t, 1000), ==, now + 1000);
    g_assert_cmpint(qt_clock_step(t, 1), ==, now + 1001);
    g_assert_cmpint(qt_clock_step(t, 1000000000), ==, now + 1000001001);
    qt_stop(t);
}

static void test_clock_step_by_nothing(void)
{
    g_autofree char *r = NULL;
    QTest *t;

    if (!clock_here()) {
        return;
    }
    t = qt_start("-nodefaults");
    r = qt_command(t, "clock_step 0");
    g_assert_cmpstr(r, ==, "FAIL could not advance time");
    qt_stop(t);
}

static void test_clock_set(void)
{
    QTest *t;
    int64_t now;
    g_autofree char *back = NULL, *expect = NULL;

    if (!clock_here()) {
        return;
    }
    t = qt_start("-nodefaults");
    now = qt_clock_step(t, 5000);
    g_assert_cmpint(qt_clock_set(t, now + 777), ==, now + 777);
    back = qt_command(t, "clock_set %" G_GINT64_FORMAT, now);
    expect = g_strdup_printf("FAIL %" G_GINT64_FORMAT, now + 777);
    g_assert_cmpstr(back, ==, expect);
    qt_stop(t);
}

static void test_intercept_rivals(void)
{
    QTest *t = qt_start("-nodefaults");
    g_autofree char *a = qt_command(t, "irq_intercept_in ioapic");
    g_autofree char *b = qt_command(t, "irq_intercept_out ioapic");
    g_autofree char *c = qt_command(t, "irq_intercept_in /machine/i440fx");

    g_assert_cmpstr(a, ==, "OK");
    g_assert_true(g_str_has_prefix(b, "OK") || g_str_has_prefix(b, "FAIL"));
    g_assert_true(g_str_has_prefix(c, "FAIL"));
    qt_stop(t);
}

/* Memory and ports are not there on the machine "none": an error, where QEMU crashes. */
static void test_machine_none(void)
{
    QTestOpts o = {.machine = "none"};
    g_autofree char *r = NULL;
    QTest *t;

    if (!binary_is_ours()) {
        g_test_skip("QEMU crashes");
        return;
    }
    t = qt_start_opts(&o, "-nodefaults");
    r = qt_command(t, "inb 0x80");
    g_assert_true(g_str_has_prefix(r, "FAIL") || g_str_has_prefix(r, "OK") || g_str_has_prefix(r, "ERR"));
    qt_assert_alive(t);
    qt_stop(t);
}

/* The log has a line for what was received and one for what was sent. */
static void test_log(void)
{
    g_autofree char *log = qos_scratch_path("log"), *text = NULL, *args = NULL;
    QTest *t;

    args = g_strdup_printf("-nodefaults -qtest-log %s", log);
    t = qt_start_opts(NULL, args);
    qt_assert_alive(t);
    qt_stop(t);
    g_assert_true(g_file_get_contents(log, &text, NULL, NULL));
    g_assert_true(g_regex_match_simple("^\\[I [0-9]+\\.[0-9]{6}\\] OPENED\n"
                                       "\\[R \\+[0-9]+\\.[0-9]{6}\\] endianness\n"
                                       "\\[S \\+[0-9]+\\.[0-9]{6}\\] OK little\n", text, 0, 0));
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(exchanges); i++) {
        add_case(test_exchange, &exchanges[i], "/qtest/command/%s", exchanges[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(malformed); i++) {
        g_autofree char *name = g_strdup(malformed[i]);

        add_case(test_malformed, malformed[i], "/qtest/malformed/%zu-%s", i, g_strdelimit(name, " /", '_'));
    }
    g_test_add_func("/qtest/stream/lines-in-pieces", test_pieces);
    g_test_add_func("/qtest/stream/lines-of-megabytes", test_long_line);
    g_test_add_func("/qtest/clock/step", test_clock_step);
    g_test_add_func("/qtest/clock/step-by-nothing-fails", test_clock_step_by_nothing);
    g_test_add_func("/qtest/clock/set", test_clock_set);
    g_test_add_func("/qtest/intercept/one-device-at-a-time", test_intercept_rivals);
    g_test_add_func("/qtest/machine-none-survives-access", test_machine_none);
    g_test_add_func("/qtest/log", test_log);
    return g_test_run();
}
