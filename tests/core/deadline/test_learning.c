/* SPDX-License-Identifier: Apache-2.0
 *
 * The prior market, and what observations make of it.
 */
#include "base/mem.h"
#include "scheduler/core/deadline/learning.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* Class of an offer that is up since age_ms, in an average market. */
static uint16_t up_since(int64_t age_ms)
{
    const struct spell_watch w = {.seen = true, .up = true};

    return deadline_class(&deadline_learning_borders, &w, age_ms);
}

static double end_chance(const struct deadline_chain *c, uint16_t class)
{
    double chance = 0;

    for (size_t i = c->first[class]; i < c->first[class + 1]; i++)
        if (c->steps[i].moved || !deadline_class_is_up(c->steps[i].to))
            chance += (double)c->steps[i].chance;
    return chance;
}

static void old_spells_of_the_prior_market_last_longer(void **state)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);

    (void)state;
    for (int several = 0; several < 2; several++) {
        struct deadline_chain c = {0};
        deadline_learning_begin(several, counts);
        deadline_learning_rebuild(counts, &c);
        assert_true(end_chance(&c, up_since(0)) > 2 * end_chance(&c, up_since(3 * 3600000)));
        assert_true(end_chance(&c, up_since(24 * 3600000)) < 0.05);
        deadline_chain_deinit(&c);
    }
    free(counts);
}

static void a_market_that_changes_at_each_step_shows_in_the_chain(void **state)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set set = {.n = 1};
    struct deadline_chain c = {0};
    int64_t at_ms = 0;

    (void)state;
    deadline_learning_begin(false, counts);
    for (int i = 0; i <= 2000; i++, at_ms += DEADLINE_STEP_MS)
        deadline_offer_set_see(&set, at_ms, (bool[]){i % 2 == 0}, counts);
    deadline_learning_rebuild(counts, &c);
    const uint16_t class =
        deadline_offer_set_class(&set, &deadline_learning_borders, set.whole.at_ms);
    assert_true(deadline_class_is_up(class));
    assert_true(end_chance(&c, class) > 0.9);
    assert_true(end_chance(&c, up_since(6 * 3600000)) < 0.1); /* no such spell was seen */
    deadline_chain_deinit(&c);
    free(counts);
}

static void rebuilds_become_rarer(void **state)
{
    const int64_t expected[] = {36, 72, 144, 288, 576, 576};
    int64_t steps = 0;

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        steps = deadline_learning_next(steps);
        assert_int_equal(steps, expected[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_spells_of_the_prior_market_last_longer),
        cmocka_unit_test(a_market_that_changes_at_each_step_shows_in_the_chain),
        cmocka_unit_test(rebuilds_become_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
