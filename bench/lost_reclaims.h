/* SPDX-License-Identifier: Apache-2.0
 *
 * Work lost by reclaims: jobs with saves from half a second to longer than any notice lose their
 * machines at times independent of their saves, in replays (replay.h) with different notices. The
 * interval is the core's own.
 *
 * Required of each reclaim: with a save that fits into the notice no work is repeated; else at most
 * the work since the last save, which is an interval, plus the work during a save.
 */
#ifndef BELAY_BENCH_LOST_RECLAIMS_H
#define BELAY_BENCH_LOST_RECLAIMS_H

#include "replay/replay.h"

struct lost_reclaim {
    int64_t notice_ms; /* 0: none */
    struct replay_loss loss;
};

bool lost_fits(const struct lost_reclaim *r);        /* true if the save fits into the notice */
int64_t lost_bound_ms(const struct lost_reclaim *r); /* maximum lost work */

/* Takes n reclaims of running jobs from simulated worlds with this notice (ms; 0: none).
 * Deterministic for a seed. */
void lost_sample(uint64_t seed, int64_t notice_ms, size_t n, struct lost_reclaim *ret_reclaims);

#endif
