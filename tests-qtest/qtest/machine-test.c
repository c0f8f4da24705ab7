/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine from outside: hot-plug and unplug, reset, stop and cont, memory, and a guest that pokes at everything. */
#include "common.h"

#include <stdio.h>
#include <string.h>

#define SLOT 6
#define EJECT_PORT 0xae08

static const char DEVICE[] = "{s:s, s:s, s:s, s:s, s:s}";

static void plug(QTest *t)
{
    json_decref(qmp_must(t->qmp, "device_add", DEVICE, "driver", "virtio-blk-pci", "id", "hp", "drive", "n", "addr", "6",
                         "iothread", "io0"));
}

static QTest *start(const char *more)
{
    return qt_start("-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on %s",
                    more);
}

static Vblk *drive(QTest *t)
{
    VblkOpts o = {.devfn = PCI_DEVFN(SLOT, 0), .via = VIRTIO_MODERN};

    return vblk_new(t, &o);
}

/* The two events that tell that the device and its backend are gone, in that order. */
static void expect_deleted(QTest *t)
{
    static const char *const paths[] = {"/machine/peripheral/hp/virtio-backend", "/machine/peripheral/hp"};

    for (int i = 0; i < 2; i++) {
        json_t *event = qmp_event(t->qmp, "DEVICE_DELETED"), *data = json_object_get(event, "data");
        g_assert_cmpstr(json_string_value(json_object_get(data, "path")), ==, paths[i]);
        g_assert_cmpstr(json_string_value(json_object_get(data, "device")), ==, i ? "hp" : NULL);
        json_decref(event);
    }
}

static void submit_reads(Vblk *b, int n)
{
    for (int i = 0; i < n; i++) {
        vblk_add(b, 0, BLK_T_IN, 0, NULL, 4096, NULL);
    }
    vblk_kick(b, 0);
}

/* A driver whose device was taken away cannot be freed, which would reset the device: it is put aside until the end. */
static void forget(Vblk *b, QTest *t)
{
    static GPtrArray *forgotten;

    if (!forgotten) {
        forgotten = g_ptr_array_new();
    }
    g_ptr_array_add(forgotten, b);
    qt_assert_alive(t);
}

static void test_eject(void)
{
    QTest *t = start("");
    uint8_t buf[512];

    for (int i = 0; i < 10; i++) {
        plug(t);
        g_assert_cmphex(qt_inl(t, 0xae00), ==, 1 << SLOT);
        Vblk *b = drive(t);
        g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
        vblk_free(b);
        json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "hp"));
        g_assert_cmphex(qt_inl(t, 0xae04), ==, 1 << SLOT);
        g_autofree char *why = qmp_must_fail(t->qmp, "device_del", "{s:s}", "id", "hp");
        g_assert_cmpstr(why, ==, "GenericError: Device hp is already in the process of unplug");
        g_assert_cmpuint(qmp_events_pending(t->qmp, "DEVICE_DELETED"), ==, 0);
        qt_outl(t, EJECT_PORT, 1 << SLOT);
        expect_deleted(t);
        g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(SLOT, 0), 0), ==, 0xffffffff);
    }
    qt_stop(t);
}

static void test_eject_under_io(void)
{
    QTest *t = start("");

    for (int i = 0; i < 10; i++) {
        plug(t);
        Vblk *b = drive(t);
        submit_reads(b, 64);
        qt_outl(t, EJECT_PORT, 1 << SLOT); /* the guest may eject unasked */
        expect_deleted(t);
        forget(b, t);
    }
    plug(t);
    Vblk *b = drive(t);
    uint8_t buf[512];
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    vblk_free(b);
    qt_stop(t);
}

static void test_reset_unplugs(void)
{
    QTest *t = start("");

    plug(t);
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "hp"));
    json_decref(qmp_must(t->qmp, "system_reset", NULL));
    json_t *reset = qmp_event(t->qmp, "RESET");
    g_assert_cmpstr(json_string_value(json_object_get(json_object_get(reset, "data"), "reason")), ==,
                    "host-qmp-system-reset");
    json_decref(reset);
    expect_deleted(t);
    qt_stop(t);
}

static void test_reset_under_io(void)
{
    QTest *t = start("-device virtio-blk-pci,drive=n,id=hp,addr=6,iothread=io0,num-queues=2");

    for (int i = 0; i < 10; i++) {
        Vblk *b = drive(t);
        submit_reads(b, 64);
        if (i & 1) {
            qt_outb(t, 0xcf9, 6);
        } else {
            json_decref(qmp_must(t->qmp, "system_reset", NULL));
        }
        json_t *reset = qmp_event(t->qmp, "RESET");
        json_t *data = json_object_get(reset, "data");
        g_assert_cmpint(json_is_true(json_object_get(data, "guest")), ==, i & 1);
        json_decref(reset);
        g_assert_cmphex(pci_cfg_readw(t, PCI_DEVFN(SLOT, 0), PCI_CFG_COMMAND), ==, 0);
        g_assert_cmphex(pci_cfg_readl(t, PCI_DEVFN(SLOT, 0), PCI_CFG_BAR0), ==, 1);
        forget(b, t);
    }
    Vblk *b = drive(t);
    uint8_t buf[512];
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    vblk_free(b);
    qt_stop(t);
}

static const char *status(QTest *t)
{
    static char name[32];
    json_t *s = qmp_must(t->qmp, "query-status", NULL);

    g_strlcpy(name, json_string_value(json_object_get(s, "status")), sizeof(name));
    json_decref(s);
    return name;
}

static void test_stop_cont(void)
{
    QTest *t = start("-S -device virtio-blk-pci,drive=n,id=hp,addr=6,iothread=io0");

    g_assert_cmpstr(status(t), ==, "prelaunch");
    g_autofree char *text = qmp_hmp(t->qmp, "info status");
    g_assert_cmpstr(text, ==, "VM status: paused (prelaunch)\r\n");
    json_decref(qmp_must(t->qmp, "cont", NULL));
    g_assert_cmpuint(qmp_events_pending(t->qmp, "RESUME"), ==, 1);
    Vblk *b = drive(t);
    VblkReq *reqs[64];
    for (int i = 0; i < 64; i++) {
        reqs[i] = vblk_add(b, 0, BLK_T_IN, 0, NULL, 4096, NULL);
    }
    vblk_kick(b, 0);
    json_decref(qmp_must(t->qmp, "stop", NULL));
    g_assert_cmpuint(qmp_events_pending(t->qmp, "STOP"), ==, 1);
    g_assert_cmpstr(status(t), ==, "paused");
    /* What was in flight is done when stop returns. */
    g_assert_cmpuint(vblk_reap(b, 0), ==, 64);
    for (int i = 0; i < 64; i++) {
        g_assert_cmpint(vblk_finish(reqs[i], NULL), ==, BLK_S_OK);
    }
    json_decref(qmp_must(t->qmp, "stop", NULL));
    g_assert_cmpuint(qmp_events_pending(t->qmp, "STOP"), ==, 1);
    json_decref(qmp_must(t->qmp, "cont", NULL));
    g_assert_cmpstr(status(t), ==, "running");
    g_autofree char *running = qmp_hmp(t->qmp, "info status");
    g_assert_cmpstr(running, ==, "VM status: running\r\n");
    vblk_free(b);
    qt_stop(t);
}

/* --- Memory --- */

static void test_high_memory(gconstpointer args)
{
    QTest *t = start(args);
    uint8_t pattern[4096], buf[4096];
    uint64_t size, high = 0x100000000;

    qt_fw_cfg_read(t, 3, &size, sizeof(size));
    g_assert_cmpuint(size, ==, 4ULL << 30);
    memset(pattern, 0xa7, sizeof(pattern));
    qt_memwrite(t, high, pattern, sizeof(pattern));
    qt_memread(t, high, buf, sizeof(buf));
    g_assert_cmpmem(buf, sizeof(buf), pattern, sizeof(pattern));
    qt_memwrite(t, 0xc0000000 - 8, pattern, 16);
    g_assert_cmphex(qt_readq(t, 0xc0000000 - 8), ==, 0xa7a7a7a7a7a7a7a7);
    g_assert_cmphex(qt_readq(t, 0xc0000000), ==, 0);
    g_assert_cmphex(qt_readl(t, 0xfffffff0), ==, 0x00e05bea);
    qt_stop(t);
}

static void test_none(void)
{
    const QTestOpts o = {.machine = "none"};
    QTest *t = qt_start_opts(&o, "");
    static const char *const lines[] = {"readb 0", "outb 0x80 1", "memset 0 16 1", "write 0 1 0x00", "b64read 0 1"};

    for (unsigned int i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autofree char *reply = qt_command(t, "%s", lines[i]);
        g_assert_true(g_str_has_prefix(reply, "FAIL "));
    }
    json_t *cpus = qmp_must(t->qmp, "query-cpus-fast", NULL);
    g_assert_cmpuint(json_array_size(cpus), ==, 0);
    json_decref(cpus);
    qt_stop(t);
}

static void test_q35(void)
{
    const QTestOpts o = {.machine = "q35"};
    QTest *t = qt_start_opts(&o, "-nodefaults -blockdev null-co,node-name=n,size=1048576,read-zeroes=on "
                                 "-device virtio-blk-pci,drive=n,id=hp,addr=6");
    uint8_t buf[512];
    Vblk *b = drive(t);

    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 0, buf, sizeof(buf)), ==, BLK_S_OK);
    vblk_free(b);
    g_autofree char *why = qmp_must_fail(t->qmp, "device_del", "{s:s}", "id", "hp");
    g_assert_cmpstr(why, ==, "GenericError: Bus 'pcie.0' does not support hotplugging");
    qt_stop(t);
}

/* --- A guest that pokes at everything --- */

static uint64_t some_address(void)
{
    static const uint64_t bases[] = {0xe0000000, 0xe0001000, 0xe0004000, 0xfebff000, 0xfffffff0, 0, 0x8000000, 0xfee00000};

    return bases[g_test_rand_int_range(0, G_N_ELEMENTS(bases))] + (uint64_t)g_test_rand_int_range(0, 0x4000);
}

static uint32_t some_value(void)
{
    static const uint32_t values[] = {0, 1, 0xffffffff, 0x80000000, 0xe0000000, 0xc001, 0x10000, 7, 0xf, 0x1000};

    return g_test_rand_bit() ? values[g_test_rand_int_range(0, G_N_ELEMENTS(values))] : (uint32_t)g_test_rand_int();
}

static void test_poke(void)
{
    QTest *t = start("-device virtio-blk-pci,drive=n,id=hp,addr=6,iothread=io0,num-queues=4");

    for (int i = 0; i < 6000; i++) {
        uint64_t addr = some_address();
        uint16_t port = (uint16_t)(g_test_rand_bit() ? g_test_rand_int_range(0xc000, 0xc080)
                                                     : g_test_rand_int_range(0, 0x10000));

        if (i % 500 == 0) {
            /* Put the device where the pokes go, as a driver would. */
            pci_cfg_writew(t, PCI_DEVFN(SLOT, 0), PCI_CFG_COMMAND, 7);
            pci_cfg_writel(t, PCI_DEVFN(SLOT, 0), PCI_CFG_BAR0, 0xc000);
            pci_cfg_writel(t, PCI_DEVFN(SLOT, 0), PCI_CFG_BAR0 + 4, 0xe0000000);
            pci_cfg_writel(t, PCI_DEVFN(SLOT, 0), PCI_CFG_BAR0 + 16, 0xe0004000);
            pci_cfg_writel(t, PCI_DEVFN(SLOT, 0), PCI_CFG_BAR0 + 20, 0);
        }
        switch (g_test_rand_int_range(0, 8)) {
        case 0:
            qt_writel(t, addr, some_value());
            break;
        case 1:
            qt_writeq(t, addr, (uint64_t)some_value() << 32 | some_value());
            break;
        case 2:
            qt_writeb(t, addr, (uint8_t)some_value());
            break;
        case 3:
            qt_readq(t, addr);
            break;
        case 4:
            if ((port & 0xfffc) != 0xcf8) { /* no resets: they would undo the set-up */
                qt_outl(t, port, some_value());
            }
            break;
        case 5:
            qt_inl(t, port);
            break;
        case 6:
            pci_cfg_writel(t, PCI_DEVFN(SLOT, g_test_rand_int_range(0, 8)), (uint8_t)g_test_rand_int(), some_value());
            break;
        default:
            qt_writew(t, addr, (uint16_t)some_value());
        }
    }
    qt_assert_alive(t);
    json_decref(qmp_must(t->qmp, "system_reset", NULL));
    qt_assert_alive(t);
    qt_stop(t);
}

static void test_protocol(void)
{
    QTest *t = start("");
    static const char *const lines[] = {
        "foo", " ", "readb", "readb x", "outb 0x10000 1", "read 0 0", "read 0 0xffffffffffffffff", "write 0 1 00",
        "irq_intercept_in /nosuch", "set_irq_in ioapic unnamed-gpio-in 99 1", "clock_set", "memset 0 1",
    };

    for (unsigned int i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autofree char *reply = qt_command(t, "%s", lines[i]);
        g_assert_true(g_str_has_prefix(reply, "FAIL ") || g_str_has_prefix(reply, "ERR "));
    }
    /* Several lines at once, and one in pieces. */
    qt_send_raw(t, "endianness\n\n# note\nreadb 0\nend", 30);
    g_autofree char *one = qt_reply(t), *two = qt_reply(t);
    g_assert_cmpstr(one, ==, "OK little");
    g_assert_cmpstr(two, ==, "OK 0x0000000000000000");
    qt_send_raw(t, "ianness\n", 8);
    g_autofree char *three = qt_reply(t);
    g_assert_cmpstr(three, ==, "OK little");
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    if (!binary_is_ours()) {
        /* Most of it does not hold for QEMU, which aborts or needs a CPU. */
        printf("1..0 # SKIP only for this tree's binary\n");
        return 0;
    }
    g_test_add_func("/machine/hotplug/eject-ends-unplug", test_eject);
    g_test_add_func("/machine/hotplug/eject-under-io", test_eject_under_io);
    g_test_add_func("/machine/hotplug/reset-ends-unplug", test_reset_unplugs);
    g_test_add_func("/machine/reset/under-io", test_reset_under_io);
    g_test_add_func("/machine/runstate/stop-and-cont", test_stop_cont);
    add_case(test_high_memory, "-m 4G", "/machine/memory/above-4g");
    add_case(test_high_memory, "-m 4G -object memory-backend-memfd,id=m,size=4G,reserve=off -machine memory-backend=m",
             "/machine/memory/above-4g-memfd");
    g_test_add_func("/machine/q35/disk-without-hotplug", test_q35);
    g_test_add_func("/machine/none/refuses-access", test_none);
    g_test_add_func("/machine/guest/pokes-at-everything", test_poke);
    g_test_add_func("/machine/qtest/bad-lines-fail", test_protocol);
    return g_test_run();
}
