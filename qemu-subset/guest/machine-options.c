/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU topology of -smp, and the help of -machine. */
#include "guest/machine-private.h"

#include "qapi/opts.h"

#include <string.h>

static bool parse_number(const char *key, json_t *value, unsigned int *out, Error **errp)
{
    const char *text = json_string_value(value);
    uint64_t n;

    if (!text) {
        error_setg(errp, "Invalid parameter type for '%s', expected: integer", key);
        return false;
    }
    if (!qapi_parse_uint64(text, &n)) {
        error_setg(errp, "Parameter 'smp.%s' expects integer", key);
        return false;
    }
    if (n == 0 || n > UINT16_MAX) {
        error_setg(errp, n ? "Invalid CPU topology: parameter '%s' is too large"
                           : "Invalid CPU topology: CPU topology parameters must be greater than zero%.0s",
                   key);
        return false;
    }
    *out = (unsigned int)n;
    return true;
}

bool machine_parse_topology(json_t *options, MachineTopology *t, Error **errp)
{
    MachineTopology given = {0};
    const struct {
        const char *key;
        unsigned int *value;
    } keys[] = {
        {"cpus", &given.cpus},   {"maxcpus", &given.max_cpus}, {"sockets", &given.sockets},
        {"cores", &given.cores}, {"threads", &given.threads},
    };
    const char *key;
    json_t *value;

    json_object_foreach(options, key, value)
    {
        unsigned int i = 0;
        while (i < G_N_ELEMENTS(keys) && strcmp(keys[i].key, key)) {
            i++;
        }
        if (i == G_N_ELEMENTS(keys)) {
            error_setg(errp, "Parameter 'smp.%s' is unexpected", key);
            return false;
        }
        if (!parse_number(key, value, keys[i].value, errp)) {
            return false;
        }
    }
    /* What is not given follows from the rest: one socket, one thread a core, and as many cores as that leaves. */
    uint64_t total = given.max_cpus ? given.max_cpus : given.cpus;
    *t = given;
    t->threads = given.threads ? given.threads : 1;
    t->sockets = given.sockets ? given.sockets : 1;
    t->cores = given.cores ? given.cores : 1;
    if (!given.cores && total) {
        t->cores = (unsigned int)MAX(1, total / ((uint64_t)t->sockets * t->threads));
    } else if (!given.sockets && total) {
        t->sockets = (unsigned int)MAX(1, total / ((uint64_t)t->cores * t->threads));
    }
    uint64_t product = (uint64_t)t->sockets * t->cores * t->threads;
    uint64_t max_cpus = total ? total : product;
    if (product != max_cpus) {
        error_setg(errp,
                   "Invalid CPU topology: product of the hierarchy must match maxcpus: sockets (%u) * dies (1) * "
                   "modules (1) * cores (%u) * threads (%u) != maxcpus (%u)",
                   t->sockets, t->cores, t->threads, (unsigned int)max_cpus);
        return false;
    }
    t->max_cpus = (unsigned int)MIN(max_cpus, UINT32_MAX);
    t->cpus = given.cpus ? given.cpus : t->max_cpus;
    if (t->cpus > t->max_cpus) {
        error_setg(errp, "Invalid CPU topology: maxcpus must be equal to or greater than smp: sockets (%u) * "
                   "dies (1) * modules (1) * cores (%u) * threads (%u) == maxcpus (%u) < smp_cpus (%u)",
                   t->sockets, t->cores, t->threads, t->max_cpus, t->cpus);
        return false;
    }
    return true;
}

bool machine_check_topology(const MachineClass *mc, const MachineTopology *t, Error **errp)
{
    if (t->max_cpus > mc->max_cpus) {
        error_setg(errp, "Invalid SMP CPUs %u. The max CPUs supported by machine '%s' is %u", t->max_cpus, mc->name,
                   mc->max_cpus);
        return false;
    }
    return true;
}

static void print_list(void)
{
    printf("Supported machines are:\n");
    for (int i = 0; machine_classes[i]; i++) {
        const MachineClass *mc = machine_classes[i];
        if (mc->alias) {
            printf("%-20s %s (alias of %s)\n", mc->alias, mc->desc, mc->name);
        }
        printf("%-20s %s%s\n", mc->name, mc->desc, mc->is_default ? " (default)" : "");
    }
}

void machine_print_help(const MachineClass *mc)
{
    if (!mc) {
        print_list();
        return;
    }
    g_autofree char *name = g_strdup_printf("%s-machine", mc->name);
    printf("%s options:\n", name);
    for (const ObjectType *t = object_find_type(name); t; t = object_type_parent(t)) {
        for (const ObjectProperty *p = t->properties; p && p->name; p++) {
            g_autofree char *head = g_strdup_printf("%s=<%s>", p->name,
                                                    p->type ? p->type : p->kind == PROP_BOOL ? "bool" : "string");
            printf("  %-22s - %s\n", head, p->description);
        }
    }
}
