/* SPDX-License-Identifier: Apache-2.0
 *
 * One timer serves as the zero timer between two callbacks, the backoff and the deadline, which
 * never run at the same time.
 *
 *   IDLE --start--> READY --timer--> RUNNING --success, or--> OVER --timer--> IDLE, done
 *                   |   ^             |   |    last error      ^
 *                   |   +---error,----+   |                    |
 *                   |     tries left      +--deadline,--> LATE-+  (as from RUNNING)
 *                   |                        cancel            |
 *                   +--cancel----------------------------------+
 *
 * Invariants: the timer runs in READY, RUNNING (the deadline) and OVER, not in IDLE and LATE.
 * result has an error only in OVER.
 */
#include "base/tries.h"

#include <assert.h>
#include <inttypes.h>

enum phase { IDLE, READY, RUNNING, LATE, OVER };

bool tries_is_retryable(enum err_kind kind)
{
    return kind == ERR_THROTTLED || kind == ERR_UNAVAILABLE || kind == ERR_TIMEOUT ||
           kind == ERR_IO;
}

static void wait_in(struct tries *t, enum phase phase, int64_t delay_ms)
{
    t->phase = phase;
    timer_start(t->timers, &t->timer, delay_ms);
}

static void finish(struct tries *t)
{
    struct err e = t->result; /* a copy, because done may restart or free t */
    t->phase = IDLE;
    t->o->done(t, t->ctx, e.kind == ERR_NONE ? NULL : &e);
}

static void fail(struct tries *t, const struct err *e)
{
    t->result = *e;
    wait_in(t, OVER, 0);
}

static void fail_cancelled(struct tries *t)
{
    struct err e;
    err_set(&e, ERR_CANCELLED, "cancelled");
    fail(t, &e);
}

static void on_timer(struct timer *timer, void *ctx)
{
    struct tries *t = ctx;
    (void)timer;
    switch ((enum phase)t->phase) {
    case READY:
        t->timed_out = false;
        wait_in(t, RUNNING, t->o->deadline_ms);
        t->o->run(t, t->ctx);
        break;
    case RUNNING:
        t->timed_out = true;
        t->phase = LATE;
        break;
    case OVER:
        finish(t);
        break;
    case IDLE:
    case LATE:
        assert(!"no timer runs in this phase");
    }
}

void tries_start(struct tries *t, const struct tries_options *o, struct timers *timers,
    struct prng *prng, void *ctx)
{
    assert(!tries_is_running(t));
    assert(o->run && o->done && o->deadline_ms > 0 && o->most >= 1);
    *t = (struct tries){.o = o, .timers = timers, .prng = prng, .ctx = ctx};
    timer_init(&t->timer, on_timer, t);
    wait_in(t, READY, 0);
}

bool tries_is_running(const struct tries *t)
{
    return t->phase != IDLE;
}

void tries_cancel(struct tries *t)
{
    if (t->cancelled)
        return;
    switch ((enum phase)t->phase) {
    case READY:
        t->cancelled = true;
        fail_cancelled(t);
        break;
    case RUNNING:
        timer_stop(t->timers, &t->timer);
        t->phase = LATE;
        /* fall through */
    case LATE:
        t->cancelled = true;
        break;
    case IDLE:
    case OVER:
        break;
    }
}

static void one_failed(struct tries *t, const struct err *e)
{
    const struct tries_options *o = t->o;
    struct err late;
    if (t->timed_out) {
        err_set(&late, ERR_TIMEOUT, "did not finish within %" PRId64 " ms", o->deadline_ms);
        e = &late;
    }
    assert(e->kind != ERR_NONE);
    t->n++;
    if (tries_is_retryable(e->kind) && t->n < o->most)
        wait_in(t, READY, prng_backoff_ms(t->prng, t->n - 1, o->backoff_ms, o->backoff_cap_ms));
    else
        fail(t, e);
}

void tries_ended(struct tries *t, const struct err *e)
{
    assert(t->phase == RUNNING || t->phase == LATE);
    if (t->cancelled)
        fail_cancelled(t);
    else if (e)
        one_failed(t, e);
    else
        wait_in(t, OVER, 0);
}

void tries_abandon(struct tries *t)
{
    if (t->phase != IDLE)
        timer_stop(t->timers, &t->timer);
    t->phase = IDLE;
}
