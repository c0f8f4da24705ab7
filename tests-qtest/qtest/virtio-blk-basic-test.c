/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-pci from a driver's view: identity, features, configuration, requests, on both interfaces. */
#include "common.h"

#include <string.h>

#define IMAGE_SIZE (1 << 20)

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

static Setup setup(const Iface *i, const char *device_opts, const VblkOpts *base)
{
    VblkOpts o = base ? *base : (VblkOpts){0};
    Setup s = {.image = image_new(IMAGE_SIZE)};

    o.via = i->via;
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
    g_free(s->image);
}

static void test_read_write(gconstpointer data)
{
    Setup s = setup(data, "", NULL);
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

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(ifaces); i++) {
        const Iface *f = &ifaces[i];

        add_case(test_read_write, f, "/virtio-blk/%s/read-write-reaches-the-image", f->name);
    }
    return g_test_run();
}
