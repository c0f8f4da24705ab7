/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What introspection shows of virtio devices, as the JSON that QMP answers with. Main thread; NULL with @errp set. */
#ifndef VIRTIO_INSPECT_H
#define VIRTIO_INSPECT_H

#include "virtio/virtio.h"

#include <jansson.h>

json_t *virtio_inspect_all(void);
json_t *virtio_inspect_device(const char *path, Error **errp);
json_t *virtio_inspect_queue(const char *path, unsigned int queue, Error **errp);
/* @index -1: the next to be taken. */
json_t *virtio_inspect_element(const char *path, unsigned int queue, int index, Error **errp);
/* Always fails: there is no vhost. */
void virtio_inspect_vhost_queue(const char *path, Error **errp);

/* feature-names.c; ended by a NULL text. */
extern const VirtIOBitName virtio_transport_names[], virtio_status_names[];

#endif
