/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine in process with several virtio-blk devices, and a driver for them that speaks the qtest protocol. */
#include "qtest-guest.h"

#include "base/bswap.h"
#include "guest/machine.h"
#include "guest/memory.h"
#include "loop/aio.h"
#include "qapi/qapi-commands.h"
#include "qtest/qtest.h"
#include "tools/system.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DISK_SIZE (1u << 20)
#define RAM_AREA 0x100000u

static QtestServer *server;
static char reply[128];
static Guest the_guest;
static bool has_ecam;

/* --- The machine --- */

static const char *const device_options[GUEST_DEVICES] = {
    "virtio-blk-pci,id=d0,addr=4,drive=disk0,iothread=io0,num-queues=4",
    "virtio-blk-pci,id=d1,addr=5,drive=disk1,disable-legacy=on,page-per-vq=on,packed=on,num-queues=4,werror=stop,rerror=stop",
    "virtio-blk-pci,id=d2,addr=6,drive=disk2,disable-modern=on,disable-legacy=off,num-queues=2,ioeventfd=off",
    ("{'driver': 'virtio-blk-pci', 'id': 'd3', 'addr': '7', 'drive': 'disk3', 'num-queues': 4, 'packed': true, "
     "'iothread-vq-mapping': [{'iothread': 'io0'}, {'iothread': 'io1'}]}"),
};

static const char *const disk_options[GUEST_DEVICES] = {
    "{'driver': 'null-co', 'node-name': 'disk0', 'size': 1048576, 'read-zeroes': true}",
    "{'driver': 'file', 'node-name': 'disk1', 'filename': '/proc/self/fd/%d', 'discard': 'unmap', 'aio': 'threads'}",
    "{'driver': 'null-co', 'node-name': 'disk2', 'size': 1048576, 'latency-ns': 20000}",
    "{'driver': 'file', 'node-name': 'disk3', 'filename': '/proc/self/fd/%d', 'aio': '" FUZZ_AIO "'}",
};
static char *disks[GUEST_DEVICES];

static void on_reply(void *opaque, const char *buf, size_t len)
{
    /* An interrupt may come before the reply; only numbers behind OK matter. */
    if (len > 1 && !strncmp(buf, "OK", 2)) {
        g_strlcpy(reply, buf, MIN(sizeof(reply), len + 1));
    }
}

/* A file in memory, gone with the process; its name opens it again. */
static char *make_disk(unsigned int i)
{
    int fd = memfd_create("fuzz-qtest", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, DISK_SIZE)) {
        perror("memfd");
        exit(1);
    }
    return g_strdup_printf(disk_options[i], fd);
}

void guest_boot(const char *machine)
{
    for (unsigned int i = 0; i < GUEST_DEVICES; i++) {
        disks[i] = i & 1 ? make_disk(i) : g_strdup(disk_options[i]);
    }
    const char *args[] = {
        "fuzz-qtest", "-machine", machine, "-accel", "qtest", "-nodefaults", "-display", "none", "-m", "16M",
        "-object", "iothread,id=io0", "-object", "iothread,id=io1",
        "-blockdev", disks[0], "-blockdev", disks[1], "-blockdev", disks[2], "-blockdev", disks[3],
        "-device", device_options[0], "-device", device_options[1], "-device", device_options[2], "-device", device_options[3],
        NULL};
    static QtestOptions options = {.write = on_reply, .log = "none", .virtual_clock = true};
    static char *copy[G_N_ELEMENTS(args)];
    sigset_t none;

    for (size_t i = 0; args[i]; i++) {
        copy[i] = g_strdup(args[i]);
    }
    if (!system_start(G_N_ELEMENTS(args) - 1, copy)) {
        exit(1);
    }
    server = qtest_server_new(&options, NULL);
    qtest_opened(server);
    has_ecam = !strcmp(machine, "q35");

    /* The fuzzer is to be stopped by a signal, not the machine. */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

void guest_settle(unsigned int passes)
{
    for (unsigned int i = 0; i < passes; i++) {
        while (aio_poll(aio_context_main(), false)) {
        }
        if (i + 1 < passes) {
            g_usleep(20);
        }
    }
}

void guest_qmp(Guest *g, const char *fmt, ...)
{
    static const QmpDispatchOptions options = {.machine_ready = true};
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_autoptr(json_t) request = qjson_parse(text, NULL);
    g_assert(request);
    json_decref(qmp_dispatch(qmp_commands, request, &options));
    guest_settle(1);
}

/* --- Commands --- */

void guest_line(Guest *g, const char *text, size_t len)
{
    qtest_feed(server, text, len);
    qtest_feed(server, "\n", 1);
    guest_settle(1);
}

uint64_t guest_cmd(Guest *g, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    reply[0] = 0;
    guest_line(g, text, strlen(text));
    return reply[0] ? strtoull(reply + 2, NULL, 0) : 0;
}

void guest_write(Guest *g, uint64_t addr, const uint8_t *bytes, size_t len)
{
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(text, "write 0x%" PRIx64 " 0x%zx 0x", addr, len);
    for (size_t i = 0; i < len; i++) {
        g_string_append_printf(text, "%02x", bytes[i]);
    }
    guest_line(g, text->str, text->len);
}

void guest_config_write(Guest *g, unsigned int devfn, unsigned int off, unsigned int size, uint32_t value)
{
    guest_cmd(g, "outl 0xcf8 0x%x", 0x80000000u | devfn << 8 | (off & 0xfc));
    guest_cmd(g, "out%c 0x%x 0x%x", size == 1 ? 'b' : size == 2 ? 'w' : 'l', 0xcfc + (off & 3), value);
}

static uint32_t config_read(Guest *g, unsigned int devfn, unsigned int off)
{
    guest_cmd(g, "outl 0xcf8 0x%x", 0x80000000u | devfn << 8 | (off & 0xfc));
    return (uint32_t)guest_cmd(g, "inl 0xcfc");
}

/* --- The devices --- */

bool guest_has_ecam(const Guest *g)
{
    return has_ecam;
}

GuestDevice *guest_device(Guest *g, FuzzInput *in)
{
    return &g->devices[fuzz_pick(in, GUEST_DEVICES)];
}

uint64_t guest_queue_addr(const GuestDevice *d, unsigned int q)
{
    return RAM_AREA + (d->index * GUEST_QUEUES + q % GUEST_QUEUES) * GUEST_QUEUE_SPAN;
}

static void find_capabilities(Guest *g, GuestDevice *d)
{
    for (uint32_t cap = config_read(g, d->devfn, 0x34) & 0xfc, n = 0; cap && n < 48; n++) {
        uint32_t head = config_read(g, d->devfn, cap);
        if ((head & 0xff) == 0x11) {
            d->msix_cap = cap;
        } else if ((head & 0xff) == 0x09) {
            d->has_modern = true;
        }
        cap = head >> 8 & 0xfc;
    }
}

static void map_bars(Guest *g, GuestDevice *d)
{
    guest_config_write(g, d->devfn, 0x10, 4, (uint32_t)d->legacy);
    guest_config_write(g, d->devfn, 0x14, 4, (uint32_t)d->msix);
    guest_config_write(g, d->devfn, 0x20, 4, (uint32_t)d->modern);
    guest_config_write(g, d->devfn, 0x24, 4, 0);
    guest_config_write(g, d->devfn, 0x04, 2, 7);
    guest_config_write(g, d->devfn, d->msix_cap + 2, 2, 0x8000);
    for (unsigned int i = 0; i < 5; i++) {
        guest_cmd(g, "writeq 0x%" PRIx64 " 0xfee00000", d->msix + 16 * i);
        guest_cmd(g, "writeq 0x%" PRIx64 " 0x%x", d->msix + 16 * i + 8, 0x40 + i);
    }
}

void guest_set_status(Guest *g, GuestDevice *d, uint8_t status)
{
    if (d->has_modern) {
        guest_cmd(g, "writeb 0x%" PRIx64 " 0x%x", d->modern + 0x14, status);
    } else {
        guest_cmd(g, "outb 0x%" PRIx64 " 0x%x", d->legacy + 0x12, status);
    }
}

static uint64_t negotiate(Guest *g, GuestDevice *d, uint64_t features)
{
    if (!d->has_modern) {
        features &= guest_cmd(g, "inl 0x%" PRIx64, d->legacy);
        guest_cmd(g, "outl 0x%" PRIx64 " 0x%x", d->legacy + 4, (uint32_t)features & ~(1u << 30));
        return (uint32_t)features;
    }
    features |= 1ull << 32;
    for (unsigned int i = 0; i < 2; i++) {
        guest_cmd(g, "writel 0x%" PRIx64 " %u", d->modern, i);
        uint64_t offered = guest_cmd(g, "readl 0x%" PRIx64, d->modern + 4);
        features &= ~(UINT64_C(0xffffffff) << 32 * i) | offered << 32 * i;
        guest_cmd(g, "writel 0x%" PRIx64 " %u", d->modern + 8, i);
        guest_cmd(g, "writel 0x%" PRIx64 " 0x%x", d->modern + 12, (uint32_t)(features >> 32 * i));
    }
    return features;
}

static void set_up_queue(Guest *g, GuestDevice *d, unsigned int q, unsigned int size_log2)
{
    uint64_t base = guest_queue_addr(d, q), common = d->modern;

    d->queues[q] = (GuestQueue){.size = d->has_modern ? MIN(1u << size_log2, 256) : 256, .wrap = true};
    guest_cmd(g, "memset 0x%" PRIx64 " 0x%x 0", base, GUEST_TABLE);
    if (!d->has_modern) {
        guest_cmd(g, "outw 0x%" PRIx64 " %u", d->legacy + 0x0e, q);
        guest_cmd(g, "outw 0x%" PRIx64 " %u", d->legacy + 0x16, q + 1);
        guest_cmd(g, "outl 0x%" PRIx64 " 0x%" PRIx64, d->legacy + 8, base >> 12);
        return;
    }
    guest_cmd(g, "writew 0x%" PRIx64 " %u", common + 0x16, q);
    guest_cmd(g, "writew 0x%" PRIx64 " %u", common + 0x18, d->queues[q].size);
    guest_cmd(g, "writew 0x%" PRIx64 " %u", common + 0x1a, q + 1);
    guest_cmd(g, "writel 0x%" PRIx64 " 0x%" PRIx64, common + 0x20, base + GUEST_DESC);
    guest_cmd(g, "writel 0x%" PRIx64 " 0x%" PRIx64, common + 0x28, base + GUEST_AVAIL);
    guest_cmd(g, "writel 0x%" PRIx64 " 0x%" PRIx64, common + 0x30, base + GUEST_USED);
    guest_cmd(g, "writew 0x%" PRIx64 " 1", common + 0x1c);
}

void guest_set_up(Guest *g, GuestDevice *d, uint64_t features, unsigned int size_log2, unsigned int queues)
{
    map_bars(g, d);
    guest_set_status(g, d, 0);
    guest_set_status(g, d, 3);
    features = negotiate(g, d, features);
    d->packed = features >> 34 & 1;
    if (d->has_modern) {
        guest_set_status(g, d, 0x0b);
    }
    for (unsigned int q = 0; q < queues && q < GUEST_QUEUES; q++) {
        set_up_queue(g, d, q, size_log2);
    }
    guest_set_status(g, d, d->has_modern ? 0x0f : 7);
}

/* --- Requests --- */

enum { NEXT = 1, WRITE = 2, INDIRECT = 4 };

static void put(uint8_t *d, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next)
{
    store_le64(d, addr);
    store_le32(d + 8, len);
    store_le16(d + 12, flags);
    store_le16(d + 14, next);
}

/* The parts of @r in order, as the descriptors of a split chain; returns how many. */
static unsigned int build(uint64_t base, unsigned int slot, const GuestRequest *r, uint8_t *table)
{
    uint8_t *d = table;
    bool to_device = r->type & 1 || r->type == 11 || r->type == 13;
    uint16_t data = (to_device != !!(r->flags & 16)) ? 0 : WRITE;
    unsigned int n = 0;

    put(d + 16 * n++, base + GUEST_HEADERS + 16 * slot, 16, 0, 0);
    if (r->flags & 4) {
        put(d + 16 * n++, base + GUEST_STATUS + slot, 1, WRITE, 0);
    }
    for (unsigned int i = 0; i < r->segments; i++) {
        bool payload = r->flags & 1;
        uint64_t at = payload ? base + GUEST_HEADERS + 0x400 + 16 * slot : base + GUEST_DATA + 0x200 * ((slot + i) % 128);
        put(d + 16 * n++, at, payload ? 16 : r->segments > 1 ? r->len / r->segments : r->len, data, 0);
    }
    if (!(r->flags & 12)) {
        put(d + 16 * n++, base + GUEST_STATUS + slot, 1, WRITE, 0);
    }
    return n;
}

/* Make one element available; packed rings take the same descriptors with their own flags. */
static void offer(Guest *g, GuestDevice *d, unsigned int q, uint8_t *table, unsigned int n)
{
    GuestQueue *s = &d->queues[q];
    uint64_t base = guest_queue_addr(d, q);
    uint8_t head[2];

    if (d->packed) {
        for (unsigned int i = 0; i < n; i++) {
            unsigned int at = (s->next + i) % s->size;
            bool wrap = s->wrap != (s->next + i >= s->size);
            uint16_t flags = load_le16(table + 16 * i + 12) | (i + 1 < n ? NEXT : 0) | (wrap ? 0x80 : 0x8000);
            store_le16(table + 16 * i + 12, (uint16_t)s->slot);
            store_le16(table + 16 * i + 14, flags);
            guest_write(g, base + GUEST_DESC + 16 * at, table + 16 * i, 16);
        }
        s->wrap = s->wrap != (s->next + n >= s->size);
        s->next = (s->next + n) % s->size;
        return;
    }
    unsigned int first = s->slot * 4 % s->size;
    for (unsigned int i = 0; i < n; i++) {
        if (i + 1 < n) {
            store_le16(table + 16 * i + 12, load_le16(table + 16 * i + 12) | NEXT);
            store_le16(table + 16 * i + 14, (uint16_t)((first + i + 1) % s->size));
        }
        guest_write(g, base + GUEST_DESC + 16 * ((first + i) % s->size), table + 16 * i, 16);
    }
    store_le16(head, (uint16_t)first);
    guest_write(g, base + GUEST_AVAIL + 4 + 2 * (s->next % s->size), head, 2);
    s->next = (s->next + 1) & 0xffff;
    guest_cmd(g, "writew 0x%" PRIx64 " %u", base + GUEST_AVAIL + 2, s->next);
}

void guest_request(Guest *g, GuestDevice *d, unsigned int q, const GuestRequest *r)
{
    GuestQueue *s = &d->queues[q];
    uint64_t base = guest_queue_addr(d, q), indirect = base + GUEST_TABLE + 256 * (s->slot % 16);
    uint8_t table[16 * 16], header[16];

    if (!s->size) {
        return;
    }
    s->slot = (s->slot + 1) % 64;
    put(header, r->type, (uint32_t)r->sector, (uint16_t)(r->sector >> 32), (uint16_t)(r->sector >> 48));
    guest_write(g, base + GUEST_HEADERS + 16 * s->slot, header, 16);
    guest_write(g, base + GUEST_HEADERS + 0x400 + 16 * s->slot, r->payload, 16);
    unsigned int n = build(base, s->slot, r, table);
    if (r->flags & 2) {
        for (unsigned int i = 0; i + 1 < n && !d->packed; i++) {
            store_le16(table + 16 * i + 12, load_le16(table + 16 * i + 12) | NEXT);
            store_le16(table + 16 * i + 14, (uint16_t)(i + 1));
        }
        guest_write(g, indirect, table, 16 * n);
        put(table, indirect, 16 * n, INDIRECT, 0);
        n = 1;
    }
    offer(g, d, q, table, n);
}

void guest_kick(Guest *g, GuestDevice *d, unsigned int q)
{
    if (d->has_modern) {
        guest_cmd(g, "writew 0x%" PRIx64 " %u", d->modern + 0x3000 + q * (d->page_per_vq ? 4096 : 4), q);
    } else {
        guest_cmd(g, "outw 0x%" PRIx64 " %u", d->legacy + 0x10, q);
    }
}

/* --- One input --- */

static bool device_exists(unsigned int i)
{
    g_autofree char *path = g_strdup_printf("/machine/peripheral/d%u", i);

    return object_resolve(path, NULL) != NULL;
}

/* Whatever an input unplugged and deleted. */
static void plug(unsigned int i)
{
    Error *err = NULL;
    bool help = false;

    if (device_exists(i)) {
        return;
    }
    guest_qmp(NULL, "{'execute': 'object-add', 'arguments': {'qom-type': 'iothread', 'id': 'io0'}}");
    guest_qmp(NULL, "{'execute': 'object-add', 'arguments': {'qom-type': 'iothread', 'id': 'io1'}}");
    guest_qmp(NULL, "{'execute': 'blockdev-add', 'arguments': %s}", disks[i]);
    if (!device_add_option(device_options[i], &help, &err)) {
        error_report_err(err);
        abort();
    }
}

Guest *guest_begin(void)
{
    Guest *g = &the_guest;

    memset(g, 0, sizeof(*g));
    if (has_ecam) {
        guest_config_write(g, 0, 0x60, 4, GUEST_ECAM | 1);
    }
    for (unsigned int i = 0; i < GUEST_DEVICES; i++) {
        GuestDevice *d = &g->devices[i];
        *d = (GuestDevice){.index = i, .devfn = (4 + i) << 3, .legacy = 0xd000 + 0x100 * i, .msix = 0xe0000000u + 0x10000 * i,
                           .modern = 0xe1000000u + 0x1000000 * i, .page_per_vq = i == 1};
        find_capabilities(g, d);
    }
    return g;
}

void guest_end(Guest *g)
{
    guest_line(g, "", 0);
    guest_settle(2);
    guest_qmp(g, "{'execute': 'cont'}");
    guest_qmp(g, "{'execute': 'system_reset'}");
    for (unsigned int i = 0; i < GUEST_DEVICES; i++) {
        plug(i);
        guest_qmp(g, "{'execute': 'block_resize', 'arguments': {'node-name': 'disk%u', 'size': %u}}", i, DISK_SIZE);
    }
    guest_ram_fill(RAM_AREA, 0, GUEST_DEVICES * GUEST_QUEUES * GUEST_QUEUE_SPAN);
    if (!vm_running()) {
        fprintf(stderr, "the machine does not run after its reset\n");
        abort();
    }
}
