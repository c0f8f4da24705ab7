/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A virtio-blk driver for tests. */
#include "virtio-blk.h"
#include "base/bswap.h"

#include <string.h>

static bool device_writes_data(uint32_t type)
{
    return type == BLK_T_IN || type == BLK_T_GET_ID || type == BLK_T_GET_ID + 1;
}

Vblk *vblk_new(QTest *t, const VblkOpts *o)
{
    Vblk *b = g_new0(Vblk, 1);
    uint64_t never = VIRTIO_F(VIRTIO_F_PACKED) | VIRTIO_F(VIRTIO_F_RING_RESET) |
                     VIRTIO_F(VIRTIO_F_BAD_FEATURE) | VIRTIO_F(BLK_F_SCSI);

    b->t = t;
    b->v = vpci_new(t, o->devfn ? o->devfn : PCI_DEVFN(4, 0), o->via);
    b->nqueues = o->queues ? o->queues : 1;
    b->reqs = g_hash_table_new(NULL, NULL);
    vpci_reset(b->v);
    vpci_set_status(b->v, VIRTIO_S_ACKNOWLEDGE);
    vpci_set_status(b->v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER);
    b->offered = vpci_device_features(b->v);
    b->features = b->offered & ~(o->without | never);
    vpci_set_features(b->v, b->features);
    if (o->via != VIRTIO_LEGACY) {
        vpci_set_status(b->v, VIRTIO_S_ACKNOWLEDGE | VIRTIO_S_DRIVER | VIRTIO_S_FEATURES_OK);
        g_assert_true(vpci_status(b->v) & VIRTIO_S_FEATURES_OK);
    }
    if (o->msix) {
        vpci_enable_msix(b->v);
        g_assert_cmphex(vpci_set_config_vector(b->v, 0), ==, 0);
    }
    b->sectors = vpci_config_read(b->v, 0, 8);
    b->indirect = b->features & VIRTIO_F(VIRTIO_F_INDIRECT);
    b->vq = g_new0(Vq *, b->nqueues);
    for (unsigned int i = 0; i < b->nqueues; i++) {
        b->vq[i] = vq_new(b->v, (uint16_t)i, o->queue_size, o->msix ? (int)i + 1 : -1);
    }
    vpci_set_status(b->v, vpci_status(b->v) | VIRTIO_S_DRIVER_OK);
    return b;
}

static void free_req(VblkReq *r)
{
    guest_free(r->b->t, r->memory);
    g_free(r);
}

void vblk_free(Vblk *b)
{
    vpci_reset(b->v);
    vblk_abandon(b);
}

void vblk_abandon(Vblk *b)
{
    GHashTableIter it;
    gpointer r;

    g_hash_table_iter_init(&it, b->reqs);
    while (g_hash_table_iter_next(&it, NULL, &r)) {
        free_req(r);
    }
    g_hash_table_destroy(b->reqs);
    for (unsigned int i = 0; i < b->nqueues; i++) {
        vq_free(b->vq[i]);
    }
    g_free(b->vq);
    vpci_free(b->v);
    g_free(b);
}

static void push(GArray *bufs, uint64_t addr, size_t len, bool device_writes)
{
    VqBuf buf = {addr, (uint32_t)len, device_writes};

    g_array_append_val(bufs, buf);
}

/* Status follows data in memory, and the header precedes it unless the data is page-aligned. */
static GArray *frame(VblkReq *r, const VblkFraming *f)
{
    GArray *bufs = g_array_new(FALSE, FALSE, sizeof(VqBuf));
    bool in = device_writes_data(r->type);
    bool join_header = f->join_header && !in && r->header + 16 == r->data;
    unsigned int parts = f->header_parts ? f->header_parts : 1;
    size_t seg = f->data_seg ? f->data_seg : r->data_len;
    size_t head_extra = join_header ? MIN(seg, r->data_len) : 0;
    size_t off = 0;

    for (unsigned int i = 0; i < parts; i++) {
        size_t len = i + 1 < parts ? 16 / parts : 16 - off + head_extra;

        push(bufs, r->header + off, len, false);
        off += len;
    }
    for (size_t done = head_extra; done < r->data_len;) {
        size_t len = MIN(seg, r->data_len - done);

        done += len;
        if (done == r->data_len && f->join_status && in) {
            push(bufs, r->data + done - len, len + 1, true);
            return bufs;
        }
        push(bufs, r->data + done - len, len, in);
    }
    push(bufs, r->status_addr, 1, true);
    return bufs;
}

VblkReq *vblk_add(Vblk *b, unsigned int queue, uint32_t type, uint64_t sector, const void *data,
                  size_t len, const VblkFraming *framing)
{
    static const VblkFraming plain;
    VblkReq *r = g_new0(VblkReq, 1);
    g_autoptr(GArray) bufs = NULL;
    uint8_t header[16];

    r->b = b;
    r->queue = queue;
    r->type = type;
    r->data_len = len;
    r->memory = guest_alloc(b->t, 16 + len + 1);
    if (b->page_aligned) {
        r->data = r->memory;
        r->status_addr = r->data + len;
        r->header = r->status_addr + 1;
    } else {
        r->header = r->memory;
        r->data = r->memory + 16;
        r->status_addr = r->data + len;
    }
    r->status = BLK_S_NONE;
    store_le32(header, type);
    store_le32(header + 4, 0);
    store_le64(header + 8, sector);
    qt_ram_write(b->t, r->header, header, sizeof(header));
    if (len && data && !device_writes_data(type)) {
        qt_ram_write(b->t, r->data, data, len);
    }
    qt_ram_write(b->t, r->status_addr, &r->status, 1);
    bufs = frame(r, framing ? framing : &plain);
    r->head = vq_add(b->vq[queue], &g_array_index(bufs, VqBuf, 0), bufs->len, b->indirect);
    g_hash_table_insert(b->reqs, GUINT_TO_POINTER(queue << 16 | r->head), r);
    return r;
}

void vblk_kick(Vblk *b, unsigned int queue)
{
    vq_kick(b->vq[queue]);
}

unsigned int vblk_reap(Vblk *b, unsigned int queue)
{
    unsigned int n = 0;
    uint16_t head;
    uint32_t len;

    while (vq_get_used(b->vq[queue], &head, &len)) {
        gpointer key = GUINT_TO_POINTER(queue << 16 | head);
        VblkReq *r = g_hash_table_lookup(b->reqs, key);

        if (!r) {
            qos_die("queue %u: descriptor %u ended and was never added", queue, head);
        }
        g_hash_table_remove(b->reqs, key);
        r->done = true;
        r->used_len = len;
        qt_ram_read(b->t, r->status_addr, &r->status, 1);
        n++;
    }
    return n;
}

void vblk_wait(VblkReq *r)
{
    gint64 end = g_get_monotonic_time() + qos_hang_ms() * 1000LL;

    while (!r->done) {
        if (!vblk_reap(r->b, r->queue)) {
            if (g_get_monotonic_time() > end) {
                g_autofree char *text = qt_stderr(r->b->t);

                qos_die("request of type %u does not end; stderr of the binary:\n%s", r->type, text);
            }
            if (r->b->t->ram) {
                g_usleep(20);
            }
        }
    }
}

uint8_t vblk_finish_len(VblkReq *r, void *buf, uint32_t *used_len)
{
    uint8_t status;

    vblk_wait(r);
    status = r->status;
    *used_len = r->used_len;
    if (buf && device_writes_data(r->type)) {
        qt_ram_read(r->b->t, r->data, buf, r->data_len);
    }
    free_req(r);
    return status;
}

uint8_t vblk_finish(VblkReq *r, void *buf)
{
    uint32_t len;

    return vblk_finish_len(r, buf, &len);
}

uint8_t vblk_rw(Vblk *b, unsigned int queue, uint32_t type, uint64_t sector, void *data, size_t len)
{
    VblkReq *r = vblk_add(b, queue, type, sector, data, len, NULL);

    vblk_kick(b, queue);
    return vblk_finish(r, data);
}
