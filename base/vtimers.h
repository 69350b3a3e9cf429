/* SPDX-License-Identifier: Apache-2.0
 *
 * Timers and clocks of virtual time. Time advances only when the owner says so, and the order of
 * callbacks depends only on the calls made. Used by the simulator and by all tests of code that
 * waits. Starting and stopping a timer costs O(log n) and allocates only to grow.
 */
#ifndef BELAY_BASE_VTIMERS_H
#define BELAY_BASE_VTIMERS_H

#include "base/timers.h"

struct vtimers {
    struct timers timers; /* pass &vt->timers to code that waits */
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

/* Advances time to the earliest timer (among equals: the one started first), if it is not overdue,
 * and runs it; false if none runs. */
bool vtimers_run_next(struct vtimers *vt);

/* Advances time by ms >= 0 and runs every timer due by then in order, including those started
 * meanwhile. */
void vtimers_advance(struct vtimers *vt, int64_t ms);

/* Advances time without running anything, as if the process had been stopped: due timers run late.
 */
void vtimers_stall(struct vtimers *vt, int64_t ms);

/* Sets the wall clock, as an operator or NTP would; monotonic time and timers are unaffected. */
void vtimers_set_wall(struct vtimers *vt, int64_t wall_ms);

#endif
