/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the block options of -drive to a node. */
#ifndef BLOCK_DRIVE_OPTIONS_H
#define BLOCK_DRIVE_OPTIONS_H

#include "block/node.h"
#include "qapi/opts.h"

/*
 * Open what @file (a filename, maybe with a protocol in front; NULL) and @format (NULL: guess) say, with the options that
 * are left in @opts. Main thread. NULL with @errp set on failure.
 */
BlockNode *drive_open_node(Opts *opts, const char *file, const char *format, Error **errp);
/* The tree that dotted names of @opts make; leaves are strings, a name that cannot be one is complained of in the words of -drive. */
json_t *block_options_tree(const Opts *opts, Error **errp);
/* Open the node that @o, with strings for leaves, describes; complaints in the words of -drive. */
BlockNode *drive_open_tree(json_t *o, bool probed, Error **errp);

#endif
