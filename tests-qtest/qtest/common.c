/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the qtest programs share. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool common_init(int *argc, char ***argv)
{
    g_test_init(argc, argv, NULL);
    /* A failed row of a table must not hide the rows behind it. */
    g_test_set_nonfatal_assertions();
    if (!qt_binary()) {
        printf("1..0 # SKIP QTEST_QEMU_BINARY names no binary to test\n");
        return false;
    }
    return true;
}

typedef struct Traits {
    bool known, v11, ours, qtest_accel;
} Traits;

static const Traits *traits(void)
{
    static Traits tr;
    QTestOpts o = {.machine = "none"};
    json_t *v;
    QTest *t;

    if (tr.known) {
        return &tr;
    }
    t = qt_start_opts(&o, "-nodefaults");
    tr.qtest_accel = t->qtest_accel;
    v = qmp_must(t->qmp, "query-version", NULL);
    tr.v11 = json_integer_value(json_object_get(json_object_get(v, "qemu"), "major")) >= 11;
    json_decref(v);
    v = qmp_execute(t->qmp, "x-query-iothread-stats", NULL);
    tr.ours = json_object_get(v, "return") != NULL;
    json_decref(v);
    tr.v11 |= tr.ours;
    tr.known = true;
    qt_stop(t);
    return &tr;
}

bool binary_is_v11(void)
{
    return traits()->v11;
}

bool binary_is_ours(void)
{
    return traits()->ours;
}

bool binary_has_qtest_accel(void)
{
    return traits()->qtest_accel;
}

uint8_t image_pattern(uint64_t off)
{
    /* Differs from sector to sector and from byte to byte, so that a shift by either shows. */
    return (uint8_t)(off * 7 + (off >> 9) * 31 + (off >> 17));
}

void fill_pattern(uint8_t *buf, uint64_t off, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        buf[i] = image_pattern(off + i);
    }
}

static void write_image(const char *path, size_t size)
{
    g_autofree uint8_t *buf = g_malloc(size);
    GError *err = NULL;

    fill_pattern(buf, 0, size);
    if (!g_file_set_contents_full(path, (char *)buf, (gssize)size, G_FILE_SET_CONTENTS_NONE, 0600,
                                  &err)) {
        qos_die("%s: %s", path, err->message);
    }
}

char *image_new(size_t size)
{
    char *path = qos_scratch_path("image");

    write_image(path, size);
    return path;
}

char *image_new_direct(size_t size)
{
    char *path = image_new(size);
    int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);

    if (fd < 0) {
        g_free(path);
        return NULL;
    }
    close(fd);
    return path;
}

void image_read(const char *path, uint64_t off, void *buf, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || pread(fd, buf, len, (off_t)off) != (ssize_t)len) {
        qos_die("%s: cannot read %zu bytes: %s", path, len, g_strerror(errno));
    }
    close(fd);
}

/* NULL if it works, else why not. */
static char *try_engine(const char *aio, bool direct)
{
    QTestOpts o = {.machine = "none"};
    g_autofree char *img = image_new_direct(65536), *args = NULL;
    char *why = NULL;
    QTest *t;

    if (!strcmp(aio, "native") && !direct) {
        return g_strdup("aio=native needs O_DIRECT");
    }
    if (!img) {
        return g_strdup("the temporary directory does not take O_DIRECT");
    }
    args = g_strdup_printf("-nodefaults -blockdev driver=file,node-name=f,filename=%s,aio=%s,cache.direct=%s",
                           img, aio, direct ? "on" : "off");
    t = qt_try_start(&o, args, &why);
    unlink(img);
    if (t) {
        qt_stop(t);
    }
    return why;
}

bool engine_usable(const char *aio, bool direct)
{
    static GHashTable *known; /* "AIO DIRECT" -> why not, or "" */
    g_autofree char *key = g_strdup_printf("%s %d", aio, direct);
    const char *why;

    if (!known) {
        known = g_hash_table_new(g_str_hash, g_str_equal);
    }
    if (!g_hash_table_contains(known, key)) {
        char *answer = try_engine(aio, direct);

        g_hash_table_insert(known, g_strdup(key), answer ? answer : g_strdup(""));
    }
    why = g_hash_table_lookup(known, key);
    if (*why) {
        g_test_skip(why);
    }
    return !*why;
}

void add_case(GTestDataFunc fn, gconstpointer data, const char *fmt, ...)
{
    g_autofree char *path = NULL;
    va_list ap;

    va_start(ap, fmt);
    path = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_test_add_data_func(path, data, fn);
}

void add_case_owned(GTestDataFunc fn, gpointer data, const char *fmt, ...)
{
    g_autofree char *path = NULL;
    va_list ap;

    va_start(ap, fmt);
    path = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_test_add_data_func_full(path, data, fn, g_free);
}

QTest *start_none(const char *fmt, ...)
{
    QTestOpts o = {.machine = "none"};
    g_autofree char *args = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return qt_start_opts(&o, args);
}

Qmp *qmp_dial(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        qos_die("cannot connect to %s", path);
    }
    return qmp_new(fd, qos_hang_ms());
}

char *refusal(const char *fmt, ...)
{
    QTestOpts o = {.machine = "none"};
    g_autofree char *args = NULL;
    char *why = NULL;
    va_list ap;

    va_start(ap, fmt);
    args = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    if (qt_try_start(&o, args, &why)) {
        qos_die("'%s' was accepted", args);
    }
    return why;
}

json_int_t iothread_get(QTest *t, const char *id, const char *prop)
{
    g_autofree char *path = g_strdup_printf("/objects/%s", id);
    json_t *v = qmp_must(t->qmp, "qom-get", "{s:s,s:s}", "path", path, "property", prop);
    json_int_t n = json_integer_value(v);

    g_assert_true(json_is_integer(v));
    json_decref(v);
    return n;
}

void check_stderr(const char *text, const char *message)
{
    g_autofree char *line = g_strconcat(": ", message, "\n", NULL);

    if (!strstr(text, line)) {
        qos_die("expected '...%s' on stderr, got: %s", line, text);
    }
}

void assert_no_object(QTest *t)
{
    g_autofree char *err =
        qmp_must_fail(t->qmp, "qom-get", "{s:s,s:s}", "path", "/objects/i0", "property", "type");

    g_assert_cmpstr(err, ==, "DeviceNotFound: Device '/objects/i0' not found");
}

bool shim_usable(void)
{
    if (!g_getenv("QOS_SYSCALL_SHIM") || !binary_is_ours()) {
        g_test_skip("needs our own binary and the shim");
        return false;
    }
    return true;
}

/* Through a link, since LD_PRELOAD is a list that spaces and colons take apart and a build folder may have both. */
static char *shim_preload(void)
{
    static char *link_path;
    const char *shim = g_getenv("QOS_SYSCALL_SHIM");

    if (!link_path) {
        link_path = qos_scratch_path("shim");
        if (symlink(shim, link_path) < 0) {
            qos_die("%s: %s", link_path, g_strerror(errno));
        }
    }
    return g_strdup_printf("LD_PRELOAD=%s", link_path);
}

QTest *shim_start(const char *fault, const char *args, char **why)
{
    const char *asan = g_getenv("ASAN_OPTIONS");
    g_autofree char *preload = shim_preload();
    /* The runtime of a sanitizer insists on being first otherwise. */
    g_autofree char *options = g_strdup_printf("ASAN_OPTIONS=%s%sverify_asan_link_order=0", asan ? asan : "", asan ? ":" : "");
    const char *const env[] = {preload, options, fault, NULL};
    QTestOpts o = {.shared_mib = 32, .env = env};

    return why ? qt_try_start(&o, args, why) : qt_start_opts(&o, args);
}
