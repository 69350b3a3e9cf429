/* SPDX-License-Identifier: Apache-2.0
 *
 * Run times of jobs by user and name (runtimes.h).
 */
#ifndef BELAY_SCHEDULER_CORE_FORECAST_JOB_RUNTIMES_H
#define BELAY_SCHEDULER_CORE_FORECAST_JOB_RUNTIMES_H

#include "scheduler/core/model/model.h"

struct model;

void runtimes_note(struct model *m, const struct job *j, enum end_kind end, int64_t used_ms);
/* Of jobs of its user and name, of its account, or of all: the first with enough data. NULL:
 * none. */
const struct runtimes *runtimes_of(const struct model *m, const struct job *j);
/* Of the jobs of this user and name that ended of late; NULL: none. */
const struct runtimes *runtimes_of_name(const struct model *m, const char *user, const char *name);
/* NULL is allowed */
const struct runtimes *runtimes_of_account(const struct model *m, const struct account *a);
void runtimes_destroy_all(struct model *m);

#endif
