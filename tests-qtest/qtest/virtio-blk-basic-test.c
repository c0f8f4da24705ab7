/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-pci from a driver's view: identity, features, configuration, requests, on both interfaces. */
#include "base/bswap.h"
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define IMAGE_SIZE (64 << 20)

typedef struct Iface {
    const char *name;
    VirtioVia via;
} Iface;

static const Iface ifaces[] = {
    {"legacy", VIRTIO_LEGACY},
    {"modern", VIRTIO_MODERN},
    {"modern-window", VIRTIO_MODERN_WINDOW},
};

typedef struct Setup {
    QTest *t;
    Vblk *b;
    char *image;
} Setup;

/* Sparse, as its content does not matter here. */
static char *big_image(void)
{
    char *path = image_new(65536);

    if (truncate(path, IMAGE_SIZE) < 0) {
        qos_die("%s: cannot grow it", path);
    }
    return path;
}

static Setup setup(VirtioVia via, const char *device_opts, const VblkOpts *base)
{
    VblkOpts o = base ? *base : (VblkOpts){0};
    Setup s = {.image = big_image()};

    o.via = via;
    s.t = qt_start("-nodefaults -object iothread,id=io0 -blockdev driver=file,node-name=f,filename=%s "
                   "-device virtio-blk-pci,id=v0,drive=f,iothread=io0,addr=4.0%s",
                   s.image, device_opts);
    s.b = vblk_new(s.t, &o);
    return s;
}

static void teardown(Setup *s)
{
    vblk_free(s->b);
    g_assert_cmpuint(guest_allocated(s->t), ==, 0);
    qt_stop(s->t);
    unlink(s->image);
    g_free(s->image);
}

static void test_read_write(gconstpointer data)
{
    const Iface *i = data;
    Setup s = setup(i->via, "", NULL);
    uint8_t buf[4096], expect[4096];

    g_assert_cmpuint(s.b->sectors, ==, IMAGE_SIZE / 512);
    fill_pattern(expect, 8 * 512, sizeof(expect));
    g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_IN, 8, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmpmem(buf, sizeof(buf), expect, sizeof(expect));
    memset(expect, 0x5a, sizeof(expect));
    g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_OUT, 16, expect, sizeof(expect)), ==, BLK_S_OK);
    g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_FLUSH, 0, NULL, 0), ==, BLK_S_OK);
    image_read(s.image, 16 * 512, buf, sizeof(buf));
    g_assert_cmpmem(buf, sizeof(buf), expect, sizeof(expect));
    teardown(&s);
}

/* --- Identity: what PCI config space says --- */

typedef struct Identity {
    const char *name, *opts;
    uint16_t device, subsystem;
    uint8_t revision;
    uint32_t bar0;        /* size, 0: absent */
    bool bar4;
    uint8_t msix_cap;
    unsigned int vectors; /* 0: no MSI-X */
} Identity;

static const Identity identities[] = {
    {"transitional", "", 0x1001, 0x0002, 0, 128, true, 0x98, 2},
    {"small-config", ",discard=off,write-zeroes=off", 0x1001, 0x0002, 0, 64, true, 0x98, 2},
    {"modern-only", ",disable-legacy=on", 0x1042, 0x1100, 1, 0, true, 0x98, 2},
    {"legacy-only", ",disable-modern=on", 0x1001, 0x0002, 0, 128, false, 0x40, 2},
    {"four-queues", ",num-queues=4", 0x1001, 0x0002, 0, 128, true, 0x98, 5},
    {"vectors-3", ",num-queues=4,vectors=3", 0x1001, 0x0002, 0, 128, true, 0x98, 3},
    {"no-vectors", ",vectors=0", 0x1001, 0x0002, 0, 128, true, 0, 0},
};

static void test_identity(gconstpointer data)
{
    const Identity *i = data;
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0%s", i->opts);
    int devfn = PCI_DEVFN(4, 0);
    PciDev *d = pci_dev_new(t, devfn);

    g_assert_nonnull(d);
    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_VENDOR), ==, 0x1af4);
    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_DEVICE), ==, i->device);
    g_assert_cmphex(pci_cfg_readb(t, devfn, PCI_CFG_REVISION), ==, i->revision);
    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_CLASS), ==, 0x0100);
    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_SUBSYS_VENDOR), ==, 0x1af4);
    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_SUBSYS_ID), ==, i->subsystem);
    g_assert_cmphex(pci_cfg_readb(t, devfn, PCI_CFG_INT_PIN), ==, 1);
    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_STATUS) & 0x10, ==, i->msix_cap || i->bar4 ? 0x10 : 0);
    g_assert_true(d->bar[0].present == (i->bar0 != 0));
    if (i->bar0) {
        g_assert_true(d->bar[0].io);
        g_assert_cmphex(d->bar[0].size, ==, i->bar0);
    }
    g_assert_true(d->bar[1].present == (i->vectors != 0));
    g_assert_true(d->bar[4].present == i->bar4);
    if (i->bar4) {
        g_assert_true(d->bar[4].is64 && d->bar[4].prefetch);
        g_assert_cmphex(d->bar[4].size, ==, 16384);
    }
    g_assert_cmphex(d->msix_cap, ==, i->msix_cap);
    g_assert_cmpuint(d->msix_vectors, ==, i->vectors);
    if (i->msix_cap) {
        g_assert_cmphex(pci_cfg_readl(t, devfn, i->msix_cap + 4), ==, 0x0001);
        g_assert_cmphex(pci_cfg_readl(t, devfn, i->msix_cap + 8), ==, 0x0801);
    }
    pci_dev_free(d);
    qt_stop(t);
}

/* The chain of vendor capabilities: type, BAR, offset, length; at fixed places. */
static void test_capabilities(void)
{
    static const struct {
        uint8_t off, len, type;
        uint32_t offset, length;
    } caps[] = {
        {0x84, 20, 5, 0, 0}, {0x70, 20, 2, 0x3000, 0x1000}, {0x60, 16, 4, 0x2000, 0x1000},
        {0x50, 16, 3, 0x1000, 0x1000}, {0x40, 16, 1, 0, 0x1000},
    };
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0");
    int devfn = PCI_DEVFN(4, 0);
    uint8_t off = pci_cfg_readb(t, devfn, PCI_CFG_CAP_PTR);

    g_assert_cmphex(off, ==, 0x98);
    for (size_t i = 0; i < G_N_ELEMENTS(caps); i++) {
        off = pci_cfg_readb(t, devfn, off + 1);
        g_assert_cmphex(off, ==, caps[i].off);
        g_assert_cmphex(pci_cfg_readb(t, devfn, off), ==, PCI_CAP_VENDOR);
        g_assert_cmphex(pci_cfg_readb(t, devfn, off + 2), ==, caps[i].len);
        g_assert_cmphex(pci_cfg_readb(t, devfn, off + 3), ==, caps[i].type);
        g_assert_cmphex(pci_cfg_readb(t, devfn, off + 4), ==, caps[i].type == 5 ? 0 : 4);
        g_assert_cmphex(pci_cfg_readl(t, devfn, off + 8), ==, caps[i].offset);
        g_assert_cmphex(pci_cfg_readl(t, devfn, off + 12), ==, caps[i].length);
        if (caps[i].type == 2) {
            g_assert_cmphex(pci_cfg_readl(t, devfn, off + 16), ==, 4);
        }
    }
    g_assert_cmphex(pci_cfg_readb(t, devfn, off + 1), ==, 0);
    qt_stop(t);
}

/* --- Features --- */

typedef struct Features {
    const char *name, *opts, *node_opts;
    uint64_t legacy, modern;
} Features;

static const Features features[] = {
    {"default", "", "", 0x79006e54, 0x0000010130006e54},
    {"four-queues", ",num-queues=4", "", 0x79007e54, 0x0000010130007e54},
    {"read-only", "", ",read-only=on", 0x79006e74, 0x0000010130006e74},
    {"no-event-idx", ",event_idx=off", "", 0x59006e54, 0x0000010110006e54},
    {"no-indirect", ",indirect_desc=off", "", 0x69006e54, 0x0000010120006e54},
    {"no-config-wce", ",config-wce=off", "", 0x79006654, 0x0000010130006654},
    {"no-discard", ",discard=off", "", 0x79004e54, 0x0000010130004e54},
    {"no-write-zeroes", ",write-zeroes=off", "", 0x79002e54, 0x0000010130002e54},
    {"no-queue-reset", ",queue_reset=off", "", 0x79006e54, 0x0000000130006e54},
};

static void test_features(gconstpointer data)
{
    const Features *f = data;
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n%s -device virtio-blk-pci,drive=n,addr=4.0%s",
                        f->node_opts, f->opts);
    VirtioPci *v = vpci_new(t, PCI_DEVFN(4, 0), VIRTIO_LEGACY);

    g_assert_cmphex(vpci_device_features(v), ==, f->legacy);
    vpci_free(v);
    v = vpci_new(t, PCI_DEVFN(4, 0), VIRTIO_MODERN);
    g_assert_cmphex(vpci_device_features(v), ==, f->modern);
    vpci_free(v);
    qt_stop(t);
}

static void test_packed_feature(void)
{
    static const Features f = {"packed", ",packed=on", "", 0x79006e54, 0x0000010530006e54};
    g_autofree char *why = NULL;
    QTest *t = qt_try_start(NULL, "-nodefaults -blockdev null-co,node-name=n "
                                  "-device virtio-blk-pci,drive=n,addr=4.0,packed=on", &why);

    if (!t) {
        g_test_skip(why);
        return;
    }
    qt_stop(t);
    test_features(&f);
}

/* --- Configuration space --- */

typedef struct Config {
    const char *name, *opts;
    uint32_t off;
    int size;
    uint64_t value;
} Config;

static const Config configs[] = {
    {"capacity", "", 0, 8, IMAGE_SIZE / 512},
    {"size-max", "", 8, 4, 0},
    {"seg-max", "", 12, 4, 254},
    {"seg-max-of-queue-size-64", ",queue-size=64", 12, 4, 62},
    {"seg-max-not-adjusted", ",queue-size=64,seg-max-adjust=off", 12, 4, 126},
    {"cylinders", "", 16, 2, 130},
    {"heads", "", 18, 1, 16},
    {"sectors", "", 19, 1, 63},
    {"sectors-of-4096-byte-blocks", ",logical_block_size=4096,physical_block_size=4096", 19, 1, 56},
    {"blk-size", "", 20, 4, 512},
    {"blk-size-4096", ",logical_block_size=4096,physical_block_size=4096", 20, 4, 4096},
    {"physical-block-exp", "", 24, 1, 0},
    {"physical-block-exp-4096", ",physical_block_size=4096", 24, 1, 3},
    {"alignment-offset", "", 25, 1, 0},
    {"min-io-size", ",min_io_size=4096", 26, 2, 8},
    {"opt-io-size", ",opt_io_size=65536", 28, 4, 128},
    {"wce", "", 32, 1, 1},
    {"num-queues", ",num-queues=3", 34, 2, 3},
    {"max-discard-sectors", "", 36, 4, 4194303},
    {"max-discard-sectors-set", ",max-discard-sectors=100", 36, 4, 100},
    {"max-discard-seg", "", 40, 4, 1},
    {"discard-alignment", "", 44, 4, 1},
    {"discard-alignment-set", ",discard_granularity=8192", 44, 4, 16},
    {"max-write-zeroes-sectors", "", 48, 4, 4194303},
    {"max-write-zeroes-seg", "", 52, 4, 1},
    {"may-unmap", "", 56, 1, 1},
    {"beyond", "", 57, 1, 0xff},
};

static void test_config(gconstpointer data)
{
    const Config *c = data;
    g_autofree char *image = big_image();
    QTest *t = qt_start("-nodefaults -blockdev driver=file,node-name=f,filename=%s "
                        "-device virtio-blk-pci,drive=f,addr=4.0%s", image, c->opts);

    for (size_t i = 0; i < G_N_ELEMENTS(ifaces); i++) {
        VirtioPci *v = vpci_new(t, PCI_DEVFN(4, 0), ifaces[i].via);

        g_assert_cmpuint(vpci_config_read(v, c->off, c->size), ==, c->value);
        vpci_free(v);
    }
    qt_stop(t);
    unlink(image);
}

/* The driver turns the write cache off; a reset brings the device's own setting back. */
static void test_wce_is_writable(gconstpointer data)
{
    const Iface *i = data;
    Setup s = setup(i->via, "", NULL);
    uint8_t buf[512] = {7};

    vpci_config_write(s.b->v, 32, 1, 0);
    g_assert_cmpuint(vpci_config_read(s.b->v, 32, 1), ==, 0);
    g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_OUT, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    vpci_config_write(s.b->v, 32, 1, 1);
    g_assert_cmpuint(vpci_config_read(s.b->v, 32, 1), ==, 1);
    vpci_config_write(s.b->v, 32, 1, 0);
    vpci_reset(s.b->v);
    g_assert_cmpuint(vpci_config_read(s.b->v, 32, 1), ==, 1);
    teardown(&s);
}

/* --- GET_ID --- */

typedef struct Serial {
    const char *name, *serial;
    size_t buffer;
    const char *expect; /* bytes written; the rest keeps 0xcc */
    size_t expect_len;
} Serial;

static const Serial serials[] = {
    {"short", "abc", 20, "abc\0", 4},
    {"of-19", "1234567890123456789", 20, "1234567890123456789\0", 20},
    {"of-20-has-no-terminator", "12345678901234567890", 20, "12345678901234567890", 20},
    {"of-25-is-cut", "1234567890123456789012345", 20, "12345678901234567890", 20},
    {"empty", "", 20, "\0", 1},
    {"small-buffer", "abcdef", 3, "abc", 3},
    {"large-buffer", "abc", 64, "abc\0", 4},
};

static void test_serial(gconstpointer data)
{
    const Serial *c = data;
    uint8_t buf[64], expect[64];
    g_autofree char *opts = *c->serial ? g_strdup_printf(",serial=%s", c->serial) : g_strdup("");
    Setup s = setup(VIRTIO_MODERN, opts, NULL);
    VblkReq *r;
    uint32_t used;

    memset(expect, 0xcc, sizeof(expect));
    memcpy(expect, c->expect, c->expect_len);
    r = vblk_add(s.b, 0, BLK_T_GET_ID, 0, NULL, c->buffer, NULL);
    qt_memset(s.t, r->data, 0xcc, c->buffer);
    vblk_kick(s.b, 0);
    g_assert_cmpint(vblk_finish_len(r, buf, &used), ==, BLK_S_OK);
    g_assert_cmpmem(buf, c->buffer, expect, c->buffer);
    g_assert_cmpuint(used, ==, c->buffer + 1);
    teardown(&s);
}

/* --- Discard and write zeroes --- */

typedef struct Segment {
    const char *name;
    uint32_t type;
    uint64_t sector;
    uint32_t sectors, flags;
    uint8_t status;
} Segment;

static const Segment segments[] = {
    {"write-zeroes/plain", BLK_T_WRITE_ZEROES, 8, 8, 0, BLK_S_OK},
    {"write-zeroes/unmap", BLK_T_WRITE_ZEROES, 8, 8, 1, BLK_S_OK},
    {"write-zeroes/unknown-flag", BLK_T_WRITE_ZEROES, 8, 8, 2, BLK_S_UNSUPP},
    {"write-zeroes/nothing", BLK_T_WRITE_ZEROES, 8, 0, 0, BLK_S_OK},
    {"write-zeroes/past-the-end", BLK_T_WRITE_ZEROES, IMAGE_SIZE / 512 - 1, 2, 0, BLK_S_IOERR},
    {"write-zeroes/too-many", BLK_T_WRITE_ZEROES, 0, 4194304, 0, BLK_S_IOERR},
    {"discard/plain", BLK_T_DISCARD, 8, 8, 0, BLK_S_OK},
    {"discard/with-flag", BLK_T_DISCARD, 8, 8, 1, BLK_S_UNSUPP},
    {"discard/past-the-end", BLK_T_DISCARD, IMAGE_SIZE / 512, 1, 0, BLK_S_IOERR},
    {"discard/too-many", BLK_T_DISCARD, 0, 4194304, 0, BLK_S_IOERR},
    {"discard/without-its-out-bit", BLK_T_DISCARD - 1, 8, 8, 0, BLK_S_UNSUPP},
};

static void test_segment(gconstpointer data)
{
    const Segment *g = data;
    Setup s = setup(VIRTIO_MODERN, "", NULL);
    uint8_t seg[16], buf[4096], zero[4096] = {0}, before[4096];
    bool zeroes = g->type == BLK_T_WRITE_ZEROES && g->status == BLK_S_OK && g->sectors;

    store_le64(seg, g->sector);
    store_le32(seg + 8, g->sectors);
    store_le32(seg + 12, g->flags);
    image_read(s.image, 4096, before, sizeof(before));
    g_assert_cmpint(vblk_rw(s.b, 0, g->type, 0, seg, sizeof(seg)), ==, g->status);
    image_read(s.image, 4096, buf, sizeof(buf));
    g_assert_cmpmem(buf, sizeof(buf), zeroes ? zero : before, sizeof(buf));
    teardown(&s);
}

/* --- Queues --- */

static void test_queue_sizes(gconstpointer data)
{
    const Iface *i = data;
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0,"
                        "num-queues=2,queue-size=64");
    VirtioPci *v = vpci_new(t, PCI_DEVFN(4, 0), i->via);

    g_assert_cmpuint(vpci_queue_size(v, 0), ==, 64);
    g_assert_cmpuint(vpci_queue_size(v, 1), ==, 64);
    g_assert_cmpuint(vpci_queue_size(v, 2), ==, 0);
    g_assert_cmpuint(vpci_queue_size(v, 1023), ==, 0);
    g_assert_cmpuint(vpci_queue_size(v, 0xffff), ==, 0);
    if (i->via != VIRTIO_LEGACY) {
        g_assert_cmpuint(vpci_common_read(v, 0x12, 2), ==, 2);
    }
    vpci_free(v);
    qt_stop(t);
}

/* Setting up and notifying a queue that is not there does nothing, and the real one goes on. */
static void test_absent_queue(gconstpointer data)
{
    const Iface *i = data;
    Setup s = setup(i->via, "", NULL);
    uint64_t page = guest_alloc(s.t, 16384);
    uint8_t buf[512];

    vpci_queue_enable(s.b->v, 2, page, page + 4096, page + 8192);
    for (int q = 2; q < 70; q += 7) {
        vpci_notify(s.b->v, (uint16_t)q);
    }
    g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmphex(vpci_status(s.b->v) & VIRTIO_S_NEEDS_RESET, ==, 0);
    guest_free(s.t, page);
    teardown(&s);
}

/* A request that is not queued before the doorbell: nothing happens, nothing breaks. */
static void test_spurious_kick(gconstpointer data)
{
    const Iface *i = data;
    Setup s = setup(i->via, "", NULL);
    uint8_t buf[512];

    for (int k = 0; k < 20; k++) {
        vpci_notify(s.b->v, 0);
    }
    g_assert_cmpuint(vq_used_idx(s.b->vq[0]), ==, 0);
    g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    teardown(&s);
}

/* The ring's indexes pass 2^16 and nothing is lost. */
static void test_index_wrap(void)
{
    enum { BATCH = 64 };
    QTestOpts qo = {.shared_mib = 16};
    VblkReq *r[BATCH];
    Setup s = {0};

    s.t = qt_start_opts(&qo, "-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n "
                             "-device virtio-blk-pci,drive=n,iothread=io0,addr=4.0");
    s.b = vblk_new(s.t, &(VblkOpts){.via = VIRTIO_MODERN});
    for (unsigned int done = 0; done < 0x10000 + 4 * BATCH; done += BATCH) {
        for (int i = 0; i < BATCH; i++) {
            r[i] = vblk_add(s.b, 0, BLK_T_FLUSH, 0, NULL, 0, NULL);
        }
        vblk_kick(s.b, 0);
        for (int i = 0; i < BATCH; i++) {
            g_assert_cmpint(vblk_finish(r[i], NULL), ==, BLK_S_OK);
        }
    }
    g_assert_cmpuint(vq_used_idx(s.b->vq[0]), ==, 4 * BATCH);
    vblk_free(s.b);
    qt_stop(s.t);
}

typedef struct Start {
    const char *name;
    VblkOpts o;
} Start;

static const Start starts[] = {
    {"modern/no-indirect", {.via = VIRTIO_MODERN, .without = VIRTIO_F(VIRTIO_F_INDIRECT)}},
    {"modern/no-event-idx", {.via = VIRTIO_MODERN, .without = VIRTIO_F(VIRTIO_F_EVENT_IDX)}},
    {"modern/no-flush", {.via = VIRTIO_MODERN, .without = VIRTIO_F(BLK_F_FLUSH) | VIRTIO_F(BLK_F_CONFIG_WCE)}},
    {"modern/small-queue", {.via = VIRTIO_MODERN, .queue_size = 4}},
    {"modern/no-version-1", {.via = VIRTIO_MODERN, .without = VIRTIO_F(VIRTIO_F_VERSION_1)}},
    {"modern/nothing-optional", {.via = VIRTIO_MODERN, .without = ~VIRTIO_F(VIRTIO_F_VERSION_1)}},
    {"legacy/nothing-optional", {.via = VIRTIO_LEGACY, .without = ~0ULL}},
};

static void test_negotiation(gconstpointer data)
{
    const Start *st = data;
    Setup s = setup(st->o.via, "", &st->o);
    uint8_t buf[1024], expect[1024];

    for (int i = 0; i < 20; i++) {
        fill_pattern(expect, (uint64_t)i * 512, sizeof(expect));
        g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_IN, (uint64_t)i, buf, sizeof(buf)), ==, BLK_S_OK);
        g_assert_cmpmem(buf, sizeof(buf), expect, sizeof(expect));
    }
    teardown(&s);
}

/* Twenty times reset and up again, requests in between, with requests in flight at the reset. */
static void test_reset(gconstpointer data)
{
    const Iface *i = data;
    Setup s = setup(i->via, "", NULL);
    uint8_t buf[4096], expect[4096];

    fill_pattern(expect, 0, sizeof(expect));
    for (int k = 0; k < 20; k++) {
        vblk_add(s.b, 0, BLK_T_IN, 0, NULL, 4096, NULL);
        vblk_kick(s.b, 0);
        vblk_free(s.b);
        s.b = vblk_new(s.t, &(VblkOpts){.via = i->via});
        g_assert_cmpint(vblk_rw(s.b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
        g_assert_cmpmem(buf, sizeof(buf), expect, sizeof(expect));
    }
    teardown(&s);
}

static void test_read_only(gconstpointer data)
{
    const Iface *i = data;
    g_autofree char *image = big_image();
    QTest *t = qt_start("-nodefaults -blockdev driver=file,node-name=f,filename=%s,read-only=on "
                        "-device virtio-blk-pci,drive=f,addr=4.0", image);
    Vblk *b = vblk_new(t, &(VblkOpts){.via = i->via});
    uint8_t buf[512] = {1};

    g_assert_true(b->offered & VIRTIO_F(BLK_F_RO));
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_OUT, 0, buf, sizeof(buf)), ==, BLK_S_IOERR);
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmphex(buf[1], ==, image_pattern(1));
    vblk_free(b);
    qt_stop(t);
    unlink(image);
}

/* Both notify offsets and queue numbers agree, which libqos relies on. */
static void test_notify_offsets(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0,num-queues=8");
    VirtioPci *v = vpci_new(t, PCI_DEVFN(4, 0), VIRTIO_MODERN);

    for (uint16_t q = 0; q < 10; q++) {
        vpci_common_write(v, 0x16, 2, q);
        g_assert_cmpuint(vpci_common_read(v, 0x1e, 2), ==, q);
    }
    vpci_free(v);
    qt_stop(t);
}

static void add_tables(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(identities); i++) {
        add_case(test_identity, &identities[i], "/virtio-blk/identity/%s", identities[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(features); i++) {
        add_case(test_features, &features[i], "/virtio-blk/features/%s", features[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(configs); i++) {
        add_case(test_config, &configs[i], "/virtio-blk/config/%s", configs[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(serials); i++) {
        add_case(test_serial, &serials[i], "/virtio-blk/get-id/%s", serials[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(segments); i++) {
        add_case(test_segment, &segments[i], "/virtio-blk/%s", segments[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
        add_case(test_negotiation, &starts[i], "/virtio-blk/negotiation/%s", starts[i].name);
    }
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(ifaces); i++) {
        const Iface *f = &ifaces[i];

        add_case(test_read_write, f, "/virtio-blk/%s/read-write-reaches-the-image", f->name);
        add_case(test_wce_is_writable, f, "/virtio-blk/%s/write-cache-is-the-drivers-until-reset", f->name);
        add_case(test_queue_sizes, f, "/virtio-blk/%s/queue-sizes", f->name);
        add_case(test_absent_queue, f, "/virtio-blk/%s/absent-queue-is-ignored", f->name);
        add_case(test_spurious_kick, f, "/virtio-blk/%s/spurious-kick-is-harmless", f->name);
        add_case(test_reset, f, "/virtio-blk/%s/reset-with-requests-in-flight", f->name);
        add_case(test_read_only, f, "/virtio-blk/%s/read-only-refuses-writes", f->name);
    }
    add_tables();
    g_test_add_func("/virtio-blk/features/packed", test_packed_feature);
    g_test_add_func("/virtio-blk/capabilities", test_capabilities);
    g_test_add_func("/virtio-blk/notify-offsets", test_notify_offsets);
    g_test_add_func("/virtio-blk/index-wrap", test_index_wrap);
    return g_test_run();
}
