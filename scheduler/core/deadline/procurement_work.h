/* SPDX-License-Identifier: Apache-2.0
 *
 * Remaining work of a job with a finish time (procurement.c). All times are at full speed on its
 * machine.
 *
 * From the submit (--work, else --time) until its program has reported progress for a while; from
 * then on from its progress. A program does not work right from its start: it loads and compiles
 * first. So the rate is measured from its first report, and the time before it, beyond the work
 * already done, is its WARM-UP: part of the cost of a start, not of the work. Rate and warm-up are
 * measured in each attempt and not stored: after a restart of belayd the last result is used until
 * then.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_WORK_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_WORK_H

#include "scheduler/core/model/model.h"

struct work_left {
    int64_t ms, worst_ms; /* remaining; worst_ms >= ms >= 0 */
    int64_t whole_ms;     /* total, with completed work */
    int64_t unsaved_ms;   /* completed but unsaved: repeated if the machine is lost now */
};

struct work_left procurement_work_left(const struct model *m, const struct job *j, struct wall now);

/* Observed time from a start of its program to the first work; 0 = none or unknown. */
int64_t procurement_work_warm_ms(const struct job *j);
/* Remaining part of it in the current attempt. */
int64_t procurement_work_warming_ms(const struct job *j, struct wall now);

#endif
