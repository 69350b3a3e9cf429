/* SPDX-License-Identifier: Apache-2.0
 *
 * Flows. One timer serves everything: it is the zero timer between two calls of the owner's code, the backoff
 * and the deadline, as these never run at the same time.
 *
 *   IDLE --start--> READY --timer--> RUNNING --step done--> READY (the next step)
 *                     |                 |  \--error, tries left--> READY (the same step, after the backoff)
 *                     |                 +--deadline, cancel--> ENDING --step done--> as from RUNNING
 *              cancel |                 | error, no tries left
 *                     v                 v
 *                 UNDO_READY --timer--> UNDOING --undo done--> UNDO_READY (the step before)
 *                     | no steps left
 *                     v
 *              IDLE, done(error)        READY, behind the last step --timer--> IDLE, done(NULL)
 *
 * Invariants: in READY and UNDO_READY the timer runs; in RUNNING it runs (the deadline), in ENDING and
 * UNDOING it does not. In READY and RUNNING no error is kept in result.
 */
#include "base/flow.h"

#include <assert.h>
#include <inttypes.h>

enum phase { IDLE, READY, RUNNING, ENDING, UNDO_READY, UNDOING };

bool flow_is_retryable(enum err_kind kind)
{
    return kind == ERR_THROTTLED || kind == ERR_UNAVAILABLE || kind == ERR_TIMEOUT || kind == ERR_IO;
}

static void wait_in(struct flow *f, enum phase phase, int64_t delay_ms)
{
    f->phase = phase;
    timer_start(f->timers, &f->timer, delay_ms);
}

static void finish(struct flow *f)
{
    f->phase = IDLE;
    if (f->result.kind == ERR_NONE) {
        f->done(f, f->ctx, NULL);
        return;
    }
    struct err e = f->result; /* done may restart or free the flow */
    f->done(f, f->ctx, &e);
}

static void fail(struct flow *f, const struct err *e)
{
    f->result = *e;
    if (f->name)
        err_wrap(&f->result, "%s: %s", f->name, f->steps[f->step].name);
    wait_in(f, UNDO_READY, 0);
}

static void fail_cancelled(struct flow *f)
{
    struct err e;
    err_set(&e, ERR_CANCELLED, "cancelled");
    fail(f, &e);
}

static void run_step(struct flow *f)
{
    if (f->step == f->n_steps) {
        finish(f);
        return;
    }
    f->timed_out = false;
    wait_in(f, RUNNING, f->steps[f->step].deadline_ms);
    f->steps[f->step].run(f, f->ctx);
}

/* Undoes the nearest finished step that can be undone, or ends the flow. */
static void undo_step(struct flow *f)
{
    while (f->step > 0) {
        const struct flow_step *s = &f->steps[--f->step];
        if (s->undo) {
            f->phase = UNDOING;
            s->undo(f, f->ctx);
            return;
        }
    }
    finish(f);
}

static void hasten(struct flow *f)
{
    const struct flow_step *s = &f->steps[f->step];
    f->phase = ENDING;
    timer_stop(f->timers, &f->timer);
    if (s->cancel)
        s->cancel(f, f->ctx);
}

static void on_timer(struct timer *t, void *ctx)
{
    struct flow *f = ctx;
    (void)t;
    switch ((enum phase)f->phase) {
    case READY:
        run_step(f);
        break;
    case RUNNING:
        f->timed_out = true;
        hasten(f);
        break;
    case UNDO_READY:
        undo_step(f);
        break;
    case IDLE:
    case ENDING:
    case UNDOING:
        assert(!"no timer runs in this phase");
    }
}

void flow_start(struct flow *f, const char *name, const struct flow_step *steps, size_t n_steps,
    struct timers *timers, struct prng *prng, void *ctx, flow_done_fn done)
{
    assert(!flow_is_running(f));
    for (size_t i = 0; i < n_steps; i++)
        assert(steps[i].run && steps[i].deadline_ms > 0 && steps[i].tries >= 1);
    *f = (struct flow){
        .name = name,
        .steps = steps,
        .n_steps = n_steps,
        .timers = timers,
        .prng = prng,
        .ctx = ctx,
        .done = done,
    };
    timer_init(&f->timer, on_timer, f);
    wait_in(f, READY, 0);
}

bool flow_is_running(const struct flow *f)
{
    return f->phase != IDLE;
}

void flow_cancel(struct flow *f)
{
    if (f->cancelled || (f->phase == READY && f->step == f->n_steps))
        return;
    switch ((enum phase)f->phase) {
    case READY:
        f->cancelled = true;
        fail_cancelled(f);
        break;
    case RUNNING:
        f->cancelled = true;
        hasten(f);
        break;
    case ENDING:
        f->cancelled = true; /* the deadline has hastened it already */
        break;
    case IDLE:
    case UNDO_READY:
    case UNDOING:
        break;
    }
}

static void step_failed(struct flow *f, const struct err *e)
{
    const struct flow_step *s = &f->steps[f->step];
    struct err late;
    if (f->timed_out) {
        err_set(&late, ERR_TIMEOUT, "did not finish within %" PRId64 " ms", s->deadline_ms);
        e = &late;
    }
    assert(e->kind != ERR_NONE);
    f->try_no++;
    if (flow_is_retryable(e->kind) && f->try_no < s->tries)
        wait_in(f, READY, prng_backoff_ms(f->prng, f->try_no - 1, s->backoff_ms, s->backoff_cap_ms));
    else
        fail(f, e);
}

void flow_step_done(struct flow *f, const struct err *e)
{
    assert(f->phase == RUNNING || f->phase == ENDING);
    if (f->cancelled) {
        fail_cancelled(f);
        f->step += !e; /* what finished after all is undone too */
    } else if (e) {
        step_failed(f, e);
    } else {
        f->step++;
        f->try_no = 0;
        wait_in(f, READY, 0);
    }
}

void flow_undo_done(struct flow *f)
{
    assert(f->phase == UNDOING);
    wait_in(f, UNDO_READY, 0);
}

void flow_abandon(struct flow *f)
{
    if (f->phase != IDLE)
        timer_stop(f->timers, &f->timer);
    f->phase = IDLE;
}
