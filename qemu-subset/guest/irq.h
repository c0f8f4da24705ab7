/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupt lines and the named or unnamed line arrays of a device, as far as qtest watches and drives them. Main thread only. */
#ifndef GUEST_IRQ_H
#define GUEST_IRQ_H

#include <stdbool.h>

typedef struct IrqLine IrqLine;
typedef void IrqHandler(void *opaque, int n, int level);

/* An input of a device: levels set on it reach @handler, and before that a watcher. */
struct IrqLine {
    IrqHandler *handler; /* may be NULL */
    void *opaque;
    int n;
    IrqHandler *watcher; /* qtest; NULL: none */
    void *watcher_opaque;
};

/* A NULL @line is a line that leads nowhere. */
void irq_set(IrqLine *line, int level);

/* Lines of one name; @name NULL: the unnamed ones. Inputs are this device's; outputs point to inputs of others. */
typedef struct IrqArray {
    const char *name;
    bool outputs;
    int n;
    IrqLine *in;   /* inputs: @n lines */
    IrqLine **out; /* outputs: @n pointers, NULL: not connected */
    IrqLine *out_watch; /* outputs: lines to the watcher; NULL: not watched */
} IrqArray;

struct DeviceState;

/* Give @dev @n input lines that call @handler; or @n outputs. Made in init or realize, freed with the device. */
void device_init_irq_in(struct DeviceState *dev, const char *name, IrqHandler *handler, int n);
void device_init_irq_out(struct DeviceState *dev, const char *name, int n);
IrqLine *device_irq_in(struct DeviceState *dev, const char *name, int n); /* NULL if there is none */
void device_connect_irq_out(struct DeviceState *dev, const char *name, int n, IrqLine *to);
void device_set_irq_out(struct DeviceState *dev, const char *name, int n, int level);

/*
 * For qtest: call @watcher with each level that is set on an input or output from now on. False if @dev has no such lines.
 * Watching lasts until the device is gone.
 */
bool device_watch_irq_in(struct DeviceState *dev, const char *name, IrqHandler *watcher, void *opaque);
bool device_watch_irq_out(struct DeviceState *dev, const char *name, IrqHandler *watcher, void *opaque);

#endif
