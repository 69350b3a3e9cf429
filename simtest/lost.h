/* SPDX-License-Identifier: Apache-2.0
 *
 * What reclaims cost: jobs whose saves take from half a second to more than any notice lose their
 * machines at moments that have nothing to do with their saves, in replays (replay.h) with
 * different notices. The interval is the core's own.
 *
 * What has to hold of each: with a save that fits the notice nothing is done again; else at most
 * what was done since the last save, which is an interval, and what is done while one is stored.
 */
#ifndef BELAY_SIMTEST_LOST_H
#define BELAY_SIMTEST_LOST_H

#include "replay/replay.h"

struct lost_reclaim {
    int64_t notice_ms; /* 0: none */
    struct replay_loss loss;
};

bool lost_fits(const struct lost_reclaim *r);        /* its save into its notice */
int64_t lost_bound_ms(const struct lost_reclaim *r); /* what may be lost, at most */

/* n reclaims of jobs that ran, in worlds with this notice (ms; 0: none). The same seed gives the
 * same ones. */
void lost_sample(uint64_t seed, int64_t notice_ms, size_t n, struct lost_reclaim *ret_reclaims);

#endif
