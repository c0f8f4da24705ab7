/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands of the guest room. */
#ifndef GUEST_COMMANDS_H
#define GUEST_COMMANDS_H

#include "base/hmp.h"

extern const HmpCommand guest_hmp_commands[]; /* ended by a NULL name */

#endif
