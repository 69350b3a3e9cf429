/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs to finish, by dynamic programming: for (work left, slack, class of the market) the
 * expected cost of each thing that a job could do now, if it goes on to do what is best. One table
 * serves all jobs with the same market, restart cost and prices, whatever their work and deadlines;
 * it takes some tenths of a second and some megabytes to make, and a look takes a tenth of a
 * microsecond.
 *
 * Units. Time in steps of DEADLINE_STEP_MS; money in what on-demand costs a step, so that 1.0 is a
 * step on demand. SLACK is time left minus work left minus NET, and the net is what has to stay: a
 * restart, and a launch that fails before it. At slack 0 the job is on on-demand for good, unless
 * it runs on spot, where it may stay until it is lost.
 *
 * With V = the least of what may be done in a mode, h = one step, p = the price of spot, r = the
 * restart in steps, E over the chain:
 *
 *     wait          E V_idle(w, s - 1)
 *     go on demand  1 + E V_sure(w - 1, s)                          when on it
 *     go on spot    p + E [kept: V_spot(w - 1, s), lost: V_idle(w - 1, s)]     when on it
 *     start         floor(r) steps of paying that cost slack and bring no work, in which spot may
 *                   be lost; then one of which the part r - floor(r) is such, taken as a mixture of
 *                   a whole step of either kind
 *
 * Computed on the whole grid, w from 0 upwards and s within it, of which a coarser one is kept;
 * between its points it is bilinear. Deciding from the five costs, rather than from a stored
 * decision, is what lets one table serve ticks of any length and offers whose prices differ.
 */
#ifndef BELAY_SCHEDULER_CORE_DEADLINE_TABLE_H
#define BELAY_SCHEDULER_CORE_DEADLINE_TABLE_H

#include "scheduler/core/deadline/spells.h"

#define DEADLINE_WORK_STEPS_MAX 2048
#define DEADLINE_SLACK_STEPS_MAX 2048
#define DEADLINE_RESTART_STEPS_MAX 12

enum deadline_act {
    DEADLINE_WAIT,
    DEADLINE_ON_DEMAND_START, /* on-demand, from somewhere else */
    DEADLINE_ON_DEMAND_STAY,
    DEADLINE_SPOT_START,
    DEADLINE_SPOT_STAY,
    DEADLINE_ACTS
};

struct deadline_table {
    double restart_steps, price;  /* of spot; 0 < price */
    size_t n_work, n_slack;       /* points kept */
    uint16_t *work, *slack;       /* their steps, ascending; ours */
    uint16_t *work_at, *slack_at; /* by steps: the last point that is not above; ours */
    size_t work_steps, slack_steps;
    float life[DEADLINE_CLASSES]; /* steps that the favourite is expected to stay up */
    float *cost;                  /* [work][slack][class][act]; ours */
};

/* Steps: work 1 .. DEADLINE_WORK_STEPS_MAX, slack 1 .. DEADLINE_SLACK_STEPS_MAX, the most that will
 * be asked for (more is answered as that much); restart 0 .. DEADLINE_RESTART_STEPS_MAX. */
void deadline_table_init(struct deadline_table *t, const struct deadline_chain *c, size_t work,
    size_t slack, double restart, double price);
void deadline_table_deinit(struct deadline_table *t);

/* The same a part at a time, for who has to do something else in between: so many steps of the work
 * + slack that there are. Until all are done, which go_on says, the table is only to be deinited,
 * after its maker. t and c are borrowed until then. */
struct deadline_maker;
struct deadline_maker *deadline_maker_create(struct deadline_table *t,
    const struct deadline_chain *c, size_t work, size_t slack, double restart, double price);
bool deadline_maker_go_on(struct deadline_maker *m, size_t steps);
void deadline_maker_destroy(struct deadline_maker *m); /* NULL is fine */

/* The costs of all acts, in steps on demand. Those that the class or the net does not allow are
 * there too, as if they were allowed: the caller knows what is. Work beyond the table costs what
 * on-demand would. Negative slack counts as 0. */
void deadline_table_costs(const struct deadline_table *t, double work, double slack, uint16_t class,
    double ret_costs[DEADLINE_ACTS]);

#endif
