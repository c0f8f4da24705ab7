/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An allocator for guest memory. Main thread only. */
#ifndef LIBQOS_ALLOC_H
#define LIBQOS_ALLOC_H

#include "qtest.h"

/* Pages are 4096 bytes; the heap is 1 MiB up to the end of low RAM (fw_cfg tells its size on machines that have it). */
#define GUEST_PAGE 4096

/* Guest-physical address of @size bytes, aligned to a page; dies if RAM is short. The memory is not cleared. */
uint64_t guest_alloc(QTest *t, size_t size);
/* Give back what guest_alloc() returned. Dies on an address that is not allocated. */
void guest_free(QTest *t, uint64_t addr);
/* Number of allocations that are still there. */
unsigned int guest_allocated(QTest *t);

/* For qt_stop(); NULL is allowed. */
void guest_alloc_destroy(struct GuestAlloc *a);

#endif
