/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP commands about the machine as a whole, its processors, memory, buses and devices. */
#include "guest/hostmem.h"
#include "guest/machine-private.h"
#include "guest/private.h"

#include "qapi/qapi-commands-control.h"
#include "qapi/qapi-commands-machine.h"
#include "qapi/qapi-commands-qdev.h"
#include "qapi/qapi-visit-machine.h"
#include "qapi/qapi-visit-qom.h"

#include <string.h>

/*
 * Answers are put together as JSON, which HMP and tests use as well; this turns one into the type that the schema promises, so a
 * wrong member cannot slip through.
 */
#define RETURN_FROM_JSON(type, json, errp)                                                         \
    do {                                                                                           \
        type *result_ = NULL;                                                                      \
        g_autoptr(json_t) json_ = (json);                                                          \
        g_autoptr(Visitor) v_ = visitor_input_new(json_, QAPI_JSON);                               \
        visit_type_##type(v_, NULL, &result_, errp);                                               \
        return result_;                                                                            \
    } while (0)

/* --- Run state --- */

StatusInfo *qmp_query_status(Error **errp)
{
    StatusInfo *info = g_new0(StatusInfo, 1);

    info->running = vm_running();
    info->status = qapi_enum_parse(&RunState_lookup, vm_state_name(vm_state()), RUN_STATE_PAUSED, NULL);
    return info;
}

void qmp_stop(Error **errp)
{
    vm_stop(VM_PAUSED);
}

void qmp_cont(Error **errp)
{
    if (vm_state() == VM_SHUTDOWN) {
        error_setg(errp, "Resetting the Virtual Machine is required");
        return;
    }
    vm_start();
}

void qmp_system_reset(Error **errp)
{
    vm_system_reset(SHUTDOWN_CAUSE_HOST_QMP_SYSTEM_RESET);
}

void qmp_quit(Error **errp)
{
    vm_shutdown(SHUTDOWN_CAUSE_HOST_QMP_QUIT);
}

/* --- Devices --- */

void qmp_device_add(json_t *args, json_t **ret, Error **errp)
{
    if (device_add(args, false, errp)) {
        *ret = json_object();
    }
}

void qmp_device_del(const char *id, Error **errp)
{
    device_del(id, errp);
}

ObjectPropertyInfoList *qmp_device_list_properties(const char *typename, Error **errp)
{
    json_t *list = device_list_properties(typename, errp);

    if (!list) {
        return NULL;
    }
    RETURN_FROM_JSON(ObjectPropertyInfoList, list, errp);
}

/* --- Machine --- */

json_t *guest_query_cpus(void)
{
    const MachineTopology *t = machine_topology();
    json_t *list = json_array();

    for (unsigned int i = 0; machine_has_cpus() && i < t->cpus; i++) {
        g_autofree char *path = NULL;
        int tid = machine_cpu_thread_id(i, &path);
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:i, s:s, s:s, s:{s:i, s:i, s:i}}", "cpu-index", i, "qom-path", path,
                            "thread-id", tid, "qom-type", TYPE_QEMU64_CPU, "target", "x86_64", "props", "socket-id",
                            i / (t->cores * t->threads), "core-id", i / t->threads % t->cores, "thread-id",
                            i % t->threads));
    }
    return list;
}

json_t *guest_query_memdev(void)
{
    const GPtrArray *objects = object_objects()->child_order;
    json_t *list = json_array();

    for (unsigned int i = 0; objects && i < objects->len; i++) {
        Object *obj = g_ptr_array_index(objects, i);
        if (object_is_a(obj, TYPE_MEMORY_BACKEND)) {
            json_array_append_new(list, hostmem_query((HostMemory *)obj));
        }
    }
    return list;
}

static json_t *query_machines(void)
{
    json_t *list = json_array();

    for (int i = 0; machine_classes[i]; i++) {
        const MachineClass *mc = machine_classes[i];
        json_t *m = json_pack("{s:s, s:i, s:b, s:b, s:b, s:b}", "name", mc->name, "cpu-max", mc->max_cpus,
                              "hotpluggable-cpus", 0, "numa-mem-supported", 0, "deprecated", 0, "acpi",
                              mc->has_acpi);
        json_object_set_new(m, "default-ram-id", json_string(mc->default_ram_id));
        if (mc->alias) {
            json_object_set_new(m, "alias", json_string(mc->alias));
        }
        if (mc->is_default) {
            json_object_set_new(m, "is-default", json_true());
        }
        if (mc->default_cpu_type) {
            json_object_set_new(m, "default-cpu-type", json_string(mc->default_cpu_type));
        }
        json_array_append_new(list, m);
    }
    return list;
}

CpuInfoFastList *qmp_query_cpus_fast(Error **errp)
{
    RETURN_FROM_JSON(CpuInfoFastList, guest_query_cpus(), errp);
}

MachineInfoList *qmp_query_machines(Error **errp)
{
    RETURN_FROM_JSON(MachineInfoList, query_machines(), errp);
}

MemdevList *qmp_query_memdev(Error **errp)
{
    RETURN_FROM_JSON(MemdevList, guest_query_memdev(), errp);
}

PciInfoList *qmp_query_pci(Error **errp)
{
    RETURN_FROM_JSON(PciInfoList, pci_query(), errp);
}

MemoryInfo *qmp_query_memory_size_summary(Error **errp)
{
    MemoryInfo *info = g_new0(MemoryInfo, 1);

    info->base_memory = machine_ram_size();
    info->has_plugged_memory = true;
    return info;
}

/* --- What is emulated --- */

TargetInfo *qmp_query_target(Error **errp)
{
    TargetInfo *info = g_new0(TargetInfo, 1);

    info->arch = SYS_EMU_TARGET_X86_64;
    return info;
}

NameInfo *qmp_query_name(Error **errp)
{
    NameInfo *info = g_new0(NameInfo, 1);

    info->name = g_strdup(machine_guest_name());
    return info;
}

UuidInfo *qmp_query_uuid(Error **errp)
{
    const uint8_t *u = machine_uuid();
    UuidInfo *info = g_new0(UuidInfo, 1);

    info->UUID = g_strdup_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
                                 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
                                 u[15]);
    return info;
}

KvmInfo *qmp_query_kvm(Error **errp)
{
    return g_new0(KvmInfo, 1);
}

AcceleratorInfo *qmp_query_accelerators(Error **errp)
{
    AcceleratorInfo *info = g_new0(AcceleratorInfo, 1);

    info->enabled = ACCELERATOR_QTEST;
    QAPI_LIST_PREPEND(info->present, ACCELERATOR_QTEST);
    return info;
}
