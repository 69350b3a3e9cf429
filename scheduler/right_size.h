/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what the last runs of a job's name used, and judges whether they would fit a cheaper
 * machine of the pools that the job may use (telemetry/right_size.h). The machine has to satisfy
 * the job's further demands too (constraints.h), and to be where its input is. There is no advice
 * for jobs that name their nodes, for which none is launched, and for those with exclusive nodes,
 * which use more than they request.
 */
#ifndef BELAY_SCHEDULER_RIGHT_SIZE_H
#define BELAY_SCHEDULER_RIGHT_SIZE_H

#include "base/map.h"
#include "db/db.h"
#include "telemetry/right_size.h"

/* What the last runs of names used, as read once for all jobs of a name; zeroed = empty. */
struct right_size_cache {
    struct smap names;
};

void right_size_cache_deinit(struct right_size_cache *c);

/* Returns false if there is no clear advice, the job is not live, or nothing can be read. Reads the
 * user's last RIGHT_SIZE_JOBS_EXAMINED jobs at most. cache may be NULL. The types in *ret_size are
 * not valid any more. */
#define RIGHT_SIZE_JOBS_EXAMINED 1000
bool right_size_of_job(const struct model *m, struct db_reader *r, struct right_size_cache *cache,
    const struct job_row *job, struct right_size *ret_size);

#endif
