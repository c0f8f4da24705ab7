/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the place of io_uring.c in a build without liburing: the name, and nothing that could be attached. */
#include "engine/batch.h"

const EngineBackend engine_backend_io_uring = {.name = "io_uring", .slot = AIO_SLOT_IO_URING};
