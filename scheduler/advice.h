/* SPDX-License-Identifier: Apache-2.0
 *
 * Warnings for a job's user before a problem occurs.
 */
#ifndef BELAY_SCHEDULER_ADVICE_H
#define BELAY_SCHEDULER_ADVICE_H

#include "base/json.h"
#include "db/db.h"
#include "scheduler/pools.h"

/* Returns the warnings about a live job, a new array of {"code", "text"}. Reads the database (the
 * last ADVICE_JOBS_EXAMINED jobs of the user, for one of the same name); unreadable data gives no
 * warning.
 *   save-too-slow: a save takes longer than the notice that the spot machines of a pool get
 *   right-size: the last runs of its name would fit a cheaper machine (right_size.h)
 * model may be NULL: without advice that needs it. */
#define ADVICE_JOBS_EXAMINED 1000
json_t *advice_on_job(const struct pools *p, const struct model *model, struct db_reader *r,
    const struct job_row *job);

#endif
