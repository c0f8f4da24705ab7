/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Polls with the aio-posix of a tree and a clock of its own. */
#include "checks.h"
#include <sched.h>

static int64_t begin, other_ns;     /* what others make of each yield */
static int64_t last_yield;
static unsigned yields, looks_before, wait_after;

/* Never in the first microsecond, nor twice in one, nor without a look */
static int fake_yield(void)
{
    CHECK(fake_now - last_yield >= 1000);
    CHECK(fake_looks > looks_before);
    CHECK(fake_looks != wait_after);
    last_yield = fake_now;
    looks_before = fake_looks;
    fake_now += other_ns;
    yields++;
    return 0;
}
#define sched_yield fake_yield

#include "util/aio-posix.c"

static bool need_wait(AioContext *ctx)
{
    return wait_after && fake_looks >= wait_after;
}

static void poll_for(int64_t max_ns, unsigned want_looks, unsigned want_yields)
{
    FDMonOps ops = { .need_wait = need_wait };
    AioContext ctx = { .fdmon_ops = &ops };
    int64_t timeout = -1;
    bool found;

    begin += 123456789;
    fake_now = last_yield = begin;
    fake_looks = looks_before = yields = 0;
#ifdef FAKE_OLD
    found = run_poll_handlers(&ctx, max_ns, &timeout);
#else
    found = run_poll_handlers(&ctx, NULL, max_ns, &timeout);
#endif
    CHECK(found == (fake_found_at > 0));
    CHECK(fake_looks == want_looks);
    CHECK(yields == want_yields);
}

static void check_in_vain(void)
{
    fake_look_ns = 100;
    poll_for(900, 9, 0);
    poll_for(1000, 10, 0);      /* the time is up: there is no second look */
    poll_for(1100, 11, 1);
    poll_for(10000, 100, 9);

    /* Looks that do not end when a microsecond does: 1200, 2400, ... */
    fake_look_ns = 300;
    poll_for(6000, 20, 4);

    /* Looks longer than a microsecond are not made up for */
    fake_look_ns = 5000;
    poll_for(20000, 4, 3);
}

static void check_found(void)
{
    fake_look_ns = 100;
    fake_found_at = 1;
    poll_for(50000, 1, 0);
    fake_found_at = 10;
    poll_for(50000, 10, 0);
    fake_found_at = 25;
    poll_for(50000, 25, 2);
    fake_look_ns = 7000;
    fake_found_at = 1;
    poll_for(50000, 1, 0);
    fake_found_at = 0;
}

static void check_others_run(void)
{
    /* At 1000, 4100, 7200; polling is over at 10300 */
    fake_look_ns = 100;
    other_ns = 3000;
    poll_for(10000, 13, 3);
    other_ns = 0;
}

static void check_told_to_wait(void)
{
    fake_look_ns = 2000;
    wait_after = 1;
    poll_for(50000, 1, 0);
    wait_after = 3;
    poll_for(50000, 3, 2);
    wait_after = 0;
}

int main(void)
{
    check_in_vain();
    check_found();
    check_others_run();
    check_told_to_wait();
    return 0;
}
