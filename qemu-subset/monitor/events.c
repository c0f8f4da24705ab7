/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events on their way to QMP clients: time stamps, rate limits, and the way from other threads. */
#include "monitor/private.h"

#include "loop/timer.h"

#include <string.h>

/* Events that come in floods; a burst shows its first at once and its last when the interval is over. */
static const struct {
    const char *name, *key_member;
} limited[] = {
    {"BLOCK_IO_ERROR", "qom-path"},
};
#define RATE_LIMIT_NS 1000000000

typedef struct Throttle {
    char *key;
    json_t *waiting; /* the latest event that was held back */
    AioTimer timer;
} Throttle;

static GHashTable *throttles; /* key -> Throttle */

typedef struct Foreign {
    char *name;
    json_t *data;
    int64_t host_us;
} Foreign;

static ClockType limit_clock(void)
{
    return monitor_config.virtual_clock ? CLOCK_TYPE_VIRTUAL : CLOCK_TYPE_REALTIME;
}

static json_t *make_message(const char *name, json_t *data, int64_t host_us)
{
    json_t *m = json_object();
    json_t *stamp = json_object();

    json_object_set_new(stamp, "seconds", json_integer(host_us / G_USEC_PER_SEC));
    json_object_set_new(stamp, "microseconds", json_integer(host_us % G_USEC_PER_SEC));
    json_object_set_new(m, "timestamp", stamp);
    json_object_set_new(m, "event", json_string(name));
    if (data) {
        json_object_set_new(m, "data", data);
    }
    return m;
}

static void throttle_free(void *p)
{
    Throttle *t = p;

    if (aio_timer_pending(&t->timer)) {
        aio_timer_del(&t->timer);
    }
    json_decref(t->waiting);
    g_free(t->key);
    g_free(t);
}

static void throttle_expired(void *opaque)
{
    Throttle *t = opaque;

    if (!t->waiting) {
        g_hash_table_remove(throttles, t->key);
        return;
    }
    qmp_broadcast(t->waiting);
    json_decref(t->waiting);
    t->waiting = NULL;
    aio_timer_mod_ns(&t->timer, clock_get_ns(limit_clock()) + RATE_LIMIT_NS);
}

/* The key of a limited event, NULL if it is not limited. A stopped machine must be reported however fast it comes. */
static char *throttle_key(const char *name, const json_t *data)
{
    const char *action = json_string_value(json_object_get(data, "action"));

    for (unsigned int i = 0; i < G_N_ELEMENTS(limited); i++) {
        if (!strcmp(name, limited[i].name) && !(action && !strcmp(action, "stop"))) {
            const char *id = json_string_value(json_object_get(data, limited[i].key_member));
            return g_strdup_printf("%s:%s", name, id ? id : "");
        }
    }
    return NULL;
}

static void emit_main(const char *name, json_t *data, int64_t host_us)
{
    g_autofree char *key = throttle_key(name, data);
    json_t *message = make_message(name, data, host_us);
    Throttle *t = key ? g_hash_table_lookup(throttles, key) : NULL;

    if (t) {
        json_decref(t->waiting);
        t->waiting = message;
        return;
    }
    qmp_broadcast(message);
    json_decref(message);
    if (key) {
        t = g_new0(Throttle, 1);
        t->key = g_steal_pointer(&key);
        aio_timer_init(&t->timer, aio_context_main(), limit_clock(), throttle_expired, t);
        g_hash_table_insert(throttles, t->key, t);
        aio_timer_mod_ns(&t->timer, clock_get_ns(limit_clock()) + RATE_LIMIT_NS);
    }
}

static void foreign_bh(void *opaque)
{
    Foreign *f = opaque;

    emit_main(f->name, f->data, f->host_us);
    g_free(f->name);
    g_free(f);
}

static void on_event(void *opaque, const char *name, json_t *data)
{
    int64_t now = g_get_real_time();

    if (aio_context_in_home(aio_context_main())) {
        emit_main(name, data, now);
        return;
    }
    Foreign *f = g_new0(Foreign, 1);
    f->name = g_strdup(name);
    f->data = data;
    f->host_us = now;
    aio_bh_schedule_oneshot(aio_context_main(), foreign_bh, f);
}

void events_init(void)
{
    throttles = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, throttle_free);
    qapi_event_set_sink(on_event, NULL);
}

void events_cleanup(void)
{
    qapi_event_set_sink(NULL, NULL);
    g_clear_pointer(&throttles, g_hash_table_destroy);
}
