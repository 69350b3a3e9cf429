/* SPDX-License-Identifier: Apache-2.0
 *
 * How far belayd's copy of the output of running attempts is behind what they wrote, by node: the
 * bytes that it lacks, and how long ago the oldest of them were reported.
 *
 * An attempt's output is complete at one moment and not at the next, because it is written all the
 * time. Therefore an attempt is behind since the report of the first size that has not arrived.
 */
#ifndef BELAY_SCHEDULER_METRICS_LOG_LAG_H
#define BELAY_SCHEDULER_METRICS_LOG_LAG_H

#include "base/time.h"
#include "scheduler/core/model/model.h"
#include "scheduler/metrics/exposition.h"

struct log_lag;

struct log_lag_report {
    int64_t job, attempt;
    int64_t written_bytes; /* by the attempt */
    int64_t stored_bytes;  /* of it, by belayd */
};

struct log_lag *log_lag_create(void);
void log_lag_destroy(struct log_lag *g);
/* The attempts that run on a node, as its agent reports them, which replaces its last report. */
void log_lag_reported(struct log_lag *g, const struct model *m, int64_t node,
    const struct log_lag_report *reports, size_t n, struct mono now);
/* Bytes of an attempt's output that belayd has: after a piece has arrived. */
void log_lag_arrived(
    struct log_lag *g, int64_t node, int64_t job, int64_t attempt, int64_t stored_bytes);
/* The bytes that belayd had last; 0 if the attempt was not reported yet. */
int64_t log_lag_stored(const struct log_lag *g, int64_t node, int64_t job, int64_t attempt);
void log_lag_write(
    const struct log_lag *g, const struct model *m, struct mono now, struct exposition *x);

#endif
