/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/outlook.h"

#include "base/prng.h"
#include <math.h>
#include <stdlib.h>

#define RUNS 41         /* simulated courses; odd, for the median */
#define STEPS_MAX 20000 /* after these a course is cut off: 138 days of steps of ten minutes */
#define UUSD_H 1000000  /* price of on-demand */

struct state {
    /* In steps. beside: remaining boot of spot, while on-demand computes; boot: then remaining part
     * of the current start. */
    double work, slack, beside, boot;
    enum deadline_mode mode;
    uint16_t set_class;
    double cost, steps;
};

struct simulation {
    const struct deadline_policy *p;
    const struct deadline_chain *c;
    const struct deadline_job *job; /* current state */
    double price;
    double restart, beside, switching; /* in steps; of a start, and of a move from on-demand */
};

/* Stay, start elsewhere or release, whichever is cheapest. */
static enum deadline_mode by_table(const struct simulation *sim, const struct state *s)
{
    double costs[DEADLINE_ACTS], best;
    enum deadline_mode to;
    deadline_table_costs(sim->p->table, s->work, s->slack, s->set_class, costs);
    best = s->mode == DEADLINE_MODE_ON_DEMAND ? costs[DEADLINE_ON_DEMAND_STAY]
           : s->mode == DEADLINE_MODE_SPOT    ? costs[DEADLINE_SPOT_STAY]
                                              : costs[DEADLINE_ON_DEMAND_START];
    to = s->mode == DEADLINE_MODE_IDLE ? DEADLINE_MODE_ON_DEMAND : s->mode;
    if (s->slack >= 1 && costs[DEADLINE_WAIT] < best) {
        best = costs[DEADLINE_WAIT];
        to = DEADLINE_MODE_IDLE;
    }
    const bool moves = s->mode == DEADLINE_MODE_ON_DEMAND;
    if (s->mode != DEADLINE_MODE_SPOT && deadline_class_is_up(s->set_class) &&
        s->slack >= (moves ? sim->switching : sim->restart + 1) &&
        costs[moves ? DEADLINE_SPOT_MOVE : DEADLINE_SPOT_START] < best)
        to = DEADLINE_MODE_SPOT;
    return to;
}

static enum deadline_mode by_rule(const struct simulation *sim, const struct state *s)
{
    const struct deadline_offer offers[2] = {{.is_up = deadline_class_is_up(s->set_class),
                                                 .class = s->set_class,
                                                 .price_uusd_h = (int64_t)(sim->price * UUSD_H)},
        {.is_sure = true, .price_uusd_h = UUSD_H}};
    struct deadline_job job = *sim->job;
    struct deadline_choice choice;
    job.baseline = NULL;
    job.work_ms = (int64_t)(s->work * DEADLINE_STEP_MS);
    job.work_worst_ms = job.work_ms + sim->job->work_worst_ms - sim->job->work_ms;
    job.left_ms = (int64_t)(s->slack * DEADLINE_STEP_MS) + job.work_worst_ms +
                  job.restart_worst_ms + job.failed_launch_ms;
    job.on = s->mode == DEADLINE_MODE_IDLE   ? DEADLINE_NOWHERE
             : s->mode == DEADLINE_MODE_SPOT ? 0
                                             : 1;
    job.last = DEADLINE_NOWHERE;
    job.starting_ms = 0;
    job.look_ms = DEADLINE_STEP_MS;
    deadline_decide(sim->p, &job, offers, 2, s->set_class, &choice);
    return choice.offer == DEADLINE_NOWHERE ? DEADLINE_MODE_IDLE
           : choice.offer == 0              ? DEADLINE_MODE_SPOT
                                            : DEADLINE_MODE_ON_DEMAND;
}

static void decide(const struct simulation *sim, struct state *s)
{
    enum deadline_mode to;
    if (s->boot > 0)
        return;
    to = sim->p->rule == DEADLINE_PLANNED ? by_table(sim, s) : by_rule(sim, s);
    const bool moves = s->mode == DEADLINE_MODE_ON_DEMAND && to == DEADLINE_MODE_SPOT;
    if (to != s->mode && to != DEADLINE_MODE_IDLE) {
        s->beside = moves ? sim->beside : 0;
        s->boot = moves ? sim->switching : sim->restart;
    }
    s->mode = to;
}

static void pass(const struct simulation *sim, struct prng *prng, struct state *s)
{
    const struct deadline_chain *c = sim->c;
    double beside = fmin(s->beside, fmin(s->work, 1)),
           boot = fmin(s->boot, s->work > beside ? 1 - beside : 0),
           ran = s->mode == DEADLINE_MODE_IDLE ? 0 : 1 - boot, at = prng_unit(prng), part = 1;
    if (s->mode != DEADLINE_MODE_IDLE && s->work < ran) {
        part = boot + s->work;
        ran = s->work;
    }
    s->cost += beside;
    s->cost +=
        s->mode == DEADLINE_MODE_IDLE ? 0 : part * (s->mode == DEADLINE_MODE_SPOT ? sim->price : 1);
    s->beside -= beside;
    s->steps += part;
    s->work -= ran;
    s->slack -= s->mode == DEADLINE_MODE_IDLE ? 1 : boot;
    s->boot -= s->mode == DEADLINE_MODE_IDLE ? s->boot : boot;
    size_t i = c->first[s->set_class], last = c->first[s->set_class + 1] - 1;
    while (i < last && at >= (double)c->steps[i].chance)
        at -= (double)c->steps[i++].chance;
    if (s->mode == DEADLINE_MODE_SPOT &&
        (c->steps[i].moved || !deadline_class_is_up(c->steps[i].to))) {
        s->mode = s->beside > 0 ? DEADLINE_MODE_ON_DEMAND : DEADLINE_MODE_IDLE;
        s->beside = s->boot = 0;
    }
    s->set_class = c->steps[i].to;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void deadline_outlook(const struct deadline_policy *p, const struct deadline_chain *c,
    const struct deadline_job *job, double price, enum deadline_mode mode, uint16_t set_class,
    struct deadline_outlook *ret_outlook)
{
    const struct simulation sim = {.p = p,
        .c = c,
        .job = job,
        .price = price,
        .restart = (double)job->restart_ms / DEADLINE_STEP_MS,
        .beside = (double)job->boot_ms / DEADLINE_STEP_MS,
        .switching =
            (double)(job->boot_ms > 0 ? job->switch_ms : job->restart_ms) / DEADLINE_STEP_MS};
    int64_t slack_ms = deadline_slack_ms(job);
    double took[RUNS], cost = 0;
    struct prng prng;
    prng_init(&prng, 5);
    for (size_t k = 0; k < RUNS; k++) {
        struct state s = {.work = (double)job->work_ms / DEADLINE_STEP_MS,
            .slack = slack_ms > 0 ? (double)slack_ms / DEADLINE_STEP_MS : 0,
            .boot = mode == DEADLINE_MODE_IDLE ? 0 : (double)job->starting_ms / DEADLINE_STEP_MS,
            .mode = mode,
            .set_class = set_class};
        for (size_t i = 0; s.work > 1e-9 && i < STEPS_MAX; i++) {
            decide(&sim, &s);
            pass(&sim, &prng, &s);
        }
        took[k] = s.steps;
        cost += s.cost / RUNS;
    }
    qsort(took, RUNS, sizeof took[0], by_value);
    *ret_outlook =
        (struct deadline_outlook){.median_ms = (int64_t)(took[RUNS / 2] * DEADLINE_STEP_MS),
            .p95_ms = (int64_t)(took[(RUNS * 95 - 1) / 100] * DEADLINE_STEP_MS),
            .cost = cost};
}
