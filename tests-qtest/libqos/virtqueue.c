/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A driver for split virtqueues. */
#include "virtio.h"
#include "base/bswap.h"

/* Ring positions wrap at the queue's size, indexes at 2^16. */
static uint16_t ring_slot(const Vq *vq, uint16_t idx)
{
    return idx & (vq->size - 1);
}

static uint16_t ram_le16(Vq *vq, uint64_t addr)
{
    uint8_t b[2];

    qt_ram_read(vq->v->t, addr, b, sizeof(b));
    return load_le16(b);
}

static void ram_put_le16(Vq *vq, uint64_t addr, uint16_t value)
{
    uint8_t b[2];

    store_le16(b, value);
    qt_ram_write(vq->v->t, addr, b, sizeof(b));
}

Vq *vq_new(VirtioPci *v, uint16_t index, uint16_t size, int vector)
{
    Vq *vq = g_new0(Vq, 1);
    uint16_t offered = vpci_queue_size(v, index);
    size_t avail_end, total;

    if (!offered) {
        qos_die("queue %u does not exist", index);
    }
    vq->v = v;
    vq->index = index;
    vq->size = size ? size : offered;
    vq->vector = -1;
    if (vq->size != offered) {
        vpci_set_queue_size(v, index, vq->size);
    }
    /* The legacy layout serves both interfaces: used ring on the page boundary after the available ring. */
    avail_end = 16UL * vq->size + 6 + 2UL * vq->size;
    vq->memory = vq->desc = guest_alloc(v->t, total = ((avail_end + GUEST_PAGE - 1) & ~(size_t)(GUEST_PAGE - 1)) + 6 +
                                                      8UL * vq->size);
    vq->avail = vq->desc + 16UL * vq->size;
    vq->used = vq->desc + ((avail_end + GUEST_PAGE - 1) & ~(size_t)(GUEST_PAGE - 1));
    if (v->t->ram) {
        memset(v->t->ram + vq->desc, 0, total);
    } else {
        qt_memset(v->t, vq->desc, 0, total);
    }
    vq->event_idx = v->features & VIRTIO_F(VIRTIO_F_EVENT_IDX);
    vq->link = g_new(uint16_t, vq->size);
    vq->chain = g_new0(uint16_t, vq->size);
    vq->indirect = g_new0(uint64_t, vq->size);
    for (uint16_t i = 0; i < vq->size; i++) {
        vq->link[i] = i + 1;
    }
    vq->nfree = vq->size;
    if (vector >= 0) {
        g_assert_cmphex(vpci_set_queue_vector(v, index, (uint16_t)vector), ==, vector);
        vq->vector = vector;
    }
    vpci_queue_enable(v, index, vq->desc, vq->avail, vq->used);
    return vq;
}

void vq_free(Vq *vq)
{
    if (!vq) {
        return;
    }
    for (uint16_t i = 0; i < vq->size; i++) {
        if (vq->indirect[i]) {
            guest_free(vq->v->t, vq->indirect[i]);
        }
    }
    guest_free(vq->v->t, vq->memory);
    g_free(vq->link);
    g_free(vq->chain);
    g_free(vq->indirect);
    g_free(vq);
}

static void encode_desc(uint8_t *d, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
    store_le64(d, addr);
    store_le32(d + 8, len);
    store_le16(d + 12, flags);
    store_le16(d + 14, next);
}

void vq_raw_desc(Vq *vq, uint16_t i, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
    uint8_t d[16];

    encode_desc(d, addr, len, flags, next);
    qt_ram_write(vq->v->t, vq->desc + 16UL * i, d, sizeof(d));
}

void vq_raw_avail_idx(Vq *vq, uint16_t idx)
{
    vq->avail_idx = idx;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    ram_put_le16(vq, vq->avail + 2, idx);
}

void vq_raw_avail(Vq *vq, uint16_t head)
{
    ram_put_le16(vq, vq->avail + 4 + 2UL * ring_slot(vq, vq->avail_idx), head);
    if (vq->corked) {
        vq->avail_idx++;
    } else {
        vq_raw_avail_idx(vq, vq->avail_idx + 1);
    }
}

static uint16_t take_desc(Vq *vq)
{
    uint16_t i = vq->free_head;

    vq->free_head = vq->link[i];
    vq->nfree--;
    return i;
}

static uint16_t add_indirect(Vq *vq, const VqBuf *buf, unsigned int n)
{
    g_autofree uint8_t *table = g_malloc(16UL * n);
    uint16_t head = take_desc(vq);

    for (unsigned int i = 0; i < n; i++) {
        encode_desc(table + 16UL * i, buf[i].addr, buf[i].len,
                    (uint16_t)((buf[i].device_writes ? VQ_DESC_WRITE : 0) |
                               (i + 1 < n ? VQ_DESC_NEXT : 0)),
                    (uint16_t)(i + 1 < n ? i + 1 : 0));
    }
    vq->indirect[head] = guest_alloc(vq->v->t, 16UL * n);
    qt_ram_write(vq->v->t, vq->indirect[head], table, 16UL * n);
    vq_raw_desc(vq, head, vq->indirect[head], 16 * n, VQ_DESC_INDIRECT, 0);
    vq->chain[head] = 1;
    return head;
}

uint16_t vq_add(Vq *vq, const VqBuf *buf, unsigned int n, bool indirect)
{
    uint16_t head, i;

    if (vq->nfree < (indirect ? 1 : n)) {
        qos_die("queue %u is full", vq->index);
    }
    if (indirect) {
        head = add_indirect(vq, buf, n);
    } else {
        head = i = take_desc(vq);
        for (unsigned int k = 0; k < n; k++) {
            bool last = k + 1 == n;
            uint16_t next = last ? 0 : take_desc(vq);

            vq_raw_desc(vq, i, buf[k].addr, buf[k].len,
                        (uint16_t)((buf[k].device_writes ? VQ_DESC_WRITE : 0) |
                                   (last ? 0 : VQ_DESC_NEXT)),
                        next);
            if (!last) {
                vq->link[i] = next;
                i = next;
            }
        }
        vq->chain[head] = (uint16_t)n;
    }
    vq_raw_avail(vq, head);
    return head;
}

uint16_t vq_avail_event(Vq *vq)
{
    return ram_le16(vq, vq->used + 4 + 8UL * vq->size);
}

bool vq_kick(Vq *vq)
{
    uint16_t old = vq->kicked, new = vq->avail_idx;
    bool wanted;

    if (vq->corked) {
        vq_raw_avail_idx(vq, new);
    }
    vq->kicked = new;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (vq->event_idx) {
        wanted = (uint16_t)(new - vq_avail_event(vq) - 1) < (uint16_t)(new - old);
    } else {
        wanted = !(ram_le16(vq, vq->used) & VQ_USED_NO_NOTIFY);
    }
    if (wanted) {
        vpci_notify(vq->v, vq->index);
    }
    return wanted;
}

uint16_t vq_used_idx(Vq *vq)
{
    return ram_le16(vq, vq->used + 2);
}

bool vq_get_used(Vq *vq, uint16_t *head, uint32_t *len)
{
    uint8_t e[8];
    uint32_t id;
    uint16_t i;

    if (vq_used_idx(vq) == vq->last_used) {
        return false;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    qt_ram_read(vq->v->t, vq->used + 4 + 8UL * ring_slot(vq, vq->last_used), e, sizeof(e));
    id = load_le32(e);
    if (id >= vq->size || !vq->chain[id]) {
        qos_die("queue %u: used element names descriptor %u, which is not in flight", vq->index, id);
    }
    vq->last_used++;
    if (vq->event_idx && !vq->own_used_event) {
        ram_put_le16(vq, vq->avail + 4 + 2UL * vq->size, vq->last_used);
    }
    *head = (uint16_t)id;
    *len = load_le32(e + 4);
    for (i = (uint16_t)id; vq->chain[id] > 1; i = vq->link[i]) {
        vq->chain[id]--;
        vq->nfree++;
    }
    vq->chain[id] = 0;
    vq->nfree++;
    vq->link[i] = vq->free_head;
    vq->free_head = (uint16_t)id;
    if (vq->indirect[id]) {
        guest_free(vq->v->t, vq->indirect[id]);
        vq->indirect[id] = 0;
    }
    return true;
}

void vq_set_used_event(Vq *vq, uint16_t idx)
{
    vq->own_used_event = true;
    ram_put_le16(vq, vq->avail + 4 + 2UL * vq->size, idx);
}

void vq_set_avail_flags(Vq *vq, uint16_t flags)
{
    ram_put_le16(vq, vq->avail, flags);
}
