/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HMP commands of all rooms that this program links. */
#ifndef TOOLS_COMMAND_TABLES_H
#define TOOLS_COMMAND_TABLES_H

#include "base/hmp.h"

/* NULL-terminated list of tables. */
extern const HmpCommand *const hmp_command_tables[];

#endif
