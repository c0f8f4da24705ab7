/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls that fail on demand: those of the engines. */
#include "unit/fault-shim.h"
#include "loop/kernel-queue-int.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <libaio.h>
#include <liburing.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Linux 6.10: a NOP that completes with the value in sqe->len. */
#define NOP_INJECT_RESULT 1

typedef struct Fault {
    _Atomic unsigned int calls, first, times;
    _Atomic int err;
} Fault;

static Fault faults[FAULT_CALLS];
static _Atomic size_t short_bytes;
static _Atomic unsigned int partial, largest;

/* The head of the completion ring of an AIO context, which the kernel maps at the address that io_setup() gives. */
typedef struct AioRing {
    unsigned int id, nr, head, tail;
    unsigned int magic, compat, incompat, header_length;
    struct io_event events[];
} AioRing;

void fault_reset(void)
{
    for (int i = 0; i < FAULT_CALLS; i++) {
        faults[i].calls = faults[i].first = faults[i].times = 0;
    }
    short_bytes = 0;
    partial = largest = 0;
}

void fault_set(FaultCall call, unsigned int nth, unsigned int times, int err)
{
    faults[call].first = faults[call].calls + nth;
    faults[call].err = err;
    faults[call].times = times;
}

void fault_short(size_t bytes)
{
    short_bytes = bytes;
}

void fault_partial(unsigned int n)
{
    partial = n;
}

unsigned int fault_count(FaultCall call)
{
    return faults[call].calls;
}

unsigned int fault_largest_submit(void)
{
    return largest;
}

int fault_errno(FaultCall call)
{
    return faults[call].err;
}

bool fault_hit(FaultCall call)
{
    Fault *f = &faults[call];
    unsigned int n = atomic_fetch_add(&f->calls, 1);

    return f->times && n >= f->first && n - f->first < f->times;
}

#define WRAP_ERRNO(call, ...)                                                                      \
    do {                                                                                           \
        if (fault_hit(call)) {                                                                     \
            errno = faults[call].err;                                                              \
            return faults[call].err ? -1 : 0;                                                      \
        }                                                                                          \
    } while (0)

ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
ssize_t __real_preadv64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags);
int __wrap_fdatasync(int fd);
int __real_fdatasync(int fd);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len);
int __real_fallocate64(int fd, int mode, off_t offset, off_t len);
int __wrap_io_submit(io_context_t ctx, long n, struct iocb **iocbs);
int __real_io_submit(io_context_t ctx, long n, struct iocb **iocbs);
int __wrap_io_uring_enter2(unsigned int fd, unsigned int n, unsigned int min, unsigned int flags,
                           sigset_t *sig, size_t size);
int __real_io_uring_enter2(unsigned int fd, unsigned int n, unsigned int min, unsigned int flags,
                           sigset_t *sig, size_t size);

/* --- Calls of worker threads, by the names that 64-bit file offsets give them --- */

static void shorten(const struct iovec **iov, int *n, struct iovec *one)
{
    if (short_bytes) {
        *one = **iov;
        one->iov_len = MIN(one->iov_len, short_bytes);
        *iov = one;
        *n = 1;
    }
}

ssize_t __wrap_preadv64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
    struct iovec one;

    WRAP_ERRNO(FAULT_PREADV2);
    shorten(&iov, &n, &one);
    return __real_preadv64v2(fd, iov, n, offset, flags);
}

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int n, off_t offset, int flags)
{
    struct iovec one;

    WRAP_ERRNO(FAULT_PWRITEV2);
    shorten(&iov, &n, &one);
    return __real_pwritev64v2(fd, iov, n, offset, flags);
}

int __wrap_fdatasync(int fd)
{
    WRAP_ERRNO(FAULT_FDATASYNC);
    return __real_fdatasync(fd);
}

int __wrap_fallocate64(int fd, int mode, off_t offset, off_t len)
{
    WRAP_ERRNO(FAULT_FALLOCATE);
    return __real_fallocate64(fd, mode, offset, len);
}

/* --- Linux AIO --- */

static bool is_transfer(const struct iocb *iocb)
{
    return iocb->aio_lio_opcode == IO_CMD_PREAD || iocb->aio_lio_opcode == IO_CMD_PWRITE ||
           iocb->aio_lio_opcode == IO_CMD_PREADV || iocb->aio_lio_opcode == IO_CMD_PWRITEV;
}

/* Change results of what has just completed, before anybody looks. */
static void spoil_events(io_context_t ctx, unsigned int from, struct iocb **iocbs, long n)
{
    AioRing *ring = (AioRing *)ctx;

    for (long k = 0; k < n; k++) {
        if (!is_transfer(iocbs[k]) || !fault_hit(FAULT_RESULT_NATIVE)) {
            continue;
        }
        for (unsigned int i = from; i != ring->tail; i = (i + 1) % ring->nr) {
            if (ring->events[i].data == iocbs[k]->data) {
                ring->events[i].res = (unsigned long)-(long)faults[FAULT_RESULT_NATIVE].err;
            }
        }
    }
}

int __wrap_io_submit(io_context_t ctx, long n, struct iocb **iocbs)
{
    unsigned int tail = ((AioRing *)ctx)->tail;
    int ret;

    largest = MAX(largest, (unsigned int)n);
    if (fault_hit(FAULT_IO_SUBMIT)) {
        return -faults[FAULT_IO_SUBMIT].err;
    }
    for (long i = 0; i < n && short_bytes; i++) {
        struct iocb *iocb = iocbs[i];

        if (iocb->aio_lio_opcode == IO_CMD_PREAD || iocb->aio_lio_opcode == IO_CMD_PWRITE) {
            iocb->u.c.nbytes = MIN(iocb->u.c.nbytes, short_bytes);
        } else if (is_transfer(iocb)) {
            iocb->u.c.nbytes = 1;
        }
    }
    ret = __real_io_submit(ctx, partial ? MIN(n, (long)partial) : n, iocbs);
    if (ret > 0) {
        spoil_events(ctx, tail, iocbs, ret);
    }
    return ret;
}

/* --- io_uring --- */

/* Let @sqe complete with -@err. */
static void inject(struct io_uring_sqe *sqe, int err)
{
    uint64_t user_data = sqe->user_data;

    io_uring_prep_nop(sqe);
    sqe->rw_flags = NOP_INJECT_RESULT;
    sqe->len = (unsigned int)-err;
    sqe->user_data = user_data;
}

/* What lies between head and tail goes to the kernel with the call to come. */
static void spoil_sqes(struct io_uring *ring)
{
    struct io_uring_sq *sq = &ring->sq;

    for (unsigned int i = *sq->khead; i != *sq->ktail; i++) {
        struct io_uring_sqe *sqe = &sq->sqes[i & sq->ring_mask];
        bool single = sqe->opcode == IORING_OP_READ || sqe->opcode == IORING_OP_WRITE ||
                      sqe->opcode == IORING_OP_READ_FIXED || sqe->opcode == IORING_OP_WRITE_FIXED;

        if (sqe->opcode == IORING_OP_POLL_ADD && !(sqe->len & IORING_POLL_ADD_MULTI) && fault_hit(FAULT_RESULT_POLL)) {
            inject(sqe, faults[FAULT_RESULT_POLL].err);
        }
        if (!single && sqe->opcode != IORING_OP_READV && sqe->opcode != IORING_OP_WRITEV) {
            continue;
        }
        if (fault_hit(FAULT_RESULT_URING)) {
            inject(sqe, faults[FAULT_RESULT_URING].err);
        } else if (short_bytes) {
            sqe->len = single ? MIN(sqe->len, (unsigned int)short_bytes) : 1;
        }
    }
}

int __wrap_io_uring_enter2(unsigned int fd, unsigned int n, unsigned int min, unsigned int flags,
                           sigset_t *sig, size_t size)
{
    if (n) {
        if (fault_hit(FAULT_URING_SUBMIT)) {
            return -faults[FAULT_URING_SUBMIT].err;
        }
        spoil_sqes(aio_uring_get(aio_context_current(), &error_abort));
        if (partial && n > partial) {
            /* What it does not take keeps it from waiting as well. */
            flags &= ~(unsigned int)(IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG);
            return __real_io_uring_enter2(fd, partial, 0, flags, NULL, 0);
        }
    } else if (fault_hit(FAULT_URING_WAIT)) {
        return -faults[FAULT_URING_WAIT].err;
    }
    if (partial && n > partial) {
        n = partial;
        min = 0; /* the kernel does not wait when it has not taken all */
    }
    return __real_io_uring_enter2(fd, n, min, flags, sig, size);
}

int aio_uring_register_call(int fd, unsigned int opcode, const void *arg, unsigned int n)
{
    int ret;

    if (fault_hit(FAULT_URING_TABLES)) {
        return -faults[FAULT_URING_TABLES].err;
    }
    ret = (int)syscall(__NR_io_uring_register, fd, opcode, arg, n);
    return ret < 0 ? -errno : ret;
}

bool fault_uring_results(void)
{
    struct io_uring_cqe *cqe;
    struct io_uring ring;
    bool works = false;

    if (io_uring_queue_init(2, &ring, 0)) {
        return false;
    }
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

    io_uring_prep_nop(sqe);
    sqe->rw_flags = NOP_INJECT_RESULT;
    sqe->len = (unsigned int)-EIO;
    if (io_uring_submit_and_wait(&ring, 1) == 1 && !io_uring_peek_cqe(&ring, &cqe)) {
        works = cqe->res == -EIO;
    }
    io_uring_queue_exit(&ring);
    return works;
}
