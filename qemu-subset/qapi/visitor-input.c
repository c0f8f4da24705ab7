/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The visitor that reads a type from JSON, typed or with text as leaves, and complains in QEMU's words. */
#include "qapi/keyval.h"
#include "qapi/visitor.h"

#include <inttypes.h>
#include <string.h>

#define MAX_RANGE 65536

typedef struct Frame {
    char *name;       /* in the frame below; NULL for an element and for an unnamed root */
    json_t *value;    /* owned reference to an object or array */
    GHashTable *seen; /* of an object: the members visited so far (owned strings) */
    size_t index;     /* of an array: the current element, once there is one */
    bool started;
    bool borrowed;    /* QAPI_OPTS: a nested struct shares the object and "seen" of the frame below */
} Frame;

typedef struct InputVisitor {
    Visitor visitor;
    QapiSyntax syntax;
    json_t *root;
    GArray *frames;
} InputVisitor;

/* What a text syntax calls the kinds of scalars. */
typedef enum Word {
    WORD_INT64,
    WORD_UINT64,
    WORD_SIZE,
    WORD_NUMBER,
} Word;

static const char *const words[][4] = {
    [QAPI_KEYVAL] = {"integer", "integer", "size", "number"},
    [QAPI_OPTS] = {"an int64 value", "a uint64 value", "a size value", "a number"},
    [QAPI_STRING] = {"int64", "uint64", "size", "number"},
};

static InputVisitor *self(Visitor *v)
{
    return (InputVisitor *)v;
}

static Frame *frame_at(InputVisitor *iv, guint i)
{
    return &g_array_index(iv->frames, Frame, i);
}

static Frame *top(InputVisitor *iv)
{
    return iv->frames->len ? frame_at(iv, iv->frames->len - 1) : NULL;
}

/* The path from the root to @member of the current frame. */
static char *full_name(InputVisitor *iv, const char *member)
{
    GString *path = g_string_new(NULL);

    for (guint i = 0; i <= iv->frames->len; i++) {
        Frame *below = i ? frame_at(iv, i - 1) : NULL;
        const char *part = i < iv->frames->len ? frame_at(iv, i)->name : member;

        if (below && json_is_array(below->value)) {
            g_string_append_printf(path, iv->syntax == QAPI_JSON ? "[%zu]" : ".%zu", below->index);
        } else if (part) {
            g_string_append_printf(path, "%s%s", path->len && iv->syntax != QAPI_OPTS ? "." : "", part);
        }
    }
    if (!path->len) {
        g_string_append(path, iv->syntax == QAPI_JSON || iv->syntax == QAPI_KEYVAL ? "<anonymous>" : "null");
    }
    return g_string_free(path, FALSE);
}

/* The value of @member, NULL if absent; @consume marks it as known. */
static json_t *find(InputVisitor *iv, const char *member, bool consume)
{
    Frame *frame = top(iv);

    if (!frame) {
        return iv->root;
    }
    if (json_is_array(frame->value)) {
        return json_array_get(frame->value, frame->index);
    }
    json_t *value = json_object_get(frame->value, member);
    if (value && consume) {
        g_hash_table_add(frame->seen, g_strdup(member));
    }
    return value;
}

static json_t *get(Visitor *v, const char *member, Error **errp)
{
    json_t *value = find(self(v), member, true);

    if (!value) {
        g_autofree char *path = full_name(self(v), member);

        error_setg(errp, "Parameter '%s' is missing", path);
    }
    return value;
}

static bool wrong_type(Visitor *v, const char *member, const char *expected, Error **errp)
{
    g_autofree char *path = full_name(self(v), member);

    error_setg(errp, "Invalid parameter type for '%s', expected: %s", path, expected);
    return false;
}

static bool wrong_text(Visitor *v, const char *member, const char *expected, Error **errp)
{
    g_autofree char *path = full_name(self(v), member);

    error_setg(errp, "Parameter '%s' expects %s", path, expected);
    return false;
}

/* The text of a leaf; in the text syntaxes only. */
static const char *get_text(Visitor *v, const char *member, Error **errp)
{
    json_t *value = get(v, member, errp);

    if (!value || json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_object(value) || json_is_array(value)) {
        g_autofree char *path = full_name(self(v), member);

        error_setg(errp, "Parameters '%s.*' are unexpected", path);
    } else {
        wrong_text(v, member, "a string", errp);
    }
    return NULL;
}

static void push(InputVisitor *iv, const char *member, json_t *value)
{
    Frame frame = {.name = g_strdup(member), .value = json_incref(value)};

    if (json_is_object(value)) {
        frame.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    }
    g_array_append_val(iv->frames, frame);
}

static void pop(InputVisitor *iv)
{
    Frame *frame = top(iv);

    g_free(frame->name);
    if (!frame->borrowed) {
        json_decref(frame->value);
        g_clear_pointer(&frame->seen, g_hash_table_unref);
    }
    g_array_set_size(iv->frames, iv->frames->len - 1);
}

static bool open_object(Visitor *v, const char *member, Error **errp)
{
    InputVisitor *iv = self(v);
    Frame *outer = top(iv);

    if (iv->syntax == QAPI_OPTS && outer) {
        Frame frame = {.value = outer->value, .seen = outer->seen, .borrowed = true};

        g_array_append_val(iv->frames, frame);
        return true;
    }
    json_t *value = get(v, member, errp);
    if (!value) {
        return false;
    }
    if (!json_is_object(value)) {
        return wrong_type(v, member, "object", errp);
    }
    push(iv, member, value);
    return true;
}

static bool all_known(Visitor *v, Error **errp)
{
    InputVisitor *iv = self(v);
    Frame *frame = top(iv);
    const char *key;
    json_t *value;

    if (frame->borrowed) {
        return true;
    }
    json_object_foreach(frame->value, key, value) {
        if (g_hash_table_contains(frame->seen, key)) {
            continue;
        }
        g_autofree char *path = full_name(iv, key);
        error_setg(errp, iv->syntax == QAPI_OPTS ? "Invalid parameter '%s'" : "Parameter '%s' is unexpected", path);
        return false;
    }
    return true;
}

static void close_container(Visitor *v)
{
    pop(self(v));
}

/* "3" or "0-3", comma-separated in QAPI_STRING; any other text is one element. NULL: a wrong range. */
static json_t *list_from_text(const char *text)
{
    g_autoptr(json_t) list = json_array();
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);

    for (int i = 0; parts[i]; i++) {
        const char *dash = *parts[i] ? strchr(parts[i] + 1, '-') : NULL;
        g_autofree char *first = dash ? g_strndup(parts[i], dash - parts[i]) : NULL;
        int64_t from, to;

        if (!dash || !qapi_parse_int64(first, &from) || !qapi_parse_int64(dash + 1, &to)) {
            json_array_append_new(list, json_string_nocheck(parts[i]));
            continue;
        }
        if (from > to || (uint64_t)to - (uint64_t)from >= MAX_RANGE) {
            return NULL;
        }
        for (int64_t n = from; n <= to; n++) {
            json_array_append_new(list, json_sprintf("%" PRId64, n));
        }
    }
    return g_steal_pointer(&list);
}

static bool open_list(Visitor *v, const char *member, Error **errp)
{
    InputVisitor *iv = self(v);
    g_autoptr(json_t) expanded = NULL;
    json_t *value = get(v, member, errp);

    if (!value) {
        return false;
    }
    if (json_is_string(value) && (iv->syntax == QAPI_OPTS || iv->syntax == QAPI_STRING)) {
        expanded = list_from_text(json_string_value(value));
        if (!expanded) {
            return wrong_text(v, member, "list of uint64 values or ranges", errp);
        }
        value = expanded;
    }
    if (!json_is_array(value)) {
        return wrong_type(v, member, "array", errp);
    }
    push(iv, member, value);
    return true;
}

static bool more(Visitor *v)
{
    Frame *frame = top(self(v));

    frame->index = frame->started ? frame->index + 1 : 0;
    frame->started = true;
    return frame->index < json_array_size(frame->value);
}

/* The value counts as known only when it is read. */
static bool peek(Visitor *v, const char *member, QType *type, Error **errp)
{
    json_t *value = find(self(v), member, false);

    *type = qapi_json_qtype(value);
    return value || get(v, member, errp);
}

static bool type_int64(Visitor *v, const char *member, int64_t *obj, Error **errp)
{
    if (self(v)->syntax == QAPI_JSON) {
        json_t *value = get(v, member, errp);

        if (value && !json_is_integer(value)) {
            return wrong_type(v, member, "integer", errp);
        }
        *obj = value ? json_integer_value(value) : *obj;
        return value;
    }
    const char *text = get_text(v, member, errp);
    if (text && !qapi_parse_int64(text, obj)) {
        return wrong_text(v, member, words[self(v)->syntax][WORD_INT64], errp);
    }
    return text;
}

/* A negative number wraps, as it always did for clients of QEMU. A real stands for an integer from 2^63 up. */
static bool type_uint64(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    if (self(v)->syntax == QAPI_JSON) {
        json_t *value = get(v, member, errp);
        double real = json_real_value(value);

        if (!value) {
            return false;
        }
        if (json_is_integer(value)) {
            *obj = json_integer_value(value);
        } else if (json_is_real(value) && real >= 0x1p63 && real < 0x1p64) {
            *obj = real;
        } else {
            return wrong_text(v, member, "uint64", errp);
        }
        return true;
    }
    const char *text = get_text(v, member, errp);
    if (text && !qapi_parse_uint64(text, obj)) {
        return wrong_text(v, member, words[self(v)->syntax][WORD_UINT64], errp);
    }
    return text;
}

static bool type_size(Visitor *v, const char *member, uint64_t *obj, Error **errp)
{
    if (self(v)->syntax == QAPI_JSON) {
        return type_uint64(v, member, obj, errp);
    }
    const char *text = get_text(v, member, errp);
    if (text && qapi_parse_size(text, 0, obj) != QAPI_SIZE_OK) {
        return wrong_text(v, member, words[self(v)->syntax][WORD_SIZE], errp);
    }
    return text;
}

static bool type_bool(Visitor *v, const char *member, bool *obj, Error **errp)
{
    if (self(v)->syntax == QAPI_JSON) {
        json_t *value = get(v, member, errp);

        if (value && !json_is_boolean(value)) {
            return wrong_type(v, member, "boolean", errp);
        }
        *obj = value ? json_is_true(value) : *obj;
        return value;
    }
    const char *text = get_text(v, member, errp);
    if (text && !qapi_parse_bool(text, obj)) {
        return wrong_text(v, member, "'on' or 'off'", errp);
    }
    return text;
}

static bool type_str(Visitor *v, const char *member, char **obj, Error **errp)
{
    *obj = NULL;
    if (self(v)->syntax == QAPI_JSON) {
        json_t *value = get(v, member, errp);

        if (value && !json_is_string(value)) {
            return wrong_type(v, member, "string", errp);
        }
        *obj = g_strdup(json_string_value(value));
        return value;
    }
    *obj = g_strdup(get_text(v, member, errp));
    return *obj;
}

static bool type_number(Visitor *v, const char *member, double *obj, Error **errp)
{
    if (self(v)->syntax == QAPI_JSON) {
        json_t *value = get(v, member, errp);

        if (value && !json_is_number(value)) {
            return wrong_type(v, member, "number", errp);
        }
        *obj = value ? json_number_value(value) : *obj;
        return value;
    }
    const char *text = get_text(v, member, errp);
    if (text && !qapi_parse_number(text, obj)) {
        return wrong_text(v, member, words[self(v)->syntax][WORD_NUMBER], errp);
    }
    return text;
}

static bool type_any(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    *obj = json_incref(get(v, member, errp));
    return *obj;
}

static bool type_null(Visitor *v, const char *member, json_t **obj, Error **errp)
{
    json_t *value = get(v, member, errp);

    *obj = NULL;
    if (value && !json_is_null(value)) {
        return wrong_type(v, member, "null", errp);
    }
    *obj = json_incref(value);
    return value;
}

static void optional(Visitor *v, const char *member, bool *present)
{
    *present = find(self(v), member, false);
}

static void input_free(Visitor *v)
{
    while (self(v)->frames->len) {
        pop(self(v));
    }
    g_array_free(self(v)->frames, TRUE);
    json_decref(self(v)->root);
    g_free(v);
}

Visitor *visitor_input_new(json_t *value, QapiSyntax syntax)
{
    static const VisitorOps ops = {
        .kind = VISITOR_INPUT,
        .open_object = open_object,
        .open_list = open_list,
        .close = close_container,
        .all_known = all_known,
        .more = more,
        .peek = peek,
        .optional = optional,
        .type_int64 = type_int64,
        .type_uint64 = type_uint64,
        .type_size = type_size,
        .type_bool = type_bool,
        .type_number = type_number,
        .type_str = type_str,
        .type_any = type_any,
        .type_null = type_null,
        .free = input_free,
    };
    InputVisitor *iv = g_new0(InputVisitor, 1);

    iv->visitor.ops = &ops;
    iv->syntax = syntax;
    iv->root = json_incref(value);
    iv->frames = g_array_new(FALSE, FALSE, sizeof(Frame));
    return &iv->visitor;
}

Visitor *visitor_string_input_new(const char *text)
{
    g_autoptr(json_t) value = json_string_nocheck(text);

    return visitor_input_new(value, QAPI_STRING);
}
