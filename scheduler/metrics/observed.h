/* SPDX-License-Identifier: Apache-2.0
 *
 * What has been committed since belayd's start, as counters and histograms; and the live jobs and
 * the GPUs as they are now. The model is never scanned: a commit costs as much as it changed.
 */
#ifndef BELAY_SCHEDULER_METRICS_OBSERVED_H
#define BELAY_SCHEDULER_METRICS_OBSERVED_H

#include "db/db.h"
#include "scheduler/core/model/model.h"
#include "scheduler/metrics/exposition.h"

struct observed;

struct observed *observed_create(void);
void observed_destroy(struct observed *o); /* o may be NULL */
/* All live jobs, after the model was loaded. */
void observed_load(struct observed *o, const struct model *m);
/* After the commit, before the model changes again. */
void observed_committed(struct observed *o, const struct model *m, const struct db_batch *b);
void observed_write(const struct observed *o, const struct model *m, struct exposition *x);

#endif
