/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Machines: creation from the command line's settings, and their end. */
#include "guest/machine.h"
#include "guest/acpi-hotplug.h"
#include "guest/fw-cfg.h"
#include "guest/i440fx.h"
#include "guest/machine-private.h"
#include "guest/private.h"

#include "loop/timer.h"
#include "qapi/opts.h"

#include <string.h>

const MachineClass *const machine_classes[] = {&machine_none, &machine_pc, &machine_q35, NULL};

static json_t *settings;     /* of -machine, merged; without "type" and "smp" */
static char *type_setting;
static GPtrArray *accels;    /* of -accel, in order */
static uint64_t memory_setting;
static bool memory_set, nographic, qtest_accel;
static uint8_t uuid[16];
static char *guest_name;
static MachineTopology topology = {1, 1, 1, 1, 1};

static MachineState *machine;
static const MachineClass *machine_class;
static bool ready;

/* --- Options --- */

static const MachineClass *find_class(const char *name)
{
    for (int i = 0; machine_classes[i]; i++) {
        const MachineClass *mc = machine_classes[i];
        if (name ? !strcmp(mc->name, name) || !g_strcmp0(mc->alias, name) : mc->is_default) {
            return mc;
        }
    }
    return NULL;
}

static const MachineClass *require_class(const char *name, Error **errp)
{
    const MachineClass *mc = find_class(name);

    if (!mc) {
        error_setg(errp, "unsupported machine type: \"%s\"", name);
        error_append_hint(errp, "Use -machine help to list supported machines\n");
    }
    return mc;
}

bool machine_option(const char *arg, bool *help, Error **errp)
{
    const char *key;
    json_t *value;

    *help = false;
    g_autoptr(json_t) options = keyval_parse(arg, "type", help, errp);
    if (!options) {
        return false;
    }
    const char *type = json_string_value(json_object_get(options, "type"));
    if (*help) {
        const MachineClass *mc = type ? require_class(type, errp) : NULL;
        if (type && !mc) {
            return false;
        }
        machine_print_help(mc);
        return true;
    }
    if (type) {
        g_free(type_setting);
        type_setting = g_strdup(type);
    }
    if (!settings) {
        settings = json_object();
    }
    json_object_foreach(options, key, value)
    {
        if (!strcmp(key, "smp") && json_is_object(value)) {
            if (!machine_parse_topology(value, &topology, errp)) {
                return false;
            }
        } else if (strcmp(key, "type")) {
            json_object_set(settings, key, value);
        }
    }
    return true;
}

bool machine_accel_option(const char *arg, bool *help, Error **errp)
{
    *help = !strcmp(arg, "help") || !strcmp(arg, "?");
    if (*help) {
        printf("Accelerators supported in QEMU binary:\nqtest\n");
        return true;
    }
    if (!accels) {
        accels = g_ptr_array_new_with_free_func(g_free);
    }
    g_ptr_array_add(accels, g_strdup(arg));
    return true;
}

bool machine_memory_option(const char *arg, Error **errp)
{
    static const OptDesc desc[] = {{"size", OPT_STRING, "initial amount of guest memory"}, {0}};
    g_autoptr(Opts) opts = opts_parse(arg, "size", desc, NULL, errp);
    Error *err = NULL;

    if (!opts) {
        return false;
    }
    uint64_t size = opts_get_size(opts, "size", 'M', 0, &err);
    if (err) {
        error_propagate(errp, err);
        return false;
    }
    if (size > UINT64_MAX - 8191) {
        error_setg(errp, "ram size too large");
        return false;
    }
    memory_setting = (size + 8191) & ~8191ULL;
    memory_set = size != 0;
    return true;
}

bool machine_smp_option(const char *arg, Error **errp)
{
    g_autoptr(Opts) opts = opts_parse(arg, "cpus", NULL, NULL, errp);

    if (!opts) {
        return false;
    }
    g_autoptr(json_t) options = opts_to_json(opts);
    return machine_parse_topology(options, &topology, errp);
}

bool machine_cpu_option(const char *arg, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(arg, ",", -1);

    if (strcmp(parts[0] ? parts[0] : "", "qemu64") && strcmp(parts[0] ? parts[0] : "", TYPE_QEMU64_CPU)) {
        error_setg(errp, "unable to find CPU model '%s'", parts[0] ? parts[0] : "");
        return false;
    }
    /* No processor runs, so there is nothing to choose but its name for interrupts, and no interrupt gets there. */
    for (char **part = parts + 1; *part; part++) {
        if (!g_str_has_prefix(*part, "apic-id=")) {
            g_autofree char *name = g_strndup(*part, strcspn(*part, "="));

            error_setg(errp, "Property '%s.%s' not found", TYPE_QEMU64_CPU, name);
            return false;
        }
    }
    return true;
}

void machine_set_nographic(void)
{
    nographic = true;
}

void machine_set_uuid(const uint8_t bytes[16])
{
    memcpy(uuid, bytes, sizeof(uuid));
}

void machine_set_name(const char *name)
{
    g_free(guest_name);
    guest_name = g_strdup(name);
}

/* --- Creation --- */

static bool apply_settings(MachineState *m, Error **errp)
{
    const char *key;
    json_t *value;

    json_object_foreach(settings, key, value)
    {
        const char *text = json_string_value(value);
        if (!text) {
            error_setg(errp, "Property '%s.%s' not found", m->obj.type->name, key);
            return false;
        }
        if (!object_set_text(&m->obj, key, text, PROPERTY_TEXT_DEVICE, errp)) {
            return false;
        }
    }
    return true;
}

/* The one accelerator there is; anything else is passed over with a message, and must be followed by it. */
static bool choose_accel(MachineState *m, Error **errp)
{
    g_auto(GStrv) names = NULL;

    if (m->accel && accels) {
        error_setg(errp, "The -accel and \"-machine accel=\" options are incompatible");
        return false;
    }
    if (m->accel) {
        names = g_strsplit(m->accel, ":", -1);
    } else if (accels) {
        GStrvBuilder *b = g_strv_builder_new();
        for (unsigned int i = 0; i < accels->len; i++) {
            g_strv_builder_add(b, g_ptr_array_index(accels, i));
        }
        names = g_strv_builder_end(b);
        g_strv_builder_unref(b);
    } else {
        return true;
    }
    for (int i = 0; names[i]; i++) {
        if (!strcmp(names[i], "qtest")) {
            if (i > 0) {
                error_report("falling back to QTest");
            }
            qtest_accel = true;
            return true;
        }
        if (names[i + 1]) {
            error_report(accels ? "-accel %s: invalid accelerator %s" : "invalid accelerator %s%.0s", names[i], names[i]);
        } else if (accels) {
            error_setg(errp, "-accel %s: invalid accelerator %s", names[i], names[i]);
        } else {
            error_setg(errp, "invalid accelerator %s", names[i]);
        }
    }
    return false;
}

static bool use_backend(MachineState *m, Error **errp)
{
    Object *obj = object_child(object_objects(), m->memory_backend);

    if (!obj || !object_is_a(obj, TYPE_MEMORY_BACKEND)) {
        error_setg(errp, "Memory backend '%s' not found", m->memory_backend);
        return false;
    }
    if (memory_set && memory_setting != hostmem_size((HostMemory *)obj)) {
        error_setg(errp, "Machine memory size does not match the size of the memory backend");
        return false;
    }
    m->ram = (HostMemory *)obj;
    return true;
}

/* Memory as an object /objects/pc.ram, as if a user had made it. */
static bool own_backend(MachineState *m, uint64_t size, Error **errp)
{
    const char *id = machine_class->default_ram_id;
    g_autoptr(json_t) options = json_pack("{s:s, s:s, s:I, s:b, s:b, s:b}", "qom-type", "memory-backend-ram", "id", id,
                                          "size", (json_int_t)size, "share", m->aux_ram_share, "merge",
                                          m->mem_merge, "dump", m->dump_guest_core);

    if (!user_creatable_add(options, errp)) {
        return false;
    }
    m->ram = (HostMemory *)object_child(object_objects(), id);
    return true;
}

static bool create_ram(MachineState *m, Error **errp)
{
    uint64_t size = memory_set ? memory_setting : machine_class->default_ram_size;

    if (m->memory_backend && *m->memory_backend ? !use_backend(m, errp) : size && !own_backend(m, size, errp)) {
        return false;
    }
    if (m->ram) {
        object_use((Object *)m->ram);
        m->ram_size = hostmem_size(m->ram);
    }
    return true;
}

bool machine_select(Error **errp)
{
    machine_class = require_class(type_setting, errp);
    return machine_class != NULL;
}

bool machine_configure(Error **errp)
{
    g_assert(!machine);
    if (!machine_class && !machine_select(errp)) {
        return false;
    }
    g_autofree char *type = g_strdup_printf("%s-machine", machine_class->name);
    machine = (MachineState *)object_new(type);
    bool ok = object_add_child(object_root(), "machine", &machine->obj, errp);
    object_unref(&machine->obj);
    if (!ok) {
        machine = NULL;
        return false;
    }
    object_container("/machine/peripheral");
    object_container("/machine/peripheral-anon");
    object_container("/machine/unattached");
    return machine_check_topology(machine_class, &topology, errp) && apply_settings(machine, errp) &&
           choose_accel(machine, errp);
}

bool machine_create(Error **errp)
{
    if ((!machine && !machine_configure(errp)) || !create_ram(machine, errp)) {
        return false;
    }
    if (qtest_accel) {
        clock_virtual_take_over();
    }
    bus_system();
    return machine_class->init(machine, errp);
}

void machine_ready(void)
{
    device_hotplug_phase();
    vm_reset_devices();
    ready = true;
}

void machine_destroy(void)
{
    if (machine) {
        HostMemory *ram = machine->ram;
        bool own = ram && !(machine->memory_backend && *machine->memory_backend);

        device_teardown();
        machine_destroy_cpus();
        vm_forget_reset_hooks();
        guest_ram_set(NULL, 0);
        object_unparent(&machine->obj);
        if (ram) {
            object_unuse((Object *)ram);
        }
        if (own) {
            object_unparent((Object *)ram);
        }
    }
    machine = NULL;
    machine_class = NULL;
    ready = memory_set = qtest_accel = nographic = false;
    topology = (MachineTopology){1, 1, 1, 1, 1};
    g_clear_pointer(&settings, json_decref);
    g_clear_pointer(&type_setting, g_free);
    g_clear_pointer(&guest_name, g_free);
    g_clear_pointer(&accels, g_ptr_array_unref);
    device_globals_clear();
}

/* --- Questions --- */

bool machine_has_cpus(void)
{
    return machine_class && machine_class->max_cpus > 1;
}

unsigned int machine_cpus(void)
{
    return topology.cpus;
}

uint64_t machine_ram_size(void)
{
    return machine ? machine->ram_size : 0;
}

bool machine_is_ready(void)
{
    return ready;
}

const MachineTopology *machine_topology(void)
{
    return &topology;
}

const uint8_t *machine_uuid(void)
{
    return uuid;
}

bool machine_nographic(void)
{
    return nographic;
}

const char *machine_guest_name(void)
{
    return guest_name;
}

/* --- Types --- */

static bool set_fixed(Object *obj, const ObjectProperty *p, Error **errp)
{
    if (machine_is_ready() || ((MachineState *)obj)->ram) {
        error_setg(errp, "Property '%s.%s' cannot be changed any more", obj->type->name, p->name);
        return false;
    }
    return true;
}

static bool set_flag(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return set_fixed(obj, p, errp) && object_set_bool(obj, p, value, errp);
}

static bool set_text(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return set_fixed(obj, p, errp) && object_set_string(obj, p, value, errp);
}

static bool set_choice(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return set_fixed(obj, p, errp) && object_set_enum(obj, p, value, errp);
}

static bool set_usb(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    if (json_is_true(value)) {
        error_setg(errp, "There is no USB controller for 'usb=on'");
        return false;
    }
    return set_fixed(obj, p, errp);
}

static json_t *get_backend(Object *obj, const ObjectProperty *p, Error **errp)
{
    MachineState *m = (MachineState *)obj;
    g_autofree char *path = m->ram ? object_path((Object *)m->ram) : NULL;

    return json_string(path ? path : "");
}

#define FLAG(pname, member, setter, text)                                                          \
    {                                                                                              \
        .name = pname, .kind = PROP_BOOL, .get = object_get_bool, .set = setter,                   \
        .offset = offsetof(MachineState, member), .description = text,                             \
    }

static const ObjectProperty machine_properties[] = {
    {.name = "accel", .kind = PROP_STRING, .get = object_get_string, .set = set_text,
     .offset = offsetof(MachineState, accel), .description = "Accelerator list"},
    {.name = "memory-backend", .kind = PROP_STRING, .type = "link<memory-backend>", .get = get_backend,
     .set = set_text, .offset = offsetof(MachineState, memory_backend), .description = "Set RAM backend"},
    FLAG("graphics", graphics, set_flag, "Set on/off to enable/disable graphics emulation"),
    FLAG("usb", usb, set_usb, "Set on/off to enable/disable usb"),
    FLAG("dump-guest-core", dump_guest_core, set_flag, "Include guest memory in a core dump"),
    FLAG("mem-merge", mem_merge, set_flag, "Enable/disable memory merge support"),
    FLAG("aux-ram-share", aux_ram_share, set_flag, "Share memory that is not a memory backend's"),
    {0},
};

#define CHOICE(pname, member, text)                                                                \
    {                                                                                              \
        .name = pname, .kind = PROP_ENUM, .type = "OnOffAuto", .values = device_on_off_auto,       \
        .get = object_get_enum, .set = set_choice, .offset = offsetof(MachineState, member),       \
        .description = text,                                                                       \
    }

static const ObjectProperty pc_properties[] = {
    CHOICE("acpi", acpi, "Enable ACPI"),
    CHOICE("smm", smm, "Enable SMM"),
    {0},
};

static void machine_init(Object *obj)
{
    MachineState *m = (MachineState *)obj;

    m->graphics = !nographic;
    m->dump_guest_core = true;
    m->mem_merge = true;
}

static void machine_finalize(Object *obj)
{
    MachineState *m = (MachineState *)obj;

    g_free(m->accel);
    g_free(m->memory_backend);
}

static const ObjectType types[] = {
    {.name = TYPE_MACHINE, .parent = "container", .size = sizeof(MachineState), .abstract = true,
     .properties = machine_properties, .init = machine_init, .finalize = machine_finalize},
    {.name = "none-machine", .parent = TYPE_MACHINE, .klass = &machine_none},
    {.name = "pc-i440fx-11.1-machine", .parent = TYPE_MACHINE, .properties = pc_properties, .klass = &machine_pc},
    {.name = "pc-q35-11.1-machine", .parent = TYPE_MACHINE, .properties = pc_properties, .klass = &machine_q35},
};

void machine_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
