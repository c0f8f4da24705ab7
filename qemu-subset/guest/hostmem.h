/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory backends: the objects that hold guest RAM (memory-backend-ram, -memfd, -file). Main thread only. */
#ifndef GUEST_HOSTMEM_H
#define GUEST_HOSTMEM_H

#include "object/object.h"

#define TYPE_MEMORY_BACKEND "memory-backend"

typedef struct HostMemory HostMemory;

/* Valid once the object is complete; stable until it is freed. */
uint8_t *hostmem_ptr(const HostMemory *m);
uint64_t hostmem_size(const HostMemory *m);
/* One entry of query-memdev. */
json_t *hostmem_query(HostMemory *m);

void hostmem_register_types(void);

#endif
