/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a job is saved while it runs.
 */
#ifndef BELAY_SCHEDULER_CORE_LIFECYCLE_SAVE_INTERVAL_H
#define BELAY_SCHEDULER_CORE_LIFECYCLE_SAVE_INTERVAL_H

#include "scheduler/core/model/model.h"

/* Optimal checkpoint interval: Young's first-order sqrt(2 * save * mtbf) (Young 1974; Daly 2006),
 * clamped to [15 s, 30 min]. save_ms <= 0 counts as 1 s; reclaims_per_hour <= 0 as
 * PRIOR_RECLAIMS_PER_HOUR. */
int64_t core_save_interval_ms(int64_t save_ms, double reclaims_per_hour);

/* Current interval between periodic saves of a live attempt; 0 if it takes no checkpoints. The
 * user's setting, or core_save_interval_ms of the job's last pause and its nodes' reclaim rate. At
 * least four times the duration of the last save, so that the node and its store bandwidth are
 * mostly free for the program. */
int64_t core_interval_ms(const struct attempt *a);
/* The same of any job, if its saves took save_ms (0 = unknown), of which the program was paused for
 * pause_ms. */
int64_t core_interval_with(const struct job *j, int64_t save_ms, int64_t pause_ms);

#endif
