/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Engines that a build lacks are refused by name; the one that is always there works. */
#include "engine/engine.h"

#include <errno.h>
#include <glib.h>

static AioContext *ctx;

static void expect_refusal(EngineKind kind, const char *text)
{
    g_autoptr(Error) attach = NULL;
    g_autoptr(Error) probe = NULL;

    g_assert_false(engine_built(kind));
    g_assert_cmpint(engine_attach(kind, ctx, &attach), ==, -ENOTSUP);
    g_assert_cmpstr(error_get_pretty(attach), ==, text);
    g_assert_cmpint(engine_probe(kind, &probe), ==, -ENOTSUP);
    g_assert_cmpstr(error_get_pretty(probe), ==, text);
}

static void test_native(void)
{
    g_assert_cmpstr(engine_name(ENGINE_NATIVE), ==, "native");
    expect_refusal(ENGINE_NATIVE, "aio=native was specified, but is not supported in this build.");
}

static void test_io_uring(void)
{
    g_assert_cmpstr(engine_name(ENGINE_IO_URING), ==, "io_uring");
    expect_refusal(ENGINE_IO_URING, "aio=io_uring was specified, but is not supported in this build.");
}

static void test_threads(void)
{
    g_assert_cmpstr(engine_name(ENGINE_THREADS), ==, "threads");
    g_assert_true(engine_built(ENGINE_THREADS));
    g_assert_cmpint(engine_attach(ENGINE_THREADS, ctx, &error_abort), ==, 0);
    g_assert_cmpint(engine_probe(ENGINE_THREADS, &error_abort), ==, 0);
}

int main(int argc, char **argv)
{
    static const AioContextConfig cfg = {.name = "test"};
    int ret;

    g_test_init(&argc, &argv, NULL);
    ctx = aio_context_new(&cfg, &error_abort);
    g_test_add_func("/engine-absent/native/is-refused-by-name", test_native);
    g_test_add_func("/engine-absent/io_uring/is-refused-by-name", test_io_uring);
    g_test_add_func("/engine-absent/threads/is-always-there", test_threads);
    ret = g_test_run();
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
    return ret;
}
