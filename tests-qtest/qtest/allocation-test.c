/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests on a raw file allocate nothing, from the ring to the kernel and back. */
#include "common.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define IMAGE_SIZE (1024 * 1024)
#define BLOCK 4096
#define DEPTH 16
#define WARM_UP 8
#define ROUNDS 40

typedef struct Case {
    const char *aio;
    uint64_t without; /* features of the driver */
    bool merging;
    unsigned int stride; /* blocks between requests of a batch */
} Case;

static void run_round(Vblk *b, const Case *c, unsigned int round)
{
    static uint8_t data[BLOCK];
    VblkReq *r[DEPTH];

    for (unsigned int i = 0; i < DEPTH; i++) {
        uint64_t sector = (uint64_t)(i * c->stride % (IMAGE_SIZE / BLOCK)) * (BLOCK / 512);

        r[i] = round % 2 ? vblk_add(b, 0, BLK_T_OUT, sector, data, BLOCK, NULL)
                         : vblk_add(b, 0, BLK_T_IN, sector, NULL, BLOCK, NULL);
    }
    vblk_kick(b, 0);
    for (unsigned int i = 0; i < DEPTH; i++) {
        g_assert_cmpuint(vblk_finish(r[i], NULL), ==, BLK_S_OK);
    }
}

static char *preload_with(const char *shim)
{
    const char *old = g_getenv("LD_PRELOAD");

    return g_strdup_printf("LD_PRELOAD=%s%s%s", shim, old ? ":" : "", old ? old : "");
}

static void test_none(gconstpointer opaque)
{
    const Case *c = opaque;
    const char *shim = g_getenv("QOS_ALLOCATION_SHIM");
    g_autofree char *image = NULL, *path = NULL, *preload = NULL, *file = NULL, *args = NULL;
    QTestOpts o = {.shared_mib = 64};
    VblkOpts vo = {.via = VIRTIO_MODERN, .msix = true, .without = c->without};
    _Atomic uint64_t *counter;
    uint64_t before;
    QTest *t;
    Vblk *b;
    int fd;

    if (!shim) {
        g_test_skip("no shim to count with: a sanitizer has the allocator, or QOS_ALLOCATION_SHIM is not set");
        return;
    }
    if (!binary_is_ours() || !engine_usable(c->aio, true)) {
        if (!binary_is_ours()) {
            g_test_skip("a promise of this project alone");
        }
        return;
    }
    image = image_new_direct(IMAGE_SIZE);
    path = qos_scratch_path("allocations");
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, sizeof(*counter)), ==, 0);
    counter = mmap(NULL, sizeof(*counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    g_assert_true(counter != MAP_FAILED);
    close(fd);
    preload = preload_with(shim);
    file = g_strconcat("QOS_ALLOCATIONS=", path, NULL);
    o.env = (const char *const[]){preload, file, NULL};
    args = g_strdup_printf("-nodefaults -object iothread,id=io0 "
                           "-blockdev driver=raw,node-name=r,file.driver=file,file.filename=%s,file.aio=%s,"
                           "file.cache.direct=on,cache.direct=on "
                           "-device virtio-blk-pci,drive=r,iothread=io0,addr=4.0,request-merging=%s",
                           image, c->aio, c->merging ? "on" : "off");
    t = qt_start_opts(&o, args);
    /* The thread allocates to come into being: otherwise the shim is not there. */
    b = vblk_new(t, &vo);
    b->page_aligned = true;
    for (unsigned int i = 0; i < WARM_UP; i++) {
        run_round(b, c, i);
    }
    g_assert_cmpuint(*counter, >, 0);
    before = *counter;
    for (unsigned int i = 0; i < ROUNDS; i++) {
        run_round(b, c, i);
    }
    g_assert_cmpuint(*counter, ==, before);
    vblk_free(b);
    qt_stop(t);
    munmap((void *)counter, sizeof(*counter));
    unlink(image);
    unlink(path);
}

static const Case cases[] = {
    {"native", 0, true, 3},
    {"io_uring", 0, true, 3},
    {"native", VIRTIO_F(VIRTIO_F_INDIRECT) | VIRTIO_F(VIRTIO_F_EVENT_IDX), true, 3},
    {"native", 0, true, 1},
    {"io_uring", 0, true, 1},
    {"native", 0, false, 1},
};

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *c = &cases[i];

        add_case(test_none, c, "/virtio-blk/allocation/none/%s%s%s%s", c->aio, c->without ? "/direct-descriptors" : "",
                 c->stride == 1 ? "/adjacent" : "", c->merging ? "" : "/no-merging");
    }
    return g_test_run();
}
