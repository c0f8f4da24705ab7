/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-pci: types, properties, realize and reset of the proxy between a PCI function and a virtio device. */
#include "base/bswap.h"
#include "virtio/pci-internal.h"

#define VENDOR_REDHAT 0x1af4
#define MODERN_ID_BASE 0x1040
#define MODERN_SUBSYSTEM 0x1100

typedef enum VirtIOPCIVariant { VARIANT_GENERIC, VARIANT_TRANSITIONAL, VARIANT_MODERN, VARIANTS } VirtIOPCIVariant;

typedef struct VirtIOPCIClass {
    PciDeviceClass parent;
    const VirtIOPCIInfo *info;
    VirtIOPCIVariant variant;
} VirtIOPCIClass;

static const VirtIOPCIClass *virtio_pci_class(const VirtIOPCI *proxy)
{
    return (const VirtIOPCIClass *)pci_class(&proxy->pci);
}

/* A PCI Express device, then: not one of the root complex, nor one on a conventional bus. */
static bool behind_port(const VirtIOPCI *proxy)
{
    const PciBus *bus = pci_bus(&proxy->pci);

    return bus && bus->bridge && pci_bus_is_express(bus);
}

bool virtio_pci_has_legacy(const VirtIOPCI *proxy)
{
    switch (virtio_pci_class(proxy)->variant) {
    case VARIANT_TRANSITIONAL:
        return true;
    case VARIANT_MODERN:
        return false;
    default:
        return proxy->disable_legacy == DEVICE_OFF || (proxy->disable_legacy == DEVICE_AUTO && !behind_port(proxy));
    }
}

static bool has_modern(const VirtIOPCI *proxy)
{
    return virtio_pci_class(proxy)->variant != VARIANT_GENERIC || !proxy->disable_modern;
}

/* --- Reset and status --- */

static void reset_registers(VirtIOPCI *proxy)
{
    proxy->device_feature_select = proxy->driver_feature_select = 0;
    proxy->driver_features[0] = proxy->driver_features[1] = 0;
}

static void proxy_reset(PciDevice *pci)
{
    VirtIOPCI *proxy = (VirtIOPCI *)pci;

    virtio_reset(proxy->vdev);
    reset_registers(proxy);
    pci_set_intx(pci, 0);
}

void virtio_pci_set_status(VirtIOPCI *proxy, uint8_t status)
{
    virtio_set_status(proxy->vdev, status);
    if (!status) {
        reset_registers(proxy);
        pci_set_intx(&proxy->pci, 0);
    }
}

static void proxy_config_write(PciDevice *pci, unsigned int addr, unsigned int len)
{
    VirtIOPCI *proxy = (VirtIOPCI *)pci;
    uint8_t status = virtio_status(proxy->vdev);

    /* A device that may not reach memory any more cannot go on. */
    if (addr <= PCI_COMMAND + 1 && addr + len > PCI_COMMAND && !pci_bus_master(pci) &&
        (status & VIRTIO_CONFIG_S_DRIVER_OK)) {
        virtio_set_status(proxy->vdev, status & ~VIRTIO_CONFIG_S_DRIVER_OK);
    }
    virtio_pci_window_write(proxy, addr, len);
}

static void proxy_config_read(PciDevice *pci, unsigned int addr, unsigned int len)
{
    virtio_pci_window_read((VirtIOPCI *)pci, addr, len);
}

/* --- Realize --- */

static bool check_modes(VirtIOPCI *proxy, Error **errp)
{
    VirtIODevice *vdev = proxy->vdev;

    if (!has_modern(proxy) && !virtio_pci_has_legacy(proxy)) {
        error_setg(errp, "device cannot work as neither modern nor legacy mode is enabled");
        error_append_hint(errp, "Set either disable-modern or disable-legacy to off\n");
        return false;
    }
    if (vdev->iommu_platform && virtio_pci_has_legacy(proxy)) {
        error_setg(errp, "VIRTIO_F_IOMMU_PLATFORM was supported by neither legacy nor transitional device");
        return false;
    }
    if (behind_port(proxy) && (proxy->ats || proxy->aer)) {
        error_setg(errp, "%s=on is not supported", proxy->ats ? "ats" : "aer");
        return false;
    }
    return true;
}

/* A failure is not the end: the device goes on with a line interrupt. */
static void add_msix(VirtIOPCI *proxy)
{
    Error *err = NULL;

    if (proxy->vectors && !pci_msix_init(&proxy->pci, proxy->vectors, BAR_MSIX, 0, &err)) {
        error_free(err);
        warn_report("unable to init msix vectors to %" G_GUINT32_FORMAT, proxy->vectors);
        proxy->vectors = 0;
    }
}

static void set_ids(VirtIOPCI *proxy)
{
    uint8_t *config = proxy->pci.config;
    uint16_t device_id = virtio_device_class(proxy->vdev)->device_id;

    if (virtio_pci_has_legacy(proxy)) {
        store_le16(config + PCI_SUBSYSTEM_VENDOR_ID, VENDOR_REDHAT);
        store_le16(config + PCI_SUBSYSTEM_ID, device_id);
    } else {
        store_le16(config + PCI_DEVICE_ID, MODERN_ID_BASE + device_id);
        store_le16(config + PCI_SUBSYSTEM_VENDOR_ID, VENDOR_REDHAT);
        store_le16(config + PCI_SUBSYSTEM_ID, MODERN_SUBSYSTEM);
        config[PCI_REVISION_ID] = 1;
    }
    if (proxy->pci_class) {
        store_le16(config + PCI_CLASS_DEVICE, proxy->pci_class >> 8);
        config[PCI_CLASS_PROG] = proxy->pci_class;
    }
    config[PCI_INTERRUPT_PIN] = 1;
}

static bool proxy_realize(PciDevice *pci, Error **errp)
{
    VirtIOPCI *proxy = (VirtIOPCI *)pci;
    VirtIODevice *vdev = proxy->vdev;
    const VirtIOPCIInfo *info = virtio_pci_class(proxy)->info;

    if (!check_modes(proxy, errp)) {
        return false;
    }
    info->prepare(proxy, vdev);
    vdev->ioeventfd = proxy->ioeventfd;
    vdev->modern = has_modern(proxy);
    proxy->notify_multiplier = proxy->page_per_vq ? REGION_SIZE : 4;
    virtio_bind(vdev, &virtio_pci_transport, proxy);
    if (!device_realize(&vdev->qdev, proxy->bus, errp)) {
        return false;
    }
    virtio_offer_features(vdev, vdev->modern ? 1ull << VIRTIO_F_VERSION_1 : 0);
    set_ids(proxy);
    if (vdev->modern && ((behind_port(proxy) && !pci_add_express_endpoint(pci, errp)) || !virtio_pci_add_capabilities(proxy, errp))) {
        device_unrealize(&vdev->qdev);
        return false;
    }
    proxy->disable_legacy = virtio_pci_has_legacy(proxy) ? DEVICE_OFF : DEVICE_ON;
    add_msix(proxy);
    if (vdev->modern) {
        virtio_pci_add_modern_bars(proxy);
    }
    if (virtio_pci_has_legacy(proxy)) {
        virtio_pci_add_legacy_bar(proxy);
    }
    return true;
}

/* --- Types --- */

static void proxy_init(Object *obj)
{
    VirtIOPCI *proxy = (VirtIOPCI *)obj;

    proxy->ioeventfd = true;
    proxy->vectors = VIRTIO_PCI_VECTORS_AUTO;
}

/* Instances of a family: the backend is there from the start, to take its properties. */
static void family_init(Object *obj)
{
    VirtIOPCI *proxy = (VirtIOPCI *)obj;

    proxy->vdev = (VirtIODevice *)device_new(virtio_pci_class(proxy)->info->backend);
    proxy->bus = bus_new(TYPE_VIRTIO_BUS, &proxy->pci.qdev, "virtio-bus");
    object_add_child(obj, "virtio-backend", &proxy->vdev->qdev.obj, &error_abort);
    object_unref(&proxy->vdev->qdev.obj);
}

static json_t *alias_get(Object *obj, const ObjectProperty *prop, Error **errp)
{
    return object_get(&((VirtIOPCI *)obj)->vdev->qdev.obj, prop->name, errp);
}

static bool alias_set(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp)
{
    return object_set(&((VirtIOPCI *)obj)->vdev->qdev.obj, prop->name, value, errp);
}

#define PROXY_BOOL(n, field, desc)                                                                   \
    {                                                                                              \
        .name = n, .kind = PROP_BOOL, .description = desc, .get = object_get_bool,                 \
        .set = device_set_bool, .offset = offsetof(VirtIOPCI, field)                               \
    }

static const ObjectProperty proxy_properties[] = {
    PROXY_BOOL("ioeventfd", ioeventfd, "on/off"),
    PROXY_BOOL("page-per-vq", page_per_vq, "on/off"),
    PROXY_BOOL("modern-pio-notify", modern_pio_notify, "on/off"),
    PROXY_BOOL("ats", ats, "on/off"),
    PROXY_BOOL("aer", aer, "on/off"),
    {.name = "vectors", .kind = PROP_UINT32, .get = object_get_uint32, .set = device_set_uint32,
     .offset = offsetof(VirtIOPCI, vectors)},
    {.name = "class", .kind = PROP_UINT32, .get = object_get_uint32, .set = device_set_uint32,
     .offset = offsetof(VirtIOPCI, pci_class)},
    {},
};

/* Which interfaces there are: a choice of the generic type only. */
static const ObjectProperty generic_properties[] = {
    {.name = "disable-legacy", .kind = PROP_ENUM, .type = "OnOffAuto", .description = "on/off/auto",
     .values = device_on_off_auto,
     .get = object_get_enum, .set = device_set_enum, .offset = offsetof(VirtIOPCI, disable_legacy)},
    PROXY_BOOL("disable-modern", disable_modern, "on/off"),
    {},
};

static void append_properties(GArray *all, const ObjectProperty *list, bool alias)
{
    for (const ObjectProperty *p = list; p->name; p++) {
        ObjectProperty copy = *p;

        if (alias) {
            copy.get = p->get ? alias_get : NULL;
            copy.set = p->set ? alias_set : NULL;
            copy.opaque = NULL;
        }
        g_array_append_val(all, copy);
    }
}

/* Defaults as help shows them: what a fresh object has. */
static void note_defaults(GArray *properties, Object *obj)
{
    for (guint i = 0; i < properties->len; i++) {
        ObjectProperty *p = &g_array_index(properties, ObjectProperty, i);

        if (p->get && (p->kind == PROP_BOOL || p->kind == PROP_UINT16 || p->kind == PROP_UINT32 || p->kind == PROP_SIZE ||
                       p->kind == PROP_ENUM)) {
            p->default_value = p->get(obj, p, &error_abort);
        }
    }
}

static const PciDeviceClass proxy_class = {
    .parent = {PCI_DEVICE_CLASS_BASE},
};

static const ObjectType proxy_type = {
    .name = TYPE_VIRTIO_PCI,
    .parent = TYPE_PCI_DEVICE,
    .size = sizeof(VirtIOPCI),
    .abstract = true,
    .init = proxy_init,
    .klass = &proxy_class,
};

/* Types live as long as the program. */
static void register_variant(const VirtIOPCIInfo *info, VirtIOPCIVariant variant, const GArray *properties)
{
    static const char *const suffixes[VARIANTS] = {"", "-transitional", "-non-transitional"};
    VirtIOPCIClass *klass = g_new0(VirtIOPCIClass, 1);
    ObjectType *type = g_new0(ObjectType, 1);

    *klass = (VirtIOPCIClass){
        .parent = {
            .parent = {
                PCI_DEVICE_CLASS_BASE,
                .alias = variant == VARIANT_GENERIC ? info->alias : NULL,
                .category = info->category,
                .user_creatable = true,
            },
            .vendor_id = VENDOR_REDHAT,
            .device_id = info->legacy_id,
            .class_id = info->class_id,
            .realize = proxy_realize,
            .reset = proxy_reset,
            .config_write = proxy_config_write,
            .config_read = proxy_config_read,
            .intx_level = virtio_pci_intx_level,
        },
        .info = info,
        .variant = variant,
    };
    *type = (ObjectType){
        .name = g_strconcat(info->name, suffixes[variant], NULL),
        .parent = g_strconcat(info->name, "-base", NULL),
        .properties = properties ? (const ObjectProperty *)(const void *)properties->data : NULL,
        .init = family_init,
        .klass = klass,
    };
    object_register_type(type);
}

void virtio_pci_register(const VirtIOPCIInfo *info)
{
    GArray *all = g_array_new(TRUE, FALSE, sizeof(ObjectProperty));
    GArray *generic = g_array_new(TRUE, FALSE, sizeof(ObjectProperty));
    ObjectType *base = g_new0(ObjectType, 1);
    Object *specimen;

    append_properties(all, proxy_properties, false);
    append_properties(all, info->properties, true);
    append_properties(all, virtio_device_properties, true);
    *base = (ObjectType){
        .name = g_strconcat(info->name, "-base", NULL),
        .parent = TYPE_VIRTIO_PCI,
        .abstract = true,
        .properties = (const ObjectProperty *)(const void *)all->data,
    };
    object_register_type(base);
    append_properties(generic, generic_properties, false);
    register_variant(info, VARIANT_GENERIC, generic);
    register_variant(info, VARIANT_TRANSITIONAL, NULL);
    register_variant(info, VARIANT_MODERN, NULL);
    specimen = object_new(info->name);
    note_defaults(all, specimen);
    note_defaults(generic, specimen);
    object_unref(specimen);
    g_array_free(all, FALSE);
    g_array_free(generic, FALSE);
}

void virtio_pci_register_types(void)
{
    object_register_type(&proxy_type);
}
