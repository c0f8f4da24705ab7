/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HMP commands of all rooms that this program links. */
#include "tools/command-tables.h"

#include "block/commands.h"
#include "guest/commands.h"
#include "monitor/monitor.h"
#include "object/commands.h"
#include "virtio/commands.h"

const HmpCommand *const hmp_command_tables[] = {
    hmp_help_commands, monitor_hmp_commands, chardev_hmp_commands, object_hmp_commands, block_hmp_commands,
    guest_hmp_commands, virtio_hmp_commands, NULL,
};
