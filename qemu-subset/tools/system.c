/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A system emulator's start-up in phases, and the way out. */
#include "block/commands.h"
#include "driver/drivers.h"
#include "guest/machine.h"
#include "monitor/monitor.h"
#include "qapi/qapi-commands.h"
#include "qtest/qtest.h"
#include "tools/command-tables.h"
#include "tools/daemon.h"
#include "tools/settings.h"
#include "tools/system.h"
#include "virtio-blk/virtio-blk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static QtestServer *qtest_server;

/* --- Phase 2: back ends --- */

/* That a device named by "chardev:ID" is not there is left to the message that follows. */
static void report_unless_reference(Error *err, const char *arg)
{
    if (g_str_has_prefix(arg, "chardev:")) {
        error_free(err);
    } else {
        error_report_err(err);
    }
}

/* -serial: opened, so that its errors and its peer behave; no machine here has a port to connect it to. */
static bool open_serial(const char *arg, Error **errp)
{
    static unsigned int n;
    g_autofree char *label = g_strdup_printf("serial%u", n++);
    Error *err = NULL;

    chardev_new_short(label, arg, &err);
    if (err) {
        report_unless_reference(err, arg);
        error_setg(errp, "could not connect serial device to character backend '%s'", arg);
        return false;
    }
    return true;
}

/* The character device that -qmp or -monitor brings along. */
static bool open_monitor_chardev(const OptionUse *u, Error **errp)
{
    static unsigned int n;
    g_autofree char *label = g_strdup_printf("compat_monitor%u", n++);

    return !u->opts || opts_get(u->opts, "chardev") || chardev_new_parsed_short(label, u->opts, errp);
}

static bool open_monitor(const OptionUse *u, bool qmp, bool pretty, Error **errp)
{
    static unsigned int n;
    g_autofree char *label = g_strdup_printf("compat_monitor%u", n++);

    if (!u->opts) {
        return true;
    }
    Chardev *c = opts_get(u->opts, "chardev") ? chardev_new_parsed_short(label, u->opts, errp) : chardev_find(label);
    return c && monitor_new_compat(c, qmp, pretty, errp);
}

static bool attach_monitor(const Opts *opts, Error **errp)
{
    const char *id = opts_get(opts, "chardev"), *mode = opts_get(opts, "mode");

    if (id && mode && strcmp(mode, "control") && strcmp(mode, "readline")) {
        error_setg(errp, "Parameter 'mode' does not accept value '%s'", mode);
        return false;
    }
    Chardev *c = chardev_required(id, errp);
    return c && monitor_new_compat(c, mode && !strcmp(mode, "control"), opts_get_bool(opts, "pretty", false, NULL), errp);
}

static bool refuse_disk(Error **errp)
{
    error_setg(errp, "a disk image as a plain argument needs an IDE disk, which is not available; use -blockdev or -drive");
    return false;
}

typedef bool ApplyOption(const OptionUse *u, Error **errp);

static bool apply_chardev(const OptionUse *u, Error **errp)
{
    switch (u->id) {
    case OPTION_CHARDEV:
        if (u->help) {
            g_autoptr(GString) out = g_string_new(NULL);
            chardev_list_backends(out);
            fputs(out->str, stdout);
            exit(0);
        }
        return chardev_new_parsed(u->opts, NULL, errp);
    case OPTION_MONITOR:
    case OPTION_QMP:
    case OPTION_QMP_PRETTY:
        return open_monitor_chardev(u, errp);
    default:
        return true;
    }
}

/* There is no parallel port, but what it would be connected to is looked at first. */
static bool refuse_parallel(const char *arg, Error **errp)
{
    Error *err = NULL;
    g_autoptr(Opts) opts = chardev_parse_short(arg, &err);

    if (!opts) {
        if (err) {
            error_report_err(err);
        }
        error_setg(errp, "could not connect parallel device to character backend '%s'", arg);
    } else {
        error_setg(errp, "there is no parallel port for '%s'", arg);
    }
    return false;
}

static bool apply_port(const OptionUse *u, Error **errp)
{
    if (u->id == OPTION_PARALLEL) {
        return !strcmp(u->arg, "none") || refuse_parallel(u->arg, errp);
    }
    return u->id != OPTION_SERIAL || open_serial(u->arg, errp);
}

/* It becomes a property of the machine: errors do not name the option. */
static bool apply_smp(const OptionUse *u, Error **errp)
{
    error_location_pop();
    bool ok = u->id != OPTION_SMP || machine_smp_option(u->arg, errp);
    if (!ok) {
        error_report_err(g_steal_pointer(errp));
    }
    error_location_push(u->location);
    return ok;
}

static bool apply_monitor(const OptionUse *u, Error **errp)
{
    switch (u->id) {
    case OPTION_MON:
        return attach_monitor(u->opts, errp);
    case OPTION_MONITOR:
        return open_monitor(u, false, false, errp);
    case OPTION_QMP:
        return open_monitor(u, true, false, errp);
    case OPTION_QMP_PRETTY:
        return open_monitor(u, true, true, errp);
    default:
        return true;
    }
}

static bool apply_drive(const OptionUse *u, Error **errp)
{
    bool help = false;
    Drive *drive = drive_new_parsed(u->arg, u->opts, DRIVE_IDE, &help, errp);

    if (help) {
        g_autoptr(GString) out = g_string_new(NULL);
        block_formats_help(out);
        fputs(out->str, stdout);
        exit(0);
    }
    if (drive && drive->interface != DRIVE_NONE && drive->interface != DRIVE_VIRTIO) {
        static const char *const names[DRIVE_INTERFACES] = {"none", "ide", "scsi", "floppy", "pflash", "mtd", "sd", "virtio", "xen"};
        error_setg(errp, "machine type does not support if=%s,bus=%u,unit=%u", names[drive->interface], drive->bus,
                   drive->unit);
        return false;
    }
    return drive != NULL;
}

/* Each -drive if=virtio brings its device. */
static void add_virtio_drives(void)
{
    for (Drive *d = drive_next(NULL); d; d = drive_next(d)) {
        if (d->interface == DRIVE_VIRTIO) {
            Error *err = NULL;
            json_t *options = json_pack("{s:s,s:s}", "driver", "virtio-blk-pci", "drive", d->id);
            g_autofree char *location = g_strdup_printf("-drive %s", d->params);
            error_location_push(location);
            require(device_add(options, true, &err) != NULL, &err);
            error_location_pop();
            json_decref(options);
        }
    }
}

static bool apply_blockdev(const OptionUse *u, Error **errp)
{
    return u->id != OPTION_BLOCKDEV || blockdev_add_option(u->arg, errp);
}

static bool apply_drives(const OptionUse *u, Error **errp)
{
    switch (u->id) {
    case OPTION_DRIVE:
        return apply_drive(u, errp);
    case OPTION_DISK:
        return refuse_disk(errp);
    default:
        return true;
    }
}

static bool apply_device(const OptionUse *u, Error **errp)
{
    if (u->id != OPTION_DEVICE) {
        return true;
    }
    if (u->json) {
        return device_add(u->json, false, errp);
    }
    g_autoptr(json_t) options = opts_to_json(u->opts);
    return device_add(options, true, errp);
}

/* -device help answers before a machine or a disk is asked for. */
static bool apply_device_help(const OptionUse *u, Error **errp)
{
    bool help = false;

    if (u->id != OPTION_DEVICE || !u->help) {
        return true;
    }
    bool ok = device_add_option(u->arg, &help, errp);
    exit_after_help(ok && help);
    return ok;
}

static void apply_all(const OptionUse *uses, ApplyOption *fn)
{
    for (const OptionUse *u = uses; u->id != OPTIONS; u++) {
        Error *err = NULL;

        error_location_push(u->location);
        require(fn(u, &err), &err);
        error_location_pop();
    }
}

/* Those that may need what comes in between: a memory backend opens files, a monitor talks over a character device. */
static bool is_late(const json_t *options)
{
    const char *type = json_string_value(json_object_get(options, "qom-type"));

    return g_str_has_prefix(type, "memory-backend-") || g_str_has_prefix(type, "monitor-");
}

static void create_objects(Settings *s, bool late)
{
    for (guint i = 0; i < s->objects->len; i++) {
        json_t *options = g_ptr_array_index(s->objects, i);
        Error *err = NULL;

        if (is_late(options) == late) {
            require(user_creatable_add(options, &err), &err);
        }
    }
}

/* --- qtest --- */

static void qtest_write(void *opaque, const char *buf, size_t len)
{
    chardev_write(opaque, buf, len);
}

static size_t qtest_read(void *opaque, const uint8_t *buf, size_t len)
{
    qtest_feed(opaque, (const char *)buf, len);
    return len;
}

static void qtest_event(void *opaque, ChardevEvent event)
{
    (event == CHARDEV_OPENED ? qtest_opened : qtest_closed)(opaque);
}

static const ChardevFrontend qtest_frontend = {.read = qtest_read, .event = qtest_event};

static bool qtest_start(const Settings *s, const char *arg, Error **errp)
{
    g_autoptr(Opts) parsed = chardev_parse_short(arg, errp);
    Chardev *c = parsed ? chardev_new_parsed_short("qtest", parsed, errp) : NULL;

    if (!c) {
        return false;
    }
    QtestOptions options = {
        .write = qtest_write, .opaque = c, .log = s->qtest_log, .virtual_clock = s->virtual_clock};
    qtest_server = qtest_server_new(&options, errp);
    return qtest_server && chardev_set_frontend(c, &qtest_frontend, qtest_server, errp);
}

/* --- Start and end --- */

static void register_everything(void)
{
    object_register_types();
    guest_register_types();
    virtio_blk_register_types();
    monitor_register_types();
    block_drivers_register();
}

static void init_monitors(const Settings *s)
{
    MonitorConfig config = {
        .qmp_commands = qmp_commands,
        .hmp_commands = hmp_command_tables,
        .virtual_clock = s->virtual_clock,
        .quitting = vm_shutdown_requested,
    };

    monitor_init(&config);
}

static void start_main_loop(void)
{
    AioContextConfig cfg = {.name = "main", .uring_flags = AIO_URING_AUTO, .is_main = true};
    Error *err = NULL;
    AioContext *ctx = aio_context_new(&cfg, &err);

    require(ctx != NULL, &err);
    aio_context_set_main(ctx);
    signals_setup();
}

/* An I/O error with the policy "stop" stops the machine; "cont" forgets it. */
static void stop_on_error(void)
{
    vm_stop(VM_IO_ERROR);
}

static void on_vm_state(void *opaque, bool running, VmState state)
{
    for (BlockBackend *blk = blk_next(NULL); running && blk; blk = blk_next(blk)) {
        blk_iostatus_reset(blk);
    }
}

static void connect_block_to_machine(void)
{
    static VmStateListener listener = {.fn = on_vm_state};

    blk_set_vmstop_hook(stop_on_error);
    vm_add_state_listener(&listener);
}

static void start_qtest(const Settings *s)
{
    Error *err = NULL;

    if (s->qtest_use && !qtest_start(s, s->qtest_use->arg, &err)) {
        report_unless_reference(err, s->qtest_use->arg);
        error_report("Failed to initialize device for qtest: \"%s\"", s->qtest_use->arg);
        exit(1);
    }
}

/* Without -nodefaults, -nographic means a monitor on the terminal. */
static void open_default_monitor(const Settings *s)
{
    static OptionUse stdio = {.id = OPTION_MONITOR};
    Error *err = NULL;

    if (s->nographic && !s->nodefaults && !s->has_monitor && !s->has_serial && !s->daemonize) {
        stdio.opts = chardev_parse_short("stdio", &error_abort);
        require(open_monitor_chardev(&stdio, &err) && open_monitor(&stdio, false, false, &err), &err);
        opts_free(stdio.opts);
    }
}

/* The order decides which of several mistakes a person is told about first; it is QEMU's. */
static void start(Settings *s, OptionUse *uses)
{
    Error *err = NULL;

    settings_apply(s, uses);
    if (s->daemonize) {
        require(daemon_start(&err), &err);
        chardev_forbid_stdio();
    }
    start_main_loop();
    require(!s->pidfile || pidfile_create(s->pidfile, &err), &err);
    apply_all(uses, apply_device_help);
    require(machine_select(&err), &err);
    settings_apply_vga(uses);
    init_monitors(s);
    create_objects(s, false);
    apply_all(uses, apply_chardev);
    apply_all(uses, apply_blockdev);
    apply_all(uses, apply_drives);
    connect_block_to_machine();
    apply_all(uses, apply_smp);
    require(machine_configure(&err), &err);
    device_globals_check();
    create_objects(s, true);
    start_qtest(s);
    apply_all(uses, apply_monitor);
    open_default_monitor(s);
    apply_all(uses, apply_port);
    settings_check_cpu(uses);
    require(machine_create(&err), &err);
    apply_all(uses, apply_device);
    add_virtio_drives();
    machine_ready();
    vm_set_initial(s->stopped);
    daemon_ready();
}

static void finish(Settings *s)
{
    int pid, signum = vm_shutdown_signal_info(&pid);

    if (signum && !qtest_client_connected()) {
        g_autofree char *path = g_strdup_printf("/proc/%d/comm", pid);
        g_autofree char *comm = NULL;
        g_file_get_contents(path, &comm, NULL, NULL);
        error_report("terminating on signal %d from pid %d (%s)", signum, pid,
                     comm ? g_strchomp(comm) : "<unknown process>");
    }
    machine_destroy();
    drive_free_all();
    block_close_all();
    qtest_server_free(qtest_server);
    monitor_cleanup();
    chardev_cleanup();
    object_cleanup();
    daemon_cleanup();
    g_ptr_array_free(s->objects, TRUE);
    g_free(s->name);
    AioContext *ctx = aio_context_main();
    aio_context_shutdown(ctx);
    aio_context_unref(ctx);
}

static Settings settings;
static OptionUse *command_line;

/* Or the first files that are opened, disk images among them, would become what messages are written to. */
static bool open_standard_files(void)
{
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
            return false;
        }
    }
    return true;
}

bool system_start(int argc, char **argv)
{
    if (!open_standard_files()) {
        return false;
    }
    error_set_progname(argv[0]);
    command_line = options_parse(argc, argv);
    if (!command_line) {
        return false;
    }
    settings.objects = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    register_everything();
    chardev_hold_input(true);
    start(&settings, command_line);
    chardev_hold_input(false);
    return true;
}

void system_finish(void)
{
    chardev_hold_input(true);
    finish(&settings);
    options_free(command_line);
}
