/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people and clients type about block devices; the QMP commands are declared by the schema. Main thread. */
#ifndef BLOCK_COMMANDS_H
#define BLOCK_COMMANDS_H

#include "base/hmp.h"
#include "block/backend.h"
#include "qapi/opts.h"

/* info block, info blockstats, block_resize, drive_add, drive_del; ended by a NULL name. */
extern const HmpCommand block_hmp_commands[];

/* -blockdev: key=value text or JSON; the check opens nothing. */
bool blockdev_check_option(const char *arg, Error **errp);
bool blockdev_add_option(const char *arg, Error **errp);

/* The bus that -drive if= names; a machine knows which it has. */
typedef enum DriveInterface {
    DRIVE_NONE,
    DRIVE_IDE,
    DRIVE_SCSI,
    DRIVE_FLOPPY,
    DRIVE_PFLASH,
    DRIVE_MTD,
    DRIVE_SD,
    DRIVE_VIRTIO,
    DRIVE_XEN,
    DRIVE_INTERFACES,
} DriveInterface;

/* One -drive that has been opened. if=virtio wants a virtio-blk-pci with drive=@id, which the caller has to make. */
typedef struct Drive {
    ListNode link;
    DriveInterface interface;
    unsigned int bus, unit;
    char *id, *params; /* its name, and the text that it was made from */
    BlockBackend *blk;
    bool cdrom;
} Drive;

/*
 * -drive. NULL with @errp set; or NULL with *@help set after "format=help": then block_formats_help() is the answer.
 * The drive is kept in a list until drive_free().
 */
Drive *drive_new(const char *params, DriveInterface default_interface, bool *help, Error **errp);
/* The same for @params that are parsed already; takes settings out of @opts. */
Drive *drive_new_parsed(const char *params, Opts *opts, DriveInterface default_interface, bool *help, Error **errp);
/* Pass NULL to begin; in the order of the command line. */
Drive *drive_next(Drive *drive);
Drive *drive_by_backend(const BlockBackend *blk);
/* Drops the backend, too. */
void drive_free(Drive *drive);
void drive_free_all(void);
/* "Supported formats: ..." */
void block_formats_help(GString *out);

#endif
