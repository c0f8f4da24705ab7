/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of cases that hold for every engine, and what the cases share. */
#ifndef UNIT_ENGINE_CASES_H
#define UNIT_ENGINE_CASES_H

#include "unit/engine-env.h"
#include "unit/fault-shim.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct EngineCase {
    const char *name; /* NULL ends a table */
    void (*fn)(Env *env);
    unsigned int max_events;
    bool all_monitors;
    bool in_memory; /* only for files in memory, and without registration */
} EngineCase;

extern const EngineCase engine_cases_rw[], engine_cases_many[], engine_cases_fault[];
/* For runs of the io_uring engine with everything registered only, and for all runs of it. */
extern const EngineCase engine_cases_registered[], engine_cases_uring[];

/* For what env_buffer() gave. */
#define autofree __attribute__((cleanup(buffer_cleanup)))

static inline void buffer_cleanup(void *p)
{
    env_buffer_free(*(void **)p);
}

/* Reads of other cases than end of file stay within the file. */
static inline void grow_file(const Env *env)
{
    g_assert_cmpint(ftruncate(env->file.fd, 1 << 20), ==, 0);
}

#endif
