/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of spot before and between observations (deadline/spells.h): the prior market, and
 * when the chain is rebuilt from the counts.
 *
 * Until there are enough observations, the chain is that of a synthetic prior market: spells with a
 * chance to end that falls with their age, as in all recorded spot traces. A chain is rebuilt after
 * a quarter of a day, and then in intervals that double up to four days.
 *
 * PURE.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_LEARNING_H
#define BELAY_SCHEDULER_CORE_DEADLINE_LEARNING_H

#include "scheduler/core/deadline/spells.h"

/* About the terciles of the traces of Wu et al. ("Can't Be Late", NSDI '24), recorded in 2022 and
 * 2023. Fixed, because the counts depend on them. */
extern const struct deadline_borders deadline_learning_borders;

/* The counts of the prior market, of single offers or of sets of several. */
void deadline_learning_begin(bool of_several, struct deadline_counts *ret_counts);

/* Rebuilds the chain, which may be zeroed, and makes room in the counts for new observations. */
void deadline_learning_rebuild(struct deadline_counts *counts, struct deadline_chain *chain);

/* Steps until the next rebuild, from those between the last two; 0: none yet. */
int64_t deadline_learning_next(int64_t steps);

#endif
