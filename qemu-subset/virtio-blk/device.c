/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtio-blk device: realize, reset, coming to rest, and its types. Main thread unless noted. */
#include "virtio-blk/internal.h"

#include "block/commands.h"
#include "guest/machine.h"
#include "virtio/pci.h"

#define NUM_QUEUES_AUTO UINT16_MAX
#define VIRTIO_ID_BLOCK 2
#define SECTOR_SIZE 512
#define F_WCE 9
#define F_CONFIG_WCE 11

static VirtIOBlock *to_blk(void *dev)
{
    return dev;
}

/* --- What the backend asks of us --- */

/* Home of @c. */
static void channel_quiesce(void *dev, BlockChannel *c)
{
    VirtIOBlock *s = to_blk(dev);

    for (unsigned int i = 0; i < s->num_queues; i++) {
        if (s->queues[i].channel == c) {
            virtio_queue_unwatch(&s->vdev, i);
        }
    }
}

/* Home of @c. */
static void channel_resume(void *dev, BlockChannel *c)
{
    VirtIOBlock *s = to_blk(dev);

    for (unsigned int i = 0; i < s->num_queues; i++) {
        if (s->queues[i].channel == c) {
            virtio_queue_watch(&s->vdev, i);
            /* The driver's notifications may have been lost on a bottom half that found us quiesced. */
            virtio_queue_serve_soon(&s->vdev, i);
        }
    }
}

static void update_capacity(VirtIOBlock *s)
{
    s->limits.capacity = blk_length(s->blk) / SECTOR_SIZE;
}

/* The node is drained. */
static void resized(void *dev)
{
    VirtIOBlock *s = to_blk(dev);

    update_capacity(s);
    virtio_notify_config(&s->vdev);
}

static char *get_path(void *dev)
{
    return object_path(&to_blk(dev)->vdev.qdev.obj);
}

static const BlockDeviceOps block_ops = {
    .channel_quiesce = channel_quiesce,
    .channel_resume = channel_resume,
    .resized = resized,
    .get_path = get_path,
};

/* --- What virtio asks of us --- */

static void quiesce_begin(VirtIODevice *vdev)
{
    blk_drained_begin(to_blk(vdev)->blk);
}

static void quiesce_end(VirtIODevice *vdev)
{
    blk_drained_end(to_blk(vdev)->blk);
}

static void set_status(VirtIODevice *vdev, uint8_t status)
{
    VirtIOBlock *s = to_blk(vdev);

    /* A driver that cannot switch the cache later has chosen by its features. */
    if ((status & VIRTIO_CONFIG_S_DRIVER_OK) && !virtio_has_feature(vdev, F_CONFIG_WCE)) {
        blk_set_write_cache(s->blk, virtio_has_feature(vdev, F_WCE));
    }
}

static void device_was_reset(VirtIODevice *vdev)
{
    VirtIOBlock *s = to_blk(vdev);

    blk_set_write_cache(s->blk, s->original_wce);
}

static void queue_starting(VirtIODevice *vdev, unsigned int index)
{
    VirtIOBlkQueue *q = &to_blk(vdev)->queues[index];
    FifoNode *node;

    while ((node = fifo_pop(&q->parked))) {
        fifo_push(&q->retry, node);
    }
}

static void queue_reset(VirtIODevice *vdev, unsigned int index)
{
    virtio_blk_drop_parked(&to_blk(vdev)->queues[index]);
}

/* --- Realize --- */

static bool check_queues(VirtIOBlock *s, Error **errp)
{
    if (s->num_queues == NUM_QUEUES_AUTO) {
        s->num_queues = 1;
    }
    if (!s->num_queues) {
        error_setg(errp, "num-queues property must be larger than 0");
        return false;
    }
    if (s->num_queues > VIRTIO_QUEUE_MAX) {
        error_setg(errp, "invalid num-queues property (%u), must be at most %d", s->num_queues, VIRTIO_QUEUE_MAX);
        return false;
    }
    if (s->queue_size <= 2) {
        error_setg(errp, "invalid queue-size property (%u), must be > 2", s->queue_size);
        return false;
    }
    if (s->queue_size & (s->queue_size - 1) || s->queue_size > VIRTQUEUE_MAX_SIZE) {
        error_setg(errp, "invalid queue-size property (%u), must be a power of 2 (max %d)", s->queue_size,
                   VIRTQUEUE_MAX_SIZE);
        return false;
    }
    return true;
}

static bool on_off_auto(int value, bool def)
{
    return value == DEVICE_AUTO ? def : value == DEVICE_ON;
}

/* Rights on the node, write cache, accounting and error policy, as the properties say or the backend has them. */
static bool apply_backend_options(VirtIOBlock *s, Error **errp)
{
    uint32_t perm = BLK_PERM_CONSISTENT_READ;
    uint32_t shared = BLK_PERM_CONSISTENT_READ | BLK_PERM_WRITE_UNCHANGED | BLK_PERM_RESIZE;
    bool invalid, failed;

    if (blk_writable(s->blk)) {
        perm |= BLK_PERM_WRITE;
    }
    if (s->share_rw) {
        shared |= BLK_PERM_WRITE;
    }
    if (!blk_set_perm(s->blk, perm, shared, errp)) {
        return false;
    }
    blk_set_write_cache(s->blk, on_off_auto(s->write_cache, blk_write_cache(s->blk)));
    s->original_wce = blk_write_cache(s->blk);
    blk_accounting(s->blk, &invalid, &failed);
    blk_set_accounting(s->blk, on_off_auto(s->account_invalid, invalid), on_off_auto(s->account_failed, failed));
    blk_set_on_error(s->blk, s->rerror, s->werror);
    return true;
}

static bool check_drive(VirtIOBlock *s, Error **errp)
{
    if (!s->blk) {
        error_setg(errp, "drive property not set");
        return false;
    }
    if (!blk_node(s->blk)) {
        error_setg(errp, "Device needs media, but drive is empty");
        return false;
    }
    return true;
}

static void free_queues(VirtIOBlock *s)
{
    virtio_blk_mapping_release(s);
    for (unsigned int i = 0; i < s->num_queues; i++) {
        virtio_blk_queue_cleanup(&s->queues[i]);
    }
    g_clear_pointer(&s->queues, g_free);
}

static bool make_queues(VirtIOBlock *s, Error **errp)
{
    s->queues = g_new0(VirtIOBlkQueue, s->num_queues);
    for (unsigned int i = 0; i < s->num_queues; i++) {
        if (!virtio_blk_queue_init(s, i)) {
            error_setg(errp, "cannot allocate memory for %u queues of %u requests", s->num_queues, s->queue_size);
            return false;
        }
    }
    return virtio_blk_mapping_apply(s, errp);
}

/* Give up what apply_backend_options() took. */
static void release_backend(VirtIOBlock *s)
{
    blk_set_perm(s->blk, 0, BLK_PERM_ALL, NULL);
    blk_detach_dev(s->blk, s);
}

static bool blk_realize(DeviceState *dev, Error **errp)
{
    VirtIOBlock *s = to_blk(dev);

    if (!check_drive(s, errp) || !check_queues(s, errp)) {
        return false;
    }
    if (blk_attach_dev(s->blk, &block_ops, s) < 0) {
        error_setg(errp, "Drive '%s' is already in use by another device", blk_name(s->blk));
        return false;
    }
    if (!apply_backend_options(s, errp) || !virtio_blk_check_geometry(s, errp) || !virtio_blk_check_sizes(s, errp)) {
        release_backend(s);
        return false;
    }
    s->limits.logical_block = s->logical_block_size;
    s->limits.max_discard_sectors = s->max_discard_sectors;
    s->limits.max_write_zeroes_sectors = s->max_write_zeroes_sectors;
    update_capacity(s);
    virtio_init(&s->vdev, s->num_queues, s->queue_size, virtio_blk_config_len(s));
    if (!make_queues(s, errp)) {
        virtio_shutdown(&s->vdev);
        free_queues(s);
        virtio_cleanup(&s->vdev);
        release_backend(s);
        return false;
    }
    return true;
}

static void blk_unrealize(DeviceState *dev)
{
    VirtIOBlock *s = to_blk(dev);
    Drive *drive;

    virtio_shutdown(&s->vdev);
    free_queues(s);
    virtio_cleanup(&s->vdev);
    release_backend(s);
    /* A drive that was made for a device goes with it. */
    drive = drive_by_backend(s->blk);
    if (drive) {
        drive_free(drive);
    }
}

/* --- Types --- */

static void blk_init(Object *obj)
{
    virtio_blk_init_properties(to_blk(obj));
}

static void blk_finalize(Object *obj)
{
    VirtIOBlock *s = to_blk(obj);

    blk_unref(s->blk);
    g_free(s->serial);
    json_decref(s->vq_mapping);
    g_clear_pointer(&s->iothread, object_unref);
}

static const VirtIOBitName feature_names[] = {
    {30, "VHOST_USER_F_PROTOCOL_FEATURES: Vhost-user protocol features negotiation supported"},
    {26, "VHOST_F_LOG_ALL: Logging write descriptors supported"},
    {11, "VIRTIO_BLK_F_CONFIG_WCE: Cache writeback and writethrough modes supported"},
    {9, "VIRTIO_BLK_F_FLUSH: Flush command supported"},
    {7, "VIRTIO_BLK_F_SCSI: SCSI packet commands supported"},
    {14, "VIRTIO_BLK_F_WRITE_ZEROES: Write zeroes command supported"},
    {13, "VIRTIO_BLK_F_DISCARD: Discard command supported"},
    {12, "VIRTIO_BLK_F_MQ: Multiqueue supported"},
    {10, "VIRTIO_BLK_F_TOPOLOGY: Topology information available"},
    {6, "VIRTIO_BLK_F_BLK_SIZE: Block size of disk available"},
    {5, "VIRTIO_BLK_F_RO: Device is read-only"},
    {4, "VIRTIO_BLK_F_GEOMETRY: Legacy geometry available"},
    {2, "VIRTIO_BLK_F_SEG_MAX: Max segments in a request is seg_max"},
    {0},
};

static const VirtIODeviceClass blk_class = {
    .parent = {
        .bus_type = TYPE_VIRTIO_BUS,
        .category = "Storage",
        .user_creatable = true,
        .realize = blk_realize,
        .unrealize = blk_unrealize,
    },
    .device_id = VIRTIO_ID_BLOCK,
    .name = "virtio-blk",
    .feature_names = feature_names,
    .get_features = virtio_blk_get_features,
    .get_config = virtio_blk_get_config,
    .set_config = virtio_blk_set_config,
    .set_status = set_status,
    .quiesce_begin = quiesce_begin,
    .quiesce_end = quiesce_end,
    .queue_starting = queue_starting,
    .queue_reset = queue_reset,
    .reset = device_was_reset,
    .handle_queue = virtio_blk_handle_queue,
};

static const ObjectType blk_type = {
    .name = TYPE_VIRTIO_BLK,
    .parent = TYPE_VIRTIO_DEVICE,
    .size = sizeof(VirtIOBlock),
    .properties = virtio_blk_properties,
    .init = blk_init,
    .finalize = blk_finalize,
    .klass = &blk_class,
};

/* One queue for each processor, one vector for each queue and one for configuration changes. */
static void prepare_pci(VirtIOPCI *proxy, VirtIODevice *vdev)
{
    VirtIOBlock *s = to_blk(vdev);

    if (s->num_queues == NUM_QUEUES_AUTO) {
        s->num_queues = MIN(machine_cpus(), VIRTIO_QUEUE_MAX);
    }
    if (proxy->vectors == VIRTIO_PCI_VECTORS_AUTO) {
        proxy->vectors = s->num_queues + 1u;
    }
}

static const VirtIOPCIInfo blk_pci_info = {
    .name = "virtio-blk-pci",
    .alias = "virtio-blk",
    .category = "Storage",
    .backend = TYPE_VIRTIO_BLK,
    .class_id = 0x0100,
    .legacy_id = 0x1001,
    .properties = virtio_blk_properties,
    .prepare = prepare_pci,
};

void virtio_blk_register_types(void)
{
    virtio_register_types();
    virtio_pci_register_types();
    object_register_type(&blk_type);
    virtio_pci_register(&blk_pci_info);
}
