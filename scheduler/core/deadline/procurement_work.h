/* SPDX-License-Identifier: Apache-2.0
 *
 * Remaining work of a job with a finish time (procurement.c), in time at full speed on its machine.
 *
 * From the submit (--work, else --time) until its program has reported progress for a while; from
 * then on from its progress. A program does not work right from its start: it loads and compiles
 * first. So the rate is measured from its first report, and the time before it, beyond the work
 * already done, is its WARM-UP: part of the cost of a start, not of the work. Rate and warm-up are
 * measured in each attempt and not stored: after a restart of belayd the last result is used until
 * then.
 *
 * PAUSES. A save may pause the program. A deadline is a matter of time on the clock, so a pause is
 * added for each periodic save that the remaining work needs, and nothing else contains pauses:
 *
 *     time = work + (time since the last save + work) / interval * pause
 *
 * - done_ms and shown_ms of a job, and the rate of its progress, are run time minus its pauses.
 * - --work is the run time without interruptions, and a save is one.
 * - --time ends an attempt after that time on the clock, pauses included, and with it the job: so
 *   the work and its pauses are bounded by it, or a run without interruptions would be ended. If
 *   the job is requeued then (--retry timeout=N), all attempts together may take longer: it bounds
 *   the work, and pauses are added. It is never less than the expected work and pauses.
 *
 * Pause and interval are those of the last save. Before the first one no pause is expected; in the
 * worst case it is two minutes, unless the margin on the work is more.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_WORK_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_WORK_H

#include "scheduler/core/model/model.h"

/* What the worst case exceeds the expected work by. */
enum worst_source {
    WORST_BY_MARGIN, /* work_margin, or that of its progress */
    WORST_BY_LIMIT,  /* the same, but no more than --time */
    WORST_BY_PAUSES  /* pauses of saves, which have not been measured yet */
};

/* All with pauses. */
struct work_left {
    int64_t ms, worst_ms;      /* remaining; worst_ms >= ms >= 0 */
    int64_t whole_ms, done_ms; /* total, and the completed part */
    int64_t unsaved_ms;        /* completed but unsaved: repeated if the machine is lost now */
    int64_t finish_ms;         /* wall time by which it is to be done */
    int64_t worst_pauses_ms;   /* pauses in worst_ms that are added to what bounds it */
    enum worst_source source;
};

struct work_left procurement_work_left(const struct model *m, const struct job *j, struct wall now);

/* What the first save of a job is assumed to show: its pause, the interval of the next ones, and
 * the worst case of the remaining work once its progress is known too. */
struct first_save {
    int64_t pause_ms, every_ms, worst_ms;
};
struct first_save procurement_work_first_save(const struct job *j, const struct work_left *w);

/* What the remaining work is computed from: the job's own, or changed for a what-if. */
struct work_terms {
    int64_t work_ms, time_limit_ms, finish_ms; /* as in struct job_spec */
    int64_t shown_ms;                          /* whole work as its progress shows; 0: not yet */
    int32_t margin_pct;                        /* of work_ms */
};

struct work_terms procurement_work_terms(const struct model *m, const struct job *j);
struct work_left procurement_work_left_if(
    const struct job *j, const struct work_terms *t, struct wall now);

/* Observed time from a start of its program to the first work; 0 = none or unknown. */
int64_t procurement_work_warm_ms(const struct job *j);
/* Remaining part of it in the current attempt. */
int64_t procurement_work_warming_ms(const struct job *j, struct wall now);

#endif
