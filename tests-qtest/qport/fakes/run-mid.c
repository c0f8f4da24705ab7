/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs what only the tree 'mid' has: the io_uring engine with its own ring. */
#include "checks.h"
#include "block/io_uring.c"

static void submit(LuringState *s, unsigned in_flight, int64_t max_batch,
                   unsigned want)
{
    fake_submits = 0;
    s->io_q.in_flight = in_flight;
    s->io_q.in_queue = 0;
    s->aio_context->aio_max_batch = max_batch;
    for (unsigned i = 1; i < want; i++) {
        luring_do_submit(s);
    }
    CHECK(fake_submits == 0);
    luring_do_submit(s);
    CHECK(fake_submits == 1 && fake_submitted[0] == want);
}

int main(void)
{
    AioContext ctx = { 0 };
    LuringState s = { .aio_context = &ctx };

    submit(&s, 0, 0, 128);
    submit(&s, 0, 9, 9);
    submit(&s, 120, 9, 8);
    submit(&s, 500, 9, 1);
    return 0;
}
