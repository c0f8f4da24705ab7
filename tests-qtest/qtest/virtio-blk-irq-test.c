/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interrupts of virtio-blk-pci: MSI-X, INTx, the status register, suppression by flag and by event index. */
#include "common.h"

#include <string.h>

#define GSI 10
#define PATTERN_SECTORS 64

typedef struct Case {
    VirtioVia via;
    unsigned int queues;
} Case;

typedef struct Setup {
    QTest *t;
    Vblk *b;
} Setup;

static Setup setup(const VblkOpts *o, const char *device_opts)
{
    VblkOpts vo = *o;
    Setup s;

    s.t = qt_start("-nodefaults -object iothread,id=io0 -blockdev null-co,node-name=n,size=1048576,read-zeroes=on "
                   "-device virtio-blk-pci,id=v0,drive=n,iothread=io0,addr=4.0,num-queues=%u%s",
                   vo.queues ? vo.queues : 1, device_opts);
    s.b = vblk_new(s.t, &vo);
    return s;
}

static void teardown(Setup *s)
{
    vblk_free(s->b);
    qt_stop(s->t);
}

static uint8_t read_one(Vblk *b, unsigned int queue)
{
    uint8_t buf[512];

    return vblk_rw(b, queue, BLK_T_IN, 0, buf, sizeof(buf));
}

/* The used ring precedes the interrupt, so wait for the latter by its own sign. */
static void wait_vector(Vblk *b, unsigned int vector)
{
    for (int i = 0; !vpci_vector_fired(b->v, vector); i++) {
        g_usleep(1000);
        if (i > qos_hang_ms()) {
            qos_die("vector %u never fired", vector);
        }
    }
}

static void wait_line(QTest *t, bool level)
{
    for (int i = 0; qt_irq_level(t, GSI) != level; i++) {
        g_usleep(1000);
        if (i > qos_hang_ms()) {
            qos_die("interrupt line %d never went %s", GSI, level ? "up" : "down");
        }
    }
}

/*
 * An interrupt that must not come: the device raises it right after the used index, so anything that the device
 * does later, such as answering a second request on another queue or a status read through its thread, bounds it.
 */
static void settle(QTest *t)
{
    g_usleep(20000);
    qt_assert_alive(t);
}

static void test_msix(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .queues = c->queues, .msix = true};
    Setup s = setup(&o, "");

    for (unsigned int q = 0; q < c->queues; q++) {
        g_assert_cmpint(read_one(s.b, q), ==, BLK_S_OK);
        wait_vector(s.b, q + 1);
    }
    settle(s.t);
    for (unsigned int v = 0; v <= c->queues; v++) {
        g_assert_false(vpci_vector_fired(s.b->v, v));
    }
    teardown(&s);
}

static void test_msix_updates_isr(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .msix = true};
    Setup s = setup(&o, "");

    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_vector(s.b, 1);
    g_assert_cmphex(vpci_isr(s.b->v) & 1, ==, 1);
    g_assert_cmphex(vpci_isr(s.b->v), ==, 0);
    teardown(&s);
}

static void test_msix_mask(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .msix = true};
    Setup s = setup(&o, "");
    PciDev *d = s.b->v->pci;

    pci_msix_set(d, 1, s.b->v->vectors + 4, 0xc0de0001, true);
    g_assert_true(pci_msix_masked(d, 1));
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    for (int i = 0; !pci_msix_pending(d, 1) && i < qos_hang_ms(); i++) {
        g_usleep(1000);
    }
    g_assert_true(pci_msix_pending(d, 1));
    g_assert_false(vpci_vector_fired(s.b->v, 1));
    pci_msix_set(d, 1, s.b->v->vectors + 4, 0xc0de0001, false);
    wait_vector(s.b, 1);
    g_assert_false(pci_msix_pending(d, 1));
    teardown(&s);
}

static void test_no_vector(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .msix = true};
    Setup s = setup(&o, "");

    g_assert_cmphex(vpci_set_queue_vector(s.b->v, 0, VIRTIO_NO_VECTOR), ==, VIRTIO_NO_VECTOR);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    settle(s.t);
    g_assert_false(vpci_vector_fired(s.b->v, 1));
    g_assert_cmphex(vpci_set_queue_vector(s.b->v, 0, 77), ==, VIRTIO_NO_VECTOR);
    g_assert_cmphex(vpci_set_config_vector(s.b->v, 77), ==, VIRTIO_NO_VECTOR);
    teardown(&s);
}

static void test_table_starts_masked(void)
{
    QTest *t = qt_start("-nodefaults -blockdev null-co,node-name=n "
                        "-device virtio-blk-pci,drive=n,addr=4.0,num-queues=3");
    PciDev *d = pci_dev_new(t, PCI_DEVFN(4, 0));

    g_assert_cmpuint(d->msix_vectors, ==, 4);
    pci_dev_enable(d);
    pci_msix_enable(d);
    for (unsigned int i = 0; i < d->msix_vectors; i++) {
        g_assert_true(pci_msix_masked(d, i));
    }
    pci_dev_free(d);
    qt_stop(t);
}

static void test_intx(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via};
    Setup s = setup(&o, "");

    pci_intx_route(s.b->v->pci, GSI);
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
        wait_line(s.t, true);
        g_assert_cmphex(vpci_isr(s.b->v), ==, 1);
        wait_line(s.t, false);
        g_assert_cmphex(vpci_isr(s.b->v), ==, 0);
    }
    teardown(&s);
}

static void test_intx_stays_up(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via};
    Setup s = setup(&o, "");
    uint64_t messages;

    pci_intx_route(s.b->v->pci, GSI);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_line(s.t, true);
    messages = qt_irq_messages(s.t);
    /* The line is a level: a second completion before the status is read says nothing new. */
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    settle(s.t);
    g_assert_cmpuint(qt_irq_messages(s.t), ==, messages);
    g_assert_cmphex(vpci_isr(s.b->v), ==, 1);
    wait_line(s.t, false);
    teardown(&s);
}

static void test_intx_off_by_command(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via};
    Setup s = setup(&o, "");
    int devfn = s.b->v->pci->devfn;

    pci_intx_route(s.b->v->pci, GSI);
    pci_cfg_writew(s.t, devfn, PCI_CFG_COMMAND, pci_cfg_readw(s.t, devfn, PCI_CFG_COMMAND) | PCI_CMD_INTX_OFF);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    settle(s.t);
    g_assert_false(qt_irq_level(s.t, GSI));
    g_assert_cmphex(vpci_isr(s.b->v), ==, 1);
    teardown(&s);
}

static void test_reset_lowers_line(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via};
    Setup s = setup(&o, "");

    pci_intx_route(s.b->v->pci, GSI);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_line(s.t, true);
    vpci_reset(s.b->v);
    wait_line(s.t, false);
    teardown(&s);
}

/* A vectors=0 device has no MSI-X capability and interrupts by its line. */
static void test_without_vectors(void)
{
    VblkOpts o = {.via = VIRTIO_MODERN};
    Setup s = setup(&o, ",vectors=0");

    g_assert_cmpuint(s.b->v->pci->msix_cap, ==, 0);
    pci_intx_route(s.b->v->pci, GSI);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_line(s.t, true);
    teardown(&s);
}

static void test_no_interrupt_flag(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via,
                  .msix = true,
                  .without = VIRTIO_F(VIRTIO_F_EVENT_IDX) | VIRTIO_F(VIRTIO_F_NOTIFY_ON_EMPTY)};
    Setup s = setup(&o, "");

    vq_set_avail_flags(s.b->vq[0], VQ_AVAIL_NO_INTERRUPT);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    settle(s.t);
    g_assert_false(vpci_vector_fired(s.b->v, 1));
    vq_set_avail_flags(s.b->vq[0], 0);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_vector(s.b, 1);
    teardown(&s);
}

/* Legacy drivers may ask for an interrupt whenever the device has run out of work, whatever the flag says. */
static void test_notify_on_empty(void)
{
    VblkOpts o = {.via = VIRTIO_LEGACY, .msix = true, .without = VIRTIO_F(VIRTIO_F_EVENT_IDX)};
    Setup s = setup(&o, "");

    g_assert_true(s.b->features & VIRTIO_F(VIRTIO_F_NOTIFY_ON_EMPTY));
    vq_set_avail_flags(s.b->vq[0], VQ_AVAIL_NO_INTERRUPT);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_vector(s.b, 1);
    teardown(&s);
}

/* A device may interrupt once before it has ever compared indexes. */
static void use_up_first_interrupt(Setup *s)
{
    g_assert_cmpint(read_one(s->b, 0), ==, BLK_S_OK);
    settle(s->t);
    vpci_vector_fired(s->b->v, 1);
}

/* The interrupt comes when the used index passes the event, not before and not after. */
static void test_used_event(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .msix = true, .without = VIRTIO_F(VIRTIO_F_NOTIFY_ON_EMPTY)};
    Setup s = setup(&o, "");

    use_up_first_interrupt(&s);
    vq_set_used_event(s.b->vq[0], 4);
    for (int i = 0; i < 3; i++) {
        g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    }
    settle(s.t);
    g_assert_false(vpci_vector_fired(s.b->v, 1));
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    wait_vector(s.b, 1);
    g_assert_cmpint(read_one(s.b, 0), ==, BLK_S_OK);
    settle(s.t);
    g_assert_false(vpci_vector_fired(s.b->v, 1));
    teardown(&s);
}

/* Event indexes wrap at 2^16 like the ring's own. */
static void test_used_event_wraps(void)
{
    enum { BATCH = 32 };
    VblkOpts o = {.via = VIRTIO_MODERN, .msix = true};
    QTestOpts qo = {.shared_mib = 16};
    VblkReq *r[BATCH];
    Setup s;

    s.t = qt_start_opts(&qo, "-nodefaults -blockdev null-co,node-name=n -device virtio-blk-pci,drive=n,addr=4.0");
    s.b = vblk_new(s.t, &o);
    use_up_first_interrupt(&s);
    vq_set_used_event(s.b->vq[0], 0xffff);
    for (unsigned int done = 1; done < 0x10000 + 2 * BATCH; done += BATCH) {
        bool crosses = done <= 0xffff && done + BATCH > 0xffff;

        for (int i = 0; i < BATCH; i++) {
            r[i] = vblk_add(s.b, 0, BLK_T_FLUSH, 0, NULL, 0, NULL);
        }
        vblk_kick(s.b, 0);
        for (int i = 0; i < BATCH; i++) {
            g_assert_cmpint(vblk_finish(r[i], NULL), ==, BLK_S_OK);
        }
        if (crosses) {
            wait_vector(s.b, 1);
        } else if (vpci_vector_fired(s.b->v, 1)) {
            qos_die("interrupt between used index %u and %u", done, done + BATCH);
        }
    }
    teardown(&s);
}

/* The device must ask for a notification before it sleeps, or not be stopped by its absence. */
static void test_kick_wakes_idle(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .queues = c->queues};
    Setup s = setup(&o, "");

    for (int round = 0; round < 50; round++) {
        for (unsigned int q = 0; q < c->queues; q++) {
            g_assert_cmpint(read_one(s.b, q), ==, BLK_S_OK);
        }
        if (round % 10 == 0) {
            g_usleep(3000); /* longer than it polls */
        }
    }
    teardown(&s);
}

static void test_resize_interrupts(gconstpointer data)
{
    const Case *c = data;
    VblkOpts o = {.via = c->via, .msix = c->queues > 1};
    g_autofree char *image = image_new(1 << 20);
    QTest *t = qt_start("-nodefaults -object iothread,id=io0 -blockdev driver=file,node-name=f,filename=%s "
                        "-device virtio-blk-pci,drive=f,iothread=io0,addr=4.0", image);
    Vblk *b = vblk_new(t, &o);

    g_assert_cmpuint(b->sectors, ==, 2048);
    if (!o.msix) {
        pci_intx_route(b->v->pci, GSI);
    }
    json_decref(qmp_must(t->qmp, "block_resize", "{s:s,s:i}", "node-name", "f", "size", 3 << 20));
    if (o.msix) {
        wait_vector(b, 0);
    } else {
        wait_line(t, true);
    }
    g_assert_cmphex(vpci_isr(b->v), ==, 3);
    g_assert_cmpuint(vpci_config_read(b->v, 0, 8), ==, 3 << 11);
    if (c->via != VIRTIO_LEGACY) {
        g_assert_cmpuint(vpci_config_generation(b->v), !=, 0);
    }
    g_assert_cmpint(vblk_rw(b, 0, BLK_T_IN, 6000, (uint8_t[512]){0}, 512), ==, BLK_S_OK);
    vblk_free(b);
    qt_stop(t);
}

static void add(GTestDataFunc fn, VirtioVia via, unsigned int queues, const char *name)
{
    static const char *const via_name[] = {"legacy", "modern", "modern-window"};
    Case *c = g_new0(Case, 1);

    c->via = via;
    c->queues = queues;
    add_case_owned(fn, c, "/virtio-blk/irq/%s/%s", via_name[via], name);
}

int main(int argc, char **argv)
{
    if (!common_init(&argc, &argv)) {
        return 0;
    }
    for (int via = VIRTIO_LEGACY; via <= VIRTIO_MODERN_WINDOW; via++) {
        add(test_msix, via, 1, "msix/one-queue");
        add(test_msix, via, 4, "msix/four-queues-each-its-vector");
        add(test_msix_updates_isr, via, 1, "msix/sets-the-status-register-too");
        add(test_msix_mask, via, 1, "msix/masked-becomes-pending-and-fires-later");
        add(test_no_vector, via, 1, "msix/without-vector-nothing-fires");
        add(test_intx, via, 1, "intx/rises-and-falls-with-the-status-read");
        add(test_intx_stays_up, via, 1, "intx/is-a-level");
        add(test_intx_off_by_command, via, 1, "intx/command-register-disables");
        add(test_reset_lowers_line, via, 1, "intx/reset-lowers-the-line");
        add(test_no_interrupt_flag, via, 1, "no-interrupt-flag-is-honoured");
        add(test_used_event, via, 1, "used-event-is-honoured");
        add(test_kick_wakes_idle, via, 1, "kick-wakes/one-queue");
        add(test_kick_wakes_idle, via, 4, "kick-wakes/four-queues");
        add(test_resize_interrupts, via, 1, "resize/intx");
        add(test_resize_interrupts, via, 2, "resize/msix");
    }
    g_test_add_func("/virtio-blk/irq/msix/table-starts-masked", test_table_starts_masked);
    g_test_add_func("/virtio-blk/irq/legacy/notify-on-empty", test_notify_on_empty);
    g_test_add_func("/virtio-blk/irq/without-vectors", test_without_vectors);
    g_test_add_func("/virtio-blk/irq/used-event-wraps", test_used_event_wraps);
    return g_test_run();
}
