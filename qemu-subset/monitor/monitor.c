/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the two kinds of monitors share: set-up, types, and the monitors of the old options. */
#include "monitor/private.h"

MonitorConfig monitor_config;

void monitor_init(const MonitorConfig *config)
{
    monitor_config = *config;
    events_init();
}

static void drop_monitors(const char *type)
{
    Object *objects = object_objects();

    for (guint i = 0; objects->child_order && i < objects->child_order->len;) {
        Object *o = g_ptr_array_index(objects->child_order, i);
        if (object_is_a(o, type)) {
            object_unparent(o);
        } else {
            i++;
        }
    }
}

void monitor_cleanup(void)
{
    drop_monitors(TYPE_MONITOR_QMP);
    drop_monitors(TYPE_MONITOR_HMP);
    events_cleanup();
}

void monitor_register_types(void)
{
    object_register_type(qmp_monitor_type());
    object_register_type(hmp_monitor_type());
}

bool monitor_new_compat(Chardev *c, bool qmp, bool pretty, Error **errp)
{
    static unsigned int count;
    g_autofree char *id = g_strdup_printf("compat_monitor%u", count++);
    json_t *options = json_pack("{s:s,s:s,s:s}", "qom-type", qmp ? TYPE_MONITOR_QMP : TYPE_MONITOR_HMP, "id", id,
                                "chardev", chardev_label(c));

    if (qmp) {
        json_object_set_new(options, "pretty", json_boolean(pretty));
    } else if (pretty) {
        error_setg(errp, "'pretty' is not compatible with HMP monitors");
        json_decref(options);
        return false;
    }
    bool ok = user_creatable_add(options, errp);
    json_decref(options);
    return ok;
}
