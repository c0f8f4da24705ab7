/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtio block device: "virtio-blk-pci" and its kin. */
#ifndef VIRTIO_BLK_VIRTIO_BLK_H
#define VIRTIO_BLK_VIRTIO_BLK_H

#define TYPE_VIRTIO_BLK "virtio-blk-device"

/* Once at start, after the types of guest/. */
void virtio_blk_register_types(void);

#endif
