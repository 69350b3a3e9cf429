/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers and clocks of virtual time: nothing happens until the owner says so, and then in an order
 * that depends on nothing but the calls that were made. The simulator and tests of everything that
 * waits stand on it. Starting and stopping a timer costs O(log n) and allocates only to grow.
 */
#ifndef BELAY_BASE_VTIMERS_H
#define BELAY_BASE_VTIMERS_H

#include "base/timers.h"

struct vtimers {
    struct timers timers; /* give &vt->timers to what waits */
    struct clock clock;   /* also vt->timers.clock */
    /* private */
    int64_t now_ms;         /* monotonic */
    int64_t wall_offset_ms; /* wall = now + offset */
    uint64_t next_order;
    struct vtimers_entry *heap;
    size_t n, cap;
};

/* Monotonic time starts at 0, wall time at start_wall_ms. vt must not be moved afterwards: the
 * clock points into it. */
void vtimers_init(struct vtimers *vt, int64_t start_wall_ms);

/* Stops all timers without running them. */
void vtimers_deinit(struct vtimers *vt);

/* The monotonic time at which the next timer is due; false if none runs. */
bool vtimers_next(const struct vtimers *vt, int64_t *ret_due_ms);

/* Moves time to the earliest timer (of equals: the one started first) unless it is late already,
 * and runs it; false if none runs. */
bool vtimers_run_next(struct vtimers *vt);

/* Moves time by ms >= 0, running every timer due by then in order, also those started meanwhile. */
void vtimers_advance(struct vtimers *vt, int64_t ms);

/* Time passes and nothing runs, as for a process that was stopped: what became due runs late. */
void vtimers_stall(struct vtimers *vt, int64_t ms);

/* Sets the wall clock, as an operator or NTP would; monotonic time and timers do not notice. */
void vtimers_set_wall(struct vtimers *vt, int64_t wall_ms);

#endif
