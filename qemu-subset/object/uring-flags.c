/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of x-io-uring-flags: AIO_URING_* by their names. */
#include "object/private.h"

#include "loop/aio.h"

#include <string.h>

static const struct {
    const char *name;
    unsigned int flag;
} names[] = {
    {"single-issuer", AIO_URING_SINGLE_ISSUER},
    {"coop-taskrun", AIO_URING_COOP_TASKRUN},
    {"no-sqarray", AIO_URING_NO_SQARRAY},
    {"defer-taskrun", AIO_URING_DEFER_TASKRUN},
    {"registered-ring", AIO_URING_REGISTERED_RING},
    {"registered-files", AIO_URING_REGISTERED_FILES},
    {"registered-buffers", AIO_URING_REGISTERED_BUFFERS},
    {"auto", AIO_URING_AUTO},
};

char *uring_flags_to_text(unsigned int flags)
{
    GString *list = g_string_new(flags & AIO_URING_AUTO ? "auto" : NULL);

    for (unsigned int i = 0; i < G_N_ELEMENTS(names); i++) {
        if (flags & ~AIO_URING_AUTO & names[i].flag) {
            g_string_append_printf(list, "%s%s", list->len ? ":" : "", names[i].name);
        }
    }
    return g_string_free(list->len ? list : g_string_assign(list, "none"), FALSE);
}

static bool add_name(const char *name, unsigned int *flags, Error **errp)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(names); i++) {
        if (!strcmp(name, names[i].name)) {
            *flags |= names[i].flag;
            return true;
        }
    }
    error_setg(errp, "Parameter 'x-io-uring-flags' does not accept value '%s'", name);
    error_append_hint(
        errp, "Use none, or a list of single-issuer, coop-taskrun, no-sqarray, defer-taskrun, registered-ring,\n"
              "registered-files, registered-buffers separated by ':'; auto stands for the first five as far "
              "as they suit.\n");
    return false;
}

bool uring_flags_parse(const char *text, unsigned int *flags, Error **errp)
{
    g_auto(GStrv) list = g_strsplit(text, ":", -1);
    unsigned int f = 0;

    if (!strcmp(text, "none")) {
        *flags = 0;
        return true;
    }
    if (!*text) {
        return add_name(text, &f, errp);
    }
    for (char **n = list; *n; n++) {
        if (!add_name(*n, &f, errp)) {
            return false;
        }
    }
    if ((f & AIO_URING_AUTO) && (f & ~(AIO_URING_AUTO | AIO_URING_REGISTERED))) {
        error_setg(errp, "x-io-uring-flags: auto can be joined by registered-files and registered-buffers only");
        return false;
    }
    if ((f & AIO_URING_DEFER_TASKRUN) && !(f & AIO_URING_SINGLE_ISSUER)) {
        error_setg(errp, "x-io-uring-flags: defer-taskrun needs single-issuer");
        return false;
    }
    *flags = f;
    return true;
}
