/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the block options of -drive to a node: file names, protocols, formats that have to be guessed. */
#include "block/drive-options.h"

#include "block/inspect.h"
#include "block/internal.h"
#include "qapi/qapi-visit-block.h"

#include <string.h>
#include <sys/stat.h>

/* --- Option trees; leaves are strings, as on the command line --- */

static bool append_option(void *opaque, const char *name, const char *value, Error **errp)
{
    g_auto(GStrv) parts = g_strsplit(value, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", parts);

    g_string_append_printf(opaque, "%s%s=%s", ((GString *)opaque)->len ? "," : "", name, escaped);
    return true;
}

/* Nest dotted keys. */
static json_t *options_tree(const Opts *opts, Error **errp)
{
    g_autoptr(GString) text = g_string_new(NULL);

    opts_foreach(opts, append_option, text, NULL);
    return keyval_parse(text->str, NULL, NULL, errp);
}

static void set_default(json_t *o, const char *key, const char *value)
{
    if (!json_object_get(o, key)) {
        json_object_set_new(o, key, json_string(value));
    }
}

/* --- File names --- */

static bool is_device(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode));
}

/* "PROTO" of "PROTO:rest", unless a slash comes first; NULL if there is none. */
static char *protocol_of(const char *name)
{
    size_t n = strcspn(name, ":/");

    return name[n] == ':' ? g_strndup(name, n) : NULL;
}

static bool check_null_name(const char *driver, const char *name, Error **errp)
{
    g_autofree char *only = g_strconcat(driver, "://", NULL);

    if (strcmp(name, only)) {
        error_setg(errp, "The only allowed filename for this driver is '%s'", only);
        return false;
    }
    return true;
}

/* Set driver and filename of @o, a protocol node, from the file name @name. */
static bool apply_filename(json_t *o, const char *name, Error **errp)
{
    g_autofree char *proto = protocol_of(name);
    const BlockDriver *drv;

    if (json_object_get(o, "filename")) {
        error_setg(errp, "Can't specify 'file' and 'filename' options at the same time");
        return false;
    }
    if (json_object_get(o, "driver")) {
        /* The driver was said: the name means what that driver makes of it. */
        const char *driver = json_string_value(json_object_get(o, "driver"));

        if (g_str_has_prefix(driver, "null-")) {
            return check_null_name(driver, name, errp);
        }
        set_default(o, "filename", g_str_has_prefix(name, "file:") ? name + strlen("file:") : name);
        return true;
    }
    if (!proto || !strcmp(proto, "file")) {
        const char *path = proto ? name + strlen("file:") : name;

        set_default(o, "driver", is_device(path) ? "host_device" : "file");
        set_default(o, "filename", path);
        return true;
    }
    drv = block_find_driver(proto);
    if (!drv || !drv->is_protocol) {
        error_setg(errp, "Unknown protocol '%s'", proto);
        return false;
    }
    set_default(o, "driver", proto);
    if (g_str_has_prefix(proto, "null-")) {
        return check_null_name(proto, name, errp);
    }
    set_default(o, "filename", name + strlen(proto) + 1);
    return true;
}

/* json:{...} instead of a name: the options themselves; those given besides it win. */
static bool merge_json(json_t *o, const char *text, Error **errp)
{
    g_autoptr(Error) err = NULL;
    g_autoptr(json_t) json = qjson_parse(text, &err), strings = NULL;

    if (!json_is_object(json)) {
        error_setg(errp, "Could not parse the JSON options: %s", err ? error_get_pretty(err) : "not an object");
        return false;
    }
    strings = block_options_as_text(json);
    json_object_update_missing(o, strings);
    return true;
}

/* --- Guessing the format --- */

/* QEMU's words for an option that the driver does not have, and for a value that is none of those allowed. */
static void reword(const json_t *o, Error **errp)
{
    static const char before[] = "Parameter '", after[] = "' is unexpected";
    static const char bad_value[] = "' does not accept value '";
    const char *text = error_get_pretty(*errp);
    g_autofree char *name = NULL;
    const char *driver = json_string_value(json_object_get(o, "driver"));
    const BlockDriver *drv;

    if (!g_str_has_prefix(text, before)) {
        return;
    }
    if (strstr(text, bad_value)) {
        g_autofree char *value = g_strdup(strstr(text, bad_value) + strlen(bad_value));

        value[strcspn(value, "'")] = '\0';
        g_clear_pointer(errp, error_free);
        error_setg(errp, "invalid parameter value: %s", value);
        return;
    }
    if (!g_str_has_suffix(text, after)) {
        return;
    }
    name = g_strndup(text + strlen(before), strlen(text) - strlen(before) - strlen(after));
    if (g_str_has_prefix(name, "file.")) {
        driver = json_string_value(json_object_get(json_object_get(o, "file"), "driver"));
        memmove(name, name + strlen("file."), strlen(name) - strlen("file.") + 1);
    }
    drv = driver ? block_find_driver(driver) : NULL;
    g_clear_pointer(errp, error_free);
    if (drv && drv->is_protocol) {
        error_setg(errp, "Block protocol '%s' doesn't support the option '%s'", driver, name);
    } else {
        error_setg(errp, "Block format '%s' does not support the option '%s'", driver ? driver : "raw", name);
    }
}

static BlockdevOptions *visit_options(json_t *o, Error **errp)
{
    g_autoptr(Visitor) v = visitor_input_new(o, QAPI_KEYVAL);
    BlockdevOptions *out = NULL;
    Error *err = NULL;

    if (!visit_type_BlockdevOptions(v, NULL, &out, &err)) {
        reword(o, &err);
        error_propagate(errp, err);
    }
    return out;
}

/* Names made of options show them as they were typed. */
static void show_text(BlockNode *node)
{
    BlockChild *c;

    node->text_options = true;
    list_for_each(c, &node->children, in_parent) {
        if (!c->node->monitor_owned) {
            show_text(c->node);
        }
    }
    block_refresh_filename(node);
}

BlockNode *drive_open_tree(json_t *o, bool probed, Error **errp)
{
    g_autoptr(BlockdevOptions) options = visit_options(o, errp);

    if (!options) {
        return NULL;
    }
    return probed ? block_open_probed(options, errp) : block_open(options, errp);
}

/* Read the beginning of the node that @o, options of a protocol, describes. Returns a format's name or NULL. */
static const char *guess_format(json_t *o, Error **errp)
{
    g_autoptr(json_t) copy = json_deep_copy(o);
    char head[BLOCK_PROBE_BYTES] = { 0 };
    const char *format = NULL;
    BlockNode *node;
    struct iovec v;

    json_object_set_new(copy, "read-only", json_string("on"));
    node = drive_open_tree(copy, false, errp);
    if (!node) {
        return NULL;
    }
    v = (struct iovec){ head, MIN(sizeof(head), node->total_bytes) };
    if (v.iov_len) {
        int ret = block_rw(node, BLOCK_READ, 0, v.iov_len, &v, 1, 0);

        if (ret < 0) {
            error_setg_errno(errp, -ret, "Could not read image for determining its format");
            block_node_unref(node);
            return NULL;
        }
    }
    format = block_probe_format(head, v.iov_len);
    block_node_unref(node);
    return format;
}

static void warn_probed(const BlockNode *node)
{
    fprintf(stderr,
            "WARNING: Image format was not specified for '%s' and probing guessed raw.\n"
            "         Automatically detecting the format is dangerous for raw images, write operations on block 0 will be "
            "restricted.\n"
            "         Specify the 'raw' format explicitly to remove the restrictions.\n",
            node->filename);
}

/* --- The whole --- */

/* The child of a format: options below "file", and what applies to all that touch the host. */
static bool prepare_child(json_t *o, const char *file, Error **errp)
{
    json_t *child = json_object_get(o, "file"), *aio = json_object_get(o, "aio");
    const char *driver;

    if (json_is_string(child)) {
        return true;
    }
    if (!child) {
        if (!file) {
            error_setg(errp, "A block device must be specified for \"file\"");
            return false;
        }
        child = json_object();
        json_object_set_new(o, "file", child);
    }
    if (file && !apply_filename(child, file, errp)) {
        return false;
    }
    if (json_is_object(json_object_get(child, "file")) && !prepare_child(child, NULL, errp)) {
        return false;
    }
    if (!json_object_get(child, "driver")) {
        const char *name = json_string_value(json_object_get(child, "filename"));

        set_default(child, "driver", name && is_device(name) ? "host_device" : "file");
    }
    driver = json_string_value(json_object_get(child, "driver"));
    if (aio) {
        if (driver && (!strcmp(driver, "file") || !strcmp(driver, "host_device"))) {
            set_default(child, "aio", json_string_value(aio));
        }
        json_object_del(o, "aio");
    }
    return true;
}

/* Set @o's driver to what its child looks like. */
static bool guess_driver(json_t *o, bool *probed, Error **errp)
{
    json_t *child = json_object_get(o, "file");
    const char *guess = json_is_object(child) ? guess_format(child, errp) : "raw";

    if (!guess) {
        return false;
    }
    if (!block_find_driver(guess)) {
        error_setg(errp, "Unknown driver '%s'", guess);
        return false;
    }
    json_object_set_new(o, "driver", json_string(guess));
    *probed = !strcmp(guess, "raw");
    return true;
}

/* Complete @o with what @file and defaults say. */
static bool prepare(json_t *o, const char *file, bool *probed, Error **errp)
{
    const char *driver = json_string_value(json_object_get(o, "driver"));
    const BlockDriver *drv = driver ? block_find_driver(driver) : NULL;

    if (driver && !drv) {
        error_setg(errp, "Unknown driver '%s'", driver);
        return false;
    }
    if (drv && drv->is_protocol) {
        return !file || apply_filename(o, file, errp);
    }
    return prepare_child(o, file, errp) && (drv || guess_driver(o, probed, errp));
}

BlockNode *drive_open_node(Opts *opts, const char *file, const char *format, Error **errp)
{
    g_autofree char *detect_zeroes = opts_take(opts, "detect-zeroes");
    g_autoptr(json_t) o = options_tree(opts, errp);
    bool probed = false, typed = file && g_str_has_prefix(file, "json:");
    BlockNode *node;

    if (!o || (typed && !merge_json(o, file + strlen("json:"), errp))) {
        return NULL;
    }
    if (format) {
        json_object_set_new(o, "driver", json_string(format));
    }
    if (!prepare(o, typed ? NULL : file, &probed, errp)) {
        return NULL;
    }
    node = drive_open_tree(o, probed, errp);
    if (!node) {
        return NULL;
    }
    if (detect_zeroes) {
        /* Unlike -blockdev, -drive does not want discard=unmap with it; the node then keeps to zeroes that allocate. */
        node->detect_zeroes = (uint8_t)qapi_enum_parse(&BlockdevDetectZeroesOptions_lookup, detect_zeroes, 0, NULL);
    }
    if (!typed) {
        show_text(node);
    }
    if (probed && !node->read_only) {
        warn_probed(node);
    }
    return node;
}
