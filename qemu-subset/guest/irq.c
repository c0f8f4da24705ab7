/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupt lines between devices. */
#include "guest/irq.h"

#include "guest/qdev.h"

void irq_set(IrqLine *line, int level)
{
    if (!line) {
        return;
    }
    if (line->watcher) {
        line->watcher(line->watcher_opaque, line->n, level);
    }
    if (line->handler) {
        line->handler(line->opaque, line->n, level);
    }
}

static void irq_array_free(void *p)
{
    IrqArray *a = p;

    g_free(a->in);
    g_free(a->out);
    g_free(a->out_watch);
    g_free(a);
}

static IrqArray *irq_array_new(DeviceState *dev, const char *name, bool outputs, int n)
{
    IrqArray *a = g_new0(IrqArray, 1);

    if (!dev->irqs) {
        dev->irqs = g_ptr_array_new_with_free_func(irq_array_free);
    }
    a->name = name;
    a->outputs = outputs;
    a->n = n;
    g_ptr_array_add(dev->irqs, a);
    return a;
}

static IrqArray *irq_array_find(DeviceState *dev, const char *name, bool outputs)
{
    for (unsigned int i = 0; dev->irqs && i < dev->irqs->len; i++) {
        IrqArray *a = g_ptr_array_index(dev->irqs, i);
        if (a->outputs == outputs && !g_strcmp0(a->name, name)) {
            return a;
        }
    }
    return NULL;
}

void device_init_irq_in(DeviceState *dev, const char *name, IrqHandler *handler, int n)
{
    IrqArray *a = irq_array_new(dev, name, false, n);

    a->in = g_new0(IrqLine, n);
    for (int i = 0; i < n; i++) {
        a->in[i] = (IrqLine){.handler = handler, .opaque = dev, .n = i};
    }
}

void device_init_irq_out(DeviceState *dev, const char *name, int n)
{
    IrqArray *a = irq_array_new(dev, name, true, n);

    a->out = g_new0(IrqLine *, n);
}

IrqLine *device_irq_in(DeviceState *dev, const char *name, int n)
{
    IrqArray *a = irq_array_find(dev, name, false);

    return a && n >= 0 && n < a->n ? &a->in[n] : NULL;
}

void device_connect_irq_out(DeviceState *dev, const char *name, int n, IrqLine *to)
{
    IrqArray *a = irq_array_find(dev, name, true);

    g_assert(a && n >= 0 && n < a->n);
    a->out[n] = to;
}

void device_set_irq_out(DeviceState *dev, const char *name, int n, int level)
{
    IrqArray *a = irq_array_find(dev, name, true);

    g_assert(a && n >= 0 && n < a->n);
    if (a->out_watch) {
        irq_set(&a->out_watch[n], level);
    }
    irq_set(a->out[n], level);
}

bool device_watch_irq_in(DeviceState *dev, const char *name, IrqHandler *watcher, void *opaque)
{
    IrqArray *a = irq_array_find(dev, name, false);

    for (int i = 0; a && i < a->n; i++) {
        a->in[i].watcher = watcher;
        a->in[i].watcher_opaque = opaque;
    }
    return a;
}

bool device_watch_irq_out(DeviceState *dev, const char *name, IrqHandler *watcher, void *opaque)
{
    IrqArray *a = irq_array_find(dev, name, true);

    if (!a) {
        return false;
    }
    if (!a->out_watch) {
        a->out_watch = g_new0(IrqLine, a->n);
    }
    for (int i = 0; i < a->n; i++) {
        a->out_watch[i] = (IrqLine){.handler = watcher, .opaque = opaque, .n = i};
    }
    return true;
}
