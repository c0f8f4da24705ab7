/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of qemu-system-x86_64: the table of options and the walk over argv. */
#include "tools/options.h"

#include "monitor/monitor.h"
#include "tools/version.h"

#include <stdio.h>
#include <string.h>

typedef struct OptionDesc {
    const char *names; /* without the dash, aliases after '|' */
    OptionId id;
    const char *params; /* NULL: takes no argument */
    const char *help;
} OptionDesc;

static const OptionDesc table[] = {
    {"help|h", OPTION_HELP, NULL, "display this help and exit"},
    {"version", OPTION_VERSION, NULL, "display version information and exit"},
    {"machine|M", OPTION_MACHINE, "[type=]name[,prop[=value][,...]]", "select the machine ('-machine help' lists them)"},
    {"accel", OPTION_ACCEL, "name", "select the accelerator: qtest"},
    {"cpu", OPTION_CPU, "model", "accepted for compatibility: no code of a guest is executed"},
    {"smp", OPTION_SMP, "[cpus=]n", "set the number of CPUs, which is the default number of queues"},
    {"m", OPTION_MEMORY, "[size=]megs", "set the size of guest RAM (default 128 MiB)"},
    {"name", OPTION_NAME, "string", "set the name of the guest"},
    {"uuid", OPTION_UUID, "uuid", "set the UUID of the machine"},
    {"global", OPTION_GLOBAL, "driver.property=value", "set a default for a property of a device type"},
    {"boot", OPTION_BOOT, "options", "accepted for compatibility: nothing boots"},
    {"rtc", OPTION_RTC, "options", "accepted for compatibility: there is no real-time clock"},
    {"S", OPTION_STOPPED, NULL, "start stopped (use 'cont' to start)"},
    {"no-reboot", OPTION_NO_REBOOT, NULL, "accepted for compatibility: no guest reboots"},
    {"no-shutdown", OPTION_NO_SHUTDOWN, NULL, "accepted for compatibility: no guest shuts down"},
    {"nodefaults", OPTION_NODEFAULTS, NULL, "do not create default devices"},
    {"no-user-config", OPTION_NO_USER_CONFIG, NULL, "accepted for compatibility: there are no configuration files"},
    {"object", OPTION_OBJECT, "typename[,prop=value,...]", "create an object ('-object help' lists types)"},
    {"blockdev", OPTION_BLOCKDEV, "[driver=]driver[,node-name=N][,...]", "configure a block node"},
    {"drive", OPTION_DRIVE, "[file=file][,if=none][,id=id][,...]", "define a drive"},
    {"device", OPTION_DEVICE, "driver[,prop[=value][,...]]", "add a device ('-device help' lists them)"},
    {"chardev", OPTION_CHARDEV, "backend,id=id[,...]", "create a character device: socket, stdio, file, pty, null"},
    {"mon", OPTION_MON, "[chardev=]name[,mode=readline|control][,pretty=on|off]", "attach a monitor to a character device"},
    {"monitor", OPTION_MONITOR, "dev", "human monitor on a character device"},
    {"qmp", OPTION_QMP, "dev", "QMP monitor on a character device"},
    {"qmp-pretty", OPTION_QMP_PRETTY, "dev", "like -qmp, with replies over several lines"},
    {"qtest", OPTION_QTEST, "dev", "qtest server on a character device"},
    {"qtest-log", OPTION_QTEST_LOG, "file", "log of the qtest server (default stderr, 'none' for no log)"},
    {"serial", OPTION_SERIAL, "dev", "open a character device for a serial port; no machine here has one"},
    {"parallel", OPTION_PARALLEL, "none", "accepted for compatibility"},
    {"display", OPTION_DISPLAY, "none", "there is no display"},
    {"vga", OPTION_VGA, "none", "there is no graphics card"},
    {"nic", OPTION_NIC, "none", "there is no network"},
    {"audio", OPTION_AUDIO, "[driver=]none[,...]", "there is no sound"},
    {"nographic", OPTION_NOGRAPHIC, NULL, "no display; human monitor on stdio unless -monitor says otherwise"},
    {"daemonize", OPTION_DAEMONIZE, NULL, "go to the background when everything is set up"},
    {"pidfile", OPTION_PIDFILE, "file", "write the process id to a file"},
    {"msg", OPTION_MSG, "[timestamp=on|off][,guest-name=on|off]", "set the format of messages"},
    {"run-with", OPTION_RUN_WITH, "[exit-with-parent=on|off]", "end when the parent process ends"},
};

/* QEMU has these, too, and a script that passes one should learn that it is not served. */
static const char *const absent[] = {
    "acpitable", "action", "add-fd", "append", "async-teardown", "audiodev", "bios", "cdrom", "chroot",
    "compat", "D", "d", "debugcon", "dfilter", "dtb", "dump-vmstate", "echr", "enable-kvm", "enable-sync-profile",
    "fda", "fdb", "fsdev", "fw_cfg", "full-screen", "g", "gdb", "hda", "hdb", "hdc", "hdd", "icount", "incoming",
    "initrd", "iscsi", "jitdump", "k", "kernel", "L", "loadvm", "mem-path", "mem-prealloc", "mtdblock", "net",
    "netdev", "numa", "only-migratable", "option-rom", "overcommit", "perfmap", "pflash", "plugin",
    "preconfig", "prom-env", "readconfig", "runas", "s", "sandbox", "sd", "seed", "semihosting",
    "semihosting-config", "set", "shim", "singlestep", "smbios", "snapshot", "spice", "tpmdev",
    "trace", "usb", "usbdevice", "virtfs", "vmcoreinfo", "vnc", "watchdog-action", "xen-domid",
};

static bool is_name_of(const OptionDesc *d, const char *name)
{
    g_auto(GStrv) names = g_strsplit(d->names, "|", -1);

    return g_strv_contains((const char *const *)names, name);
}

static const OptionDesc *find_option(const char *word)
{
    const char *name = word + 1 + (word[1] == '-');

    for (unsigned int i = 0; i < G_N_ELEMENTS(table); i++) {
        if (is_name_of(&table[i], name)) {
            return &table[i];
        }
    }
    for (unsigned int i = 0; i < G_N_ELEMENTS(absent); i++) {
        if (!strcmp(absent[i], name)) {
            error_report("%s: this option of QEMU is not available in qemu-subset", word);
            return NULL;
        }
    }
    error_report("%s: invalid option", word);
    return NULL;
}

OptionUse *options_parse(int argc, char **argv)
{
    OptionUse *uses = g_new0(OptionUse, argc + 1);
    OptionUse *u = uses;

    for (int i = 1; i < argc; i++, u++) {
        const char *word = argv[i];
        u->id = OPTIONS;
        if (word[0] != '-' || !word[1]) {
            u->id = OPTION_DISK;
            u->arg = word;
            u->location = g_strdup(word);
            continue;
        }
        const OptionDesc *d = find_option(word);
        if (d && d->params && i + 1 == argc) {
            error_report("%s: requires an argument", word);
            d = NULL;
        }
        if (!d) {
            options_free(uses);
            return NULL;
        }
        u->id = d->id;
        u->arg = d->params ? argv[++i] : NULL;
        u->location = u->arg ? g_strdup_printf("%s %s", word, u->arg) : g_strdup(word);
    }
    u->id = OPTIONS;
    return uses;
}

void options_free(OptionUse *uses)
{
    for (OptionUse *u = uses; u && u->id != OPTIONS; u++) {
        g_free(u->location);
        opts_free(u->opts);
        json_decref(u->json);
    }
    g_free(uses);
}

void options_print_version(void)
{
    printf("QEMU emulator version %d.%d.%d (qemu-subset " PROJECT_VERSION ")\n"
           "Copyright (c) 2026 the qemu-subset authors; GPL-2.0-or-later, without any warranty\n",
           QEMU_VERSION_MAJOR, QEMU_VERSION_MINOR, QEMU_VERSION_MICRO);
}

void options_print_help(void)
{
    options_print_version();
    printf("usage: %s [options] [disk_image]\n\n", error_get_progname());
    for (unsigned int i = 0; i < G_N_ELEMENTS(table); i++) {
        g_auto(GStrv) names = g_strsplit(table[i].names, "|", -1);
        g_autofree char *all = g_strjoinv(" or -", names);
        g_autofree char *head =
            g_strdup_printf("-%s%s%s", all, table[i].params ? " " : "", table[i].params ? table[i].params : "");

        printf(strlen(head) < 24 ? "%-24s%s\n" : "%s\n                        %s\n", head, table[i].help);
    }
    printf("\nOptions of QEMU that are not listed here are refused by name.\n");
}
