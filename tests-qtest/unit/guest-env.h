/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine for unit tests of guest/ and qtest/: main loop, types, a plain PCI device to plug in, and collected events. */
#ifndef UNIT_GUEST_ENV_H
#define UNIT_GUEST_ENV_H

#include "guest/pci.h"

#define TYPE_TEST_PCI "test-pci"

/* One I/O, one 32-bit and one 64-bit BAR of storage, and 8 MSI-X vectors in BAR 3. */
typedef struct TestPci {
    PciDevice dev;
    uint8_t io[16], mem[4096];
    uint32_t number;
    bool fail;
    _Atomic int level; /* INTx, for pci_intx_kick() */
} TestPci;

extern int test_pci_realized; /* devices alive */
extern GString *test_events;  /* "NAME DATA\n" for each event */

/* Main loop and types; once a program. */
void guest_env_init(void);
/* Machine as from "-machine @machine"; ready to run. End it with machine_destroy(). */
void guest_env_machine(const char *machine, const char *memory);
/* Run what is scheduled. */
void guest_env_settle(void);

#endif
