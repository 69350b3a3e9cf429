/* SPDX-License-Identifier: Apache-2.0
 *
 * Uniform Progress beside a job that is to be done by some moment (baseline.h), as it is stored
 * with the job: by the wall clock, in our time and by the offers' ids. At each look at the job it
 * goes on for the time that has passed, and then decides anew on what the job sees. So a restart of
 * belayd takes nothing from it but the looks in between, and what was not stored since.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_BASELINE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_BASELINE_H

#include "scheduler/core/deadline/baseline.h"
#include "scheduler/core/model/model.h"

/* As it is now, if there is so much work in all. One that has not begun is where the job is, which
 * has done so much. */
struct baseline_row procurement_baseline_now(
    const struct baseline_row *r, int64_t whole_ms, int64_t done_ms, struct wall now);

/* The same as deadline.h counts it, among these offers; scale: its time for ours. */
struct baseline procurement_baseline_among(
    const struct baseline_row *r, const struct offer *const *of, size_t n, double scale);

/* It goes to this one, or goes on there; NULL: it waits. */
void procurement_baseline_go(struct baseline_row *r, const struct offer *to, int64_t restart_ms);

#endif
