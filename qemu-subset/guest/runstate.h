/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Run state of the virtual machine, its listeners, and requests to reset or end it. Main thread unless said otherwise. */
#ifndef GUEST_RUNSTATE_H
#define GUEST_RUNSTATE_H

#include "base/error.h"
#include "base/list.h"
#include "qapi/qapi-types-control.h"

typedef enum VmState {
    VM_PRELAUNCH,
    VM_RUNNING,
    VM_PAUSED,
    VM_IO_ERROR,
    VM_INMIGRATE,
    VM_SHUTDOWN,
    VM_STATES,
} VmState;

VmState vm_state(void);
const char *vm_state_name(VmState s); /* as query-status gives it */
bool vm_running(void);

/*
 * Called on every change between running and stopped. When stopping, listeners run in reverse order of registration and each
 * must have brought its I/O to rest when it returns; STOP is emitted afterwards. When starting, RESUME comes first.
 */
typedef struct VmStateListener {
    void (*fn)(void *opaque, bool running, VmState state);
    void *opaque;
    ListNode link;
} VmStateListener;
void vm_add_state_listener(VmStateListener *l);
void vm_remove_state_listener(VmStateListener *l);

/* Start: RESUME event if it was stopped. */
void vm_start(void);
/* Stop with @state; STOP event if it ran. */
void vm_stop(VmState state);
/* The initial state, before any event is due: prelaunch for -S, else running. */
void vm_set_initial(bool paused);

/* Reset every device at once, with the RESET event; a machine that is stopped is in prelaunch afterwards. */
void vm_system_reset(ShutdownCause cause);
/* Things to reset that are no devices; called before them. */
typedef struct VmResetHook {
    void (*fn)(void *opaque);
    void *opaque;
    ListNode link;
} VmResetHook;
void vm_add_reset_hook(VmResetHook *h);

/* End the program: vm_main_loop() returns. SHUTDOWN is emitted once, before this returns. */
void vm_shutdown(ShutdownCause cause);
/* [any thread, signal handlers] The same for a signal; SHUTDOWN is emitted when the main loop has seen it. */
void vm_shutdown_signal(int signum, int pid);
bool vm_shutdown_requested(void);
/* Signal number and sender if a signal ended it; 0 otherwise. */
int vm_shutdown_signal_info(int *pid);
/* Run the main loop's context until a shutdown is asked for. */
void vm_main_loop(void);

#endif
