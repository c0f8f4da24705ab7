/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a loop is asked to do while system calls fail. */
#include "unit/loop-scene.h"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

static void stalled(void *opaque)
{
    g_error("the loop does not go on");
}

static void *helper_main(void *opaque)
{
    Scene *s = opaque;
    AioContextState state;

    for (;;) {
        while (sem_wait(&s->go)) {
        }
        if (s->stop) {
            return NULL;
        }
        do {
            sched_yield();
            aio_context_state(s->ctx, &state);
        } while (state.phase != AIO_PHASE_WAIT);
        aio_bh_schedule_oneshot(s->ctx, bump, &s->sent);
    }
}

Scene *scene_new(const EnvConfig *cfg)
{
    Scene *s = g_new0(Scene, 1);

    fault_reset();
    s->env = env_new(cfg, 0);
    if (!s->env) {
        g_free(s);
        return NULL;
    }
    s->ctx = s->env->ctx;
    grow_file(s->env);
    aio_timer_init(&s->stall, s->ctx, CLOCK_TYPE_REALTIME, stalled, NULL);
    sem_init(&s->go, 0, 0);
    g_assert_cmpint(pthread_create(&s->helper, NULL, helper_main, s), ==, 0);
    return s;
}

void scene_free(Scene *s)
{
    fault_reset();
    s->stop = true;
    sem_post(&s->go);
    pthread_join(s->helper, NULL);
    sem_destroy(&s->go);
    env_free(s->env);
    g_free(s);
}

void close_and_notice(Scene *s, int fd, int peer)
{
    struct pollfd p = {.fd = peer};

    aio_set_fd_handler(s->ctx, fd, NULL, NULL, NULL, NULL, NULL);
    close(fd);
    /* The peer is not watched: the loop has to get there without being woken. */
    aio_timer_mod_ns(&s->stall, clock_get_ns(CLOCK_TYPE_REALTIME) + STALL_NS);
    while (poll(&p, 1, 0) == 0) {
        aio_poll(s->ctx, false);
    }
    aio_timer_del(&s->stall);
    g_assert_true(p.revents & (POLLHUP | POLLERR));
    close(peer);
}

/* Have the kernel watch everything again: while there is other work, not every pass looks at descriptors. */
static void look(Scene *s)
{
    for (int i = 0; i < 20; i++) {
        aio_poll(s->ctx, false);
    }
}

/* Descriptors: two directions, change of events, removal, reuse of the number. take_read() allows no report too many. */
static void use_descriptors(Scene *s)
{
    Pipe p = {.ctx = s->ctx};
    int fds[2], reads;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), ==, 0);
    p.r = fds[0];
    p.w = fds[1];
    watch_read(&p, take_read);
    pipe_put(&p);
    WAIT_UNTIL(s, p.reads);
    aio_set_fd_handler(s->ctx, p.r, take_read, count_write, NULL, NULL, &p);
    WAIT_UNTIL(s, p.writes);
    watch_read(&p, take_read);
    pipe_put(&p);
    reads = p.reads;
    WAIT_UNTIL(s, p.reads > reads);
    reads = p.writes;
    look(s);
    g_assert_cmpint(p.writes, ==, reads);
    close_and_notice(s, p.r, p.w);

    pipe_open(&p, s->ctx);
    watch_read(&p, take_read);
    pipe_put(&p);
    WAIT_UNTIL(s, p.reads);
    look(s);
    close_and_notice(s, p.r, p.w);
}

enum { REQUESTS = 8, REQUEST_BYTES = 8192 };

void use_all(Scene *s)
{
    static const EngineOp ops[REQUESTS] = {ENGINE_WRITE, ENGINE_READ,  ENGINE_WRITE,        ENGINE_FLUSH,
                                           ENGINE_READ,  ENGINE_WRITE, ENGINE_WRITE_ZEROES, ENGINE_READ};
    autofree uint8_t *buf = env_buffer(REQUESTS * REQUEST_BYTES);
    int sent = s->sent, due = 0;
    Req r[REQUESTS];
    AioTimer t;

    aio_timer_init(&t, s->ctx, CLOCK_TYPE_REALTIME, bump, &due);
    aio_timer_mod_ns(&t, clock_get_ns(CLOCK_TYPE_REALTIME) + 100000);
    aio_plug(s->ctx);
    for (int i = 0; i < REQUESTS; i++) {
        bool skip = s->without_workers && ops[i] == ENGINE_WRITE_ZEROES;

        req_init(&r[i], s->env, skip ? ENGINE_WRITE : ops[i], (uint64_t)i * REQUEST_BYTES, buf + i * REQUEST_BYTES,
                 REQUEST_BYTES);
        r[i].er.flags = i == 2 ? ENGINE_F_FUA : 0;
        req_submit(&r[i]);
    }
    aio_unplug(s->ctx);
    use_descriptors(s);
    sent += !s->without_helper;
    if (!s->without_helper) {
        sem_post(&s->go);
    }
    WAIT_UNTIL(s, s->sent == sent && due && !s->env->live);
    for (int i = 0; i < REQUESTS; i++) {
        g_assert_cmpint(r[i].ends, ==, 1);
        g_assert_cmpint(r[i].er.ret, ==, 0);
    }
}

void use_many(Scene *s)
{
    enum { MANY = 300 };
    g_autofree Pipe *p = g_new(Pipe, MANY);
    int fds[2], total = 0, sent = s->sent;

    for (int i = 0; i < MANY; i++) {
        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), ==, 0);
        p[i] = (Pipe){.ctx = s->ctx, .r = fds[0], .w = fds[1]};
        watch_read(&p[i], take_read);
    }
    if (!s->without_helper) {
        sem_post(&s->go);
        WAIT_UNTIL(s, s->sent > sent);
    }
    for (int i = 0; i < MANY; i++) {
        pipe_put(&p[i]);
    }
    WAIT_UNTIL(s, ({
                   total = 0;
                   for (int i = 0; i < MANY; i++) {
                       total += p[i].reads;
                   }
                   total == MANY;
               }));
    for (int i = 0; i < MANY; i++) {
        g_assert_cmpint(p[i].reads, ==, 1);
    }
    look(s);
    for (int i = 0; i < MANY; i++) {
        close_and_notice(s, p[i].r, p[i].w);
    }
}

void expect_calls(Scene *s, unsigned int most)
{
    uint64_t calls;
    AioTimer t;
    int due = 0;

    while (aio_poll(s->ctx, false)) {
    }
    calls = aio_stat_get(&aio_context_stats(s->ctx)->wait_calls);
    aio_timer_init(&t, s->ctx, CLOCK_TYPE_REALTIME, bump, &due);
    aio_timer_mod_ns(&t, clock_get_ns(CLOCK_TYPE_REALTIME) + 20000000);
    WAIT_UNTIL(s, due);
    g_assert_cmpuint(aio_stat_get(&aio_context_stats(s->ctx)->wait_calls) - calls, <=, most);
}

void expect_sleep(Scene *s)
{
    expect_calls(s, 50);
}
