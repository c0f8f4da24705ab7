/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of object/ only. */
#ifndef OBJECT_PRIVATE_H
#define OBJECT_PRIVATE_H

#include "object/object.h"

/* Each adds its types to the table; object_register_types() calls all. */
void object_register_base_types(void);
void iothread_register_types(void);

/* The first complete() up the class chain. True if there is none. */
bool object_complete(Object *obj, Error **errp);

#endif
