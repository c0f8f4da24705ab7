/* SPDX-License-Identifier: GPL-2.0-or-later */
/* info virtio and its relatives. */
#include "virtio/commands.h"
#include "virtio/inspect.h"

#include <inttypes.h>

static const char *text_arg(json_t *args, const char *name)
{
    return json_string_value(json_object_get(args, name));
}

static long long number(json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const char *truth(json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name)) ? "true" : "false";
}

static void print_list(GString *out, json_t *list)
{
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
    {
        g_string_append_printf(out, "%s\t%s", i ? ",\n" : "", json_string_value(item));
    }
    g_string_append_c(out, '\n');
}

static void print_features(GString *out, json_t *f)
{
    json_t *unknown = json_object_get(f, "unknown-dev-features");

    print_list(out, json_object_get(f, "transports"));
    if (json_array_size(json_object_get(f, "dev-features"))) {
        print_list(out, json_object_get(f, "dev-features"));
    }
    if (unknown) {
        g_string_append_printf(out, "  unknown-features(0x%016x%016" PRIx64 ")\n", 0,
                               (uint64_t)json_integer_value(unknown));
    }
}

static void info_virtio(json_t *args, GString *out)
{
    json_t *list = virtio_inspect_all(), *d;
    size_t i;

    if (!json_array_size(list)) {
        g_string_append(out, "No VirtIO devices\n");
    }
    json_array_foreach(list, i, d)
    {
        g_string_append_printf(out, "%s [%s]\n", text_arg(d, "path"), text_arg(d, "name"));
    }
    json_decref(list);
}

static void info_status(json_t *args, GString *out)
{
    static const struct {
        const char *label, *member;
    } flags[] = {{"broken:                 ", "broken"},
                 {"disabled:               ", "disabled"},
                 {"disable_legacy_check:   ", "disable-legacy-check"},
                 {"started:                ", "started"},
                 {"use_started:            ", "use-started"},
                 {"start_on_kick:          ", "start-on-kick"},
                 {"use_guest_notifier_mask:", "use-guest-notifier-mask"},
                 {"vm_running:             ", "vm-running"}};
    const char *path = text_arg(args, "path");
    Error *err = NULL;
    json_t *s = virtio_inspect_device(path, &err);

    if (!s) {
        hmp_error(out, err);
        return;
    }
    g_string_append_printf(out, "%s:\n  device_name:             %s \n  device_id:               %lld\n", path,
                           text_arg(s, "name"), number(s, "device-id"));
    g_string_append_printf(out, "  vhost_started:           %s\n  bus_name:                (null)\n",
                           truth(s, "vhost-started"));
    for (unsigned int i = 0; i < G_N_ELEMENTS(flags); i++) {
        g_string_append_printf(out, "  %s %s\n", flags[i].label, truth(s, flags[i].member));
    }
    g_string_append_printf(out, "  num_vqs:                 %lld\n  queue_sel:               %lld\n", number(s, "num-vqs"),
                           number(s, "queue-sel"));
    g_string_append_printf(out, "  isr:                     %lld\n  endianness:              %s\n  status:\n", number(s, "isr"),
                           text_arg(s, "device-endian"));
    print_list(out, json_object_get(json_object_get(s, "status"), "statuses"));
    g_string_append(out, "  Guest features:\n");
    print_features(out, json_object_get(s, "guest-features"));
    g_string_append(out, "  Host features:\n");
    print_features(out, json_object_get(s, "host-features"));
    g_string_append(out, "  Backend features:\n");
    print_features(out, json_object_get(s, "backend-features"));
    json_decref(s);
}

static void info_queue(json_t *args, GString *out)
{
    static const struct {
        const char *label, *member;
    } counts[] = {{"queue_index:         ", "queue-index"},
                  {"inuse:               ", "inuse"},
                  {"used_idx:            ", "used-idx"},
                  {"signalled_used:      ", "signalled-used"}};
    const char *path = text_arg(args, "path");
    Error *err = NULL;
    json_t *s = virtio_inspect_queue(path, (unsigned int)number(args, "queue"), &err);

    if (!s) {
        hmp_error(out, err);
        return;
    }
    g_string_append_printf(out, "%s:\n  device_name:          %s\n", path, text_arg(s, "name"));
    for (unsigned int i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_string_append_printf(out, "  %s %lld\n", counts[i].label, number(s, counts[i].member));
    }
    g_string_append_printf(out, "  signalled_used_valid: %s\n", truth(s, "signalled-used-valid"));
    g_string_append_printf(out, "  last_avail_idx:       %lld\n  shadow_avail_idx:     %lld\n  VRing:\n",
                           number(s, "last-avail-idx"), number(s, "shadow-avail-idx"));
    g_string_append_printf(out, "    num:          %lld\n    num_default:  %lld\n    align:        %lld\n",
                           number(s, "vring-num"), number(s, "vring-num-default"), number(s, "vring-align"));
    g_string_append_printf(out, "    desc:         0x%016llx\n    avail:        0x%016llx\n    used:         0x%016llx\n",
                           number(s, "vring-desc"), number(s, "vring-avail"), number(s, "vring-used"));
    json_decref(s);
}

static void info_vhost_queue(json_t *args, GString *out)
{
    Error *err = NULL;

    virtio_inspect_vhost_queue(text_arg(args, "path"), &err);
    hmp_error(out, err);
}

static void print_desc(GString *out, json_t *d)
{
    json_t *flags = json_object_get(d, "flags"), *flag;
    size_t i;

    g_string_append_printf(out, "        addr 0x%llx len %lld", number(d, "addr"), number(d, "len"));
    json_array_foreach(flags, i, flag)
    {
        g_string_append_printf(out, "%s%s", i ? ", " : " (", json_string_value(flag));
    }
    if (json_array_size(flags)) {
        g_string_append_c(out, ')');
    }
}

static void info_element(json_t *args, GString *out)
{
    json_t *index = json_object_get(args, "index"), *e, *descs, *d, *avail, *used;
    const char *path = text_arg(args, "path");
    Error *err = NULL;
    size_t i;

    e = virtio_inspect_element(path, (unsigned int)number(args, "queue"),
                               index ? (int)(json_integer_value(index) & 0xffff) : -1, &err);
    if (!e) {
        hmp_error(out, err);
        return;
    }
    g_string_append_printf(out, "%s:\n  device_name: %s\n  index:   %lld\n  desc:\n    descs:\n", path, text_arg(e, "name"),
                           number(e, "index"));
    descs = json_object_get(e, "descs");
    json_array_foreach(descs, i, d)
    {
        g_string_append(out, i ? ",\n" : "");
        print_desc(out, d);
    }
    avail = json_object_get(e, "avail");
    used = json_object_get(e, "used");
    g_string_append_printf(out, "\n  avail:\n    flags: %lld\n    idx:   %lld\n    ring:  %lld\n", number(avail, "flags"),
                           number(avail, "idx"), number(avail, "ring"));
    g_string_append_printf(out, "  used:\n    flags: %lld\n    idx:   %lld\n", number(used, "flags"), number(used, "idx"));
    json_decref(e);
}

const HmpCommand virtio_hmp_commands[] = {
    {"info virtio", "", "", "list all virtio devices", info_virtio},
    {"info virtio-status", "path:s", "path", "show a virtio device", info_status},
    {"info virtio-queue-status", "path:s,queue:i", "path queue", "show one queue of a virtio device", info_queue},
    {"info virtio-vhost-queue-status", "path:s,queue:i", "path queue", "show one queue that vhost serves", info_vhost_queue},
    {"info virtio-queue-element", "path:s,queue:i,index:i?", "path queue [index]", "show a buffer in a queue", info_element},
    {0},
};
