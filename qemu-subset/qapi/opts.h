/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The older option syntax (-drive, -chardev, -m, -name, -msg ...): a flat, ordered list of key=value. */
#ifndef QAPI_OPTS_H
#define QAPI_OPTS_H

#include "qapi/keyval.h"

typedef enum OptType {
    OPT_STRING,
    OPT_BOOL,
    OPT_NUMBER,
    OPT_SIZE,
} OptType;

typedef struct OptDesc {
    const char *name;
    OptType type;
    const char *help;
} OptDesc;

typedef struct Opts Opts;

/*
 * Parse @params. A first word without "=" belongs to @implied_key unless that is NULL; any other word W becomes W=on,
 * or W=off when it reads noW, with QEMU's deprecation warning. "id=" must be a well-formed id. With @desc (ended by
 * a NULL name) an unknown key is an error and values are checked against their types; NULL accepts any key.
 * "help" or "?" sets *@help, or is a word like any other where that is NULL. Returns NULL with @errp set.
 */
Opts *opts_parse(const char *params, const char *implied_key, const OptDesc *desc, bool *help, Error **errp);
/* The same where the bare words have always been the usual way ("server,nowait"): no warning. */
Opts *opts_parse_legacy(const char *params, const char *implied_key, const OptDesc *desc, Error **errp);
Opts *opts_new(void);
void opts_free(Opts *opts);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Opts, opts_free)

/* The "id" value, NULL if there is none. */
const char *opts_id(const Opts *opts);

/* The last value given for @name, NULL if there is none; borrowed. */
const char *opts_get(const Opts *opts, const char *name);
/* The same for typed values; @def if absent, and also after an error, which sets @errp in QEMU's words. */
bool opts_get_bool(const Opts *opts, const char *name, bool def, Error **errp);
uint64_t opts_get_number(const Opts *opts, const char *name, uint64_t def, Error **errp);
/* @default_suffix as in qapi_parse_size(). */
uint64_t opts_get_size(const Opts *opts, const char *name, char default_suffix, uint64_t def, Error **errp);

/* Append @name=@value, except that the first id stays; remove all of @name. The variant with "take" gives the value to the caller and removes it. */
void opts_set(Opts *opts, const char *name, const char *value);
bool opts_del(Opts *opts, const char *name);
char *opts_take(Opts *opts, const char *name);

/* Call @fn for each setting in order until it returns false; returns what the last call did. */
typedef bool OptsIter(void *opaque, const char *name, const char *value, Error **errp);
bool opts_foreach(const Opts *opts, OptsIter *fn, void *opaque, Error **errp);

/* A flat object of strings; with repeated keys the last wins. Dotted keys stay as they are. */
json_t *opts_to_json(const Opts *opts);

/* The typed checks alone, with QEMU's words, on a value that is not in a list. */
bool opt_value_bool(const char *name, const char *text, bool *value, Error **errp);
bool opt_value_number(const char *name, const char *text, uint64_t *value, Error **errp);
bool opt_value_size(const char *name, const char *text, char default_suffix, uint64_t *value, Error **errp);
/* "Parameter 'id' expects an identifier", with the hint that says what one is. */
bool opt_check_id(const char *id, Error **errp);

#endif
