/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job's user should know before it hurts.
 */
#ifndef BELAY_SCHEDULER_ADVICE_H
#define BELAY_SCHEDULER_ADVICE_H

#include "base/json.h"
#include "db/db.h"
#include "scheduler/pools.h"

/* Warnings about a job that has not ended: an array of {"code", "text"}, the caller's. Reads the
 * database (the last ADVICE_JOBS_LOOKED_AT jobs of the user, for what one of the same name took);
 * what cannot be read gives no advice.
 *   save-too-slow: a save takes longer than the notice that the spot machines of a pool get */
#define ADVICE_JOBS_LOOKED_AT 1000
json_t *advice_on_job(const struct pools *p, struct db_reader *r, const struct job_row *job);

#endif
