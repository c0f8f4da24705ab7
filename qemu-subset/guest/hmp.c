/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands about the machine, its memory, buses and devices. */
#include "guest/commands.h"
#include "guest/machine.h"
#include "guest/memory.h"
#include "guest/private.h"

#include <inttypes.h>
#include <string.h>

static void hmp_stop(json_t *args, GString *out)
{
    vm_stop(VM_PAUSED);
}

static void hmp_cont(json_t *args, GString *out)
{
    if (vm_state() == VM_SHUTDOWN) {
        g_string_append(out, "Error: Resetting the Virtual Machine is required\n");
    } else {
        vm_start();
    }
}

static void hmp_system_reset(json_t *args, GString *out)
{
    vm_system_reset(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
}

static void hmp_quit(json_t *args, GString *out)
{
    vm_shutdown(SHUTDOWN_CAUSE_HOST_QMP_QUIT);
}

static void hmp_device_add(json_t *args, GString *out)
{
    json_t *options = json_object_get(args, "device");
    Error *err = NULL;

    if (json_is_true(json_object_get(options, "help"))) {
        device_print_help(json_string_value(json_object_get(options, "driver")), out, &err);
    } else {
        device_add(options, true, &err);
    }
    if (err) {
        hmp_error(out, err);
    }
}

static void hmp_device_del(json_t *args, GString *out)
{
    Error *err = NULL;

    if (!device_del(json_string_value(json_object_get(args, "id")), &err)) {
        hmp_error(out, err);
    }
}

static void info_status(json_t *args, GString *out)
{
    g_string_append_printf(out, "VM status: %s", vm_running() ? "running" : "paused");
    if (!vm_running() && vm_state() != VM_PAUSED) {
        g_string_append_printf(out, " (%s)", vm_state_name(vm_state()));
    }
    g_string_append_c(out, '\n');
}

static void info_qtree(json_t *args, GString *out)
{
    device_print_tree(out);
}

static void info_pci(json_t *args, GString *out)
{
    pci_print_info(out);
}

static void print_region(const GuestRegion *r, void *opaque)
{
    g_string_append_printf(opaque, "    %016" PRIx64 "-%016" PRIx64 " (prio %d, i/o): %s\n", r->base,
                           r->base + r->size - 1, r->priority, r->name);
}

static void info_mtree(json_t *args, GString *out)
{
    g_string_append(out, "address-space: memory\n");
    for (unsigned int i = 0; i < GUEST_RAM_RANGES; i++) {
        const GuestRamRange *r = &guest_ram[i];
        if (r->size) {
            g_string_append_printf(out, "    %016" PRIx64 "-%016" PRIx64 " (prio 0, ram): ram\n", r->base,
                                   r->base + r->size - 1);
        }
    }
    guest_region_for_each(GUEST_SPACE_MEM, print_region, out);
    g_string_append(out, "\naddress-space: I/O\n");
    guest_region_for_each(GUEST_SPACE_IO, print_region, out);
}

static const char *bool_text(json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key)) ? "true" : "false";
}

static void info_memdev(json_t *args, GString *out)
{
    json_t *list = guest_query_memdev(), *m;
    size_t i;

    json_array_foreach(list, i, m)
    {
        g_string_append_printf(out, "memory backend: %s\n", json_string_value(json_object_get(m, "id")));
        g_string_append_printf(out, "  size:  %lld\n", (long long)json_integer_value(json_object_get(m, "size")));
        g_string_append_printf(out, "  merge: %s\n  dump: %s\n  prealloc: %s\n  share: %s\n  reserve: %s\n",
                               bool_text(m, "merge"), bool_text(m, "dump"), bool_text(m, "prealloc"),
                               bool_text(m, "share"), bool_text(m, "reserve"));
        g_string_append_printf(out, "  policy: %s\n  host nodes: \n", json_string_value(json_object_get(m, "policy")));
    }
    g_string_append_c(out, '\n');
    json_decref(list);
}

static void info_cpus(json_t *args, GString *out)
{
    json_t *list = guest_query_cpus(), *cpu;
    size_t i;

    json_array_foreach(list, i, cpu)
    {
        g_string_append_printf(out, "%c CPU #%zu: thread_id=%lld model=qemu64\n", i == 0 ? '*' : ' ', i,
                               (long long)json_integer_value(json_object_get(cpu, "thread-id")));
    }
    json_decref(list);
}

static void info_name(json_t *args, GString *out)
{
    if (machine_guest_name()) {
        g_string_append_printf(out, "%s\n", machine_guest_name());
    }
}

static void info_kvm(json_t *args, GString *out)
{
    g_string_append(out, "kvm support: not compiled\n");
}

const HmpCommand guest_hmp_commands[] = {
    {"stop|s", "", "", "stop emulation", hmp_stop},
    {"cont|c", "", "", "resume emulation", hmp_cont},
    {"system_reset", "", "", "reset the system", hmp_system_reset},
    {"quit|q", "", "", "quit the emulator", hmp_quit},
    {"device_add", "device:O", "driver[,prop=value][,...]", "add device, like -device on the command line",
     hmp_device_add},
    {"device_del", "id:s", "device", "remove device", hmp_device_del},
    {"info status", "", "", "show the current VM status (running|paused)", info_status},
    {"info qtree", "", "", "show device tree", info_qtree},
    {"info pci", "", "", "show PCI info", info_pci},
    {"info mtree", "", "", "show memory tree", info_mtree},
    {"info memdev", "", "", "show memory backends", info_memdev},
    {"info cpus", "", "", "show infos for each CPU", info_cpus},
    {"info name", "", "", "show the current VM name", info_name},
    {"info kvm", "", "", "show KVM information", info_kvm},
    {0},
};
