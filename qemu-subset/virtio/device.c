/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtio devices: registers common to all transports, start and stop of queues, configuration space. */
#include "virtio/virtio.h"

#include <stdarg.h>

/* --- Interrupts and errors --- */

/* Set bits of the ISR; true if one of them is new. */
static bool raise_isr(VirtIODevice *vdev, uint8_t bits)
{
    /*
     * With MSI-X nobody reads the ISR and the bits stay set: look first, a locked instruction is only needed for a change. If
     * the driver clears it at this moment, its look at the used ring comes after, and the index was stored (with a full
     * barrier behind it) before our look here.
     */
    if ((atomic_load_explicit(&vdev->isr, memory_order_relaxed) & bits) == bits) {
        return false;
    }
    return (atomic_fetch_or(&vdev->isr, bits) & bits) != bits;
}

static void queue_interrupt(VirtQueue *vq, void *opaque)
{
    VirtIOQueue *q = opaque;

    raise_isr(q->vdev, VIRTIO_ISR_QUEUE);
    q->vdev->transport->interrupt(q->vdev->transport_opaque,
                                  atomic_load_explicit(&q->vector, memory_order_relaxed));
}

static void config_interrupt(VirtIODevice *vdev)
{
    atomic_fetch_add(&vdev->generation, 1);
    raise_isr(vdev, VIRTIO_ISR_QUEUE | VIRTIO_ISR_CONFIG);
    vdev->transport->interrupt(vdev->transport_opaque,
                               atomic_load_explicit(&vdev->config_vector, memory_order_relaxed));
}

void virtio_notify_config(VirtIODevice *vdev)
{
    if (virtio_status(vdev) & VIRTIO_CONFIG_S_DRIVER_OK) {
        config_interrupt(vdev);
    }
}

/* Legacy drivers do not know the bit. */
static void note_needs_reset(VirtIODevice *vdev)
{
    if (virtio_has_feature(vdev, VIRTIO_F_VERSION_1)) {
        atomic_fetch_or(&vdev->status, VIRTIO_CONFIG_S_NEEDS_RESET);
    }
}

static void mark_broken(VirtIODevice *vdev, const char *text)
{
    if (atomic_exchange(&vdev->broken, true)) {
        return;
    }
    error_report("%s", text);
    note_needs_reset(vdev);
    if (virtio_has_feature(vdev, VIRTIO_F_VERSION_1) && (virtio_status(vdev) & VIRTIO_CONFIG_S_DRIVER_OK)) {
        config_interrupt(vdev);
    }
}

void virtio_error(VirtIODevice *vdev, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    mark_broken(vdev, text);
}

static void queue_broken(VirtQueue *vq, void *opaque, const char *text)
{
    VirtIOQueue *q = opaque;

    mark_broken(q->vdev, text);
}

static const VirtQueueOps queue_ops = {
    .interrupt = queue_interrupt,
    .broken = queue_broken,
};

/* --- Serving a queue, in its home --- */

static void serve(VirtIOQueue *q)
{
    if (!virtio_is_broken(q->vdev)) {
        virtio_device_class(q->vdev)->handle_queue(q->vdev, virtqueue_index(q->vq));
    }
}

static void on_kick(void *opaque)
{
    VirtIOQueue *q = opaque;

    if (event_notifier_test_and_clear(&q->kick)) {
        serve(q);
    }
}

static bool on_poll(void *opaque)
{
    VirtIOQueue *q = opaque;

    return !virtqueue_empty(q->vq) && !virtio_is_broken(q->vdev);
}

static void on_poll_ready(void *opaque)
{
    serve(opaque);
}

static void on_poll_begin(void *opaque)
{
    VirtIOQueue *q = opaque;

    virtqueue_disable_notification(q->vq);
}

static void on_poll_end(void *opaque)
{
    VirtIOQueue *q = opaque;

    /* What came in meanwhile is found by the loop, which polls once more after this. */
    virtqueue_enable_notification(q->vq);
}

void virtio_queue_watch(VirtIODevice *vdev, unsigned int index)
{
    VirtIOQueue *q = &vdev->queues[index];

    if (q->watched || !q->started || q->kick.fd < 0) {
        return;
    }
    q->watched = true;
    aio_set_fd_handler(q->ctx, q->kick.fd, on_kick, NULL, on_poll, on_poll_ready, q);
    aio_set_fd_poll(q->ctx, q->kick.fd, on_poll_begin, on_poll_end);
}

void virtio_queue_unwatch(VirtIODevice *vdev, unsigned int index)
{
    VirtIOQueue *q = &vdev->queues[index];

    if (!q->watched) {
        return;
    }
    q->watched = false;
    aio_set_fd_handler(q->ctx, q->kick.fd, NULL, NULL, NULL, NULL, NULL);
    /* The loop may have taken it while it polled, with the driver's notifications off. */
    if (!virtqueue_notification(q->vq)) {
        virtqueue_enable_notification(q->vq);
    }
}

static void queue_bh(void *opaque)
{
    VirtIOQueue *q = opaque;

    virtio_queue_watch(q->vdev, virtqueue_index(q->vq));
    serve(q);
}

void virtio_queue_serve_soon(VirtIODevice *vdev, unsigned int index)
{
    VirtIOQueue *q = &vdev->queues[index];

    if (q->started) {
        aio_bh_schedule(q->bh);
    }
}

static void flush_bh(void *opaque)
{
    VirtIOQueue *q = opaque;

    q->flush_scheduled = false;
    virtqueue_flush(q->vq);
}

/* --- Start and stop, in the main thread --- */

static void queue_start(VirtIODevice *vdev, VirtIOQueue *q)
{
    const VirtQueueFeatures features = {
        .event_idx = virtio_has_feature(vdev, VIRTIO_RING_F_EVENT_IDX),
        .notify_on_empty = virtio_has_feature(vdev, VIRTIO_F_NOTIFY_ON_EMPTY),
        .packed = virtio_has_feature(vdev, VIRTIO_F_RING_PACKED),
        .in_order = virtio_has_feature(vdev, VIRTIO_F_IN_ORDER),
    };
    int ret;

    if (q->started || !vdev->vm_running || virtio_is_broken(vdev) || !virtqueue_has_rings(q->vq) ||
        !virtqueue_start(q->vq, &features)) {
        return;
    }
    if (vdev->ioeventfd) {
        ret = event_notifier_init(&q->kick);
        if (ret < 0) {
            q->kick.fd = -1;
            virtqueue_stop(q->vq);
            virtio_error(vdev, "virtio: cannot create the notifier of queue %u: %s", virtqueue_index(q->vq),
                         g_strerror(-ret));
            return;
        }
    }
    virtio_device_class(vdev)->queue_starting(vdev, virtqueue_index(q->vq));
    q->flush_bh = aio_bh_new(q->ctx, flush_bh, q);
    q->bh = aio_bh_new(q->ctx, queue_bh, q);
    /* Last: the home may be on its way out of a drain, and looks at every queue that is started. */
    q->started = true;
    /* Buffers may be waiting from before: have a first look. */
    aio_bh_schedule(q->bh);
}

static void queue_leave_home(void *opaque)
{
    VirtIOQueue *q = opaque;

    virtio_queue_unwatch(q->vdev, virtqueue_index(q->vq));
    aio_bh_cancel(q->bh);
    aio_bh_cancel(q->flush_bh);
    q->flush_scheduled = false;
    virtqueue_flush(q->vq);
}

/* Quiesced. */
static void queue_stop(VirtIOQueue *q)
{
    if (!q->started) {
        return;
    }
    aio_run_in_home(q->ctx, queue_leave_home, q);
    aio_bh_delete(q->bh);
    aio_bh_delete(q->flush_bh);
    q->bh = q->flush_bh = NULL;
    if (q->kick.fd >= 0) {
        event_notifier_cleanup(&q->kick);
        q->kick.fd = -1;
    }
    virtqueue_stop(q->vq);
    q->started = false;
}

static void start_queues(VirtIODevice *vdev)
{
    for (unsigned int i = 0; i < vdev->num_queues; i++) {
        queue_start(vdev, &vdev->queues[i]);
    }
}

static void stop_queues(VirtIODevice *vdev)
{
    for (unsigned int i = 0; i < vdev->num_queues; i++) {
        queue_stop(&vdev->queues[i]);
    }
}

static void vm_state_changed(void *opaque, bool running, VmState state)
{
    VirtIODevice *vdev = opaque;
    const VirtIODeviceClass *vdc = virtio_device_class(vdev);

    vdev->vm_running = running;
    if (running && vdev->started) {
        start_queues(vdev);
    } else if (!running) {
        vdc->quiesce_begin(vdev);
        stop_queues(vdev);
        vdc->quiesce_end(vdev);
    }
}

void virtio_queue_enable(VirtIODevice *vdev, unsigned int index)
{
    if (vdev->started) {
        queue_start(vdev, &vdev->queues[index]);
    }
}

/* Quiesced and stopped. */
static void queue_forget(VirtIODevice *vdev, unsigned int index)
{
    VirtIOQueue *q = &vdev->queues[index];

    virtio_device_class(vdev)->queue_reset(vdev, index);
    virtqueue_reset(q->vq);
    q->enabled = false;
    q->vector = VIRTIO_NO_VECTOR;
    q->desc = q->avail = q->used = 0;
}

void virtio_queue_reset(VirtIODevice *vdev, unsigned int index)
{
    const VirtIODeviceClass *vdc = virtio_device_class(vdev);

    vdc->quiesce_begin(vdev);
    queue_stop(&vdev->queues[index]);
    queue_forget(vdev, index);
    vdc->quiesce_end(vdev);
}

void virtio_reset(VirtIODevice *vdev)
{
    const VirtIODeviceClass *vdc = virtio_device_class(vdev);
    bool was_started = vdev->started;

    if (was_started) {
        vdc->quiesce_begin(vdev);
        stop_queues(vdev);
    }
    for (unsigned int i = 0; i < vdev->num_queues; i++) {
        queue_forget(vdev, i);
    }
    vdev->started = false;
    vdev->guest_features = 0;
    vdev->queue_sel = 0;
    vdev->config_vector = VIRTIO_NO_VECTOR;
    vdev->broken = false;
    vdev->status = 0;
    vdev->isr = 0;
    if (was_started) {
        vdc->quiesce_end(vdev);
    }
    vdc->reset(vdev);
}

void virtio_kick(VirtIODevice *vdev, unsigned int index)
{
    VirtIOQueue *q;

    if (index >= vdev->num_queues || virtio_is_broken(vdev)) {
        return;
    }
    q = &vdev->queues[index];
    if (!vdev->started && virtqueue_has_rings(q->vq)) {
        /* Old drivers kick before they set DRIVER_OK. */
        vdev->started = true;
        start_queues(vdev);
    }
    if (!q->started) {
        return;
    }
    if (q->kick.fd >= 0) {
        event_notifier_set(&q->kick);
    } else {
        serve(q);
    }
}

/* --- Registers --- */

void virtio_offer_features(VirtIODevice *vdev, uint64_t transport_features)
{
    uint64_t f = transport_features;

    f |= (uint64_t)vdev->indirect_desc << VIRTIO_RING_F_INDIRECT_DESC;
    f |= (uint64_t)vdev->event_idx << VIRTIO_RING_F_EVENT_IDX;
    f |= (uint64_t)vdev->notify_on_empty << VIRTIO_F_NOTIFY_ON_EMPTY;
    f |= (uint64_t)vdev->any_layout << VIRTIO_F_ANY_LAYOUT;
    f |= (uint64_t)(vdev->packed && vdev->modern) << VIRTIO_F_RING_PACKED;
    f |= (uint64_t)(vdev->in_order && vdev->modern) << VIRTIO_F_IN_ORDER;
    f |= (uint64_t)(vdev->iommu_platform && vdev->modern) << VIRTIO_F_ACCESS_PLATFORM;
    f |= (uint64_t)vdev->queue_reset_prop << VIRTIO_F_RING_RESET;
    vdev->host_features = virtio_device_class(vdev)->get_features(vdev, f);
}

void virtio_set_features(VirtIODevice *vdev, uint64_t features)
{
    /* The driver's choice is final once it said so. */
    if (!(virtio_status(vdev) & VIRTIO_CONFIG_S_FEATURES_OK) && !vdev->started) {
        vdev->guest_features = features & vdev->host_features;
    }
}

uint8_t virtio_status(const VirtIODevice *vdev)
{
    return atomic_load(&((VirtIODevice *)vdev)->status);
}

/* A driver that ignores where the device's memory accesses go would lead it astray. */
static bool features_acceptable(const VirtIODevice *vdev)
{
    return !virtio_has_feature(vdev, VIRTIO_F_VERSION_1) || virtio_has_feature(vdev, VIRTIO_F_ACCESS_PLATFORM) ||
           !(vdev->host_features >> VIRTIO_F_ACCESS_PLATFORM & 1);
}

void virtio_set_status(VirtIODevice *vdev, uint8_t status)
{
    const VirtIODeviceClass *vdc = virtio_device_class(vdev);

    if (!status) {
        virtio_reset(vdev);
        return;
    }
    if (~virtio_status(vdev) & status & VIRTIO_CONFIG_S_FEATURES_OK && !features_acceptable(vdev)) {
        return;
    }
    vdc->set_status(vdev, status);
    atomic_store(&vdev->status, status);
    if (virtio_is_broken(vdev)) {
        /* After the store, which may have overwritten what a home that broke the device at this moment had set. */
        note_needs_reset(vdev);
    }
    if (status & VIRTIO_CONFIG_S_DRIVER_OK) {
        vdev->started = true;
        start_queues(vdev);
    } else if (vdev->started) {
        vdc->quiesce_begin(vdev);
        stop_queues(vdev);
        vdc->quiesce_end(vdev);
        vdev->started = false;
    }
}

uint8_t virtio_take_isr(VirtIODevice *vdev)
{
    return atomic_exchange(&vdev->isr, 0);
}

/* What is past the end of the configuration reads as ones. */
uint32_t virtio_config_read(VirtIODevice *vdev, unsigned int addr, unsigned int size)
{
    g_autofree uint8_t *config = g_malloc0(vdev->config_len);
    uint32_t v = 0;

    if (addr + size > vdev->config_len) {
        return UINT32_MAX >> (32 - 8 * size);
    }
    virtio_device_class(vdev)->get_config(vdev, config);
    for (unsigned int i = 0; i < size; i++) {
        v |= (uint32_t)config[addr + i] << (8 * i);
    }
    return v;
}

void virtio_config_write(VirtIODevice *vdev, unsigned int addr, uint32_t value, unsigned int size)
{
    g_autofree uint8_t *config = g_malloc0(vdev->config_len);

    if (addr + size > vdev->config_len) {
        return;
    }
    virtio_device_class(vdev)->get_config(vdev, config);
    for (unsigned int i = 0; i < size; i++) {
        config[addr + i] = value >> (8 * i);
    }
    virtio_device_class(vdev)->set_config(vdev, config);
}

/* --- Life --- */

static ListNode devices = {&devices, &devices};

VirtIODevice *virtio_before(VirtIODevice *vdev)
{
    ListNode *prev = vdev ? vdev->all.prev : devices.prev;

    return prev == &devices ? NULL : list_entry(prev, VirtIODevice, all);
}

void virtio_init(VirtIODevice *vdev, unsigned int n, unsigned int size, uint16_t config_len)
{
    g_assert(n <= VIRTIO_QUEUE_MAX);
    vdev->config_len = config_len;
    vdev->num_queues = n;
    vdev->queues = g_new0(VirtIOQueue, n);
    for (unsigned int i = 0; i < n; i++) {
        vdev->queues[i].vdev = vdev;
        vdev->queues[i].vq = virtqueue_new(i, size, &queue_ops, &vdev->queues[i]);
        vdev->queues[i].kick.fd = -1;
        vdev->queues[i].vector = VIRTIO_NO_VECTOR;
    }
    vdev->config_vector = VIRTIO_NO_VECTOR;
    vdev->vm_running = vm_running();
    vdev->vm_listener = (VmStateListener){.fn = vm_state_changed, .opaque = vdev};
    vm_add_state_listener(&vdev->vm_listener);
    list_append(&devices, &vdev->all);
}

void virtio_shutdown(VirtIODevice *vdev)
{
    vm_remove_state_listener(&vdev->vm_listener);
    list_remove(&vdev->all);
    virtio_reset(vdev);
}

void virtio_cleanup(VirtIODevice *vdev)
{
    for (unsigned int i = 0; i < vdev->num_queues; i++) {
        virtqueue_free(vdev->queues[i].vq);
    }
    g_clear_pointer(&vdev->queues, g_free);
    vdev->num_queues = 0;
}

void virtio_bind(VirtIODevice *vdev, const VirtIOTransport *transport, void *opaque)
{
    vdev->transport = transport;
    vdev->transport_opaque = opaque;
}

#define COMMON_BOOL(n, field, def, desc)                                                                 \
    {                                                                                              \
        .name = n, .kind = PROP_BOOL, .description = desc, .get = object_get_bool,                 \
        .set = device_set_bool, .offset = offsetof(VirtIODevice, field), .opaque = def             \
    }
static const char is_on[] = "on";

const ObjectProperty virtio_device_properties[] = {
    COMMON_BOOL("indirect_desc", indirect_desc, is_on, "on/off"),
    COMMON_BOOL("event_idx", event_idx, is_on, "on/off"),
    COMMON_BOOL("notify_on_empty", notify_on_empty, is_on, "on/off"),
    COMMON_BOOL("any_layout", any_layout, is_on, "on/off"),
    COMMON_BOOL("iommu_platform", iommu_platform, NULL, "on/off"),
    COMMON_BOOL("packed", packed, NULL, "on/off"),
    COMMON_BOOL("queue_reset", queue_reset_prop, is_on, "on/off"),
    COMMON_BOOL("in_order", in_order, NULL, "on/off"),
    COMMON_BOOL("use-started", use_started, is_on, "on/off"),
    COMMON_BOOL("use-disabled-flag", use_disabled_flag, is_on, "on/off"),
    COMMON_BOOL("x-disable-legacy-check", x_disable_legacy_check, NULL, "on/off"),
    {},
};

static void virtio_device_init(Object *obj)
{
    for (const ObjectProperty *p = virtio_device_properties; p->name; p++) {
        *(bool *)(void *)((char *)obj + p->offset) = p->opaque != NULL;
    }
}

static const DeviceClass virtio_device_class_base = {
    .bus_type = TYPE_VIRTIO_BUS,
};

static const ObjectType virtio_device_type = {
    .name = TYPE_VIRTIO_DEVICE,
    .parent = TYPE_DEVICE,
    .size = sizeof(VirtIODevice),
    .abstract = true,
    .properties = virtio_device_properties,
    .init = virtio_device_init,
    .klass = &virtio_device_class_base,
};

static const BusClass virtio_bus_class = {
    .max_devices = 1,
};

static const ObjectType virtio_bus_type = {
    .name = TYPE_VIRTIO_BUS,
    .parent = TYPE_BUS,
    .size = sizeof(BusState),
    .klass = &virtio_bus_class,
};

void virtio_register_types(void)
{
    object_register_type(&virtio_device_type);
    object_register_type(&virtio_bus_type);
}
