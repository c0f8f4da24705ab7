/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cases of the io_uring engine alone: what it shares with its monitor, and registered memory and files. */
#include "unit/engine-cases.h"
#include "loop/kernel-queue-int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <string.h>

enum { PAGE = 4096 };

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

/* --- Who carries requests out on a file in memory --- */

enum { LONG = 256 * 1024 };

/* Kernel threads that work for the calling thread; they stay for a while when they have nothing to do. */
static unsigned int count_workers(void)
{
    g_autofree char *name = g_strdup_printf("iou-wrk-%d\n", gettid());
    DIR *tasks = opendir("/proc/self/task");
    unsigned int n = 0;
    struct dirent *d;

    while ((d = readdir(tasks))) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/comm", d->d_name), *comm = NULL;

        n += g_file_get_contents(path, &comm, NULL, NULL) && !strcmp(comm, name);
    }
    closedir(tasks);
    return n;
}

/* @n at once; the number of workers afterwards. */
static unsigned int workers_after(Env *env, EngineOp op, size_t bytes, unsigned int n)
{
    autofree uint8_t *buf = env_buffer(n * bytes);
    Req r[8];

    g_assert_cmpuint(n, <=, G_N_ELEMENTS(r));
    aio_plug(env->ctx);
    for (unsigned int i = 0; i < n; i++) {
        req_init(&r[i], env, op, i * bytes, buf + i * bytes, bytes);
        g_assert_true(req_submit(&r[i]));
    }
    aio_unplug(env->ctx);
    env_wait(env);
    for (unsigned int i = 0; i < n; i++) {
        g_assert_cmpint(r[i].er.ret, ==, 0);
    }
    return count_workers();
}

/* In a thread without a history. */
static void *submitter(void *opaque)
{
    Env *env = env_new(opaque, 0);

    g_assert_nonnull(env);
    g_assert_true(env->file.nonblock);
    grow_file(env);
    g_assert_cmpuint(workers_after(env, ENGINE_READ, PAGE, 8), ==, 0);
    g_assert_cmpuint(workers_after(env, ENGINE_WRITE, PAGE, 8), ==, 0);
    g_assert_cmpuint(workers_after(env, ENGINE_READ, LONG - PAGE, 4), ==, 0);
    g_assert_cmpuint(workers_after(env, ENGINE_WRITE, LONG, 1), ==, 0);
    g_assert_cmpuint(workers_after(env, ENGINE_READ, LONG, 2), >, 0);
    env_free(env);
    return NULL;
}

static void case_who_works(Env *env)
{
    pthread_t thread;

    if (!env->file.nonblock) {
        g_test_skip("files are not in memory there");
        return;
    }
    g_assert_cmpint(pthread_create(&thread, NULL, submitter, (void *)env->cfg), ==, 0);
    pthread_join(thread, NULL);
}

const EngineCase engine_cases_uring[] = {
    {"submit/no-worker-unless-long", case_who_works, .in_memory = true},
    {"submit/own-sqes-are-no-requests", case_own_sqes, .all_monitors = true},
    {NULL},
};

/* --- Registered memory and files --- */

typedef struct Counts {
    uint64_t buffers, files;
} Counts;

static Counts counts(const Env *env)
{
    const AioStats *s = aio_context_stats(env->ctx);

    return (Counts){aio_stat_get(&s->buffer_requests), aio_stat_get(&s->file_requests)};
}

/* Run @op; expect that it used a registered buffer or not, a registered file or not. */
static void expect(Env *env, EngineOp op, void *buf, size_t bytes, bool buffer, bool file)
{
    Counts before = counts(env), after;

    g_assert_cmpint(env_run(env, op, 0, buf, bytes, 0), ==, 0);
    after = counts(env);
    g_assert_cmpuint(after.buffers - before.buffers, ==, buffer);
    g_assert_cmpuint(after.files - before.files, ==, file);
}

static void set_registered(Env *env, unsigned int flags)
{
    g_assert_true(aio_context_set_uring_registered(env->ctx, flags, &error_abort));
    g_assert_cmphex(aio_context_uring_flags(env->ctx) & AIO_URING_REGISTERED, ==, flags);
}

static void case_counted(Env *env)
{
    autofree uint8_t *in = env_buffer(2 * PAGE);
    void *out = NULL;
    struct iovec iov[2] = {{in, PAGE}, {in + PAGE, PAGE}};
    Counts before, after;
    Req r;

    grow_file(env);
    g_assert_cmpint(posix_memalign(&out, PAGE, PAGE), ==, 0);
    memset(out, 1, PAGE);
    expect(env, ENGINE_WRITE, in, 2 * PAGE, true, true);
    expect(env, ENGINE_READ, in + PAGE, PAGE, true, true);
    expect(env, ENGINE_WRITE, out, PAGE, false, true);
    expect(env, ENGINE_READ, out, PAGE, false, true);
    expect(env, ENGINE_FLUSH, NULL, 0, false, true);
    before = counts(env);
    req_init_iov(&r, env, ENGINE_READ, 0, iov, 2);
    g_assert_cmpint(req_run(&r), ==, 0);
    after = counts(env);
    g_assert_cmpuint(after.buffers, ==, before.buffers);
    g_assert_cmpuint(after.files, ==, before.files + 1);
    free(out);
}

static void case_switched(Env *env)
{
    autofree uint8_t *buf = env_buffer(PAGE);

    grow_file(env);
    expect(env, ENGINE_READ, buf, PAGE, true, true);
    set_registered(env, AIO_URING_REGISTERED_FILES);
    expect(env, ENGINE_READ, buf, PAGE, false, true);
    set_registered(env, AIO_URING_REGISTERED_BUFFERS);
    expect(env, ENGINE_READ, buf, PAGE, true, false);
    set_registered(env, 0);
    expect(env, ENGINE_READ, buf, PAGE, false, false);
    set_registered(env, AIO_URING_REGISTERED);
    expect(env, ENGINE_READ, buf, PAGE, true, true);
}

/* Each page of the file holds its own pattern; reads of all of them, many at a time, while the switches turn. */
static void case_switched_in_flight(Env *env)
{
    enum { PAGES = 64, ROUNDS = 64 };
    autofree uint8_t *want = env_buffer(PAGES * PAGE), *buf = env_buffer(PAGES * PAGE);
    static Req r[PAGES];

    env_fill(want, PAGES * PAGE, 3);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, want, PAGES * PAGE, 0), ==, 0);
    for (unsigned int round = 0; round < ROUNDS; round++) {
        memset(buf, 0xee, PAGES * PAGE);
        for (int i = 0; i < PAGES; i++) {
            req_init(&r[i], env, ENGINE_READ, (uint64_t)i * PAGE, buf + i * PAGE, PAGE);
            req_submit(&r[i]);
            if (i % 16 == 0) {
                fault_partial(round % 3); /* some stay in the queue */
                aio_plug(env->ctx);
            } else if (i % 16 == 15) {
                aio_unplug(env->ctx);
                g_assert_true(aio_context_set_uring_registered(
                    env->ctx, ((round + (unsigned int)i / 16) % 4) * AIO_URING_REGISTERED_FILES, &error_abort));
            }
        }
        env_wait(env);
        g_assert_cmpmem(buf, PAGES * PAGE, want, PAGES * PAGE);
        for (int i = 0; i < PAGES; i++) {
            g_assert_cmpint(r[i].er.ret, ==, 0);
        }
    }
    fault_reset();
}

/* The descriptor stands for another file: what the ring has registered is the old one. */
static void case_file_changed(Env *env)
{
    g_autofree char *path = g_strdup_printf("%s/qemu-subset-engine-XXXXXX", env->cfg->dir);
    autofree uint8_t *buf = env_buffer(PAGE);
    int other = mkostemp(path, env->cfg->direct ? O_DIRECT : 0);

    unlink(path);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, PAGE, 0), ==, 0);
    g_assert_cmpint(dup3(other, env->file.fd, O_CLOEXEC), ==, env->file.fd);
    engine_file_changed(&env->file);
    /* It is empty. */
    expect(env, ENGINE_READ, buf, PAGE, true, true);
    g_assert_cmpint(buf[0], ==, 0);
    close(other);
}

/* The memory goes and comes, at the same address, with requests before and after. */
static void case_memory_changed(Env *env)
{
    enum { ROUNDS = 8 };
    autofree uint8_t *out = env_buffer(PAGE);
    void *p = NULL;

    g_assert_cmpint(posix_memalign(&p, PAGE, PAGE), ==, 0);
    for (unsigned int i = 0; i < ROUNDS; i++) {
        env_fill(out, PAGE, i);
        expect(env, ENGINE_WRITE, out, PAGE, true, true);
        expect(env, ENGINE_READ, p, PAGE, false, true);
        aio_memory_add(p, PAGE);
        memset(p, 0, PAGE);
        expect(env, ENGINE_READ, p, PAGE, true, true);
        g_assert_cmpmem(p, PAGE, out, PAGE);
        aio_memory_remove(p);
    }
    free(p);
}

/* A piece before those in use goes, so that their slots are others; what is in flight keeps its own. */
static void case_memory_changed_in_flight(Env *env)
{
    enum { PAGES = 64, ROUNDS = 16 };
    autofree uint8_t *want = env_buffer(PAGES * PAGE);
    void *first = NULL, *second = NULL;
    static Req r[PAGES];

    g_assert_cmpint(posix_memalign(&first, PAGE, PAGE), ==, 0);
    g_assert_cmpint(posix_memalign(&second, PAGE, PAGES * PAGE), ==, 0);
    env_fill(want, PAGES * PAGE, 3);
    g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, want, PAGES * PAGE, 0), ==, 0);
    for (unsigned int round = 0; round < ROUNDS; round++) {
        Counts before = counts(env), after;

        aio_memory_add(first, PAGE);
        aio_memory_add(second, PAGES * PAGE);
        memset(second, 0xee, PAGES * PAGE);
        for (int i = 0; i < PAGES; i++) {
            if (i == PAGES / 2) {
                aio_memory_remove(first);
            }
            req_init(&r[i], env, ENGINE_READ, (uint64_t)i * PAGE, (uint8_t *)second + i * PAGE, PAGE);
            req_submit(&r[i]);
        }
        env_wait(env);
        g_assert_cmpmem(second, PAGES * PAGE, want, PAGES * PAGE);
        after = counts(env);
        g_assert_cmpuint(after.buffers - before.buffers, >=, PAGES / 2);
        aio_memory_remove(second);
    }
    free(first);
    free(second);
}

typedef struct PipeReader {
    EngineFile file;
    int fds[2];
    Req r;
} PipeReader;

static void reader_submit(PipeReader *p, Env *env, void *buf)
{
    req_init(&p->r, env, ENGINE_READ, 0, buf, PAGE);
    p->r.er.file = &p->file;
    req_submit(&p->r);
    aio_poll(env->ctx, false);
}

/*
 * One of two readers of pipes always waits: there is no moment without requests that use a registered file. The memory,
 * which none of them uses any more, is let go nevertheless.
 */
static void case_switched_under_load(Env *env)
{
    enum { ROUNDS = 8 };
    autofree uint8_t *in = env_buffer(PAGE), *out = env_buffer(PAGE);
    unsigned int calls;
    PipeReader p[2];

    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(pipe(p[i].fds), ==, 0);
        p[i].file = env_other_file(env, p[i].fds[0]);
        engine_file_open(env->cfg->kind, &p[i].file);
    }
    reader_submit(&p[0], env, out);
    reader_submit(&p[1], env, out);
    calls = fault_count(FAULT_URING_TABLES);
    set_registered(env, AIO_URING_REGISTERED_FILES);
    for (unsigned int i = 0; i < ROUNDS; i++) {
        PipeReader *old = &p[i % 2];

        g_assert_cmpint(write(old->fds[1], in, PAGE), ==, PAGE);
        while (!old->r.ends) {
            aio_poll(env->ctx, true);
        }
        reader_submit(old, env, out);
    }
    g_assert_cmpuint(fault_count(FAULT_URING_TABLES), >, calls);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpint(write(p[i].fds[1], in, PAGE), ==, PAGE);
    }
    env_wait(env);
    for (int i = 0; i < 2; i++) {
        engine_file_close(&p[i].file);
        close(p[i].fds[0]);
        close(p[i].fds[1]);
    }
}

/* Whichever call the kernel refuses: requests do without, and all is well once it is asked again. */
static void case_refused(Env *env)
{
    static const int errs[] = {ENOMEM, EINVAL};
    autofree uint8_t *buf = env_buffer(PAGE);

    grow_file(env);
    for (size_t e = 0; e < G_N_ELEMENTS(errs); e++) {
        for (unsigned int nth = 0; nth < 6; nth++) {
            g_autoptr(Error) err = NULL;
            bool ok;

            set_registered(env, 0);
            fault_reset();
            fault_set(FAULT_URING_TABLES, nth, FAULT_ALWAYS, errs[e]);
            ok = aio_context_set_uring_registered(env->ctx, AIO_URING_REGISTERED, &err);
            g_assert_true(ok == !err);
            g_assert_cmpint(env_run(env, ENGINE_WRITE, 0, buf, PAGE, 0), ==, 0);
            g_assert_cmpint(env_run(env, ENGINE_READ, 0, buf, PAGE, 0), ==, 0);
            fault_reset();
            set_registered(env, AIO_URING_REGISTERED);
            engine_file_changed(&env->file);
            expect(env, ENGINE_READ, buf, PAGE, true, true);
        }
    }
}

const EngineCase engine_cases_registered[] = {
    {"registered/used-where-possible-and-counted", case_counted, .all_monitors = true},
    {"registered/switched-at-run-time", case_switched, .all_monitors = true},
    {"registered/switched-with-requests-in-flight", case_switched_in_flight, .all_monitors = true},
    {"registered/switched-while-requests-keep-coming", case_switched_under_load, .all_monitors = true},
    {"registered/file-behind-descriptor-changes", case_file_changed},
    {"registered/memory-changes", case_memory_changed},
    {"registered/memory-changes-with-requests-in-flight", case_memory_changed_in_flight, .all_monitors = true},
    {"registered/refused-by-the-kernel", case_refused},
    {NULL},
};
