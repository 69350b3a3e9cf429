/* SPDX-License-Identifier: Apache-2.0
 *
 * Expected cost to finish, by dynamic programming: for (remaining work, slack, class of the offer
 * set) the expected cost of each action now, followed by optimal ones. One table serves all jobs
 * with the same offer set, restart cost and prices, for any work and deadline. It takes some tenths
 * of a second and some megabytes to build; a lookup takes a tenth of a microsecond.
 *
 * Units. Time in steps of DEADLINE_STEP_MS; money in the on-demand price of a step. SLACK is time
 * left minus work left minus NET. The net is the reserve that guarantees the deadline: a restart,
 * and a failed launch before it. At slack 0 the job is on on-demand for good, unless it runs on
 * spot, where it may stay until it is lost.
 *
 * With V = the minimum over the actions of a mode, h = one step, p = the price of spot, r = the
 * restart in steps, E over the chain:
 *
 *     wait          E V_idle(w, s - 1)
 *     on-demand     1 + E V_sure(w - 1, s)                                  if on it
 *     spot          p + E [kept: V_spot(w - 1, s), lost: V_idle(w - 1, s)]  if on it
 *     start         floor(r) paid steps that cost slack and do no work, in which spot may be lost;
 *                   then one step of which the fraction r - floor(r) is like that, as a mixture of
 *                   whole steps of both types
 *     move          from on-demand to spot: on-demand computes on beside the spot machine until
 *                   that has booted, for 1 + p, and takes over if it is lost; then as a start, but
 *                   only for as long as the switch takes
 *
 * Computed on the whole grid, w from 0 upwards and s within it; a coarser grid is stored and
 * interpolated bilinearly. Decisions compare the five costs instead of reading a stored decision,
 * so one table serves ticks of any length and offers with different prices.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_TABLE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_TABLE_H

#include "scheduler/core/deadline/spells.h"

#define DEADLINE_WORK_STEPS_MAX 2048
#define DEADLINE_SLACK_STEPS_MAX 2048
#define DEADLINE_RESTART_STEPS_MAX 12

enum deadline_act {
    DEADLINE_WAIT,
    DEADLINE_ON_DEMAND_START, /* on-demand, from another place */
    DEADLINE_ON_DEMAND_STAY,
    DEADLINE_SPOT_START,
    DEADLINE_SPOT_MOVE, /* from on-demand, which computes on while the spot machine boots */
    DEADLINE_SPOT_STAY,
    DEADLINE_ACTS
};

/* Duration of starts, in steps; each 0 .. DEADLINE_RESTART_STEPS_MAX. */
struct deadline_starts {
    double restart; /* of any start */
    /* A move from on-demand to spot: the spot machine's boot, during which on-demand computes, and
     * the time without computing that follows. boot 0: on-demand is left first, switching =
     * restart. */
    double boot, switching;
};

/* Starts of this duration; moves too. */
static inline struct deadline_starts deadline_starts_alike(double restart)
{
    return (struct deadline_starts){.restart = restart, .switching = restart};
}

struct deadline_table {
    struct deadline_starts starts;
    double price;                 /* of spot; 0 < price */
    size_t n_work, n_slack;       /* stored points */
    uint16_t *work, *slack;       /* their positions in steps, ascending; owned */
    uint16_t *work_at, *slack_at; /* by steps: the last point not above; owned */
    size_t work_steps, slack_steps;
    float life[DEADLINE_CLASSES]; /* expected remaining life of the favourite, in steps */
    float *cost;                  /* [work][slack][class][act]; owned */
};

/* Sizes in steps: work 1 .. DEADLINE_WORK_STEPS_MAX, slack 1 .. DEADLINE_SLACK_STEPS_MAX; larger
 * queries are answered with the maximum. */
void deadline_table_init(struct deadline_table *t, const struct deadline_chain *c, size_t work,
    size_t slack, const struct deadline_starts *starts, double price);
void deadline_table_deinit(struct deadline_table *t);

/* Incremental build, for callers with other work in between: a number of the work + slack steps at
 * a time. Until it is complete, as go_on reports, the table may only be deinited, after its maker.
 * t and c are borrowed until then. */
struct deadline_maker;
struct deadline_maker *deadline_maker_create(struct deadline_table *t,
    const struct deadline_chain *c, size_t work, size_t slack, const struct deadline_starts *starts,
    double price);
bool deadline_maker_go_on(struct deadline_maker *m, size_t steps);
void deadline_maker_destroy(struct deadline_maker *m); /* NULL is allowed */

/* Costs of all actions, in on-demand steps, including those that the class or the net excludes, as
 * if they were allowed: the caller excludes them. Work beyond the table is priced on-demand.
 * Negative slack counts as 0. */
void deadline_table_costs(const struct deadline_table *t, double work, double slack, uint16_t class,
    double ret_costs[DEADLINE_ACTS]);

#endif
