/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An eventfd: a kick that can be watched. */
#ifndef LOOP_EVENT_NOTIFIER_H
#define LOOP_EVENT_NOTIFIER_H

#include <stdbool.h>

typedef struct EventNotifier {
    int fd;
} EventNotifier;

/* 0 or -errno. */
int event_notifier_init(EventNotifier *e);
void event_notifier_cleanup(EventNotifier *e);
/* [any] */
void event_notifier_set(EventNotifier *e);
/* Read it to zero; true if it had been set. */
bool event_notifier_test_and_clear(EventNotifier *e);

#endif
