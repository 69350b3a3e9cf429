/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/outlook.h"

#include "base/prng.h"
#include <stdlib.h>

#define PLAYED 41
#define STEPS_MAX 20000

#define UUSD_H 1000000 /* of on-demand */

struct state {
    double work, slack, boot; /* in steps; boot: of a restart that is under way */
    enum finish_mode mode;
    uint16_t market;
    double cost, steps;
};

struct game {
    const struct finish_policy *p;
    const struct finish_chain *c;
    const struct finish_job *job; /* as it is now */
    double price, restart;        /* in steps */
};

/* Who is on something stays, starts elsewhere or lets go, as is cheapest. */
static enum finish_mode by_table(const struct game *g, const struct state *s)
{
    double costs[FINISH_ACTS], best;
    enum finish_mode to;
    finish_table_costs(g->p->table, s->work, s->slack, s->market, costs);
    best = s->mode == FINISH_ON_SURE   ? costs[FINISH_SURE_STAY]
           : s->mode == FINISH_ON_SPOT ? costs[FINISH_SPOT_STAY]
                                       : costs[FINISH_SURE_START];
    to = s->mode == FINISH_IDLE ? FINISH_ON_SURE : s->mode;
    if (s->slack >= 1 && costs[FINISH_WAIT] < best) {
        best = costs[FINISH_WAIT];
        to = FINISH_IDLE;
    }
    if (s->mode != FINISH_ON_SPOT && finish_class_is_up(s->market) && s->slack >= g->restart + 1 &&
        costs[FINISH_SPOT_START] < best)
        to = FINISH_ON_SPOT;
    return to;
}

static enum finish_mode by_rule(const struct game *g, const struct state *s)
{
    const struct finish_offer offers[2] = {{.is_up = finish_class_is_up(s->market),
                                               .class = s->market,
                                               .price_uusd_h = (int64_t)(g->price * UUSD_H)},
        {.is_sure = true, .price_uusd_h = UUSD_H}};
    struct finish_job job = *g->job;
    struct finish_choice choice;
    job.rival = NULL;
    job.work_ms = (int64_t)(s->work * FINISH_STEP_MS);
    job.work_worst_ms = job.work_ms + g->job->work_worst_ms - g->job->work_ms;
    job.left_ms = (int64_t)(s->slack * FINISH_STEP_MS) + job.work_worst_ms + job.restart_worst_ms +
                  job.failed_launch_ms;
    job.on = s->mode == FINISH_IDLE ? FINISH_NOWHERE : s->mode == FINISH_ON_SPOT ? 0 : 1;
    job.last = FINISH_NOWHERE;
    job.starting_ms = 0;
    job.look_ms = FINISH_STEP_MS;
    finish_decide(g->p, &job, offers, 2, s->market, &choice);
    return choice.offer == FINISH_NOWHERE ? FINISH_IDLE
           : choice.offer == 0            ? FINISH_ON_SPOT
                                          : FINISH_ON_SURE;
}

static void decide(const struct game *g, struct state *s)
{
    enum finish_mode to;
    if (s->boot > 0)
        return;
    to = g->p->rule == FINISH_PLANNED ? by_table(g, s) : by_rule(g, s);
    s->boot = to != s->mode && to != FINISH_IDLE ? g->restart : 0;
    s->mode = to;
}

static void pass(const struct game *g, struct prng *prng, struct state *s)
{
    const struct finish_chain *c = g->c;
    double boot = s->boot < 1 ? s->boot : 1, ran = s->mode == FINISH_IDLE ? 0 : 1 - boot,
           at = prng_unit(prng), part = 1;
    if (s->mode != FINISH_IDLE && s->work < ran) {
        part = boot + s->work;
        ran = s->work;
    }
    s->cost += s->mode == FINISH_IDLE ? 0 : part * (s->mode == FINISH_ON_SPOT ? g->price : 1);
    s->steps += part;
    s->work -= ran;
    s->slack -= s->mode == FINISH_IDLE ? 1 : boot;
    s->boot -= s->mode == FINISH_IDLE ? s->boot : boot;
    size_t i = c->first[s->market], last = c->first[s->market + 1] - 1;
    while (i < last && at >= (double)c->steps[i].chance)
        at -= (double)c->steps[i++].chance;
    if (s->mode == FINISH_ON_SPOT && (c->steps[i].moved || !finish_class_is_up(c->steps[i].to))) {
        s->mode = FINISH_IDLE;
        s->boot = 0;
    }
    s->market = c->steps[i].to;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void finish_outlook(const struct finish_policy *p, const struct finish_chain *c,
    const struct finish_job *job, double price, enum finish_mode mode, uint16_t market,
    struct finish_outlook *ret_outlook)
{
    const struct game g = {.p = p,
        .c = c,
        .job = job,
        .price = price,
        .restart = (double)job->restart_ms / FINISH_STEP_MS};
    int64_t slack_ms = finish_slack_ms(job);
    double took[PLAYED], cost = 0;
    struct prng prng;
    prng_init(&prng, 5);
    for (size_t k = 0; k < PLAYED; k++) {
        struct state s = {.work = (double)job->work_ms / FINISH_STEP_MS,
            .slack = slack_ms > 0 ? (double)slack_ms / FINISH_STEP_MS : 0,
            .boot = mode == FINISH_IDLE ? 0 : (double)job->starting_ms / FINISH_STEP_MS,
            .mode = mode,
            .market = market};
        for (size_t i = 0; s.work > 1e-9 && i < STEPS_MAX; i++) {
            decide(&g, &s);
            pass(&g, &prng, &s);
        }
        took[k] = s.steps;
        cost += s.cost / PLAYED;
    }
    qsort(took, PLAYED, sizeof took[0], by_value);
    *ret_outlook =
        (struct finish_outlook){.median_ms = (int64_t)(took[PLAYED / 2] * FINISH_STEP_MS),
            .late_ms = (int64_t)(took[(PLAYED * 95 - 1) / 100] * FINISH_STEP_MS),
            .cost = cost};
}
