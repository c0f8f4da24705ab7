/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many requests in one piece: everybody else gets a turn before the last of them. The clock is the test's own. */
#include "unit/monitor-env.h"

#include <string.h>
#include <unistd.h>

#define MANY 200
#define ENABLE_OOB "{'execute': 'qmp_capabilities', 'arguments': {'enable': ['oob']}}"

/* --- The clock --- */

static int64_t now, step;
static void (*on_look)(void); /* once, when the server has read its input */

static int64_t look(void)
{
    void (*fn)(void) = on_look;

    on_look = NULL;
    if (fn) {
        fn();
    }
    now += step;
    return now;
}

/* From now on each look at the clock takes so long. */
static void start_clock(int64_t step_us)
{
    step = step_us * 1000;
    chardev_set_turn_clock(look);
}

/* --- What others want meanwhile --- */

static int other;

static void others_request(void)
{
    static const char text[] = "{'execute': 'quit'}";

    g_assert_cmpint(write(other, text, strlen(text)), ==, (ssize_t)strlen(text));
}

static void bottom_half(void *opaque)
{
    qapi_event_emit("SHUTDOWN", NULL);
}

static void schedule_bottom_half(void)
{
    aio_bh_schedule_oneshot(aio_context_main(), bottom_half, NULL);
}

/* Two clients; the first is the one that hear() listens to. */
static void start_two(bool oob)
{
    int first;

    start_qmp();
    first = client;
    if (oob) {
        say(ENABLE_OOB);
        hear("{\"return\": {}}\r\n");
        forget();
    } else {
        negotiate();
    }
    start_qmp();
    negotiate();
    other = client;
    client = first;
}

static void end_two(void)
{
    chardev_set_turn_clock(NULL);
    close(other);
    end();
}

static void say_many(int n, const char *last)
{
    g_autoptr(GString) all = g_string_new(NULL);

    for (int i = 1; i <= n; i++) {
        g_string_append_printf(all, "{'execute': 'fast', 'id': %d}", i);
    }
    g_string_append(all, last);
    say(all->str);
}

/* The ids of what was heard, and "-" for the event of the others: "1 2 - 3". */
static char *order(void)
{
    g_autoptr(GRegex) regex = g_regex_new("\"id\": ([0-9]+)|\"event\": \"SHUTDOWN\"()", 0, 0, NULL);
    g_autoptr(GMatchInfo) m = NULL;
    GString *ids = g_string_new(NULL);

    for (g_regex_match(regex, heard->str, 0, &m); g_match_info_matches(m); g_match_info_next(m, NULL)) {
        g_autofree char *id = g_match_info_fetch(m, 1);

        g_string_append_printf(ids, "%s%s", ids->len ? " " : "", *id ? id : "-");
    }
    return g_string_free(ids, FALSE);
}

/* "FROM ... TO" */
static char *numbers(int from, int to)
{
    GString *s = g_string_new(NULL);

    for (int i = from; i <= to; i++) {
        g_string_append_printf(s, "%s%d", i > from ? " " : "", i);
    }
    return g_string_free(s, FALSE);
}

static void hear_both(int last_id)
{
    g_autofree char *text = g_strdup_printf("\"id\": %d}", last_id);

    hear(text);
    hear("SHUTDOWN");
}

/* --- Tests --- */

typedef struct TurnCase {
    const char *label;
    bool oob;
    int requests, step_us, before; /* how many come before the others' turn */
    void (*want)(void);
} TurnCase;

/* The first pass has two turns: when it looks at descriptors, and among the bottom halves. */
static const TurnCase turn_cases[] = {
    {"other-client-soon", false, MANY, 2000, 2, others_request},
    {"other-client-later", false, MANY, 1000, 4, others_request},
    {"other-client-with-oob", true, MANY, 2000, 2, others_request},
    {"other-client-when-all-were-taken-ahead", true, 5, 1000, 4, others_request},
    {"bottom-half", false, MANY, 500, 4, schedule_bottom_half},
    {"not-before-the-time-is-over", false, MANY, 0, MANY, schedule_bottom_half},
};

static void test_turn(const void *opaque)
{
    const TurnCase *c = opaque;
    g_autofree char *got = NULL, *first = numbers(1, c->before), *then = numbers(c->before + 1, c->requests);
    g_autofree char *expect = g_strdup_printf("%s -%s%s", first, *then ? " " : "", then);

    start_two(c->oob);
    start_clock(c->step_us);
    on_look = c->want;
    say_many(c->requests, "");
    hear_both(c->requests);
    got = order();
    g_assert_cmpstr(got, ==, expect);
    end_two();
}

/* What is executed out of band overtakes the same requests as without turns. */
static void test_oob_order(void)
{
    for (int n = 0; n <= 10; n++) {
        int first = MAX(n - 7, 0);
        g_autofree char *before = numbers(1, first), *then = numbers(first + 1, n), *got = NULL;
        g_autofree char *want = g_strdup_printf("%s%s100 %s%s101", before, *before ? " " : "", then, *then ? " " : "");

        start_qmp();
        say(ENABLE_OOB);
        hear("{\"return\": {}}\r\n");
        forget();
        start_clock(2000);
        say_many(n, "{'exec-oob': 'fast', 'id': 100}{'execute': 'fast', 'id': 101}");
        hear("\"id\": 101}");
        got = order();
        g_assert_cmpstr(got, ==, want);
        chardev_set_turn_clock(NULL);
        end();
    }
}

static void wait_for_first(void)
{
    start_clock(2000);
    say_many(MANY, "");
    hear("\"id\": 1}");
}

static void poll_on(void)
{
    for (int i = 0; i < 2 * MANY; i++) {
        aio_poll(aio_context_main(), false);
    }
}

/* The monitor goes while requests wait. Nothing of them reaches the next one. */
static void test_deleted_meanwhile(void)
{
    Object *objects = object_objects();

    start_qmp();
    negotiate();
    wait_for_first();
    object_unparent(g_ptr_array_index(objects->child_order, objects->child_order->len - 1));
    poll_on();
    g_assert_true(monitor_new_compat(server, true, false, &error_abort));
    hear("\"QMP\"");
    g_assert_null(strstr(heard->str, "\"id\": 10}"));
    forget();
    say("{'execute': 'qmp_capabilities', 'id': 300}{'execute': 'fast', 'id': 301}");
    hear("\"id\": 301}");
    g_autofree char *got = order();
    g_assert_cmpstr(got, ==, "300 301");
    chardev_set_turn_clock(NULL);
    end();
}

/* The client goes while requests wait. The next one gets no answers to them. */
static void test_gone_meanwhile(void)
{
    start_server(true);
    connect_to_server();
    negotiate();
    wait_for_first();
    close(client);
    connect_to_server();
    poll_on();
    forget();
    say("{'execute': 'qmp_capabilities', 'id': 300}{'execute': 'fast', 'id': 301}");
    hear("\"id\": 301}");
    g_autofree char *got = order();
    g_assert_cmpstr(got, ==, "300 301");
    chardev_set_turn_clock(NULL);
    end_server();
}

/* --- HMP --- */

static int lines, lines_before;

static void hmp_count(json_t *args, GString *out)
{
    g_string_append_printf(out, "line %d\n", ++lines);
}

static void note_lines(void *opaque)
{
    lines_before = lines;
}

static void schedule_note(void)
{
    aio_bh_schedule_oneshot(aio_context_main(), note_lines, NULL);
}

static void test_lines(void)
{
    start_hmp();
    start_clock(1000);
    on_look = schedule_note;
    say("count\ncount\ncount\ncount\ncount\n");
    hear("line 5\r\n(qemu) ");
    g_assert_cmpint(lines_before, ==, 2);
    chardev_set_turn_clock(NULL);
    end();
}

static const HmpCommand test_commands[] = {
    {"count", "", "", "counts", hmp_count},
    {0},
};

int main(int argc, char **argv)
{
    static const HmpCommand *const tables[] = {test_commands, NULL};

    monitor_env_init(&argc, &argv, tables);
    for (unsigned int i = 0; i < G_N_ELEMENTS(turn_cases); i++) {
        g_autofree char *path = g_strdup_printf("/monitor/turn/qmp/%s", turn_cases[i].label);
        g_test_add_data_func(path, &turn_cases[i], test_turn);
    }
    g_test_add_func("/monitor/turn/qmp/out-of-band-overtakes-as-ever", test_oob_order);
    g_test_add_func("/monitor/turn/qmp/requests-go-with-their-monitor", test_deleted_meanwhile);
    g_test_add_func("/monitor/turn/qmp/requests-go-with-their-client", test_gone_meanwhile);
    g_test_add_func("/monitor/turn/hmp/lines-leave-others-their-turn", test_lines);
    return monitor_env_run();
}
