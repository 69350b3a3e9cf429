/* SPDX-License-Identifier: Apache-2.0
 *
 * The least that a job can cost if all of the future is known: what no policy can beat. Exact, by
 * dynamic programming over (tick, where the job is, time lost so far): a job that is done after its
 * work and the time it lost costs what it ran, and time is lost by idling and by restarts.
 */
#ifndef BELAY_BENCH_POLICY_BEST_H
#define BELAY_BENCH_POLICY_BEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BEST_ZONES_MAX 16

struct best_case {
    size_t n_zones, n_ticks;           /* ticks until the deadline at least */
    const uint8_t *up[BEST_ZONES_MAX]; /* a zone's ticks: 1 when spot is up for all of it */
    int64_t tick_ms, work_ms, deadline_ms, restart_ms;
    double price; /* of spot; on-demand costs 1 */
};

/* In ms on demand. INFINITY: it cannot be done. */
double best_cost(const struct best_case *c);

#endif
