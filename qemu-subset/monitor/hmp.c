/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP: finding a command in the rooms' tables, reading its arguments, help, completion. */
#include "monitor/private.h"

#include "qapi/opts.h"

#include <string.h>

static bool name_matches(const char *names, const char *word, size_t len)
{
    while (*names) {
        size_t n = strcspn(names, "|");
        if (n == len && !strncmp(names, word, len)) {
            return true;
        }
        names += n + (names[n] == '|');
    }
    return false;
}

typedef bool CommandIter(const HmpCommand *cmd, void *opaque);

static void for_each_command(CommandIter *fn, void *opaque)
{
    for (const HmpCommand *const *t = monitor_config.hmp_commands; t && *t; t++) {
        for (const HmpCommand *cmd = *t; cmd->name; cmd++) {
            if (!fn(cmd, opaque)) {
                return;
            }
        }
    }
}

static const char *skip_space(const char *s)
{
    while (g_ascii_isspace(*s)) {
        s++;
    }
    return s;
}

static size_t word_len(const char *s)
{
    size_t n = strcspn(s, " \t\r\n/");

    return n || *s != '/' ? n : 1;
}

typedef struct Lookup {
    const char *word;
    size_t len;
    bool info;
    const HmpCommand *found;
} Lookup;

#define INFO_PREFIX "info "

static bool lookup_one(const HmpCommand *cmd, void *opaque)
{
    Lookup *l = opaque;
    bool info = g_str_has_prefix(cmd->name, INFO_PREFIX);

    if (info == l->info && name_matches(cmd->name + (info ? strlen(INFO_PREFIX) : 0), l->word, l->len)) {
        l->found = cmd;
    }
    return !l->found;
}

static const HmpCommand *lookup(const char *word, size_t len, bool info)
{
    Lookup l = {word, len, info, NULL};

    for_each_command(lookup_one, &l);
    return l.found;
}

const HmpCommand *hmp_find(const char *line, const char **rest)
{
    const char *word = skip_space(line);
    size_t len = word_len(word);
    const HmpCommand *cmd = lookup(word, len, false);

    *rest = word + len;
    if (len == 4 && !strncmp(word, "info", 4)) {
        const char *sub = skip_space(*rest);
        size_t sub_len = word_len(sub);
        if (sub_len) {
            cmd = lookup(sub, sub_len, true);
            *rest = sub + sub_len;
        }
    }
    return cmd;
}

/* --- Arguments --- */

/* A word, in quotes if it begins with one. NULL at the end of the line or for an open quote. */
static char *take_word(const char **p)
{
    const char *s = skip_space(*p);
    GString *word;

    if (!*s) {
        return NULL;
    }
    word = g_string_new(NULL);
    if (*s != '"') {
        size_t n = strcspn(s, " \t\r\n");
        g_string_append_len(word, s, (gssize)n);
        *p = s + n;
        return g_string_free(word, FALSE);
    }
    for (s++; *s && *s != '"'; s++) {
        if (*s == '\\' && s[1]) {
            s++;
            g_string_append_c(word, *s == 'n' ? '\n' : *s == 'r' ? '\r' : *s);
        } else {
            g_string_append_c(word, *s);
        }
    }
    if (!*s) {
        g_string_free(word, TRUE);
        return NULL;
    }
    *p = s + 1;
    return g_string_free(word, FALSE);
}

static bool try_help(const HmpCommand *cmd, GString *out)
{
    g_string_append_printf(out, "Try \"help %.*s\" for more information\n", (int)strcspn(cmd->name, "|"), cmd->name);
    return false;
}

static bool bad_argument(const HmpCommand *cmd, GString *out, const char *what)
{
    bool info = g_str_has_prefix(cmd->name, INFO_PREFIX);

    g_string_append_printf(out, "%s: %s\n", cmd->name + (info ? strlen(INFO_PREFIX) : 0), what);
    return try_help(cmd, out);
}

/* "-x" flags come before the argument that they stand in front of, in the order of the table. */
static bool take_flag(const HmpCommand *cmd, const char **p, char letter, const char *name, json_t *args, GString *out)
{
    const char *s = skip_space(*p);
    const char known[] = {':', '-', s[0] == '-' ? s[1] : '\0', '\0'};

    if (s[0] != '-' || !s[1] || g_ascii_isspace(s[1])) {
        return true;
    }
    if (s[1] == letter && (!s[2] || g_ascii_isspace(s[2]))) {
        json_object_set_new(args, name, json_true());
        *p = s + 2;
        return true;
    }
    if (!strstr(cmd->args, known)) {
        g_autofree char *what = g_strdup_printf("unsupported option -%c", s[1]);

        return bad_argument(cmd, out, what);
    }
    return true;
}

static bool take_typed(const HmpCommand *cmd, const char *name, char type, char *word, json_t *args,
                       GString *out)
{
    int64_t i;
    uint64_t size;
    bool flag;

    switch (type) {
    case 'i':
        if (!qapi_parse_int64(word, &i)) {
            g_string_append_printf(out, "invalid char '%c' in expression\n", *word);
            return bad_argument(cmd, out, "integer expected");
        }
        json_object_set_new(args, name, json_integer(i));
        return true;
    case 'o':
        if (qapi_parse_size(word, 'M', &size) != QAPI_SIZE_OK || size > INT64_MAX) {
            g_string_append(out, "invalid size\n");
            return try_help(cmd, out);
        }
        json_object_set_new(args, name, json_integer((json_int_t)size));
        return true;
    case 'b':
        flag = !strcmp(word, "on");
        if (!flag && strcmp(word, "off")) {
            return bad_argument(cmd, out, "Expected 'on' or 'off'");
        }
        json_object_set_new(args, name, json_boolean(flag));
        return true;
    default:
        break;
    }
    json_t *text = json_string(word);
    if (!text) {
        return bad_argument(cmd, out, "string expected");
    }
    json_object_set_new(args, name, text);
    return true;
}

/* Like -device: complaints about the syntax go to the standard error stream, even those about a client's command. */
static bool take_options(const char *text, const char *name, json_t *args)
{
    Error *err = NULL;
    bool help = false;
    g_autoptr(Opts) opts = opts_parse(text, "driver", NULL, &help, &err);

    if (!opts) {
        error_report_err(err);
        return false;
    }
    json_t *options = opts_to_json(opts);
    if (help) {
        json_object_set_new(options, "help", json_true());
    }
    json_object_set_new(args, name, options);
    return true;
}

static bool parse_one(const HmpCommand *cmd, const char *spec, const char **p, json_t *args, GString *out)
{
    const char *colon = strchr(spec, ':');
    g_autofree char *name = g_strndup(spec, (gsize)(colon - spec));
    char type = colon[1];
    bool optional = strchr(colon, '?') != NULL;
    g_autofree char *word = NULL;

    if (type == '-') {
        return take_flag(cmd, p, colon[2], name, args, out);
    }
    if (type == 'S') {
        const char *s = skip_space(*p);
        word = g_strchomp(g_strdup(s));
        *p = s + strlen(s);
        if (!*word) {
            g_clear_pointer(&word, g_free);
        }
    } else {
        word = take_word(p);
    }
    if (type == 'O') {
        return take_options(word ? word : "", name, args) || try_help(cmd, out);
    }
    if (!word && type == 'o' && !optional) {
        g_string_append(out, "invalid size\n");
        return try_help(cmd, out);
    }
    if (!word) {
        return optional || bad_argument(cmd, out, type == 'i'   ? "integer expected"
                                                  : type == 'B' ? "block device name expected"
                                                                : "string expected");
    }
    return take_typed(cmd, name, type, word, args, out);
}

static json_t *parse_args(const HmpCommand *cmd, const char *p, GString *out)
{
    g_auto(GStrv) specs = g_strsplit(cmd->args ? cmd->args : "", ",", -1);
    g_autoptr(json_t) args = json_object();

    for (char **spec = specs; *spec && **spec; spec++) {
        if (!parse_one(cmd, *spec, &p, args, out)) {
            return NULL;
        }
    }
    if (*skip_space(p)) {
        bad_argument(cmd, out, "extraneous characters at the end of line");
        return NULL;
    }
    return g_steal_pointer(&args);
}

/* --- Help --- */

typedef struct HelpList {
    GPtrArray *lines;
    const char *word; /* NULL: all */
    bool info;
} HelpList;

static bool collect_help(const HmpCommand *cmd, void *opaque)
{
    HelpList *h = opaque;
    bool info = g_str_has_prefix(cmd->name, INFO_PREFIX);
    const char *names = cmd->name + (info ? strlen(INFO_PREFIX) : 0);

    if (info != h->info || (h->word && !name_matches(names, h->word, strlen(h->word)))) {
        return true;
    }
    g_ptr_array_add(h->lines, g_strdup_printf("%s %s -- %s\n", cmd->name, cmd->params ? cmd->params : "",
                                              cmd->help ? cmd->help : ""));
    return true;
}

static int compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_help(GString *out, const char *word, bool info)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    HelpList h = {lines, word, info};

    for_each_command(collect_help, &h);
    g_ptr_array_sort(lines, compare_lines);
    for (guint i = 0; i < lines->len; i++) {
        g_string_append(out, g_ptr_array_index(lines, i));
    }
}

static void print_help_of(GString *out, const char *word, bool info)
{
    gsize before = out->len;

    print_help(out, word, info);
    if (out->len == before) {
        g_string_append_printf(out, "unknown command: '%s%s'\n", info ? INFO_PREFIX : "", word);
    }
}

static void hmp_help(json_t *args, GString *out)
{
    const char *name = json_string_value(json_object_get(args, "name"));

    if (!name) {
        print_help(out, NULL, false);
        return;
    }
    g_auto(GStrv) words = g_strsplit_set(name, " \t", 2);
    if (strcmp(words[0], "info")) {
        print_help_of(out, words[0], false);
    } else if (words[1]) {
        print_help_of(out, g_strstrip(words[1]), true);
    } else {
        print_help(out, NULL, true);
    }
}

static void hmp_info(json_t *args, GString *out)
{
    print_help(out, NULL, true);
}

const HmpCommand hmp_help_commands[] = {
    {"help|?", "name:S?", "[cmd]", "show the help", hmp_help},
    {"info", "", "[subcommand]", "show various information about the system state", hmp_info},
    {0},
};

/* --- Running and completing --- */

/* error_report() during a command answers its caller instead of going to stderr. */
static void to_output(void *opaque, const char *text)
{
    g_string_append(opaque, text);
}

void hmp_run_line(const char *line, GString *out)
{
    const char *rest;
    const HmpCommand *cmd = hmp_find(line, &rest);
    const char *start = skip_space(line);

    if (!*start) {
        return;
    }
    if (!cmd) {
        g_autofree char *shown = g_strndup(start, (gsize)(rest - start));
        g_string_append_printf(out, "unknown command: '%s'\n", g_strchomp(shown));
        return;
    }
    g_autoptr(json_t) args = parse_args(cmd, rest, out);
    if (args) {
        error_set_sink(to_output, out);
        cmd->fn(args, out);
        error_set_sink(NULL, NULL);
    }
}

typedef struct Completion {
    const char *prefix;
    GPtrArray *names;
} Completion;

static bool complete_one(const HmpCommand *cmd, void *opaque)
{
    Completion *c = opaque;
    g_auto(GStrv) names = g_strsplit(cmd->name, "|", -1);

    for (char **n = names; *n; n++) {
        if (g_str_has_prefix(*n, c->prefix)) {
            g_ptr_array_add(c->names, g_strdup(*n));
        }
    }
    return true;
}

GPtrArray *hmp_complete(const char *prefix)
{
    Completion c = {skip_space(prefix), g_ptr_array_new_with_free_func(g_free)};

    for_each_command(complete_one, &c);
    g_ptr_array_sort(c.names, compare_lines);
    return c.names;
}
