/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PCI: configuration space under any access, BAR mapping, MSI-X, INTx. */
#include "guest-env.h"

#include "base/bswap.h"
#include "guest/machine.h"

#include <pthread.h>
#include <string.h>

static TestPci *pci;

static void setup(void)
{
    g_autoptr(Error) err = NULL;
    json_t *options = json_pack("{s:s, s:s, s:s}", "driver", TYPE_TEST_PCI, "id", "t0", "addr", "4");

    guest_env_machine("pc", "16");
    pci = (TestPci *)device_add(options, true, &err);
    g_assert_null(err);
    json_decref(options);
}

static void teardown(void)
{
    machine_destroy();
    g_assert_cmpint(test_pci_realized, ==, 0);
}

/* Config accesses as a guest makes them. */
static void config_select(unsigned int reg)
{
    guest_io_write(0xcf8, 0x80000000 | PCI_DEVFN(4, 0) << 8 | reg, 4);
}

static uint32_t config_read(unsigned int reg, unsigned int size)
{
    config_select(reg);
    return guest_io_read(0xcfc, size);
}

static void config_write(unsigned int reg, uint32_t value, unsigned int size)
{
    config_select(reg);
    guest_io_write(0xcfc, value, size);
}

static void test_ids(void)
{
    setup();
    g_assert_cmphex(config_read(PCI_VENDOR_ID, 4), ==, 0x10f01af4);
    g_assert_cmphex(config_read(PCI_DEVICE_ID, 2), ==, 0x10f0);
    config_select(0);
    g_assert_cmphex(guest_io_read(0xcfe, 2), ==, 0x10f0);
    g_assert_cmphex(guest_io_read(0xcff, 1), ==, 0x10);
    g_assert_cmphex(config_read(PCI_SUBSYSTEM_VENDOR_ID, 4), ==, 0x11001af4);
    config_write(PCI_VENDOR_ID, 0, 4);
    g_assert_cmphex(config_read(PCI_VENDOR_ID, 4), ==, 0x10f01af4);
    guest_io_write(0xcf8, 0x80000000 | PCI_DEVFN(9, 0) << 8, 4);
    g_assert_cmphex(guest_io_read(0xcfc, 2), ==, 0xffff);
    guest_io_write(0xcf8, 0, 4);
    g_assert_cmphex(guest_io_read(0xcfc, 4), ==, 0xffffffff);
    teardown();
}

static void test_bars(void)
{
    setup();
    config_write(PCI_BASE_ADDRESS_0, 0xffffffff, 4);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0, 4), ==, 0xfffffff1);
    config_write(PCI_BASE_ADDRESS_0 + 4, 0xffffffff, 4);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0 + 4, 4), ==, 0xfffff000);
    config_write(PCI_BASE_ADDRESS_0 + 16, 0xffffffff, 4);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0 + 16, 4), ==, 0xfff0000c);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0 + 20, 4), ==, 0);

    config_write(PCI_BASE_ADDRESS_0, 0xc000, 4);
    config_write(PCI_BASE_ADDRESS_0 + 4, 0xe0000000, 4);
    pci->io[3] = 0x42;
    pci->mem[5] = 0x43;
    g_assert_cmphex(guest_io_read(0xc003, 1), ==, 0xff);
    config_write(PCI_COMMAND, PCI_COMMAND_IO, 2);
    g_assert_cmphex(guest_io_read(0xc003, 1), ==, 0x42);
    g_assert_cmphex(guest_mem_read(0xe0000005, 1), ==, 0);
    config_write(PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
    g_assert_cmphex(guest_io_read(0xc003, 1), ==, 0xff);
    g_assert_cmphex(guest_mem_read(0xe0000005, 1), ==, 0x43);
    /* Byte by byte, the register moves the window just as well. */
    config_write(PCI_BASE_ADDRESS_0 + 7, 0xe1, 1);
    g_assert_cmphex(guest_mem_read(0xe0000005, 1), ==, 0);
    g_assert_cmphex(guest_mem_read(0xe1000005, 1), ==, 0x43);
    /* Above 4 GiB. */
    config_write(PCI_BASE_ADDRESS_0 + 20, 0x10, 4);
    config_write(PCI_BASE_ADDRESS_0 + 16, 0, 4);
    g_assert_cmphex(guest_mem_read(0x1000000005, 1), ==, 0x43);
    /* Over RAM: it stays RAM. */
    config_write(PCI_BASE_ADDRESS_0 + 4, 0x1000, 4);
    g_assert_cmphex(guest_mem_read(0x1005, 1), ==, 0);
    teardown();
}

static void test_reset(void)
{
    setup();
    config_write(PCI_BASE_ADDRESS_0, 0xc000, 4);
    config_write(PCI_COMMAND, 7, 2);
    g_assert_true(pci_bus_master(&pci->dev));
    vm_system_reset(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
    g_assert_cmphex(config_read(PCI_COMMAND, 2), ==, 0);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0, 4), ==, 1);
    g_assert_false(pci_bus_master(&pci->dev));
    g_assert_cmphex(guest_io_read(0xc003, 1), ==, 0xff);
    teardown();
}

/* --- MSI-X --- */

#define TABLE 0xe2000000
#define PBA (TABLE + 0x800)
#define MESSAGE 0x8000

static unsigned int find_capability(uint8_t id)
{
    unsigned int at = config_read(PCI_CAPABILITY_LIST, 1);

    while (at && config_read(at, 1) != id) {
        at = config_read(at + 1, 1);
    }
    g_assert_cmpuint(at, !=, 0);
    return at;
}

static unsigned int msix_on(void)
{
    unsigned int cap = find_capability(PCI_CAP_ID_MSIX);

    config_write(PCI_BASE_ADDRESS_0 + 12, TABLE, 4);
    config_write(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER, 2);
    config_write(cap + 2, 0x8000, 2);
    return cap;
}

static void vector_set(unsigned int v, uint64_t addr, uint32_t data)
{
    guest_mem_write(TABLE + 16 * v, addr, 8);
    guest_mem_write(TABLE + 16 * v + 8, data, 4);
    guest_mem_write(TABLE + 16 * v + 12, 0, 4);
}

static void test_msix_message(void)
{
    setup();
    unsigned int cap = msix_on();
    g_assert_cmphex(config_read(cap + 2, 2), ==, 0x8007);
    g_assert_cmphex(config_read(cap + 4, 4), ==, 3);
    g_assert_cmphex(config_read(cap + 8, 4), ==, 0x803);
    g_assert_cmphex(guest_mem_read(TABLE + 12, 4), ==, 1);
    vector_set(2, MESSAGE, 0xdecafbad);
    pci_msix_notify(&pci->dev, 2);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0xdecafbad);
    /* Nowhere: no RAM, out of range, not a bus master. */
    vector_set(3, 0xfee00000, 1);
    pci_msix_notify(&pci->dev, 3);
    vector_set(3, UINT64_MAX, 1);
    pci_msix_notify(&pci->dev, 3);
    pci_msix_notify(&pci->dev, 8);
    pci_msix_notify(&pci->dev, UINT32_MAX);
    guest_mem_write(MESSAGE, 0, 4);
    config_write(PCI_COMMAND, PCI_COMMAND_MEMORY, 2);
    pci_msix_notify(&pci->dev, 2);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0);
    teardown();
}

static void test_msix_mask(void)
{
    setup();
    unsigned int cap = msix_on();
    vector_set(1, MESSAGE, 0x11);
    guest_mem_write(TABLE + 16 + 12, 1, 4);
    pci_msix_notify(&pci->dev, 1);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0);
    g_assert_cmphex(guest_mem_read(PBA, 8), ==, 2);
    guest_mem_write(PBA, 0, 8);
    g_assert_cmphex(guest_mem_read(PBA, 4), ==, 2);
    guest_mem_write(TABLE + 16 + 12, 0, 4);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0x11);
    g_assert_cmphex(guest_mem_read(PBA, 4), ==, 0);
    /* The mask of the whole function. */
    guest_mem_write(MESSAGE, 0, 4);
    config_write(cap + 2, 0xc000, 2);
    pci_msix_notify(&pci->dev, 1);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0);
    config_write(cap + 2, 0x8000, 2);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0x11);
    teardown();
}

static void *notify_many(void *opaque)
{
    for (int i = 0; i < 20000; i++) {
        pci_msix_notify(&pci->dev, 0);
    }
    return NULL;
}

/* However masking and notifying interleave, the last notification is delivered or pending. */
static void test_msix_race(void)
{
    pthread_t thread;

    setup();
    msix_on();
    vector_set(0, MESSAGE, 0x55);
    pthread_create(&thread, NULL, notify_many, NULL);
    for (int i = 0; i < 20000; i++) {
        guest_mem_write(TABLE + 12, i & 1, 4);
    }
    guest_mem_write(TABLE + 12, 1, 4);
    pthread_join(thread, NULL);
    guest_mem_write(MESSAGE, 0, 4);
    pci_msix_notify(&pci->dev, 0);
    guest_mem_write(TABLE + 12, 0, 4);
    g_assert_cmphex(guest_mem_read(MESSAGE, 4), ==, 0x55);
    g_assert_cmphex(guest_mem_read(PBA, 4), ==, 0);
    teardown();
}

/* --- INTx --- */

static int irq_level[32];

static void watch_irq(void *opaque, int n, int level)
{
    irq_level[n] = level;
}

static void set_pirq(unsigned int pirq, uint8_t route)
{
    guest_io_write(0xcf8, 0x80000000 | PCI_DEVFN(1, 0) << 8 | 0x60, 4);
    guest_io_write(0xcfc + pirq, route, 1);
}

static void *kick(void *opaque)
{
    pci->level = 1;
    pci_intx_kick(&pci->dev);
    return NULL;
}

static void test_intx(void)
{
    pthread_t thread;

    setup();
    DeviceState *ioapic = (DeviceState *)object_resolve("ioapic", NULL);
    g_assert_true(device_watch_irq_in(ioapic, watch_irq, NULL));
    memset(irq_level, 0, sizeof(irq_level));
    pci_set_intx(&pci->dev, 1);
    for (int i = 0; i < 24; i++) {
        g_assert_cmpint(irq_level[i], ==, 0);
    }
    set_pirq(3, 11); /* slot 4, pin A */
    g_assert_cmpint(irq_level[11], ==, 1);
    g_assert_cmphex(config_read(PCI_STATUS, 2) & PCI_STATUS_INTERRUPT, !=, 0);
    config_write(PCI_COMMAND, PCI_COMMAND_INTX_DISABLE, 2);
    g_assert_cmpint(irq_level[11], ==, 0);
    config_write(PCI_COMMAND, 0, 2);
    g_assert_cmpint(irq_level[11], ==, 1);
    set_pirq(3, 5);
    g_assert_cmpint(irq_level[11], ==, 0);
    g_assert_cmpint(irq_level[5], ==, 1);
    pci_set_intx(&pci->dev, 0);
    g_assert_cmpint(irq_level[5], ==, 0);
    pthread_create(&thread, NULL, kick, NULL);
    pthread_join(thread, NULL);
    guest_env_settle();
    g_assert_cmpint(irq_level[5], ==, 1);
    pci->level = 0;
    teardown();
}

/* Any width at any port, and any value into any register: nothing but the masked bits changes, and nothing breaks. */
static void test_fuzz(void)
{
    static const unsigned int sizes[] = {1, 2, 4};

    setup();
    for (int i = 0; i < 30000; i++) {
        unsigned int size = sizes[g_test_rand_int_range(0, 3)];
        uint32_t value = (uint32_t)g_test_rand_int() ^ (uint32_t)g_test_rand_int() << 16;
        uint16_t port = (uint16_t)g_test_rand_int_range(0xcf6, 0xd02);

        if (port == 0xcf9) {
            continue; /* the reset register */
        }
        guest_io_write(0xcf8, 0x80000000 | ((uint32_t)g_test_rand_int() & 0x1fff), 4);
        if (i % 3) {
            guest_io_write(port, value, size);
        } else {
            guest_io_read(port, size);
        }
        for (unsigned int addr = 0; addr < 0x400 && i % 1000 == 0; addr++) {
            pci_config_write(&pci->dev, addr, value, size);
            pci_config_read(&pci->dev, addr, size);
        }
        guest_mem_write(TABLE + (value & 0xfff), value, 8);
        pci_msix_notify(&pci->dev, value & 15);
    }
    config_write(PCI_COMMAND, 0, 2);
    g_assert_cmphex(config_read(PCI_VENDOR_ID, 4), ==, 0x10f01af4);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0, 1) & 3, ==, 1);
    g_assert_cmphex(config_read(PCI_BASE_ADDRESS_0 + 16, 1) & 0xf, ==, 0xc);
    teardown();
}

static void test_slots(void)
{
    static const struct {
        const char *addr, *message;
    } cases[] = {
        {"4", "PCI: slot 4 function 0 not available for test-pci, in use by test-pci,id=t0"},
        {"1", "PCI: slot 1 function 0 not available for test-pci, in use by PIIX3,id=(null)"},
        {"4.1", "PCI: single function device can't be populated in function 4.1"},
        {"33", "Property 'test-pci.addr' doesn't take value '33'"},
        {"4.8", "Property 'test-pci.addr' doesn't take value '4.8'"},
        {"", "Property 'test-pci.addr' doesn't take value ''"},
        {"-1", "Property 'test-pci.addr' doesn't take value '-1'"},
    };

    setup();
    for (unsigned int i = 0; i < G_N_ELEMENTS(cases); i++) {
        Error *err = NULL;
        json_t *options = json_pack("{s:s, s:s}", "driver", TYPE_TEST_PCI, "addr", cases[i].addr);
        g_assert_null(device_add(options, true, &err));
        g_assert_cmpstr(error_get_pretty(err), ==, cases[i].message);
        error_free(err);
        json_decref(options);
    }
    json_t *options = json_pack("{s:s}", "driver", TYPE_TEST_PCI);
    for (int n = 0; n < 29; n++) {
        g_assert_nonnull(device_add(options, true, &error_abort));
    }
    Error *err = NULL;
    g_assert_null(device_add(options, true, &err));
    g_assert_cmpstr(error_get_pretty(err), ==,
                    "PCI: no slot/function available for test-pci, all in use or reserved");
    error_free(err);
    json_decref(options);
    teardown();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    guest_env_init();
    g_test_add_func("/guest/pci/config/ids-read-and-stay", test_ids);
    g_test_add_func("/guest/pci/bar/follows-command-and-register", test_bars);
    g_test_add_func("/guest/pci/reset/unmaps-everything", test_reset);
    g_test_add_func("/guest/pci/msix/message-is-a-store", test_msix_message);
    g_test_add_func("/guest/pci/msix/mask-keeps-it-pending", test_msix_mask);
    g_test_add_func("/guest/pci/msix/no-message-lost-between-threads", test_msix_race);
    g_test_add_func("/guest/pci/intx/routed-by-pirq", test_intx);
    g_test_add_func("/guest/pci/config/random-accesses-are-safe", test_fuzz);
    g_test_add_func("/guest/pci/slots/conflicts-are-refused", test_slots);
    return g_test_run();
}
