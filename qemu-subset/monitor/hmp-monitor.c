/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP sessions: the monitor-hmp object, its prompt and its lines. */
#include "monitor/private.h"

#define PROMPT "(qemu) "

struct HmpMonitor {
    Object obj;
    char *chardev_id;
    Chardev *chardev;
    Readline *rl;
    bool on_terminal, turn_over;
};

#define HMP(obj) ((HmpMonitor *)(obj))

static void write_text(void *opaque, const char *text)
{
    HmpMonitor *m = opaque;
    g_autoptr(GString) out = g_string_new(text);

    g_string_replace(out, "\n", "\r\n", 0);
    chardev_write(m->chardev, out->str, out->len);
}

static void run_line(void *opaque, const char *line)
{
    HmpMonitor *m = opaque;
    g_autoptr(GString) out = g_string_new(NULL);

    /* The command may poll the loop: the next line waits for the answer to this one. */
    object_ref(&m->obj);
    if (!m->on_terminal) {
        chardev_pause(m->chardev);
    }
    hmp_run_line(line, out);
    write_text(m, out->str);
    if (!m->on_terminal) {
        if (!monitor_config.quitting || !monitor_config.quitting()) {
            readline_show_prompt(m->rl);
        }
        chardev_resume(m->chardev);
        m->turn_over = chardev_turn_over(m->chardev);
    }
    object_unref(&m->obj);
}

static size_t on_read(void *opaque, const uint8_t *buf, size_t len)
{
    HmpMonitor *m = opaque;
    size_t n = 0;

    m->turn_over = false;
    while (n < len && !m->turn_over && !chardev_enough(m->chardev)) {
        readline_feed(m->rl, buf + n++, 1);
    }
    return n;
}

static void on_event(void *opaque, ChardevEvent event)
{
    HmpMonitor *m = opaque;
    g_autofree char *banner =
        g_strdup_printf("QEMU %d.%d.%d monitor - type 'help' for more information\n", QEMU_VERSION_MAJOR,
                        QEMU_VERSION_MINOR, QEMU_VERSION_MICRO);

    if (event == CHARDEV_OPENED) {
        readline_free(m->rl);
        m->rl = readline_new(PROMPT, write_text, run_line, m);
        write_text(m, banner);
        if (!m->on_terminal) {
            readline_show_prompt(m->rl);
        }
    }
}

static const ChardevFrontend frontend = {.read = on_read, .event = on_event};

static bool hmp_complete_object(Object *obj, Error **errp)
{
    HmpMonitor *m = HMP(obj);
    Chardev *c = chardev_required(m->chardev_id, errp);

    if (!c) {
        return false;
    }
    m->chardev = c;
    m->on_terminal = chardev_is_tty(c) && line_edit_available();
    if (!chardev_set_frontend(c, &frontend, m, errp)) {
        m->chardev = NULL;
        return false;
    }
    if (m->on_terminal) {
        chardev_pause(c);
        chardev_lend_terminal();
        line_edit_start(PROMPT, run_line, m);
    }
    return true;
}

static bool hmp_can_be_deleted(Object *obj, Error **errp)
{
    error_setg(errp, "Deleting HMP monitors is not supported");
    return false;
}

static void hmp_finalize(Object *obj)
{
    HmpMonitor *m = HMP(obj);

    if (m->chardev) {
        if (m->on_terminal) {
            line_edit_stop();
            chardev_resume(m->chardev);
        }
        chardev_clear_frontend(m->chardev);
    }
    readline_free(m->rl);
    g_free(m->chardev_id);
}

static const char *const creatable[] = {"user-creatable", NULL};

static const ObjectProperty properties[] = {
    {.name = "chardev", .kind = PROP_STRING, .get = object_get_string, .set = object_set_string,
     .required = true, .offset = offsetof(HmpMonitor, chardev_id)},
    {0},
};

const ObjectType *hmp_monitor_type(void)
{
    static const ObjectType type = {
        .name = TYPE_MONITOR_HMP, .parent = "object", .size = sizeof(HmpMonitor), .interfaces = creatable,
        .properties = properties, .finalize = hmp_finalize,
        .complete = hmp_complete_object, .can_be_deleted = hmp_can_be_deleted,
    };
    return &type;
}
