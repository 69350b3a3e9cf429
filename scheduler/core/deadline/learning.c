/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/core/deadline/learning.h"

#include "base/prng.h"
#include <string.h>

/* Steps until the chains are rebuilt: first a quarter of a day, doubling each time up to four days.
 */
#define LEARN_FIRST 36
#define LEARN_LONGEST 576
#define FADE 50 /* counts that a row keeps at a rebuild */
#define PRIOR_STEPS 3000
#define PRIOR_COUNTS 20 /* counts per row of the synthetic prior market */
#define PRIOR_SET 3     /* offers of a set in the prior market */

const struct deadline_borders deadline_learning_borders = {
    .share = {0.43, 0.76}, .rate = {0.15, 0.4}};

/* Chance that a spell ends within a step, by its age in steps, in the same traces. */
static const struct {
    int age;
    double away, there;
} ends[] = {{0, 0.35, 0.3}, {1, 0.24, 0.2}, {2, 0.15, 0.15}, {3, 0.11, 0.12}, {6, 0.07, 0.07},
    {12, 0.05, 0.04}, {24, 0.04, 0.03}, {48, 0.025, 0.02}, {96, 0.01, 0.007}};

static double end_of(int age, bool up)
{
    size_t i = sizeof ends / sizeof ends[0] - 1;
    while (ends[i].age > age)
        i--;
    return up ? ends[i].there : ends[i].away;
}

/* Some offers last longer, and return sooner, than others. */
static void simulate_prior(struct deadline_counts *counts, size_t n, double lasting)
{
    struct deadline_offer_set k = {.n = n};
    struct prng prng;
    bool up[PRIOR_SET] = {false};
    int age[PRIOR_SET] = {0};
    prng_init(&prng, 7);
    for (int64_t step = 0; step < PRIOR_STEPS; step++) {
        for (size_t i = 0; i < n; i++) {
            double chance = end_of(age[i], up[i]);
            bool goes_on = !prng_chance(&prng, up[i] ? chance / lasting : chance * lasting);
            up[i] = up[i] == goes_on;
            age[i] = goes_on ? age[i] + 1 : 0;
        }
        deadline_offer_set_see(&k, step * DEADLINE_STEP_MS, up, counts);
    }
}

void deadline_learning_begin(bool of_several, struct deadline_counts *ret_counts)
{
    static const double lasting[] = {0.7, 1, 1.4};
    memset(ret_counts, 0, sizeof *ret_counts);
    ret_counts->borders = deadline_learning_borders;
    ret_counts->of_several = of_several;
    for (size_t i = 0; i < 3; i++)
        simulate_prior(ret_counts, of_several ? PRIOR_SET : 1, lasting[i]);
    deadline_counts_fade(ret_counts, PRIOR_COUNTS);
}

void deadline_learning_rebuild(struct deadline_counts *counts, struct deadline_chain *chain)
{
    deadline_chain_deinit(chain);
    deadline_chain_init(chain, counts);
    deadline_counts_fade(counts, FADE);
}

int64_t deadline_learning_next(int64_t steps)
{
    if (steps == 0)
        return LEARN_FIRST;
    return 2 * steps > LEARN_LONGEST ? LEARN_LONGEST : 2 * steps;
}
