/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Line editing on a terminal, with libedit. */
#include "monitor/private.h"

#include "loop/aio.h"

#include <editline/readline.h>
#include <stdio.h>
#include <stdlib.h>

static LineFn *line_fn;
static void *line_opaque;
static const char *line_prompt;

bool line_edit_available(void)
{
    return true;
}

/* libedit gives the terminal back at the end of each line; asking again takes it, and shows the prompt. */
static void on_line(char *line)
{
    if (line && *line) {
        add_history(line);
        line_fn(line_opaque, line);
    }
    free(line);
    if (line_prompt && !(monitor_config.quitting && monitor_config.quitting())) {
        rl_callback_handler_install(line_prompt, on_line);
    }
}

static void on_readable(void *opaque)
{
    rl_callback_read_char();
}

static char *next_match(const char *text, int state)
{
    static GPtrArray *matches;
    static guint pos;

    if (!state) {
        if (matches) {
            g_ptr_array_free(matches, TRUE);
        }
        g_autofree char *prefix = g_strndup(rl_line_buffer, (gsize)rl_point);
        matches = hmp_complete(prefix);
        pos = 0;
    }
    /* libedit completes the last word alone. */
    while (matches && pos < matches->len) {
        const char *whole = g_ptr_array_index(matches, pos++);
        const char *space = g_strrstr(whole, " ");
        return strdup(rl_point && space && g_strrstr(rl_line_buffer, " ") ? space + 1 : whole);
    }
    return NULL;
}

void line_edit_start(const char *prompt, LineFn *fn, void *opaque)
{
    line_fn = fn;
    line_prompt = prompt;
    line_opaque = opaque;
    rl_readline_name = "qemu";
    rl_completion_entry_function = next_match;
    rl_callback_handler_install(prompt, on_line);
    aio_set_fd_handler(aio_context_main(), 0, on_readable, NULL, NULL, NULL, NULL);
}

void line_edit_stop(void)
{
    aio_set_fd_handler(aio_context_main(), 0, NULL, NULL, NULL, NULL, NULL);
    line_prompt = NULL;
    rl_callback_handler_remove();
}
