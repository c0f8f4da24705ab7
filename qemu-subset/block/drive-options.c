/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the block options of -drive to a node: file names, protocols, formats that have to be guessed. */
#include "block/drive-options.h"

#include "block/inspect.h"
#include "block/internal.h"
#include "qapi/qapi-visit-block.h"

#include <inttypes.h>
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

json_t *block_options_tree(const Opts *opts, Error **errp)
{
    static const char bad_name[] = "Invalid parameter '";
    g_autoptr(GString) text = g_string_new(NULL);
    Error *err = NULL;

    opts_foreach(opts, append_option, text, NULL);
    json_t *tree = keyval_parse(text->str, NULL, NULL, &err);
    if (!tree && g_str_has_prefix(error_get_pretty(err), bad_name)) {
        const char *driver = opts_get(opts, "driver");

        error_setg(errp, "Block format '%s' does not support the option '%s", driver ? driver : "raw",
                   error_get_pretty(err) + strlen(bad_name));
        error_free(err);
    } else {
        error_propagate(errp, err);
    }
    return tree;
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

/* json:{...} instead of a name: the options themselves, with strings for leaves. */
static json_t *parse_json_name(const char *text, Error **errp)
{
    Error *err = NULL;
    g_autoptr(json_t) json = qjson_parse(text, &err);

    if (!json) {
        error_prepend(&err, "Could not parse the JSON options: ");
        error_propagate(errp, err);
        return NULL;
    }
    if (!json_is_object(json)) {
        error_setg(errp, "Invalid JSON object given");
        return NULL;
    }
    return block_options_as_text(json);
}

/* --- Guessing the format --- */

/* The dotted name of the first option at or below @name in @o. */
static char *leaf_name(const json_t *o, const char *name)
{
    g_auto(GStrv) parts = g_strsplit(name, ".", -1);
    GString *full = g_string_new(name);

    for (char **part = parts; *part; part++) {
        o = json_object_get(o, *part);
    }
    while (json_object_size(o) || json_array_size(o)) {
        const char *key = json_is_array(o) ? "0" : json_object_iter_key(json_object_iter((json_t *)o));

        g_string_append_printf(full, ".%s", key);
        o = json_is_array(o) ? json_array_get(o, 0) : json_object_get(o, key);
    }
    return g_string_free(full, FALSE);
}

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
    if (g_str_has_suffix(text, "filename' is missing")) {
        if (g_str_has_prefix(text + strlen(before), "file.")) {
            driver = json_string_value(json_object_get(json_object_get(o, "file"), "driver"));
        }
        g_clear_pointer(errp, error_free);
        error_setg(errp, "The '%s' block driver requires a file name", driver);
        return;
    }
    if (!g_str_has_suffix(text, after)) {
        return;
    }
    name = g_strndup(text + strlen(before), strlen(text) - strlen(before) - strlen(after));
    char *leaf = leaf_name(o, name);
    g_free(name);
    name = leaf;
    drv = driver ? block_find_driver(driver) : NULL;
    if (g_str_has_prefix(name, "file.") && !(drv && drv->is_protocol)) {
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

/* Here, unlike in -blockdev, sizes may have a suffix. */
static bool convert_sizes(json_t *o, Error **errp)
{
    static const char *const names[] = { "offset", "size", NULL };
    json_t *child = json_object_get(o, "file");

    for (size_t i = 0; names[i]; i++) {
        const char *text = json_string_value(json_object_get(o, names[i]));
        uint64_t bytes;

        if (text && !opt_value_size(names[i], text, 0, &bytes, errp)) {
            return false;
        }
        if (text && text[strspn(text, "0123456789")]) {
            g_autofree char *plain = g_strdup_printf("%" PRIu64, bytes);

            json_object_set_new(o, names[i], json_string(plain));
        }
    }
    return !json_is_object(child) || convert_sizes(child, errp);
}

static BlockdevOptions *visit_options(json_t *o, Error **errp)
{
    g_autoptr(Visitor) v = visitor_input_new(o, QAPI_KEYVAL);
    BlockdevOptions *out = NULL;
    Error *err = NULL;

    if (!convert_sizes(o, errp)) {
        return NULL;
    }
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
            node->file ? node->file->node->filename : node->filename);
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
    if (!driver && !file && !json_object_get(o, "file")) {
        error_setg(errp, "Must specify either driver or file");
        return false;
    }
    return prepare_child(o, file, errp) && (drv || guess_driver(o, probed, errp));
}

BlockNode *drive_open_node(Opts *opts, const char *file, const char *format, Error **errp)
{
    g_autofree char *detect_zeroes = opts_take(opts, "detect-zeroes");
    bool probed = false, typed = file && g_str_has_prefix(file, "json:");
    g_autoptr(json_t) named = typed ? parse_json_name(file + strlen("json:"), errp) : json_object();
    g_autoptr(json_t) o = named ? block_options_tree(opts, errp) : NULL;
    BlockNode *node;

    if (!o) {
        return NULL;
    }
    json_object_update_missing(o, named); /* what is given besides the name wins */
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
