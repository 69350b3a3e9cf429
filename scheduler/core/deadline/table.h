/* SPDX-License-Identifier: Apache-2.0
 *
 * What it costs to finish, by dynamic programming: for (work left, slack, class of the market) the
 * expected cost of each thing that a job could do now, if it goes on to do what is best. One table
 * serves all jobs with the same market, restart cost and prices, whatever their work and deadlines;
 * it takes some tenths of a second and some megabytes to make, and a look takes a tenth of a
 * microsecond.
 *
 * Units. Time in steps of FINISH_STEP_MS; money in what on-demand costs a step, so that 1.0 is a
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

#define FINISH_WORK_STEPS_MAX 2048
#define FINISH_SLACK_STEPS_MAX 2048
#define FINISH_RESTART_STEPS_MAX 12

enum finish_act {
    FINISH_WAIT,
    FINISH_SURE_START, /* on-demand, from somewhere else */
    FINISH_SURE_STAY,
    FINISH_SPOT_START,
    FINISH_SPOT_STAY,
    FINISH_ACTS
};

struct finish_table {
    double restart_steps, price;  /* of spot; 0 < price */
    size_t n_work, n_slack;       /* points kept */
    uint16_t *work, *slack;       /* their steps, ascending; ours */
    uint16_t *work_at, *slack_at; /* by steps: the last point that is not above; ours */
    size_t work_steps, slack_steps;
    float life[FINISH_CLASSES]; /* steps that the favourite is expected to stay up */
    float *cost;                /* [work][slack][class][act]; ours */
};

/* Steps: work 1 .. FINISH_WORK_STEPS_MAX, slack 1 .. FINISH_SLACK_STEPS_MAX, the most that will be
 * asked for (more is answered as that much); restart 0 .. FINISH_RESTART_STEPS_MAX. */
void finish_table_init(struct finish_table *t, const struct finish_chain *c, size_t work,
    size_t slack, double restart, double price);
void finish_table_deinit(struct finish_table *t);

/* The same a part at a time, for who has to do something else in between: so many steps of the work
 * + slack that there are. Until all are done, which go_on says, the table is only to be deinited,
 * after its maker. t and c are borrowed until then. */
struct finish_maker;
struct finish_maker *finish_maker_create(struct finish_table *t, const struct finish_chain *c,
    size_t work, size_t slack, double restart, double price);
bool finish_maker_go_on(struct finish_maker *m, size_t steps);
void finish_maker_destroy(struct finish_maker *m); /* NULL is fine */

/* The costs of all acts, in steps on demand. Those that the class or the net does not allow are
 * there too, as if they were allowed: the caller knows what is. Work beyond the table costs what
 * on-demand would. Negative slack counts as 0. */
void finish_table_costs(const struct finish_table *t, double work, double slack, uint16_t class,
    double ret_costs[FINISH_ACTS]);

#endif
