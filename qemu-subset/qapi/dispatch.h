/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a QMP request to a command handler and back to a reply; and the way events leave. */
#ifndef QAPI_DISPATCH_H
#define QAPI_DISPATCH_H

#include "qapi/json.h"

typedef enum QmpCommandFlags {
    QMP_NO_SUCCESS_RESPONSE = 1 << 0, /* no reply when it succeeds */
    QMP_ALLOW_OOB = 1 << 1,           /* "exec-oob" is accepted */
    QMP_ALLOW_PRECONFIG = 1 << 2,     /* may run before the machine is initialized */
} QmpCommandFlags;

/*
 * Reads @args (an object, never NULL), runs the handler, and puts the value to return into *@ret, which stays NULL for
 * a command that returns nothing. Generated, one for each command; the handler is qmp_NAME(), declared in
 * "qapi/qapi-commands-FILE.h".
 */
typedef void QmpMarshal(json_t *args, json_t **ret, Error **errp);

typedef struct QmpCommand {
    const char *name; /* NULL ends a table */
    QmpMarshal *marshal;
    unsigned int flags;
} QmpCommand;

const QmpCommand *qmp_find_command(const QmpCommand *table, const char *name);

typedef struct QmpDispatchOptions {
    bool allow_oob;     /* this session negotiated "oob" */
    bool machine_ready; /* initialization is over; otherwise only QMP_ALLOW_PRECONFIG commands run */
} QmpDispatchOptions;

/*
 * Run @request (borrowed) and return the reply, owned by the caller: {"return": ..., "id": ...} or
 * {"error": {...}, "id": ...}; NULL if there is nothing to answer. The thread that calls runs the handler; except for
 * QMP_ALLOW_OOB commands that is the main thread.
 */
json_t *qmp_dispatch(const QmpCommand *table, json_t *request, const QmpDispatchOptions *options);

/*
 * Does @request ask for out-of-band execution? Also if it will be refused; what has "execute" as well, or is no object, waits for
 * its turn.
 */
bool qmp_is_oob(const json_t *request);

/* An error reply; takes @err, borrows @id (NULL: none). */
json_t *qmp_error_reply(Error *err, json_t *id);

/*
 * Events. The sink is set once at start by whoever delivers them (the monitor) and takes over @data, which is NULL when
 * the event has none; without a sink events are dropped. Emission may happen in any thread, and the sink has to cope.
 */
typedef void QapiEventSink(void *opaque, const char *name, json_t *data);
void qapi_event_set_sink(QapiEventSink *sink, void *opaque);
void qapi_event_emit(const char *name, json_t *data);

#endif
