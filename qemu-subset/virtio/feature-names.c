/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Texts for feature and status bits, in the order in which introspection lists them. */
#include "virtio/inspect.h"

const VirtIOBitName virtio_transport_names[] = {
    {29, "VIRTIO_RING_F_EVENT_IDX: Used & avail. event fields enabled"},
    {28, "VIRTIO_RING_F_INDIRECT_DESC: Indirect descriptors supported"},
    {40, "VIRTIO_F_RING_RESET: Driver can reset a queue individually"},
    {37, "VIRTIO_F_SR_IOV: Device supports single root I/O virtualization"},
    {36, "VIRTIO_F_ORDER_PLATFORM: Memory accesses ordered by platform"},
    {35, "VIRTIO_F_IN_ORDER: Device uses buffers in same order as made available by driver"},
    {34, "VIRTIO_F_RING_PACKED: Device supports packed VQ layout"},
    {33, "VIRTIO_F_IOMMU_PLATFORM: Device can be used on IOMMU platform"},
    {32, "VIRTIO_F_VERSION_1: Device compliant for v1 spec (legacy)"},
    {27, "VIRTIO_F_ANY_LAYOUT: Device accepts arbitrary desc. layouts"},
    {24, "VIRTIO_F_NOTIFY_ON_EMPTY: Notify when device runs out of avail. descs. on VQ"},
    {0},
};

const VirtIOBitName virtio_status_names[] = {
    {0, "VIRTIO_CONFIG_S_ACKNOWLEDGE: Valid virtio device found"},
    {7, "VIRTIO_CONFIG_S_FAILED: Error in guest, device failed"},
    {6, "VIRTIO_CONFIG_S_NEEDS_RESET: Irrecoverable error, device needs reset"},
    {1, "VIRTIO_CONFIG_S_DRIVER: Guest OS compatible with device"},
    {3, "VIRTIO_CONFIG_S_FEATURES_OK: Feature negotiation complete"},
    {2, "VIRTIO_CONFIG_S_DRIVER_OK: Driver setup and ready"},
    {0},
};
