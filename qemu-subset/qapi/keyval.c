/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Dotted keys to a tree, then the parts of the tree whose keys are numbers to lists. */
#include "qapi/keyval.h"

#include <string.h>

#define MAX_KEY 127

/* The length of a name or an index at @s; 0 if there is neither. */
static size_t fragment_length(const char *s, size_t max, bool first)
{
    size_t len = 0;

    if (!first && max && g_ascii_isdigit(*s)) {
        while (len < max && g_ascii_isdigit(s[len])) {
            len++;
        }
        return len;
    }
    if (!max || !(g_ascii_isalpha(*s) || (s[0] == '_' && max > 1 && s[1] == '_'))) {
        return 0;
    }
    while (len < max && (g_ascii_isalnum(s[len]) || s[len] == '-' || s[len] == '_')) {
        len++;
    }
    return len;
}

static bool inconsistent(const char *key, size_t len, Error **errp)
{
    error_setg(errp, "Parameters '%.*s.*' used inconsistently", (int)len, key);
    return false;
}

/* Store @value under the dotted @key. */
static bool store(json_t *root, const char *key, size_t key_len, json_t *value, Error **errp)
{
    json_t *obj = root;
    size_t pos = 0;

    while (true) {
        size_t len = key_len > MAX_KEY ? 0 : fragment_length(key + pos, key_len - pos, pos == 0);

        if (!len || (pos + len < key_len && key[pos + len] != '.')) {
            error_setg(errp, "Invalid parameter '%.*s'", (int)key_len, key);
            return false;
        }
        g_autofree char *name = g_strndup(key + pos, len);
        json_t *old = json_object_get(obj, name);
        pos += len;
        if (pos == key_len) {
            if (json_is_object(old)) {
                return inconsistent(key, pos, errp);
            }
            json_object_set_nocheck(obj, name, value);
            return true;
        }
        if (old && !json_is_object(old)) {
            return inconsistent(key, pos, errp);
        }
        if (!old) {
            old = json_object();
            json_object_set_new_nocheck(obj, name, old);
        }
        obj = old;
        pos++;
    }
}

/* The value that starts at @s, up to a single comma; returns what follows the comma. */
static const char *take_value(const char *s, char **value)
{
    GString *out = g_string_new(NULL);

    for (; *s; s++) {
        if (*s == ',') {
            s++;
            if (*s != ',') {
                break;
            }
        }
        g_string_append_c(out, *s);
    }
    *value = g_string_free(out, FALSE);
    return s;
}

static bool is_help(const char *s, size_t len)
{
    return (len == 1 && *s == '?') || (len == 4 && !strncmp(s, "help", 4));
}

/* One element at @s; returns the next, NULL after an error. */
static const char *take_element(json_t *root, const char *s, const char *implied_key, bool *help, Error **errp)
{
    size_t len = strcspn(s, "=,");
    const char *key = s, *rest;
    g_autofree char *value = NULL;

    if (s[len] != '=' && is_help(s, len)) {
        if (!help) {
            error_setg(errp, "Help is not available for this option");
            return NULL;
        }
        *help = true;
        return s[len] ? s + len + 1 : s + len;
    }
    if (s[len] == '=') {
        rest = take_value(s + len + 1, &value);
    } else if (implied_key && len) {
        value = g_strndup(s, len);
        rest = s + len + (s[len] == ',');
        key = implied_key;
        len = strlen(implied_key);
    } else if (fragment_length(s, len, true) != len || !len) {
        error_setg(errp, "Invalid parameter '%.*s'", (int)len, s);
        return NULL;
    } else {
        error_setg(errp, "Expected '=' after parameter '%.*s'", (int)len, s);
        return NULL;
    }
    g_autoptr(json_t) leaf = json_string_nocheck(value);
    return store(root, key, len, leaf, errp) ? rest : NULL;
}

static json_t *listify(json_t *value, const char *prefix, Error **errp);

/* @obj's members moved to an array; @prefix is its path with a dot. */
static json_t *to_array(json_t *obj, const char *prefix, Error **errp)
{
    json_t *array = json_array();

    for (size_t i = 0; i < json_object_size(obj); i++) {
        char index[24];

        g_snprintf(index, sizeof(index), "%zu", i);
        json_t *element = json_object_get(obj, index);
        if (!element) {
            error_setg(errp, "Parameter '%s%s' missing", prefix, index);
            json_decref(array);
            return NULL;
        }
        json_array_append(array, element);
    }
    return array;
}

/* Returns a new value in place of @value (borrowed), NULL after an error. */
static json_t *listify(json_t *value, const char *prefix, Error **errp)
{
    size_t n_indexes = 0;
    const char *key;
    json_t *member;

    if (!json_is_object(value)) {
        return json_incref(value);
    }
    g_autoptr(json_t) obj = json_object();
    json_object_foreach(value, key, member) {
        g_autofree char *path = g_strdup_printf("%s%s.", prefix, key);
        json_t *converted = listify(member, path, errp);

        if (!converted) {
            return NULL;
        }
        n_indexes += g_ascii_isdigit(*key);
        json_object_set_new_nocheck(obj, key, converted);
    }
    if (!n_indexes) {
        return g_steal_pointer(&obj);
    }
    if (n_indexes != json_object_size(obj)) {
        inconsistent(prefix, strlen(prefix) - 1, errp);
        return NULL;
    }
    return to_array(obj, prefix, errp);
}

json_t *keyval_parse(const char *params, const char *implied_key, bool *help, Error **errp)
{
    g_autoptr(json_t) root = json_object();

    if (help) {
        *help = false;
    }
    for (const char *s = params; *s;) {
        s = take_element(root, s, implied_key, help, errp);
        if (!s) {
            return NULL;
        }
        implied_key = NULL;
    }
    return listify(root, "", errp);
}
