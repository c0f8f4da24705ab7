/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared between the files of object/ only. */
#ifndef OBJECT_PRIVATE_H
#define OBJECT_PRIVATE_H

#include "loop/aio.h"
#include "object/object.h"

#include <glib.h>

/* Each adds its types to the table; object_register_types() calls all. */
void object_register_base_types(void);
void iothread_register_types(void);

/* The first complete() up the class chain. True if there is none. */
bool object_complete(Object *obj, Error **errp);

/* AIO_URING_* as x-io-uring-flags has them, joined by ':'; the text is to be freed. Returns false with @errp set. */
char *uring_flags_to_text(unsigned int flags);
bool uring_flags_parse(const char *text, unsigned int *flags, Error **errp);

/* What the loop is doing; read without its help. */
struct IothreadState *iothread_state(AioContext *ctx);

/* HmpCommand.run of "info iothreads" and "info iothread-stats". */
void hmp_info_iothreads(json_t *args, GString *out);
void hmp_info_iothread_stats(json_t *args, GString *out);

#endif
