/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals of threads other than the main one. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/*
 * Signals from outside are for the main thread: block them around the creation of a thread, which inherits that. Those that a
 * thread's own instruction raises stay, or whoever handles them (a sanitizer, a debugger's helper) would never hear of it.
 */
static inline void signals_block(sigset_t *old)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t set;

    sigfillset(&set);
    for (unsigned int i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        sigdelset(&set, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &set, old);
}

static inline void signals_restore(const sigset_t *old)
{
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

#endif
