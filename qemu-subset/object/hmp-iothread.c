/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HMP commands that show iothreads, their counters, and what they are doing. */
#include "object/iothread.h"
#include "object/private.h"

#include "qapi/qapi-commands-misc.h"

#include <inttypes.h>

/* A loop that dispatches for so long counts as stuck: none of its other work is done meanwhile. */
#define STUCK_NS INT64_C(500000000)

static void print_activity(GString *out, const IothreadState *s)
{
    int64_t ms = s->since_ns / 1000000;

    g_string_append(out, "  state: ");
    switch (s->phase) {
    case IOTHREAD_PHASE_WAIT:
        g_string_append_printf(out, "asleep in %s for %" PRId64 " ms\n", s->monitor, ms);
        return;
    case IOTHREAD_PHASE_POLL:
        g_string_append(out, "polling\n");
        return;
    case IOTHREAD_PHASE_OUTSIDE:
        g_string_append(out, "between two rounds");
        break;
    case IOTHREAD_PHASE_HANDLERS:
        g_string_append_printf(out, "in the handler of fd %" PRId64, s->fd);
        break;
    case IOTHREAD_PHASE_SUBMIT:
        g_string_append(out, "submitting requests");
        break;
    default:
        g_string_append_printf(out, "running %s", IothreadPhase_str(s->phase));
    }
    if (s->since_ns >= STUCK_NS) {
        g_string_append_printf(out, ", does not answer since %" PRId64 " ms", ms);
    }
    g_string_append_c(out, '\n');
}

static void print_state(GString *out, const IothreadState *s)
{
    print_activity(out, s);
    for (const IothreadInFlightList *l = s->in_flight; l; l = l->next) {
        const IothreadRequest *r = l->value->oldest;

        g_string_append_printf(out, "  in flight in %s: %" PRIu64, l->value->engine, l->value->requests);
        if (r) {
            g_string_append_printf(out, ", the oldest for %" PRId64 " ms: %s", r->age_ns / 1000000, r->operation);
            if (r->bytes) {
                g_string_append_printf(out, " of %" PRIu64 " bytes at %" PRIu64, r->bytes, r->offset);
            }
        }
        g_string_append_c(out, '\n');
    }
}

static void print_context(GString *out, AioContext *ctx)
{
    IothreadState *state = iothread_state(ctx);

    print_state(out, state);
    qapi_free_IothreadState(state);
}

void hmp_info_iothreads(json_t *args, GString *out)
{
    IOThreadInfoList *list = qmp_query_iothreads(NULL);
    bool verbose = json_object_get(args, "verbose");

    for (IOThreadInfoList *l = list; l; l = l->next) {
        const IOThreadInfo *t = l->value;
        g_string_append_printf(out, "%s:\n  thread_id=%" PRId64 "\n", t->id, t->thread_id);
        g_string_append_printf(out, "  poll-max-ns=%" PRId64 "\n", t->poll_max_ns);
        g_string_append_printf(out, "  poll-grow=%" PRId64 "\n", t->poll_grow);
        g_string_append_printf(out, "  poll-shrink=%" PRId64 "\n", t->poll_shrink);
        g_string_append_printf(out, "  poll-weight=%" PRId64 "\n", t->poll_weight);
        g_string_append_printf(out, "  aio-max-batch=%" PRId64 "\n", t->aio_max_batch);
        if (verbose) {
            print_context(out, iothread_context(iothread_by_id(t->id)));
        }
    }
    if (verbose) {
        /* It serves the disks that have no iothread. */
        g_string_append(out, "main loop:\n");
        print_context(out, aio_context_main());
    }
    qapi_free_IOThreadInfoList(list);
}

/* Buckets as "1:n 2:n 4:n", each named by its lower bound; empty ones are left out. */
static void print_histogram(GString *out, const char *name, const intList *buckets)
{
    g_string_append_printf(out, "  %s=", name);
    const char *space = "";
    for (int i = 0; buckets; buckets = buckets->next, i++) {
        if (buckets->value) {
            g_string_append_printf(out, "%s%llu:%" PRId64, space, 1ull << i, buckets->value);
            space = " ";
        }
    }
    g_string_append_c(out, '\n');
}

static void print_phase_times(GString *out, const IothreadPhaseTimes *p)
{
    const struct {
        const char *name;
        uint64_t ns;
    } rows[] = {
        {"outside", p->outside}, {"poll", p->poll}, {"wait", p->wait}, {"completions", p->completions},
        {"handlers", p->handlers}, {"bottom-halves", p->bottom_halves}, {"timers", p->timers}, {"submit", p->submit},
    };

    g_string_append(out, "  phase-us=");
    for (unsigned int i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_string_append_printf(out, "%s%s:%" PRIu64, i ? " " : "", rows[i].name, rows[i].ns / 1000);
    }
    g_string_append_c(out, '\n');
}

static void print_stats(GString *out, const IothreadStats *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"passes", s->passes}, {"polls", s->polls}, {"polls-success", s->polls_success},
        {"poll-yields", s->poll_yields}, {"sleeps", s->sleeps},
        {"wait-calls", s->wait_calls}, {"control-calls", s->control_calls}, {"notify-sent", s->notify_sent},
        {"notify-reads", s->notify_reads}, {"notify-saved", s->notify_saved}, {"submit-calls", s->submit_calls},
        {"requests", s->requests}, {"registered-buffer-requests", s->registered_buffer_requests},
        {"registered-file-requests", s->registered_file_requests}, {"batch-max", s->batch_max}, {"reaps", s->reaps},
        {"completions", s->completions},
    };

    g_string_append_printf(out, "%s:\n", s->id);
    for (unsigned int i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_string_append_printf(out, "  %s=%" PRIu64 "\n", rows[i].name, rows[i].value);
    }
    print_histogram(out, "batch-histogram", s->batch_histogram);
    print_histogram(out, "reap-histogram", s->reap_histogram);
    print_histogram(out, "queue-residence-us", s->queue_residence_histogram);
    if (s->phase_times) {
        print_phase_times(out, s->phase_times);
    }
}

void hmp_info_iothread_stats(json_t *args, GString *out)
{
    IothreadStatsList *list = qmp_x_query_iothread_stats(NULL);

    for (IothreadStatsList *l = list; l; l = l->next) {
        print_stats(out, l->value);
    }
    qapi_free_IothreadStatsList(list);
}
