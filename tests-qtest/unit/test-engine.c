/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One table of cases that holds for every engine, on several file systems and under every monitor. */
#include "unit/engine-cases.h"

typedef struct Run {
    const EngineCase *c;
    EnvConfig cfg;
} Run;

static void run_case(gconstpointer opaque)
{
    const Run *run = opaque;
    Env *env;

    fault_reset();
    env = env_new(&run->cfg, run->c->max_events);
    if (env) {
        run->c->fn(env);
        env_free(env);
    }
}

static void add_runs(const EngineCase *c, EngineKind kind, AioMonitor monitor, bool registered)
{
    static const struct {
        const char *dir, *fs;
        bool direct;
    } places[] = {{"/dev/shm", "tmpfs", true}, {"/var/tmp", "disk", true}, {"/var/tmp", "disk-cached", false}};

    if (c->in_memory && registered) {
        return;
    }
    for (size_t p = 0; p < (monitor == AIO_MONITOR_AUTO && !c->in_memory ? G_N_ELEMENTS(places) : 1); p++) {
        Run *run = g_new0(Run, 1);
        g_autofree char *path = NULL;

        run->c = c;
        run->cfg = (EnvConfig){kind, monitor, places[p].dir, places[p].fs, places[p].direct, registered};
        path = g_strdup_printf("/engine/%s%s/%s/%s/%s", engine_name(kind), registered ? "-registered" : "",
                               aio_monitor_name(monitor), places[p].fs, c->name);
        g_test_add_data_func_full(path, run, run_case, g_free);
    }
}

static void add_table(const EngineCase *table, EngineKind kind, bool registered)
{
    for (const EngineCase *c = table; c->name; c++) {
        add_runs(c, kind, AIO_MONITOR_AUTO, registered);
        for (AioMonitor m = AIO_MONITOR_AUTO + 1; m < AIO_MONITOR__MAX && c->all_monitors; m++) {
            add_runs(c, kind, m, registered);
        }
    }
}

static void add_tables(EngineKind kind, bool registered)
{
    add_table(engine_cases_rw, kind, registered);
    add_table(engine_cases_many, kind, registered);
    add_table(engine_cases_fault, kind, registered);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (EngineKind kind = 0; kind < ENGINE_KINDS; kind++) {
        add_tables(kind, false);
    }
    add_table(engine_cases_uring, ENGINE_IO_URING, false);
    add_tables(ENGINE_IO_URING, true);
    add_table(engine_cases_uring, ENGINE_IO_URING, true);
    add_table(engine_cases_registered, ENGINE_IO_URING, true);
    return g_test_run();
}
