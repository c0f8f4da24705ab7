/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bottom halves, calls into other homes, submission sections, and what wake-ups cost. */
#include "loop-test.h"
#include "loop-thread.h"

#include "loop/context.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitizer = true;
#else
static const bool sanitizer = false;
#endif

typedef struct Order {
    GString *log;
    char c;
    AioBH *bh;
    AioContext *ctx;
} Order;

static void log_char(void *opaque)
{
    Order *o = opaque;

    g_string_append_c(o->log, o->c);
}

static void case_order(AioContext *ctx)
{
    g_autoptr(GString) log = g_string_new(NULL);
    Order a = {log, 'a'}, b = {log, 'b'}, c = {log, 'c'};

    aio_bh_schedule_oneshot(ctx, log_char, &a);
    aio_bh_schedule_oneshot(ctx, log_char, &b);
    aio_bh_schedule_oneshot(ctx, log_char, &c);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpstr(log->str, ==, "abc");
    g_assert_false(aio_poll(ctx, false));
}

static void case_twice_runs_once(AioContext *ctx)
{
    int n = 0;
    AioBH *bh = aio_bh_new(ctx, bump, &n);

    aio_bh_schedule(bh);
    aio_bh_schedule(bh);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(n, ==, 1);
    g_assert_false(aio_poll(ctx, false));
    aio_bh_schedule(bh);
    aio_bh_cancel(bh);
    g_assert_false(aio_poll(ctx, false));
    aio_bh_schedule(bh);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(n, ==, 2);
    aio_bh_schedule(bh);
    aio_bh_delete(bh);
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpint(n, ==, 2);
}

static void delete_self(void *opaque)
{
    Order *o = opaque;

    log_char(o);
    aio_bh_delete(o->bh);
}

static void case_delete_in_own_callback(AioContext *ctx)
{
    g_autoptr(GString) log = g_string_new(NULL);
    Order o = {.log = log, .c = 'x'};

    o.bh = aio_bh_new(ctx, delete_self, &o);
    aio_bh_schedule(o.bh);
    g_assert_true(aio_poll(ctx, true));
    g_assert_false(aio_poll(ctx, false));
    g_assert_cmpstr(log->str, ==, "x");
}

static void delete_other(void *opaque)
{
    Order *o = opaque;

    log_char(o);
    aio_bh_delete(o->bh);
}

static void case_delete_in_others_callback(AioContext *ctx)
{
    g_autoptr(GString) log = g_string_new(NULL);
    Order victim = {log, 'v'}, killer = {log, 'k'};
    AioBH *bh;

    killer.bh = aio_bh_new(ctx, log_char, &victim);
    bh = aio_bh_new(ctx, delete_other, &killer);
    aio_bh_schedule(bh);
    aio_bh_schedule(killer.bh);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpstr(log->str, ==, "k");
    aio_bh_delete(bh);
}

static void again(void *opaque)
{
    Order *o = opaque;

    log_char(o);
    if (o->log->len < 5) {
        aio_bh_schedule(o->bh);
    }
}

static void case_rescheduling_waits_for_next_pass(AioContext *ctx)
{
    g_autoptr(GString) log = g_string_new(NULL);
    Order o = {.log = log, .c = 'x'};

    o.bh = aio_bh_new(ctx, again, &o);
    aio_bh_schedule(o.bh);
    for (unsigned int i = 1; i <= 5; i++) {
        g_assert_true(aio_poll(ctx, true));
        g_assert_cmpuint(log->len, ==, i);
    }
    g_assert_false(aio_poll(ctx, false));
    aio_bh_delete(o.bh);
}

static void poll_nested(void *opaque)
{
    Order *o = opaque;

    g_string_append_c(o->log, '(');
    /* Those behind this one in the same pass must be reachable from here, or waiting for them would hang. */
    while (!strchr(o->log->str, 'z')) {
        aio_poll(o->ctx, true);
    }
    g_string_append_c(o->log, ')');
}

static void case_nested_poll_runs_the_rest(AioContext *ctx)
{
    g_autoptr(GString) log = g_string_new(NULL);
    Order n = {.log = log, .ctx = ctx}, y = {log, 'y'}, z = {log, 'z'};

    aio_bh_schedule_oneshot(ctx, poll_nested, &n);
    aio_bh_schedule_oneshot(ctx, log_char, &y);
    aio_bh_schedule_oneshot(ctx, poll_nested, &n);
    aio_bh_schedule_oneshot(ctx, log_char, &z);
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpstr(log->str, ==, "(y(z))");
    g_assert_false(aio_poll(ctx, false));
}

/* --- What a wake-up costs --- */

static void case_self_scheduled_writes_nothing(AioContext *ctx)
{
    AioStats *s = aio_context_stats(ctx);
    int n = 0;
    AioBH *bh = aio_bh_new(ctx, bump, &n);
    uint64_t waits;

    aio_poll(ctx, false);
    waits = aio_stat_get(&s->wait_calls);
    for (int i = 0; i < 10; i++) {
        aio_bh_schedule(bh);
        aio_poll(ctx, true);
    }
    aio_notify(ctx);
    aio_poll(ctx, true);
    g_assert_cmpint(n, ==, 10);
    g_assert_cmpuint(aio_stat_get(&s->notify_sent), ==, 0);
    g_assert_cmpuint(aio_stat_get(&s->notify_cleared), ==, 0);
    g_assert_cmpuint(aio_stat_get(&s->notify_saved), ==, 11);
    g_assert_cmpuint(aio_stat_get(&s->wait_calls), ==, waits);
    g_assert_cmpuint(aio_stat_get(&s->sleeps), ==, 0);
    aio_bh_delete(bh);
}

static void forbid_system_calls(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog prog = {.len = G_N_ELEMENTS(code), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
        _exit(77);
    }
}

static void self_scheduled_child(gconstpointer monitor)
{
    AioContext *ctx = loop_test_context(GPOINTER_TO_INT(monitor));
    int n = 0;
    AioBH *bh;

    if (!ctx) {
        _exit(77);
    }
    bh = aio_bh_new(ctx, bump, &n);
    aio_bh_schedule_oneshot(ctx, bump, &n);
    aio_poll(ctx, true);
    aio_poll(ctx, false);
    forbid_system_calls();
    /* The kernel kills the process at the first call. */
    for (int i = 0; i < 5; i++) {
        aio_bh_schedule(bh);
        aio_bh_schedule_oneshot(ctx, bump, &n);
        aio_poll(ctx, true);
    }
    _exit(n == 11 ? 0 : 1);
}

static void test_self_scheduled_makes_no_call(gconstpointer monitor)
{
    int status;
    pid_t pid;

    if (sanitizer) {
        g_test_skip("the sanitizer's runtime makes system calls of its own");
        return;
    }
    pid = fork();
    if (pid == 0) {
        self_scheduled_child(monitor);
    }
    g_assert_cmpint(waitpid(pid, &status, 0), ==, pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        g_test_skip("no such monitor, or no seccomp filters here");
        return;
    }
    g_assert_cmphex((unsigned int)status, ==, 0);
}

static void bump_atomic(void *opaque)
{
    atomic_fetch_add((_Atomic int *)opaque, 1);
}

static void case_wake_is_one_write(AioContext *ctx)
{
    AioContextConfig cfg = {.name = "peer", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    LoopThread *t = loop_thread_new(&cfg);
    AioStats *s = aio_context_stats(t->ctx);
    _Atomic int n = 0;

    for (int i = 1; i <= 200; i++) {
        uint64_t sent = aio_stat_get(&s->notify_sent);

        aio_bh_schedule_oneshot(t->ctx, bump_atomic, &n);
        while (atomic_load(&n) < i) {
            sched_yield();
        }
        g_assert_cmpuint(aio_stat_get(&s->notify_sent) - sent, <=, 1);
    }
    g_assert_cmpuint(aio_stat_get(&s->notify_cleared), <=, aio_stat_get(&s->notify_sent));
    loop_thread_free(t);
}

static uint64_t context_switches(pid_t tid)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/status", tid);
    g_autofree char *text = NULL;
    const char *p;

    if (!g_file_get_contents(path, &text, NULL, NULL) || !(p = strstr(text, "\nvoluntary_ctxt_switches:"))) {
        return 0;
    }
    return g_ascii_strtoull(p + strlen("\nvoluntary_ctxt_switches:"), NULL, 10);
}

static void get_tid(void *opaque)
{
    *(pid_t *)opaque = (pid_t)syscall(SYS_gettid);
}

static void case_idle_makes_no_call(AioContext *ctx)
{
    AioContextConfig cfg = {.name = "idle", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    AioPollParams p = {32768, 2, 2, 3};
    LoopThread *t = loop_thread_new(&cfg);
    AioStats *s = aio_context_stats(t->ctx);
    uint64_t before, after, waits;
    pid_t tid = 0;

    aio_context_set_poll_params(t->ctx, &p);
    aio_run_in_home(t->ctx, get_tid, &tid);
    do { /* until it sleeps */
        before = context_switches(tid);
        waits = aio_stat_get(&s->wait_calls);
        g_usleep(20000);
    } while (context_switches(tid) != before);
    g_usleep(200000);
    after = context_switches(tid);
    g_assert_cmpuint(after, ==, before);
    g_assert_cmpuint(aio_stat_get(&s->wait_calls), ==, waits);
    loop_thread_free(t);
}

/* --- Other homes --- */

static void note_context(void *opaque)
{
    *(AioContext **)opaque = aio_context_current();
}

static void case_run_in_home(AioContext *ctx)
{
    AioContextConfig cfg = {.name = "peer", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    LoopThread *t = loop_thread_new(&cfg);
    AioContext *ran_in = NULL;

    for (int i = 0; i < 100; i++) {
        ran_in = NULL;
        aio_run_in_home(t->ctx, note_context, &ran_in);
        g_assert_true(ran_in == t->ctx);
    }
    aio_run_in_home(ctx, note_context, &ran_in);
    g_assert_true(ran_in == ctx);
    loop_thread_free(t);
}

static void call_back(void *opaque)
{
    AioContext **pair = opaque;

    /* Its home polls while it waits for us, so it can serve this. */
    aio_run_in_home(pair[0], note_context, &pair[1]);
}

static void case_run_in_home_both_ways(AioContext *ctx)
{
    AioContextConfig cfg = {.name = "peer", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    LoopThread *t = loop_thread_new(&cfg);
    AioContext *pair[2] = {ctx, NULL};

    aio_run_in_home(t->ctx, call_back, pair);
    g_assert_true(pair[1] == ctx);
    loop_thread_free(t);
}

typedef struct Waited {
    _Atomic bool done;
} Waited;

static void finish(void *opaque)
{
    Waited *w = opaque;

    atomic_store(&w->done, true);
    aio_wait_kick();
}

static void case_wait_while(AioContext *ctx)
{
    AioContextConfig cfg = {.name = "peer", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    LoopThread *t = loop_thread_new(&cfg);
    uint64_t sent;

    for (int i = 0; i < 300; i++) {
        Waited w = {false};

        aio_bh_schedule_oneshot(t->ctx, finish, &w);
        AIO_WAIT_WHILE(!atomic_load(&w.done));
    }
    sent = aio_stat_get(&aio_context_stats(ctx)->notify_sent);
    aio_wait_kick();
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(ctx)->notify_sent), ==, sent);
    loop_thread_free(t);
}

static void case_delete_from_other_thread(AioContext *ctx)
{
    AioContextConfig cfg = {.name = "peer", .monitor = aio_context_monitor(ctx), .uring_flags = AIO_URING_AUTO};
    LoopThread *t = loop_thread_new(&cfg);
    int n = 0;

    for (int i = 0; i < 200; i++) {
        AioBH *bh = aio_bh_new(t->ctx, bump, &n);

        if (i % 3) {
            aio_bh_schedule(bh);
        }
        if (i % 2) {
            aio_run_in_home(t->ctx, note_context, &(AioContext *){NULL});
        }
        aio_bh_delete(bh);
    }
    loop_thread_free(t);
    g_assert_cmpint(n, <=, 200);
}

/* --- Sources --- */

typedef struct TestSource {
    AioSource src;
    int flushed, reaped, destroyed, ready, params;
} TestSource;

static void source_flush(AioSource *src)
{
    container_of(src, TestSource, src)->flushed++;
    src->pending = false;
}

static bool source_ready(AioSource *src)
{
    return container_of(src, TestSource, src)->ready > 0;
}

static unsigned int source_reap(AioSource *src)
{
    TestSource *s = container_of(src, TestSource, src);
    int n = s->ready;

    s->ready = 0;
    s->reaped += n;
    return (unsigned int)n;
}

static bool source_busy(AioSource *src)
{
    TestSource *s = container_of(src, TestSource, src);

    /* Completes when it is asked. */
    s->ready += s->params == 2;
    return s->params == 2 && s->reaped < 5;
}

static void source_params(AioSource *src)
{
    container_of(src, TestSource, src)->params++;
}

static void source_destroy(AioSource *src)
{
    container_of(src, TestSource, src)->destroyed++;
}

static const AioSourceOps source_ops = {
    .name = "test",
    .flush = source_flush,
    .ready = source_ready,
    .reap = source_reap,
    .busy = source_busy,
    .params_changed = source_params,
    .destroy = source_destroy,
};

static void mark_pending(void *opaque)
{
    TestSource *s = opaque;

    g_assert_true(aio_plugged(s->src.ctx));
    s->src.pending = true;
}

static void case_source(AioContext *ctx)
{
    TestSource s = {.src.ops = &source_ops};

    aio_source_attach(ctx, AIO_SLOT_TEST, &s.src);
    g_assert_true(aio_source_get(ctx, AIO_SLOT_TEST) == &s.src);
    aio_plug(ctx);
    aio_plug(ctx);
    s.src.pending = true;
    aio_unplug(ctx);
    g_assert_cmpint(s.flushed, ==, 0);
    aio_unplug(ctx);
    g_assert_cmpint(s.flushed, ==, 1);
    aio_plug(ctx);
    aio_unplug(ctx);
    g_assert_cmpint(s.flushed, ==, 1);
    /* A pass flushes whoever is plugged, as it may wait for it. */
    aio_plug(ctx);
    s.src.pending = true;
    aio_poll(ctx, false);
    g_assert_cmpint(s.flushed, ==, 2);
    aio_unplug(ctx);
    /* All callbacks of a pass are one section. */
    aio_bh_schedule_oneshot(ctx, mark_pending, &s);
    aio_bh_schedule_oneshot(ctx, mark_pending, &s);
    aio_poll(ctx, false);
    g_assert_cmpint(s.flushed, ==, 3);
    s.ready = 2;
    g_assert_true(aio_poll(ctx, true));
    g_assert_cmpint(s.reaped, ==, 2);
    aio_context_set_thread_pool(ctx, 1, 2);
    aio_context_set_thread_pool(ctx, 2, 5);
    aio_poll(ctx, true);
    g_assert_cmpint(s.params, ==, 2);
    loop_test_free(ctx);
    g_assert_cmpint(s.reaped, >=, 5);
    g_assert_cmpint(s.destroyed, ==, 1);
}

static void test_batch_histogram(void)
{
    AioStats *s = g_aligned_alloc0(1, sizeof(*s), 64);
    static const uint64_t batches[] = {1, 2, 3, 4, 7, 8, 32, 33, 1024, 1 << 20};
    static const struct {
        unsigned int bucket, count;
    } expected[] = {{0, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 0}, {5, 2}, {10, 1}, {15, 1}};

    for (unsigned int i = 0; i < G_N_ELEMENTS(batches); i++) {
        aio_stat_batch(s, batches[i]);
    }
    g_assert_cmpuint(aio_stat_get(&s->submit_calls), ==, G_N_ELEMENTS(batches));
    g_assert_cmpuint(aio_stat_get(&s->batch_max), ==, 1 << 20);
    for (unsigned int i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpuint(aio_stat_get(&s->batch_histogram[expected[i].bucket]), ==, expected[i].count);
    }
    g_aligned_free(s);
}

static const LoopCaseEntry cases[] = {
    {"bh/order-is-kept", case_order},
    {"bh/scheduled-twice-runs-once", case_twice_runs_once},
    {"bh/delete-in-own-callback", case_delete_in_own_callback},
    {"bh/delete-in-others-callback", case_delete_in_others_callback},
    {"bh/delete-from-other-thread", case_delete_from_other_thread},
    {"bh/rescheduling-waits-for-next-pass", case_rescheduling_waits_for_next_pass},
    {"bh/nested-poll-runs-the-rest", case_nested_poll_runs_the_rest},
    {"notify/self-scheduled-writes-nothing", case_self_scheduled_writes_nothing},
    {"notify/one-write-at-most-a-wake-up", case_wake_is_one_write},
    {"idle/makes-no-system-call", case_idle_makes_no_call},
    {"home/call-runs-there", case_run_in_home},
    {"home/calls-cross", case_run_in_home_both_ways},
    {"home/wait-while-is-kicked", case_wait_while},
    {"source/sections-flush-and-reap", case_source},
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (int m = AIO_MONITOR_POLL; m < AIO_MONITOR__MAX; m++) {
        g_autofree char *path =
            g_strdup_printf("/loop/%s/notify/self-scheduled-makes-no-system-call", aio_monitor_name(m));

        g_test_add_data_func(path, GINT_TO_POINTER(m), test_self_scheduled_makes_no_call);
    }
    g_test_add_func("/loop/stats/batch-histogram", test_batch_histogram);
    loop_test_add(cases, G_N_ELEMENTS(cases));
    return g_test_run();
}
