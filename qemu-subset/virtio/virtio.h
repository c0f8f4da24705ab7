/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtio devices without their transport: status, features, configuration, queues and who serves them. */
#ifndef VIRTIO_VIRTIO_H
#define VIRTIO_VIRTIO_H

#include "guest/qdev.h"
#include "guest/runstate.h"
#include "loop/aio.h"
#include "loop/event-notifier.h"
#include "virtio/queue.h"

#define TYPE_VIRTIO_DEVICE "virtio-device"
#define TYPE_VIRTIO_BUS "virtio-bus"

#define VIRTIO_QUEUE_MAX 1024
#define VIRTIO_NO_VECTOR 0xffff

#define VIRTIO_CONFIG_S_DRIVER_OK 4
#define VIRTIO_CONFIG_S_FEATURES_OK 8
#define VIRTIO_CONFIG_S_NEEDS_RESET 0x40

/* Feature bits that are not a device's own. */
#define VIRTIO_F_NOTIFY_ON_EMPTY 24
#define VIRTIO_F_ANY_LAYOUT 27
#define VIRTIO_RING_F_INDIRECT_DESC 28
#define VIRTIO_RING_F_EVENT_IDX 29
#define VIRTIO_F_BAD_FEATURE 30
#define VIRTIO_F_VERSION_1 32
#define VIRTIO_F_ACCESS_PLATFORM 33
#define VIRTIO_F_RING_PACKED 34
#define VIRTIO_F_IN_ORDER 35
#define VIRTIO_F_RING_RESET 40

#define VIRTIO_ISR_QUEUE 1
#define VIRTIO_ISR_CONFIG 2

typedef struct VirtIODevice VirtIODevice;

/* What a device asks of its transport. */
typedef struct VirtIOTransport {
    /* [any thread] Interrupt for @vector (VIRTIO_NO_VECTOR: by line only); the ISR bits have been set. */
    void (*interrupt)(void *opaque, uint16_t vector);
} VirtIOTransport;

/* One queue and its server. Fields change in the main thread, while the queue is not started, unless noted. */
typedef struct VirtIOQueue {
    VirtIODevice *vdev;
    VirtQueue *vq;
    AioContext *ctx;    /* who serves it; set by the device before its first start */
    EventNotifier kick; /* how the main thread tells @ctx about a doorbell; fd -1 while there is no such thing */
    AioBH *bh;          /* handles the queue in its home; exists while it is started. Scheduled at home or by the main thread */
    AioBH *flush_bh;    /* publishes completions once a pass; exists as long */
    atomic_bool started; /* true only while everything above is in place */
    bool watched;         /* home: the handler is in place */
    bool flush_scheduled; /* home */
    /* Registers. */
    bool enabled;
    _Atomic uint16_t vector;
    uint64_t desc, avail, used; /* modern: as written, in force once enabled */
} VirtIOQueue;

/* A bit and what people are told about it. */
typedef struct VirtIOBitName {
    unsigned int bit;
    const char *text;
} VirtIOBitName;

/* First member of a device type's klass. bus_type is TYPE_VIRTIO_BUS. */
typedef struct VirtIODeviceClass {
    DeviceClass parent;
    uint16_t device_id; /* virtio's number: 2 for a block device */
    const char *name;   /* as introspection shows it */
    const VirtIOBitName *feature_names; /* of the device's own bits; ended by a NULL text */
    /* Add the device's own bits to @features (what the transport and the common properties offer) or take some away. */
    uint64_t (*get_features)(VirtIODevice *vdev, uint64_t features);
    /* Fill @config, vdev->config_len bytes; and take over what the driver wrote to it. */
    void (*get_config)(VirtIODevice *vdev, uint8_t *config);
    void (*set_config)(VirtIODevice *vdev, const uint8_t *config);
    /* The status is about to become @status (not 0). */
    void (*set_status)(VirtIODevice *vdev, uint8_t status);
    /*
     * Between begin and end no home touches a started queue and no request is in flight; requests parked for a later retry
     * keep their elements. Nests.
     */
    void (*quiesce_begin)(VirtIODevice *vdev);
    void (*quiesce_end)(VirtIODevice *vdev);
    /* The queue is about to be served (again), by its home. */
    void (*queue_starting)(VirtIODevice *vdev, unsigned int index);
    /* Quiesced; @index is about to be reset: drop parked requests. */
    void (*queue_reset)(VirtIODevice *vdev, unsigned int index);
    /* The driver reset the device; all queues have been reset. */
    void (*reset)(VirtIODevice *vdev);
    /* Home of the queue: take what is there. Kicks, polling and a start end up here. */
    void (*handle_queue)(VirtIODevice *vdev, unsigned int index);
} VirtIODeviceClass;

struct VirtIODevice {
    DeviceState qdev;
    const VirtIOTransport *transport;
    void *transport_opaque;
    /* Common properties. */
    bool indirect_desc, event_idx, notify_on_empty, any_layout, queue_reset_prop, packed, in_order, iommu_platform;
    bool use_started, use_disabled_flag, x_disable_legacy_check;

    _Atomic uint8_t status, isr;
    atomic_bool broken;
    _Atomic uint8_t generation;
    bool vm_running;
    bool started; /* the driver is ready, or kicked before it said so */
    bool ioeventfd; /* kicks reach the home through a notifier; set by the transport */
    bool modern;    /* VERSION_1 is offered; set by the transport */
    _Atomic uint16_t config_vector;
    uint16_t queue_sel;
    uint64_t host_features, guest_features;
    uint16_t config_len;
    unsigned int num_queues;
    VirtIOQueue *queues;
    VmStateListener vm_listener;
    ListNode all; /* realized devices */
};

static inline const VirtIODeviceClass *virtio_device_class(const VirtIODevice *vdev)
{
    return (const VirtIODeviceClass *)device_type_class(vdev->qdev.obj.type);
}

static inline bool virtio_has_feature(const VirtIODevice *vdev, unsigned int bit)
{
    return vdev->guest_features >> bit & 1;
}

/* --- For a device's realize and unrealize; main thread --- */
/* Make @n queues of @size entries, numbered from 0. */
void virtio_init(VirtIODevice *vdev, unsigned int n, unsigned int size, uint16_t config_len);
/* Stops everything; the device is quiet afterwards. Then queues may be freed with virtio_cleanup(). */
void virtio_shutdown(VirtIODevice *vdev);
void virtio_cleanup(VirtIODevice *vdev);
/* The configuration changed: generation and interrupt. */
void virtio_notify_config(VirtIODevice *vdev);
/* [home or main] A request breaks the rules beyond what a queue can see: stop serving until the driver resets. */
void virtio_error(VirtIODevice *vdev, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* [any] */
static inline bool virtio_is_broken(const VirtIODevice *vdev)
{
    return atomic_load_explicit(&((VirtIODevice *)vdev)->broken, memory_order_relaxed);
}

/* --- Home of queue @index --- */
/* Put the handler of the queue in place, or take it away; both harmless when there is nothing to do. */
void virtio_queue_watch(VirtIODevice *vdev, unsigned int index);
void virtio_queue_unwatch(VirtIODevice *vdev, unsigned int index);
/* Have the queue handled in the next bottom half phase. */
void virtio_queue_serve_soon(VirtIODevice *vdev, unsigned int index);
/* A used entry was filled: publish it, and others that are filled until then, in the bottom half phase of this pass. */
static inline void virtio_queue_flush_soon(VirtIOQueue *q)
{
    if (!q->flush_scheduled) {
        q->flush_scheduled = true;
        aio_bh_schedule(q->flush_bh);
    }
}

/* --- For transports; main thread --- */
void virtio_bind(VirtIODevice *vdev, const VirtIOTransport *transport, void *opaque);
/* Compute host_features; after realize of the device. */
void virtio_offer_features(VirtIODevice *vdev, uint64_t transport_features);
void virtio_set_features(VirtIODevice *vdev, uint64_t features);
uint8_t virtio_status(const VirtIODevice *vdev);
/* 0 resets. */
void virtio_set_status(VirtIODevice *vdev, uint8_t status);
void virtio_reset(VirtIODevice *vdev);
void virtio_kick(VirtIODevice *vdev, unsigned int index);
/* Bytes of the configuration as a little-endian number; all ones past its end. */
uint32_t virtio_config_read(VirtIODevice *vdev, unsigned int addr, unsigned int size);
void virtio_config_write(VirtIODevice *vdev, unsigned int addr, uint32_t value, unsigned int size);
/* Rings of the queue are complete (modern: enable was written; legacy: an address was): serve it if the device runs. */
void virtio_queue_enable(VirtIODevice *vdev, unsigned int index);
/* Stop one queue and put its registers back. */
void virtio_queue_reset(VirtIODevice *vdev, unsigned int index);
/* Read and clear the ISR. */
uint8_t virtio_take_isr(VirtIODevice *vdev);

/* The device that was realized before @vdev; NULL begins with the youngest. */
VirtIODevice *virtio_before(VirtIODevice *vdev);

/* Properties that every device has and a transport hands through: ended by a NULL name. */
extern const ObjectProperty virtio_device_properties[];

/* The abstract device type and the bus. */
void virtio_register_types(void);

#endif
