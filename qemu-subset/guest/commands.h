/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands of the guest room: each writes its text, with "\r\n" line ends, to @out. Main thread. */
#ifndef GUEST_COMMANDS_H
#define GUEST_COMMANDS_H

#include "base/error.h"

/* info ... */
void guest_hmp_info_status(GString *out);
void guest_hmp_info_qtree(GString *out);
void guest_hmp_info_pci(GString *out);
void guest_hmp_info_mtree(GString *out);
void guest_hmp_info_memdev(GString *out);
void guest_hmp_info_cpus(GString *out);
/* @args is the text behind the command's name. False with @errp set: HMP prints "Error: ..." */
bool guest_hmp_device_add(const char *args, GString *out, Error **errp);
bool guest_hmp_device_del(const char *id, GString *out, Error **errp);
bool guest_hmp_stop(Error **errp);
bool guest_hmp_cont(Error **errp);
bool guest_hmp_system_reset(Error **errp);
bool guest_hmp_quit(Error **errp);

#endif
