/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows: a linear operation with waits (launch: call, wait, check; save: stage, upload, commit) as an array
 * of named steps, so that retry, backoff, deadline and roll-back are written once.
 *
 *   start --> step 0 --> step 1 --> ... --> done(0)
 *               |  ^  retryable error and tries left: wait backoff, run again
 *               |  |
 *               v  any other error, deadline, or cancel:
 *             undo of the steps that had finished, last first --> done(kind)
 *
 * Rules. A step's run() starts one thing and returns; its completion calls flow_step_done exactly once, never
 * inside run() of the same call stack unless it failed at once (flow_step_done defers the next step through a
 * zero timer, so either is safe). Cancel hastens the completion and never replaces it: it calls the running
 * step's cancel(), which must lead to flow_step_done. done() runs exactly once, never inside flow_start or
 * flow_cancel. A struct flow lives inside the object that waits for it.
 */
#ifndef BELAY_BASE_FLOW_H
#define BELAY_BASE_FLOW_H

#include "base/err.h"
#include "base/prng.h"
#include "base/timers.h"

struct flow;

struct flow_step {
    const char *name;
    void (*run)(struct flow *f, void *ctx);
    void (*cancel)(struct flow *f, void *ctx); /* NULL: the step ends soon by itself */
    void (*undo)(struct flow *f, void *ctx);   /* NULL: nothing to undo; calls flow_undo_done when finished */
    int64_t deadline_ms; /* for one try of this step; required, > 0: every wait has one */
    int tries;           /* >= 1 */
    int64_t backoff_ms;  /* base of the full-jitter backoff between tries */
    int64_t backoff_cap_ms;
};

/* e is NULL on success. */
typedef void (*flow_done_fn)(struct flow *f, void *ctx, const struct err *e);

struct flow {
    const char *name;
    const struct flow_step *steps;
    size_t n_steps;
    struct timers *timers;
    struct prng *prng;
    void *ctx;
    flow_done_fn done;
    /* private */
    size_t step;
    int try_no;
    int phase;
    bool cancelled, has_result;
    struct timer timer;
    struct err result;
};

/* Errors that a retry may mend: THROTTLED, UNAVAILABLE, TIMEOUT, IO. */
bool flow_is_retryable(enum err_kind kind);

/* f zeroed or finished. Borrowed until done runs: steps, timers, prng, ctx. */
void flow_start(struct flow *f, const char *name, const struct flow_step *steps, size_t n_steps,
    struct timers *timers, struct prng *prng, void *ctx, flow_done_fn done);
bool flow_is_running(const struct flow *f);
void flow_cancel(
    struct flow *f); /* done gets ERR_CANCELLED (or the earlier error); harmless when not running */

void flow_step_done(struct flow *f, const struct err *e); /* e NULL = success */
void flow_undo_done(struct flow *f);

/* Forgets a running flow without callbacks: only for tearing the whole world down (simulated crash, exit). */
void flow_abandon(struct flow *f);

#endif
