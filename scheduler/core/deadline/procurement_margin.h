/* SPDX-License-Identifier: Apache-2.0
 *
 * The margin on the work of a deadline job, and what would let the job use spot in spite of it.
 *
 * A remedy is searched with the evaluation of the decision itself, on the job's own offers and at
 * this moment: with the changed value, the rule of admission (procurement_admits_spot) holds.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_MARGIN_H
#define BELAY_SCHEDULER_CORE_DEADLINE_PROCUREMENT_MARGIN_H

#include "scheduler/core/model/model.h"

/* What determines the worst case of the remaining work. */
enum margin_source {
    MARGIN_OF_WORK,     /* --work plus work_margin */
    MARGIN_TO_LIMIT,    /* the same, but no more than --time */
    MARGIN_OF_PAUSES,   /* --work plus pauses of saves, of which none has been measured */
    MARGIN_OF_PROGRESS, /* the progress that its program reports */
    MARGIN_ONLY_LIMIT   /* --time, without --work: no margin */
};

struct procurement_margin {
    enum margin_source source;
    int32_t work_margin_pct;   /* as configured */
    int64_t work_ms, worst_ms; /* remaining: expected, and in the worst case */
    int64_t worst_pauses_ms;   /* part of worst_ms: pauses of saves */
    /* Because of the worst case it may not use spot now. The rest is 0 otherwise. */
    bool is_binding;
    bool progress_helps;   /* it may once its program has reported a twentieth of the work */
    int64_t time_limit_ms; /* it may with this --time; 0: with none */
    int64_t finish_in_ms;  /* it may with this time to the deadline; only if no --time helps */
};

/* False if nothing is decided for it: it has no deadline, is on an owned machine, or has no spot
 * and on-demand offers to choose from. Examines the offers up to 30 times if the margin is
 * binding. */
bool procurement_margin_of(const struct model *m, const struct job *j, struct stamp now,
    struct procurement_margin *ret_margin);

/* The job is late (core_procurement_late): the least time to the deadline, in full five minutes,
 * with which it would not be. */
int64_t procurement_margin_in_time_ms(const struct model *m, const struct job *j, struct stamp now);

#endif
