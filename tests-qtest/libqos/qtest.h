/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU-compatible binary under the qtest protocol: start, stop, and every command. Main thread only.
 *
 * All functions end the program (qos_die) if the binary answers anything but success, goes away, or is silent for
 * qos_hang_ms(); qt_command() alone hands failures to the caller.
 */
#ifndef LIBQOS_QTEST_H
#define LIBQOS_QTEST_H

#include "process.h"
#include "qmp.h"

#include <stddef.h>
#include <stdint.h>

typedef struct QTest {
    Child *child;
    Qmp *qmp;
    bool qtest_accel; /* false: "-accel tcg -S", the vCPUs never run and the clock commands do not exist */
    uint8_t *ram;     /* the guest's RAM in our address space, NULL unless shared */
    size_t ram_size;  /* valid if shared */
    /* private */
    int fd;
    int ram_fd;
    GString *in;
    GByteArray *irq_levels;
    uint64_t irq_messages;
    struct GuestAlloc *alloc;
    bool io_bar_used;
    uint32_t next_io, next_mem; /* where the next BAR goes */
} QTest;

typedef struct QTestOpts {
    const char *binary;       /* NULL: $QTEST_QEMU_BINARY */
    const char *machine;      /* NULL: "pc" */
    const char *const *env;   /* NULL-terminated NAME=VALUE, or NULL */
    const int *fds;           /* descriptors to inherit, ended by -1, or NULL */
    unsigned int shared_mib;  /* guest RAM in MiB, shared with us and mapped at "ram"; 0: private default RAM */
} QTestOpts;

/* The binary under test, or NULL if QTEST_QEMU_BINARY is not set. */
const char *qt_binary(void);

/*
 * Start the binary and connect its qtest and QMP sockets; capabilities are negotiated. "-machine", "-display none",
 * the accelerator and the sockets are added to the arguments, which are split as a shell would (quotes, no
 * expansion). qt_try_start() returns NULL with the binary's stderr in *@why if it ends before it connects.
 */
QTest *qt_start(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
QTest *qt_start_opts(const QTestOpts *opts, const char *args);
QTest *qt_try_start(const QTestOpts *opts, const char *args, char **why);

/*
 * SIGTERM, then wait. Dies if the exit status is not 0: so a leak that a sanitizer reports at exit fails the test.
 * Frees everything.
 */
void qt_stop(QTest *t);
/* Wait for a binary that ends by itself and free everything; returns the status of waitpid(). */
int qt_wait_exit(QTest *t);
/* SIGKILL and free everything. */
void qt_kill(QTest *t);
/* Dies if the process has gone or does not answer. */
void qt_assert_alive(QTest *t);
/* What the binary wrote to stderr so far; free with g_free(). */
char *qt_stderr(const QTest *t);
/* Wait until stderr contains @text; dies if it never does. */
void qt_wait_stderr(QTest *t, const char *text);

/* Send one line (without newline) and return the reply line, IRQ messages aside; free with g_free(). */
char *qt_command(QTest *t, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* Send bytes as they are, for tests of the protocol; qt_reply() then fetches a reply line. */
void qt_send_raw(QTest *t, const char *bytes, size_t len);
char *qt_reply(QTest *t);

void qt_outb(QTest *t, uint16_t port, uint8_t v);
void qt_outw(QTest *t, uint16_t port, uint16_t v);
void qt_outl(QTest *t, uint16_t port, uint32_t v);
uint8_t qt_inb(QTest *t, uint16_t port);
uint16_t qt_inw(QTest *t, uint16_t port);
uint32_t qt_inl(QTest *t, uint16_t port);

void qt_writeb(QTest *t, uint64_t addr, uint8_t v);
void qt_writew(QTest *t, uint64_t addr, uint16_t v);
void qt_writel(QTest *t, uint64_t addr, uint32_t v);
void qt_writeq(QTest *t, uint64_t addr, uint64_t v);
uint8_t qt_readb(QTest *t, uint64_t addr);
uint16_t qt_readw(QTest *t, uint64_t addr);
uint32_t qt_readl(QTest *t, uint64_t addr);
uint64_t qt_readq(QTest *t, uint64_t addr);

/* Memory in bulk: hexadecimal ("read", "write") and base64 forms of the protocol. Zero bytes do nothing. */
void qt_memread(QTest *t, uint64_t addr, void *buf, size_t len);
void qt_memwrite(QTest *t, uint64_t addr, const void *buf, size_t len);
void qt_b64read(QTest *t, uint64_t addr, void *buf, size_t len);
void qt_b64write(QTest *t, uint64_t addr, const void *buf, size_t len);
void qt_memset(QTest *t, uint64_t addr, uint8_t byte, size_t len);

/* Guest RAM through the shared mapping where there is one, through the socket otherwise. */
void qt_ram_read(QTest *t, uint64_t addr, void *buf, size_t len);
void qt_ram_write(QTest *t, uint64_t addr, const void *buf, size_t len);

/* Virtual time in ns after the step; qt_clock_step_next() goes to the next timer. */
int64_t qt_clock_step(QTest *t, int64_t ns);
int64_t qt_clock_step_next(QTest *t);
int64_t qt_clock_set(QTest *t, int64_t ns);

void qt_irq_intercept_in(QTest *t, const char *qom_path);
void qt_irq_intercept_out(QTest *t, const char *qom_path);
void qt_set_irq_in(QTest *t, const char *qom_path, const char *name, int n, int level);
/* Last level that an IRQ message told for line @n; asks the binary for what is on its way first. */
bool qt_irq_level(QTest *t, unsigned int n);
/* Number of IRQ messages so far. */
uint64_t qt_irq_messages(QTest *t);

/* fw_cfg through the I/O ports: select @key and read @len bytes. */
void qt_fw_cfg_read(QTest *t, uint16_t key, void *buf, size_t len);
/* Key and size of a file in fw_cfg's directory; 0 if there is none. */
uint16_t qt_fw_cfg_file(QTest *t, const char *name, uint32_t *size);

#endif
