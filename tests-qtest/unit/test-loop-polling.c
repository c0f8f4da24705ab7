/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adaptive polling: the rules, and what aio_poll() does by them. */
#include "loop-test.h"

#include "loop/context.h"

static const AioPollParams defaults = {.max_ns = 32768, .grow = 2, .shrink = 2, .weight = 3};

static void set_poll(AioContext *ctx, int64_t max_ns)
{
    AioPollParams p = defaults;

    p.max_ns = max_ns;
    aio_context_set_poll_params(ctx, &p);
}

/* --- Rules --- */

static void test_first_time_is_taken(void)
{
    AioPollState ps = {.hit = true};

    aio_poll_state_update(&ps, &defaults, 8376);
    g_assert_cmpint(ps.ns, ==, 8376);
}

static void test_weighted_mean(void)
{
    AioPollState ps = {.hit = true, .ns = 8000};

    aio_poll_state_update(&ps, &defaults, 16000);
    g_assert_cmpint(ps.ns, ==, 8000 - 1000 + 2000);
    aio_poll_state_update(&ps, &defaults, 0);
    g_assert_cmpint(ps.ns, ==, 9000 - 1125);
}

static void test_too_long_resets(void)
{
    AioPollState ps = {.hit = true};

    aio_poll_state_update(&ps, &defaults, 32769);
    g_assert_cmpint(ps.ns, ==, 0);
    aio_poll_state_update(&ps, &defaults, 32768);
    g_assert_cmpint(ps.ns, ==, 32768);
}

static void test_not_dispatched_adds(void)
{
    AioPollState ps = {.ns = 30000};

    aio_poll_state_update(&ps, &defaults, 2768);
    g_assert_cmpint(ps.ns, ==, 32768);
    aio_poll_state_update(&ps, &defaults, 1);
    g_assert_cmpint(ps.ns, ==, 0);
    aio_poll_state_update(&ps, &defaults, 500);
    g_assert_cmpint(ps.ns, ==, 0);
}

static void test_no_overflow(void)
{
    AioPollParams p = {.max_ns = INT64_MAX, .grow = INT64_MAX, .shrink = INT64_MAX, .weight = 63};
    AioPollState ps = {.ns = INT64_MAX - 5};

    aio_poll_state_update(&ps, &p, INT64_MAX);
    g_assert_cmpint(ps.ns, ==, INT64_MAX);
    ps.hit = true;
    aio_poll_state_update(&ps, &p, INT64_MAX);
    g_assert_cmpint(ps.ns, ==, INT64_MAX);
    g_assert_cmpint(aio_poll_next(2, 3, &p), ==, INT64_MAX);
    g_assert_cmpint(aio_poll_next(INT64_MAX, 0, &p), ==, 1);
}

/* What QEMU was observed to do with the default parameters. */
static void test_observed_trace(void)
{
    static const struct {
        int64_t longest, poll_ns;
    } steps[] = {
        {8376, 8376}, {100, 4188},   {100, 2094}, {0, 1047},   {32081, 32081}, {900, 16040},
        {100, 8020},  {4009, 4010},  {100, 2005}, {100, 1002}, {1500, 2004},   {1002, 2004},
        {2004, 2004}, {2005, 4008},  {30000, 30000}, {30001, 32768},
    };
    int64_t poll_ns = 0;

    for (unsigned int i = 0; i < G_N_ELEMENTS(steps); i++) {
        poll_ns = aio_poll_next(poll_ns, steps[i].longest, &defaults);
        g_assert_cmpint(poll_ns, ==, steps[i].poll_ns);
    }
}

/* --- A context --- */

typedef struct Ring {
    int fd[2];
    bool work, mute;
    int asked, ready, reads, begun, ended;
    int find_after; /* the so-manieth question finds work */
} Ring;

static bool ring_poll(void *opaque)
{
    Ring *r = opaque;

    r->asked++;
    return r->work || (r->find_after && r->asked >= r->find_after);
}

static void ring_ready(void *opaque)
{
    Ring *r = opaque;

    r->ready++;
    r->work = false;
    r->find_after = 0;
}

static void ring_read(void *opaque)
{
    Ring *r = opaque;
    char c;

    r->reads++;
    g_assert_cmpint(read(r->fd[0], &c, 1), ==, 1);
}

static void ring_begin(void *opaque)
{
    ((Ring *)opaque)->begun++;
}

static void ring_end(void *opaque)
{
    Ring *r = opaque;

    r->ended++;
    if (r->mute) {
        /* Work that came while notifications were off. */
        r->mute = false;
        r->work = true;
    }
}

static void ring_open(AioContext *ctx, Ring *r)
{
    *r = (Ring){0};
    g_assert_cmpint(pipe2(r->fd, O_NONBLOCK | O_CLOEXEC), ==, 0);
    aio_set_fd_handler(ctx, r->fd[0], ring_read, NULL, ring_poll, ring_ready, r);
    aio_set_fd_poll(ctx, r->fd[0], ring_begin, ring_end);
}

static void ring_close(AioContext *ctx, Ring *r)
{
    aio_set_fd_handler(ctx, r->fd[0], NULL, NULL, NULL, NULL, NULL);
    close(r->fd[0]);
    close(r->fd[1]);
}

static void kick(Ring *r)
{
    g_assert_cmpint(write(r->fd[1], "x", 1), ==, 1);
}

static void case_zero_polls_not_at_all(AioContext *ctx)
{
    Ring r;

    set_poll(ctx, 0);
    ring_open(ctx, &r);
    for (int i = 1; i <= 5; i++) {
        kick(&r);
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpint(r.reads, ==, i);
    }
    g_assert_cmpint(r.asked, ==, 0);
    g_assert_cmpint(r.begun, ==, 0);
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(ctx)->polls), ==, 0);
    ring_close(ctx, &r);
}

/* Let the handler join: dispatched once after a wait of a length that polling could have caught. */
static void join(AioContext *ctx, Ring *r)
{
    kick(r);
    while (!r->reads) {
        aio_poll(ctx, true);
    }
    g_assert_cmpint(ctx->poll_ns, >, 0);
}

static void case_joins_when_first_ready(AioContext *ctx)
{
    Ring r;

    set_poll(ctx, INT64_C(1000000000000));
    ring_open(ctx, &r);
    g_assert_cmpint(r.asked, ==, 0);
    join(ctx, &r);
    ctx->poll_ns = INT64_C(1000000000000);
    r.find_after = r.asked + 10;
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(r.ready, ==, 1);
    g_assert_cmpint(r.reads, ==, 1);
    ring_close(ctx, &r);
}

static void case_success_makes_no_system_call(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);
    Ring r;
    uint64_t waits, polls;

    set_poll(ctx, INT64_C(1000000000000));
    ring_open(ctx, &r);
    join(ctx, &r);
    ctx->poll_ns = INT64_C(1000000000000);
    aio_poll(ctx, false);
    waits = aio_stat_get(&s->wait_calls);
    polls = aio_stat_get(&s->polls_success);
    ctx->skipped = 0;
    r.find_after = r.asked + 1000;
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(r.ready, ==, 1);
    g_assert_cmpuint(aio_stat_get(&s->polls_success), ==, polls + 1);
    g_assert_cmpuint(aio_stat_get(&s->wait_calls), ==, waits);
    ring_close(ctx, &r);
}

static void case_end_before_sleep_and_look_again(AioContext *ctx)
{
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    join(ctx, &r);
    g_assert_cmpint(r.begun, ==, r.ended);
    ctx->poll_ns = 1000;
    r.mute = true;
    /* Polling finds nothing; end() does. Without the look after it the loop would sleep for ever. */
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(r.ready, ==, 1);
    g_assert_cmpint(r.begun, ==, 1);
    g_assert_cmpint(r.ended, ==, 1);
    ring_close(ctx, &r);
}

static void case_stays_begun_while_successful(AioContext *ctx)
{
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    join(ctx, &r);
    for (int i = 0; i < 3; i++) {
        ctx->poll_ns = 1000000000;
        r.find_after = r.asked + 5;
        g_assert_true(aio_poll(ctx, true));
    }
    g_assert_cmpint(r.ready, ==, 3);
    g_assert_cmpint(r.begun, ==, 1);
    g_assert_cmpint(r.ended, ==, 0);
    /* Its notifications are off, so a pass that does not poll must look as well. */
    r.work = true;
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(r.ready, ==, 4);
    ring_close(ctx, &r);
    g_assert_cmpint(r.ended, ==, 1);
}

static void case_switched_off_ends(AioContext *ctx)
{
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    join(ctx, &r);
    ctx->poll_ns = 1000000000;
    r.work = true;
    g_assert_true(aio_poll(ctx, true));
    set_poll(ctx, 0);
    kick(&r);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(r.begun, ==, 1);
    g_assert_cmpint(r.ended, ==, 1);
    ring_close(ctx, &r);
}

static void case_setters_reset(AioContext *ctx)
{
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    join(ctx, &r);
    set_poll(ctx, 1000000000);
    aio_poll(ctx, false);
    g_assert_cmpint(ctx->poll_ns, ==, 0);
    ring_close(ctx, &r);
}

static void case_idle_handler_leaves_after_7_s(AioContext *ctx)
{
    const int64_t second = 1000000000;
    Ring r;

    set_poll(ctx, second);
    ring_open(ctx, &r);
    join(ctx, &r);
    g_assert_false(list_empty(&ctx->polled));
    aio_adaptive_account(ctx, 0, ctx->last_ns + 7 * second);
    g_assert_false(list_empty(&ctx->polled));
    aio_adaptive_account(ctx, 0, ctx->last_ns + 7 * second + 1);
    g_assert_true(list_empty(&ctx->polled));
    ring_close(ctx, &r);
}

static void *switch_off(void *opaque)
{
    g_usleep(2000);
    set_poll(opaque, 0);
    /* Polling ends by itself; this is for the sleep that follows. */
    aio_notify(opaque);
    return NULL;
}

static void case_setter_ends_a_long_poll(AioContext *ctx)
{
    pthread_t thread;
    Ring r;

    set_poll(ctx, INT64_MAX);
    ring_open(ctx, &r);
    join(ctx, &r);
    ctx->poll_ns = INT64_MAX;
    g_assert_cmpint(pthread_create(&thread, NULL, switch_off, ctx), ==, 0);
    /* It would go on for 292 years. */
    aio_poll(ctx, true);
    pthread_join(thread, NULL);
    aio_poll(ctx, false);
    g_assert_cmpint(ctx->poll.max_ns, ==, 0);
    ring_close(ctx, &r);
}

static void case_deadline_limits_polling(AioContext *ctx)
{
    int fired = 0;
    AioTimer t;
    Ring r;

    set_poll(ctx, INT64_MAX);
    ring_open(ctx, &r);
    join(ctx, &r);
    ctx->poll_ns = INT64_MAX;
    aio_timer_init(&t, ctx, CLOCK_TYPE_REALTIME, bump, &fired);
    aio_timer_mod_ns(&t, aio_now_ns() + 1000000);
    while (!fired) {
        aio_poll(ctx, true);
    }
    ring_close(ctx, &r);
}

/* What was there without a wait says nothing about how long polling has to be, but keeps the handler in. */
static void case_found_at_once_changes_no_time(AioContext *ctx)
{
    const int64_t second = 1000000000;
    int64_t before;
    Ring r;

    set_poll(ctx, second);
    ring_open(ctx, &r);
    join(ctx, &r);
    before = ctx->poll_ns = second / 2;
    ctx->inner[AIO_POLL_KAIO].hit = true;
    aio_adaptive_account(ctx, -1, ctx->last_ns + 6 * second);
    g_assert_cmpint(ctx->poll_ns, ==, before);
    g_assert_false(ctx->inner[AIO_POLL_KAIO].hit);
    ctx->inner[AIO_POLL_KAIO].hit = true;
    aio_adaptive_account(ctx, -1, ctx->last_ns + 12 * second);
    g_assert_true(ctx->inner[AIO_POLL_KAIO].listed);
    ring_close(ctx, &r);
}

static void too_long(AioContext *ctx)
{
    ctx->inner[AIO_POLL_NOTIFIER].hit = true;
    aio_adaptive_account(ctx, 2 * ctx->poll.max_ns, ctx->last_ns);
}

/* Returns after how many waits that were too long polling is tried. */
static int waits_until_probe(AioContext *ctx)
{
    int n = 0;

    while (ctx->poll_ns <= 1) {
        too_long(ctx);
        g_assert_cmpint(++n, <=, 1024);
    }
    g_assert_cmpint(ctx->poll_ns, ==, ctx->poll.max_ns);
    return n;
}

static void case_probes_less_and_less(AioContext *ctx)
{
    int last = 0, now;

    set_poll(ctx, 1000000);
    aio_poll(ctx, false);
    for (int i = 0; i < 20; i++) {
        now = waits_until_probe(ctx);
        g_assert_cmpint(now, ==, i ? MIN(2 * last, 1024) : 8);
        last = now;
        too_long(ctx);
        g_assert_cmpint(ctx->poll_ns, ==, 0);
    }
}

static void case_probe_that_catches_stays(AioContext *ctx)
{
    set_poll(ctx, 1000000);
    aio_poll(ctx, false);
    waits_until_probe(ctx);
    ctx->inner[AIO_POLL_NOTIFIER].hit = true;
    aio_adaptive_account(ctx, 2000, ctx->last_ns);
    g_assert_cmpint(ctx->poll_ns, ==, 500000);
    g_assert_true(ctx->poll_pays);
    /* The rule lets the time shrink to next to nothing, and then the next try comes as soon as the first. */
    for (int i = 0; ctx->poll_ns > 1; i++) {
        g_assert_cmpint(i, <, 100);
        too_long(ctx);
    }
    g_assert_false(ctx->poll_pays);
    g_assert_cmpint(waits_until_probe(ctx), ==, 7); /* after the one before */
}

/* Polling lasts as long as a sleep costs, though a nanosecond was enough of late. May be preempted, hence the tries. */
static void case_polls_as_long_as_sleep_costs(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);
    uint64_t polls;
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    join(ctx, &r);
    polls = aio_stat_get(&s->polls_success);
    for (int i = 0; i < 1000 && aio_stat_get(&s->polls_success) == polls; i++) {
        ctx->poll_ns = 1;
        r.find_after = r.asked + 10;
        kick(&r);
        aio_poll(ctx, true);
    }
    g_assert_cmpuint(aio_stat_get(&s->polls_success), >, polls);
    ring_close(ctx, &r);
}

/* Where polling catches nothing, the floor does not hold: it lasts as the rule says. */
static void case_in_vain_is_not_prolonged(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);
    uint64_t polls;
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    join(ctx, &r);
    polls = aio_stat_get(&s->polls_success);
    ctx->poll_pays = false;
    ctx->poll_ns = 1;
    r.find_after = r.asked + 50;
    r.mute = true;
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(r.ended, ==, 1);
    g_assert_cmpuint(aio_stat_get(&s->polls_success), ==, polls);
    ring_close(ctx, &r);
}

/* --- The clock of a pass --- */

typedef struct Readings {
    AioContext *ctx;
    int64_t first, second;
} Readings;

static void let_time_pass(void)
{
    int64_t start = aio_now_ns();

    while (aio_now_ns() == start) {
    }
}

static void read_twice(void *opaque)
{
    Readings *r = opaque;

    r->first = aio_pass_ns(r->ctx);
    let_time_pass();
    r->second = aio_pass_ns(r->ctx);
}

static void case_one_clock_read_a_pass(AioContext *ctx)
{
    Readings a = {.ctx = ctx}, b = {.ctx = ctx};
    int64_t before = aio_now_ns();

    aio_bh_schedule_oneshot(ctx, read_twice, &a);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(a.first, >=, before);
    g_assert_cmpint(a.second, ==, a.first);
    let_time_pass();
    aio_bh_schedule_oneshot(ctx, read_twice, &b);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(b.first, >, a.first);
    g_assert_cmpint(b.second, ==, b.first);
    /* Outside there is no pass to last: each reading is a new one. */
    read_twice(&a);
    g_assert_cmpint(a.first, >, b.first);
    g_assert_cmpint(a.second, >, a.first);
}

static void test_main_never_polls(void)
{
    AioContextConfig cfg = {.name = "main", .monitor = AIO_MONITOR_EPOLL, .is_main = true};
    AioContext *ctx = aio_context_new(&cfg, &error_abort);
    Ring r;

    set_poll(ctx, 1000000000);
    ring_open(ctx, &r);
    for (int i = 1; i <= 3; i++) {
        kick(&r);
        g_assert_true(aio_poll(ctx, true));
    }
    g_assert_cmpint(r.asked, ==, 0);
    ring_close(ctx, &r);
    loop_test_free(ctx);
}

static const LoopCaseEntry cases[] = {
    {"polling/zero-polls-not-at-all", case_zero_polls_not_at_all},
    {"polling/handler-joins-when-first-ready", case_joins_when_first_ready},
    {"polling/success-makes-no-system-call", case_success_makes_no_system_call},
    {"polling/end-before-sleep-and-look-again", case_end_before_sleep_and_look_again},
    {"polling/stays-begun-while-successful", case_stays_begun_while_successful},
    {"polling/switching-off-ends-it", case_switched_off_ends},
    {"polling/setters-reset-times", case_setters_reset},
    {"polling/idle-handler-leaves-after-7-s", case_idle_handler_leaves_after_7_s},
    {"polling/setter-ends-a-long-poll", case_setter_ends_a_long_poll},
    {"polling/deadline-limits-it", case_deadline_limits_polling},
    {"polling/found-at-once-changes-no-time", case_found_at_once_changes_no_time},
    {"polling/probes-less-and-less-where-in-vain", case_probes_less_and_less},
    {"polling/probe-that-catches-stays", case_probe_that_catches_stays},
    {"polling/as-long-as-a-sleep-costs", case_polls_as_long_as_sleep_costs},
    {"polling/in-vain-is-not-prolonged", case_in_vain_is_not_prolonged},
    {"pass/one-clock-read", case_one_clock_read_a_pass},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/polling-rules/first-time-is-taken", test_first_time_is_taken);
    g_test_add_func("/loop/polling-rules/weighted-mean", test_weighted_mean);
    g_test_add_func("/loop/polling-rules/too-long-resets", test_too_long_resets);
    g_test_add_func("/loop/polling-rules/not-dispatched-adds", test_not_dispatched_adds);
    g_test_add_func("/loop/polling-rules/no-overflow-at-the-limits", test_no_overflow);
    g_test_add_func("/loop/polling-rules/observed-trace", test_observed_trace);
    g_test_add_func("/loop/main/polling/never", test_main_never_polls);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
