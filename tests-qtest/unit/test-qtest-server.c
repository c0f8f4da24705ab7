/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The qtest server: replies, malformed lines, interrupt interception, the virtual clock, the log. */
#include "guest-env.h"

#include "guest/machine.h"
#include "loop/timer.h"
#include "qtest/qtest.h"

#include <string.h>
#include <unistd.h>

static GString *output;
static QtestServer *server;

static void collect(void *opaque, const char *buf, size_t len)
{
    g_string_append_len(output, buf, (gssize)len);
}

static void start(const char *machine, bool virtual_clock, const char *log)
{
    const QtestOptions options = {.write = collect, .log = log, .virtual_clock = virtual_clock};

    guest_env_machine(machine, strcmp(machine, "none") ? "1" : NULL);
    output = g_string_new(NULL);
    server = qtest_server_new(&options, &error_abort);
    qtest_opened(server);
}

static void stop(void)
{
    qtest_closed(server);
    qtest_server_free(server);
    g_string_free(output, TRUE);
    machine_destroy();
}

/* Feed @line and its newline; what came back. Valid until the next call. */
static const char *ask(const char *line)
{
    g_autofree char *text = g_strconcat(line, "\n", NULL);

    g_string_truncate(output, 0);
    qtest_feed(server, text, strlen(text));
    return output->str;
}

static void assert_fail(const char *line)
{
    const char *reply = ask(line);

    g_autofree char *shown = g_strescape(line, NULL);

    g_test_message("%s -> %.*s", shown, (int)strcspn(reply, "\n"), reply);
    g_assert_true(g_str_has_prefix(reply, "FAIL") || g_str_has_prefix(reply, "ERR"));
    g_assert_true(g_str_has_suffix(reply, "\n"));
    g_assert_true(strchr(reply, '\n') == reply + strlen(reply) - 1);
}

static void test_memory(void)
{
    start("pc,accel=qtest", true, "none");
    g_assert_cmpstr(ask("endianness"), ==, "OK little\n");
    g_assert_cmpstr(ask("writeq 0x1000 0x1122334455667788"), ==, "OK\n");
    g_assert_cmpstr(ask("readb 0x1000"), ==, "OK 0x0000000000000088\n");
    g_assert_cmpstr(ask("readw 4096"), ==, "OK 0x0000000000007788\n");
    g_assert_cmpstr(ask("readl 010000"), ==, "OK 0x0000000055667788\n");
    g_assert_cmpstr(ask("readq 0x1000"), ==, "OK 0x1122334455667788\n");
    g_assert_cmpstr(ask("writeb 0x1001 0xabcd"), ==, "OK\n");
    g_assert_cmpstr(ask("read 0x1000 4"), ==, "OK 0x88cd6655\n");
    g_assert_cmpstr(ask("write 0x2000 6 0x0102AbfF"), ==, "OK\n");
    g_assert_cmpstr(ask("read 0x2000 6"), ==, "OK 0x0102abff0000\n");
    g_assert_cmpstr(ask("write 0x2000 2 0x"), ==, "ERR invalid argument size\n");
    g_assert_cmpstr(ask("write 0x2000 2 0xff"), ==, "OK\n");
    g_assert_cmpstr(ask("read 0x2000 3"), ==, "OK 0xff00ab\n");
    g_assert_cmpstr(ask("memset 0x2000 3 0x155"), ==, "OK\n");
    g_assert_cmpstr(ask("b64read 0x2000 4"), ==, "OK VVVV/w==\n");
    g_assert_cmpstr(ask("memset 0x2000 0 0"), ==, "OK\n");
    g_assert_cmpstr(ask("b64write 0x2000 3 AQID"), ==, "OK\n");
    g_assert_cmpstr(ask("b64write 0x2000 3 AQ"), ==, "ERR invalid argument size\n");
    g_assert_cmpstr(ask("b64write 0x2000 2 /////w=="), ==, "OK\n");
    g_assert_cmpstr(ask("read 0x2000 4"), ==, "OK 0xffff03ff\n");
    g_assert_cmpstr(ask("memset 0 0xffffffffffffffff 0"), ==, "OK\n");
    stop();
}

static void test_ports(void)
{
    start("pc,accel=qtest", true, "none");
    g_assert_cmpstr(ask("outl 0xcf8 0x80000000"), ==, "OK\n");
    g_assert_cmpstr(ask("inl 0xcfc"), ==, "OK 0x12378086\n");
    g_assert_cmpstr(ask("inw 0xcfe"), ==, "OK 0x1237\n");
    g_assert_cmpstr(ask("inb 0xcfc"), ==, "OK 0x0086\n");
    g_assert_cmpstr(ask("inb 0x80"), ==, "OK 0x00ff\n");
    g_assert_cmpstr(ask("inl 0xffff"), ==, "OK 0xffffffff\n");
    stop();
}

static void test_malformed(void)
{
    static const char *const lines[] = {
        "foo", "OUTB 1 1", " ", "  readb 0", "readb", "readb ", "readb x", "readb 1 2", "readb  0", "readb 0x",
        "readb 99999999999999999999999", "outb 0x10000 1", "outb 1", "inb -1", "read 0 0", "read 0", "read 0 -1",
        "read 0 0xffffffffffffffff", "write 0 4", "write 0 4 zz11", "write 0 4 0xgg", "write 0 0xffffffffff 0x00",
        "b64read 0 0", "memset 0 1", "memset 0 x 1", "clock_step x", "clock_step -1", "clock_set", "clock_set -5",
        "clock_step 1 2", "irq_intercept_in", "irq_intercept_in nosuch", "irq_intercept_in /machine",
        "irq_intercept_in ioapic name", "irq_intercept_out ioapic", "set_irq_in ioapic unnamed-gpio-in 24 1",
        "set_irq_in ioapic foo 0 1", "set_irq_in ioapic unnamed-gpio-in -1 1", "set_irq_in nosuch x 0 1",
        "set_irq_in ioapic unnamed-gpio-in", "module_load a b", "module_load", "read\t0\t1", "\xff\xfe", "rtas 1",
        "irq_intercept_in ///", "irq_intercept_in ", "endianness big",
    };

    start("pc,accel=qtest", true, "none");
    for (unsigned int i = 0; i < G_N_ELEMENTS(lines); i++) {
        assert_fail(lines[i]);
    }
    g_assert_cmpstr(ask("foo"), ==, "FAIL Unknown command 'foo'\n");
    g_assert_cmpstr(ask(" "), ==, "FAIL Unknown command ''\n");
    g_assert_cmpstr(ask(""), ==, "");
    g_assert_cmpstr(ask("# comment"), ==, "");
    g_string_truncate(output, 0);
    qtest_feed(server, "endian\0ness\n", 12);
    g_assert_cmpstr(output->str, ==, "FAIL Line contains a NUL\n");
    g_assert_cmpstr(ask("endianness"), ==, "OK little\n");
    stop();
}

/* Any bytes at all: the server answers each line and lives. */
static void test_random_lines(void)
{
    static const char *const words[] = {
        "read", "write", "memset", "outl", "inl", "b64write", "irq_intercept_in", "clock_step", "set_irq_in", "0x1000",
        "0xcf8", "0xffffffffffffffff", "16", "-1", "", "0x00112233", "ioapic", "unnamed-gpio-in", "AAAA", "7", "0xae08",
        "0x510", "0x80000804", "0xfee00000", "b64read", "readq", "writeq", "outb", "0xcfc", "#", "\xc3", "0x514",
    };
    g_autoptr(GString) line = g_string_new(NULL);

    start("pc,accel=qtest", true, "none");
    for (int i = 0; i < 20000; i++) {
        int n = g_test_rand_int_range(1, 6);
        g_string_truncate(line, 0);
        for (int w = 0; w < n; w++) {
            g_string_append_printf(line, "%s%s", w ? " " : "", words[g_test_rand_int_range(0, G_N_ELEMENTS(words))]);
        }
        ask(line->str);
        if (i % 100 == 0) {
            guest_env_settle();
        }
    }
    g_assert_cmpstr(ask("endianness"), ==, "OK little\n");
    stop();
}

static void test_portions(void)
{
    static const char text[] = "writel 0x1000 7\nreadl 0x1000\nendianness\n";

    start("pc,accel=qtest", true, "none");
    for (size_t i = 0; i < strlen(text); i++) {
        qtest_feed(server, text + i, 1);
    }
    g_assert_cmpstr(output->str, ==, "OK\nOK 0x0000000000000007\nOK little\n");
    g_string_truncate(output, 0);
    qtest_feed(server, text, strlen(text));
    g_assert_cmpstr(output->str, ==, "OK\nOK 0x0000000000000007\nOK little\n");
    /* A half line does not survive its connection. */
    qtest_feed(server, "endian", 6);
    qtest_closed(server);
    g_assert_false(qtest_client_connected());
    qtest_opened(server);
    g_assert_cmpstr(ask("endianness"), ==, "OK little\n");
    stop();
}

static void test_none(void)
{
    start("none", true, "none");
    assert_fail("readb 0");
    assert_fail("outb 0x80 1");
    assert_fail("memset 0 1 1");
    g_assert_cmpstr(ask("endianness"), ==, "OK little\n");
    stop();
}

static void test_single(void)
{
    const QtestOptions options = {.write = collect, .log = "none"};
    Error *err = NULL;

    start("pc", false, "none");
    g_assert_null(qtest_server_new(&options, &err));
    g_assert_cmpstr(error_get_pretty(err), ==, "Only one instance of qtest can be created");
    error_free(err);
    g_assert_cmpstr(ask("clock_step 1"), ==, "FAIL Unknown command 'clock_step'\n");
    stop();
}

static void test_irq(void)
{
    start("pc,accel=qtest", true, "none");
    g_assert_cmpstr(ask("set_irq_in ioapic unnamed-gpio-in 3 1"), ==, "OK\n");
    g_assert_cmpstr(ask("irq_intercept_in ioapic"), ==, "OK\n");
    g_assert_cmpstr(ask("irq_intercept_in ioapic"), ==, "OK\n");
    g_assert_cmpstr(ask("irq_intercept_in /machine/unattached/device[0]"), ==, "FAIL IRQ intercept already enabled\n");
    g_assert_cmpstr(ask("set_irq_in ioapic unnamed-gpio-in 3 1"), ==, "IRQ raise 3\nOK\n");
    g_assert_cmpstr(ask("set_irq_in ioapic unnamed-gpio-in 3 1"), ==, "OK\n");
    g_assert_cmpstr(ask("set_irq_in ioapic unnamed-gpio-in 3 0"), ==, "IRQ lower 3\nOK\n");
    g_assert_cmpstr(ask("set_irq_in /machine/i440fx/ioapic unnamed-gpio-in 23 5"), ==, "IRQ raise 23\nOK\n");
    stop();
}

typedef struct Tick {
    AioTimer timer;
    int left;
    GString *times;
} Tick;

static void tick(void *opaque)
{
    Tick *t = opaque;
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL);

    g_string_append_printf(t->times, "%d ", (int)now);
    if (--t->left) {
        aio_timer_mod_ns(&t->timer, now + 100);
    }
    /* A client that writes while the loop runs inside a command must wait its turn. */
    qtest_feed(server, "endianness\n", 11);
}

static void test_clock(void)
{
    Tick t = {.left = 3, .times = g_string_new(NULL)};

    start("pc,accel=qtest", true, "none");
    g_assert_cmpstr(ask("clock_step"), ==,
                    "FAIL cannot advance clock to the next deadline because there is no pending deadline\n");
    g_assert_cmpstr(ask("clock_step 1000"), ==, "OK 1000\n");
    g_assert_cmpstr(ask("clock_set 500"), ==, "FAIL 1000\n");
    aio_timer_init(&t.timer, aio_context_main(), CLOCK_TYPE_VIRTUAL, tick, &t);
    aio_timer_mod_ns(&t.timer, 1100);
    g_assert_cmpstr(ask("clock_step"), ==, "OK 1100\nOK little\n");
    g_assert_cmpstr(t.times->str, ==, "1100 ");
    g_assert_cmpstr(ask("clock_set 5000"), ==, "OK 5000\nOK little\nOK little\n");
    g_assert_cmpstr(t.times->str, ==, "1100 1200 1300 ");
    g_assert_cmpstr(ask("clock_step 0x7fffffffffffffff"), ==, "FAIL 0x7fffffffffffffff is no time in nanoseconds\n");
    g_assert_cmpstr(ask("clock_step 0x3fffffffffffffff"), ==, "FAIL could not advance time\n");
    g_assert_cmpstr(ask("clock_step 0"), ==, "FAIL could not advance time\n");
    aio_timer_del(&t.timer);
    g_string_free(t.times, TRUE);
    stop();
}

static void test_log(void)
{
    g_autofree char *path = NULL, *text = NULL;
    int fd = g_file_open_tmp("qtest-log-XXXXXX", &path, NULL);

    close(fd);
    start("pc", false, path);
    ask("endianness");
    ask("foo");
    stop();
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_true(g_regex_match_simple("^\\[I 0\\.000001\\] OPENED\\n"
                                       "\\[R \\+\\d+\\.\\d{6}\\] endianness\\n"
                                       "\\[S \\+\\d+\\.\\d{6}\\] OK little\\n"
                                       "\\[R \\+\\d+\\.\\d{6}\\] foo\\n"
                                       "\\[S \\+\\d+\\.\\d{6}\\] FAIL Unknown command 'foo'\\n"
                                       "\\[I \\+\\d+\\.\\d{6}\\] CLOSED\\n$",
                                       text, 0, 0));
    unlink(path);
    /* A log that cannot be opened is no log. */
    start("pc", false, "/nonexistent/log");
    g_assert_cmpstr(ask("endianness"), ==, "OK little\n");
    stop();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    guest_env_init();
    g_test_add_func("/qtest/memory/replies", test_memory);
    g_test_add_func("/qtest/ports/replies", test_ports);
    g_test_add_func("/qtest/lines/malformed-ones-fail", test_malformed);
    g_test_add_func("/qtest/lines/random-ones-are-survived", test_random_lines);
    g_test_add_func("/qtest/lines/portions-and-batches", test_portions);
    g_test_add_func("/qtest/none/has-no-memory", test_none);
    g_test_add_func("/qtest/server/is-single", test_single);
    g_test_add_func("/qtest/irq/interception", test_irq);
    g_test_add_func("/qtest/log/format", test_log);
    /* Last: the clock stays with the client for good. */
    g_test_add_func("/qtest/clock/steps-through-timers", test_clock);
    return g_test_run();
}
