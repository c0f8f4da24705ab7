/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-pci: what makes a PCI device out of a virtio device. Main thread only. */
#ifndef VIRTIO_PCI_H
#define VIRTIO_PCI_H

#include "guest/pci.h"
#include "virtio/virtio.h"

#define TYPE_VIRTIO_PCI "virtio-pci"

#define VIRTIO_PCI_VECTORS_AUTO UINT32_MAX

typedef struct VirtIOPCI VirtIOPCI;

/* A family of three types: NAME, NAME-transitional and NAME-non-transitional. */
typedef struct VirtIOPCIInfo {
    const char *name;
    const char *alias;
    const char *category;
    const char *backend;    /* type of the device behind it */
    uint16_t class_id;      /* PCI class */
    uint16_t legacy_id;     /* PCI device id of the transitional device */
    /* The backend's properties, which the proxy hands through; ended by a NULL name. */
    const ObjectProperty *properties;
    /* Fill in defaults that depend on the machine, before the backend is realized. */
    void (*prepare)(VirtIOPCI *proxy, VirtIODevice *vdev);
} VirtIOPCIInfo;

struct VirtIOPCI {
    PciDevice pci;
    VirtIODevice *vdev; /* child "virtio-backend" */
    BusState *bus;      /* child "virtio-bus" */
    /* Properties. */
    int disable_legacy; /* DeviceOnOffAuto */
    bool disable_modern, ioeventfd, page_per_vq, modern_pio_notify, ats, aer;
    uint32_t vectors;
    uint32_t pci_class;
    /* Registers of the modern interface. */
    uint32_t device_feature_select, driver_feature_select;
    uint32_t driver_features[2];
    unsigned int cfg_cap; /* offset of the configuration access capability; 0: none */
    unsigned int notify_multiplier;
};

/* Once for each family; @info stays valid. */
void virtio_pci_register(const VirtIOPCIInfo *info);
/* The abstract base type. */
void virtio_pci_register_types(void);

#endif
