/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Model of the wake-up protocol in qemu-subset/loop/notify.c and the pass in aio-poll.c.
 *
 * The inbox is one atomic word, so each step on it is one atomic step here, and the model needs no weaker memory than the
 * sequential one that spin has: nothing else decides who sleeps or writes. What is checked:
 *   - no lost wake-up: a home that sleeps for ever with something sent is an invalid end state;
 *   - no needless write: a sender writes only if it ended a sleep, the home never does for itself;
 *   - the eventfd is not written after it was closed.
 *
 * Variants, by -D: LEVEL (the notifier is read after it woke the home) instead of edge-triggered; SPURIOUS (something else
 * ends a sleep, which lets a sender fall behind with its write); BROKEN_CHECK and BROKEN_CLOSE, which must fail.
 */

#define WORKERS 2   /* threads that send work */
#define NOTIFIERS 1 /* threads that change a condition and notify */
#define ROUNDS 2    /* each so often */
#define OWN 2       /* work that the home schedules for itself */

/* The inbox: how much work is stacked in it, and its bits. */
byte stacked;
bool sleeping, notified;

byte eventfd;      /* its counter, or edges not yet reported */
bool closed;
byte condition;    /* what the notifiers change */
byte own_work, ran;
byte sleeps, writes, writes_due;
bool home_is_awake = true;

inline send(is_work)
{
    atomic {
        woke = sleeping;
        sleeping = false;
        if
        :: is_work -> stacked++
        :: else -> notified = true
        fi
    }
    if
    :: woke ->
        assert(!closed);
        eventfd++;
        writes++
    :: else
    fi
}

proctype worker()
{
    byte i;
    bool woke;

    for (i : 1 .. ROUNDS) {
        send(true)
    }
}

proctype notifier()
{
    byte i;
    bool woke;

    for (i : 1 .. ROUNDS) {
        condition++;
        send(false)
    }
}

/* One exchange: everything out, SLEEP gone. */
inline take()
{
    atomic {
        if
        :: slept && !sleeping -> writes_due++
        :: else
        fi;
        sleeping = false;
        notified = false;
        own_work = own_work + stacked;
        stacked = 0;
        slept = false
    }
}

inline announce_sleep()
{
#ifdef BROKEN_CHECK
    /* As a protocol with two words and no fence between them would do. */
    if
    :: stacked == 0 && !notified -> slept = true
    :: else -> slept = false
    fi;
    sleeping = slept;
#else
    atomic {
        slept = (stacked == 0 && !notified);
        sleeping = slept
    }
#endif
}

active proctype home()
{
    bool slept, readable, woke;
    byte to_schedule = OWN;
#ifdef SPURIOUS
    byte spurious = 1;
#endif

    run worker();
    run worker();
    run notifier();
    do
    :: ran == WORKERS * ROUNDS + OWN && condition == NOTIFIERS * ROUNDS -> break
    :: else ->
        /* Deadline: work that is here forbids to sleep. */
        if
        :: own_work > 0 || stacked > 0 || notified -> slept = false
        :: else ->
            announce_sleep();
            if
            :: slept ->
                sleeps++;
                home_is_awake = false;
                if
                :: eventfd > 0 -> readable = true
#ifdef SPURIOUS
                :: spurious > 0 -> spurious--
#endif
                fi;
                home_is_awake = true
            :: else
            fi
        fi;
        take();
        /* After what was there has been looked at: at most once a pass. */
        if
        :: readable ->
#ifdef LEVEL
            eventfd = 0;
#else
            eventfd--;
#endif
            readable = false
        :: else
        fi;
        /* Bottom halves, of which the first ones schedule others. */
        if
        :: own_work > 0 ->
            own_work--;
            ran++
        :: else
        fi;
        if
        :: to_schedule > 0 ->
            to_schedule--;
            own_work++;
            /* Scheduling for itself, the home finds itself awake: nothing to write. */
            assert(home_is_awake && !sleeping)
        :: else
        fi
    od;
    assert(writes <= sleeps);
#ifndef BROKEN_CLOSE
    take();
    writes == writes_due;
#endif
    closed = true
}
