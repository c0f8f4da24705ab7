/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One engine, one file, and requests that are checked to end exactly once. */
#include "unit/engine-env.h"
#include "base/iov.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --- Memory: in runs with registered buffers it comes out of one piece, as far as that goes --- */

enum { ARENA_BYTES = 4 << 20 }; /* half of what a user may lock by default */

static uint8_t *arena; /* in use if a run is registered */
static size_t arena_used;
static unsigned int arena_users;

static void arena_open(void)
{
    void *p = NULL;

    g_assert_cmpint(posix_memalign(&p, 4096, ARENA_BYTES), ==, 0);
    arena = p;
    arena_used = arena_users = 0;
    aio_memory_add(arena, ARENA_BYTES);
}

static void arena_close(void)
{
    aio_memory_remove(arena);
    free(arena);
    arena = NULL;
}

void *env_buffer(size_t bytes)
{
    size_t need = (MAX(bytes, 1) + 4095) / 4096 * 4096;
    void *p = NULL;

    if (arena && need <= ARENA_BYTES - arena_used) {
        p = arena + arena_used;
        arena_used += need;
        arena_users++;
    } else {
        g_assert_cmpint(posix_memalign(&p, 4096, need), ==, 0);
    }
    memset(p, 0xee, bytes);
    return p;
}

void env_buffer_free(void *p)
{
    if (!arena || (uintptr_t)p - (uintptr_t)arena >= ARENA_BYTES) {
        free(p);
    } else if (--arena_users == 0) {
        arena_used = 0;
    }
}

/* --- The environment --- */

void env_set_fd(Env *env, int fd)
{
    env->file.fd = fd;
    engine_file_changed(&env->file);
}

EngineFile env_other_file(const Env *env, int fd)
{
    EngineFile other = env->file;

    other.fd = fd;
    other.nonblock = false;
    other.registration = (AioFile){0};
    return other;
}

/* False: the kernel does not let us, the test is skipped. */
static bool register_all(Env *env)
{
    unsigned int flags = aio_context_uring_flags(env->ctx) & AIO_URING_REGISTERED;

    if (flags != AIO_URING_REGISTERED) {
        g_test_skip("the kernel refuses to register memory or files");
        return false;
    }
    engine_file_open(env->cfg->kind, &env->file);
    return true;
}

Env *env_new(const EnvConfig *cfg, unsigned int max_events)
{
    AioContextConfig ctx_cfg = {
        .name = "test", .monitor = cfg->monitor, .max_events = max_events,
        .uring_flags = AIO_URING_AUTO | (cfg->registered ? AIO_URING_REGISTERED : 0)};
    g_autoptr(Error) err = NULL;
    Env *env = g_new0(Env, 1);

    env->cfg = cfg;
    env->path = g_strdup_printf("%s/qemu-subset-engine-XXXXXX", cfg->dir);
    env->file.fd = mkostemp(env->path, cfg->direct ? O_DIRECT : 0);
    if (env->file.fd < 0) {
        g_test_skip("the file cannot be made there");
        g_free(env->path);
        g_free(env);
        return NULL;
    }
    unlink(env->path); /* at once: some cases abort */
    env->file.writable = true;
    env->file.direct = cfg->direct;
    /* As the file driver has it by default. */
    env->file.nonblock = cfg->kind == ENGINE_IO_URING && engine_file_in_memory(env->file.fd);
    if (env->file.nonblock) {
        g_assert_cmpint(fcntl(env->file.fd, F_SETFL, fcntl(env->file.fd, F_GETFL) | O_NONBLOCK), ==, 0);
    }
    env->file.request_align = cfg->direct ? 4096 : 1;
    env->file.memory_align = cfg->direct ? 4096 : 1;
    if (cfg->registered) {
        arena_open();
    }
    env->ctx = aio_context_new(&ctx_cfg, &err);
    if (!env->ctx) {
        g_test_skip(error_get_pretty(err));
        env_free(env);
        return NULL;
    }
    if (engine_attach(cfg->kind, env->ctx, &err)) {
        g_test_skip(error_get_pretty(err));
        env_free(env);
        return NULL;
    }
    if (cfg->registered && !register_all(env)) {
        env_free(env);
        return NULL;
    }
    return env;
}

void env_free(Env *env)
{
    g_assert_cmpuint(env->live, ==, 0);
    engine_file_close(&env->file);
    if (env->ctx) {
        aio_context_shutdown(env->ctx);
        aio_context_unref(env->ctx);
    }
    close(env->file.fd);
    if (env->cfg->registered) {
        arena_close();
    }
    g_free(env->path);
    g_free(env);
}

static void req_done(EngineRequest *er, int ret)
{
    Req *r = container_of(er, Req, er);
    Env *env = r->env;

    g_assert_true(aio_context_in_home(env->ctx));
    g_assert_false(env->in_submit);
    g_assert_cmpuint(env->in_done, ==, 0);
    g_assert_cmpint(er->ret, ==, ret);
    g_assert_cmpint(ret, <=, 0);
    r->ends++;
    env->ended++;
    env->live--;
    if (r->after) {
        env->in_done++;
        r->after(r);
        env->in_done--;
    }
}

void req_init_iov(Req *r, Env *env, EngineOp op, uint64_t offset, const struct iovec *iov,
                  unsigned int niov)
{
    memset(r, 0, sizeof(*r));
    r->env = env;
    r->er.file = &env->file;
    r->er.op = (uint8_t)op;
    r->er.offset = offset;
    r->er.iov = iov;
    r->er.niov = niov;
    r->er.bytes = iov_size(iov, niov);
    r->er.done = req_done;
}

void req_init(Req *r, Env *env, EngineOp op, uint64_t offset, void *buf, size_t bytes)
{
    memset(r, 0, sizeof(*r));
    r->env = env;
    r->one = (struct iovec){buf, bytes};
    r->er.file = &env->file;
    r->er.op = (uint8_t)op;
    r->er.offset = offset;
    r->er.iov = &r->one;
    r->er.niov = 1;
    r->er.bytes = bytes;
    r->er.done = req_done;
}

bool req_submit(Req *r)
{
    Env *env = r->env;
    bool nested = env->in_submit;
    EngineResult res;

    g_assert_false(nested);
    env->in_submit = true;
    env->live++;
    res = engine_submit(env->cfg->kind, &r->er);
    env->in_submit = false;
    if (res == ENGINE_DONE) {
        env->live--;
        env->ended++;
        r->ends++;
        return false;
    }
    return true;
}

void env_wait(Env *env)
{
    while (env->live) {
        aio_poll(env->ctx, true);
    }
}

int req_run(Req *r)
{
    req_submit(r);
    env_wait(r->env);
    g_assert_cmpint(r->ends, ==, 1);
    return r->er.ret;
}

int env_run(Env *env, EngineOp op, uint64_t offset, void *buf, size_t bytes, unsigned int flags)
{
    Req r;

    req_init(&r, env, op, offset, buf, bytes);
    r.er.flags = (uint8_t)flags;
    return req_run(&r);
}

void env_fill(void *buf, size_t bytes, unsigned int seed)
{
    uint8_t *p = buf;

    for (size_t i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(i * 7 + i / 251 + seed);
    }
}
