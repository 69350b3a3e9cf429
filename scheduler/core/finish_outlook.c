/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/finish_outlook.h"

#include "base/prng.h"
#include <stdlib.h>

#define PLAYED 41
#define STEPS_MAX 20000

struct state {
    double work, slack, boot; /* in steps; boot: of a restart that is under way */
    enum finish_mode mode;
    uint16_t market;
    double cost, steps;
};

/* Who is on something stays, starts elsewhere or lets go, as is cheapest. */
static void decide(const struct finish_table *t, struct state *s)
{
    double costs[FINISH_ACTS], best;
    bool up = finish_class_is_up(s->market);
    enum finish_mode to;
    if (s->boot > 0)
        return;
    finish_table_costs(t, s->work, s->slack, s->market, costs);
    best = s->mode == FINISH_ON_SURE ? costs[FINISH_SURE_STAY] : s->mode == FINISH_ON_SPOT ? costs[FINISH_SPOT_STAY] : costs[FINISH_SURE_START];
    to = s->mode == FINISH_IDLE ? FINISH_ON_SURE : s->mode;
    if (s->slack >= 1 && costs[FINISH_WAIT] < best) {
        best = costs[FINISH_WAIT];
        to = FINISH_IDLE;
    }
    if (s->mode != FINISH_ON_SPOT && up && s->slack >= t->restart_steps + 1 && costs[FINISH_SPOT_START] < best)
        to = FINISH_ON_SPOT;
    s->boot = to != s->mode && to != FINISH_IDLE ? t->restart_steps : 0;
    s->mode = to;
}

static void pass(const struct finish_table *t, const struct finish_chain *c, struct prng *prng, struct state *s)
{
    double boot = s->boot < 1 ? s->boot : 1, ran = s->mode == FINISH_IDLE ? 0 : 1 - boot, at = prng_unit(prng), part = 1;
    if (s->mode != FINISH_IDLE && s->work < ran) {
        part = boot + s->work;
        ran = s->work;
    }
    s->cost += s->mode == FINISH_IDLE ? 0 : part * (s->mode == FINISH_ON_SPOT ? t->price : 1);
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

void finish_outlook(const struct finish_table *t, const struct finish_chain *c, const struct finish_job *job, int64_t slack_ms,
    enum finish_mode mode, uint16_t market, struct finish_outlook *ret_outlook)
{
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
            decide(t, &s);
            pass(t, c, &prng, &s);
        }
        took[k] = s.steps;
        cost += s.cost / PLAYED;
    }
    qsort(took, PLAYED, sizeof took[0], by_value);
    *ret_outlook = (struct finish_outlook){.median_ms = (int64_t)(took[PLAYED / 2] * FINISH_STEP_MS),
        .late_ms = (int64_t)(took[(PLAYED * 95 - 1) / 100] * FINISH_STEP_MS),
        .cost = cost};
}
