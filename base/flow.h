/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows: a linear operation with waits (launch: call, wait, check; save: stage, upload, commit) as an array
 * of named steps, so that retry, backoff, deadline and roll-back are written once.
 *
 *   start --> step 0 --> step 1 --> ... --> done(NULL)
 *               |  ^
 *               |  | retryable error and tries left: wait backoff, run again
 *               |  |
 *               v  any other error, last deadline, or cancel:
 *             undo of the steps that had finished, last first --> done(error)
 *
 * Rules. A step's run() starts one thing and returns; its completion calls flow_step_done exactly once a run,
 * inside run() only if it ended at once (what comes next always waits for a zero timer, so either is safe).
 * A deadline or a cancel hastens the completion and never replaces it: it calls the running step's cancel(),
 * once, which must lead to flow_step_done. A step that succeeds all the same has succeeded: after a deadline
 * the flow goes on, after a cancel the step is undone with the others. undo() must lead to flow_undo_done
 * exactly once; it has no deadline but its own and cannot fail. done() runs exactly once, never inside
 * flow_start, flow_cancel or a step; it may free or restart the flow. A struct flow lives inside the object
 * that waits for it and does not move while it runs.
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

/* e is NULL on success; borrowed for the call. Its text starts with "FLOW: STEP: " if the flow has a name. */
typedef void (*flow_done_fn)(struct flow *f, void *ctx, const struct err *e);

struct flow {
    const char *name; /* or NULL */
    const struct flow_step *steps;
    size_t n_steps;
    struct timers *timers;
    struct prng *prng;
    void *ctx;
    flow_done_fn done;
    /* private */
    size_t step; /* the next to run, or behind the next to undo */
    int try_no;  /* tries of this step that have ended */
    int phase;
    bool cancelled;
    bool timed_out; /* this try of the step */
    struct timer timer;
    struct err result; /* kind ERR_NONE until the flow has failed */
};

/* Errors that a retry may mend: THROTTLED, UNAVAILABLE, TIMEOUT, IO. */
bool flow_is_retryable(enum err_kind kind);

/* f zeroed or finished. Borrowed until done runs: name, steps, timers, prng, ctx. name NULL: errors stay as the step told
 * them, for a flow whose caller says what it was about. */
void flow_start(struct flow *f, const char *name, const struct flow_step *steps, size_t n_steps,
    struct timers *timers, struct prng *prng, void *ctx, flow_done_fn done);
bool flow_is_running(const struct flow *f); /* from flow_start until just before done() */

/* done gets ERR_CANCELLED, or the earlier error of a flow that is already being undone; a flow whose last
 * step has finished still succeeds. Harmless when not running or cancelled before. */
void flow_cancel(struct flow *f);

void flow_step_done(struct flow *f, const struct err *e); /* e NULL = success; copied */
void flow_undo_done(struct flow *f);

/* Forgets a running flow without callbacks: only for tearing the whole world down (simulated crash, exit). No
 * completion of its may come afterwards. Harmless when not running. */
void flow_abandon(struct flow *f);

#endif
