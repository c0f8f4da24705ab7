/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machines: the option parsers, creation, and what the rest asks about the machine. Main thread only. */
#ifndef GUEST_MACHINE_H
#define GUEST_MACHINE_H

#include "guest/qdev.h"
#include "guest/runstate.h"

#define TYPE_MACHINE "machine"

/*
 * --- Command line; each may come several times, later settings win ---
 * Errors are those of QEMU without the "PROG: -opt arg:" prefix; *@help: something was printed to stdout, exit with 0.
 */
bool machine_option(const char *arg, bool *help, Error **errp);  /* -machine, -M */
bool machine_accel_option(const char *arg, bool *help, Error **errp); /* -accel: qtest is the only one there is */
bool machine_memory_option(const char *arg, Error **errp);       /* -m */
bool machine_smp_option(const char *arg, Error **errp);          /* -smp */
bool machine_cpu_option(const char *arg, Error **errp);          /* -cpu */
void machine_set_nographic(void);                                /* -nographic: fw_cfg tells the guest */
void machine_set_uuid(const uint8_t uuid[16]);                   /* -uuid */
void machine_set_name(const char *name);                         /* -name guest=, for query-name */

/* The type that -machine names exists. */
bool machine_select(Error **errp);
/* The object /machine, with the properties, accelerator and topology that were asked for; selects first if need be. */
bool machine_configure(Error **errp);
/*
 * Complete /machine with RAM and built-in devices; configures it first if need be. Comes after -object (memory backends), before -device. Errors that belong to an
 * option (late checks) carry no prefix, as in QEMU. On failure the program ends.
 */
bool machine_create(Error **errp);
/* All -device are there: first reset; devices added from now on are hot-plugged. */
void machine_ready(void);
/* At program end: unrealize all devices, free RAM. */
void machine_destroy(void);

/* --- After machine_create() --- */
bool machine_has_cpus(void);           /* false for "none": memory and port accesses of qtest are refused */
unsigned int machine_cpus(void);       /* -smp cpus, the default for num-queues */
uint64_t machine_ram_size(void);
const char *machine_guest_name(void);  /* NULL if none was given */
bool machine_is_ready(void);           /* machine_ready() was called */

void machine_register_types(void);
/* Every type of this room: devices, buses, machines, memory backends. */
void guest_register_types(void);

#endif
