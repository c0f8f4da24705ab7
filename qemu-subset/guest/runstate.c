/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Run state, its listeners, reset, and the end of the program. */
#include "guest/machine.h"
#include "guest/private.h"

#include "loop/timer.h"
#include "qapi/qapi-events-control.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>

static const char *const names[VM_STATES] = {
    [VM_PRELAUNCH] = "prelaunch", [VM_RUNNING] = "running",       [VM_PAUSED] = "paused",
    [VM_IO_ERROR] = "io-error",   [VM_INMIGRATE] = "inmigrate", [VM_SHUTDOWN] = "shutdown",
};

static VmState state = VM_PRELAUNCH;
static ListNode listeners = {&listeners, &listeners};
static ListNode reset_hooks = {&reset_hooks, &reset_hooks};

VmState vm_state(void)
{
    return state;
}

const char *vm_state_name(VmState s)
{
    return names[s];
}

bool vm_running(void)
{
    return state == VM_RUNNING;
}

void vm_add_state_listener(VmStateListener *l)
{
    list_append(&listeners, &l->link);
}

void vm_remove_state_listener(VmStateListener *l)
{
    list_remove(&l->link);
}

void vm_set_initial(bool paused)
{
    state = paused ? VM_PRELAUNCH : VM_RUNNING;
    clock_virtual_enable(!paused);
    if (!paused) {
        VmStateListener *l, *next;
        list_for_each_safe(l, next, &listeners, link) {
            l->fn(l->opaque, true, state);
        }
    }
}

void vm_start(void)
{
    VmStateListener *l, *next;

    if (vm_running()) {
        return;
    }
    qapi_event_send_resume();
    state = VM_RUNNING;
    clock_virtual_enable(true);
    list_for_each_safe(l, next, &listeners, link) {
        l->fn(l->opaque, true, state);
    }
}

void vm_stop(VmState new_state)
{
    g_assert(new_state != VM_RUNNING);
    if (!vm_running()) {
        /* An I/O error of a stopped machine changes nothing; a pause never hides why it stopped. */
        return;
    }
    state = new_state;
    clock_virtual_enable(false);
    for (ListNode *n = listeners.prev, *prev; n != &listeners; n = prev) {
        VmStateListener *l = list_entry(n, VmStateListener, link);
        prev = n->prev;
        l->fn(l->opaque, false, state);
    }
    qapi_event_send_stop();
}

/* --- Reset --- */

static bool by_guest(ShutdownCause cause)
{
    return cause == SHUTDOWN_CAUSE_GUEST_RESET || cause == SHUTDOWN_CAUSE_GUEST_SHUTDOWN ||
           cause == SHUTDOWN_CAUSE_GUEST_PANIC;
}

void vm_add_reset_hook(VmResetHook *h)
{
    list_append(&reset_hooks, &h->link);
}

void vm_reset_devices(void)
{
    VmResetHook *h, *next;

    list_for_each_safe(h, next, &reset_hooks, link) {
        h->fn(h->opaque);
    }
    bus_reset(bus_system());
}

void vm_forget_reset_hooks(void)
{
    while (!list_empty(&reset_hooks)) {
        list_remove(reset_hooks.next);
    }
}

void vm_system_reset(ShutdownCause cause)
{
    qapi_event_send_reset(by_guest(cause), cause);
    vm_reset_devices();
    /* Why it stopped is over: it stands at the beginning again. */
    if (!vm_running() && state != VM_INMIGRATE) {
        state = VM_PRELAUNCH;
    }
}

/* --- The end --- */

static _Atomic bool shutdown_requested;
static volatile sig_atomic_t signal_number;
static volatile sig_atomic_t signal_pid;
static bool shutdown_announced;

static void announce(ShutdownCause cause)
{
    if (!shutdown_announced) {
        shutdown_announced = true;
        qapi_event_send_shutdown(by_guest(cause), cause);
    }
}

void vm_shutdown(ShutdownCause cause)
{
    g_assert(aio_context_in_home(aio_context_main()));
    announce(cause);
    atomic_store(&shutdown_requested, true);
    aio_notify(aio_context_main());
}

void vm_shutdown_signal(int signum, int pid)
{
    signal_number = signum;
    signal_pid = pid;
    atomic_store(&shutdown_requested, true);
    aio_notify(aio_context_main());
}

bool vm_shutdown_requested(void)
{
    return atomic_load(&shutdown_requested);
}

int vm_shutdown_signal_info(int *pid)
{
    *pid = signal_pid;
    return signal_number;
}

void vm_main_loop(void)
{
    AioContext *ctx = aio_context_main();

    while (!vm_shutdown_requested()) {
        aio_poll(ctx, true);
    }
    if (signal_number) {
        announce(SHUTDOWN_CAUSE_HOST_SIGNAL);
    }
}
