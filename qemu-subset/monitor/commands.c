/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP commands about the monitor itself and the program: version, commands, HMP. */
#include "monitor/private.h"

#include "qapi/qapi-commands-control.h"
#include "qapi/qapi-commands-introspect.h"
#include "qapi/qapi-commands-misc.h"
#include "qapi/qapi-introspect.h"

VersionInfo *qmp_query_version(Error **errp)
{
    const VersionTriple compatible = {
        .major = QEMU_VERSION_MAJOR, .minor = QEMU_VERSION_MINOR, .micro = QEMU_VERSION_MICRO};
    VersionInfo *answer = g_new0(VersionInfo, 1);

    answer->package = g_strdup("");
    answer->qemu = g_memdup2(&compatible, sizeof(compatible));
    return answer;
}

CommandInfoList *qmp_query_commands(Error **errp)
{
    CommandInfoList *list = NULL;

    for (const QmpCommand *c = monitor_config.qmp_commands; c->name; c++) {
        CommandInfo *info = g_new0(CommandInfo, 1);
        info->name = g_strdup(c->name);
        QAPI_LIST_PREPEND(list, info);
    }
    return list;
}

/* The schema says "gen": false: the entries are text already, and become JSON when somebody asks. */
void qmp_query_qmp_schema(json_t *args, json_t **ret, Error **errp)
{
    json_t *list = json_array();

    for (const char *const *e = qapi_schema_entries; *e; e++) {
        json_array_append_new(list, qjson_parse(*e, &error_abort));
    }
    *ret = list;
}

char *qmp_human_monitor_command(const char *command_line, bool has_cpu_index, int64_t cpu_index, Error **errp)
{
    g_autoptr(GString) out = g_string_new(NULL);

    hmp_run_line(command_line, out);
    g_string_replace(out, "\n", "\r\n", 0);
    return g_strdup(out->str);
}

/* --- HMP --- */

static void hmp_info_version(json_t *args, GString *out)
{
    g_string_append_printf(out, "%d.%d.%d\n", QEMU_VERSION_MAJOR, QEMU_VERSION_MINOR, QEMU_VERSION_MICRO);
}

const HmpCommand monitor_hmp_commands[] = {
    {"info version", "", "", "show the version of QEMU", hmp_info_version},
    {0},
};
