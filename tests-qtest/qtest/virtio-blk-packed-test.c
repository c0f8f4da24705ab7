/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-pci with packed rings, end to end. */
#include "common.h"

#include <string.h>

#define DISK_SIZE (1024 * 1024)
#define QUEUE_SIZE 16
#define F_NEXT 1
#define F_WRITE 2
#define F_AVAIL (1u << 7)
#define F_USED (1u << 15)

typedef struct Ring {
    QTest *t;
    VirtioPci *v;
    uint64_t desc, driver_event, device_event, memory;
    unsigned int next;
    bool wrap;
} Ring;

static VirtioPci *start(QTest *t, uint64_t extra)
{
    VirtioPci *v = vpci_new(t, 4 << 3, VIRTIO_MODERN);

    vpci_reset(v);
    vpci_set_status(v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER);
    g_assert_cmpuint(vpci_device_features(v) & VIRTIO_F(VIRTIO_F_PACKED), !=, 0);
    vpci_set_features(v, VIRTIO_F(VIRTIO_F_VERSION_1) | VIRTIO_F(VIRTIO_F_PACKED) | extra);
    return v;
}

static Ring ring_new(QTest *t, VirtioPci *v)
{
    uint64_t base = guest_alloc(t, 12288);
    Ring r = {.t = t, .v = v, .desc = base, .driver_event = base + 2048, .device_event = base + 3072, .memory = base + 4096,
              .wrap = true};

    qt_memset(t, base, 0, 4096);
    vpci_set_queue_size(v, 0, QUEUE_SIZE);
    vpci_queue_enable(v, 0, r.desc, r.driver_event, r.device_event);
    vpci_set_status(v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER | VIRTIO_S_FEATURES_OK | VIRTIO_S_DRIVER_OK);
    return r;
}

static void put(Ring *r, unsigned int k, uint64_t addr, uint32_t len, uint16_t flags, unsigned int *first, uint16_t *first_flags)
{
    uint64_t p = r->desc + 16 * r->next;

    flags |= r->wrap ? F_AVAIL : F_USED;
    qt_writeq(r->t, p, addr);
    qt_writel(r->t, p + 8, len);
    qt_writew(r->t, p + 12, 42);
    if (k) {
        qt_writew(r->t, p + 14, flags);
    } else {
        *first = r->next;
        *first_flags = flags;
    }
    if (++r->next == QUEUE_SIZE) {
        r->next = 0;
        r->wrap = !r->wrap;
    }
}

/* One request of three descriptors; returns its status. */
static uint8_t request(Ring *r, uint32_t type, uint64_t sector, uint8_t *data)
{
    uint64_t hdr = r->memory, buf = r->memory + 4096, status = r->memory + 512;
    unsigned int first = 0;
    uint16_t first_flags = 0, flags;
    bool wrap = r->wrap, is_write = type == BLK_T_OUT;

    qt_writel(r->t, hdr, type);
    qt_writel(r->t, hdr + 4, 0);
    qt_writeq(r->t, hdr + 8, sector);
    qt_writeb(r->t, status, BLK_S_NONE);
    if (is_write) {
        qt_memwrite(r->t, buf, data, 512);
    }
    put(r, 0, hdr, 16, F_NEXT, &first, &first_flags);
    put(r, 1, buf, 512, F_NEXT | (is_write ? 0 : F_WRITE), &first, &first_flags);
    put(r, 2, status, 1, F_WRITE, &first, &first_flags);
    qt_writew(r->t, r->desc + 16 * first + 14, first_flags);
    vpci_notify(r->v, 0);
    for (int i = 0;; i++) {
        flags = qt_readw(r->t, r->desc + 16 * first + 14);
        if (!!(flags & F_AVAIL) == wrap && !!(flags & F_USED) == wrap) {
            break;
        }
        g_usleep(1000);
        g_assert_cmpint(i, <, qos_hang_ms());
    }
    g_assert_cmpuint(qt_readw(r->t, r->desc + 16 * first + 12), ==, 42);
    g_assert_cmpuint(qt_readl(r->t, r->desc + 16 * first + 8), ==, is_write ? 1 : 513);
    if (!is_write) {
        qt_memread(r->t, buf, data, 512);
    }
    return qt_readb(r->t, status);
}

static void test_read_write(gconstpointer data)
{
    g_autofree char *image = image_new(DISK_SIZE);
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev driver=file,node-name=n,filename=%s -device "
                        "virtio-blk-pci,drive=n,iothread=io0,addr=4.0,packed=on",
                        image);
    VirtioPci *v = start(t, GPOINTER_TO_INT(data) ? VIRTIO_F(VIRTIO_F_EVENT_IDX) : 0);
    Ring r = ring_new(t, v);
    uint8_t want[512], got[512];

    /* The ring's seam falls into every place of a chain. */
    for (unsigned int i = 0; i < 3 * QUEUE_SIZE; i++) {
        fill_pattern(want, 512 * i, 512);
        g_assert_cmpuint(request(&r, BLK_T_IN, i, got), ==, BLK_S_OK);
        g_assert_cmpmem(got, 512, want, 512);
        memset(want, (int)i, 512);
        g_assert_cmpuint(request(&r, BLK_T_OUT, i, want), ==, BLK_S_OK);
        image_read(image, 512 * i, got, 512);
        g_assert_cmpmem(got, 512, want, 512);
    }
    vpci_reset(v);
    vpci_free(v);
    qt_stop(t);
}

static void test_malformed(void)
{
    QTest *t = qt_start("-nodefaults -blockdev driver=null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0,packed=on");
    VirtioPci *v = start(t, 0);
    Ring r = ring_new(t, v);

    for (unsigned int i = 0; i < QUEUE_SIZE; i++) {
        qt_writeq(t, r.desc + 16 * i, r.memory);
        qt_writel(t, r.desc + 16 * i + 8, 16);
        qt_writel(t, r.desc + 16 * i + 12, (uint32_t)(F_NEXT | F_AVAIL) << 16);
    }
    vpci_notify(v, 0);
    qt_wait_stderr(t, "Looped descriptor");
    while (!(vpci_status(v) & VIRTIO_S_NEEDS_RESET)) {
        g_usleep(1000);
    }
    vpci_reset(v);
    g_assert_cmpuint(vpci_status(v), ==, 0);
    vpci_free(v);
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    add_case(test_read_write, GINT_TO_POINTER(0), "/virtio-blk/packed/read-write");
    add_case(test_read_write, GINT_TO_POINTER(1), "/virtio-blk/packed/read-write-with-event-index");
    g_test_add_func("/virtio-blk/packed/malformed-chain-breaks-the-device", test_malformed);
    return g_test_run();
}
