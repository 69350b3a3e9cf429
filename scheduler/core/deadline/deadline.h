/* SPDX-License-Identifier: Apache-2.0
 *
 * Meets a job's deadline at the least expected cost: which offer to run on now, or to wait.
 *
 * The guarantee has priority. As long as an on-demand start now, with a restart and one failed
 * launch before it, would meet the deadline, only actions are allowed after which the same is true
 * at the next examination. So a job is late only if it was late at its arrival, or if reality was
 * worse than the stated worst case. Among the allowed actions the cheapest is chosen, from a table
 * (deadline/table.h) of the expected cost of each action.
 *
 * Other rules are here for comparison. Uniform Progress is from Wu et al., "Can't Be Late:
 * Optimizing Spot Instance Savings under Deadlines", NSDI 2024: use spot whenever it is available
 * until it is lost; without it, use on-demand when behind the straight line from start to deadline
 * and, with hysteresis, stay there until ahead of the line as it will be two restarts later; use
 * on-demand for good when the time left is less than the remaining work plus two restarts. The
 * paper's text and its published code (RC_CR, the authors' name) differ: the code never leaves
 * on-demand to wait. All rules keep the same guarantee; the time of a failed launch is additional
 * (0: as published).
 *
 * The cheapest action on average may be much more expensive than one of these rules in an
 * unexpected market. A job may name a baseline and a cap on its extra cost relative to it
 * (baseline.h).
 *
 * PURE: no clock, no allocation, no state besides the arguments. One decision takes some
 * microseconds with 50 offers.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_DEADLINE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_DEADLINE_H

#include "scheduler/core/deadline/table.h"

#define DEADLINE_NOWHERE ((size_t)-1)

enum deadline_rule {
    DEADLINE_PLANNED,        /* the table */
    DEADLINE_UNIFORM,        /* Uniform Progress with hysteresis */
    DEADLINE_UNIFORM_STICKY, /* the same; the hysteresis also applies to spot */
    DEADLINE_UNIFORM_PLAIN,  /* without hysteresis */
    DEADLINE_RC_CR,          /* rc_cr_threshold: as STICKY, but on-demand is left only for spot */
    DEADLINE_RC_CR_PLAIN,    /* rc_cr_threshold_no_condition2: the same without hysteresis */
    DEADLINE_GREEDY,         /* spot, or wait until only on-demand meets the deadline */
    DEADLINE_ON_DEMAND       /* on-demand from the start */
};

/* An offer. SURE offers are always available and never taken away: on-demand, and owned nodes that
 * are free. */
struct deadline_offer {
    bool is_sure;
    bool is_up; /* spot: a machine is there, or a launch may be tried */
    /* Spot: a machine of it is coming, or up and empty, to which the job may move from a sure
     * offer. */
    bool is_meant;
    uint16_t class;       /* spot: deadline_class() */
    int64_t price_uusd_h; /* >= 0: price of a further hour; 0 for owned nodes */
    double share;         /* spot: spell_watch_share(); used by the reference rules */
    double rate;          /* spot: spell_watch_rate(); used by the baseline of a cap */
    int64_t record_ms;    /* spot: spell_watch_record_ms(); 0: none */
};

/* State of the simulated baseline: baseline.h. */
struct baseline {
    enum deadline_rule rule; /* not DEADLINE_PLANNED */
    int64_t done_ms, starting_ms;
    size_t on, last;
    double paid_uusd;
};

/* How a cap is kept: baseline.h. */
struct deadline_law {
    /* Assumed interruptions before the job has caught up with the baseline; INFINITY: the cap is
     * guaranteed. */
    double interruptions;
    /* Assumed future loss rate, as a multiple of the recent one; for finite interruptions. */
    double losses;
    double part; /* used part of the cap; for finite interruptions */
};

struct deadline_job {
    /* Remaining work at full speed, and its worst case; work_worst_ms >= work_ms >= 0. */
    int64_t work_ms, work_worst_ms;
    int64_t left_ms; /* to the deadline; may be negative */
    /* Boot, restore and warm-up: time of any start. The worst case includes the work
     * that a reclaim without notice loses. */
    int64_t restart_ms, restart_worst_ms;
    /* The part of restart_worst_ms that is such work: a start does not cost it, only a loss. */
    int64_t loss_worst_ms;
    /* A move from a sure offer to spot: the job computes on there during the new machine's boot,
     * and both are paid; then it does not compute during the switch, which takes switch_worst_ms at
     * most. boot_ms 0: the sure offer is left first, and a restart follows. */
    int64_t boot_ms, switch_ms, switch_worst_ms;
    /* With a boot_ms: the spot offer whose machine boots beside it, or is up, and the time until it
     * is; or DEADLINE_NOWHERE. */
    size_t moving_to;
    int64_t coming_ms;
    /* It has not been saved yet, and once it is, its worst case will admit no start on spot: the
     * present slack is of use only until then. */
    bool is_last_start;
    /* Maximum time of a failed launch before the next try. */
    int64_t failed_launch_ms;
    /* Maximum time to the next decision, > 0. */
    int64_t look_ms;
    /* Its current offer, or DEADLINE_NOWHERE, also after a loss. */
    size_t on;
    /* Its last spot offer, or DEADLINE_NOWHERE; the reference rules continue from it. */
    size_t last;
    /* Remaining worst-case time of the current restart; > 0 until the program runs. */
    int64_t starting_ms;
    /* for Uniform Progress */
    int64_t whole_work_ms, whole_time_ms; /* work, and time to the deadline, at the job's arrival */
    /* DEADLINE_PLANNED; zeroed: no cap */
    const struct baseline *baseline; /* borrowed */
    double paid_uusd;                /* by the job so far */
    double cap_uusd;                 /* maximum extra cost relative to the baseline */
    const struct deadline_law *law;  /* borrowed */
};

enum deadline_why {
    DEADLINE_WHY_DONE,
    DEADLINE_WHY_NET,         /* only on-demand guarantees the deadline */
    DEADLINE_WHY_CHEAPEST,    /* lowest expected cost */
    DEADLINE_WHY_KEEP,        /* the same, and the job is on it already */
    DEADLINE_WHY_NOTHING_UP,  /* waiting: no spot is up, and there is time */
    DEADLINE_WHY_BETTER_WAIT, /* waiting although spot is up: it is not expected to last */
    DEADLINE_WHY_RULE,        /* decided by another rule */
    DEADLINE_WHY_CAP          /* a cheaper action might exceed the cap */
};

struct deadline_choice {
    size_t offer; /* DEADLINE_NOWHERE: wait, and release the current offer */
    enum deadline_why why;
    double cost_uusd;      /* expected cost to the end with this action; DEADLINE_PLANNED only */
    double next_cost_uusd; /* of the best alternative; INFINITY: none */
    size_t next_offer;     /* that alternative */
    /* The cheapest offer that is meant, if moving there now is allowed; else DEADLINE_NOWHERE. */
    size_t meant;
    double meant_cost_uusd;
};

/* Settings common to jobs of one kind. */
struct deadline_policy {
    enum deadline_rule rule;
    /* Reference rules: of several offers that are up take the one with the highest share, not the
     * next one after the last. */
    bool takes_best;
    /* Borrowed; DEADLINE_PLANNED only: for this offer set, about this restart, and this price ratio
     * of spot to on-demand. */
    const struct deadline_table *table;
    /* Spot price that set_class refers to: of the favourite, if it is up; 0: the table's own. */
    int64_t price_uusd_h;
};

/* set_class: deadline_offer_set_class() of the spot offers. At least one offer must be sure; the
 * cheapest of these is "on-demand". */
void deadline_decide(const struct deadline_policy *p, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n, uint16_t set_class,
    struct deadline_choice *ret_choice);

/* Time left beyond the worst-case work and the net. Unless it is negative, a start on the sure
 * offer now, after one failed launch, meets the deadline: the condition that the guarantee
 * preserves. */
int64_t deadline_slack_ms(const struct deadline_job *job);
/* Whether there is slack for a start on spot: for its time, and for a failed launch before it. */
bool deadline_admits_start(const struct deadline_job *job);
/* Whether a start on spot is a move for this job: it computes on a sure offer, and goes on. Not
 * under a law with a guarantee, which knows no boot that is paid beside on-demand (baseline.h). */
bool deadline_moves(const struct deadline_job *job, const struct deadline_offer *offers);

#endif
