/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machines and devices: creation, what a guest finds, adding and removing, run state. */
#include "guest-env.h"

#include "base/bswap.h"
#include "guest/hostmem.h"
#include "guest/machine-private.h"
#include "qapi/json.h"

#include <string.h>

static void assert_error(Error *err, const char *message)
{
    g_assert_nonnull(err);
    g_assert_cmpstr(error_get_pretty(err), ==, message);
    error_free(err);
}

/* --- What a guest finds --- */

static uint32_t config(unsigned int slot, unsigned int fn, unsigned int reg)
{
    guest_io_write(0xcf8, 0x80000000 | PCI_DEVFN(slot, fn) << 8 | reg, 4);
    return guest_io_read(0xcfc, 4);
}

static void test_pc_devices(void)
{
    guest_env_machine("pc", "128");
    g_assert_cmphex(guest_io_read(0xcf8, 4), ==, 0);
    g_assert_cmphex(config(0, 0, 0), ==, 0x12378086);
    g_assert_cmphex(config(0, 0, 8), ==, 0x06000002);
    g_assert_cmphex(config(1, 0, 0), ==, 0x70008086);
    g_assert_cmphex(config(1, 0, 8), ==, 0x06010000);
    g_assert_cmphex(config(1, 0, 12), ==, 0x00800000);
    g_assert_cmphex(config(1, 0, 4), ==, 0x02000000);
    g_assert_cmphex(config(1, 0, 0x60), ==, 0x80808080);
    g_assert_cmphex(config(1, 1, 0), ==, 0x70108086);
    g_assert_cmphex(config(1, 1, 8), ==, 0x01018000);
    g_assert_cmphex(config(1, 1, 0x20), ==, 0x00000001);
    g_assert_cmphex(config(1, 3, 0), ==, 0x71138086);
    g_assert_cmphex(config(1, 3, 8), ==, 0x06800003);
    g_assert_cmphex(config(1, 3, 0x2c), ==, 0x11001af4);
    g_assert_cmphex(config(1, 2, 0), ==, 0xffffffff);
    g_assert_cmphex(config(2, 0, 0), ==, 0xffffffff);
    g_assert_cmphex(guest_mem_read(0xfffffff0, 4), ==, 0x00e05bea);
    g_assert_nonnull(object_resolve("/machine/i440fx/pci.0", NULL));
    g_assert_nonnull(object_resolve("/machine/i440fx/ioapic", NULL));
    g_assert_nonnull(object_resolve("/machine/unattached/device[0]", NULL));
    machine_destroy();
}

static int lines[24];

static void watch_line(void *opaque, int n, int level)
{
    lines[n] = level;
}

static void test_q35(void)
{
    bool help;
    Error *err = NULL;

    guest_env_machine("q35", "16");
    g_assert_cmphex(config(0, 0, 0), ==, 0x29c08086);
    g_assert_cmphex(config(31, 0, 0), ==, 0x29188086);
    g_assert_cmphex(config(31, 0, 8), ==, 0x06010002);
    g_assert_cmphex(config(31, 0, 12), ==, 0x00800000);
    g_assert_cmphex(config(31, 0, 0x60), ==, 0x80808080);
    g_assert_cmphex(config(31, 0, 0x68), ==, 0x80808080);
    g_assert_cmphex(config(31, 2, 0), ==, 0x29228086);
    g_assert_cmphex(config(31, 2, 8), ==, 0x01060102);
    g_assert_cmphex(config(31, 2, 0x34), ==, 0x80);
    g_assert_cmphex(config(31, 2, 0x80), ==, 0x0080a805);
    g_assert_cmphex(config(31, 2, 0xa8), ==, 0x00100012);
    g_assert_cmphex(config(31, 3, 0), ==, 0x29308086);
    g_assert_cmphex(config(1, 0, 0), ==, 0xffffffff);
    g_assert_nonnull(object_resolve("/machine/q35/pcie.0", NULL));
    g_assert_nonnull(object_resolve("/machine/q35/mch", NULL));
    /* Memory-mapped configuration, off until the guest turns it on; it may move under its own feet. */
    g_assert_cmphex(config(0, 0, 0x60), ==, 0xb0000000);
    g_assert_cmphex(guest_mem_read(0xb0000000, 4), ==, 0);
    guest_io_write(0xcfc, 0xb0000001, 4);
    g_assert_cmphex(guest_mem_read(0xb0000000, 4), ==, 0x29c08086);
    g_assert_cmphex(guest_mem_read(0xb00fa000, 4), ==, 0x29228086);
    g_assert_cmphex(guest_mem_read(0xb0008000, 4), ==, 0xffffffff);
    g_assert_cmphex(guest_mem_read(0xb0100000, 8), ==, UINT64_MAX);
    g_assert_cmphex(guest_mem_read(0xb0000ffc, 4), ==, 0xffffffff);
    guest_mem_write(0xb0000060, 0xc0000001, 4);
    g_assert_cmphex(guest_mem_read(0xb0000000, 4), ==, 0);
    g_assert_cmphex(guest_mem_read(0xc0000000, 4), ==, 0x29c08086);
    guest_mem_write(0xc0000060, UINT64_MAX, 8);
    guest_mem_write(0xc0000060, 0, 8);

    g_assert_false(device_add_option("test-pci,id=x", &help, &err));
    assert_error(err, "Bus 'pcie.0' does not support hotplugging");
    machine_destroy();
}

static void test_q35_lines(void)
{
    bool help;

    machine_option("q35", &help, &error_abort);
    machine_memory_option("3G", &error_abort);
    machine_create(&error_abort);
    g_assert_cmphex(guest_ram[0].size, ==, 0x80000000);
    g_assert_cmphex(guest_ram[1].size, ==, 0x40000000);
    device_add_option("test-pci,id=x", &help, &error_abort);
    device_add_option("test-pci,id=y,addr=4", &help, &error_abort);
    machine_ready();
    PciDevice *x = (PciDevice *)object_resolve("x", NULL), *y = (PciDevice *)object_resolve("y", NULL);
    g_assert_cmpint(x->devfn, ==, PCI_DEVFN(1, 0));
    device_watch_irq_in((DeviceState *)object_resolve("ioapic", NULL), watch_line, NULL);
    pci_set_intx(x, 1);
    pci_set_intx(y, 1);
    g_assert_cmpint(lines[21], ==, 1);
    g_assert_cmpint(lines[20], ==, 1);
    config(31, 0, 0x68);
    guest_io_write(0xcfc, 10, 1);
    g_assert_cmpint(lines[10], ==, 1);
    pci_set_intx(y, 0);
    g_assert_cmpint(lines[20], ==, 0);
    g_assert_cmpint(lines[10], ==, 0);
    pci_set_intx(x, 0);
    machine_destroy();
}

static uint64_t fw_cfg_le(uint16_t key, unsigned int size)
{
    uint64_t value = 0;

    guest_io_write(0x510, key, 2);
    for (unsigned int i = 0; i < size; i++) {
        value |= (uint64_t)guest_io_read(0x511, 1) << (8 * i);
    }
    return value;
}

static void test_fw_cfg(void)
{
    guest_env_machine("pc", "128");
    g_assert_cmphex(fw_cfg_le(0, 6), ==, 0x554d4551);
    g_assert_cmphex(fw_cfg_le(1, 4), ==, 3);
    g_assert_cmphex(fw_cfg_le(3, 8), ==, 128 << 20);
    g_assert_cmphex(fw_cfg_le(5, 2), ==, 1);
    g_assert_cmphex(fw_cfg_le(0x4242, 8), ==, 0);
    /* Directory: count, then 64-byte entries sorted by name. */
    g_assert_cmpuint(GUINT32_FROM_BE(fw_cfg_le(0x19, 4)), ==, 3);
    guest_io_read(0x511, 1);
    g_assert_cmphex(guest_io_read(0x514, 4), ==, 0x554d4551);
    machine_destroy();
}

static uint32_t fw_cfg_dma(uint32_t control, uint32_t length, uint64_t address)
{
    uint8_t desc[16], *at = guest_ram_whole(0x4000, 16);

    store_be32(desc, control);
    store_be32(desc + 4, length);
    store_be64(desc + 8, address);
    memcpy(at, desc, sizeof(desc));
    guest_io_write(0x514, 0, 4);
    guest_io_write(0x518, GUINT32_TO_BE(0x4000), 4);
    return load_be32(at);
}

static void test_fw_cfg_dma(void)
{
    guest_env_machine("pc", "16");
    memset(guest_ram_whole(0x8000, 64), 0xee, 64);
    g_assert_cmphex(fw_cfg_dma(3u << 16 | 8 | 2, 12, 0x8000), ==, 0);
    g_assert_cmphex(guest_mem_read(0x8000, 8), ==, 16 << 20);
    g_assert_cmphex(guest_mem_read(0x8008, 8), ==, 0xeeeeeeee00000000);
    g_assert_cmphex(fw_cfg_dma(3u << 16 | 8 | 4, 4, 0), ==, 0);
    g_assert_cmphex(guest_io_read(0x511, 1), ==, 0);
    /* Hostile: all there is, into nowhere, and a write. */
    g_assert_cmphex(fw_cfg_dma(3u << 16 | 8 | 2, UINT32_MAX, 0xfffffff0), ==, 1);
    g_assert_cmphex(fw_cfg_dma(3u << 16 | 8 | 16, 4, 0x8000), ==, 1);
    guest_io_write(0x514, GUINT32_TO_BE(0x80000000), 4);
    guest_io_write(0x518, 0xffffffff, 4);
    machine_destroy();
}

static void test_ram_split(void)
{
    uint64_t n;

    guest_env_machine("pc", "4G");
    g_assert_cmphex(guest_ram[0].size, ==, 0xc0000000);
    g_assert_cmphex(guest_ram[1].base, ==, 0x100000000);
    g_assert_cmphex(guest_ram[1].size, ==, 0x40000000);
    g_assert_null(guest_ram_ptr(0xe0000000, 4, &n));
    g_assert_cmphex(fw_cfg_le(3, 8), ==, 4ULL << 30);
    guest_mem_write(0x13ffffff8, 0x1234, 8);
    g_assert_cmphex(guest_mem_read(0x13ffffff8, 8), ==, 0x1234);
    g_assert_cmphex(guest_mem_read(0x140000000, 8), ==, 0);
    machine_destroy();
}

static void test_none(void)
{
    guest_env_machine("none", NULL);
    g_assert_false(machine_has_cpus());
    g_assert_cmpuint(machine_ram_size(), ==, 0);
    Error *err = NULL;
    bool help;
    g_assert_false(device_add_option("test-pci", &help, &err));
    assert_error(err, "No 'PCI' bus found for device 'test-pci'");
    machine_destroy();
}

/* --- Options --- */

static void try_create(const char *machine, Error **errp)
{
    bool help;

    if (machine_option(machine, &help, errp)) {
        machine_create(errp);
    }
    machine_destroy();
}

static void test_bad_options(void)
{
    static const struct {
        const char *machine, *message;
    } cases[] = {
        {"foo", "unsupported machine type: \"foo\""},
        {"none,foo=1", "Property 'none-machine.foo' not found"},
        {"pc,foo=1", "Property 'pc-i440fx-11.1-machine.foo' not found"},
        {"pc,accel=vax", "invalid accelerator vax"},
        {"pc,memory-backend=zz", "Memory backend 'zz' not found"},
        {"pc,smp.cpus=0", "Invalid CPU topology: CPU topology parameters must be greater than zero"},
        {"pc,smp.cpus=256", "Invalid SMP CPUs 256. The max CPUs supported by machine 'pc-i440fx-11.1' is 255"},
        {"pc,smp.foo=1", "Parameter 'smp.foo' is unexpected"},
        {"pc,acpi=maybe", "Parameter 'acpi' does not accept value 'maybe'"},
    };

    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        Error *err = NULL;
        try_create(cases[i].machine, &err);
        assert_error(err, cases[i].message);
    }
    Error *err = NULL;
    g_assert_false(machine_memory_option("-5", &err));
    g_assert_nonnull(err);
    error_free(err);
    err = NULL;
    g_assert_false(machine_memory_option("64,foo=1", &err));
    assert_error(err, "Invalid parameter 'foo'");
    err = NULL;
    g_assert_true(machine_memory_option("1E", &error_abort));
    try_create("pc", &err);
    g_assert_nonnull(err);
    error_free(err);
    err = NULL;
    g_assert_false(machine_smp_option("4,sockets=3", &err));
    g_assert_nonnull(err);
    error_free(err);
    machine_destroy();
}

static void test_topology(void)
{
    static const struct {
        const char *smp;
        unsigned int cpus, max_cpus, sockets, cores, threads;
    } cases[] = {
        {"4", 4, 4, 1, 4, 1},          {"4,sockets=2", 4, 4, 2, 2, 1},       {"6,cores=3", 6, 6, 2, 3, 1},
        {"4,threads=2", 4, 4, 1, 2, 2}, {"sockets=2,cores=2", 4, 4, 2, 2, 1}, {"2,maxcpus=4", 2, 4, 1, 4, 1},
    };
    Error *err = NULL;

    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        const MachineTopology *t = machine_topology();
        machine_smp_option(cases[i].smp, &error_abort);
        g_assert_cmpuint(t->cpus, ==, cases[i].cpus);
        g_assert_cmpuint(t->max_cpus, ==, cases[i].max_cpus);
        g_assert_cmpuint(t->sockets, ==, cases[i].sockets);
        g_assert_cmpuint(t->cores, ==, cases[i].cores);
        g_assert_cmpuint(t->threads, ==, cases[i].threads);
    }
    g_assert_false(machine_smp_option("5,maxcpus=4", &err));
    assert_error(err, "Invalid CPU topology: maxcpus must be equal to or greater than smp: sockets (1) * dies (1) * "
                      "modules (1) * cores (4) * threads (1) == maxcpus (4) < smp_cpus (5)");
    err = NULL;
    g_assert_false(machine_smp_option("4,sockets=3", &err));
    assert_error(err, "Invalid CPU topology: product of the hierarchy must match maxcpus: sockets (3) * dies (1) * "
                      "modules (1) * cores (1) * threads (1) != maxcpus (4)");
    machine_destroy();
}

static void test_backend(void)
{
    bool help;
    g_autoptr(json_t) options =
        json_pack("{s:s, s:s, s:I}", "qom-type", "memory-backend-memfd", "id", "m0", "size", (json_int_t)(32 << 20));
    Error *err = NULL;

    user_creatable_add(options, &error_abort);
    machine_memory_option("16", &error_abort);
    try_create("pc,memory-backend=m0", &err);
    assert_error(err, "Machine memory size does not match the size of the memory backend");
    machine_option("pc,memory-backend=m0", &help, &error_abort);
    machine_create(&error_abort);
    g_assert_cmpuint(machine_ram_size(), ==, 32 << 20);
    g_assert(guest_ram[0].host == hostmem_ptr((HostMemory *)object_child(object_objects(), "m0")));
    err = NULL;
    g_assert_false(user_creatable_del("m0", &err));
    assert_error(err, "object 'm0' is in use, can not be deleted");
    machine_destroy();
    user_creatable_del("m0", &error_abort);
    g_assert_null(object_child(object_objects(), "pc.ram"));
}

static void test_backend_errors(void)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"{'qom-type':'memory-backend-ram','id':'m'}", "Parameter 'size' is missing"},
        {"{'qom-type':'memory-backend-ram','id':'m','size':0}",
         "property 'size' of memory-backend-ram doesn't take value '0'"},
        {"{'qom-type':'memory-backend-file','id':'m','size':4096}", "Parameter 'mem-path' is missing"},
        {"{'qom-type':'memory-backend-file','id':'m','size':4096,'mem-path':'/nonexistent/x'}",
         "can't open backing store /nonexistent/x for guest RAM: No such file or directory"},
        {"{'qom-type':'memory-backend-ram','id':'m','size':4611686018427387904}",
         "cannot set up guest memory 'm': Cannot allocate memory"},
        {"{'qom-type':'memory-backend','id':'m','size':4096}",
         "Parameter 'qom-type' does not accept value 'memory-backend'"},
    };

    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        Error *err = NULL;
        g_autofree char *text = g_strdelimit(g_strdup(cases[i].json), "'", '"');
        g_autoptr(json_t) options = json_loads(text, 0, NULL);
        g_assert_false(user_creatable_add(options, &err));
        assert_error(err, cases[i].message);
        g_assert_null(object_child(object_objects(), "m"));
    }
}

/* --- Devices --- */

static void test_device_errors(void)
{
    static const struct {
        const char *device, *message;
    } cases[] = {
        {"foo", "'foo' is not a valid device model name"},
        {"container", "'container' is not a valid device model name"},
        {"pci-device", "Parameter 'driver' expects a non-abstract device type"},
        {"PIIX3", "Parameter 'driver' expects a pluggable device type"},
        {"test-pci,foo=1", "Property 'test-pci.foo' not found"},
        {"test-pci,bus=nosuch", "Bus 'nosuch' not found"},
        {"test-pci,bus=main-system-bus", "Device 'test-pci' can't go on System bus"},
        {"test-pci,id=a", "Duplicate device ID 'a'"},
        {"test-pci,id=9", "Parameter 'id' expects an identifier"},
        {"test-pci,fail=on", "asked to fail"},
        {"foo,help", "Device 'foo' not found"},
        {"{\"driver\":\"test-pci\",\"id\":\"a\"}", "Duplicate device ID 'a'"},
        {"{\"id\":\"b\"}", "Parameter 'driver' is missing"},
        {"{\"driver\":5}", "Parameter 'driver' is missing"},
        {"{\"driver\":\"test-pci\",\"number\":\"5\"}", "Parameter 'number' expects uint64"},
    };
    bool help;

    guest_env_machine("pc", "16");
    device_add_option("test-alias,id=a,number=0x10", &help, &error_abort);
    g_assert_cmpuint(((TestPci *)object_resolve("/machine/peripheral/a", NULL))->number, ==, 16);
    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        Error *err = NULL;
        g_assert_false(device_add_option(cases[i].device, &help, &err));
        assert_error(err, cases[i].message);
        g_assert_cmpint(test_pci_realized, ==, 1);
    }
    Error *err = NULL;
    g_assert_false(object_set_text(object_resolve("a", NULL), "number", "3", PROPERTY_TEXT_HMP, &err));
    assert_error(err, "Attempt to set property 'number' on device 'a' (type 'test-pci') after it was realized");
    err = NULL;
    g_assert_false(device_del("nope", &err));
    g_assert_cmpint(error_get_class(err), ==, ERROR_CLASS_DEVICE_NOT_FOUND);
    assert_error(err, "Device 'nope' not found");
    err = NULL;
    g_assert_false(device_del("/machine/i440fx", &err));
    error_free(err);
    machine_destroy();
    g_assert_cmpint(test_pci_realized, ==, 0);
}

static void test_unplug_by_eject(void)
{
    bool help;
    Error *err = NULL;

    guest_env_machine("pc", "16");
    g_assert_cmphex(guest_io_read(0xae0c, 4), ==, 0xfffffffc);
    device_add_option("test-pci,id=h,addr=6", &help, &error_abort);
    g_assert_cmphex(guest_io_read(0xafe0, 1), ==, 2);
    g_assert_cmphex(guest_io_read(0xae00, 4), ==, 1 << 6);
    g_assert_cmphex(guest_io_read(0xae00, 4), ==, 0);
    device_del("h", &error_abort);
    g_assert_cmphex(guest_io_read(0xae04, 4), ==, 1 << 6);
    g_assert_false(device_del("h", &err));
    assert_error(err, "Device h is already in the process of unplug");
    g_assert_cmpstr(test_events->str, ==, "");
    guest_io_write(0xae08, 1 << 6, 4);
    g_assert_cmpstr(test_events->str, ==, "DEVICE_DELETED {\"device\": \"h\", \"path\": \"/machine/peripheral/h\"}\n");
    g_assert_cmpint(test_pci_realized, ==, 0);
    g_assert_cmphex(config(6, 0, 0), ==, 0xffffffff);
    /* The chipset stays, whatever the guest ejects. */
    guest_io_write(0xae08, UINT32_MAX, 4);
    g_assert_cmphex(config(1, 0, 0), ==, 0x70008086);
    device_add_option("test-pci,id=h,addr=6", &help, &error_abort);
    machine_destroy();
}

static void test_unplug_by_reset(void)
{
    bool help;

    guest_env_machine("pc", "16");
    device_add_option("test-pci,id=h", &help, &error_abort);
    device_del("h", &error_abort);
    vm_system_reset(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
    g_assert_cmpstr(test_events->str, ==,
                    "RESET {\"guest\": false, \"reason\": \"host-qmp-system-reset\"}\n"
                    "DEVICE_DELETED {\"device\": \"h\", \"path\": \"/machine/peripheral/h\"}\n");
    g_assert_cmpint(test_pci_realized, ==, 0);
    machine_destroy();
}

static void test_global(void)
{
    bool help;

    device_global_option("test-pci.number=77", &error_abort);
    device_global_option("driver=test-pci,property=multifunction,value=on", &error_abort);
    guest_env_machine("pc", "16");
    device_add_option("test-pci,id=g", &help, &error_abort);
    TestPci *t = (TestPci *)object_resolve("g", NULL);
    g_assert_cmpuint(t->number, ==, 77);
    g_assert_true(t->dev.multifunction);
    machine_destroy();
}

/* --- Run state --- */

static GString *changes;

static void state_changed(void *opaque, bool running, VmState state)
{
    g_string_append_printf(changes, "%s:%d:%s ", (const char *)opaque, running, vm_state_name(state));
}

static void test_run_state(void)
{
    VmStateListener a = {.fn = state_changed, .opaque = (void *)"a"}, b = {.fn = state_changed, .opaque = (void *)"b"};

    changes = g_string_new(NULL);
    guest_env_machine("pc", "16");
    vm_add_state_listener(&a);
    vm_add_state_listener(&b);
    vm_start();
    vm_stop(VM_IO_ERROR);
    vm_stop(VM_PAUSED);
    g_assert_cmpint(vm_state(), ==, VM_IO_ERROR);
    vm_start();
    vm_stop(VM_PAUSED);
    g_assert_cmpint(vm_state(), ==, VM_PAUSED);
    g_assert_cmpstr(changes->str, ==,
                    "b:0:io-error a:0:io-error a:1:running b:1:running b:0:paused a:0:paused ");
    g_assert_cmpstr(test_events->str, ==, "STOP \nRESUME \nSTOP \n");
    vm_remove_state_listener(&a);
    vm_remove_state_listener(&b);
    /* The guest's reset button. */
    g_string_truncate(test_events, 0);
    guest_io_write(0xcf9, 6, 1);
    g_assert_cmpstr(test_events->str, ==, "");
    guest_env_settle();
    g_assert_cmpstr(test_events->str, ==, "RESET {\"guest\": true, \"reason\": \"guest-reset\"}\n");
    g_assert_cmpint(vm_state(), ==, VM_PRELAUNCH);
    machine_destroy();
    g_string_free(changes, TRUE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    guest_env_init();
    g_test_add_func("/guest/pc/devices-and-addresses", test_pc_devices);
    g_test_add_func("/guest/pc/fw-cfg/keys", test_fw_cfg);
    g_test_add_func("/guest/pc/fw-cfg/dma", test_fw_cfg_dma);
    g_test_add_func("/guest/pc/ram-goes-round-the-pci-hole", test_ram_split);
    g_test_add_func("/guest/q35/devices-and-window", test_q35);
    g_test_add_func("/guest/q35/interrupt-lines", test_q35_lines);
    g_test_add_func("/guest/none/has-nothing", test_none);
    g_test_add_func("/guest/machine/bad-options-are-named", test_bad_options);
    g_test_add_func("/guest/machine/cpu-topology", test_topology);
    g_test_add_func("/guest/hostmem/backs-the-machine", test_backend);
    g_test_add_func("/guest/hostmem/errors", test_backend_errors);
    g_test_add_func("/guest/device/errors-leave-nothing", test_device_errors);
    g_test_add_func("/guest/device/unplugged-by-eject", test_unplug_by_eject);
    g_test_add_func("/guest/device/unplugged-by-reset", test_unplug_by_reset);
    g_test_add_func("/guest/device/global-sets-defaults", test_global);
    g_test_add_func("/guest/runstate/listeners-and-events", test_run_state);
    return g_test_run();
}
