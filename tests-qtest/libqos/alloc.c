/* SPDX-License-Identifier: GPL-2.0-or-later */
/* First fit over a sorted list of used ranges: tests hold few of them. */
#include "alloc.h"
#include "base/bswap.h"

typedef struct Range {
    uint64_t start, end;
} Range;

struct GuestAlloc {
    uint64_t start, end;
    GArray *used; /* Range, ascending */
};

static struct GuestAlloc *heap(QTest *t)
{
    uint8_t le[8];
    uint64_t ram = t->ram_size;

    if (t->alloc) {
        return t->alloc;
    }
    if (!ram) {
        qt_fw_cfg_read(t, 3, le, sizeof(le));
        ram = load_le64(le);
    }
    t->alloc = g_new0(struct GuestAlloc, 1);
    t->alloc->start = 1 << 20;
    t->alloc->end = MIN(ram, 0xC0000000);
    t->alloc->used = g_array_new(FALSE, FALSE, sizeof(Range));
    return t->alloc;
}

uint64_t guest_alloc(QTest *t, size_t size)
{
    struct GuestAlloc *a = heap(t);
    uint64_t len = (MAX(size, 1) + GUEST_PAGE - 1) & ~(uint64_t)(GUEST_PAGE - 1);
    Range r = {a->start, a->start + len};
    guint i;

    for (i = 0; i < a->used->len; i++) {
        const Range *u = &g_array_index(a->used, Range, i);

        if (r.end <= u->start) {
            break;
        }
        r.start = u->end;
        r.end = r.start + len;
    }
    if (r.end > a->end) {
        qos_die("guest RAM is short: %zu bytes do not fit", size);
    }
    g_array_insert_val(a->used, i, r);
    return r.start;
}

void guest_free(QTest *t, uint64_t addr)
{
    struct GuestAlloc *a = heap(t);

    for (guint i = 0; i < a->used->len; i++) {
        if (g_array_index(a->used, Range, i).start == addr) {
            g_array_remove_index(a->used, i);
            return;
        }
    }
    qos_die("guest_free: nothing at 0x%" G_GINT64_MODIFIER "x", addr);
}

unsigned int guest_allocated(QTest *t)
{
    return heap(t)->used->len;
}

void guest_alloc_destroy(struct GuestAlloc *a)
{
    if (a) {
        g_array_free(a->used, TRUE);
        g_free(a);
    }
}
