/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands of the virtio room. */
#ifndef VIRTIO_COMMANDS_H
#define VIRTIO_COMMANDS_H

#include "base/hmp.h"

extern const HmpCommand virtio_hmp_commands[]; /* ended by a NULL name */

#endif
