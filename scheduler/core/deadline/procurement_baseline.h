/* SPDX-License-Identifier: Apache-2.0
 *
 * The baseline of a job (baseline.h) in its stored form: wall clock times and
 * offer ids. At each examination of the job it advances by the passed time and then decides on the
 * job's observations. A restart of belayd loses only the examinations in between and unstored
 * changes.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_BASELINE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_BASELINE_H

#include "scheduler/core/deadline/baseline.h"
#include "scheduler/core/model/model.h"

/* Current state, for this amount of total work. A baseline that has not begun starts at the job's
 * place with the job's completed work. */
struct baseline_row procurement_baseline_now(
    const struct baseline_row *r, int64_t whole_ms, int64_t done_ms, struct wall now);

/* The same in deadline.h's form, by this rule and with these offers; scale: deadline.h's time per
 * real time. */
struct baseline procurement_baseline_among(const struct baseline_row *r, enum deadline_rule rule,
    const struct offer *const *of, size_t n, double scale);

/* Moves to this offer or stays there; NULL: waits. */
void procurement_baseline_go(struct baseline_row *r, const struct offer *to, int64_t restart_ms);

#endif
