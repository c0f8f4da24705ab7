/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Introspection of virtio devices: x-query-virtio and its relatives. Looks at rings in guest memory without touching them. */
#include "virtio/inspect.h"
#include "virtio/queue-internal.h"

#include "qapi/qapi-commands-virtio.h"
#include "qapi/qapi-visit-virtio.h"

#include <string.h>

#define RETURN_FROM_JSON(type, json, errp)                                                         \
    do {                                                                                           \
        type *result_ = NULL;                                                                      \
        g_autoptr(json_t) json_ = (json);                                                          \
        if (json_) {                                                                               \
            g_autoptr(Visitor) v_ = visitor_input_new(json_, QAPI_JSON);                           \
            visit_type_##type(v_, NULL, &result_, errp);                                           \
        }                                                                                          \
        return result_;                                                                            \
    } while (0)

/* --- Devices --- */

static VirtIODevice *find(const char *path, const char *text, Error **errp)
{
    Object *obj = object_resolve(path, NULL);

    if (!obj || !object_is_a(obj, TYPE_VIRTIO_DEVICE) || !((DeviceState *)obj)->realized) {
        error_setg(errp, text, path);
        return NULL;
    }
    return (VirtIODevice *)obj;
}

static VirtIODevice *find_realized(const char *path, Error **errp)
{
    return find(path, "Path %s is not a realized VirtIODevice", errp);
}

static const char *name_of(const VirtIODevice *vdev)
{
    return virtio_device_class(vdev)->name;
}

json_t *virtio_inspect_all(void)
{
    json_t *list = json_array();

    for (VirtIODevice *vdev = virtio_before(NULL); vdev; vdev = virtio_before(vdev)) {
        g_autofree char *path = object_path(&vdev->qdev.obj);

        json_array_append_new(list, json_pack("{s:s, s:s}", "path", path, "name", name_of(vdev)));
    }
    return list;
}

/* Texts of the bits of *@bits that @names knows, which are then cleared. */
static json_t *texts(const VirtIOBitName *names, uint64_t *bits)
{
    json_t *list = json_array();

    for (; names && names->text; names++) {
        if (*bits >> names->bit & 1) {
            json_array_append_new(list, json_string(names->text));
            *bits &= ~(1ull << names->bit);
        }
    }
    return list;
}

static json_t *features(const VirtIODevice *vdev, uint64_t bits)
{
    json_t *f = json_object();

    json_object_set_new(f, "transports", texts(virtio_transport_names, &bits));
    json_object_set_new(f, "dev-features", texts(virtio_device_class(vdev)->feature_names, &bits));
    if (bits) {
        json_object_set_new(f, "unknown-dev-features", json_integer((json_int_t)bits));
    }
    return f;
}

static json_t *statuses(const VirtIODevice *vdev)
{
    uint64_t bits = virtio_status(vdev);
    json_t *s = json_object();

    json_object_set_new(s, "statuses", texts(virtio_status_names, &bits));
    if (bits) {
        json_object_set_new(s, "unknown-statuses", json_integer((json_int_t)bits));
    }
    return s;
}

json_t *virtio_inspect_device(const char *path, Error **errp)
{
    VirtIODevice *vdev = find_realized(path, errp);

    if (!vdev) {
        return NULL;
    }
    json_t *s = json_pack("{s:s, s:i, s:b, s:s, s:i, s:i, s:i, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:s, s:b}", "name",
                          name_of(vdev), "device-id", virtio_device_class(vdev)->device_id, "vhost-started", 0,
                          "device-endian", "little", "num-vqs", vdev->num_queues, "isr",
                          atomic_load_explicit(&vdev->isr, memory_order_relaxed), "queue-sel", vdev->queue_sel, "vm-running",
                          vdev->vm_running, "broken", virtio_is_broken(vdev), "disabled", 0, "use-started",
                          vdev->use_started, "started", vdev->started, "start-on-kick", 0, "disable-legacy-check",
                          vdev->x_disable_legacy_check, "bus-name", "", "use-guest-notifier-mask", 1);

    json_object_set_new(s, "guest-features", features(vdev, vdev->guest_features));
    json_object_set_new(s, "host-features", features(vdev, vdev->host_features | 1ull << VIRTIO_F_BAD_FEATURE));
    json_object_set_new(s, "backend-features", features(vdev, 0));
    json_object_set_new(s, "status", statuses(vdev));
    return s;
}

/* --- Queues --- */

typedef struct Snapshot {
    VirtQueue *vq;
    VirtQueueState state;
} Snapshot;

static void take_snapshot(void *opaque)
{
    Snapshot *s = opaque;

    virtqueue_state(s->vq, &s->state);
}

/* What the home sees, asked there while the queue runs. */
static VirtQueueState look_at(VirtIOQueue *q)
{
    Snapshot s = {.vq = q->vq};

    if (q->started) {
        aio_run_in_home(q->ctx, take_snapshot, &s);
    } else {
        take_snapshot(&s);
    }
    return s.state;
}

static VirtIOQueue *find_queue(const char *path, unsigned int queue, VirtIODevice **vdev, Error **errp)
{
    *vdev = find_realized(path, errp);
    if (!*vdev) {
        return NULL;
    }
    if (queue >= (*vdev)->num_queues) {
        error_setg(errp, "Invalid virtqueue number %u", queue);
        return NULL;
    }
    return &(*vdev)->queues[queue];
}

json_t *virtio_inspect_queue(const char *path, unsigned int queue, Error **errp)
{
    VirtIODevice *vdev;
    VirtIOQueue *q = find_queue(path, queue, &vdev, errp);
    uint64_t desc, avail, used;

    if (!q) {
        return NULL;
    }
    VirtQueueState st = look_at(q);
    virtqueue_rings(q->vq, &desc, &avail, &used);
    return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:b}", "name", name_of(vdev),
                     "queue-index", queue, "inuse", st.in_use, "vring-num", virtqueue_size(q->vq), "vring-num-default",
                     virtqueue_max_size(q->vq), "vring-align", 4096, "vring-desc", (json_int_t)desc, "vring-avail",
                     (json_int_t)avail, "vring-used", (json_int_t)used, "last-avail-idx", st.last_avail,
                     "shadow-avail-idx", st.seen_avail, "used-idx", st.used_idx, "signalled-used", st.signalled_used,
                     "signalled-used-valid", st.signalled_valid);
}

void virtio_inspect_vhost_queue(const char *path, Error **errp)
{
    if (find(path, "Path %s is not a VirtIODevice", errp)) {
        error_setg(errp, "Error: vhost device has not started yet");
    }
}

/* --- A buffer --- */

static json_t *describe(const uint8_t *d, uint16_t *next, bool *more)
{
    static const struct {
        uint16_t flag;
        const char *name;
    } names[] = {{VRING_DESC_F_INDIRECT, "indirect"}, {VRING_DESC_F_WRITE, "write"}, {VRING_DESC_F_NEXT, "next"}};
    uint64_t addr = ring_load64(d), hi = ring_load64(d + 8);
    uint16_t flags = (uint16_t)(hi >> 32);
    json_t *list = json_array();

    for (unsigned int i = 0; i < G_N_ELEMENTS(names); i++) {
        if (flags & names[i].flag) {
            json_array_append_new(list, json_string(names[i].name));
        }
    }
    *next = (uint16_t)(hi >> 48);
    *more = flags & VRING_DESC_F_NEXT;
    return json_pack("{s:I, s:I, s:o}", "addr", (json_int_t)addr, "len", (json_int_t)(uint32_t)hi, "flags", list);
}

/* The chain from @head, its last descriptor first. A loop ends after as many steps as there are entries. */
static json_t *describe_chain(const uint8_t *table, unsigned int entries, unsigned int head, Error **errp)
{
    const uint8_t *d = table + (size_t)VRING_DESC_SIZE * head;
    json_t *list = json_array();
    uint16_t next;
    bool more;

    if (ring_load64(d + 8) >> 32 & VRING_DESC_F_INDIRECT) {
        uint32_t len = ring_load32(d + 8);

        if (!len || len % VRING_DESC_SIZE) {
            error_setg(errp, "Invalid size for indirect buffer table");
            json_decref(list);
            return NULL;
        }
        d = table = guest_ram_whole(ring_load64(d), len);
        if (!table) {
            error_setg(errp, "Cannot map indirect buffer");
            json_decref(list);
            return NULL;
        }
        entries = len / VRING_DESC_SIZE;
    }
    for (unsigned int steps = 0; steps < entries; steps++) {
        json_array_insert_new(list, 0, describe(d, &next, &more));
        if (!more || next >= entries) {
            break;
        }
        d = table + (size_t)VRING_DESC_SIZE * next;
    }
    return list;
}

json_t *virtio_inspect_element(const char *path, unsigned int queue, int index, Error **errp)
{
    VirtIODevice *vdev;
    VirtIOQueue *q = find_queue(path, queue, &vdev, errp);
    uint64_t desc, avail, used;

    if (!q) {
        return NULL;
    }
    if (virtio_has_feature(vdev, VIRTIO_F_RING_PACKED)) {
        error_setg(errp, "Packed ring not supported");
        return NULL;
    }
    unsigned int num = virtqueue_size(q->vq);
    virtqueue_rings(q->vq, &desc, &avail, &used);
    const uint8_t *d = desc ? guest_ram_whole(desc, (uint64_t)VRING_DESC_SIZE * num) : NULL;
    const uint8_t *a = avail ? guest_ram_whole(avail, 4 + 2 * num) : NULL;
    const uint8_t *u = used ? guest_ram_whole(used, 4) : NULL;
    if (!d || !a || !u) {
        error_setg(errp, "Region caches not initialized");
        return NULL;
    }
    unsigned int slot = (index < 0 ? look_at(q).last_avail : (unsigned int)index) % num;
    unsigned int head = ring_load16(a + 4 + 2 * slot);
    if (head >= num) {
        error_setg(errp, "Descriptor %u in the available ring is out of range", head);
        return NULL;
    }
    json_t *descs = describe_chain(d, num, head, errp);
    return !descs ? NULL
                  : json_pack("{s:s, s:i, s:o, s:{s:i, s:i, s:i}, s:{s:i, s:i}}", "name", name_of(vdev), "index", head,
                              "descs", descs, "avail", "flags", ring_load16(a), "idx", ring_load16(a + 2), "ring", head,
                              "used", "flags", ring_load16(u), "idx", ring_load16(u + 2));
}

/* --- QMP --- */

VirtioInfoList *qmp_x_query_virtio(Error **errp)
{
    RETURN_FROM_JSON(VirtioInfoList, virtio_inspect_all(), errp);
}

VirtioStatus *qmp_x_query_virtio_status(const char *path, Error **errp)
{
    RETURN_FROM_JSON(VirtioStatus, virtio_inspect_device(path, errp), errp);
}

VirtQueueStatus *qmp_x_query_virtio_queue_status(const char *path, uint16_t queue, Error **errp)
{
    RETURN_FROM_JSON(VirtQueueStatus, virtio_inspect_queue(path, queue, errp), errp);
}

VirtVhostQueueStatus *qmp_x_query_virtio_vhost_queue_status(const char *path, uint16_t queue, Error **errp)
{
    virtio_inspect_vhost_queue(path, errp);
    return NULL;
}

VirtioQueueElement *qmp_x_query_virtio_queue_element(const char *path, uint16_t queue, bool has_index, uint16_t index,
                                                     Error **errp)
{
    RETURN_FROM_JSON(VirtioQueueElement, virtio_inspect_element(path, queue, has_index ? index : -1, errp), errp);
}
