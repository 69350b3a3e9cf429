/* SPDX-License-Identifier: Apache-2.0
 *
 * Deadline jobs are never late if on-demand could meet the deadline, for any market and any error
 * of the given values within the stated worst case; and the decision table against cases that can
 * be computed by hand.
 */
#include "base/mem.h"
#include "base/prng.h"
#include "scheduler/core/deadline/deadline.h"
#include "scheduler/core/deadline/learning.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define HOUR_MS 3600000LL
#define MINUTE_MS 60000LL
#define SURE_UUSD_H 3000000

/* Starts take `restart` steps; moves too. */
static void init_table(struct deadline_table *t, const struct deadline_chain *c, size_t work,
    size_t slack, double restart, double price)
{
    const struct deadline_starts starts = deadline_starts_alike(restart);

    deadline_table_init(t, c, work, slack, &starts, price);
}

/* Chain of a flapping offer: up for `up` examinations, down for `down`, ten minutes apart. */
static void learn(struct deadline_chain *c, int up, int down)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set m = {.n = 1};

    counts->borders = (struct deadline_borders){.share = {0.4, 0.8}, .rate = {0.1, 0.5}};
    for (int i = 0; i < 3000; i++) {
        const bool is_up = i % (up + down) < up;
        deadline_offer_set_see(&m, (int64_t)i * DEADLINE_STEP_MS, &is_up, counts);
    }
    deadline_chain_init(c, counts);
    free(counts);
}

static void a_class_depends_on_being_up_and_for_how_long(void **state)
{
    const struct deadline_borders b = {.share = {0.4, 0.8}, .rate = {0.1, 0.5}};
    struct spell_watch w = {0};

    (void)state;
    assert_false(deadline_class_is_up(deadline_class(&b, &w, 0)));
    spell_watch_see(&w, 0, true);
    assert_true(deadline_class_is_up(deadline_class(&b, &w, 0)));
    assert_int_not_equal(deadline_class(&b, &w, 0), deadline_class(&b, &w, 20 * MINUTE_MS));
    spell_watch_see(&w, HOUR_MS, true);
    spell_watch_see(&w, 2 * HOUR_MS, false);
    assert_false(deadline_class_is_up(deadline_class(&b, &w, 2 * HOUR_MS)));
    assert_true(spell_watch_share(&w) > 0.5);
    assert_true(spell_watch_rate(&w) > 0.25);
}

static void a_chain_without_observations_has_rows_that_sum_to_one(void **state)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_chain c;

    (void)state;
    deadline_chain_init(&c, counts);
    for (unsigned k = 0; k < DEADLINE_CLASSES; k++) {
        double sum = 0;
        for (size_t i = c.first[k]; i < c.first[k + 1]; i++)
            sum += c.steps[i].chance;
        assert_true(fabs(sum - 1) < 1e-4);
        assert_int_equal(c.life_ms[k] > 0, deadline_class_is_up((uint16_t)k));
    }
    deadline_chain_deinit(&c);
    free(counts);
}

static void a_favourite_stays_until_it_is_lost(void **state)
{
    struct deadline_offer_set m = {.n = 3};

    (void)state;
    deadline_offer_set_see(&m, 0, (bool[]){false, true, false}, NULL);
    assert_int_equal(m.favourite, 1);
    deadline_offer_set_see(&m, MINUTE_MS, (bool[]){true, true, false}, NULL);
    assert_int_equal(m.favourite, 1);
    deadline_offer_set_see(&m, 2 * MINUTE_MS, (bool[]){true, false, true}, NULL);
    assert_int_equal(m.favourite, 0); /* the older of the two */
    assert_true(m.whole.up);
}

/* Without a fallback, the loss of an offer leaves none; with another one up, only that. */
static void an_offer_set_learns_what_stands_behind_an_offer(void **state)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set m = {.n = 2};
    struct deadline_chain c;
    double moves[2] = {0};

    (void)state;
    counts->borders = (struct deadline_borders){.share = {0.4, 0.8}, .rate = {0.1, 0.5}};
    counts->of_several = true;
    for (int i = 0; i < 4000; i++)
        deadline_offer_set_see(&m, (int64_t)i * DEADLINE_STEP_MS,
            (bool[]){i % 20 < 10, i / 1000 % 2 && i % 20 >= 5}, counts);
    deadline_chain_init(&c, counts);
    for (int both = 0; both < 2; both++) {
        uint16_t class;
        m = (struct deadline_offer_set){.n = 2};
        for (int i = 0; i < 9; i++)
            deadline_offer_set_see(
                &m, (int64_t)i * DEADLINE_STEP_MS, (bool[]){true, both && i >= 5}, NULL);
        class = deadline_offer_set_class(&m, &c.borders, m.whole.at_ms);
        assert_int_equal(
            class, deadline_offer_set_class_of(&m, 0, &m.offers[0], &c.borders, m.whole.at_ms));
        for (size_t i = c.first[class]; i < c.first[class + 1]; i++)
            moves[both] +=
                c.steps[i].moved && deadline_class_is_up(c.steps[i].to) ? c.steps[i].chance : 0;
    }
    assert_true(moves[1] > moves[0]);
    deadline_chain_deinit(&c);
    free(counts);
}

/* Assumed time is neither time up nor an old spell, and its end is no loss. */
static void an_offer_that_is_assumed_up_has_no_history(void **state)
{
    struct deadline_offer_set m = {.n = 2};
    bool up[2] = {true, false};
    int64_t at_ms = 0;

    (void)state;
    for (int i = 0; i < 100; i++, at_ms += DEADLINE_STEP_MS)
        deadline_offer_set_see(&m, at_ms, up, NULL);
    const double share = spell_watch_share(&m.offers[1]);
    up[1] = m.is_assumed[1] = true;
    for (int i = 0; i < 100; i++, at_ms += DEADLINE_STEP_MS)
        deadline_offer_set_see(&m, at_ms, up, NULL);
    assert_true(m.offers[1].up);
    assert_int_equal(m.offers[1].since_ms, at_ms - DEADLINE_STEP_MS);
    assert_true(fabs(spell_watch_share(&m.offers[1]) - share) < 1e-9);
    assert_int_equal(m.favourite, 0);
    const double rate = spell_watch_rate(&m.offers[1]);
    m.is_assumed[1] = up[1] = false; /* it was asked and refused */
    deadline_offer_set_see(&m, at_ms, up, NULL);
    assert_false(m.offers[1].up);
    assert_true(spell_watch_rate(&m.offers[1]) <= rate);
    assert_true(m.offers[1].longest_ms <= 0);
    at_ms += DEADLINE_STEP_MS;
    up[1] = m.is_assumed[1] = true;
    deadline_offer_set_see(&m, at_ms, up, NULL);
    up[0] = false; /* the other one takes its place */
    deadline_offer_set_see(&m, at_ms, up, NULL);
    assert_int_equal(m.favourite, 1);
    assert_true(m.whole.up);
}

static double sum_of_counts(const struct deadline_counts *counts)
{
    double sum = 0;

    for (unsigned k = 0; k < DEADLINE_CLASSES; k++)
        for (unsigned i = 0; i < 2 * DEADLINE_CLASSES; i++)
            sum += counts->steps[k][i / DEADLINE_CLASSES][i % DEADLINE_CLASSES];
    return sum;
}

/* It is not seen to be lost: if it counted, spells would look endless. */
static void only_known_offers_teach(void **state)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);
    struct deadline_offer_set m = {.n = 2};
    bool up[2] = {true, false};
    int64_t at_ms = 0;

    (void)state;
    counts->borders = deadline_learning_borders;
    counts->of_several = true;
    m.is_assumed[0] = true;
    for (int i = 0; i < 50; i++, at_ms += DEADLINE_STEP_MS)
        deadline_offer_set_see(&m, at_ms, up, counts);
    assert_int_equal(m.favourite, 0);
    assert_true(sum_of_counts(counts) <= 0);
    up[1] = true; /* a machine is there: it is the favourite, and nothing was lost */
    for (int i = 0; i < 11; i++, at_ms += DEADLINE_STEP_MS)
        deadline_offer_set_see(&m, at_ms, up, counts);
    assert_int_equal(m.favourite, 1);
    assert_true(fabs(sum_of_counts(counts) - 10) < 1e-9);
    up[1] = false; /* the assumed one takes its place */
    deadline_offer_set_see(&m, at_ms, up, counts);
    assert_int_equal(m.favourite, 0);
    assert_true(fabs(sum_of_counts(counts) - 11) < 1e-9);
    up[0] = m.is_assumed[0] = false; /* it was asked and refused */
    deadline_offer_set_see(&m, at_ms + DEADLINE_STEP_MS, up, counts);
    assert_true(fabs(sum_of_counts(counts) - 12) < 1e-9);
    free(counts);
}

static void faded_counts_give_way(void **state)
{
    struct deadline_counts *counts = mem_alloc(sizeof *counts);

    (void)state;
    counts->steps[0][0][0] = 900;
    counts->steps[0][1][5] = 100;
    counts->steps[3][0][4] = 7;
    deadline_counts_fade(counts, 50);
    assert_true(fabs((double)counts->steps[0][0][0] - 45) < 1e-3 &&
                fabs((double)counts->steps[0][1][5] - 5) < 1e-3);
    assert_true(counts->steps[3][0][4] == 7);
    free(counts);
}

/* Two cases with exact results: old spot that was never lost, and spot that is never available. */
static void a_table_knows_what_is_certain(void **state)
{
    struct deadline_chain always, never;
    struct deadline_table t;
    double costs[DEADLINE_ACTS], more[DEADLINE_ACTS];
    struct spell_watch w = {0};

    (void)state;
    learn(&always, 3000, 0);
    init_table(&t, &always, 60, 60, 1.5, 0.25);
    for (int i = 0; i <= 300; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, true);
    deadline_table_costs(&t, 40, 30, deadline_class(&always.borders, &w, w.at_ms), costs);
    assert_true(fabs(costs[DEADLINE_SPOT_STAY] - 40 * 0.25) < 0.5);
    assert_true(fabs(costs[DEADLINE_SPOT_START] - 41.5 * 0.25) < 0.5);
    assert_true(costs[DEADLINE_ON_DEMAND_START] > costs[DEADLINE_SPOT_START]);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&always);

    learn(&never, 0, 3000);
    init_table(&t, &never, 60, 60, 1.5, 0.25);
    w = (struct spell_watch){0};
    for (int i = 0; i <= 300; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, false);
    const uint16_t down = deadline_class(&never.borders, &w, w.at_ms);
    deadline_table_costs(&t, 40, 30, down, costs);
    assert_true(fabs(costs[DEADLINE_ON_DEMAND_START] - 41.5) < 0.5 &&
                fabs(costs[DEADLINE_ON_DEMAND_STAY] - 40) < 0.5);
    deadline_table_costs(&t, 40, 50, down, more);
    assert_true(more[DEADLINE_WAIT] <= costs[DEADLINE_WAIT] + 1e-3);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&never);
}

/* Up for fifty hours, and never lost. */
static uint16_t class_of_old_spot(const struct deadline_chain *c)
{
    struct spell_watch w = {0};

    for (int i = 0; i <= 300; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, true);
    return deadline_class(&c->borders, &w, w.at_ms);
}

/* Spot that was never lost, at a quarter of the price: a move pays for a step of boot twice, and
 * half a step of it without work. */
static void a_move_computes_on_while_spot_boots(void **state)
{
    const struct deadline_starts moves = {.restart = 1.5, .boot = 1, .switching = 0.5},
                                 alike = deadline_starts_alike(1.5);
    struct deadline_chain c;
    struct deadline_table t;
    double costs[DEADLINE_ACTS];

    (void)state;
    learn(&c, 3000, 0);
    const uint16_t up = class_of_old_spot(&c);
    deadline_table_init(&t, &c, 60, 60, &moves, 0.25);
    deadline_table_costs(&t, 40, 30, up, costs);
    assert_true(fabs(costs[DEADLINE_SPOT_MOVE] - (1.25 + 39.5 * 0.25)) < 0.1);
    assert_true(fabs(costs[DEADLINE_SPOT_START] - 41.5 * 0.25) < 0.1);
    deadline_table_deinit(&t);
    deadline_table_init(&t, &c, 60, 60, &alike, 0.25);
    deadline_table_costs(&t, 40, 30, up, costs);
    assert_true(fabs(costs[DEADLINE_SPOT_MOVE] - costs[DEADLINE_SPOT_START]) < 1e-3);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* With 20 minutes to spare a start of 30 minutes is out of the question, a switch of 10 is not. */
static void a_move_needs_slack_for_its_switch_alone(void **state)
{
    const struct deadline_starts starts = {.restart = 3, .boot = 2, .switching = 1};
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[2] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 4},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .left_ms = 5 * HOUR_MS + 50 * MINUTE_MS,
        .restart_ms = 30 * MINUTE_MS,
        .restart_worst_ms = 30 * MINUTE_MS,
        .boot_ms = 20 * MINUTE_MS,
        .switch_ms = 10 * MINUTE_MS,
        .switch_worst_ms = 10 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = 1,
        .last = DEADLINE_NOWHERE,
        .moving_to = DEADLINE_NOWHERE};
    struct deadline_choice choice;

    (void)state;
    learn(&c, 3000, 0);
    offers[0].class = class_of_old_spot(&c);
    deadline_table_init(&t, &c, 60, 60, &starts, 0.25);
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_equal(choice.offer, 0);
    const double from_afar = choice.cost_uusd;
    job.moving_to = 0; /* its machine is up: on-demand is no longer paid beside it */
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_equal(choice.offer, 0);
    assert_true(fabs(from_afar - choice.cost_uusd - SURE_UUSD_H / 3.0) < 1);
    job.switch_worst_ms = 21 * MINUTE_MS;
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_equal(choice.offer, 1);
    job.switch_worst_ms = 10 * MINUTE_MS;
    job.boot_ms = 0; /* on-demand is left first */
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_equal(choice.offer, 1);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* Of two offers with the same expected cost a last start takes the one that is lost less often, any
 * other one the one with the higher share. On-demand is then for good: it costs all of the work. */
static void a_last_start_takes_what_is_lost_least(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[3] = {
        {.is_up = true, .price_uusd_h = SURE_UUSD_H / 4, .share = 0.9, .rate = 0.2},
        {.is_up = true, .price_uusd_h = SURE_UUSD_H / 4, .share = 0.8, .rate = 0.1},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .left_ms = 9 * HOUR_MS,
        .restart_ms = 10 * MINUTE_MS,
        .restart_worst_ms = 10 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE,
        .moving_to = DEADLINE_NOWHERE};
    struct deadline_choice choice;

    (void)state;
    learn(&c, 3000, 0);
    offers[0].class = offers[1].class = class_of_old_spot(&c);
    init_table(&t, &c, 60, 60, 1, 0.25);
    deadline_decide(&p, &job, offers, 3, offers[0].class, &choice);
    assert_int_equal(choice.offer, 0);
    job.is_last_start = true;
    deadline_decide(&p, &job, offers, 3, offers[0].class, &choice);
    assert_int_equal(choice.offer, 1);
    job.on = 2;
    offers[0].is_up = offers[1].is_up = false;
    deadline_decide(&p, &job, offers, 3, offers[0].class, &choice);
    assert_int_equal(choice.offer, 2);
    assert_true(fabs(choice.cost_uusd - 5.0 * SURE_UUSD_H) < SURE_UUSD_H / 100.0);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* Slack is negative: what was assumed at the start is exceeded. */
static void running_spot_is_left_at_the_last_moment(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    const struct deadline_offer offers[2] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 4},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .restart_ms = 10 * MINUTE_MS,
        .restart_worst_ms = 30 * MINUTE_MS,
        .failed_launch_ms = 20 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .last = DEADLINE_NOWHERE};
    const int64_t least_ms = job.work_worst_ms + job.restart_worst_ms;
    const struct {
        int64_t left_ms;
        size_t offer;
    } all[] = {{least_ms + 19 * MINUTE_MS, 0}, {least_ms + 5 * MINUTE_MS, 0},
        {least_ms + 4 * MINUTE_MS, 1}, {least_ms, 1}, {least_ms - MINUTE_MS, 0}};

    (void)state;
    learn(&c, 3000, 0);
    init_table(&t, &c, 60, 60, 1, 0.25);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct deadline_choice choice;
        job.left_ms = all[i].left_ms;
        job.on = 0;
        deadline_decide(&p, &job, offers, 2, 0, &choice);
        assert_int_equal(choice.offer, all[i].offer);
        assert_int_equal(choice.why, DEADLINE_WHY_NET);
        job.on = DEADLINE_NOWHERE;
        deadline_decide(&p, &job, offers, 2, 0, &choice);
        assert_int_equal(choice.offer, 1);
    }
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

static void old_spot_is_taken_and_young_spot_of_a_flapping_zone_is_not(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[2] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 2},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .left_ms = 10 * HOUR_MS,
        .restart_ms = 24 * MINUTE_MS,
        .restart_worst_ms = 24 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE};
    struct deadline_choice choice;
    struct spell_watch w = {0};

    (void)state;
    learn(&c, 1, 2); /* ten minutes up, twenty down: too short for a restart */
    init_table(&t, &c, 60, 60, 2.4, 0.5);
    for (int i = 0; i < 300; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, i % 3 == 2);
    offers[0].class = deadline_class(&c.borders, &w, w.at_ms);
    assert_true(deadline_class_is_up(offers[0].class));
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_not_equal(choice.offer, 0);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);

    learn(&c, 100, 5);
    init_table(&t, &c, 60, 60, 2.4, 0.5);
    w = (struct spell_watch){0};
    for (int i = 0; i < 40; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, true);
    offers[0].class = deadline_class(&c.borders, &w, w.at_ms);
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_equal(choice.offer, 0);
    assert_true(choice.cost_uusd <= choice.next_cost_uusd);
    job.on = 0;
    deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
    assert_int_equal(choice.offer, 0);
    assert_int_equal(choice.why, DEADLINE_WHY_KEEP);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

static void spells_that_ended_set_a_record_until_one_outlives_them(void **state)
{
    struct spell_watch w = {0};
    int64_t at_ms = 0;

    (void)state;
    for (int i = 0; i < 6; i++, at_ms += 20 * MINUTE_MS) {
        spell_watch_see(&w, at_ms, true);
        if (i < 5)
            assert_int_equal(spell_watch_record_ms(&w, at_ms), 0); /* too few */
        spell_watch_see(&w, at_ms + 10 * MINUTE_MS, false);
        assert_int_equal(spell_watch_record_ms(&w, at_ms + 10 * MINUTE_MS), 0);
    }
    spell_watch_see(&w, at_ms, true);
    assert_in_range(spell_watch_record_ms(&w, at_ms), 9 * MINUTE_MS, 10 * MINUTE_MS);
    assert_in_range(spell_watch_record_ms(&w, at_ms + 6 * MINUTE_MS), 3 * MINUTE_MS, 4 * MINUTE_MS);
    assert_int_equal(spell_watch_record_ms(&w, at_ms + 10 * MINUTE_MS), 0);
    spell_watch_see(&w, at_ms + 12 * HOUR_MS, false); /* a long one: the old ones say nothing */
    assert_int_equal(spell_watch_record_ms(&w, at_ms + 13 * HOUR_MS), 0);
}

/* The table knows a market of long spells, but this offer was up for ten minutes each time. */
static void a_start_that_would_not_pay_back_is_not_begun(void **state)
{
    static const struct {
        int restart, age; /* in minutes */
        bool starts;
    } cases[] = {
        {12, 0, false}, {12, 6, false}, {12, 11, true}, {3, 0, true}, {3, 6, false}, {3, 11, true}};
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[2] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 2},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct spell_watch w = {0};
    int64_t at_ms = 0;

    (void)state;
    learn(&c, 100, 5);
    init_table(&t, &c, 60, 60, 1.2, 0.5);
    for (int i = 0; i < 24; i++, at_ms += 10 * MINUTE_MS)
        spell_watch_see(&w, at_ms, i % 2);
    spell_watch_see(&w, at_ms, false);
    at_ms += 10 * MINUTE_MS;
    spell_watch_see(&w, at_ms, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t now_ms = at_ms + cases[i].age * MINUTE_MS,
                      restart_ms = cases[i].restart * MINUTE_MS;
        const struct deadline_job job = {.work_ms = 5 * HOUR_MS,
            .work_worst_ms = 5 * HOUR_MS,
            .left_ms = 6 * HOUR_MS,
            .restart_ms = restart_ms,
            .restart_worst_ms = restart_ms,
            .look_ms = MINUTE_MS,
            .on = DEADLINE_NOWHERE,
            .last = DEADLINE_NOWHERE};
        struct deadline_choice choice;
        offers[0].class = deadline_class(&c.borders, &w, now_ms);
        offers[0].record_ms = spell_watch_record_ms(&w, now_ms);
        deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
        print_message("restart %d min, up for %d min: offer %zd\n", cases[i].restart, cases[i].age,
            choice.offer);
        assert_int_equal(choice.offer == 0, cases[i].starts);
    }
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* The table was computed for a slightly lower price, but the prices of zones differ: later spot
 * will not be cheaper. */
static void spot_is_not_waited_for_because_the_table_has_it_cheaper(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    struct deadline_policy p = {.table = &t, .price_uusd_h = SURE_UUSD_H / 100 * 58};
    struct deadline_offer offers[3] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 100 * 58},
        {.is_up = true, .price_uusd_h = SURE_UUSD_H / 100 * 50},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 9 * HOUR_MS,
        .work_worst_ms = 9 * HOUR_MS,
        .left_ms = 12 * HOUR_MS,
        .restart_ms = 6 * MINUTE_MS,
        .restart_worst_ms = 6 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE};
    struct deadline_choice choice;
    struct spell_watch w = {0};

    (void)state;
    learn(&c, 100, 5);
    init_table(&t, &c, 60, 60, 0.6, 0.5);
    for (int i = 0; i < 40; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, true);
    offers[0].class = offers[1].class = deadline_class(&c.borders, &w, w.at_ms);
    for (int both = 0; both < 2; both++) {
        offers[1].is_up = both;
        job.on = DEADLINE_NOWHERE;
        deadline_decide(&p, &job, offers, 3, offers[0].class, &choice);
        assert_int_equal(choice.offer, both);
        job.on = 0;
        deadline_decide(&p, &job, offers, 3, offers[0].class, &choice);
        assert_int_equal(choice.offer, both); /* a restart pays for itself */
    }
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* Of two that cost the same, the one that was more often up: asking the other one first may end on
 * a machine that is soon lost. */
static void of_equal_offers_the_one_more_often_up_is_asked(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[3] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 2},
        {.is_up = true, .price_uusd_h = SURE_UUSD_H / 2},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    const struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .left_ms = 10 * HOUR_MS,
        .restart_ms = 6 * MINUTE_MS,
        .restart_worst_ms = 6 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE};
    struct deadline_choice choice;
    struct spell_watch w = {0};

    (void)state;
    learn(&c, 100, 5);
    init_table(&t, &c, 60, 60, 0.6, 0.5);
    for (int i = 0; i < 40; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, true);
    offers[0].class = offers[1].class = deadline_class(&c.borders, &w, w.at_ms);
    for (size_t often = 0; often < 2; often++) {
        offers[often].share = 0.9;
        offers[1 - often].share = 0.2;
        deadline_decide(&p, &job, offers, 3, offers[0].class, &choice);
        assert_int_equal(choice.offer, often);
    }
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* The net has the work that a loss may cost. A start on spot needs the time of a start beyond it,
 * not that work a second time. */
static void a_start_on_spot_needs_its_own_time_beyond_the_net(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[2] = {{.is_up = true, .price_uusd_h = SURE_UUSD_H / 4},
        {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .restart_ms = 6 * MINUTE_MS,
        .restart_worst_ms = 48 * MINUTE_MS,
        .loss_worst_ms = 30 * MINUTE_MS,
        .look_ms = MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE};
    struct deadline_choice choice;
    struct spell_watch w = {0};

    (void)state;
    learn(&c, 1000, 5);
    init_table(&t, &c, 60, 60, 0.6, 0.25);
    for (int i = 0; i < 200; i++)
        spell_watch_see(&w, i * DEADLINE_STEP_MS, true);
    offers[0].class = deadline_class(&c.borders, &w, w.at_ms);
    for (int enough = 0; enough < 2; enough++) {
        job.left_ms = job.work_ms + job.restart_worst_ms + (enough ? 18 : 17) * MINUTE_MS;
        deadline_decide(&p, &job, offers, 2, offers[0].class, &choice);
        assert_int_equal(choice.offer, enough ? 0 : 1);
    }
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

static void the_safety_net_comes_before_the_cost(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct deadline_offer offers[2] = {
        {.is_up = false, .price_uusd_h = 1}, {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct deadline_job job = {.work_ms = 5 * HOUR_MS,
        .work_worst_ms = 5 * HOUR_MS,
        .restart_ms = 10 * MINUTE_MS,
        .restart_worst_ms = 10 * MINUTE_MS,
        .failed_launch_ms = 10 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE};
    struct deadline_choice choice;

    (void)state;
    learn(&c, 30, 1);
    init_table(&t, &c, 60, 60, 1, 0.001);
    job.left_ms = 15 * HOUR_MS; /* spot is gone briefly, and there is time */
    deadline_decide(&p, &job, offers, 2, 0, &choice);
    assert_int_equal(choice.offer, DEADLINE_NOWHERE);
    /* four minutes above the net: less than an examination interval */
    job.left_ms = 5 * HOUR_MS + 24 * MINUTE_MS;
    deadline_decide(&p, &job, offers, 2, 0, &choice);
    assert_int_equal(choice.offer, 1);
    /* Too late for a restart: running spot is not left; without it on-demand is fastest. */
    job.left_ms = 5 * HOUR_MS + 5 * MINUTE_MS;
    offers[0].is_up = true;
    job.on = 0;
    deadline_decide(&p, &job, offers, 2, 0, &choice);
    assert_int_equal(choice.offer, 0);
    job.on = DEADLINE_NOWHERE;
    deadline_decide(&p, &job, offers, 2, 0, &choice);
    assert_int_equal(choice.offer, 1);
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

/* A world at the stated worst case. */
struct world {
    struct prng prng;
    int64_t work_ms, done_ms, deadline_ms, now_ms; /* work: the actual amount */
    /* stated: half of the actual value, or twice; a third, or three times */
    int64_t stated_ms, restart_stated_ms, restart_ms;
    /* lost: work lost when spot goes without notice */
    int64_t failed_launch_ms, look_ms, lost_ms;
    int64_t spot_ends_ms; /* permanently */
    bool launch_fails;    /* one on-demand launch fails */
    double ends, comes;   /* probabilities per examination */
};

static struct deadline_job stated(const struct world *w, size_t on, int64_t booting_ms)
{
    const int64_t worst = 2 * w->stated_ms - w->done_ms;
    const int64_t left = w->stated_ms > w->done_ms ? w->stated_ms - w->done_ms : worst / 2;

    return (struct deadline_job){.work_ms = left,
        .work_worst_ms = worst,
        .left_ms = w->deadline_ms - w->now_ms,
        .restart_ms = w->restart_stated_ms,
        .restart_worst_ms = 3 * w->restart_stated_ms + w->lost_ms,
        .failed_launch_ms = w->failed_launch_ms,
        .look_ms = w->look_ms,
        .on = on,
        .last = DEADLINE_NOWHERE,
        .starting_ms =
            booting_ms > 0 ? 3 * w->restart_stated_ms - (w->restart_ms - booting_ms) : 0};
}

static void play(
    struct world *w, const struct deadline_policy *p, const struct deadline_borders *borders)
{
    struct deadline_offer offers[2] = {
        {.price_uusd_h = SURE_UUSD_H / 3}, {.is_sure = true, .price_uusd_h = SURE_UUSD_H}};
    struct spell_watch watch = {0};
    size_t on = DEADLINE_NOWHERE;
    int64_t booting_ms = 0;

    while (w->done_ms < w->work_ms) {
        struct deadline_choice choice;
        offers[0].is_up =
            w->now_ms < w->spot_ends_ms &&
            (offers[0].is_up ? !prng_chance(&w->prng, w->ends) : prng_chance(&w->prng, w->comes));
        if (on == 0 && !offers[0].is_up) {
            on = DEADLINE_NOWHERE;
            w->done_ms -= w->done_ms < w->lost_ms ? w->done_ms : w->lost_ms;
        }
        if (w->now_ms > w->deadline_ms / 3)
            offers[0].price_uusd_h = SURE_UUSD_H; /* tripled */
        spell_watch_see(&watch, w->now_ms, offers[0].is_up);
        offers[0].class = deadline_class(borders, &watch, w->now_ms);
        const struct deadline_job job = stated(w, on, booting_ms);
        deadline_decide(p, &job, offers, 2, offers[0].class, &choice);
        if (choice.offer == 1 && on != 1 && w->launch_fails) {
            w->launch_fails = false;
            w->now_ms += w->failed_launch_ms;
            on = DEADLINE_NOWHERE;
            continue;
        }
        if (choice.offer != on)
            booting_ms = choice.offer == DEADLINE_NOWHERE ? 0 : w->restart_ms;
        on = choice.offer;
        if (on == DEADLINE_NOWHERE) {
            w->now_ms += w->look_ms;
            continue;
        }
        const int64_t boot = booting_ms < w->look_ms ? booting_ms : w->look_ms;
        const int64_t left = w->work_ms - w->done_ms,
                      ran = w->look_ms - boot < left ? w->look_ms - boot : left;
        booting_ms -= boot;
        w->done_ms += ran;
        w->now_ms += boot + ran;
    }
    assert_true(w->now_ms <= w->deadline_ms);
}

static void never_late_when_on_demand_could_make_it(void **state)
{
    struct deadline_chain c;
    struct deadline_table t;
    const struct deadline_policy p = {.table = &t};
    struct prng prng;

    (void)state;
    learn(&c, 12, 6);
    init_table(&t, &c, 120, 120, 1.2, 1.0 / 3);
    prng_init(&prng, 3);
    for (int round = 0; round < 3000; round++) {
        struct world w = {.launch_fails = prng_chance(&prng, 0.5),
            .ends = prng_unit(&prng),
            .comes = prng_unit(&prng)};
        prng_init(&w.prng, (uint64_t)round);
        w.work_ms = prng_range(&prng, 10 * MINUTE_MS, 20 * HOUR_MS);
        w.stated_ms = prng_range(&prng, w.work_ms / 2 + 1, 2 * w.work_ms);
        w.restart_ms = prng_range(&prng, 0, 40 * MINUTE_MS);
        w.restart_stated_ms = prng_range(&prng, w.restart_ms / 3 + 1, 3 * w.restart_ms + 1);
        w.failed_launch_ms = prng_range(&prng, 0, 20 * MINUTE_MS);
        w.lost_ms = prng_chance(&prng, 0.5) ? prng_range(&prng, 0, w.failed_launch_ms) : 0;
        w.look_ms = prng_range(&prng, MINUTE_MS, 10 * MINUTE_MS);
        w.deadline_ms = 2 * w.stated_ms + 3 * w.restart_stated_ms + w.lost_ms + w.failed_launch_ms +
                        prng_range(&prng, 0, 30 * HOUR_MS);
        w.spot_ends_ms = prng_chance(&prng, 0.3) ? w.deadline_ms / 2 : INT64_MAX;
        play(&w, &p, &c.borders);
    }
    deadline_table_deinit(&t);
    deadline_chain_deinit(&c);
}

static size_t rule_says(
    enum deadline_rule rule, const struct deadline_job *job, const struct deadline_offer *offers)
{
    const struct deadline_policy p = {.rule = rule};
    struct deadline_choice choice;

    deadline_decide(&p, job, offers, 2, 0, &choice);
    return choice.offer;
}

static void uniform_progress_is_as_published(void **state)
{
    struct deadline_offer offers[2] = {
        {.is_up = false, .price_uusd_h = 1}, {.is_sure = true, .price_uusd_h = 3}};
    struct deadline_job job = {.whole_work_ms = 10 * HOUR_MS,
        .whole_time_ms = 20 * HOUR_MS,
        .restart_ms = 6 * MINUTE_MS,
        .restart_worst_ms = 6 * MINUTE_MS,
        .look_ms = 5 * MINUTE_MS,
        .on = DEADLINE_NOWHERE,
        .last = DEADLINE_NOWHERE};

    (void)state;
    job.left_ms = 10 * HOUR_MS; /* half of the time is over: half of the work should be done */
    job.work_ms = job.work_worst_ms = 4 * HOUR_MS;
    assert_int_equal(rule_says(DEADLINE_UNIFORM, &job, offers), DEADLINE_NOWHERE);
    job.work_ms = job.work_worst_ms = 6 * HOUR_MS;
    assert_int_equal(rule_says(DEADLINE_UNIFORM, &job, offers), 1);
    assert_int_equal(rule_says(DEADLINE_GREEDY, &job, offers), DEADLINE_NOWHERE);
    /* On-demand, just ahead of the line: with hysteresis it stays, without it is released. */
    job.on = 1;
    job.work_ms = job.work_worst_ms = 5 * HOUR_MS - 3 * MINUTE_MS;
    assert_int_equal(rule_says(DEADLINE_UNIFORM, &job, offers), 1);
    assert_int_equal(rule_says(DEADLINE_UNIFORM_PLAIN, &job, offers), DEADLINE_NOWHERE);
    offers[0].is_up = true;
    assert_int_equal(rule_says(DEADLINE_UNIFORM, &job, offers), 0);
    assert_int_equal(rule_says(DEADLINE_UNIFORM_STICKY, &job, offers), 1);
    assert_int_equal(rule_says(DEADLINE_RC_CR, &job, offers), 1);
    assert_int_equal(rule_says(DEADLINE_RC_CR_PLAIN, &job, offers), 0);
    /* Far ahead of the line: the published code leaves on-demand for spot only. */
    job.work_ms = job.work_worst_ms = 4 * HOUR_MS;
    assert_int_equal(rule_says(DEADLINE_RC_CR, &job, offers), 0);
    offers[0].is_up = false;
    assert_int_equal(rule_says(DEADLINE_UNIFORM_STICKY, &job, offers), DEADLINE_NOWHERE);
    assert_int_equal(rule_says(DEADLINE_RC_CR, &job, offers), 1);
    assert_int_equal(rule_says(DEADLINE_RC_CR_PLAIN, &job, offers), 1);
    offers[0].is_up = true;
    job.work_ms = job.work_worst_ms = 5 * HOUR_MS - 3 * MINUTE_MS;
    /* Less time left than the work and two restarts: on-demand for good. */
    job.left_ms = job.work_ms + 11 * MINUTE_MS;
    assert_int_equal(rule_says(DEADLINE_UNIFORM, &job, offers), 1);
    assert_int_equal(rule_says(DEADLINE_GREEDY, &job, offers), 1);
    job.on = DEADLINE_NOWHERE;
    assert_int_equal(rule_says(DEADLINE_GREEDY, &job, offers), 1);
    job.on = 0;
    assert_int_equal(rule_says(DEADLINE_UNIFORM, &job, offers), 0);
    assert_int_equal(rule_says(DEADLINE_ON_DEMAND, &job, offers), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_class_depends_on_being_up_and_for_how_long),
        cmocka_unit_test(a_chain_without_observations_has_rows_that_sum_to_one),
        cmocka_unit_test(a_favourite_stays_until_it_is_lost),
        cmocka_unit_test(an_offer_set_learns_what_stands_behind_an_offer),
        cmocka_unit_test(an_offer_that_is_assumed_up_has_no_history),
        cmocka_unit_test(only_known_offers_teach),
        cmocka_unit_test(faded_counts_give_way),
        cmocka_unit_test(a_table_knows_what_is_certain),
        cmocka_unit_test(a_move_computes_on_while_spot_boots),
        cmocka_unit_test(a_move_needs_slack_for_its_switch_alone),
        cmocka_unit_test(a_last_start_takes_what_is_lost_least),
        cmocka_unit_test(running_spot_is_left_at_the_last_moment),
        cmocka_unit_test(old_spot_is_taken_and_young_spot_of_a_flapping_zone_is_not),
        cmocka_unit_test(spells_that_ended_set_a_record_until_one_outlives_them),
        cmocka_unit_test(a_start_that_would_not_pay_back_is_not_begun),
        cmocka_unit_test(spot_is_not_waited_for_because_the_table_has_it_cheaper),
        cmocka_unit_test(of_equal_offers_the_one_more_often_up_is_asked),
        cmocka_unit_test(a_start_on_spot_needs_its_own_time_beyond_the_net),
        cmocka_unit_test(the_safety_net_comes_before_the_cost),
        cmocka_unit_test(never_late_when_on_demand_could_make_it),
        cmocka_unit_test(uniform_progress_is_as_published),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
