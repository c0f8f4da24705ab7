/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine for unit tests. */
#include "guest-env.h"

#include "guest/machine.h"
#include "guest/private.h"
#include "qapi/dispatch.h"
#include "qapi/json.h"

#include <string.h>

int test_pci_realized;
GString *test_events;

static uint64_t store_read(void *opaque, uint64_t offset, unsigned int size)
{
    uint64_t value = 0;

    memcpy(&value, (uint8_t *)opaque + offset, size);
    return value;
}

static void store_write(void *opaque, uint64_t offset, uint64_t value, unsigned int size)
{
    memcpy((uint8_t *)opaque + offset, &value, size);
}

static const GuestRegionOps byte_ops = {.read = store_read, .write = store_write, .sizes = 1 | 2 | 4};

static bool test_realize(PciDevice *dev, Error **errp)
{
    TestPci *t = (TestPci *)dev;
    const GuestRegion io = {.name = "io", .ops = &byte_ops, .opaque = t->io, .size = sizeof(t->io)};
    const GuestRegion mem = {.name = "mem", .ops = &byte_ops, .opaque = t->mem, .size = sizeof(t->mem)};

    if (t->fail) {
        error_setg(errp, "asked to fail");
        return false;
    }
    dev->config[PCI_INTERRUPT_PIN] = 1;
    pci_add_bar(dev, 0, PCI_BAR_IO, 16, &io, 1);
    pci_add_bar(dev, 1, PCI_BAR_MEM32, 4096, &mem, 1);
    pci_add_bar(dev, 4, PCI_BAR_MEM64_PREFETCH, 1 << 20, &mem, 1);
    test_pci_realized++;
    return pci_msix_init(dev, 8, 3, 0, errp);
}

static void test_unrealize(PciDevice *dev)
{
    test_pci_realized--;
}

static int test_level(PciDevice *dev)
{
    return ((TestPci *)dev)->level;
}

static const PciDeviceClass test_class = {
    .parent = {PCI_DEVICE_CLASS_BASE, .alias = "test-alias", .category = "Misc", .user_creatable = true},
    .vendor_id = 0x1af4, .device_id = 0x10f0, .class_id = 0x00ff, .realize = test_realize,
    .unrealize = test_unrealize, .intx_level = test_level,
};

static const ObjectProperty test_properties[] = {
    {.name = "number", .kind = PROP_UINT32, .get = object_get_uint32, .set = device_set_uint32,
     .offset = offsetof(TestPci, number)},
    {.name = "fail", .kind = PROP_BOOL, .get = object_get_bool, .set = device_set_bool,
     .offset = offsetof(TestPci, fail)},
    {0},
};

static const ObjectType test_type = {.name = TYPE_TEST_PCI, .parent = TYPE_PCI_DEVICE, .size = sizeof(TestPci),
                                     .properties = test_properties, .klass = &test_class};

static void sink(void *opaque, const char *name, json_t *data)
{
    g_string_append_printf(test_events, "%s ", name);
    if (data) {
        qjson_append(test_events, data, false);
    }
    g_string_append_c(test_events, '\n');
    json_decref(data);
}

void guest_env_init(void)
{
    static const AioContextConfig cfg = {.name = "main", .monitor = AIO_MONITOR_POLL, .is_main = true};
    AioContext *ctx = aio_context_new(&cfg, &error_abort);

    aio_context_set_main(ctx);
    test_events = g_string_new(NULL);
    qapi_event_set_sink(sink, NULL);
    object_register_types();
    guest_register_types();
    object_register_type(&test_type);
}

void guest_env_machine(const char *name, const char *memory)
{
    bool help;

    machine_option(name, &help, &error_abort);
    if (memory) {
        machine_memory_option(memory, &error_abort);
    }
    machine_create(&error_abort);
    machine_ready();
    vm_set_initial(false);
    g_string_truncate(test_events, 0);
}

void guest_env_settle(void)
{
    while (aio_poll(aio_context_main(), false)) {
    }
}
