/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The old name of a header that moved. */
#include "qemu/aio.h"
