/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adaptive polling: the rules, and when polling is tried again. */
#include "loop-test.h"

#include "loop/context.h"

static const AioPollParams defaults = {.max_ns = 32768, .grow = 2, .shrink = 2, .weight = 3};

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

static void set_poll(AioContext *ctx, int64_t max_ns)
{
    AioPollParams p = defaults;

    p.max_ns = max_ns;
    aio_context_set_poll_params(ctx, &p);
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
        n++;
        g_assert_cmpint(n, <=, 1024);
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

static const LoopCaseEntry cases[] = {
    {"polling/probes-less-and-less-where-in-vain", case_probes_less_and_less},
    {"polling/probe-that-catches-stays", case_probe_that_catches_stays},
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
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
