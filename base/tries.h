/* SPDX-License-Identifier: Apache-2.0
 *
 * One call that may take several tries (a launch, say), so that retry, backoff and deadline are
 * implemented once.
 *
 *   start --> run --> success ----------------------------> done(NULL)
 *              ^ |
 *              | | retryable error and tries left: wait backoff
 *              +-+
 *                  any other error, last deadline, or cancel: done(error)
 *
 * Rules. run() starts one try and returns. Its completion calls tries_ended exactly once per run;
 * the call may be inside run() if the try ended at once, because the next step always waits for a
 * zero timer. A deadline or a cancel never replaces the completion, which must follow soon. A try
 * that succeeds after its deadline counts as a success; after a cancel the outcome is ERR_CANCELLED
 * all the same. done() runs exactly once, never inside tries_start, tries_cancel or tries_ended; it
 * may free or restart the object. A struct tries lives inside the object that waits for it and must
 * not move while it runs.
 */
#ifndef BELAY_BASE_TRIES_H
#define BELAY_BASE_TRIES_H

#include "base/err.h"
#include "base/prng.h"
#include "base/timers.h"

struct tries;

struct tries_options {
    void (*run)(struct tries *t, void *ctx);
    /* e is NULL on success; borrowed for the call. */
    void (*done)(struct tries *t, void *ctx, const struct err *e);
    int64_t deadline_ms; /* of one try; > 0 */
    int most;            /* tries; >= 1 */
    int64_t backoff_ms;  /* base of the full-jitter backoff between tries */
    int64_t backoff_cap_ms;
};

/* Private. */
struct tries {
    const struct tries_options *o;
    struct timers *timers;
    struct prng *prng;
    void *ctx;
    int n; /* tries that have ended */
    int phase;
    bool cancelled;
    bool timed_out; /* this try */
    struct timer timer;
    struct err result; /* ERR_NONE until the last try has failed */
};

/* Errors after which a retry may succeed: THROTTLED, UNAVAILABLE, TIMEOUT, IO. */
bool tries_is_retryable(enum err_kind kind);

/* t is zeroed or done. o, timers, prng and ctx are borrowed until done runs. */
void tries_start(struct tries *t, const struct tries_options *o, struct timers *timers,
    struct prng *prng, void *ctx);
bool tries_is_running(const struct tries *t); /* true from tries_start until just before done() */

/* done gets ERR_CANCELLED, or the outcome if there is one already. No-op when not running or
 * already cancelled. */
void tries_cancel(struct tries *t);

void tries_ended(struct tries *t, const struct err *e); /* e NULL = success; copied */

/* Drops it without callbacks: only for tearing everything down (simulated crash, exit). No
 * completion may arrive afterwards. No-op when not running. */
void tries_abandon(struct tries *t);

#endif
