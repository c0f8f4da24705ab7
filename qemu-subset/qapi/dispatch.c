/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a QMP request to a command handler and back to a reply; and the way events leave. */
#include "qapi/dispatch.h"

#include <string.h>

const QmpCommand *qmp_find_command(const QmpCommand *table, const char *name)
{
    for (; table->name; table++) {
        if (!strcmp(table->name, name)) {
            return table;
        }
    }
    return NULL;
}

typedef struct Request {
    const char *command;
    json_t *args; /* borrowed, NULL without */
    bool oob;
} Request;

static bool unexpected(const char *key, Error **errp)
{
    error_setg(errp, "QMP input member '%s' is unexpected", key);
    return false;
}

static bool take_member(Request *request, const char *key, json_t *value, bool allow_oob, Error **errp)
{
    bool oob = !strcmp(key, "exec-oob") && allow_oob;

    if (!strcmp(key, "id")) {
        return true;
    }
    if (!strcmp(key, "execute") || oob) {
        if (!json_is_string(value)) {
            error_setg(errp, "QMP input member '%s' must be a string", key);
            return false;
        }
        if (request->command) {
            error_setg(errp, "QMP input member '%s' clashes with '%s'", key, oob ? "execute" : "exec-oob");
            return false;
        }
        request->command = json_string_value(value);
        request->oob = oob;
        return true;
    }
    if (!strcmp(key, "arguments")) {
        if (!json_is_object(value)) {
            error_setg(errp, "QMP input member 'arguments' must be an object");
            return false;
        }
        request->args = value;
        return true;
    }
    return unexpected(key, errp);
}

static bool read_request(json_t *json, bool allow_oob, Request *request, Error **errp)
{
    if (!json_is_object(json)) {
        error_setg(errp, "QMP input must be a JSON object");
        return false;
    }
    g_autofree const char **keys = qjson_object_keys(json);
    for (int i = 0; keys[i]; i++) {
        if (!take_member(request, keys[i], json_object_get(json, keys[i]), allow_oob, errp)) {
            return false;
        }
    }
    if (!request->command) {
        error_setg(errp, "QMP input lacks member 'execute'");
        return false;
    }
    return true;
}

static const QmpCommand *permitted_command(const QmpCommand *table, const Request *request, bool machine_ready,
                                           Error **errp)
{
    const QmpCommand *command = qmp_find_command(table, request->command);

    if (!command) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND, "The command %s has not been found", request->command);
        return NULL;
    }
    if (request->oob && !(command->flags & QMP_ALLOW_OOB)) {
        error_setg(errp, "The command %s does not support OOB", request->command);
        return NULL;
    }
    if (!machine_ready && !(command->flags & QMP_ALLOW_PRECONFIG)) {
        error_setg(errp, "The command '%s' is permitted only after machine initialization has completed",
                   request->command);
        return NULL;
    }
    return command;
}

json_t *qmp_error_reply(Error *err, json_t *id)
{
    json_t *reply = json_object(), *error = json_object();

    json_object_set_new(error, "class", json_string(error_class_name(error_get_class(err))));
    json_object_set_new(error, "desc", json_string_nocheck(error_get_pretty(err)));
    json_object_set_new(reply, "error", error);
    if (id) {
        json_object_set_nocheck(reply, "id", id);
    }
    error_free(err);
    return reply;
}

json_t *qmp_dispatch(const QmpCommand *table, json_t *request, const QmpDispatchOptions *options)
{
    json_t *id = json_object_get(request, "id");
    const QmpCommand *command = NULL;
    Request parsed = {0};
    json_t *ret = NULL;
    Error *err = NULL;

    if (read_request(request, options->allow_oob, &parsed, &err)) {
        command = permitted_command(table, &parsed, options->machine_ready, &err);
    }
    if (command) {
        g_autoptr(json_t) args = parsed.args ? json_incref(parsed.args) : json_object();

        command->marshal(args, &ret, &err);
    }
    if (err) {
        json_decref(ret);
        return qmp_error_reply(err, id);
    }
    g_assert(command);
    if (command->flags & QMP_NO_SUCCESS_RESPONSE) {
        json_decref(ret);
        return NULL;
    }
    json_t *reply = json_object();
    json_object_set_new(reply, "return", ret ? ret : json_object());
    if (id) {
        json_object_set_nocheck(reply, "id", id);
    }
    return reply;
}

bool qmp_is_oob(const json_t *request)
{
    return json_object_get(request, "exec-oob") && !json_object_get(request, "execute");
}

static QapiEventSink *event_sink;
static void *event_opaque;

void qapi_event_set_sink(QapiEventSink *sink, void *opaque)
{
    event_opaque = opaque;
    event_sink = sink;
}

void qapi_event_emit(const char *name, json_t *data)
{
    if (event_sink) {
        event_sink(event_opaque, name, data);
    } else {
        json_decref(data);
    }
}
