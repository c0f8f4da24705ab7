/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine in process with several virtio-blk devices, and a driver for them that speaks the qtest protocol. */
#ifndef QTEST_GUEST_H
#define QTEST_GUEST_H

#include "fuzz-input.h"

#include <glib.h>
#include <inttypes.h>
#include <stdbool.h>

#define GUEST_DEVICES 4
#define GUEST_QUEUES 4
#define GUEST_RAM_SIZE (16u << 20)
#define GUEST_ECAM 0xb0000000u

/* Offsets in the memory of a queue. */
#define GUEST_DESC 0u
#define GUEST_AVAIL 0x1000u
#define GUEST_USED 0x2000u
#define GUEST_TABLE 0x3000u
#define GUEST_HEADERS 0x4000u
#define GUEST_STATUS 0x5000u
#define GUEST_DATA 0x6000u
#define GUEST_QUEUE_SPAN 0x20000u

typedef struct GuestQueue {
    unsigned int size, next, slot;
    bool wrap;
} GuestQueue;

typedef struct GuestDevice {
    unsigned int index, devfn, msix_cap;
    uint64_t legacy, msix, modern; /* where its BARs are put */
    bool has_modern, packed, page_per_vq;
    GuestQueue queues[GUEST_QUEUES];
} GuestDevice;

typedef struct Guest {
    GuestDevice devices[GUEST_DEVICES];
} Guest;

typedef struct GuestRequest {
    uint32_t type, len;
    uint64_t sector;
    unsigned int segments; /* descriptors with data */
    uint8_t flags;         /* 1: own payload; 2: indirect; 4: status in front of data; 8: no status; 16: device writes data */
    uint8_t payload[16];   /* of discard and write-zeroes */
} GuestRequest;

/* Once a process: create the machine; an error ends the program. */
void guest_boot(const char *machine);

/* One input: a machine after reset, and back to it. */
Guest *guest_begin(void);
void guest_end(Guest *g);

bool guest_has_ecam(const Guest *g);
GuestDevice *guest_device(Guest *g, FuzzInput *in);
uint64_t guest_queue_addr(const GuestDevice *d, unsigned int q);

/* A command; the reply is the number behind "OK", 0 without one. */
uint64_t guest_cmd(Guest *g, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
void guest_line(Guest *g, const char *text, size_t len);
void guest_write(Guest *g, uint64_t addr, const uint8_t *bytes, size_t len);
void guest_config_write(Guest *g, unsigned int devfn, unsigned int off, unsigned int size, uint32_t value);

/* What drivers do: negotiate what the device offers of @features, set queues up with 1 << @size_log2 entries each. */
void guest_set_up(Guest *g, GuestDevice *d, uint64_t features, unsigned int size_log2, unsigned int queues);
void guest_set_status(Guest *g, GuestDevice *d, uint8_t status);
void guest_request(Guest *g, GuestDevice *d, unsigned int q, const GuestRequest *r);
void guest_kick(Guest *g, GuestDevice *d, unsigned int q);

/* A command of the management, single quotes and all. */
void guest_qmp(Guest *g, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* Let other threads do what they have to: @passes of the main loop with a moment between them. */
void guest_settle(unsigned int passes);

#endif
