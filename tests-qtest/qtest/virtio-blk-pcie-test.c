/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-blk-pci behind PCI Express ports and bridges: configuration, windows, interrupts, hot-plug. */
#include "common.h"

#include <string.h>

#define NODE(n) "-blockdev null-co,size=1048576,read-zeroes=on,node-name=" n " "
#define PORTS "-device pcie-root-port,id=p1,addr=2 -device pcie-root-port,id=p2,addr=3,chassis=2 "
#define BRIDGE "-device pcie-pci-bridge,bus=p1,id=b1 "
#define BUS(bus, slot) ((bus) << 8 | (slot) << 3)
#define CFG_BUSES 0x18
#define CFG_IO_WINDOW 0x1c
#define CFG_MEM_WINDOW 0x20
#define CFG_CONTROL 0x3e

static QTest *start_q35(const char *args)
{
    QTestOpts o = {.machine = "q35"};

    return qt_start_opts(&o, args);
}

/* Bus numbers, all addresses that the library hands out, and all three rights. */
static void open_bridge(QTest *t, int devfn, unsigned int primary, unsigned int secondary, unsigned int subordinate)
{
    pci_cfg_writel(t, devfn, CFG_BUSES, primary | secondary << 8 | subordinate << 16);
    pci_cfg_writew(t, devfn, CFG_IO_WINDOW, 0xf0c0);
    pci_cfg_writel(t, devfn, CFG_MEM_WINDOW, 0xfdf0e000);
    pci_cfg_writew(t, devfn, PCI_CFG_COMMAND, PCI_CMD_IO | PCI_CMD_MEMORY | PCI_CMD_MASTER);
}

static void read_sector(QTest *t, int devfn, VirtioVia via, bool msix)
{
    VblkOpts o = {.devfn = devfn, .via = via, .msix = msix};
    Vblk *b = vblk_new(t, &o);
    uint8_t buf[512];

    memset(buf, 0xff, sizeof(buf));
    g_assert_cmpuint(vblk_rw(b, 0, BLK_T_IN, 1, buf, sizeof(buf)), ==, BLK_S_OK);
    g_assert_cmpuint(buf[511], ==, 0);
    vblk_free(b);
}

static void test_capabilities(void)
{
    QTest *t = start_q35(PORTS NODE("n") "-device virtio-blk-pci,drive=n,bus=p1");
    static const uint8_t chain[] = {0xdc, 0xc8, 0xb4, 0xa4, 0x94, 0x84, 0x7c, 0x40, 0};
    uint8_t at = PCI_CFG_CAP_PTR;

    open_bridge(t, BUS(0, 2), 0, 1, 1);
    g_assert_cmphex(pci_cfg_readl(t, BUS(0, 2), 0), ==, 0x000c1b36);
    g_assert_cmphex(pci_cfg_readl(t, BUS(1, 0), 0), ==, 0x10421af4);
    g_assert_cmphex(pci_cfg_readb(t, BUS(1, 0), PCI_CFG_REVISION), ==, 1);
    g_assert_cmphex(pci_cfg_readl(t, BUS(1, 0), PCI_CFG_BAR0), ==, 0);
    for (unsigned int i = 0; i < G_N_ELEMENTS(chain); i++) {
        at = pci_cfg_readb(t, BUS(1, 0), at);
        g_assert_cmphex(at, ==, chain[i]);
        at++;
    }
    /* Express: endpoint, version 2, can be reset by function. */
    g_assert_cmphex(pci_cfg_readw(t, BUS(1, 0), 0x42), ==, 0x0002);
    g_assert_cmphex(pci_cfg_readl(t, BUS(1, 0), 0x44), ==, 0x10008000);
    /* Nothing answers under a number that no bridge leads to. */
    g_assert_cmphex(pci_cfg_readl(t, BUS(2, 0), 0), ==, 0xffffffff);
    g_assert_cmphex(pci_cfg_readl(t, BUS(1, 1), 0), ==, 0xffffffff);
    qt_stop(t);
}

static void test_read(gconstpointer msix)
{
    QTest *t = start_q35(PORTS BRIDGE NODE("n") NODE("m")
                         "-device virtio-blk-pci,drive=n,bus=p2 -device virtio-blk-pci,drive=m,bus=b1,addr=3");

    open_bridge(t, BUS(0, 2), 0, 1, 2);
    open_bridge(t, BUS(1, 0), 1, 2, 2);
    open_bridge(t, BUS(0, 3), 0, 3, 3);
    read_sector(t, BUS(3, 0), VIRTIO_MODERN, msix != NULL);
    read_sector(t, BUS(2, 3), VIRTIO_LEGACY, msix != NULL);
    read_sector(t, BUS(2, 3), VIRTIO_MODERN, msix != NULL);
    qt_stop(t);
}

/* BARs answer only where every bridge in front of them forwards. */
static void test_windows(void)
{
    QTest *t = start_q35(PORTS NODE("n") "-device virtio-blk-pci,drive=n,bus=p1");
    const uint32_t bar = 0xe4000000;

    open_bridge(t, BUS(0, 2), 0, 1, 1);
    pci_cfg_writel(t, BUS(1, 0), PCI_CFG_BAR0 + 16, bar);
    pci_cfg_writew(t, BUS(1, 0), PCI_CFG_COMMAND, PCI_CMD_MEMORY | PCI_CMD_MASTER);
    qt_writel(t, bar, 1);
    g_assert_cmphex(qt_readl(t, bar), ==, 1);
    pci_cfg_writel(t, BUS(0, 2), CFG_MEM_WINDOW, 0xe400e410);
    g_assert_cmphex(qt_readl(t, bar), ==, 0);
    pci_cfg_writel(t, BUS(0, 2), CFG_MEM_WINDOW, 0xe410e400);
    g_assert_cmphex(qt_readl(t, bar), ==, 1);
    pci_cfg_writew(t, BUS(0, 2), PCI_CFG_COMMAND, PCI_CMD_MASTER);
    g_assert_cmphex(qt_readl(t, bar), ==, 0);
    pci_cfg_writew(t, BUS(0, 2), PCI_CFG_COMMAND, PCI_CMD_MEMORY);
    g_assert_cmphex(qt_readl(t, bar), ==, 1);
    /* A reset of the bus behind the bridge reaches the device. */
    pci_cfg_writew(t, BUS(0, 2), CFG_CONTROL, 0x40);
    g_assert_cmphex(pci_cfg_readw(t, BUS(1, 0), PCI_CFG_COMMAND), ==, 0);
    g_assert_cmphex(qt_readl(t, bar), ==, 0);
    qt_stop(t);
}

static void test_function_reset(void)
{
    QTest *t = start_q35(PORTS NODE("n") "-device virtio-blk-pci,drive=n,bus=p1");
    VblkOpts o = {.devfn = BUS(1, 0), .via = VIRTIO_MODERN};
    Vblk *b;

    open_bridge(t, BUS(0, 2), 0, 1, 1);
    b = vblk_new(t, &o);
    g_assert_cmphex(vpci_status(b->v) & VIRTIO_S_DRIVER_OK, ==, VIRTIO_S_DRIVER_OK);
    pci_cfg_writew(t, BUS(1, 0), 0x48, 0x8000);
    g_assert_cmphex(pci_cfg_readw(t, BUS(1, 0), PCI_CFG_COMMAND), ==, 0);
    g_assert_cmphex(pci_cfg_readw(t, BUS(1, 0), 0x48), ==, 0);
    vblk_abandon(b);
    read_sector(t, BUS(1, 0), VIRTIO_MODERN, false);
    qt_stop(t);
}

/* INTA of slot 3 behind the bridge in slot 0 behind the port in slot 2: PIRQ of slot 2, pin (0 + 3 + 0) mod 4. */
static void test_intx(void)
{
    QTest *t = start_q35(PORTS BRIDGE NODE("m") "-device virtio-blk-pci,drive=m,bus=b1,addr=3");
    VblkOpts o = {.devfn = BUS(2, 3), .via = VIRTIO_LEGACY};
    VblkReq *r;
    Vblk *b;

    open_bridge(t, BUS(0, 2), 0, 1, 2);
    open_bridge(t, BUS(1, 0), 1, 2, 2);
    qt_irq_intercept_in(t, "ioapic");
    b = vblk_new(t, &o);
    r = vblk_add(b, 0, BLK_T_IN, 0, NULL, 512, NULL);
    vblk_kick(b, 0);
    vblk_wait(r);
    g_assert_true(qt_irq_level(t, 20 + (2 + 3) % 4));
    g_assert_cmpuint(vpci_isr(b->v), ==, 1);
    g_assert_false(qt_irq_level(t, 20 + (2 + 3) % 4));
    g_assert_cmpuint(vblk_finish(r, NULL), ==, BLK_S_OK);
    vblk_free(b);
    qt_stop(t);
}

static void add(QTest *t, const char *id, const char *node, const char *bus)
{
    json_decref(qmp_must(t->qmp, "device_add", "{s:s, s:s, s:s, s:s}", "driver", "virtio-blk-pci", "id", id, "drive", node,
                         "bus", bus));
}

static char *next_deleted(QTest *t)
{
    json_t *e = qmp_event(t->qmp, "DEVICE_DELETED"), *d = json_object_get(e, "data");
    char *path = g_strdup(json_string_value(json_object_get(d, "path")));

    json_decref(e);
    return path;
}

static void expect_deleted(QTest *t, const char *path)
{
    g_autofree char *got = next_deleted(t);

    g_assert_cmpstr(got, ==, path);
}

static void test_hotplug(void)
{
    QTest *t = start_q35(PORTS BRIDGE NODE("n") NODE("m") NODE("o"));
    char *text;

    open_bridge(t, BUS(0, 2), 0, 1, 2);
    open_bridge(t, BUS(1, 0), 1, 2, 2);
    open_bridge(t, BUS(0, 3), 0, 3, 3);
    add(t, "v", "n", "p2");
    add(t, "w", "m", "b1");
    text = qmp_must_fail(t->qmp, "device_add", "{s:s, s:s, s:s}", "driver", "virtio-blk-pci", "drive", "o", "bus", "pcie.0");
    g_assert_cmpstr(text, ==, "GenericError: Bus 'pcie.0' does not support hotplugging");
    g_free(text);
    read_sector(t, BUS(3, 0), VIRTIO_MODERN, true);
    read_sector(t, BUS(2, 0), VIRTIO_LEGACY, true);
    /* Firmware's view: the port that came last is bus 0, then the first port, then the bridge behind it. */
    qt_outl(t, 0xcd0, 0);
    g_assert_cmphex(qt_inl(t, 0xcc0), ==, 1);
    g_assert_cmphex(qt_inl(t, 0xcc0), ==, 0);
    qt_outl(t, 0xcd0, 1);
    g_assert_cmphex(qt_inl(t, 0xcc0), ==, 0);
    g_assert_cmphex(qt_inl(t, 0xccc), ==, 0xfffffffe);
    qt_outl(t, 0xcd0, 2);
    g_assert_cmphex(qt_inl(t, 0xcc0), ==, 1);
    /* Ejected by the guest ... */
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "w"));
    g_assert_cmphex(qt_inl(t, 0xcc4), ==, 1);
    qt_outl(t, 0xcc8, 1);
    expect_deleted(t, "/machine/peripheral/w/virtio-backend");
    expect_deleted(t, "/machine/peripheral/w");
    g_assert_cmphex(pci_cfg_readl(t, BUS(2, 0), 0), ==, 0xffffffff);
    /* ... or by a reset. */
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "v"));
    g_assert_cmpuint(qmp_events_pending(t->qmp, "DEVICE_DELETED"), ==, 0);
    json_decref(qmp_must(t->qmp, "system_reset", NULL));
    expect_deleted(t, "/machine/peripheral/v/virtio-backend");
    expect_deleted(t, "/machine/peripheral/v");
    qt_stop(t);
}

/* A bridge takes what is behind it along. */
static void test_bridge_unplug(void)
{
    QTest *t = start_q35(PORTS NODE("n"));
    char *text;

    json_decref(qmp_must(t->qmp, "device_add", "{s:s, s:s, s:s}", "driver", "pcie-pci-bridge", "id", "b", "bus", "p1"));
    text = qmp_must_fail(t->qmp, "device_add", "{s:s, s:s, s:s}", "driver", "virtio-blk-pci", "drive", "n", "bus", "b");
    g_assert_cmpstr(text, ==, "GenericError: Bus 'b' does not support hotplugging");
    g_free(text);
    json_decref(qmp_must(t->qmp, "device_del", "{s:s}", "id", "b"));
    json_decref(qmp_must(t->qmp, "system_reset", NULL));
    expect_deleted(t, "/machine/peripheral/b");
    qt_stop(t);
}

static void test_listing(void)
{
    QTest *t = start_q35(PORTS NODE("n") "-device virtio-blk-pci,drive=n,bus=p1,id=v");
    g_autofree char *before = qmp_hmp(t->qmp, "info pci"), *after = NULL;
    json_t *buses;

    g_assert_null(strstr(before, "id \"v\""));
    open_bridge(t, BUS(0, 2), 0, 1, 1);
    after = qmp_hmp(t->qmp, "info pci");
    g_assert_nonnull(strstr(after, "      BUS 0.\r\n      secondary bus 1.\r\n      subordinate bus 1.\r\n"
                                   "      IO range [0xc000, 0xffff]\r\n"
                                   "      memory range [0xe0000000, 0xfdffffff]\r\n"));
    g_assert_nonnull(strstr(after, "  Bus  1, device   0, function 0:\r\n"));
    buses = qmp_must(t->qmp, "query-pci", NULL);
    json_t *port = json_array_get(json_object_get(json_array_get(buses, 0), "devices"), 1);
    json_t *behind = json_object_get(json_object_get(port, "pci_bridge"), "devices");
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(behind, 0), "qdev_id")), ==, "v");
    g_assert_cmpint(json_integer_value(json_object_get(json_array_get(behind, 0), "bus")), ==, 1);
    json_decref(buses);
    qt_stop(t);
}

static void test_refusals(void)
{
    QTestOpts o = {.machine = "q35"};
    char *why = NULL;

    g_assert_null(qt_try_start(&o, "-device pcie-root-port,id=a -device pcie-root-port,id=b", &why));
    check_stderr(why, "Can't add chassis slot, error -16");
    g_free(why);
    g_assert_null(qt_try_start(&o, PORTS NODE("n") "-device virtio-blk-pci,drive=n,bus=p1,iommu_platform=on,disable-legacy=off",
                               &why));
    check_stderr(why, "VIRTIO_F_IOMMU_PLATFORM was supported by neither legacy nor transitional device");
    g_free(why);
}

/* The driver has to take ACCESS_PLATFORM where it is offered. */
static void test_access_platform(void)
{
    QTest *t = start_q35(PORTS NODE("n") "-device virtio-blk-pci,drive=n,bus=p1,iommu_platform=on,in_order=on,packed=on");
    const uint8_t wish = VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER | VIRTIO_S_FEATURES_OK;
    VirtioPci *v;

    open_bridge(t, BUS(0, 2), 0, 1, 1);
    v = vpci_new(t, BUS(1, 0), VIRTIO_MODERN);
    g_assert_cmphex(vpci_device_features(v) >> 32, ==, 0x10f);
    vpci_set_status(v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER);
    vpci_set_features(v, VIRTIO_F(VIRTIO_F_VERSION_1));
    vpci_set_status(v, wish);
    g_assert_cmphex(vpci_status(v), ==, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER);
    vpci_reset(v);
    vpci_set_status(v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER);
    vpci_set_features(v, VIRTIO_F(VIRTIO_F_VERSION_1) | VIRTIO_F(33));
    vpci_set_status(v, wish);
    g_assert_cmphex(vpci_status(v), ==, wish);
    vpci_free(v);
    qt_stop(t);
}

/* Introspection: the device, a queue, and a buffer that waits while the machine is stopped. */
static void test_inspect(void)
{
    QTest *t = start_q35("-object iothread,id=i0 " NODE("n") "-device virtio-blk-pci,drive=n,id=v,addr=4,iothread=i0");
    static const char path[] = "/machine/peripheral/v/virtio-backend";
    VblkOpts o = {.via = VIRTIO_MODERN, .without = VIRTIO_F(VIRTIO_F_INDIRECT)};
    Vblk *b = vblk_new(t, &o);
    g_autofree char *text = NULL, *refusal = NULL;
    json_t *r;
    VblkReq *req;

    r = qmp_must(t->qmp, "x-query-virtio", NULL);
    g_assert_cmpstr(json_string_value(json_object_get(json_array_get(r, 0), "path")), ==, path);
    json_decref(r);
    json_decref(qmp_must(t->qmp, "stop", NULL));
    req = vblk_add(b, 0, BLK_T_IN, 0, NULL, 512, NULL);
    r = qmp_must(t->qmp, "x-query-virtio-status", "{s:s}", "path", path);
    g_assert_cmpstr(json_string_value(json_object_get(r, "name")), ==, "virtio-blk");
    g_assert_true(json_is_true(json_object_get(r, "started")));
    g_assert_true(json_is_false(json_object_get(r, "vm-running")));
    g_assert_cmpuint(json_array_size(json_object_get(json_object_get(r, "status"), "statuses")), ==, 4);
    json_decref(r);
    r = qmp_must(t->qmp, "x-query-virtio-queue-status", "{s:s, s:i}", "path", path, "queue", 0);
    g_assert_cmpint(json_integer_value(json_object_get(r, "vring-num")), ==, 256);
    g_assert_cmpint(json_integer_value(json_object_get(r, "vring-desc")), ==, (json_int_t)b->vq[0]->desc);
    json_decref(r);
    r = qmp_must(t->qmp, "x-query-virtio-queue-element", "{s:s, s:i}", "path", path, "queue", 0);
    g_assert_cmpuint(json_array_size(json_object_get(r, "descs")), ==, 3);
    g_assert_cmpint(json_integer_value(json_object_get(r, "index")), ==, req->head);
    json_decref(r);
    text = qmp_hmp(t->qmp, "info virtio-queue-element %s 0", path);
    g_assert_nonnull(strstr(text, " len 1 (write),\r\n"));
    refusal = qmp_must_fail(t->qmp, "x-query-virtio-vhost-queue-status", "{s:s, s:i}", "path", path, "queue", 0);
    g_assert_cmpstr(refusal, ==, "GenericError: Error: vhost device has not started yet");
    g_clear_pointer(&refusal, g_free);
    refusal = qmp_must_fail(t->qmp, "x-query-virtio-queue-status", "{s:s, s:i}", "path", path, "queue", 1);
    g_assert_cmpstr(refusal, ==, "GenericError: Invalid virtqueue number 1");
    g_clear_pointer(&refusal, g_free);
    refusal = qmp_must_fail(t->qmp, "x-query-virtio-status", "{s:s}", "path", "/machine");
    g_assert_cmpstr(refusal, ==, "GenericError: Path /machine is not a realized VirtIODevice");
    json_decref(qmp_must(t->qmp, "cont", NULL));
    g_assert_cmpuint(vblk_finish(req, NULL), ==, BLK_S_OK);
    /* Asked in the home while it runs. */
    r = qmp_must(t->qmp, "x-query-virtio-queue-status", "{s:s, s:i}", "path", path, "queue", 0);
    g_assert_cmpint(json_integer_value(json_object_get(r, "used-idx")), ==, 1);
    json_decref(r);
    vblk_free(b);
    qt_stop(t);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    if (!binary_is_ours()) {
        g_print("1..0 # SKIP registers as this binary has them\n");
        return 0;
    }
    g_test_add_func("/virtio-blk/pcie/capabilities-behind-port", test_capabilities);
    add_case(test_read, NULL, "/virtio-blk/pcie/read/intx");
    add_case(test_read, "", "/virtio-blk/pcie/read/msix");
    g_test_add_func("/virtio-blk/pcie/windows-gate-bars", test_windows);
    g_test_add_func("/virtio-blk/pcie/function-level-reset", test_function_reset);
    g_test_add_func("/virtio-blk/pcie/intx-swizzled-through-bridges", test_intx);
    g_test_add_func("/virtio-blk/pcie/hotplug", test_hotplug);
    g_test_add_func("/virtio-blk/pcie/hotplugged-bridge", test_bridge_unplug);
    g_test_add_func("/virtio-blk/pcie/listing", test_listing);
    g_test_add_func("/virtio-blk/pcie/refusals", test_refusals);
    g_test_add_func("/virtio-blk/pcie/access-platform-must-be-taken", test_access_platform);
    g_test_add_func("/virtio-blk/inspect/device-queue-buffer", test_inspect);
    return g_test_run();
}
