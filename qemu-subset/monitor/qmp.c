/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QMP sessions: greeting, capabilities negotiation, requests in order, replies. */
#include "monitor/private.h"

#include "loop/aio.h"
#include "qapi/qapi-commands-control.h"

#include <string.h>

/*
 * As in QEMU: how many requests are taken from a client ahead of the one that is run, so that a request to be executed out of
 * band can overtake them. Without that capability a request is not looked at before the one in front of it is answered.
 */
#define QMP_QUEUE_MAX 8

/* Bytes that a client may leave unread when an event comes. It did not ask for events, so that not reading it is no limit. */
#define QMP_UNREAD_MAX (64u << 20)

struct QmpMonitor {
    Object obj;
    ListNode link;
    char *chardev_id;
    bool pretty;
    int close_action;
    Chardev *chardev;
    JsonParser *parser;
    bool negotiated, oob;
    bool running, closed;
    GQueue queue; /* QmpInput */
};

/* A request, or the error that its text had. */
typedef struct QmpInput {
    json_t *value;
    Error *err;
} QmpInput;

static ListNode sessions = {&sessions, &sessions};
static QmpMonitor *current;

#define QMP(obj) ((QmpMonitor *)(obj))

static void send(QmpMonitor *m, const json_t *message)
{
    GString *text = qjson_to_string(message, m->pretty);

    if (m->pretty) {
        g_string_replace(text, "\n", "\r\n", 0);
    }
    g_string_append(text, "\r\n");
    chardev_write(m->chardev, text->str, text->len);
    g_string_free(text, TRUE);
}

void qmp_broadcast(const json_t *message)
{
    QmpMonitor *m;

    list_for_each (m, &sessions, link) {
        if (!m->negotiated) {
            continue;
        }
        if (chardev_unread(m->chardev) > QMP_UNREAD_MAX) {
            /* Better than losing single events in silence: who comes again knows that it has missed some. */
            chardev_hang_up(m->chardev);
        } else {
            send(m, message);
        }
    }
}

/* --- Requests --- */

static const QmpCommand negotiation_commands[] = {
    {"qmp_capabilities", qmp_marshal_qmp_capabilities, QMP_ALLOW_PRECONFIG},
    {NULL},
};

static json_t *dispatch(QmpMonitor *m, json_t *request)
{
    QmpDispatchOptions options = {
        .allow_oob = m->oob,
        .machine_ready = !monitor_config.machine_ready || monitor_config.machine_ready(),
    };

    if (m->negotiated) {
        return qmp_dispatch(monitor_config.qmp_commands, request, &options);
    }
    json_t *reply = qmp_dispatch(negotiation_commands, request, &options);
    json_t *err = json_object_get(reply, "error");
    const char *cls = json_string_value(json_object_get(err, "class"));
    if (cls && !strcmp(cls, error_class_name(ERROR_CLASS_COMMAND_NOT_FOUND))) {
        json_object_set_new(err, "desc",
                            json_string("Expecting capabilities negotiation with 'qmp_capabilities'"));
    }
    return reply;
}

static bool quitting(void)
{
    return monitor_config.quitting && monitor_config.quitting();
}

/* Takes both, of which one is NULL. */
static void answer(QmpMonitor *m, json_t *request, Error *err)
{
    json_t *reply;

    if (request) {
        QmpMonitor *outer = current;

        current = m;
        reply = dispatch(m, request);
        current = outer;
    } else {
        reply = qmp_error_reply(err, NULL);
    }
    if (reply && !m->closed) {
        send(m, reply);
    }
    json_decref(reply);
    json_decref(request);
}

static void on_json(void *opaque, json_t *value, Error *err)
{
    QmpMonitor *m = opaque;

    if (value && qmp_is_oob(value)) {
        answer(m, value, NULL);
        return;
    }
    QmpInput *in = g_new0(QmpInput, 1);

    in->value = value;
    in->err = err;
    g_queue_push_tail(&m->queue, in);
}

/* Parse on until as many requests wait as may, or enough is left unread. Returns how many bytes that took. */
static size_t take_ahead(QmpMonitor *m, const char *buf, size_t len)
{
    size_t n = 0;

    while (n < len && !chardev_enough(m->chardev) && m->parser && m->queue.length < (m->oob ? QMP_QUEUE_MAX : 1)) {
        json_parser_feed(m->parser, buf + n++, 1);
    }
    return n;
}

/*
 * Requests are run in order, but for those that are executed out of band. What follows "quit" is not run. A command that polls
 * the loop does not bring us back here: input is held meanwhile. When the turn is over, requests that were taken ahead wait for
 * the next one as the rest of the text does.
 */
static size_t on_read(void *opaque, const uint8_t *buf, size_t len)
{
    QmpMonitor *m = opaque;
    const char *p = (const char *)buf, *end = p + len;
    bool again, turn_over = false;
    QmpInput *in;

    g_assert(!m->running);
    object_ref(&m->obj);
    m->running = true;
    while (!turn_over && !quitting()) {
        p += take_ahead(m, p, (size_t)(end - p));
        in = g_queue_pop_head(&m->queue);
        if (!in) {
            break;
        }
        answer(m, in->value, in->err);
        g_free(in);
        turn_over = chardev_turn_over(m->chardev);
    }
    m->running = false;
    again = m->parser && !quitting();
    object_unref(&m->obj);
    return again ? (size_t)(p - (const char *)buf) : len;
}

void qmp_qmp_capabilities(QMPCapabilityList *enable, Error **errp)
{
    QmpMonitor *m = current;

    if (m->negotiated) {
        error_set(errp, ERROR_CLASS_COMMAND_NOT_FOUND,
                  "Capabilities negotiation is already complete, command ignored");
        return;
    }
    for (; enable; enable = enable->next) {
        m->oob = m->oob || enable->value == QMP_CAPABILITY_OOB;
    }
    m->negotiated = true;
}

/* --- Life --- */

static void greet(QmpMonitor *m)
{
    json_t *qemu = json_pack("{s:i,s:i,s:i}", "major", QEMU_VERSION_MAJOR, "minor", QEMU_VERSION_MINOR,
                             "micro", QEMU_VERSION_MICRO);
    json_t *greeting = json_pack("{s:{s:{s:o,s:s},s:[s]}}", "QMP", "version", "qemu", qemu, "package", "",
                                 "capabilities", "oob");
    send(m, greeting);
    json_decref(greeting);
}

static void drop_session(QmpMonitor *m)
{
    QmpInput *in;

    while ((in = g_queue_pop_head(&m->queue))) {
        json_decref(in->value);
        error_free(in->err);
        g_free(in);
    }
    g_clear_pointer(&m->parser, json_parser_free);
    m->negotiated = m->oob = false;
}

static void delete_bh(void *opaque)
{
    QmpMonitor *m = opaque;

    if (m->obj.parent) {
        object_unparent(&m->obj);
    }
    object_unref(&m->obj);
}

static void on_event(void *opaque, ChardevEvent event)
{
    QmpMonitor *m = opaque;

    drop_session(m);
    if (event == CHARDEV_OPENED) {
        m->parser = json_parser_new(on_json, m);
        greet(m);
    } else if (m->close_action) {
        object_ref(&m->obj);
        aio_bh_schedule_oneshot(aio_context_main(), delete_bh, m);
    }
}

static const ChardevFrontend frontend = {.read = on_read, .event = on_event};

static bool qmp_complete(Object *obj, Error **errp)
{
    QmpMonitor *m = QMP(obj);
    Chardev *c = chardev_required(m->chardev_id, errp);

    if (!c) {
        return false;
    }
    m->chardev = c;
    list_append(&sessions, &m->link);
    if (!chardev_set_frontend(c, &frontend, m, errp)) {
        list_remove(&m->link);
        m->chardev = NULL;
        return false;
    }
    return true;
}

static bool qmp_can_be_deleted(Object *obj, Error **errp)
{
    if (QMP(obj) == current) {
        error_setg(errp, "Cannot delete the current QMP monitor");
        return false;
    }
    return true;
}

static void qmp_finalize(Object *obj)
{
    QmpMonitor *m = QMP(obj);

    m->closed = true;
    if (m->chardev) {
        chardev_clear_frontend(m->chardev);
        list_remove(&m->link);
    }
    drop_session(m);
    g_free(m->chardev_id);
}

static const char *const close_actions[] = {"none", "delete", NULL};
static const char *const creatable[] = {"user-creatable", NULL};

static const ObjectProperty properties[] = {
    {.name = "chardev", .kind = PROP_STRING, .get = object_get_string, .set = object_set_string,
     .required = true, .offset = offsetof(QmpMonitor, chardev_id)},
    {.name = "pretty", .kind = PROP_BOOL, .get = object_get_bool, .set = object_set_bool,
     .offset = offsetof(QmpMonitor, pretty)},
    {.name = "close-action", .kind = PROP_ENUM, .get = object_get_enum, .set = object_set_enum,
     .type = "MonitorQMPCloseAction", .values = close_actions, .offset = offsetof(QmpMonitor, close_action)},
    {0},
};

const ObjectType *qmp_monitor_type(void)
{
    static const ObjectType type = {
        .name = TYPE_MONITOR_QMP, .parent = "object", .size = sizeof(QmpMonitor), .interfaces = creatable,
        .properties = properties, .finalize = qmp_finalize, .complete = qmp_complete,
        .can_be_deleted = qmp_can_be_deleted,
    };
    return &type;
}
