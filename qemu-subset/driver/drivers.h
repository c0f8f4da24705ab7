/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The block drivers of this build. */
#ifndef DRIVER_DRIVERS_H
#define DRIVER_DRIVERS_H

#include "block/node.h"

extern const BlockDriver block_driver_file, block_driver_host_device;
extern const BlockDriver block_driver_raw;
extern const BlockDriver block_driver_null_co, block_driver_null_aio;

/* Give the table of all of them to the block layer. Once, before anything is opened. */
void block_drivers_register(void);

#endif
