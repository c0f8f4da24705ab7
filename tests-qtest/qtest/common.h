/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the qtest programs share: start-up, images, what the binary can do. */
#ifndef QTEST_COMMON_H
#define QTEST_COMMON_H

#include "virtio-blk.h"

/*
 * g_test_init(), and with no binary to test (QTEST_QEMU_BINARY) a TAP plan that skips everything: then the caller
 * returns 0 from main at once.
 */
bool common_init(int *argc, char ***argv);

/* True if the binary under test is QEMU 11 or later, or ours; tests of newer interfaces skip otherwise. */
bool binary_is_v11(void);
/* True if the binary is ours: it has the statistics command. */
bool binary_is_ours(void);
/* True if "-accel qtest" exists (starts the binary once to learn it). */
bool binary_has_qtest_accel(void);

/* A file of @size bytes in the scratch directory, filled by image_pattern(); free the path with g_free(). */
char *image_new(size_t size);
/* The same on a file system that takes O_DIRECT; NULL if there is none. */
char *image_new_direct(size_t size);
/* Byte @off of a fresh image. */
uint8_t image_pattern(uint64_t off);
void fill_pattern(uint8_t *buf, uint64_t off, size_t len);
/* What the file holds, seen from outside the binary; dies if it is shorter. */
void image_read(const char *path, uint64_t off, void *buf, size_t len);

/* True if aio=@aio works here with cache.direct=@direct; tells g_test_skip() why otherwise. */
bool engine_usable(const char *aio, bool direct);

/* The binary is ours, and there is the shim between it and the kernel (syscall-shim.c); skips otherwise. */
bool shim_usable(void);
/*
 * Start it with the shim and 32 MiB of shared RAM; @fault: a variable of the shim as "NAME=VALUE", or NULL. With @why, NULL is
 * returned for a start that fails, and what it said.
 */
QTest *shim_start(const char *fault, const char *args, char **why);

/* The ways to make an object. */
typedef enum Way { WAY_QMP, WAY_HMP, WAY_CLI, WAY_CLI_JSON, N_WAYS } Way;
#define WAY_NAMES {"object-add", "object_add", "command-line", "command-line-json"}

/* Start with "-machine none". */
QTest *start_none(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* The same for a start that must fail; returns stderr, free with g_free(). */
char *refusal(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
/* A connection to a QMP server that listens at @path; dies if there is none. */
Qmp *qmp_dial(const char *path);
/* @text has a line that ends with ": @message"; dies otherwise. */
void check_stderr(const char *text, const char *message);
/* An integer property of /objects/@id. */
json_int_t iothread_get(QTest *t, const char *id, const char *prop);
/* There is no /objects/i0: a refused creation leaves nothing behind. */
void assert_no_object(QTest *t);

/* g_test_add_data_func() under a formatted path. */
void add_case(GTestDataFunc fn, gconstpointer data, const char *fmt, ...) G_GNUC_PRINTF(3, 4);
/* The same; @data goes to g_free() in the end. */
void add_case_owned(GTestDataFunc fn, gpointer data, const char *fmt, ...) G_GNUC_PRINTF(3, 4);

#endif
