/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LD_PRELOAD library that writes a line for each call that passes I/O to the kernel, and can make some of them fail.
 *
 * QOS_SHIM_LOG=FILE     append "NAME ARGUMENT RESULT REQUESTS" for each call; REQUESTS leaves out polls
 * QOS_SHIM_EAGAIN=N     every N-th io_submit() fails with EAGAIN
 * QOS_SHIM_PARTIAL=N    io_submit() takes at most N requests at a time
 * QOS_SHIM_HOLD=FILE    requests do not complete while FILE exists
 * QOS_SHIM_NO_AIO=1     io_setup() fails with EAGAIN
 * QOS_SHIM_NO_URING=1   io_uring_setup() fails with EPERM, from a filter in the kernel
 * QOS_SHIM_MEMLOCK=KIB  no more memory can be locked, whoever we are
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct io_uring;

/* What we stand in front of; the headers that declare some of these are not needed otherwise. */
int io_uring_submit(struct io_uring *ring);
int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait_nr);
int io_uring_enter(unsigned int fd, unsigned int to_submit, unsigned int min, unsigned int flags, void *sig);
int io_uring_enter2(unsigned int fd, unsigned int to_submit, unsigned int min, unsigned int flags, void *sig, size_t sz);

static int log_fd = -1;
static long eagain_every, partial;
static const char *hold;
static atomic_long submits;
static __thread bool inside; /* a library's wrapper calls syscall() itself: one line is enough */

static void forbid_uring(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
        abort();
    }
}

/* Root is not bound by the limit unless it gives up the capability, too. */
static void limit_memlock(unsigned long kib)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    struct rlimit limit;

    if (syscall(SYS_capget, &head, caps) || getrlimit(RLIMIT_MEMLOCK, &limit)) {
        abort();
    }
    caps[CAP_TO_INDEX(CAP_IPC_LOCK)].effective &= ~CAP_TO_MASK(CAP_IPC_LOCK);
    limit.rlim_cur = kib << 10;
    if (syscall(SYS_capset, &head, caps) || setrlimit(RLIMIT_MEMLOCK, &limit)) {
        abort();
    }
}

__attribute__((constructor)) static void shim_init(void)
{
    const char *path = getenv("QOS_SHIM_LOG"), *e = getenv("QOS_SHIM_EAGAIN"), *p = getenv("QOS_SHIM_PARTIAL");

    log_fd = path ? open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600) : -1;
    eagain_every = e ? atol(e) : 0;
    partial = p ? atol(p) : 0;
    hold = getenv("QOS_SHIM_HOLD");
    if (getenv("QOS_SHIM_NO_URING")) {
        forbid_uring();
    }
    if (getenv("QOS_SHIM_MEMLOCK")) {
        limit_memlock(strtoul(getenv("QOS_SHIM_MEMLOCK"), NULL, 10));
    }
}

/* One write() a line, so that threads do not mix; errno stays as the call left it. */
static void note(const char *name, long arg, long ret, long requests)
{
    int saved = errno;
    char line[96];
    int n = snprintf(line, sizeof(line), "%s %ld %ld %ld\n", name, arg, ret, requests);

    if (log_fd >= 0 && write(log_fd, line, (size_t)n) != n) {
        abort();
    }
    errno = saved;
}

static void *next(const char *name)
{
    void *fn = dlsym(RTLD_NEXT, name);

    if (!fn) {
        abort();
    }
    return fn;
}

static long count_requests(struct iocb **iocbs, long n)
{
    long requests = 0;

    for (long i = 0; i < n; i++) {
        requests += iocbs[i]->aio_lio_opcode != IO_CMD_POLL;
    }
    return requests;
}

typedef struct Held {
    int (*submit)(io_context_t, long, struct iocb **);
    io_context_t ctx;
    long n;
    struct iocb *iocbs[];
} Held;

static void *submit_later(void *opaque)
{
    Held *h = opaque;

    while (access(hold, F_OK) == 0) {
        usleep(1000);
    }
    if (h->submit(h->ctx, h->n, h->iocbs) != h->n) {
        abort();
    }
    free(h);
    return NULL;
}

/* Take them, and let a thread pass them on when the file is gone. */
static int hold_back(int (*submit)(io_context_t, long, struct iocb **), io_context_t ctx, long n, struct iocb **iocbs)
{
    Held *h = malloc(sizeof(*h) + (size_t)n * sizeof(h->iocbs[0]));
    pthread_t thread;

    if (!h) {
        abort();
    }
    *h = (Held){submit, ctx, n};
    memcpy(h->iocbs, iocbs, (size_t)n * sizeof(h->iocbs[0]));
    if (pthread_create(&thread, NULL, submit_later, h) || pthread_detach(thread)) {
        abort();
    }
    return (int)n;
}

int io_setup(int max, io_context_t *ctx)
{
    static int (*real)(int, io_context_t *);
    int ret;

    if (!real) {
        real = (int (*)(int, io_context_t *))next("io_setup");
    }
    ret = getenv("QOS_SHIM_NO_AIO") ? -EAGAIN : real(max, ctx);
    note("io_setup", max, ret, 0);
    return ret;
}

int io_submit(io_context_t ctx, long nr, struct iocb **iocbs)
{
    static int (*real)(io_context_t, long, struct iocb **);
    long ask = nr;
    int ret;

    if (!real) {
        real = (int (*)(io_context_t, long, struct iocb **))next("io_submit");
    }
    if (hold && access(hold, F_OK) == 0 && count_requests(iocbs, nr) == nr) {
        return hold_back(real, ctx, nr, iocbs);
    }
    if (eagain_every && atomic_fetch_add(&submits, 1) % eagain_every == eagain_every - 1) {
        note("io_submit", nr, -EAGAIN, 0);
        return -EAGAIN;
    }
    if (partial && ask > partial) {
        ask = partial;
    }
    inside = true;
    ret = real(ctx, ask, iocbs);
    inside = false;
    note("io_submit", nr, ret, ret > 0 ? count_requests(iocbs, ret) : 0);
    return ret;
}

int io_getevents(io_context_t ctx, long min, long nr, struct io_event *events, struct timespec *timeout)
{
    static int (*real)(io_context_t, long, long, struct io_event *, struct timespec *);
    int ret;

    if (!real) {
        real = (int (*)(io_context_t, long, long, struct io_event *, struct timespec *))next("io_getevents");
    }
    inside = true;
    ret = real(ctx, min, nr, events, timeout);
    inside = false;
    note("io_getevents", nr, ret, 0);
    return ret;
}

int io_uring_submit(struct io_uring *ring)
{
    static int (*real)(struct io_uring *);
    int ret;

    if (!real) {
        real = (int (*)(struct io_uring *))next("io_uring_submit");
    }
    inside = true;
    ret = real(ring);
    inside = false;
    note("io_uring_submit", 0, ret, ret);
    return ret;
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned int wait_nr)
{
    static int (*real)(struct io_uring *, unsigned int);
    int ret;

    if (!real) {
        real = (int (*)(struct io_uring *, unsigned int))next("io_uring_submit_and_wait");
    }
    inside = true;
    ret = real(ring, wait_nr);
    inside = false;
    note("io_uring_submit_and_wait", wait_nr, ret, ret);
    return ret;
}

int io_uring_enter2(unsigned int fd, unsigned int to_submit, unsigned int min, unsigned int flags, void *sig, size_t sz)
{
    static int (*real)(unsigned int, unsigned int, unsigned int, unsigned int, void *, size_t);
    int ret;

    if (!real) {
        real = (int (*)(unsigned int, unsigned int, unsigned int, unsigned int, void *, size_t))next("io_uring_enter2");
    }
    inside = true;
    ret = real(fd, to_submit, min, flags, sig, sz);
    inside = false;
    note("io_uring_enter", to_submit, ret, ret);
    return ret;
}

int io_uring_enter(unsigned int fd, unsigned int to_submit, unsigned int min, unsigned int flags, void *sig)
{
    static int (*real)(unsigned int, unsigned int, unsigned int, unsigned int, void *);
    int ret;

    if (!real) {
        real = (int (*)(unsigned int, unsigned int, unsigned int, unsigned int, void *))next("io_uring_enter");
    }
    inside = true;
    ret = real(fd, to_submit, min, flags, sig);
    inside = false;
    note("io_uring_enter", to_submit, ret, ret);
    return ret;
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[6], ret;
    va_list ap;

    if (!real) {
        real = (long (*)(long, ...))next("syscall");
    }
    va_start(ap, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(ap, long);
    }
    va_end(ap);
    ret = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (inside) {
        return ret;
    }
    if (number == SYS_io_submit) {
        note("io_submit", a[1], ret, ret > 0 ? count_requests((struct iocb **)a[2], ret) : 0);
    } else if (number == SYS_io_uring_enter) {
        note("io_uring_enter", a[1], ret, ret);
    }
    return ret;
}
