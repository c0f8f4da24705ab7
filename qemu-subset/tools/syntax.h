/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The syntax of options, checked in the order typed before any of them has an effect. */
#ifndef TOOLS_SYNTAX_H
#define TOOLS_SYNTAX_H

#include "tools/options.h"

/*
 * Check @u, one of @all, and keep what its argument was parsed to there. Errors of syntax come first because a later
 * option that is misspelt must not wait for an earlier one to open its files.
 */
bool syntax_check(OptionUse *u, const OptionUse *all, Error **errp);

#endif
