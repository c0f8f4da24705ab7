/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls of the event loop that fail: each kind, each place, under every monitor and with every engine. */
#include "unit/loop-scene.h"

#include <errno.h>
#include <poll.h>

/* --- Each call, each errno that its manual allows, each place --- */

enum { ERRNOS = 4 };

typedef struct Kind {
    const char *name;
    FaultCall call;
    int errs[ERRNOS];
    /* Who makes the call: bits of AioMonitor and EngineKind; 0: any. */
    unsigned int monitors, engines;
    bool at_times;    /* whether it is made is a matter of speed */
    bool threads;     /* it has to do with other threads */
    bool descriptors; /* it is made for descriptors */
    bool once;        /* a scene makes it no second time */
} Kind;

#define M(name) (1u << AIO_MONITOR_##name)
#define E(name) (1u << ENGINE_##name)

static const Kind kinds[] = {
    {"ppoll", FAULT_PPOLL, {EINTR, ENOMEM}, M(POLL), .threads = true},
    {"epoll_ctl", FAULT_EPOLL_CTL, {ENOMEM, ENOSPC}, M(EPOLL), .descriptors = true},
    {"epoll_wait", FAULT_EPOLL_WAIT, {EINTR}, M(EPOLL), .threads = true},
    {"eventfd-write", FAULT_EVENTFD_WRITE, {EINTR, EAGAIN}, .at_times = true, .threads = true},
    {"eventfd-read", FAULT_EVENTFD_READ, {EINTR, EAGAIN}, M(POLL) | M(LINUX_AIO), .at_times = true, .threads = true},
    {"io_submit", FAULT_IO_SUBMIT, {EAGAIN, EINTR, ENOMEM, EBUSY}, M(LINUX_AIO), E(NATIVE), .descriptors = true},
    {"io_cancel", FAULT_IO_CANCEL, {EAGAIN}, M(LINUX_AIO), .descriptors = true},
    {"io_getevents", FAULT_IO_GETEVENTS, {EINTR}, M(LINUX_AIO), .threads = true},
    {"io_uring_enter-submit", FAULT_URING_SUBMIT, {EAGAIN, EINTR, ENOMEM, EBUSY}, M(IO_URING), E(IO_URING),
     .descriptors = true},
    {"io_uring_enter-wait", FAULT_URING_WAIT, {EAGAIN, EINTR, ENOMEM, EBUSY}, M(IO_URING), .threads = true},
    {"poll-result", FAULT_RESULT_POLL, {ENOMEM, ECANCELED}, M(IO_URING), .descriptors = true},
    {"futex", FAULT_FUTEX_WAIT, {EINTR, EAGAIN}, .at_times = true, .threads = true},
    {"pthread_create", FAULT_THREAD, {EAGAIN}, .once = true, .threads = true},
    {"preadv2", FAULT_PREADV2, {EINTR, EAGAIN}, 0, E(THREADS), .threads = true},
    {"pwritev2", FAULT_PWRITEV2, {EINTR, EAGAIN}, 0, E(THREADS)},
    {"fdatasync", FAULT_FDATASYNC, {EINTR}, 0, E(THREADS)},
    {"fallocate", FAULT_FALLOCATE, {EINTR}, .threads = true},
    /* Where there are more descriptors than Linux AIO has places for. */
    {"epoll_create1", FAULT_EPOLL_CREATE, {EMFILE, ENOMEM}, .once = true, .descriptors = true},
    {"rest-epoll_ctl", FAULT_EPOLL_CTL, {ENOMEM, ENOSPC}, .descriptors = true},
    {"rest-epoll_wait", FAULT_EPOLL_WAIT, {EINTR}, .descriptors = true},
};

/* What has to do with descriptors beyond the number that most loops watch. */
static bool is_rest(const Kind *k)
{
    return k >= &kinds[G_N_ELEMENTS(kinds) - 3];
}

static bool is_made(const Kind *k, const EnvConfig *cfg)
{
    if (is_rest(k)) {
        return cfg->monitor == AIO_MONITOR_LINUX_AIO;
    }
    return (!k->monitors && !k->engines) || (k->monitors >> cfg->monitor & 1) || (k->engines >> cfg->kind & 1);
}

/*
 * Run @use with the n-th call of @k failing, for every n; from the tenth on, for every @step-th. The last one is beyond the
 * calls that are made.
 */
static void fail_each(const EnvConfig *cfg, const Kind *k, void (*use)(Scene *), unsigned int step)
{
    static const unsigned int times[] = {1, 5};
    Scene *s = scene_new(cfg);

    for (int e = 0; e < ERRNOS && k->errs[e]; e++) {
        for (unsigned int t = 0; t < (e ? 1 : G_N_ELEMENTS(times)); t++) {
            unsigned int n = 0, failed = 0, calls;

            do {
                if (k->once && (n || t || e)) {
                    scene_free(s);
                    s = scene_new(cfg);
                }
                fault_reset();
                fault_set(k->call, n, times[t], k->errs[e]);
                s->without_helper = s->without_workers = !k->threads;
                use(s);
                calls = fault_count(k->call);
                failed += calls > n;
                n += n < 10 ? 1 : step;
            } while (calls >= n);
            g_assert_true(failed || k->at_times);
        }
    }
    scene_free(s);
}

static bool can_be_had(const EnvConfig *cfg)
{
    Scene *s = scene_new(cfg);

    if (s) {
        scene_free(s);
    }
    return s;
}

static void run_all(gconstpointer opaque)
{
    const EnvConfig *cfg = opaque;

    for (unsigned int i = 0; can_be_had(cfg) && i < G_N_ELEMENTS(kinds); i++) {
        if (is_made(&kinds[i], cfg) && !is_rest(&kinds[i])) {
            g_test_message("%s", kinds[i].name);
            fail_each(cfg, &kinds[i], use_all, 1);
        }
    }
}

static void run_many(gconstpointer opaque)
{
    const EnvConfig *cfg = opaque;

    for (unsigned int i = 0; can_be_had(cfg) && i < G_N_ELEMENTS(kinds); i++) {
        if (is_made(&kinds[i], cfg) && kinds[i].descriptors) {
            g_test_message("%s", kinds[i].name);
            fail_each(cfg, &kinds[i], use_many, 61);
        }
    }
}

/* Fewer are taken than were offered. */
static void run_partial(gconstpointer opaque)
{
    Scene *s = scene_new(opaque);

    for (unsigned int n = 1; s && n < 8; n++) {
        fault_reset();
        fault_partial(n);
        use_all(s);
        use_many(s);
    }
    if (s) {
        scene_free(s);
    }
}

/* --- A kernel that refuses everything for a while --- */

enum { BESIDES = 260 };

/* Watched descriptors beyond the places of Linux AIO, so that what comes next is in the epoll set. */
static Pipe *watch_besides(Scene *s)
{
    Pipe *p = g_new(Pipe, BESIDES);

    for (int i = 0; i < BESIDES; i++) {
        pipe_open(&p[i], s->ctx);
        watch_read(&p[i], take_read);
    }
    aio_poll(s->ctx, false);
    return p;
}

static void forget_besides(Scene *s, Pipe *p)
{
    for (int i = 0; i < BESIDES; i++) {
        close_and_notice(s, p[i].r, p[i].w);
    }
    g_free(p);
}

static void outage(Scene *s, const Kind *k, int err)
{
    /* What the ring does not take cannot be watched in any other way; what it took before is. */
    bool meanwhile = k->call != FAULT_URING_SUBMIT;
    Pipe kept, removed, closed, added;

    pipe_open(&kept, s->ctx);
    pipe_open(&removed, s->ctx);
    pipe_open(&closed, s->ctx);
    pipe_open(&added, s->ctx);
    watch_read(&kept, take_read);
    watch_read(&removed, take_read);
    watch_read(&closed, take_read);
    aio_poll(s->ctx, false);
    fault_set(k->call, 0, FAULT_ALWAYS, err);
    /* The descriptor stays open and readable: whatever the kernel still knows of it is nobody's business. */
    forget(&removed, removed.r);
    pipe_put(&removed);
    forget(&closed, closed.r);
    close(closed.r);
    watch_read(&added, take_read);
    pipe_put(&kept);
    pipe_put(&added);
    if (meanwhile) {
        WAIT_UNTIL(s, kept.reads && added.reads);
        pipe_put(&added);
        pipe_put(&kept);
        WAIT_UNTIL(s, kept.reads == 2 && added.reads == 2);
    } else {
        WAIT_UNTIL(s, kept.reads);
        expect_sleep(s);
    }
    fault_reset();
    WAIT_UNTIL(s, kept.reads && added.reads);
    expect_sleep(s);
    g_assert_cmpint(removed.reads, ==, 0);
    pipe_put(&added);
    WAIT_UNTIL(s, added.reads == (meanwhile ? 3 : 2));
    close(closed.w);
    pipe_close(&removed);
    close_and_notice(s, kept.r, kept.w);
    close_and_notice(s, added.r, added.w);
}

static void outage_with(const EnvConfig *cfg, const Kind *k, int err, bool besides)
{
    Scene *s = scene_new(cfg);
    Pipe *p = besides ? watch_besides(s) : NULL;

    outage(s, k, err);
    if (p) {
        forget_besides(s, p);
    }
    scene_free(s);
}

static void run_outage(gconstpointer opaque)
{
    const EnvConfig *cfg = opaque;

    for (unsigned int i = 0; can_be_had(cfg) && i < G_N_ELEMENTS(kinds); i++) {
        const Kind *k = &kinds[i];

        for (int e = 0; e < ERRNOS && k->errs[e] && is_made(k, cfg) && k->descriptors; e++) {
            if (k->errs[e] == EINTR) {
                continue; /* is nothing that lasts */
            }
            g_test_message("%s %s", k->name, g_strerror(k->errs[e]));
            outage_with(cfg, k, k->errs[e], true);
            if (!is_rest(k)) {
                outage_with(cfg, k, k->errs[e], false);
            }
        }
    }
}

/* The ring has as many places as there are descriptors, so that none is left for the notifier, and is not taken at first. */
static void run_full(gconstpointer opaque)
{
    enum { PLACES = 256, ALL = PLACES + 20 };
    g_autofree Pipe *p = g_new(Pipe, ALL);
    Scene *s = scene_new(opaque);

    if (!s) {
        return;
    }
    for (int i = 0; i < PLACES; i++) {
        pipe_open(&p[i], s->ctx);
        watch_read(&p[i], take_read);
    }
    fault_set(FAULT_URING_SUBMIT, 0, 1, EAGAIN);
    sem_post(&s->go);
    WAIT_UNTIL(s, s->sent);
    /* Nor a place for all who leave. */
    for (int i = PLACES; i < ALL; i++) {
        pipe_open(&p[i], s->ctx);
        watch_read(&p[i], take_read);
    }
    aio_poll(s->ctx, false);
    fault_set(FAULT_URING_SUBMIT, 0, FAULT_ALWAYS, EAGAIN);
    for (int i = 0; i < ALL; i++) {
        forget(&p[i], p[i].r);
        close(p[i].r);
    }
    close(p[0].w);
    pipe_open(&p[0], s->ctx);
    watch_read(&p[0], take_read);
    forget(&p[0], p[0].r);
    fault_reset();
    expect_sleep(s);
    pipe_close(&p[0]);
    for (int i = 1; i < ALL; i++) {
        struct pollfd peer = {.fd = p[i].w};

        g_assert_cmpint(poll(&peer, 1, 5000), ==, 1);
        close(p[i].w);
    }
    scene_free(s);
}

/* The ring does not take, or not wait, or neither: bottom halves and timers run, and the processor is free. */
static void run_refused(gconstpointer opaque)
{
    static const FaultCall calls[] = {FAULT_URING_SUBMIT, FAULT_URING_WAIT};
    Scene *s = scene_new(opaque);

    for (unsigned int i = 0; s && i < G_N_ELEMENTS(calls) + 1; i++) {
        Pipe p;

        aio_poll(s->ctx, false);
        pipe_open(&p, s->ctx);
        watch_read(&p, take_read);
        for (unsigned int k = 0; k < G_N_ELEMENTS(calls); k++) {
            if (k == i || i == G_N_ELEMENTS(calls)) {
                fault_set(calls[k], 0, FAULT_ALWAYS, ENOMEM);
            }
        }
        s->sent = 0;
        sem_post(&s->go);
        WAIT_UNTIL(s, s->sent);
        /* A thousand passes a second, with a few attempts each. */
        expect_calls(s, 100);
        fault_reset();
        pipe_put(&p);
        WAIT_UNTIL(s, p.reads);
        close_and_notice(s, p.r, p.w);
    }
    if (s) {
        scene_free(s);
    }
}

typedef struct Busy {
    AioBH *bh;
    Pipe seen, unseen;
} Busy;

static void busy(void *opaque)
{
    Busy *b = opaque;

    if (!b->seen.reads) {
        aio_bh_schedule(b->bh);
    }
}

/* It takes nothing while the loop always has work: what it has taken before arrives. */
static void run_refused_busy(gconstpointer opaque)
{
    Scene *s = scene_new(opaque);
    Busy b;

    if (!s) {
        return;
    }
    pipe_open(&b.seen, s->ctx);
    pipe_open(&b.unseen, s->ctx);
    watch_read(&b.seen, take_read);
    aio_poll(s->ctx, false);
    watch_read(&b.unseen, take_read);
    fault_set(FAULT_URING_SUBMIT, 0, FAULT_ALWAYS, ENOMEM);
    b.bh = aio_bh_new(s->ctx, busy, &b);
    aio_bh_schedule(b.bh);
    pipe_put(&b.seen);
    WAIT_UNTIL(s, b.seen.reads);
    aio_bh_delete(b.bh);
    fault_reset();
    close_and_notice(s, b.seen.r, b.seen.w);
    close_and_notice(s, b.unseen.r, b.unseen.w);
    scene_free(s);
}

/* A signal at the wrong moment does not keep a closed file open. */
static void run_close_interrupted(gconstpointer opaque)
{
    Scene *s = scene_new(opaque);
    struct pollfd peer;
    Pipe p;

    if (!s) {
        return;
    }
    pipe_open(&p, s->ctx);
    watch_read(&p, take_read);
    aio_poll(s->ctx, false);
    fault_set(FAULT_URING_SUBMIT, 0, 3, EINTR);
    forget(&p, p.r);
    close(p.r);
    peer.fd = p.w;
    peer.events = 0;
    /* No pass is made that could try again. */
    g_assert_cmpint(poll(&peer, 1, 5000), ==, 1);
    close(p.w);
    scene_free(s);
}

/* --- Making a context --- */

static const Kind setup_kinds[] = {
    {"eventfd", FAULT_EVENTFD, {EMFILE, ENOMEM}},
    {"epoll_create1", FAULT_EPOLL_CREATE, {EMFILE, ENOMEM}},
    {"epoll_ctl", FAULT_EPOLL_CTL, {ENOMEM, ENOSPC}},
    {"io_setup", FAULT_IO_SETUP, {EAGAIN, ENOMEM}},
    {"io_uring_setup", FAULT_URING_SETUP, {EMFILE, ENOMEM, EPERM, EINVAL}},
    {"mmap", FAULT_URING_MAP, {ENOMEM}},
    {"io_uring_register", FAULT_URING_REGISTER, {ENOMEM, EBUSY}},
    {"pthread_create", FAULT_THREAD, {EAGAIN}},
};

static unsigned int open_files(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned int n = 0;

    while (g_dir_read_name(dir)) {
        n++;
    }
    return n;
}

/* A context with an engine that works, or an error that says why not. */
static bool try_setup(const EnvConfig *cfg, const Kind *k)
{
    AioContextConfig ctx_cfg = {.name = "test", .monitor = cfg->monitor, .uring_flags = AIO_URING_AUTO};
    AioContext *ctx;
    g_autoptr(Error) err = NULL;
    bool works = false;

    ctx = aio_context_new(&ctx_cfg, &err);
    if (!ctx) {
        g_assert_nonnull(err);
        g_assert_null(aio_context_current());
        /* What can be replaced is replaced. */
        g_assert_true(cfg->monitor != AIO_MONITOR_AUTO || k->call == FAULT_EVENTFD);
        return false;
    }
    if (engine_attach(cfg->kind, ctx, &err)) {
        g_assert_nonnull(err);
    } else {
        EngineFile file = {
            .fd = open(cfg->dir, O_TMPFILE | O_RDWR, 0600), .writable = true, .request_align = 1, .memory_align = 1};
        Env env = {.cfg = cfg, .ctx = ctx, .file = file};
        char data[] = "data";
        Pipe p;

        g_assert_cmpint(file.fd, >=, 0);
        g_assert_cmpint(env_run(&env, ENGINE_WRITE, 0, data, 4, 0), ==, 0);
        pipe_open(&p, ctx);
        watch_read(&p, take_read);
        pipe_put(&p);
        while (!p.reads) {
            aio_poll(ctx, true);
        }
        forget(&p, p.r);
        pipe_close(&p);
        close(file.fd);
        works = true;
    }
    loop_test_free(ctx);
    return works;
}

static void run_setup(gconstpointer opaque)
{
    const EnvConfig *cfg = opaque;
    unsigned int files = open_files();
    static const Kind none = {0};

    fault_reset();
    if (!try_setup(cfg, &none)) {
        g_test_skip("it cannot be had here");
        return;
    }
    g_assert_cmpuint(open_files(), ==, files);
    for (unsigned int i = 0; i < G_N_ELEMENTS(setup_kinds); i++) {
        const Kind *k = &setup_kinds[i];

        for (int e = 0; e < ERRNOS && k->errs[e]; e++) {
            unsigned int n = 0;

            do {
                fault_reset();
                fault_set(k->call, n, 1, k->errs[e]);
                try_setup(cfg, k);
                g_assert_cmpuint(open_files(), ==, files);
                n++;
            } while (fault_count(k->call) > n);
            fault_reset();
            fault_set(k->call, 0, FAULT_ALWAYS, k->errs[e]);
            try_setup(cfg, k);
            g_assert_cmpuint(open_files(), ==, files);
        }
    }
    fault_reset();
}

/* A kernel AIO context of another size cannot be had: the old one stays. */
static void run_resize(gconstpointer opaque)
{
    Scene *s = scene_new(opaque);

    if (!s) {
        return;
    }
    for (unsigned int n = 0; n < 2; n++) {
        g_autoptr(Error) err = NULL;

        use_all(s);
        fault_set(FAULT_IO_SETUP, n, 1, EAGAIN);
        g_assert_cmpint(aio_context_set_max_events(s->ctx, 512, &err), ==,
                        n || !fault_count(FAULT_IO_SETUP) ? 0 : -EAGAIN);
        fault_reset();
        use_all(s);
    }
    scene_free(s);
}

/* --- Main --- */

static void add(const char *name, EngineKind kind, AioMonitor monitor, void (*fn)(gconstpointer))
{
    EnvConfig *cfg = g_new(EnvConfig, 1);
    g_autofree char *path =
        g_strdup_printf("/fault/%s/%s/%s", aio_monitor_name(monitor), engine_name(kind), name);

    *cfg = (EnvConfig){kind, monitor, "/dev/shm", "tmpfs", true};
    g_test_add_data_func_full(path, cfg, fn, g_free);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (AioMonitor m = AIO_MONITOR_AUTO; m < AIO_MONITOR__MAX; m++) {
        for (EngineKind kind = 0; kind < ENGINE_KINDS; kind++) {
            add("set-up", kind, m, run_setup);
            if (m == AIO_MONITOR_AUTO) {
                continue;
            }
            add("each-call-each-time", kind, m, run_all);
            add("partial-submit", kind, m, run_partial);
        }
        if (m != AIO_MONITOR_AUTO && m != AIO_MONITOR_POLL) {
            /* poll has nothing in the kernel */
            add("many-descriptors", ENGINE_THREADS, m, run_many);
            add("outage", ENGINE_THREADS, m, run_outage);
        }
        if (m != AIO_MONITOR_AUTO) {
            add("full", ENGINE_THREADS, m, run_full);
            add("close-interrupted", ENGINE_THREADS, m, run_close_interrupted);
            add("resize", ENGINE_NATIVE, m, run_resize);
        }
        if (m == AIO_MONITOR_IO_URING) {
            add("refused", ENGINE_THREADS, m, run_refused);
            add("refused-with-work", ENGINE_THREADS, m, run_refused_busy);
        }
    }
    return g_test_run();
}
