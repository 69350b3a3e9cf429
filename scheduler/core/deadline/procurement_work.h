/* SPDX-License-Identifier: Apache-2.0
 *
 * How much a job that is to be done by some moment has left to do (procurement.c). All times count
 * as its machine ran them, at full speed.
 *
 * Told with the job (--work, else --time) until its program has told its progress for a while; from
 * then on what that shows. A program does not work from its start on: it loads and compiles first.
 * So the rate is that since it first told of its progress, and what it took until then, beyond what
 * it had done by then, is its WARM-UP: part of what the next start costs, not of the work. Rate and
 * warm-up are seen anew in each attempt, and not stored: after a restart of belayd what was shown
 * last holds until then.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_WORK_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_WORK_H

#include "scheduler/core/model/model.h"

struct work_left {
    int64_t ms, worst_ms; /* left; worst_ms >= ms >= 0 */
    int64_t whole_ms;     /* in all, with what is done */
    int64_t unsaved_ms;   /* that is done, and is done again if the machine goes now */
};

struct work_left procurement_work_left(const struct model *m, const struct job *j, struct wall now);

/* What its program was seen to take from a start until it works; 0: none, or not known. */
int64_t procurement_work_warm_ms(const struct job *j);
/* What is left of that where it runs. */
int64_t procurement_work_warming_ms(const struct job *j, struct wall now);

#endif
