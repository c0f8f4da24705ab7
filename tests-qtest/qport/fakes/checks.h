/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the fakes record, for the programs that run the patched trees. */
#ifndef CHECKS_H
#define CHECKS_H

#include "fake.h"

extern unsigned fake_submitted[16], fake_submits;
extern unsigned fake_setup_events;
extern int fake_setup_result;
extern unsigned fake_attempts[16], fake_attempt_count, fake_kernel_flags;
extern int fake_ring_error;
extern int fake_reaps, fake_late_completions, fake_clears, fake_reaps_at_clear;
extern unsigned fake_kflags;
extern int fake_interrupts;
extern int64_t fake_now, fake_look_ns;
extern unsigned fake_looks, fake_found_at;
extern void (*fake_on_dispatch)(struct AioContext *ctx);

#define CHECK(x) do { \
        if (!(x)) { \
            printf("%s:%d: %s does not hold\n", __FILE__, __LINE__, #x); \
            exit(1); \
        } \
    } while (0)

#endif
