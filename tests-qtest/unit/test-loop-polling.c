/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adaptive polling: what aio_poll() does by the rules. */
#include "loop-test.h"

#include "loop/context.h"

static const AioPollParams defaults = {.max_ns = 32768, .grow = 2, .shrink = 2, .weight = 3};

/* In the place of sched_yield(2): another thread takes the processor for so long. */
static int64_t taken_ns;
static int yields;

void aio_poll_yield_call(void)
{
    int64_t start = aio_now_ns();

    yields++;
    while (aio_now_ns() - start < taken_ns) {
    }
}

static void set_poll(AioContext *ctx, int64_t max_ns)
{
    AioPollParams p = defaults;

    p.max_ns = max_ns;
    aio_context_set_poll_params(ctx, &p);
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

/* --- Offering the processor --- */

static void set_yield(AioContext *ctx, int64_t max_ns, int64_t yield_ns, int64_t taken)
{
    AioPollParams p = defaults;

    p.max_ns = max_ns;
    p.yield_ns = yield_ns;
    aio_context_set_poll_params(ctx, &p);
    yields = 0;
    taken_ns = taken;
}

/* Work is found at the @looks-th look. */
static void poll_found_after(AioContext *ctx, Ring *r, int looks)
{
    ctx->poll_ns = ctx->poll.max_ns;
    r->find_after = r->asked + looks;
    g_assert_true(aio_poll(ctx, true));
}

static void case_yields_between_looks(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);
    Ring r;

    set_yield(ctx, INT64_C(1000000000000), 1, 3000);
    ring_open(ctx, &r);
    join(ctx, &r);
    poll_found_after(ctx, &r, 10);
    g_assert_cmpint(r.ready, ==, 1);
    /* One look of the ten is that of the pass before it polls. */
    g_assert_cmpint(yields, >=, 8);
    g_assert_cmpint(yields, <=, 9);
    g_assert_cmpuint(aio_stat_get(&s->poll_yields), ==, yields);
    ring_close(ctx, &r);
}

/* Nobody takes it. Should the test be preempted meanwhile, that looks as if somebody did, and the pauses start anew. */
static void case_yields_less_and_less_when_alone(AioContext *ctx)
{
    Ring r;

    set_yield(ctx, INT64_C(1000000000000), 100, 0);
    ring_open(ctx, &r);
    join(ctx, &r);
    poll_found_after(ctx, &r, 50000);
    g_assert_cmpint(yields, >=, 5);
    g_assert_cmpint(yields, <=, 500);
    ring_close(ctx, &r);
}

static void case_yields_not_before_time(AioContext *ctx)
{
    static const int64_t never[] = {0, INT64_MAX, -1};
    Ring r;

    for (size_t i = 0; i < G_N_ELEMENTS(never); i++) {
        set_yield(ctx, INT64_C(1000000000000), never[i], 0);
        ring_open(ctx, &r);
        join(ctx, &r);
        poll_found_after(ctx, &r, 1000);
        g_assert_cmpint(r.ready, ==, 1);
        g_assert_cmpint(yields, ==, 0);
        ring_close(ctx, &r);
    }
}

/* 440 us went to others, which is more than poll-max-ns, and none of it counts. The test may be preempted, hence the tries. */
static void case_time_of_others_does_not_count(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);
    bool kept = false;
    AioHandler *h;
    Ring r;

    for (int i = 0; i < 1000 && !kept; i++) {
        uint64_t polls;

        set_yield(ctx, 250000, 1, 110000);
        ring_open(ctx, &r);
        kick(&r);
        while (!r.reads) {
            aio_poll(ctx, true);
        }
        ctx->no_yield_until = 0;
        yields = 0;
        polls = aio_stat_get(&s->polls_success);
        r.mute = true;
        list_for_each(h, &ctx->polled, poll_link) {
            h->ps.ns = 0;
        }
        poll_found_after(ctx, &r, 5);
        kept = yields == 4 && aio_stat_get(&s->polls_success) > polls && ctx->poll_pays;
        ring_close(ctx, &r);
    }
    g_assert_true(kept);
}

/* Timers are due by the clock, whoever had the processor. */
static void case_time_of_others_delays_no_timer(AioContext *ctx)
{
    int fired = 0;
    AioTimer t;
    Ring r;

    set_yield(ctx, INT64_MAX, 1, 100000);
    ring_open(ctx, &r);
    join(ctx, &r);
    ctx->no_yield_until = 0;
    ctx->poll_ns = INT64_MAX;
    yields = 0;
    aio_timer_init(&t, ctx, CLOCK_TYPE_REALTIME, bump, &fired);
    aio_timer_mod_ns(&t, aio_now_ns() + 250000);
    while (!fired) {
        aio_poll(ctx, true);
    }
    g_assert_cmpint(yields, <=, 3);
    ring_close(ctx, &r);
}

/* Who keeps it for 1 ms gets it once; the wait goes on asleep, and later ones keep the processor for 10 ms. */
static void case_long_absence_ends_it(AioContext *ctx)
{
    const int64_t second = 1000000000;
    int64_t before;
    Ring r;

    set_yield(ctx, second, 1, second / 1000);
    ring_open(ctx, &r);
    join(ctx, &r);
    ctx->poll_ns = second;
    yields = 0;
    before = aio_now_ns();
    r.mute = true;
    r.find_after = r.asked + 1000000000;
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(r.ended, ==, 1);
    g_assert_cmpint(yields, ==, 1);
    g_assert_cmpint(ctx->no_yield_until, >, before + 10 * taken_ns);
    g_assert_cmpint(ctx->no_yield_until, <=, aio_now_ns() + 10 * second);
    ctx->no_yield_until = INT64_MAX;

    poll_found_after(ctx, &r, 50);
    g_assert_cmpint(yields, ==, 1);
    ctx->no_yield_until = 0;
    taken_ns = 0;
    poll_found_after(ctx, &r, 50);
    g_assert_cmpint(yields, >, 1);
    ring_close(ctx, &r);
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
    {"polling/as-long-as-a-sleep-costs", case_polls_as_long_as_sleep_costs},
    {"polling/in-vain-is-not-prolonged", case_in_vain_is_not_prolonged},
    {"yield/between-looks", case_yields_between_looks},
    {"yield/less-and-less-when-alone", case_yields_less_and_less_when_alone},
    {"yield/not-before-its-time", case_yields_not_before_time},
    {"yield/time-of-others-does-not-count", case_time_of_others_does_not_count},
    {"yield/time-of-others-delays-no-timer", case_time_of_others_delays_no_timer},
    {"yield/long-absence-ends-it", case_long_absence_ends_it},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/main/polling/never", test_main_never_polls);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
