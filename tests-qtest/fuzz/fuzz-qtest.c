/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a hostile guest. The input is a program of small steps, each of which becomes commands of the qtest protocol. */
#include "qtest-guest.h"

#include "base/bswap.h"

#include <string.h>

/* --- Steps that a driver takes, with one thing or another wrong --- */

static void step_set_up(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);

    guest_set_up(g, d, fuzz_value(in, 8), fuzz_pick(in, 9), fuzz_pick(in, 5));
}

static void step_request(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);
    unsigned int q = fuzz_pick(in, GUEST_QUEUES);
    GuestRequest r = {.type = (uint32_t)fuzz_pick(in, 20)};

    if (r.type == 15) {
        r.type = (uint32_t)fuzz_value(in, 4);
    }
    r.sector = fuzz_pick(in, 4) ? fuzz_pick(in, 64) : fuzz_value(in, 8);
    r.len = 512u * fuzz_pick(in, 12);
    if (!fuzz_pick(in, 4)) {
        r.len = (uint32_t)fuzz_value(in, 4);
    }
    r.segments = fuzz_pick(in, 12);
    r.flags = (uint8_t)fuzz_take(in, 1);
    for (unsigned int i = 0; i < 16; i++) {
        r.payload[i] = r.flags & 1 ? (uint8_t)fuzz_take(in, 1) : 0;
    }
    for (unsigned int n = 1 + (r.flags >> 5); n; n--, r.sector += r.len / 512) {
        guest_request(g, d, q, &r);
    }
}

static void step_kick(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);

    guest_kick(g, d, fuzz_pick(in, GUEST_QUEUES + 1));
}

static void step_descriptor(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);
    uint64_t queue = guest_queue_addr(d, fuzz_pick(in, GUEST_QUEUES));
    uint64_t table = queue + (fuzz_pick(in, 2) ? GUEST_TABLE : GUEST_DESC);
    uint8_t b[16];

    store_le64(b, fuzz_pick(in, 4) ? queue + fuzz_take(in, 2) : fuzz_value(in, 8));
    store_le32(b + 8, (uint32_t)fuzz_value(in, 4));
    store_le32(b + 12, (uint32_t)fuzz_take(in, 4));
    guest_write(g, table + 16 * fuzz_pick(in, 32), b, sizeof(b));
}

static void step_index(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);
    unsigned int q = fuzz_pick(in, GUEST_QUEUES);
    static const uint32_t where[] = {GUEST_AVAIL, GUEST_AVAIL + 2, GUEST_AVAIL + 4, GUEST_USED, GUEST_USED + 2};

    guest_cmd(g, "writew 0x%" PRIx64 " 0x%x", guest_queue_addr(d, q) + where[fuzz_pick(in, 5)],
              (unsigned int)fuzz_value(in, 2) & 0xffff);
}

static void step_status(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);

    guest_set_status(g, d, fuzz_pick(in, 3) ? (uint8_t)fuzz_take(in, 1) : 0);
}

/* --- Accesses of any width and alignment --- */

static void access_at(Guest *g, FuzzInput *in, bool io, uint64_t addr)
{
    static const char *const io_names[] = {"inb", "inw", "inl", "outb", "outw", "outl"};
    static const char *const mem_names[] = {"readb", "readw", "readl", "readq", "writeb", "writew", "writel", "writeq"};
    const char *name = io ? io_names[fuzz_pick(in, 6)] : mem_names[fuzz_pick(in, 8)];

    if (io) {
        addr &= 0xffff;
    }
    if (name[0] == 'w' || name[0] == 'o') {
        guest_cmd(g, "%s 0x%" PRIx64 " 0x%" PRIx64, name, addr, fuzz_value(in, 4));
    } else {
        guest_cmd(g, "%s 0x%" PRIx64, name, addr);
    }
}

static void step_common(Guest *g, FuzzInput *in)
{
    access_at(g, in, false, guest_device(g, in)->modern + fuzz_pick(in, 0x40));
}

static void step_legacy(Guest *g, FuzzInput *in)
{
    access_at(g, in, true, guest_device(g, in)->legacy + fuzz_pick(in, 0x80));
}

static void step_device_config(Guest *g, FuzzInput *in)
{
    access_at(g, in, false, guest_device(g, in)->modern + 0x2000 + fuzz_pick(in, 0x50));
}

static void step_bar(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);
    uint64_t base = fuzz_pick(in, 2) ? d->modern : d->msix;

    access_at(g, in, false, base + fuzz_take(in, fuzz_pick(in, 4) ? 2 : 3));
}

static void step_port(Guest *g, FuzzInput *in)
{
    static const uint16_t ports[] = {0xcf8, 0xcf9, 0xcfc, 0xcfe, 0xae00, 0xae08, 0xae10, 0xae0c, 0xcc0, 0xcd4, 0x510, 0x511,
                                     0x514, 0x518, 0x64,  0x92,  0xb2,   0x604,  0x600,  0xb000, 0xb004, 0x70, 0x20, 0x4d0};

    access_at(g, in, true, fuzz_pick(in, 3) ? ports[fuzz_pick(in, G_N_ELEMENTS(ports))] + fuzz_pick(in, 4) : fuzz_take(in, 2));
}

static void step_pci_config(Guest *g, FuzzInput *in)
{
    unsigned int devfn = fuzz_pick(in, 3) ? guest_device(g, in)->devfn : (unsigned int)fuzz_take(in, 1);
    unsigned int bus = fuzz_pick(in, 8) ? 0 : (unsigned int)fuzz_take(in, 1);
    unsigned int off = (unsigned int)fuzz_take(in, 1);

    if (guest_has_ecam(g) && fuzz_pick(in, 2)) {
        access_at(g, in, false, GUEST_ECAM + (bus << 20) + (devfn << 12) + off + (fuzz_pick(in, 8) ? 0 : fuzz_pick(in, 16) << 8));
        return;
    }
    guest_cmd(g, "outl 0xcf8 0x%x", 0x80000000u | bus << 16 | devfn << 8 | (off & 0xfc));
    access_at(g, in, true, 0xcfc + (off & 3));
}

static void step_memory(Guest *g, FuzzInput *in)
{
    static const uint64_t bases[] = {0, 0xa0000, 0xffff0, GUEST_RAM_SIZE - 4, GUEST_RAM_SIZE, 0xb0000000, 0xfec00000, 0xfee00000,
                                     0xfffffffc, 0x100000000, UINT64_MAX - 7};

    access_at(g, in, false, fuzz_pick(in, 2) ? bases[fuzz_pick(in, G_N_ELEMENTS(bases))] + fuzz_take(in, 1) : fuzz_value(in, 8));
}

static void step_bulk(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);
    uint64_t bases[] = {d->modern, d->msix, guest_queue_addr(d, 0), GUEST_RAM_SIZE - 64, UINT64_MAX - 64};
    uint64_t addr = bases[fuzz_pick(in, G_N_ELEMENTS(bases))] + fuzz_take(in, 2), len = fuzz_take(in, 2);

    switch (fuzz_pick(in, 4)) {
    case 0:
        guest_cmd(g, "read 0x%" PRIx64 " 0x%" PRIx64, addr, len);
        break;
    case 1:
        guest_cmd(g, "b64read 0x%" PRIx64 " 0x%" PRIx64, addr, len);
        break;
    case 2:
        guest_cmd(g, "memset 0x%" PRIx64 " 0x%" PRIx64 " 0x%x", addr, len, fuzz_pick(in, 256));
        break;
    default: {
        uint8_t bytes[32];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (uint8_t)fuzz_take(in, 1);
        }
        guest_write(g, addr, bytes, sizeof(bytes));
    }
    }
}

/* --- Interrupts, time, and what happens around the guest --- */

static void step_msix(Guest *g, FuzzInput *in)
{
    GuestDevice *d = guest_device(g, in);

    switch (fuzz_pick(in, 3)) {
    case 0:
        guest_config_write(g, d->devfn, d->msix_cap + 2, 2, (uint16_t)fuzz_pick(in, 4) << 14);
        break;
    case 1:
        guest_cmd(g, "writel 0x%" PRIx64 " 0x%x", d->msix + 16 * fuzz_pick(in, 8) + 4 * fuzz_pick(in, 4),
                  (unsigned int)fuzz_value(in, 4));
        break;
    default:
        guest_cmd(g, "writeq 0x%" PRIx64 " 0x%" PRIx64, d->msix + 16 * fuzz_pick(in, 8),
                  (uint64_t)(fuzz_pick(in, 2) ? 0xfee00000u : GUEST_RAM_SIZE / 2));
    }
}

static void step_clock(Guest *g, FuzzInput *in)
{
    guest_cmd(g, "clock_step %u", 1 + (unsigned int)fuzz_take(in, 3));
}

static void step_settle(Guest *g, FuzzInput *in)
{
    guest_settle(1 + fuzz_pick(in, 4));
}

/* A line as it comes. */
static void step_line(Guest *g, FuzzInput *in)
{
    size_t len = fuzz_pick(in, 80);

    len = MIN(len, in->left);
    guest_line(g, (const char *)in->p, len);
    in->p += len;
    in->left -= len;
}

static void step_manage(Guest *g, FuzzInput *in)
{
    unsigned int d = fuzz_pick(in, GUEST_DEVICES);

    switch (fuzz_pick(in, 12)) {
    case 0:
        guest_qmp(g, "{'execute': 'stop'}");
        break;
    case 1:
    case 2:
        guest_qmp(g, "{'execute': 'cont'}");
        break;
    case 3:
        guest_qmp(g, "{'execute': 'system_reset'}");
        break;
    case 4:
        guest_qmp(g, "{'execute': 'block_resize', 'arguments': {'node-name': 'disk%u', 'size': %" PRIu64 "}}", d,
                  512 * fuzz_take(in, 2));
        break;
    case 5:
        guest_qmp(g, "{'execute': 'qom-set', 'arguments': {'path': '/objects/io%u', 'property': '%s', 'value': %u}}", d & 1,
                  fuzz_pick(in, 2) ? "poll-max-ns" : "aio-max-batch", fuzz_pick(in, 256) * 256);
        break;
    case 6:
        guest_qmp(g, "{'execute': 'device_del', 'arguments': {'id': 'd%u'}}", d);
        break;
    case 7:
        guest_qmp(g, "{'execute': 'query-block'}");
        break;
    case 8:
        guest_qmp(g, "{'execute': 'query-pci'}");
        break;
    case 9:
        guest_qmp(g, "{'execute': 'x-query-virtio-status', 'arguments': {'path': '/machine/peripheral/d%u/virtio-backend'}}", d);
        break;
    case 10:
        guest_qmp(g, "{'execute': 'x-query-virtio-queue-element', 'arguments': {'path': "
                     "'/machine/peripheral/d%u/virtio-backend', 'queue': %u, 'index': %u}}",
                  d, fuzz_pick(in, 6), fuzz_pick(in, 256));
        break;
    default:
        guest_qmp(g, "{'execute': 'human-monitor-command', 'arguments': {'command-line': 'info %s'}}",
                  (const char *[]){"qtree", "pci", "mtree", "block", "iothreads"}[fuzz_pick(in, 5)]);
    }
}

typedef void Step(Guest *g, FuzzInput *in);

/* Twice what leads further. */
static Step *const steps[] = {
    step_set_up, step_request,  step_request,     step_request, step_kick,  step_kick,  step_descriptor, step_index,
    step_status, step_common,   step_legacy,      step_bar,     step_port,  step_msix,  step_pci_config, step_memory,
    step_bulk,   step_clock,    step_settle,      step_line,    step_manage, step_device_config,
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    guest_boot(FUZZ_MACHINE);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput in = {data, size};
    Guest *g = guest_begin();
    uint8_t first = (uint8_t)fuzz_take(&in, 1);

    /* Most programs begin with devices that work. */
    for (unsigned int i = 0; first % 8 && i < GUEST_DEVICES; i++) {
        guest_set_up(g, &g->devices[i], first & 8 ? ~1ull << 33 : UINT64_MAX, first >> 4 & 7, GUEST_QUEUES);
    }
    while (in.left) {
        steps[fuzz_pick(&in, G_N_ELEMENTS(steps))](g, &in);
    }
    guest_end(g);
    return 0;
}
