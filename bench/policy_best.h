/* SPDX-License-Identifier: Apache-2.0
 *
 * The lowest possible cost of a job if the future is known; no rule can be cheaper. Computed
 * exactly, by dynamic programming over (tick, place of the job, time lost so far). Idling and
 * restarts lose time; the job is done after its work plus the lost time, and costs what it ran. A
 * move from on-demand to spot loses only its switch: on-demand computes on during the boot, and
 * both are paid.
 */
#ifndef BELAY_BENCH_POLICY_BEST_H
#define BELAY_BENCH_POLICY_BEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BEST_ZONES_MAX 16

struct best_case {
    size_t n_zones, n_ticks;           /* n_ticks: at least up to the deadline */
    const uint8_t *up[BEST_ZONES_MAX]; /* by tick: 1 if spot is up for the whole tick */
    int64_t tick_ms, work_ms, deadline_ms, restart_ms;
    int64_t boot_ms; /* the part of restart_ms during which a move computes on; 0: none */
    double price;    /* of spot, relative to on-demand */
};

/* Returns the cost in ms of on-demand, or INFINITY if the deadline cannot be met. */
double best_cost(const struct best_case *c);

#endif
