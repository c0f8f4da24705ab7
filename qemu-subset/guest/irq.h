/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupt lines into a device, as far as qtest watches and drives them. Main thread only. */
#ifndef GUEST_IRQ_H
#define GUEST_IRQ_H

#include <stdbool.h>

typedef void IrqWatcher(void *opaque, int n, int level);

/* Input @n of a device. No device does anything with a level, since no guest code runs; qtest shows it. */
typedef struct IrqLine {
    int n;
    IrqWatcher *watcher; /* NULL: none */
    void *opaque;
} IrqLine;

/* A NULL @line is a line that leads nowhere. */
void irq_set(IrqLine *line, int level);

struct DeviceState;

/* Give @dev @n inputs. Called once, in init or realize; they are freed with the device. */
void device_init_irq_in(struct DeviceState *dev, int n);
IrqLine *device_irq_in(struct DeviceState *dev, int n); /* NULL if there is none */

/*
 * For qtest: call @watcher with each level that is set on an input from now on; NULL ends that. False if @dev has no inputs.
 * Watching lasts until the device is gone.
 */
bool device_watch_irq_in(struct DeviceState *dev, IrqWatcher *watcher, void *opaque);

#endif
