/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the place of linux-aio.c in a build without libaio: the name, and nothing that could be attached. */
#include "engine/batch.h"

const EngineBackend engine_backend_native = {.name = "native", .slot = AIO_SLOT_NATIVE};
