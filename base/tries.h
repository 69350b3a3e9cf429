/* SPDX-License-Identifier: Apache-2.0
 *
 * One call that may take several tries (a launch, say), so that retry, backoff and deadline are
 * written once.
 *
 *   start --> run --> well -------------------------------> done(NULL)
 *              ^ |
 *              | | retryable error and tries left: wait backoff
 *              +-+
 *                  any other error, last deadline, or cancel: done(error)
 *
 * Rules. run() starts one thing and returns; its completion calls tries_ended exactly once a run,
 * inside run() only if it ended at once (what comes next always waits for a zero timer, so either
 * is safe). A deadline or a cancel never replaces the completion, which has to come soon by itself.
 * A try that ends well after its deadline has ended well; after a cancel it is ERR_CANCELLED all
 * the same. done() runs exactly once, never inside tries_start, tries_cancel or tries_ended; it may
 * free or restart the object. A struct tries lives inside the object that waits for it and does not
 * move while it runs.
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
    int64_t deadline_ms; /* of one try; > 0: every wait has one */
    int most;            /* >= 1 */
    int64_t backoff_ms;  /* base of the full-jitter backoff between them */
    int64_t backoff_cap_ms;
};

/* Private. */
struct tries {
    const struct tries_options *o;
    struct timers *timers;
    struct prng *prng;
    void *ctx;
    int n; /* that have ended */
    int phase;
    bool cancelled;
    bool timed_out; /* this one */
    struct timer timer;
    struct err result; /* kind ERR_NONE until it has failed for good */
};

/* Errors that a retry may mend: THROTTLED, UNAVAILABLE, TIMEOUT, IO. */
bool tries_is_retryable(enum err_kind kind);

/* t zeroed or done. Borrowed until done runs: o, timers, prng, ctx. */
void tries_start(struct tries *t, const struct tries_options *o, struct timers *timers,
    struct prng *prng, void *ctx);
bool tries_is_running(const struct tries *t); /* from tries_start until just before done() */

/* done gets ERR_CANCELLED, or the outcome that stands already. Harmless when not running or
 * cancelled before. */
void tries_cancel(struct tries *t);

void tries_ended(struct tries *t, const struct err *e); /* e NULL = success; copied */

/* Forgets it without callbacks: only for tearing the whole world down (simulated crash, exit). No
 * completion may come afterwards. Harmless when not running. */
void tries_abandon(struct tries *t);

#endif
