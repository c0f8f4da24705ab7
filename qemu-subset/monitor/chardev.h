/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Character devices: byte streams to monitors and to qtest. Main thread only. */
#ifndef MONITOR_CHARDEV_H
#define MONITOR_CHARDEV_H

#include "base/error.h"
#include "qapi/opts.h"

#include <sys/types.h>

typedef struct Chardev Chardev;

typedef enum ChardevEvent { CHARDEV_OPENED, CHARDEV_CLOSED } ChardevEvent;

/*
 * Who uses the stream. read() returns how many bytes it took: all, unless chardev_enough() or chardev_turn_over() says that it
 * is time to stop. It gets the rest again in a later pass. It may pause the device with chardev_pause().
 */
typedef struct ChardevFrontend {
    size_t (*read)(void *opaque, const uint8_t *buf, size_t len);
    void (*event)(void *opaque, ChardevEvent event);
} ChardevFrontend;

/*
 * -chardev: "BACKEND,id=ID,...", with "backend" as the implied key. Registers it; NULL with @errp set. The name of a
 * pseudo-terminal is told on @out, or on standard output if that is NULL.
 */
Chardev *chardev_new_opts(const char *params, Error **errp);
Chardev *chardev_new_parsed(const Opts *opts, GString *out, Error **errp);
/* The same with any unused @id and without telling anything. */
Chardev *chardev_add(const char *id, const Opts *opts, Error **errp);
/* Is there a backend as @opts say; and has it all the keys, if there is? False with @errp set. */
bool chardev_check_backend(const char *id, const Opts *opts, Error **errp);
bool chardev_check_keys(const Opts *opts, Error **errp);
/* What nothing uses; waits for nobody. "Chardev 'ID' is busy" or "not found". */
bool chardev_remove(const char *id, Error **errp);
/* The names of the backends, ended by NULL. */
const char *chardev_backend_name(unsigned int i);
/* "Available chardev backend types:" and their names. */
void chardev_list_backends(GString *out);
/*
 * The short form of -qmp, -monitor, -serial and -qtest ("stdio", "unix:PATH,server=on,wait=off", "tcp:H:P", "null",
 * "chardev:ID"). A device made here gets @label. NULL with @errp set; "none" gives NULL without error.
 */
Chardev *chardev_new_short(const char *label, const char *text, Error **errp);
/* Its two halves. NULL without error says no more than that @text does not have the form. */
Opts *chardev_parse_short(const char *text, Error **errp);
Chardev *chardev_new_parsed_short(const char *label, const Opts *opts, Error **errp);
Chardev *chardev_find(const char *id);
/* The device that a property "chardev" with value @id names; NULL with @errp set, also if the property was not given. */
Chardev *chardev_required(const char *id, Error **errp);
/* In creation order; NULL begins. */
Chardev *chardev_next(Chardev *c);
const char *chardev_label(const Chardev *c);
/* What it is connected to, for people; owned by the caller. */
char *chardev_filename(const Chardev *c);
/* The name of the pseudo-terminal; NULL if it is none. */
const char *chardev_pty_name(const Chardev *c);
bool chardev_frontend_open(const Chardev *c);
/* True if the device is standard input and output on a terminal. */
bool chardev_is_tty(const Chardev *c);
/* Leave the modes of that terminal to a line editor: it wants to find them as a person left them. */
void chardev_lend_terminal(void);

/* One frontend; "chardev 'ID' is already in use". CHARDEV_OPENED comes at once if the peer is there. */
bool chardev_set_frontend(Chardev *c, const ChardevFrontend *ops, void *opaque, Error **errp);
void chardev_clear_frontend(Chardev *c);
/*
 * All of it, now or as the peer takes it. Dropped while there is no peer. A peer that leaves 16 MiB unread is not read until it
 * has taken some.
 */
void chardev_write(Chardev *c, const void *buf, size_t len);
/* For read(): the peer has left so much unread that what it asks for has to wait. */
bool chardev_enough(const Chardev *c);
/*
 * For read(), between two commands: so much time has gone by in this call that others should have their turn. When it says so,
 * read() is called again in a later pass, if need be with no bytes at all, and nothing is read before.
 */
bool chardev_turn_over(Chardev *c);
/* Bytes that the peer has not taken yet. */
size_t chardev_unread(const Chardev *c);
/*
 * End the connection because the peer does not read, with a message: what it left is dropped at once, and the frontend hears
 * CHARDEV_CLOSED a moment later, when no command is running.
 */
void chardev_hang_up(Chardev *c);
/* Stop and resume calls of read(); nests. */
void chardev_pause(Chardev *c);
void chardev_resume(Chardev *c);
/*
 * A client's command must not run in the middle of another one, nor of start-up: input is held back in nested passes of
 * the main loop by itself, and as long as this says so. Nothing is lost; reading goes on a moment later.
 */
void chardev_hold_input(bool hold);
/* For tests: the clock that chardev_turn_over() looks at, in nanoseconds. NULL: the real one. */
void chardev_set_turn_clock(int64_t (*clock)(void));
/* Push out what is queued, waiting a moment for slow readers; then close everything and remove sockets. */
void chardev_cleanup(void);
/* For a process that goes to the background: stdio devices fail from now on. */
void chardev_forbid_stdio(void);

#endif
