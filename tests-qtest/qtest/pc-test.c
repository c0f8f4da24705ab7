/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client finds on the machine "pc": PCI functions, fw_cfg, ports, memory, hot-plug registers. */
#include "base/bswap.h"
#include "common.h"

#include <stdio.h>
#include <string.h>

typedef struct Function {
    const char *name;
    int devfn;
    uint16_t vendor, device;
    uint32_t class; /* 24 bits */
    uint8_t revision, header;
} Function;

static const Function functions[] = {
    {"host-bridge", PCI_DEVFN(0, 0), 0x8086, 0x1237, 0x060000, 0x02, 0x00},
    {"isa-bridge", PCI_DEVFN(1, 0), 0x8086, 0x7000, 0x060100, 0x00, 0x80},
    {"ide", PCI_DEVFN(1, 1), 0x8086, 0x7010, 0x010180, 0x00, 0x00},
    {"power-management", PCI_DEVFN(1, 3), 0x8086, 0x7113, 0x068000, 0x03, 0x00},
};

static void test_function(gconstpointer data)
{
    const Function *f = data;
    QTest *t = qt_start("-nodefaults");

    g_assert_cmphex(pci_cfg_readw(t, f->devfn, PCI_CFG_VENDOR), ==, f->vendor);
    g_assert_cmphex(pci_cfg_readw(t, f->devfn, PCI_CFG_DEVICE), ==, f->device);
    g_assert_cmphex(pci_cfg_readl(t, f->devfn, PCI_CFG_REVISION) >> 8, ==, f->class);
    g_assert_cmphex(pci_cfg_readb(t, f->devfn, PCI_CFG_REVISION), ==, f->revision);
    g_assert_cmphex(pci_cfg_readb(t, f->devfn, PCI_CFG_HEADER_TYPE), ==, f->header);
    g_assert_cmphex(pci_cfg_readl(t, f->devfn, PCI_CFG_SUBSYS_VENDOR), ==, 0x11001af4);
    qt_stop(t);
}

static void test_nothing_else(void)
{
    QTest *t = qt_start("-nodefaults");

    for (int devfn = 0; devfn < 256; devfn++) {
        bool known = false;

        for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
            known |= functions[i].devfn == devfn;
        }
        if (!known) {
            g_assert_cmphex(pci_cfg_readl(t, devfn, 0), ==, 0xffffffff);
        }
    }
    qt_stop(t);
}

/* Devices without an address go to the first free slots, in order. */
static void test_auto_slots(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=a -blockdev null-co,node-name=b "
                        "-device virtio-blk-pci,drive=a -device virtio-blk-pci,drive=b");

    g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(2, 0), 0), ==, 0x10011af4);
    g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(3, 0), 0), ==, 0x10011af4);
    g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(4, 0), 0), ==, 0xffffffff);
    qt_stop(t);
}

/* Some clients leave the low bits of the offset in the address register and always use port 0xcfc. */
static void test_config_port_habits(void)
{
    QTest *t = qt_start("-nodefaults");

    g_assert_cmphex(qt_inl(t, 0xcf8), ==, 0);
    qt_outl(t, 0xcf8, 0x80000802);
    g_assert_cmphex(qt_inw(t, 0xcfc), ==, 0x7000);
    qt_outl(t, 0xcf8, 0x80000800);
    g_assert_cmphex(qt_inw(t, 0xcfe), ==, 0x7000);
    g_assert_cmphex(qt_inb(t, 0xcff), ==, 0x70);
    g_assert_cmphex(qt_inl(t, 0xcf8), ==, 0x80000800);
    /* Without the enable bit there is no device. */
    qt_outl(t, 0xcf8, 0x00000800);
    g_assert_cmphex(qt_inl(t, 0xcfc), ==, 0xffffffff);
    qt_stop(t);
}

static void test_command_bits(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0");
    int devfn = PCI_DEVFN(4, 0);

    g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_COMMAND), ==, 0);
    for (uint16_t v = 0; v < 8; v++) {
        pci_cfg_writew(t, devfn, PCI_CFG_COMMAND, v);
        g_assert_cmphex(pci_cfg_readw(t, devfn, PCI_CFG_COMMAND), ==, v);
    }
    /* The identity cannot be written. */
    pci_cfg_writel(t, devfn, 0, 0x12345678);
    g_assert_cmphex(pci_cfg_readl(t, devfn, 0), ==, 0x10011af4);
    qt_stop(t);
}

/* A BAR answers where it was put, only while its decoder is on, and follows when moved. */
static void test_bar_moves(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0");
    int devfn = PCI_DEVFN(4, 0);

    pci_cfg_writel(t, devfn, PCI_CFG_BAR0, 0xc000);
    g_assert_cmphex(pci_cfg_readl(t, devfn, PCI_CFG_BAR0), ==, 0xc001);
    g_assert_cmphex(qt_inw(t, 0xc00c), ==, 0xffff);
    pci_cfg_writew(t, devfn, PCI_CFG_COMMAND, PCI_CMD_IO);
    g_assert_cmphex(qt_inw(t, 0xc00c), ==, 256);
    pci_cfg_writel(t, devfn, PCI_CFG_BAR0, 0xd000);
    g_assert_cmphex(qt_inw(t, 0xc00c), ==, 0xffff);
    g_assert_cmphex(qt_inw(t, 0xd00c), ==, 256);
    pci_cfg_writew(t, devfn, PCI_CFG_COMMAND, 0);
    g_assert_cmphex(qt_inw(t, 0xd00c), ==, 0xffff);
    qt_stop(t);
}

/* --- fw_cfg --- */

static void test_fw_cfg_signature(void)
{
    QTest *t = qt_start("-nodefaults");
    uint8_t b[8];

    qt_fw_cfg_read(t, 0, b, 8);
    g_assert_cmpmem(b, 8, "QEMU\0\0\0\0", 8);
    qt_fw_cfg_read(t, 1, b, 4);
    g_assert_cmphex(load_le32(b), ==, 3);
    qt_stop(t);
}

typedef struct Ram {
    const char *arg;
    uint64_t bytes;
} Ram;

static const Ram rams[] = {{"", 128ULL << 20}, {"-m 64", 64ULL << 20}, {"-m 1G", 1ULL << 30}, {"-m size=96M", 96ULL << 20}};

static void test_ram_size(gconstpointer data)
{
    const Ram *r = data;
    QTest *t = qt_start("-nodefaults %s", r->arg);
    uint8_t b[8];

    qt_fw_cfg_read(t, 3, b, 8);
    g_assert_cmpuint(load_le64(b), ==, r->bytes);
    qt_writeq(t, r->bytes - 8, 0x1122334455667788);
    g_assert_cmphex(qt_readq(t, r->bytes - 8), ==, 0x1122334455667788);
    qt_writeq(t, r->bytes, 0x1122334455667788);
    g_assert_cmphex(qt_readq(t, r->bytes), ==, 0);
    qt_stop(t);
}

static void test_fw_cfg_directory(void)
{
    QTest *t = qt_start("-nodefaults");
    uint32_t size = 0;
    uint16_t key = qt_fw_cfg_file(t, "etc/e820", &size);
    uint8_t entry[20];
    bool low_ram = false;

    g_assert_cmphex(key, >=, 0x20);
    g_assert_cmpuint(size % 20, ==, 0);
    qt_fw_cfg_read(t, key, entry, sizeof(entry));
    for (uint32_t i = 0; i < size / 20; i++) {
        low_ram |= load_le64(entry) == 0 && load_le64(entry + 8) == 128 << 20 && load_le32(entry + 16) == 1;
        for (size_t k = 0; k < sizeof(entry); k++) {
            entry[k] = qt_inb(t, 0x511);
        }
    }
    g_assert_true(low_ram);
    g_assert_cmpuint(qt_fw_cfg_file(t, "etc/nosuch", &size), ==, 0);
    qt_stop(t);
}

static void test_fw_cfg_past_the_end(void)
{
    QTest *t = qt_start("-nodefaults");
    uint8_t b[64];

    qt_fw_cfg_read(t, 3, b, sizeof(b));
    for (int i = 8; i < 64; i++) {
        g_assert_cmphex(b[i], ==, 0);
    }
    qt_stop(t);
}

/* --- Address space --- */

static void test_unassigned(void)
{
    QTest *t = qt_start("-nodefaults");

    g_assert_cmphex(qt_inb(t, 0x1234), ==, 0xff);
    g_assert_cmphex(qt_inw(t, 0x1234), ==, 0xffff);
    g_assert_cmphex(qt_inl(t, 0x1234), ==, 0xffffffff);
    qt_outl(t, 0x1234, 7);
    g_assert_cmphex(qt_readq(t, 0xd0000000), ==, 0);
    qt_writeq(t, 0xd0000000, 7);
    g_assert_cmphex(qt_readq(t, 0xd0000000), ==, 0);
    g_assert_cmphex(qt_readq(t, 0xfffffffffffffff8), ==, 0);
    qt_assert_alive(t);
    qt_stop(t);
}

/* RAM of 4 GiB: three below the hole, the rest from 4 GiB up. */
static void test_ram_split(void)
{
    QTest *t = qt_start("-nodefaults -m 4G");

    qt_writel(t, 0xbffffffc, 0xaaaa5555);
    g_assert_cmphex(qt_readl(t, 0xbffffffc), ==, 0xaaaa5555);
    g_assert_cmphex(qt_readl(t, 0xc0000000), ==, 0);
    qt_writel(t, 0x100000000, 0x5555aaaa);
    g_assert_cmphex(qt_readl(t, 0x100000000), ==, 0x5555aaaa);
    qt_writel(t, 0x13ffffffc, 0x12344321);
    g_assert_cmphex(qt_readl(t, 0x13ffffffc), ==, 0x12344321);
    qt_writel(t, 0x140000000, 1);
    g_assert_cmphex(qt_readl(t, 0x140000000), ==, 0);
    qt_stop(t);
}

/* The driver's shared view and the socket's view are one memory. */
static void test_shared_ram(void)
{
    QTestOpts o = {.shared_mib = 32};
    QTest *t = qt_start_opts(&o, "-nodefaults");

    qt_writeq(t, 0x123450, 0x0102030405060708);
    g_assert_cmphex(load_le64(t->ram + 0x123450), ==, 0x0102030405060708);
    store_le64(t->ram + 0x1ffff8, 99);
    g_assert_cmphex(qt_readq(t, 0x1ffff8), ==, 99);
    qt_stop(t);
}

/* --- Hot-plug --- */

enum { HP_UP = 0xae00, HP_DOWN = 0xae04, HP_EJECT = 0xae08, HP_REMOVABLE = 0xae0c };

static void plug(QTest *t)
{
    json_decref(qmp_must(t->qmp, "device_add", "{s:s,s:s,s:s,s:s}", "driver", "virtio-blk-pci", "id", "v1", "drive", "n",
                         "addr", "6"));
}

static void test_hot_plug(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n,size=1048576,read-zeroes=on");
    uint8_t buf[512];
    json_t *e;
    Vblk *b;

    g_assert_cmphex(qt_inl(t, HP_REMOVABLE), ==, 0xfffffffc);
    plug(t);
    g_assert_cmphex(qt_inl(t, HP_UP), ==, 1 << 6);
    g_assert_cmphex(qt_inl(t, HP_UP), ==, 0);
    b = vblk_new(t, &(VblkOpts){.devfn = PCI_DEVFN(6, 0), .via = VIRTIO_MODERN});
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    vblk_free(b);
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v1"));
    g_assert_cmphex(qt_inl(t, HP_DOWN), ==, 1 << 6);
    g_assert_cmpuint(qmp_events_pending(t->qmp, "DEVICE_DELETED"), ==, 0);
    qt_outl(t, HP_EJECT, 1 << 6);
    for (int i = 0; i < 2; i++) {
        e = qmp_event(t->qmp, "DEVICE_DELETED");
        g_assert_cmpstr(json_string_value(json_object_get(json_object_get(e, "data"), "path")), ==,
                        i ? "/machine/peripheral/v1" : "/machine/peripheral/v1/virtio-backend");
        json_decref(e);
    }
    g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(6, 0), 0), ==, 0xffffffff);
    /* Id, slot and node are free again. */
    plug(t);
    qt_stop(t);
}

static void test_unplug_waits_for_reset(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n");
    g_autofree char *again = NULL;

    plug(t);
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v1"));
    g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(6, 0), 0), ==, 0x10011af4);
    again = qmp_must_fail(t->qmp, "device_del", "{s:s}", "id", "v1");
    g_assert_cmpstr(again, ==, "GenericError: Device v1 is already in the process of unplug");
    json_decref(qmp_must(t->qmp, "system_reset", NULL));
    json_decref(qmp_event(t->qmp, "RESET"));
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
    json_decref(qmp_event(t->qmp, "DEVICE_DELETED"));
    g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(6, 0), 0), ==, 0xffffffff);
    qt_stop(t);
}

static void test_plug_refusals(void)
{
    static const char *const wrong[][4] = {
        /* driver, property, value, complaint */
        {"nosuch", "id", "x", "'nosuch' is not a valid device model name"},
        {"virtio-blk-pci", "drive", "zz", "Property 'virtio-blk-device.drive' can't find value 'zz'"},
        {"virtio-blk-pci", "foo", "1", "Property 'virtio-blk-pci.foo' not found"},
        {"virtio-blk-pci", "bus", "nosuch", "Bus 'nosuch' not found"},
    };
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n");

    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *err =
            qmp_must_fail(t->qmp, "device_add", "{s:s,s:s}", "driver", wrong[i][0], wrong[i][1], wrong[i][2]);
        g_autofree char *expect = g_strdup_printf("GenericError: %s", wrong[i][3]);

        g_assert_cmpstr(err, ==, expect);
    }
    plug(t);
    qt_stop(t);
}

/* System reset puts the device back: no BARs, no status. */
static void test_system_reset(void)
{
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on "
                        "-device virtio-blk-pci,drive=n,iothread=io0,addr=4.0");
    VblkOpts o = {.via = VIRTIO_MODERN, .msix = true};
    uint8_t buf[512];

    for (int i = 0; i < 5; i++) {
        Vblk *b = vblk_new(t, &o);

        g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
        vblk_add(b, 0, BLK_T_IN, 0, NULL, 512, NULL);
        vblk_kick(b, 0);
        json_decref(qmp_must(t->qmp, "system_reset", NULL));
        json_decref(qmp_event(t->qmp, "RESET"));
        g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(4, 0), PCI_CFG_BAR0), ==, 1);
        g_assert_cmphex(pci_cfg_readw(t, PCI_DEVFN(4, 0), PCI_CFG_COMMAND), ==, 0);
        /* The driver's own state goes with the BARs: put them back before it says good-bye. */
        t->next_io = 0xc000;
        t->next_mem = 0xe0000000;
        for (int k = 0; k < 6; k++) {
            b->v->pci->bar[k].addr = 0;
        }
        pci_dev_enable(b->v->pci);
        pci_map_bar(b->v->pci, 4);
        g_assert_cmphex(vpci_status(b->v), ==, 0);
        vblk_free(b);
        t->next_mem = 0xe0000000;
    }
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(functions); i++) {
        add_case(test_function, &functions[i], "/pc/pci/%s", functions[i].name);
    }
    g_test_add_func("/pc/pci/nothing-else-without-defaults", test_nothing_else);
    g_test_add_func("/pc/pci/slots-are-given-in-order", test_auto_slots);
    g_test_add_func("/pc/pci/config-ports", test_config_port_habits);
    g_test_add_func("/pc/pci/command-register", test_command_bits);
    g_test_add_func("/pc/pci/bar-moves", test_bar_moves);
    g_test_add_func("/pc/fw_cfg/signature", test_fw_cfg_signature);
    g_test_add_func("/pc/fw_cfg/directory", test_fw_cfg_directory);
    g_test_add_func("/pc/fw_cfg/past-the-end-is-zero", test_fw_cfg_past_the_end);
    for (size_t i = 0; i < G_N_ELEMENTS(rams); i++) {
        add_case(test_ram_size, &rams[i], "/pc/ram/%" G_GUINT64_FORMAT "-mib", rams[i].bytes >> 20);
    }
    g_test_add_func("/pc/ram/split-at-3-gib", test_ram_split);
    g_test_add_func("/pc/ram/shared", test_shared_ram);
    g_test_add_func("/pc/unassigned", test_unassigned);
    g_test_add_func("/pc/hot-plug/round-trip", test_hot_plug);
    g_test_add_func("/pc/hot-plug/unplug-waits-for-reset", test_unplug_waits_for_reset);
    g_test_add_func("/pc/hot-plug/refusals", test_plug_refusals);
    g_test_add_func("/pc/system-reset", test_system_reset);
    return g_test_run();
}
