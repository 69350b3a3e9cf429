/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers as a vtable: belayd runs them on libuv, the simulator on virtual time. A struct timer
 * lives inside the object that waits for it. A callback never runs inside timer_start.
 */
#ifndef BELAY_BASE_TIMERS_H
#define BELAY_BASE_TIMERS_H

#include "base/time.h"

struct timer;
typedef void (*timer_fn)(struct timer *t, void *ctx);

struct timer {
    timer_fn fn;
    void *ctx;
    void *impl; /* NULL when not running; owned by the timers implementation */
};

struct timers {
    const struct clock *clock;
    /* Runs t->fn(t, t->ctx) once, delay_ms (>= 0) from now. Restarts t if it is running. */
    void (*start)(struct timers *ts, struct timer *t, int64_t delay_ms);
    /* After stop returns, fn will not run. No-op on a timer that is zeroed or not running. */
    void (*stop)(struct timers *ts, struct timer *t);
};

static inline void timer_init(struct timer *t, timer_fn fn, void *ctx)
{
    *t = (struct timer){.fn = fn, .ctx = ctx};
}

static inline void timer_start(struct timers *ts, struct timer *t, int64_t delay_ms)
{
    ts->start(ts, t, delay_ms);
}

static inline void timer_stop(struct timers *ts, struct timer *t)
{
    ts->stop(ts, t);
}

static inline bool timer_is_running(const struct timer *t)
{
    return t->impl != NULL;
}

#endif
