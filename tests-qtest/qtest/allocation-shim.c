/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LD_PRELOAD library that counts what IOThreads allocate and free: threads whose name begins with "IO ". The count is a 64-bit
 * number at the start of the file that QOS_ALLOCATIONS names, which has to be there.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/* glibc's own entry points, which nobody stands in front of. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static _Atomic uint64_t *counter;

__attribute__((constructor)) static void shim_init(void)
{
    const char *path = getenv("QOS_ALLOCATIONS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) {
        abort();
    }
    close(fd);
    counter = p;
}

static void count(void)
{
    char name[16];

    if (counter && prctl(PR_GET_NAME, name) == 0 && strncmp(name, "IO ", 3) == 0) {
        atomic_fetch_add(counter, 1);
    }
}

void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}

int posix_memalign(void **p, size_t align, size_t n)
{
    count();
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}

void free(void *p)
{
    if (p) {
        count();
    }
    __libc_free(p);
}
