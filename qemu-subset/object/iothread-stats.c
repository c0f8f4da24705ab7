/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What iothreads did and do: QMP. */
#include "object/iothread.h"
#include "object/private.h"

#include "qapi/qapi-commands-misc.h"

_Static_assert(IOTHREAD_PHASE__MAX == (int)AIO_PHASES && IOTHREAD_PHASE_SUBMIT == (int)AIO_PHASE_SUBMIT &&
                   IOTHREAD_PHASE_WAIT == (int)AIO_PHASE_WAIT && IOTHREAD_PHASE_HANDLERS == (int)AIO_PHASE_HANDLERS,
               "the schema's phases are the loop's");

static intList *histogram(const AioCounter *buckets)
{
    intList *list = NULL, **tail = &list;

    for (int i = 0; i < AIO_HISTOGRAM; i++) {
        QAPI_LIST_APPEND(tail, (int64_t)aio_stat_get(&buckets[i]));
    }
    return list;
}

static IothreadInFlight *in_flight(const AioSourceState *s, int64_t now)
{
    IothreadInFlight *out = g_new0(IothreadInFlight, 1);

    out->engine = g_strdup(s->name);
    out->requests = s->count;
    if (s->what) {
        out->oldest = g_new0(IothreadRequest, 1);
        out->oldest->operation = g_strdup(s->what);
        out->oldest->offset = s->offset;
        out->oldest->bytes = s->bytes;
        out->oldest->age_ns = MAX(0, now - s->since_ns);
    }
    return out;
}

IothreadState *iothread_state(AioContext *ctx)
{
    IothreadState *out = g_new0(IothreadState, 1);
    IothreadInFlightList **tail = &out->in_flight;
    AioContextState state;
    int64_t now;

    aio_context_state(ctx, &state);
    now = aio_now_ns();
    out->monitor = g_strdup(aio_monitor_name(aio_context_monitor(ctx)));
    out->phase = (IothreadPhase)state.phase;
    out->since_ns = MAX(0, now - state.since_ns);
    out->has_fd = state.phase == AIO_PHASE_HANDLERS;
    out->fd = state.handler_fd;
    for (unsigned int i = 0; i < state.n_sources; i++) {
        QAPI_LIST_APPEND(tail, in_flight(&state.source[i], now));
    }
    return out;
}

/* NULL if they were never measured. */
static IothreadPhaseTimes *phase_times(AioContext *ctx)
{
    const AioCounter *ns = aio_context_stats(ctx)->phase_ns;
    IothreadPhaseTimes *out;
    uint64_t sum = 0;

    for (int i = 0; i < AIO_PHASES; i++) {
        sum += aio_stat_get(&ns[i]);
    }
    if (!sum && !aio_context_phase_times(ctx)) {
        return NULL;
    }
    out = g_new0(IothreadPhaseTimes, 1);
    out->outside = aio_stat_get(&ns[AIO_PHASE_OUTSIDE]);
    out->poll = aio_stat_get(&ns[AIO_PHASE_POLL]);
    out->wait = aio_stat_get(&ns[AIO_PHASE_WAIT]);
    out->completions = aio_stat_get(&ns[AIO_PHASE_COMPLETIONS]);
    out->handlers = aio_stat_get(&ns[AIO_PHASE_HANDLERS]);
    out->bottom_halves = aio_stat_get(&ns[AIO_PHASE_BOTTOM_HALVES]);
    out->timers = aio_stat_get(&ns[AIO_PHASE_TIMERS]);
    out->submit = aio_stat_get(&ns[AIO_PHASE_SUBMIT]);
    return out;
}

static IothreadStats *stats_of(IOThread *t)
{
    AioContext *ctx = iothread_context(t);
    const AioStats *s = aio_context_stats(ctx);
    IothreadStats *out = g_new0(IothreadStats, 1);

    out->id = g_strdup(iothread_id(t));
    out->thread_id = iothread_thread_id(t);
    out->passes = aio_stat_get(&s->passes);
    out->polls = aio_stat_get(&s->polls);
    out->polls_success = aio_stat_get(&s->polls_success);
    out->poll_yields = aio_stat_get(&s->poll_yields);
    out->sleeps = aio_stat_get(&s->sleeps);
    out->wait_calls = aio_stat_get(&s->wait_calls);
    out->control_calls = aio_stat_get(&s->control_calls);
    out->notify_sent = aio_stat_get(&s->notify_sent);
    out->notify_reads = aio_stat_get(&s->notify_cleared);
    out->notify_saved = aio_stat_get(&s->notify_saved);
    out->submit_calls = aio_stat_get(&s->submit_calls);
    out->requests = aio_stat_get(&s->requests);
    out->registered_buffer_requests = aio_stat_get(&s->buffer_requests);
    out->registered_file_requests = aio_stat_get(&s->file_requests);
    out->batch_max = aio_stat_get(&s->batch_max);
    out->batch_histogram = histogram(s->batch_histogram);
    out->reaps = aio_stat_get(&s->reaps);
    out->completions = aio_stat_get(&s->completions);
    out->reap_histogram = histogram(s->reap_histogram);
    out->queue_residence_histogram = histogram(s->residence_histogram);
    out->phase_times = phase_times(ctx);
    out->state = iothread_state(ctx);
    return out;
}

IothreadStatsList *qmp_x_query_iothread_stats(Error **errp)
{
    IothreadStatsList *list = NULL, **tail = &list;
    g_autoptr(GList) children = object_children(object_objects());

    for (GList *l = g_list_last(children); l; l = l->prev) {
        if (object_is_a(l->data, TYPE_IOTHREAD)) {
            QAPI_LIST_APPEND(tail, stats_of(l->data));
        }
    }
    return list;
}
