/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inside of AioContext: what the files of this room share. No other room includes it. */
#ifndef LOOP_CONTEXT_H
#define LOOP_CONTEXT_H

#include "loop/aio.h"
#include "loop/event-notifier.h"
#include "loop/timer.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>

/*
 * --- Work: the primitive under bottom halves and scheduled coroutines ---
 * @fn runs once in the bottom half phase of the context; the struct is free for reuse when it is called. Whoever
 * schedules it makes sure that it is not scheduled already.
 */
typedef struct AioWork AioWork;
struct AioWork {
    void (*fn)(AioWork *work); /* NULL: a marker of the bottom half phase */
    AioWork *next;             /* while on its way from another thread */
    ListNode link;             /* touched by the home only: in AioContext.work */
};

static inline void aio_work_init(AioWork *work, void (*fn)(AioWork *))
{
    work->fn = fn;
    work->next = NULL;
    list_init(&work->link);
}

/* [any] Allocates nothing. */
void aio_work_schedule(AioContext *ctx, AioWork *work);

struct AioBH {
    AioContext *ctx;
    AioBHFn *fn;
    void *opaque;
    AioWork home;   /* scheduled by the home itself: no atomic access at all */
    AioWork remote; /* scheduled by another thread, or deleted by it */
    _Atomic unsigned int state;
};

/* --- Adaptive polling (adaptive.c) --- */
typedef struct AioPollState {
    int64_t ns;      /* how long a wait for this one would have had to poll */
    int64_t last_ns; /* when it was last dispatched */
    bool listed;     /* takes part in polling */
    bool hit;        /* is dispatched in this pass */
} AioPollState;

/* What polling watches besides handlers. */
enum { AIO_POLL_NOTIFIER, AIO_POLL_URING, AIO_POLL_KAIO, AIO_POLL_SLOT0, AIO_POLL_INNER = AIO_POLL_SLOT0 + AIO_SLOTS };

/* --- File descriptors --- */

/*
 * When there is work already, looking at descriptors costs a system call (0.2 to 0.5 us) that the work does not need. So it
 * is left out, but not in more passes in a row than this: a bottom half that always schedules itself again then pays a
 * sixteenth of that call a pass, and a descriptor waits for sixteen rounds of bottom halves at most. A descriptor that was
 * never looked at is looked at in the next pass.
 */
#define AIO_PASSES_WITHOUT_LOOK 16

typedef struct AioHandler {
    int fd;
    uint16_t events;  /* POLLIN, POLLOUT: what is watched */
    uint16_t revents; /* what happened and is not yet dispatched */
    bool poll_said_yes;
    bool deleted;     /* removed; freed when neither the pass nor the kernel refers to it */
    bool begun;       /* between begin() and end() */
    bool armed;       /* one-shot monitors: the kernel holds a request for it, which will complete */
    bool always;      /* the kernel cannot watch it (a regular file): counts as ready at all times */
    bool overflow;    /* linux-aio: watched through the second monitor */
    unsigned int index; /* poll: place in the array */
    AioHandlerFn *read, *write, *poll_ready, *begin, *end;
    AioPollFn *poll;
    void *opaque;
    AioPollState ps;
    ListNode link;       /* AioContext.handlers, later .deleted */
    ListNode ready_link; /* AioContext.ready */
    ListNode poll_link;  /* AioContext.polled while ps.listed */
    ListNode mon_link;   /* .always, or one of the monitor's lists of those that the kernel has to be asked for */
    AioContext *ctx;
    AioCompletion completion; /* one-shot monitors */
    uint64_t kernel[8];       /* linux-aio: struct iocb */
} AioHandler;

/*
 * A monitor watches descriptors. wait() returns after at most @timeout_ns (-1: no limit, 0: only look), earlier when
 * something happens or a signal arrives, having called aio_handler_ready() or aio_notifier_ready() for what happened.
 */
typedef struct FDMonOps {
    const char *name;
    /* 0, or -errno with @errp set. */
    int (*init)(AioContext *ctx, Error **errp);
    void (*done)(AioContext *ctx);
    /*
     * @h is new (@old is 0), or its events changed from @old; not while @h->armed, then a new handler takes its place. False
     * if the kernel cannot watch such a file.
     */
    bool (*watch)(AioContext *ctx, AioHandler *h, unsigned int old);
    /* @h (not "always") is being removed. A monitor that still has @h->armed set frees it later by aio_handler_free(). */
    void (*unwatch)(AioContext *ctx, AioHandler *h);
    void (*wait)(AioContext *ctx, int64_t timeout_ns);
    /* Each write of the notifier is reported once without reading it; others report it until it is read. */
    bool notifier_edge;
    /* kaio.c replaces the kernel context, in which nothing but watched descriptors is. May be NULL. */
    void (*queue_replaced)(AioContext *ctx);
} FDMonOps;

extern const FDMonOps fdmon_poll, fdmon_epoll, fdmon_io_uring, fdmon_linux_aio;

/* By monitors, from wait() or from a completion. */
void aio_handler_ready(AioContext *ctx, AioHandler *h, unsigned int revents);
static inline void aio_notifier_ready(AioContext *ctx);
void aio_handler_free(AioHandler *h);
/*
 * The kernel refuses to watch a descriptor for lack of memory: how long a wait of @timeout_ns may be until it is asked again;
 * and, beside that, report what poll(2) says of @h.
 */
int64_t aio_soon(int64_t timeout_ns);
int64_t aio_handler_look(AioContext *ctx, AioHandler *h, int64_t timeout_ns);
/* Who watches @fd, or NULL. */
AioHandler *aio_handler_find(AioContext *ctx, int fd);

/* --- Kernel queues, as the loop sees them; absent ones are linked as stubs that say so --- */
bool aio_uring_exists(const AioContext *ctx);
/* There are completions that can be reaped without entering the kernel. */
bool aio_uring_posted(const AioContext *ctx);
/* Something prepared has not gone to the kernel. */
bool aio_uring_unsubmitted(const AioContext *ctx);
unsigned int aio_uring_in_flight(const AioContext *ctx);
void aio_uring_destroy(AioContext *ctx);
bool aio_kaio_exists(const AioContext *ctx);
void aio_kaio_destroy(AioContext *ctx);
/* Requests are in flight that will not signal the notifier when they complete: do not rely on it. */
bool aio_kaio_silent(const AioContext *ctx);
/* Make the context anew with @max_events. 0 or -errno with @errp set (the old one stays). */
int aio_kaio_resize(AioContext *ctx, unsigned int max_events, Error **errp);

/* Timers of one clock: a heap ordered by expiry. */
typedef struct AioTimerHeap {
    AioTimer **timers; /* 4-ary; children of i are 4i+1..4i+4 */
    unsigned int count, size;
    bool running;
    int64_t now_ns;  /* while running: timers up to here are due */
    AioTimer *later; /* armed while running and due already: they join the heap afterwards */
} AioTimerHeap;

/* Bits of AioContext.inbox besides the pointer. */
#define AIO_INBOX_SLEEP ((uintptr_t)1)    /* the home sleeps or is about to; only ever set alone */
#define AIO_INBOX_NOTIFIED ((uintptr_t)2) /* aio_notify() was called */
#define AIO_INBOX_CLOSED ((uintptr_t)4)   /* after aio_context_shutdown() */
#define AIO_INBOX_BITS ((uintptr_t)7)

struct AioContext {
    /*
     * Everything that other threads tell the home goes through this one word (notify.c): a stack of AioWork, newest first,
     * with the bits above. It has a cache line of its own.
     */
    _Atomic uintptr_t inbox __attribute__((aligned(64)));

    /* Home only from here on. */
    ListNode work __attribute__((aligned(64))); /* AioWork to run, oldest first */
    ListNode ready;                             /* AioHandler to dispatch */
    ListNode polled;
    ListNode always;
    const FDMonOps *mon;
    int64_t poll_ns;      /* how long to poll in user space now */
    int64_t last_ns;      /* when the wait of the last pass ended, roughly */
    int64_t pass_ns;      /* aio_pass_ns(), 0 until it is asked for or known */
    AioPollParams poll;   /* in force */
    unsigned int poll_gen;
    unsigned int depth;   /* nested aio_poll() */
    unsigned int plugged;
    unsigned int skipped; /* passes in a row that did not look at descriptors */
    uint64_t writes_due;    /* eventfd writes that ends of sleep have called for */
    bool notifier_readable; /* level monitors: to be read once in this pass */
    bool resfd_signalled;   /* completions were reaped whose eventfd write the monitor may still report */
    unsigned int probe_in, probe_after; /* too long waits until polling is tried, out of so many */
    int64_t no_yield_until; /* polling keeps the processor for itself until then */
    bool poll_pays;         /* polling could have caught the last event, or did */
    bool probing;           /* the next wait polls to see whether that would do */
    bool poll_begun;        /* some handler is between begin() and end() */
    bool closing;
    bool timing;          /* phase_times as seen by this pass */
    int64_t phase_ns;     /* while timing: when the phase began */
    AioPollState inner[AIO_POLL_INNER];
    AioSource *sources[AIO_SLOTS];
    AioSource *attached[AIO_SLOTS]; /* those that are there, without gaps */
    uint8_t attached_slot[AIO_SLOTS];
    _Atomic unsigned int n_attached; /* release: what is before it in @attached can be read by anyone */
    unsigned int n_timers; /* armed, on all clocks */
    void *uring, *kaio; /* struct AioUring, AioKaio */
    void *mon_state;
    AioTimerHeap heaps[CLOCK_TYPES];
    AioWork *free_oneshots; /* memory for aio_bh_schedule_oneshot() */
    unsigned int n_free_oneshots;
    EventNotifier notifier;
    ListNode handlers, deleted;
    AioHandler **by_fd;
    unsigned int by_fd_size;
    unsigned int waiting; /* aio_wait_begin() nesting */
    AioMonitor monitor;
    unsigned int uring_want; /* AIO_URING_* asked for */
    bool is_main;
    char *name;

    /* Read by anyone. */
    _Atomic unsigned int uring_flags; /* in force */
    _Atomic unsigned int max_events;
    _Atomic bool phase_times;         /* asked for */
    _Atomic bool waited;              /* waiting != 0, for aio_wait_kick() */
    _Atomic int64_t virtual_deadline; /* of the virtual clock's heap, INT64_MAX if empty */
    _Atomic int64_t max_batch;
    _Atomic unsigned int refs;
    _Atomic unsigned int params_gen; /* changes when params do */
    pthread_mutex_t params_lock;
    AioPollParams params; /* as last set; under params_lock */
    int pool_min, pool_max; /* under params_lock */
    ListNode registry;    /* all contexts; under the registry's lock */

    AioStats stats __attribute__((aligned(64)));
};

/* The calling thread's context. */
extern _Thread_local AioContext *aio_current;

static inline bool in_home(const AioContext *ctx)
{
    return aio_current == ctx;
}

/* aio_work_schedule() for work of the home itself, which is awake and looks at its list before it sleeps. */
static inline void aio_work_schedule_home(AioContext *ctx, AioWork *work)
{
    list_append(&ctx->work, &work->link);
    aio_stat_add(&ctx->stats.notify_saved, 1);
}

static inline void aio_notifier_ready(AioContext *ctx)
{
    ctx->notifier_readable = !ctx->mon->notifier_edge;
}

/*
 * notify.c: move what other threads sent to ctx->work; true if there was anything. Ends SLEEP, which @slept says was set.
 */
bool aio_inbox_take(AioContext *ctx, bool slept);
/* No work or notification can come any more. False if there is some. */
bool aio_inbox_close(AioContext *ctx);
/* Announce sleep. False if something came in: do not sleep then. */
bool aio_inbox_sleep(AioContext *ctx);
static inline bool aio_inbox_empty(const AioContext *ctx)
{
    return atomic_load_explicit(&((AioContext *)ctx)->inbox, memory_order_relaxed) == 0;
}
/* Read the eventfd if the monitor reported it; at most once a pass. */
void aio_notifier_clear(AioContext *ctx);
/* bh.c: run the work that is queued now; true if there was any. */
bool aio_work_run(AioContext *ctx);
void aio_work_free_cache(AioContext *ctx);
/* handler.c */
bool aio_handlers_dispatch(AioContext *ctx);
void aio_handlers_free_deleted(AioContext *ctx);
void aio_handlers_destroy(AioContext *ctx);
/* source.c: flush what is pending; whatever completed; run it. */
void aio_sources_flush(AioContext *ctx);
bool aio_sources_ready(AioContext *ctx);
unsigned int aio_sources_reap(AioContext *ctx);
bool aio_sources_busy(AioContext *ctx);
void aio_sources_params_changed(AioContext *ctx);
void aio_sources_destroy(AioContext *ctx);
/* timer.c: ns until the next timer, -1 if none; run those that are due. */
int64_t aio_timers_timeout(AioContext *ctx);
bool aio_timers_run(AioContext *ctx);
void aio_timers_destroy(AioContext *ctx);
/* [any] clock.c: time passes on this clock by itself. */
bool aio_clock_runs(ClockType type);
/* context.c: call @fn for all contexts, under the registry's lock. */
void aio_context_for_each(void (*fn)(AioContext *ctx, void *opaque), void *opaque);

/* adaptive.c */
/* Take over parameters that were set since the last pass. */
void aio_adaptive_refresh(AioContext *ctx);
/* Look at everything that can be looked at in user space; true if there is work. */
bool aio_adaptive_look(AioContext *ctx);
/*
 * From *@start, poll for at most @timeout_ns (-1: no limit) and the adaptive limit; returns true if there is work, and then moves
 * *@start on by the time that other threads have had the processor meanwhile, unless that was so long that the wait is to count
 * as one that polling does not catch.
 */
bool aio_adaptive_poll(AioContext *ctx, int64_t timeout_ns, int64_t *start);
/* sched_yield(2); tests replace it. */
void aio_poll_yield_call(void);
/* Call end() of polled handlers; true if they have work after all. */
bool aio_adaptive_end(AioContext *ctx);
/*
 * At @now, after a wait of @block_ns (polling included): adjust the times. -1: there was none, as everything was here already,
 * which does not tell how long polling has to be.
 */
void aio_adaptive_account(AioContext *ctx, int64_t block_ns, int64_t now);
/* The rules alone, for tests. */
void aio_poll_state_update(AioPollState *ps, const AioPollParams *p, int64_t block_ns);
int64_t aio_poll_next(int64_t poll_ns, int64_t longest, const AioPollParams *p);

#endif
