/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio over PCI, both interfaces, and a driver for split virtqueues. Main thread only. */
#ifndef LIBQOS_VIRTIO_H
#define LIBQOS_VIRTIO_H

#include "alloc.h"
#include "pci.h"

enum {
    VIRTIO_S_ACKNOWLEDGE = 1,
    VIRTIO_S_DRIVER = 2,
    VIRTIO_S_DRIVER_OK = 4,
    VIRTIO_S_FEATURES_OK = 8,
    VIRTIO_S_NEEDS_RESET = 0x40,
};

#define VIRTIO_F(bit) (1ULL << (bit))
enum {
    VIRTIO_F_NOTIFY_ON_EMPTY = 24,
    VIRTIO_F_ANY_LAYOUT = 27,
    VIRTIO_F_INDIRECT = 28,
    VIRTIO_F_EVENT_IDX = 29,
    VIRTIO_F_BAD_FEATURE = 30,
    VIRTIO_F_VERSION_1 = 32,
    VIRTIO_F_PACKED = 34,
    VIRTIO_F_RING_RESET = 40,
};

enum {
    VQ_DESC_NEXT = 1,
    VQ_DESC_WRITE = 2,
    VQ_DESC_INDIRECT = 4,
    VQ_USED_NO_NOTIFY = 1,
    VQ_AVAIL_NO_INTERRUPT = 1,
};

#define VIRTIO_NO_VECTOR 0xffff

typedef enum VirtioVia {
    VIRTIO_LEGACY,        /* BAR 0, ports */
    VIRTIO_MODERN,        /* the capabilities' BAR */
    VIRTIO_MODERN_WINDOW, /* the same registers through the window in PCI config space */
} VirtioVia;

typedef struct VirtioArea {
    bool present;
    uint8_t bar;
    uint32_t off, len;
} VirtioArea;

typedef struct VirtioPci {
    QTest *t;
    PciDev *pci;
    VirtioVia via;
    VirtioArea common, isr, device, notify;
    uint32_t notify_multiplier;
    uint8_t window; /* offset of the PCI-cfg capability, 0: none */
    uint64_t features;
    uint64_t vectors; /* page that receives MSI-X messages, one dword a vector; 0: MSI-X not in use */
} VirtioPci;

/* The device at @devfn, enabled and with its BARs mapped. Dies if it is not a virtio device with that interface. */
VirtioPci *vpci_new(QTest *t, int devfn, VirtioVia via);
void vpci_free(VirtioPci *v);

uint8_t vpci_status(VirtioPci *v);
void vpci_set_status(VirtioPci *v, uint8_t status);
/* Write 0 and check that it reads back. */
void vpci_reset(VirtioPci *v);
/* Reading clears it. */
uint8_t vpci_isr(VirtioPci *v);

/* All 64 bits on the modern interface, 32 on the legacy one. */
uint64_t vpci_device_features(VirtioPci *v);
void vpci_set_features(VirtioPci *v, uint64_t features);

/* Device-specific configuration, @size 1, 2, 4 or 8. */
uint64_t vpci_config_read(VirtioPci *v, uint32_t off, int size);
void vpci_config_write(VirtioPci *v, uint32_t off, int size, uint64_t value);
/* Modern interface only. */
uint8_t vpci_config_generation(VirtioPci *v);

/* 0 for a queue that does not exist. */
uint16_t vpci_queue_size(VirtioPci *v, uint16_t queue);
/* Modern interface only: choose a smaller size before the queue is enabled. */
void vpci_set_queue_size(VirtioPci *v, uint16_t queue, uint16_t size);
/* Hand over the rings and enable the queue; on the legacy interface they must be laid out as it demands. */
void vpci_queue_enable(VirtioPci *v, uint16_t queue, uint64_t desc, uint64_t avail, uint64_t used);
void vpci_notify(VirtioPci *v, uint16_t queue);
/* Where the doorbell of @queue is; true if it is a port. The value to write is the queue's number. */
bool vpci_doorbell(VirtioPci *v, uint16_t queue, uint64_t *addr);

/* Registers of the modern common configuration, by offset. */
uint64_t vpci_common_read(VirtioPci *v, uint32_t off, int size);
void vpci_common_write(VirtioPci *v, uint32_t off, int size, uint64_t value);

/* Turn on MSI-X with every vector aimed at a dword of a guest page. */
void vpci_enable_msix(VirtioPci *v);
/* Assign vectors; return what reads back. */
uint16_t vpci_set_config_vector(VirtioPci *v, uint16_t vector);
uint16_t vpci_set_queue_vector(VirtioPci *v, uint16_t queue, uint16_t vector);
/* True if @vector's message has come since the last call; clears it. */
bool vpci_vector_fired(VirtioPci *v, unsigned int vector);

typedef struct VqBuf {
    uint64_t addr;
    uint32_t len;
    bool device_writes;
} VqBuf;

typedef struct Vq {
    VirtioPci *v;
    uint16_t index, size;
    uint64_t memory; /* one allocation for the three parts */
    uint64_t desc, avail, used;
    bool event_idx;
    bool own_used_event; /* a test moves the event; otherwise each used element taken asks for the next interrupt */
    bool corked; /* what is added becomes visible to the device with the next kick */
    uint16_t avail_idx; /* what the driver has made available */
    uint16_t last_used;
    uint16_t kicked; /* avail_idx at the last look at the device's event */
    uint16_t nfree;
    uint16_t *link;     /* free list, and chains in flight */
    uint16_t *chain;    /* descriptors of the chain that begins here */
    uint64_t *indirect; /* guest memory of the chain's indirect table, or 0 */
    uint16_t free_head;
    int vector; /* MSI-X vector, -1: none */
} Vq;

/* Set up queue @index with @size entries (0: what the device offers) and a vector (-1: none). */
Vq *vq_new(VirtioPci *v, uint16_t index, uint16_t size, int vector);
void vq_free(Vq *vq);

/*
 * Add one chain, driver-read buffers first, to the available ring, without kick; returns its head. With @indirect
 * the chain goes into a table of its own.
 */
uint16_t vq_add(Vq *vq, const VqBuf *buf, unsigned int n, bool indirect);
/* Ring the doorbell if the device wants it (no-notify flag or event index); returns whether it did. */
bool vq_kick(Vq *vq);
/* Take one used element, if there is one. */
bool vq_get_used(Vq *vq, uint16_t *head, uint32_t *len);
uint16_t vq_used_idx(Vq *vq);
/* Where the driver wants the next interrupt (event index in use); from then on it does not move by itself. */
void vq_set_used_event(Vq *vq, uint16_t idx);
uint16_t vq_avail_event(Vq *vq);
/* Driver's flags word in the available ring. */
void vq_set_avail_flags(Vq *vq, uint16_t flags);

/* Below the driver's book-keeping, for tests that lie to the device. */
void vq_raw_desc(Vq *vq, uint16_t i, uint64_t addr, uint32_t len, uint16_t flags, uint16_t next);
/* Put @head into the next slot of the available ring and publish it. */
void vq_raw_avail(Vq *vq, uint16_t head);
void vq_raw_avail_idx(Vq *vq, uint16_t idx);

#endif
