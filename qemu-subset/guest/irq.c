/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupt lines between devices. */
#include "guest/irq.h"

#include "guest/qdev.h"

void irq_set(IrqLine *line, int level)
{
    if (line && line->watcher) {
        line->watcher(line->opaque, line->n, level);
    }
}

void device_init_irq_in(DeviceState *dev, int n)
{
    g_assert(!dev->irqs);
    dev->irqs = g_new0(IrqLine, n);
    dev->n_irqs = n;
    for (int i = 0; i < n; i++) {
        dev->irqs[i].n = i;
    }
}

IrqLine *device_irq_in(DeviceState *dev, int n)
{
    return n >= 0 && n < dev->n_irqs ? &dev->irqs[n] : NULL;
}

bool device_watch_irq_in(DeviceState *dev, IrqWatcher *watcher, void *opaque)
{
    for (int i = 0; i < dev->n_irqs; i++) {
        dev->irqs[i].watcher = watcher;
        dev->irqs[i].opaque = opaque;
    }
    return dev->n_irqs;
}
