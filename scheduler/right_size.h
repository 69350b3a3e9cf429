/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads what the last runs of a job's name used, and judges whether they would fit a cheaper
 * machine of the pools that the job may use (telemetry/right_size.h). Only for jobs without further
 * demands (constraints.h), of which an instance type or exclusive nodes may be one.
 */
#ifndef BELAY_SCHEDULER_RIGHT_SIZE_H
#define BELAY_SCHEDULER_RIGHT_SIZE_H

#include "db/db.h"
#include "telemetry/right_size.h"

/* Returns false if there is no clear advice, or nothing can be read. Reads the user's last
 * RIGHT_SIZE_JOBS_EXAMINED jobs at most. The types in *ret_size are not valid any more. */
#define RIGHT_SIZE_JOBS_EXAMINED 1000
bool right_size_of_job(const struct model *m, struct db_reader *r, const struct job_row *job,
    struct right_size *ret_size);

#endif
