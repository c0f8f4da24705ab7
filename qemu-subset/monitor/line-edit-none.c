/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A build without libedit: terminals get the plain editor. */
#include "monitor/private.h"

bool line_edit_available(void)
{
    return false;
}

void line_edit_start(const char *prompt, LineFn *fn, void *opaque)
{
    g_assert_not_reached();
}

void line_edit_stop(void)
{
    g_assert_not_reached();
}
