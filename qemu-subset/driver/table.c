/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of block drivers. */
#include "driver/drivers.h"

static const BlockDriver *const table[] = {
    &block_driver_file,    &block_driver_host_device, &block_driver_null_aio,
    &block_driver_null_co, &block_driver_raw,         NULL,
};

void block_drivers_register(void)
{
    block_register_drivers(table);
}
