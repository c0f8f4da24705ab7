/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AioContext: the event loop of one thread, its handlers, bottom halves and submission sections. */
#ifndef LOOP_AIO_H
#define LOOP_AIO_H

#include "base/error.h"
#include "base/list.h"
#include "loop/stats.h"

#include <stdatomic.h>
#include <stdint.h>

/*
 * One thread, its home, runs a context. Any thread may call what is marked [any]; everything else is home-only
 * and asserts it. One pass of aio_poll() is: deadline, user-space polling, wait, dispatch, bottom halves, timers.
 */
typedef struct AioContext AioContext;

typedef enum AioMonitor {
    AIO_MONITOR_AUTO, /* the best that works: io_uring, then epoll, then poll */
    AIO_MONITOR_POLL,
    AIO_MONITOR_EPOLL,
    AIO_MONITOR_IO_URING,
    AIO_MONITOR_LINUX_AIO,
    AIO_MONITOR__MAX,
} AioMonitor;

/* io_uring_setup flags that a context asks for; the kernel may refuse some (aio_context_uring_flags() tells). */
#define AIO_URING_SINGLE_ISSUER (1u << 0)
#define AIO_URING_COOP_TASKRUN (1u << 1) /* with TASKRUN_FLAG */
#define AIO_URING_NO_SQARRAY (1u << 2)
#define AIO_URING_DEFER_TASKRUN (1u << 3)
#define AIO_URING_REGISTERED_RING (1u << 4)
/* Not of the set-up; see loop/registration.h. */
#define AIO_URING_REGISTERED_FILES (1u << 5)
#define AIO_URING_REGISTERED_BUFFERS (1u << 6)
#define AIO_URING_REGISTERED (AIO_URING_REGISTERED_FILES | AIO_URING_REGISTERED_BUFFERS)
#define AIO_URING_AUTO (1u << 31) /* what suits the kind of context */

typedef struct AioContextConfig {
    const char *name;       /* for reports; copied */
    AioMonitor monitor;     /* a monitor asked for by name fails if it cannot be had; AUTO falls back */
    unsigned int uring_flags; /* AIO_URING_* */
    unsigned int max_events;  /* kernel AIO context size; 0: 1024 */
    bool is_main;             /* the main loop's context: never polls in user space */
} AioContextConfig;

/*
 * Create a context whose home is the calling thread, and make it that thread's current one. Kernel objects are made
 * here, so the ring belongs to the thread that submits to it. Returns NULL with @errp set on failure.
 */
AioContext *aio_context_new(const AioContextConfig *cfg, Error **errp);

/* [any] References keep the memory; only the home destroys kernel objects, with aio_context_shutdown(). */
AioContext *aio_context_ref(AioContext *ctx);
void aio_context_unref(AioContext *ctx);
/* Home: run what is pending, then close kernel objects. Later bottom halves from other threads are refused by assert. */
void aio_context_shutdown(AioContext *ctx);

/* [any] The context of the calling thread, NULL if it has none. Inlineable through a thread-local variable. */
AioContext *aio_context_current(void);
/* [any] The main loop's context: set once by aio_context_set_main() before other threads exist. */
AioContext *aio_context_main(void);
void aio_context_set_main(AioContext *ctx);
/* [any] True if the calling thread is the home of @ctx. */
bool aio_context_in_home(const AioContext *ctx);

/* [any] Which monitor runs, its name for people ("epoll"), and the AIO_URING_* flags in force (0: no ring). */
AioMonitor aio_context_monitor(const AioContext *ctx);
const char *aio_monitor_name(AioMonitor m);
unsigned int aio_context_uring_flags(const AioContext *ctx);

/* One pass; @blocking may sleep until something happens. Returns true if any handler, bottom half or timer ran. */
bool aio_poll(AioContext *ctx, bool blocking);
/* True in callbacks of a pass that began inside another pass: their caller is in the middle of something. */
bool aio_poll_is_nested(const AioContext *ctx);
/*
 * Passes that have work look at descriptors only now and then. After this the next one does: for work that lasts long and has
 * been put off so that others get their turn.
 */
void aio_poll_look_next(AioContext *ctx);

/*
 * [any, signal handlers too] Make a sleeping aio_poll() of @ctx return (or the next one not sleep). Writes only if it sleeps
 * or is about to.
 */
void aio_notify(AioContext *ctx);

/*
 * --- File descriptors (level semantics) ---
 * A handler may be changed or removed from any callback of its context, its own included.
 */
typedef void AioHandlerFn(void *opaque);
/* Looks in user space whether there is work; quick, no system call, no side effect. */
typedef bool AioPollFn(void *opaque);

/*
 * Watch @fd: @read when readable or hung up, @write when writable; NULL for both removes it. @poll (may be NULL) is asked
 * while the context polls in user space and @poll_ready runs in the dispatch phase when it said yes.
 */
void aio_set_fd_handler(AioContext *ctx, int fd, AioHandlerFn *read, AioHandlerFn *write,
                        AioPollFn *poll, AioHandlerFn *poll_ready, void *opaque);
/*
 * @begin runs when the context starts to poll this handler in user space (disable the peer's notifications), @end when it
 * stops (enable them; the context asks @poll once more afterwards, so nothing is lost).
 */
void aio_set_fd_poll(AioContext *ctx, int fd, AioHandlerFn *begin, AioHandlerFn *end);

/* --- Bottom halves --- */
typedef struct AioBH AioBH;
typedef void AioBHFn(void *opaque);

/* [any] A reusable bottom half; scheduling it twice before it runs runs it once. */
AioBH *aio_bh_new(AioContext *ctx, AioBHFn *fn, void *opaque);
void aio_bh_schedule(AioBH *bh);       /* [any] */
void aio_bh_cancel(AioBH *bh);         /* home */
void aio_bh_delete(AioBH *bh);         /* [any]; not run any more once the home has seen it; freed later */
/* [any] Run @fn once in the home of @ctx. */
void aio_bh_schedule_oneshot(AioContext *ctx, AioBHFn *fn, void *opaque);

/*
 * From a thread with a context of its own (usually the main thread): run @fn in the home of @ctx and return after it ran;
 * the caller's own context is polled meanwhile. Called in the home itself, it runs @fn directly.
 */
void aio_run_in_home(AioContext *ctx, AioBHFn *fn, void *opaque);

/* Poll the current thread's context until @cond is false; whoever changes it calls aio_wait_kick() afterwards. */
#define AIO_WAIT_WHILE(cond)                                                                       \
    do {                                                                                           \
        aio_wait_begin();                                                                          \
        while (cond) {                                                                             \
            aio_poll(aio_context_current(), true);                                                 \
        }                                                                                          \
        aio_wait_end();                                                                            \
    } while (0)
void aio_wait_begin(void);
void aio_wait_end(void);
void aio_wait_kick(void); /* [any] wakes every loop that is inside AIO_WAIT_WHILE; cheap if none is */

/*
 * --- Sources: what queues submissions and completes in user space (the AIO engines) ---
 * A context has one slot for each kind; the loop names no engine, it only calls these.
 */
typedef enum AioSlot {
    AIO_SLOT_NATIVE,
    AIO_SLOT_IO_URING,
    AIO_SLOT_THREADS,
    AIO_SLOT_WORKERS, /* the worker pool */
    AIO_SLOT_TEST,
    AIO_SLOTS,
} AioSlot;

typedef struct AioSource AioSource;
typedef struct AioSourceOps {
    const char *name;
    /*
     * Submit everything that is queued. Called when the outermost submission section ends and before the loop sleeps; the
     * dispatch, bottom half and timer phases of a pass are one submission section.
     */
    void (*flush)(AioSource *src);
    /*
     * Look at what has completed without a system call; true if there is something to reap. May be NULL. The loop looks at
     * its own rings (kernel-queue.h) by itself, so a source over one of those needs neither this nor reap().
     */
    bool (*ready)(AioSource *src);
    /* Run completions. Returns their number. Called in the dispatch phase when ready() said yes. May be NULL. */
    unsigned int (*reap)(AioSource *src);
    /* Requests are in flight: aio_context_shutdown() polls until that is over. May be NULL; its own rings the loop knows. */
    bool (*busy)(AioSource *src);
    /* aio_context_set_thread_pool() has changed the bounds. Home, bottom half phase. May be NULL. */
    void (*params_changed)(AioSource *src);
    /* Home, in aio_context_shutdown(): nothing is in flight any more. */
    void (*destroy)(AioSource *src);
} AioSourceOps;

/* The requests of a source for who asks from another thread; written by the home alone. */
typedef struct AioInFlight {
    AioCounter count;
    /* The oldest, valid while count is not 0. */
    AioCounter version; /* odd while the rest changes */
    _Atomic(const char *) what; /* "read"; a constant */
    AioCounter offset, bytes, since_ns;
} AioInFlight;

struct AioSource {
    const AioSourceOps *ops;
    AioContext *ctx;
    bool pending; /* flush() has something to do; set and cleared by the source */
    AioInFlight in_flight;
};

/* The source in @slot, or NULL. Home. */
AioSource *aio_source_get(AioContext *ctx, AioSlot slot);
/* Put @src in its empty slot; the context calls its ops from then on. Home. */
void aio_source_attach(AioContext *ctx, AioSlot slot, AioSource *src);

/* The oldest request of @src is another one now. Home; a few plain stores. */
void aio_source_set_oldest(AioSource *src, const char *what, uint64_t offset, uint64_t bytes, int64_t since_ns);

/*
 * Submission sections nest; when the outermost ends, sources with something pending are flushed. Home of the current
 * thread's context; outside any section a source flushes at once.
 */
void aio_plug(AioContext *ctx);
void aio_unplug(AioContext *ctx);
bool aio_plugged(const AioContext *ctx);

/*
 * --- Kernel rings that the loop and an engine share ---
 * A completion is what the kernel hands back a pointer to: a watched descriptor of the monitor or a request of an engine.
 */
typedef struct AioCompletion AioCompletion;
struct AioCompletion {
    /* @res as in the CQE or io_event (bytes or -errno); @flags: CQE flags, 0 for Linux AIO. Home, dispatch phase. */
    void (*fn)(AioCompletion *c, int64_t res, uint32_t flags);
};

/* --- Parameters; [any], effective at the next pass --- */
typedef struct AioPollParams {
    int64_t max_ns; /* 0: never poll in user space */
    int64_t grow;   /* factor */
    int64_t shrink; /* divisor */
    int64_t weight; /* shift */
    int64_t yield_ns; /* a wait that polls offers the processor to others from this time on; 0: never */
} AioPollParams;
/* QEMU's defaults. */
#define AIO_POLL_GROW_DEFAULT 2
#define AIO_POLL_SHRINK_DEFAULT 2
#define AIO_POLL_WEIGHT_DEFAULT 3
/* Ours; see adaptive.c. */
#define AIO_POLL_YIELD_NS_DEFAULT 1000
void aio_context_set_poll_params(AioContext *ctx, const AioPollParams *p);
/* The batch limit of the loop, 0: the engines' default. */
void aio_context_set_max_batch(AioContext *ctx, int64_t max_batch);
int64_t aio_context_max_batch(const AioContext *ctx);
/* Worker pool bounds (0 <= min <= max, max > 0), checked by the caller. */
void aio_context_set_thread_pool(AioContext *ctx, int min, int max);
void aio_context_thread_pool(const AioContext *ctx, int *min, int *max);
/*
 * Size of the kernel AIO context. [any] -EBUSY while requests are in flight; the caller waits for the answer, given by
 * the home (see aio_run_in_home()). 0 and the new size in force on success.
 */
int aio_context_set_max_events(AioContext *ctx, unsigned int max_events, Error **errp);
unsigned int aio_context_max_events(const AioContext *ctx);

/*
 * Which of AIO_URING_REGISTERED_FILES and AIO_URING_REGISTERED_BUFFERS to use. [any] The caller waits for the answer, as
 * above. False with @errp set when the kernel refuses; then all is as before. Without an engine that uses the ring nothing is
 * registered yet, and what the kernel refuses later is told with a warning.
 */
bool aio_context_set_uring_registered(AioContext *ctx, unsigned int flags, Error **errp);

/* Measure the time in each phase (AioStats.phase_ns): two clock reads a phase, so it is off by default. */
void aio_context_set_phase_times(AioContext *ctx, bool on);
bool aio_context_phase_times(const AioContext *ctx);

/* [any] Counters, written by the home alone. */
AioStats *aio_context_stats(AioContext *ctx);

/* --- What a loop is doing, told without its help, for it may be stuck --- */
typedef struct AioSourceState {
    const char *name; /* of the source */
    uint64_t count;   /* requests in flight, queued ones included; not 0 */
    const char *what; /* the oldest: "read"; NULL: it changes faster than it can be read */
    uint64_t offset, bytes;
    int64_t since_ns; /* when it was submitted, as aio_now_ns() */
} AioSourceState;

typedef struct AioContextState {
    AioPhase phase;
    int handler_fd;   /* AIO_PHASE_HANDLERS: whose */
    int64_t since_ns; /* AIO_PHASE_WAIT, POLL: when that began; others: when the loop was last seen to begin to dispatch */
    unsigned int n_sources;
    AioSourceState source[AIO_SLOTS]; /* those with requests in flight */
} AioContextState;

/*
 * [any] The caller keeps @ctx from being shut down. A loop that is always busy is seen as of a moment ago, and the members
 * may belong to slightly different moments; a loop that does not move is seen as it is.
 */
void aio_context_state(AioContext *ctx, AioContextState *state);

/* [any] Monotonic time in nanoseconds (CLOCK_MONOTONIC). */
int64_t aio_now_ns(void);
/*
 * [home] When the running pass began to handle events, on the same clock, which is read at most once for that: for what is
 * done to many requests a pass. Outside of a pass, now.
 */
int64_t aio_pass_ns(AioContext *ctx);

#endif
