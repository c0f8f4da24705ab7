/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The qtest server: a line protocol through which a test plays the guest CPU. Main thread only. */
#ifndef QTEST_QTEST_H
#define QTEST_QTEST_H

#include "base/error.h"

typedef struct QtestServer QtestServer;

typedef struct QtestOptions {
    /*
     * Send bytes to the client that is connected; the transport keeps what cannot be written at once. Never called while no
     * client is there.
     */
    void (*write)(void *opaque, const char *buf, size_t len);
    void *opaque;
    const char *log;   /* NULL: stderr; "none": no log; else a file, silently no log if it cannot be opened */
    bool virtual_clock; /* -accel qtest: the virtual clock belongs to the client, clock_* work */
} QtestOptions;

/* There is one server in a process: a second one is "Only one instance of qtest can be created". */
QtestServer *qtest_server_new(const QtestOptions *options, Error **errp);
void qtest_server_free(QtestServer *s);

/* The transport's reports. Bytes come in any portions; a line is run when its newline arrives. */
void qtest_opened(QtestServer *s);
void qtest_feed(QtestServer *s, const char *buf, size_t len);
void qtest_closed(QtestServer *s);

/* True while a client is connected: then "terminating on signal" is not reported. */
bool qtest_client_connected(void);

#endif
