/* SPDX-License-Identifier: GPL-2.0-or-later */
/* loop-bench: what the event loop costs an operation, for each monitor, beside bare system calls that do the same. */
#include "loop/aio.h"
#include "loop/coroutine.h"
#include "loop/event-notifier.h"
#include "loop/timer.h"
#include "unit/loop-thread.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_HANDLERS 1000

typedef struct Run {
    AioContext *ctx; /* NULL: a bare measurement */
    AioMonitor monitor;
    int64_t duration_ns;
    unsigned int handlers;
    uint64_t ops;
    double seconds;
    uint64_t calls; /* system calls of the loop */
} Run;

typedef struct Workload {
    const char *name;
    void (*fn)(Run *r);
    void (*bare)(Run *r); /* the same work without a loop; NULL: compared with the first monitor */
    const char *bare_name;
    unsigned int handlers;
} Workload;

/* Call @step until time is over, looking at the clock now and then. */
static void measure(Run *r, void (*step)(void *), void *opaque)
{
    int64_t start = aio_now_ns(), now;

    r->ops = 0;
    do {
        for (int i = 0; i < 64; i++) {
            step(opaque);
        }
        r->ops += 64;
        now = aio_now_ns();
    } while (now - start < r->duration_ns);
    r->seconds = (double)(now - start) / 1e9;
}

static void nothing(void *opaque)
{
}

/* --- Bottom half --- */

static void step_bh(void *opaque)
{
    AioBH *bh = opaque;

    aio_bh_schedule(bh);
    aio_poll(aio_context_current(), true);
}

static void run_bh(Run *r)
{
    AioBH *bh = aio_bh_new(r->ctx, nothing, NULL);

    measure(r, step_bh, bh);
    aio_bh_delete(bh);
}

static void step_oneshot(void *opaque)
{
    aio_bh_schedule_oneshot(opaque, nothing, NULL);
    aio_poll(opaque, true);
}

static void run_oneshot(Run *r)
{
    measure(r, step_oneshot, r->ctx);
}

/* --- Timer --- */

static void step_timer(void *opaque)
{
    aio_timer_mod_ns(opaque, 0);
    aio_poll(aio_context_current(), true);
}

static void run_timer(Run *r)
{
    AioTimer t;

    aio_timer_init(&t, r->ctx, CLOCK_TYPE_REALTIME, nothing, NULL);
    measure(r, step_timer, &t);
    aio_timer_del(&t);
}

/* --- Descriptor --- */

typedef struct FdBench {
    EventNotifier e[MAX_HANDLERS];
    unsigned int n, next, seen;
    int epfd;
} FdBench;

static void fd_open(FdBench *b, unsigned int n)
{
    *b = (FdBench){.n = n};
    for (unsigned int i = 0; i < n; i++) {
        if (event_notifier_init(&b->e[i])) {
            perror("loop-bench: eventfd");
            exit(1);
        }
    }
}

static void fd_close(FdBench *b)
{
    for (unsigned int i = 0; i < b->n; i++) {
        event_notifier_cleanup(&b->e[i]);
    }
}

static FdBench *fd_bench;

static void fd_ready(void *opaque)
{
    fd_bench->seen += event_notifier_test_and_clear(opaque);
}

static void step_fd(void *opaque)
{
    FdBench *b = opaque;
    unsigned int seen = b->seen;

    event_notifier_set(&b->e[b->next]);
    b->next = (b->next + 1) % b->n;
    while (b->seen == seen) {
        aio_poll(aio_context_current(), true);
    }
}

static void run_fd(Run *r)
{
    static FdBench b;

    fd_open(&b, r->handlers);
    fd_bench = &b;
    for (unsigned int i = 0; i < b.n; i++) {
        aio_set_fd_handler(r->ctx, b.e[i].fd, fd_ready, NULL, NULL, NULL, &b.e[i]);
    }
    aio_poll(r->ctx, false);
    measure(r, step_fd, &b);
    for (unsigned int i = 0; i < b.n; i++) {
        aio_set_fd_handler(r->ctx, b.e[i].fd, NULL, NULL, NULL, NULL, NULL);
    }
    fd_close(&b);
}

static void step_bare_epoll(void *opaque)
{
    FdBench *b = opaque;
    struct epoll_event ev[16];
    int n;

    event_notifier_set(&b->e[b->next]);
    b->next = (b->next + 1) % b->n;
    n = epoll_wait(b->epfd, ev, G_N_ELEMENTS(ev), -1);
    for (int i = 0; i < n; i++) {
        event_notifier_test_and_clear(ev[i].data.ptr);
    }
}

static void bare_epoll(Run *r)
{
    static FdBench b;

    fd_open(&b, r->handlers);
    b.epfd = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned int i = 0; i < b.n; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &b.e[i]};

        epoll_ctl(b.epfd, EPOLL_CTL_ADD, b.e[i].fd, &ev);
    }
    measure(r, step_bare_epoll, &b);
    close(b.epfd);
    fd_close(&b);
}

/* --- From thread to thread and back --- */

typedef struct Pong {
    AioContext *a, *b;
    unsigned int back;
} Pong;

static void pong_back(void *opaque)
{
    ((Pong *)opaque)->back++;
}

static void pong(void *opaque)
{
    aio_bh_schedule_oneshot(((Pong *)opaque)->a, pong_back, opaque);
}

static void step_pong(void *opaque)
{
    Pong *p = opaque;
    unsigned int back = p->back;

    aio_bh_schedule_oneshot(p->b, pong, p);
    while (p->back == back) {
        aio_poll(p->a, true);
    }
}

static void run_pong_with(Run *r, int64_t max_ns)
{
    AioContextConfig cfg = {.name = "peer", .monitor = r->monitor, .uring_flags = AIO_URING_AUTO};
    AioPollParams params = {.max_ns = max_ns};
    LoopThread *t = loop_thread_new(&cfg);
    Pong p = {.a = r->ctx, .b = t->ctx};

    aio_context_set_poll_params(p.a, &params);
    aio_context_set_poll_params(p.b, &params);
    measure(r, step_pong, &p);
    params.max_ns = 0;
    aio_context_set_poll_params(p.a, &params);
    loop_thread_free(t);
}

static void run_pong(Run *r)
{
    run_pong_with(r, 0);
}

static void run_pong_polling(Run *r)
{
    run_pong_with(r, 32768);
}

typedef struct BarePong {
    int there[2], back[2];
} BarePong;

static void *bare_peer(void *opaque)
{
    BarePong *p = opaque;
    char c;

    while (read(p->there[0], &c, 1) == 1 && write(p->back[1], &c, 1) == 1) {
    }
    return NULL;
}

static void step_bare_pong(void *opaque)
{
    BarePong *p = opaque;
    char c = 0;

    if (write(p->there[1], &c, 1) != 1 || read(p->back[0], &c, 1) != 1) {
        abort();
    }
}

static void bare_pong(Run *r)
{
    BarePong p;
    pthread_t thread;

    if (pipe(p.there) || pipe(p.back) || pthread_create(&thread, NULL, bare_peer, &p)) {
        abort();
    }
    measure(r, step_bare_pong, &p);
    close(p.there[1]);
    pthread_join(thread, NULL);
    close(p.there[0]);
    close(p.back[0]);
    close(p.back[1]);
}

/* --- Coroutine --- */

static bool coroutine_end;

static void coroutine_fn yield_for_ever(void *opaque)
{
    while (!coroutine_end) {
        coroutine_yield();
    }
}

static void step_coroutine(void *opaque)
{
    coroutine_enter(opaque);
}

static void run_coroutine(Run *r)
{
    Coroutine *co = coroutine_create(yield_for_ever, NULL);

    coroutine_end = false;
    measure(r, step_coroutine, co);
    coroutine_end = true;
    coroutine_enter(co);
}

static const Workload workloads[] = {
    {"bottom half", run_bh},
    {"one-shot bottom half", run_oneshot},
    {"timer", run_timer},
    {"fd event, 1 handler", run_fd, bare_epoll, "bare epoll", 1},
    {"fd event, 10 handlers", run_fd, bare_epoll, "bare epoll", 10},
    {"fd event, 1000 handlers", run_fd, bare_epoll, "bare epoll", 1000},
    {"cross-thread ping-pong", run_pong, bare_pong, "bare pipes"},
    {"cross-thread ping-pong, polling", run_pong_polling, bare_pong, "bare pipes"},
    {"coroutine enter and yield", run_coroutine},
};

/* --- Rounds and reports --- */

enum { BARE = AIO_MONITOR_AUTO, COLUMNS = AIO_MONITOR__MAX }; /* a column for bare, and one for each monitor */

static bool run_one(const Workload *w, int column, int64_t duration_ns, Run *r)
{
    AioContextConfig cfg = {.name = "bench", .monitor = (AioMonitor)column, .uring_flags = AIO_URING_AUTO};
    AioStats *s;

    *r = (Run){.monitor = (AioMonitor)column, .duration_ns = duration_ns, .handlers = w->handlers};
    if (column == BARE) {
        if (w->bare) {
            w->bare(r);
        }
        return w->bare;
    }
    r->ctx = aio_context_new(&cfg, NULL);
    if (!r->ctx) {
        return false;
    }
    w->fn(r);
    s = aio_context_stats(r->ctx);
    r->calls = aio_stat_get(&s->wait_calls) + aio_stat_get(&s->control_calls) + aio_stat_get(&s->notify_cleared) +
               aio_stat_get(&s->notify_sent);
    aio_context_shutdown(r->ctx);
    aio_context_unref(r->ctx);
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Ratios are taken within each round, so that the machine's moods meet both sides. */
static void bench(const Workload *w, int rounds, int64_t duration_ns, json_t *results)
{
    g_autofree double *ns = g_new0(double, (size_t)COLUMNS * rounds);
    g_autofree double *ratios = g_new0(double, rounds), *times = g_new0(double, rounds);
    double calls[COLUMNS] = {0};
    bool have[COLUMNS] = {false};
    int ref = BARE;

    for (int k = 0; k < rounds; k++) {
        for (int c = 0; c < COLUMNS; c++) {
            Run r;

            have[c] = run_one(w, c, duration_ns, &r);
            if (have[c]) {
                ns[c * rounds + k] = r.seconds * 1e9 / (double)r.ops;
                calls[c] = (double)r.calls / (double)r.ops;
            }
        }
    }
    while (!have[ref]) {
        ref++;
    }
    for (int c = 0; c < COLUMNS; c++) {
        const char *name = c == BARE ? w->bare_name : aio_monitor_name((AioMonitor)c);
        const char *ref_name = ref == BARE ? w->bare_name : aio_monitor_name((AioMonitor)ref);
        double ratio;

        if (!have[c]) {
            continue;
        }
        for (int k = 0; k < rounds; k++) {
            times[k] = ns[c * rounds + k];
            ratios[k] = times[k] / ns[ref * rounds + k];
        }
        qsort(times, (size_t)rounds, sizeof(*times), by_value);
        qsort(ratios, (size_t)rounds, sizeof(*ratios), by_value);
        ratio = ratios[rounds / 2];
        printf("%-32s %-10s %9.1f ns  %5.2f of %s (%.2f..%.2f)  %.2f calls\n", w->name, name, times[rounds / 2], ratio,
               ref_name, ratios[0], ratios[rounds - 1], calls[c]);
        fflush(stdout);
        json_array_append_new(results, json_pack("{s:s, s:s, s:f, s:s, s:f, s:f, s:f, s:f}", "workload", w->name,
                                                 "monitor", name, "ns", times[rounds / 2], "reference", ref_name,
                                                 "ratio", ratio, "ratio-min", ratios[0], "ratio-max",
                                                 ratios[rounds - 1], "loop-calls", calls[c]));
    }
}

int main(int argc, char **argv)
{
    g_autofree char *json = NULL, *only = NULL;
    int rounds = 5, ms = 50;
    GOptionEntry entries[] = {
        {"rounds", 0, 0, G_OPTION_ARG_INT, &rounds, "interleaved rounds; medians are reported (5)", "N"},
        {"ms", 0, 0, G_OPTION_ARG_INT, &ms, "milliseconds for each measurement (50)", "N"},
        {"only", 0, 0, G_OPTION_ARG_STRING, &only, "workloads whose name contains this", "TEXT"},
        {"json", 0, 0, G_OPTION_ARG_FILENAME, &json, "write results there", "FILE"},
        {NULL},
    };
    g_autoptr(GOptionContext) options = g_option_context_new("- what the event loop costs an operation");
    g_autoptr(GError) err = NULL;
    json_t *results = json_array();
    struct rlimit lim;

    g_option_context_add_main_entries(options, entries, NULL);
    if (!g_option_context_parse(options, &argc, &argv, &err) || rounds < 1 || ms < 1) {
        fprintf(stderr, "loop-bench: %s\n", err ? err->message : "--rounds and --ms must be positive");
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &lim);
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_NOFILE, &lim);
    for (unsigned int i = 0; i < G_N_ELEMENTS(workloads); i++) {
        if (!only || strstr(workloads[i].name, only)) {
            bench(&workloads[i], rounds, ms * INT64_C(1000000), results);
        }
    }
    if (json && json_dump_file(results, json, JSON_INDENT(2))) {
        fprintf(stderr, "loop-bench: cannot write '%s'\n", json);
        return 1;
    }
    json_decref(results);
    return 0;
}
