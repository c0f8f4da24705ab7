/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plain line editor for pipes and sockets: it echoes in the way that clients of QEMU's monitor filter out. */
#include "monitor/private.h"

#include <string.h>

#define LINE_MAX_BYTES 4095
#define HISTORY_MAX 64

struct Readline {
    const char *prompt;
    void (*write)(void *opaque, const char *text);
    LineFn *fn;
    void *opaque;
    GString *line;
    size_t cursor, shown_cursor;
    GPtrArray *history;
    guint history_pos; /* history->len: the line that is being typed */
    enum { NORMAL, ESCAPE, CSI } state;
};

Readline *readline_new(const char *prompt, void (*write)(void *opaque, const char *text), LineFn *fn, void *opaque)
{
    Readline *rl = g_new0(Readline, 1);

    rl->prompt = prompt;
    rl->write = write;
    rl->fn = fn;
    rl->opaque = opaque;
    rl->line = g_string_new(NULL);
    rl->history = g_ptr_array_new_with_free_func(g_free);
    return rl;
}

void readline_free(Readline *rl)
{
    if (rl) {
        g_string_free(rl->line, TRUE);
        g_ptr_array_free(rl->history, TRUE);
        g_free(rl);
    }
}

void readline_show_prompt(Readline *rl)
{
    rl->write(rl->opaque, rl->prompt);
    rl->shown_cursor = 0;
}

/* Back to the start of the line, the text, erase the rest, back to the cursor. */
static void redraw(Readline *rl)
{
    g_autoptr(GString) out = g_string_new(NULL);

    for (size_t i = 0; i < rl->shown_cursor; i++) {
        g_string_append(out, "\033[D");
    }
    g_string_append_len(out, rl->line->str, (gssize)rl->line->len);
    g_string_append(out, "\033[K");
    for (size_t i = rl->cursor; i < rl->line->len; i++) {
        g_string_append(out, "\033[D");
    }
    rl->shown_cursor = rl->cursor;
    rl->write(rl->opaque, out->str);
}

static void set_line(Readline *rl, const char *text)
{
    g_string_assign(rl->line, text);
    rl->cursor = rl->line->len;
}

static void history_move(Readline *rl, int by)
{
    guint pos = rl->history_pos + (guint)by;

    if (pos < rl->history->len) {
        rl->history_pos = pos;
        set_line(rl, g_ptr_array_index(rl->history, pos));
    } else if (pos == rl->history->len) {
        rl->history_pos = pos;
        set_line(rl, "");
    }
}

static void finish_line(Readline *rl)
{
    g_autofree char *line = g_strdup(rl->line->str);

    rl->write(rl->opaque, "\n");
    if (*line) {
        g_ptr_array_add(rl->history, g_strdup(line));
        if (rl->history->len > HISTORY_MAX) {
            g_ptr_array_remove_index(rl->history, 0);
        }
    }
    rl->history_pos = rl->history->len;
    set_line(rl, "");
    rl->shown_cursor = 0;
    rl->fn(rl->opaque, line);
}

/* One completion is taken; several are listed. */
static void complete(Readline *rl)
{
    g_autofree char *prefix = g_strndup(rl->line->str, rl->cursor);
    g_autoptr(GPtrArray) names = hmp_complete(prefix);

    if (names->len == 1) {
        set_line(rl, g_ptr_array_index(names, 0));
        g_string_append_c(rl->line, ' ');
        rl->cursor = rl->line->len;
    } else if (names->len > 1) {
        rl->write(rl->opaque, "\n");
        for (guint i = 0; i < names->len; i++) {
            rl->write(rl->opaque, g_ptr_array_index(names, i));
            rl->write(rl->opaque, "\n");
        }
        readline_show_prompt(rl);
    }
}

static void erase(Readline *rl, size_t pos)
{
    if (pos < rl->line->len) {
        g_string_erase(rl->line, (gssize)pos, 1);
        rl->cursor = pos;
    }
}

static void on_control(Readline *rl, uint8_t ch)
{
    switch (ch) {
    case 1: /* ^A */
        rl->cursor = 0;
        break;
    case 4: /* ^D */
        erase(rl, rl->cursor);
        break;
    case 5: /* ^E */
        rl->cursor = rl->line->len;
        break;
    case 8:
    case 127:
        if (rl->cursor) {
            erase(rl, rl->cursor - 1);
        }
        break;
    case 9:
        complete(rl);
        break;
    case 11: /* ^K */
        g_string_truncate(rl->line, rl->cursor);
        break;
    case 14: /* ^N */
        history_move(rl, 1);
        break;
    case 16: /* ^P */
        history_move(rl, -1);
        break;
    case 21: /* ^U */
        g_string_erase(rl->line, 0, (gssize)rl->cursor);
        rl->cursor = 0;
        break;
    default:
        break;
    }
}

static void on_csi(Readline *rl, uint8_t ch)
{
    rl->state = NORMAL;
    switch (ch) {
    case 'A':
        history_move(rl, -1);
        break;
    case 'B':
        history_move(rl, 1);
        break;
    case 'C':
        rl->cursor += rl->cursor < rl->line->len;
        break;
    case 'D':
        rl->cursor -= rl->cursor > 0;
        break;
    case 'F':
        rl->cursor = rl->line->len;
        break;
    case 'H':
        rl->cursor = 0;
        break;
    default:
        if (ch >= '0' && ch <= '9') {
            rl->state = CSI; /* the rest of ESC [ N ~ follows */
        } else if (ch == '~') {
            erase(rl, rl->cursor);
        }
        break;
    }
}

static void on_byte(Readline *rl, uint8_t ch)
{
    if (rl->state == ESCAPE) {
        rl->state = ch == '[' || ch == 'O' ? CSI : NORMAL;
        return;
    }
    if (rl->state == CSI) {
        on_csi(rl, ch);
    } else if (ch == 27) {
        rl->state = ESCAPE;
        return;
    } else if (ch == '\n' || ch == '\r') {
        finish_line(rl);
        return;
    } else if (ch < 32 || ch == 127) {
        on_control(rl, ch);
    } else if (rl->line->len < LINE_MAX_BYTES) {
        g_string_insert_c(rl->line, (gssize)rl->cursor, (char)ch);
        rl->cursor++;
    }
    redraw(rl);
}

void readline_feed(Readline *rl, const uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        on_byte(rl, buf[i]);
    }
}
