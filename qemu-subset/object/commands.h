/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The object room's HMP commands; its QMP handlers are declared by the schema. */
#ifndef OBJECT_COMMANDS_H
#define OBJECT_COMMANDS_H

#include "base/hmp.h"

extern const HmpCommand object_hmp_commands[];

#endif
