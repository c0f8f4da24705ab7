/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests: the order in which things happen. */
#ifndef UNIT_COROUTINE_STEPS_H
#define UNIT_COROUTINE_STEPS_H

#include <glib.h>

typedef struct Steps {
    int n;
    int value[64];
} Steps;

static Steps steps;

static inline void step(int value)
{
    g_assert_cmpint(steps.n, <, (int)G_N_ELEMENTS(steps.value));
    steps.value[steps.n++] = value;
}

static inline void expect_steps(const int *expected, int n)
{
    g_assert_cmpmem(steps.value, (size_t)steps.n * sizeof(int), expected, (size_t)n * sizeof(int));
    steps.n = 0;
}
#define EXPECT_STEPS(...)                                                                          \
    do {                                                                                           \
        const int expected[] = {__VA_ARGS__};                                                      \
        expect_steps(expected, G_N_ELEMENTS(expected));                                            \
    } while (0)

#endif
