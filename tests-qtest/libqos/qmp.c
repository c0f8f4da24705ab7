/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A QMP client: commands, the queue of events, HMP through it. */
#include "qmp.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct Qmp {
    int fd;
    int hang_ms;
    bool eof;
    GString *in;
    GQueue events; /* json_t, oldest first */
};

Qmp *qmp_new(int fd, int hang_ms)
{
    Qmp *q = g_new0(Qmp, 1);

    q->fd = fd;
    q->hang_ms = hang_ms;
    q->in = g_string_new(NULL);
    g_queue_init(&q->events);
    return q;
}

void qmp_free(Qmp *q)
{
    if (!q) {
        return;
    }
    qmp_drop_events(q);
    g_string_free(q->in, TRUE);
    close(q->fd);
    g_free(q);
}

int qmp_fd(const Qmp *q)
{
    return q->fd;
}

/* Append what the socket holds; waits up to @timeout_ms. False if nothing came. */
static bool fill(Qmp *q, int timeout_ms)
{
    struct pollfd pfd = {.fd = q->fd, .events = POLLIN};
    char buf[16384];
    ssize_t n;

    if (q->eof || poll(&pfd, 1, timeout_ms) <= 0) {
        return false;
    }
    n = recv(q->fd, buf, sizeof(buf), 0);
    if (n <= 0) {
        q->eof = true;
        return false;
    }
    g_string_append_len(q->in, buf, n);
    return true;
}

/* A whole line out of the buffer, with its end; NULL if there is none yet. */
static char *take_line(Qmp *q)
{
    const char *end = memchr(q->in->str, '\n', q->in->len);
    gsize len;
    char *line;

    if (!end) {
        return NULL;
    }
    len = (gsize)(end - q->in->str) + 1;
    line = g_strndup(q->in->str, len);
    g_string_erase(q->in, 0, (gssize)len);
    return line;
}

char *qmp_any_line(Qmp *q)
{
    char *line;

    while (!(line = take_line(q))) {
        if (!fill(q, q->hang_ms)) {
            if (q->eof) {
                return NULL;
            }
            qos_die("QMP: no answer within %d s", q->hang_ms / 1000);
        }
    }
    return line;
}

/* Queue @line if it is an event, and say so. */
static bool absorb_event(Qmp *q, const char *line)
{
    json_t *v = json_loads(line, JSON_DECODE_ANY, NULL);

    if (!v) {
        qos_die("QMP: not JSON: %s", line);
    }
    if (json_object_get(v, "event")) {
        g_queue_push_tail(&q->events, v);
        return true;
    }
    json_decref(v);
    return false;
}

char *qmp_reply_line(Qmp *q)
{
    for (;;) {
        char *line = qmp_any_line(q);

        if (!line || !absorb_event(q, line)) {
            return line ? g_strchomp(line) : NULL;
        }
        g_free(line);
    }
}

bool qmp_try_send(Qmp *q, const char *text)
{
    size_t len = strlen(text);

    while (len > 0) {
        ssize_t n = send(q->fd, text, len, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return true;
}

void qmp_send_raw(Qmp *q, const char *text)
{
    if (!qmp_try_send(q, text)) {
        qos_die("QMP: send: %s", g_strerror(errno));
    }
}

static json_t *reply(Qmp *q, const char *what)
{
    g_autofree char *line = qmp_reply_line(q);

    if (!line) {
        qos_die("QMP: connection closed while waiting for the reply to %s", what);
    }
    return json_loads(line, JSON_DECODE_ANY, NULL);
}

json_t *qmp_vexecute(Qmp *q, const char *name, const char *args_fmt, va_list ap)
{
    json_t *cmd = json_pack("{s:s}", "execute", name);
    json_error_t err;
    char *text;

    if (args_fmt) {
        json_t *args = json_vpack_ex(&err, 0, args_fmt, ap);

        if (!args) {
            qos_die("QMP %s: arguments: %s", name, err.text);
        }
        json_object_set_new(cmd, "arguments", args);
    }
    text = json_dumps(cmd, JSON_COMPACT);
    qmp_send_raw(q, text);
    qmp_send_raw(q, "\n");
    free(text);
    json_decref(cmd);
    return reply(q, name);
}

json_t *qmp_execute(Qmp *q, const char *name, const char *args_fmt, ...)
{
    json_t *r;
    va_list ap;

    va_start(ap, args_fmt);
    r = qmp_vexecute(q, name, args_fmt, ap);
    va_end(ap);
    return r;
}

json_t *qmp_must(Qmp *q, const char *name, const char *args_fmt, ...)
{
    json_t *r, *v;
    va_list ap;

    va_start(ap, args_fmt);
    r = qmp_vexecute(q, name, args_fmt, ap);
    va_end(ap);
    v = json_object_get(r, "return");
    if (!v) {
        qos_die("QMP %s: %s", name, json_dumps(r, 0));
    }
    json_incref(v);
    json_decref(r);
    return v;
}

char *qmp_must_fail(Qmp *q, const char *name, const char *args_fmt, ...)
{
    const char *cls = NULL, *desc = NULL;
    json_t *r;
    va_list ap;
    char *text;

    va_start(ap, args_fmt);
    r = qmp_vexecute(q, name, args_fmt, ap);
    va_end(ap);
    if (json_unpack(r, "{s:{s:s,s:s}}", "error", "class", &cls, "desc", &desc) < 0) {
        qos_die("QMP %s: expected an error, got %s", name, json_dumps(r, 0));
    }
    text = g_strdup_printf("%s: %s", cls, desc);
    json_decref(r);
    return text;
}

json_t *qmp_negotiate(Qmp *q)
{
    json_t *greeting = reply(q, "the connection");

    if (!json_object_get(greeting, "QMP")) {
        qos_die("QMP: no greeting");
    }
    json_decref(qmp_must(q, "qmp_capabilities", NULL));
    return greeting;
}

bool qmp_poll(Qmp *q)
{
    while (fill(q, 0)) {
    }
    return !q->eof;
}

static GList *find_event(Qmp *q, const char *name)
{
    for (GList *l = q->events.head; l; l = l->next) {
        if (!strcmp(json_string_value(json_object_get(l->data, "event")), name)) {
            return l;
        }
    }
    return NULL;
}

json_t *qmp_event(Qmp *q, const char *name)
{
    GList *l;
    json_t *v;

    while (!(l = find_event(q, name))) {
        g_autofree char *line = qmp_any_line(q);

        if (!line) {
            qos_die("QMP: connection closed while waiting for event %s", name);
        }
        if (!absorb_event(q, line)) {
            qos_die("QMP: reply to nothing: %s", line);
        }
    }
    v = l->data;
    g_queue_delete_link(&q->events, l);
    return v;
}

unsigned int qmp_events_pending(Qmp *q, const char *name)
{
    unsigned int n = 0;
    char *line;

    qmp_poll(q);
    while ((line = take_line(q))) {
        if (!absorb_event(q, line)) {
            qos_die("QMP: reply to nothing: %s", line);
        }
        g_free(line);
    }
    for (GList *l = q->events.head; l; l = l->next) {
        n += !strcmp(json_string_value(json_object_get(l->data, "event")), name);
    }
    return n;
}

void qmp_drop_events(Qmp *q)
{
    json_t *v;

    while ((v = g_queue_pop_head(&q->events))) {
        json_decref(v);
    }
}

char *qmp_hmp(Qmp *q, const char *fmt, ...)
{
    g_autofree char *line = NULL;
    json_t *v;
    va_list ap;
    char *text;

    va_start(ap, fmt);
    line = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    v = qmp_must(q, "human-monitor-command", "{s:s}", "command-line", line);
    text = g_strdup(json_string_value(v));
    json_decref(v);
    return text;
}
