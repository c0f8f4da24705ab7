/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the machine files of guest/ only. */
#ifndef GUEST_MACHINE_PRIVATE_H
#define GUEST_MACHINE_PRIVATE_H

#include "guest/hostmem.h"
#include "guest/machine.h"

typedef struct MachineState {
    Object obj;
    char *accel;          /* as -machine gave it */
    char *memory_backend; /* id; NULL: one of its own */
    bool graphics, usb, dump_guest_core, mem_merge, aux_ram_share;
    int acpi, smm; /* DeviceOnOffAuto */
    HostMemory *ram;
    uint64_t ram_size;
} MachineState;

/* ObjectType.klass of a machine type, whose name is @name plus "-machine". */
typedef struct MachineClass {
    const char *name, *alias, *desc;
    bool is_default, has_acpi;
    const char *default_ram_id, *default_cpu_type;
    uint64_t default_ram_size;
    unsigned int max_cpus;
    /* RAM is allocated (m->ram, NULL if there is none): map it and make the devices. */
    bool (*init)(MachineState *m, Error **errp);
} MachineClass;

typedef struct MachineTopology {
    unsigned int cpus, max_cpus, sockets, cores, threads;
} MachineTopology;

extern const MachineClass machine_pc, machine_q35, machine_none;
extern const MachineClass *const machine_classes[]; /* sorted by name, ended by NULL */

const MachineTopology *machine_topology(void);
const uint8_t *machine_uuid(void);
bool machine_nographic(void);
/* The text of "-machine help", and of "-machine TYPE,help". */
void machine_print_help(const MachineClass *mc);
/* -smp's keys as strings. */
bool machine_parse_topology(json_t *options, MachineTopology *t, Error **errp);
bool machine_check_topology(const MachineClass *mc, const MachineTopology *t, Error **errp);

/* A CPU that runs nothing, with a thread as QEMU's has; at /machine/unattached/device[N]. */
bool machine_create_cpu(unsigned int index, Error **errp);
void machine_destroy_cpus(void); /* ends their threads */
/* Thread id of CPU @index and its place in the tree, which the caller frees. */
int machine_cpu_thread_id(unsigned int index, char **qom_path);
void cpu_register_types(void);
#define TYPE_QEMU64_CPU "qemu64-x86_64-cpu"

#endif
