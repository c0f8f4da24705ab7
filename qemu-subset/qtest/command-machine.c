/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qtest commands about interrupt lines, the virtual clock, and the rest of the machine. */
#include "guest/irq.h"
#include "loop/timer.h"
#include "qtest/private.h"

#include <inttypes.h>
#include <string.h>

/* --- Interrupt lines --- */

static void irq_changed(void *opaque, int n, int level)
{
    QtestServer *s = opaque;
    gpointer key = GINT_TO_POINTER(n);
    int old = GPOINTER_TO_INT(g_hash_table_lookup(s->irq_levels, key));

    level = !!level;
    if (level != old) {
        g_hash_table_insert(s->irq_levels, key, GINT_TO_POINTER(level));
        qtest_sendf(s, "IRQ %s %d", level ? "raise" : "lower", n);
    }
}

void qtest_irq_release(QtestServer *s)
{
    DeviceState *dev = s->irq_device;

    if (dev) {
        device_watch_irq_in(dev, NULL, NULL);
        object_unref(&dev->obj);
        s->irq_device = NULL;
    }
}

static DeviceState *find_device(QtestServer *s, const char *path)
{
    Object *obj = object_resolve(path, NULL);

    if (!obj || !object_is_a(obj, TYPE_DEVICE)) {
        qtest_send(s, "FAIL Unknown device");
        return NULL;
    }
    return (DeviceState *)obj;
}

static void intercept(QtestServer *s, char **words, bool outputs)
{
    DeviceState *dev = find_device(s, words[0]);

    if (!dev) {
        return;
    }
    if (s->irq_device) {
        qtest_send(s, s->irq_device == dev ? "OK" : "FAIL IRQ intercept already enabled");
        return;
    }
    if (!outputs && words[1]) {
        qtest_send(s, "FAIL Interception of named in-GPIOs not yet supported");
        return;
    }
    /* No device has outputs. */
    if (outputs || !device_watch_irq_in(dev, irq_changed, s)) {
        qtest_send(s, "FAIL No intercepts installed");
        return;
    }
    s->irq_device = (DeviceState *)object_ref(&dev->obj);
    qtest_send(s, "OK");
}

static void irq_intercept_in(QtestServer *s, char **words)
{
    intercept(s, words, false);
}

static void irq_intercept_out(QtestServer *s, char **words)
{
    intercept(s, words, true);
}

static void set_irq_in(QtestServer *s, char **words)
{
    DeviceState *dev = find_device(s, words[0]);
    bool named = strcmp(words[1], "unnamed-gpio-in");
    uint64_t n, level;

    if (!dev || !qtest_number(s, words[2], &n) || !qtest_number(s, words[3], &level)) {
        return;
    }
    /* No device has lines with names. */
    IrqLine *line = !named && n <= INT32_MAX ? device_irq_in(dev, (int)n) : NULL;
    if (!line) {
        qtest_send(s, "FAIL Unknown interrupt line");
        return;
    }
    irq_set(line, (int32_t)level);
    qtest_send(s, "OK");
}

/* --- Virtual clock --- */

/* Move the clock to @dest, stopping at each timer on the way so that it sees the time it was armed for. */
static int64_t advance_clock(int64_t dest)
{
    int64_t now = clock_get_ns(CLOCK_TYPE_VIRTUAL);

    while (now < dest) {
        int64_t deadline = clock_virtual_deadline_ns();

        if (deadline >= 0 && deadline <= now) {
            /* Due already: it runs first, and may arm others. */
            aio_poll(aio_context_main(), false);
            deadline = clock_virtual_deadline_ns();
        }
        clock_virtual_set_ns(deadline > now && deadline < dest ? deadline : dest);
        aio_poll(aio_context_main(), false);
        now = clock_get_ns(CLOCK_TYPE_VIRTUAL);
    }
    return now;
}

static bool clock_value(QtestServer *s, const char *word, uint64_t *value)
{
    if (!qtest_number(s, word, value)) {
        return false;
    }
    /* The clock keeps its lowest bit for itself. */
    if (*value > INT64_MAX / 2) {
        qtest_sendf(s, "FAIL %s is no time in nanoseconds", word);
        return false;
    }
    return true;
}

static void clock_step(QtestServer *s, char **words)
{
    int64_t before = clock_get_ns(CLOCK_TYPE_VIRTUAL), now, dest;
    uint64_t step;

    if (words[0]) {
        if (!clock_value(s, words[0], &step)) {
            return;
        }
        dest = before + (int64_t)step; /* both below half of the range */
        if (dest > INT64_MAX / 2) {
            qtest_send(s, "FAIL could not advance time");
            return;
        }
    } else {
        dest = clock_virtual_deadline_ns();
        if (dest < 0) {
            qtest_send(s, "FAIL cannot advance clock to the next deadline because there is no pending deadline");
            return;
        }
    }
    now = advance_clock(dest);
    if (now < dest || now == before) {
        qtest_send(s, "FAIL could not advance time");
        return;
    }
    qtest_sendf(s, "OK %" PRId64, now);
}

static void clock_set(QtestServer *s, char **words)
{
    uint64_t dest;

    if (clock_value(s, words[0], &dest)) {
        int64_t now = advance_clock((int64_t)dest);
        qtest_sendf(s, "%s %" PRId64, now == (int64_t)dest ? "OK" : "FAIL", now);
    }
}

/* --- Others --- */

static void endianness(QtestServer *s, char **words)
{
    qtest_send(s, "OK little");
}

static void module_load(QtestServer *s, char **words)
{
    qtest_send(s, "FAIL");
}

static void qom_tests(QtestServer *s, char **words)
{
    qtest_send(s, "OK");
}

const QtestCommand qtest_machine_commands[] = {
    {"irq_intercept_in", 1, 2, irq_intercept_in},
    {"irq_intercept_out", 1, 2, irq_intercept_out},
    {"set_irq_in", 4, 4, set_irq_in},
    {"clock_step", 0, 1, clock_step, .needs_clock = true},
    {"clock_set", 1, 1, clock_set, .needs_clock = true},
    {"endianness", 0, 0, endianness},
    {"module_load", 2, 2, module_load}, /* nothing is built as a module */
    {"qom-tests", 0, 0, qom_tests},
    {0},
};
