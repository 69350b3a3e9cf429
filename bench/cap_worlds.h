/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up spot markets in which one job with a deadline runs beside its baseline (baseline.h), to
 * try the cap on what it may cost more: zones that flap, have spells or regimes, or stay up from
 * some moment on.
 */
#ifndef BELAY_BENCH_CAP_WORLDS_H
#define BELAY_BENCH_CAP_WORLDS_H

#include "base/prng.h"
#include "scheduler/core/deadline/baseline.h"

#define CAP_ZONES_MAX 3
#define CAP_LOOKS_MAX 1200
#define CAP_SURE_UUSD_H 3000000 /* price of on-demand */
#define CAP_WORLD_CAP 0.1       /* usually, as a part of the cost of the work on on-demand */

/* Zones that come and go per examination, and a job of 4 to 24 h with up to as much slack. */
struct cap_world {
    size_t n, n_looks;
    bool up[CAP_ZONES_MAX][CAP_LOOKS_MAX];
    int64_t price_uusd_h[CAP_ZONES_MAX];
    int64_t work_ms, time_ms, restart_ms, failed_launch_ms, look_ms;
};

struct cap_outcome {
    double paid_uusd, baseline_uusd;
    bool late;
};

/* is_even: all zones have the same price. */
void cap_world_make(struct prng *prng, bool is_even, struct cap_world *ret_world);
/* The cap on what the job may cost more than its baseline. */
struct cap_terms {
    double uusd; /* INFINITY: no cap */
    const struct deadline_law *law;
    enum deadline_rule baseline;
};

/* Runs the job by p. */
struct cap_outcome cap_world_play(const struct cap_world *w, const struct deadline_policy *p,
    const struct deadline_borders *b, const struct cap_terms *cap);
/* Learns from a different market, ten examinations up and five down: the worlds are mostly unlike
 * it. */
void cap_world_learn(struct deadline_chain *ret_chain);

#endif
