/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cases of the io_uring engine alone. */
#include "unit/engine-cases.h"
#include "loop/kernel-queue-int.h"

#include <liburing.h>

/* --- SQEs of the loop itself beside requests --- */

enum { OWN = 5, REQUESTS = 7 };

static void nothing(AioCompletion *c, int64_t res, uint32_t flags)
{
}

/* The kernel takes one at a time, those of the loop first: each counts as what it is. */
static void case_own_sqes(Env *env)
{
    AioStats *stats = aio_context_stats(env->ctx);
    static AioCompletion own = {nothing}, mine = {nothing};
    uint64_t before = aio_stat_get(&stats->requests);
    unsigned int queued = 0;

    aio_poll(env->ctx, false); /* what the monitor wants to watch is out of the way */
    g_assert_cmpuint(aio_uring_queued(env->ctx), ==, 0);
    for (int i = 0; i < OWN + REQUESTS; i++) {
        bool of_loop = i < 3 || i >= OWN + REQUESTS - 2;
        struct io_uring_sqe *sqe = of_loop ? aio_uring_sqe_own(env->ctx, &own) : aio_uring_sqe(env->ctx, &mine);
        uint64_t data = sqe->user_data;

        io_uring_prep_nop(sqe);
        sqe->user_data = data;
        queued += !of_loop;
    }
    fault_partial(1);
    for (int i = 0; i < OWN + REQUESTS; i++) {
        g_assert_cmpuint(aio_uring_requests_queued(env->ctx), ==, queued);
        g_assert_cmpint(aio_uring_submit(env->ctx), ==, 1);
        queued -= i >= 3 && i < OWN + REQUESTS - 2;
        g_assert_cmpuint(aio_stat_get(&stats->requests) - before, ==, REQUESTS - queued);
    }
    g_assert_cmpuint(aio_uring_requests_queued(env->ctx), ==, 0);
    fault_reset();
}

const EngineCase engine_cases_uring[] = {
    {"submit/own-sqes-are-no-requests", case_own_sqes, .all_monitors = true},
    {NULL},
};
