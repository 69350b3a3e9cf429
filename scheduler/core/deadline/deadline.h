/* SPDX-License-Identifier: Apache-2.0
 *
 * How a job is done by its deadline for the least money: which offer to run on now, or to wait.
 *
 * The guarantee comes first. As long as starting on-demand now would still make it, with a restart
 * and one launch that fails before it, nothing is done after which that would not be so at the next
 * look. So a job is late only if it was late when it came, or if more went wrong than the worst
 * that was said of it. Then the cost, from a table (deadline/table.h) of what each thing costs that
 * could be done now.
 *
 * Others are here to be compared with. Uniform Progress is of Wu et al., "Can't Be Late: Optimizing
 * Spot Instance Savings under Deadlines", NSDI 2024: take spot whenever it is there and stay until
 * it is lost; without it, go on-demand when behind the straight line from the start to the
 * deadline, and, with hysteresis, stay there until ahead of where the line is two restarts later;
 * in any case go on-demand for good when the time left is less than the work left and two restarts.
 * All obey the same guarantee: what a failed launch may take is beside these (0: as published).
 *
 * What is cheapest on average may, in a market that turns out otherwise, be much dearer than one of
 * these. A job may name a baseline and a cap on what it comes to cost more than that (baseline.h).
 *
 * PURE: no clock, no allocation, no state but what is passed in. One decision takes some
 * microseconds with 50 offers.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_DEADLINE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_DEADLINE_H

#include "scheduler/core/deadline/table.h"

#define DEADLINE_NOWHERE ((size_t)-1)

enum deadline_rule {
    DEADLINE_PLANNED,        /* the table */
    DEADLINE_UNIFORM,        /* Uniform Progress with its hysteresis */
    DEADLINE_UNIFORM_STICKY, /* the same; the hysteresis holds against spot as well */
    DEADLINE_UNIFORM_PLAIN,  /* without */
    DEADLINE_GREEDY,         /* spot, or wait until only on-demand makes it */
    DEADLINE_ON_DEMAND       /* from the start */
};

/* An offer. Those that cannot be taken away and are always there are SURE: on-demand, and reserved
 * capacity that is free. */
struct deadline_offer {
    bool is_sure;
    bool is_up; /* spot: could be had at the last look */
    /* spot that is up: nobody has seen it since it was away, but it may be asked for. Not for the
     * baseline of a cap */
    bool is_guess;
    uint16_t class;       /* spot: deadline_class() */
    int64_t price_uusd_h; /* >= 0: what an hour more of it costs; of reserved capacity nothing */
    double share;         /* spot: spell_watch_share(); for the references */
    double rate;          /* spot: spell_watch_rate(); for the baseline of a cap */
};

/* Uniform Progress beside the job: baseline.h. */
struct baseline {
    int64_t done_ms, starting_ms;
    size_t on, last;
    double paid_uusd;
};

/* How a cap is kept: baseline.h. */
struct deadline_law {
    /* that are reckoned with before the job has come up to the baseline; INFINITY: the cap holds
     * whatever comes */
    double interruptions;
    /* of those that there were of late, an hour, in each hour that is left; flaps < INFINITY */
    double losses;
    double part; /* of the cap that is used; flaps < INFINITY */
};

struct deadline_job {
    /* left, at full speed; the worst that is to be reckoned with, >= work_ms >= 0 */
    int64_t work_ms, work_worst_ms;
    int64_t left_ms; /* to the deadline; may be negative */
    /* boot, restore and the save before: what a start anywhere costs in time; the worst with what a
     * reclaim without notice loses of the work */
    int64_t restart_ms, restart_worst_ms;
    /* what a launch that fails may take before another is tried */
    int64_t failed_launch_ms;
    /* the next decision comes no later than after this, > 0 */
    int64_t look_ms;
    /* the offer it is on, or DEADLINE_NOWHERE; one that was lost is nowhere */
    size_t on;
    /* the spot offer it was on last, or DEADLINE_NOWHERE; the references go on from it */
    size_t last;
    /* of the restart there still to come, at worst: > 0 until the program runs */
    int64_t starting_ms;
    /* for Uniform Progress */
    int64_t whole_work_ms, whole_time_ms; /* work and time to the deadline when the job came */
    /* DEADLINE_PLANNED; zero: no cap */
    const struct baseline *baseline; /* borrowed */
    double paid_uusd;                /* so far, by the job */
    double cap_uusd;                 /* that it may come to cost more than the baseline */
    const struct deadline_law *law;  /* borrowed */
};

enum deadline_why {
    DEADLINE_WHY_DONE,
    DEADLINE_WHY_NET,         /* only on-demand makes it for certain */
    DEADLINE_WHY_CHEAPEST,    /* expected to be cheapest over all */
    DEADLINE_WHY_KEEP,        /* as this, and it is on it already */
    DEADLINE_WHY_NOTHING_UP,  /* waiting: no spot is up, and there is time */
    DEADLINE_WHY_BETTER_WAIT, /* waiting although spot is up: it is not expected to last */
    DEADLINE_WHY_RULE,        /* what another rule says */
    DEADLINE_WHY_CAP          /* something else is expected to be cheaper, but might pass the cap */
};

struct deadline_choice {
    size_t offer; /* DEADLINE_NOWHERE: wait, and let go of what it is on */
    enum deadline_why why;
    double cost_uusd;      /* expected, to the end, if this is done; DEADLINE_PLANNED only */
    double next_cost_uusd; /* of the best other thing; INFINITY: there is none */
};

/* What stays the same for all jobs of a kind. */
struct deadline_policy {
    enum deadline_rule rule;
    bool only_seen; /* the references: take no guess */
    /* the references: of several that are up the one with the highest share, rather than the next
     * after the last */
    bool takes_best;
    /* borrowed; DEADLINE_PLANNED only: for this market, about this restart, spot price : on-demand
     * price */
    const struct deadline_table *table;
    /* of spot in the market, as its class is: of the favourite, if that is up; 0: the table's
     * own */
    int64_t price_uusd_h;
};

/* market: deadline_market_class() of the spot offers. At least one offer has to be sure: the
 * cheapest of these is what on-demand means. */
void deadline_decide(const struct deadline_policy *p, const struct deadline_job *job,
    const struct deadline_offer *offers, size_t n, uint16_t market,
    struct deadline_choice *ret_choice);

/* Whether a start on the sure offer now, after one launch that fails, still makes it: what the
 * guarantee is about. */
bool deadline_is_feasible(const struct deadline_job *job);
/* The time left that neither the worst work nor the net needs; negative: it does not make it. */
int64_t deadline_slack_ms(const struct deadline_job *job);

#endif
