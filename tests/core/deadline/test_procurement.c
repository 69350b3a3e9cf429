/* SPDX-License-Identifier: Apache-2.0
 *
 * Deadline jobs: on spot while there is time, on on-demand otherwise, and never late because of
 * waiting for spot.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/deadline/procurement.h"
#include "scheduler/core/lifecycle/apply_job.h"
#include "scheduler/core/deadline/procurement_baseline.h"
#include "scheduler/core/deadline/procurement_work.h"
#include "scheduler/core/forecast/estimate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

enum { SPOT = 1, ON_DEMAND };

static struct job_row job_by(const struct lab *l, int64_t work_ms, int64_t in_ms)
{
    struct job_row r = lab_job(4);
    r.spec.begin_at = WALL_NONE;
    r.spec.work_ms = work_ms;
    r.spec.finish_ms = l->now.wall.ms + in_ms;
    return r;
}

static int64_t intended(const struct lab *l, enum market market)
{
    LIST_FOREACH (model_instances(l->m), li) {
        const struct instance *i = LIST_ENTRY(li, struct instance, in_all);
        if (i->row.state == INSTANCE_INTENDED && i->row.market == market)
            return i->row.id;
    }
    return CORE_ID_NONE;
}

/* Time passes; agents are alive, and the provider has no spot. */
static void no_spot_for_a_while(struct lab *l)
{
    int64_t spot = intended(l, MARKET_SPOT);
    if (spot != CORE_ID_NONE)
        lab_apply(
            l, (struct event){.type = EV_LAUNCH_REFUSED, .refused = {spot, true, "no capacity"}});
    lab_wait(l, MINUTE_MS / 4);
    lab_heartbeats(l);
    lab_plan(l);
}

/* Time until the job's procurement is this one. */
static int64_t until_procurement(
    struct lab *l, int64_t job, enum procurement procurement, int64_t at_most_ms)
{
    int64_t began = l->now.wall.ms;
    while (
        model_job(l->m, job)->row.procurement != procurement && l->now.wall.ms - began < at_most_ms)
        no_spot_for_a_while(l);
    assert_int_equal(model_job(l->m, job)->row.procurement, procurement);
    return l->now.wall.ms - began;
}

static void with_time_only_spot_is_bought(void **state)
{
    (void)state;
    struct lab l;
    struct reason why[16];
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, HOUR_MS, 10 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    lab_take(&l);
    assert_int_equal(lab_launches(&l, SPOT), 1);
    assert_int_equal(lab_launches(&l, ON_DEMAND), 0);
    assert_string_equal(
        lab_history(&l, "pace")->text, "only spot for now: about 1h00m of work, 10h00m left");
    size_t n = core_explain(l.m, l.now, job, why, 16);
    assert_string_equal(why[n - 2].code, "finish-by");
    assert_string_equal(why[n - 2].text, "its finish time is in 10h00m; it uses only spot for now, "
                                         "burst/z1/m4: there is time to wait for it");
    assert_string_equal(why[n - 1].code, "expected");
    /* after a refusal it waits; another job would go on-demand at once */
    lab_apply(&l, (struct event){.type = EV_LAUNCH_REFUSED,
                      .refused = {intended(&l, MARKET_SPOT), true, "no capacity"}});
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, ON_DEMAND), 0);
    lab_submit_pool(&l, 4, "burst", WISH_ANY);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, ON_DEMAND), 1);
    lab_deinit(&l);
}

static void without_time_it_is_on_demand_at_once(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, HOUR_MS, HOUR_MS + 10 * MINUTE_MS);
    lab_submit(&l, &r);
    lab_plan(&l);
    lab_take(&l);
    assert_int_equal(lab_launches(&l, SPOT), 0);
    assert_int_equal(lab_launches(&l, ON_DEMAND), 1);
    assert_string_equal(
        lab_history(&l, "pace")->text, "on-demand from now on: about 1h00m of work, 1h10m left");
    lab_deinit(&l);
}

/* Spot is never available; the first on-demand machine never joins, and the second takes twice the
 * usual time. Every finish time that was feasible at the submit is met. */
static void a_job_that_waits_for_spot_in_vain_is_not_late(void **state)
{
    (void)state;
    for (int64_t in_ms = 2 * HOUR_MS; in_ms <= 40 * HOUR_MS; in_ms += 5 * HOUR_MS / 2) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, HOUR_MS, in_ms);
        int64_t job = lab_submit(&l, &r), first = CORE_ID_NONE, asked_at = 0;
        lab_plan(&l);
        while (!job_attempt(model_job(l.m, job)) && l.now.wall.ms < r.spec.finish_ms) {
            int64_t sure = intended(&l, MARKET_ON_DEMAND);
            if (sure != CORE_ID_NONE && first == CORE_ID_NONE)
                lab_launched(&l, first = sure);
            else if (sure != CORE_ID_NONE && asked_at == 0)
                asked_at = l.now.wall.ms;
            else if (sure != CORE_ID_NONE && l.now.wall.ms - asked_at >= 3 * MINUTE_MS)
                lab_bring_up(&l, sure, 4);
            if (first != CORE_ID_NONE && model_instance(l.m, first) &&
                model_instance(l.m, first)->row.state == INSTANCE_ENDING)
                lab_apply(&l, (struct event){.type = EV_INSTANCE_GONE,
                                  .gone = {.instance = first, .ended_at = WALL_NONE}});
            no_spot_for_a_while(&l);
        }
        assert_true(
            job_attempt(model_job(l.m, job)) && l.now.wall.ms + HOUR_MS <= r.spec.finish_ms);
        lab_deinit(&l);
    }
}

static void behind_the_line_it_goes_on_demand_and_ahead_of_it_back(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m4", 4);
    struct job_row r = job_by(&l, 10 * HOUR_MS, 40 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_true(until_procurement(&l, job, PROCURE_ON_DEMAND, 40 * HOUR_MS) <
                HOUR_MS); /* long before the net is reached */
    int64_t node = lab_bring_up(&l, intended(&l, MARKET_ON_DEMAND), 4);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), node);
    lab_started(&l, job);
    int64_t spot_before = lab_launches(&l, SPOT);
    lab_wait(&l, MINUTE_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_ON_DEMAND);
    assert_int_equal(lab_launches(&l, SPOT), spot_before);
    lab_saved(&l, job, 1, 10);
    until_procurement(&l, job, PROCURE_SPOT, 2 * HOUR_MS);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, SPOT), spot_before + 1);
    char why[CORE_TEXT_MAX];
    assert_true(core_procurement_why(l.m, model_job(l.m, job), l.now, why, sizeof why));
    assert_string_equal(
        why, "it stays on on-demand until a spot machine is up: there is time for the move");
    lab_bring_up(&l, intended(&l, MARKET_SPOT), 4);
    lab_plan(&l);
    /* to continue at a lower cost */
    assert_int_equal(job_attempt(model_job(l.m, job))->row.stop_reason, END_EVICTED);
    lab_deinit(&l);
}

static struct egress no_egress(const char *provider)
{
    (void)provider;
    return (struct egress){0};
}

#define BOOT_MS (5 * MINUTE_MS / 2)

/* Steps of a minute and a decision every six seconds; a job on on-demand, as there is no spot, with
 * time for a move. */
static int64_t begin_on_demand(struct lab *l)
{
    static const struct procurement_options fast = {.rule = DEADLINE_PLANNED,
        .baseline = DEADLINE_UNIFORM,
        .look_ms = MINUTE_MS / 10,
        .step_ms = MINUTE_MS,
        .work_margin_pct = 20,
        .cap_pct = 35};
    const struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = LAB_LEASE_MS,
        .no_progress_max = LAB_NO_PROGRESS_MAX,
        .procurement = &fast,
        .egress = no_egress};
    *l = (struct lab){
        .m = model_create(&o), .p = planner_create(), .now = {{1700000000000}, {5000}}};
    lab_elastic(l, "burst", 4, "m4", 4);
    struct pool_row p = lab_pool(l, "burst");
    p.idle_timeout_ms = p.cooldown_ms = MINUTE_MS / 2;
    p.refusal_backoff_ms = 1000;
    lab_set_pool(l, p);
    struct job_row r = job_by(l, 45 * MINUTE_MS, 90 * MINUTE_MS);
    int64_t job = lab_submit(l, &r);
    lab_plan(l);
    until_procurement(l, job, PROCURE_ON_DEMAND, 90 * MINUTE_MS);
    int64_t sure = intended(l, MARKET_ON_DEMAND);
    lab_launched(l, sure);
    lab_wait(l, BOOT_MS);
    lab_heartbeats(l);
    int64_t node = lab_join_instance(l, sure, 4);
    lab_plan(l);
    assert_int_equal(lab_node_of(l, job), node);
    lab_started(l, job);
    return job;
}

/* Advances by six seconds; then the job saves, so that a move loses little. */
static void look(struct lab *l, int64_t job, int64_t *sequence)
{
    lab_wait(l, MINUTE_MS / 10);
    lab_heartbeats(l);
    lab_saved(l, job, ++*sequence, PROGRESS_NONE);
    lab_plan(l);
}

/* A granted launch shows that spot is available. This lowers the cost of staying on on-demand below
 * the cost of the move. The job must move all the same, instead of releasing the machine as idle
 * and trying again. */
static void it_moves_to_the_spot_that_it_was_granted(void **state)
{
    (void)state;
    for (int refused = 0; refused <= 20; refused += 5) {
        struct lab l;
        int64_t job = begin_on_demand(&l), spot = CORE_ID_NONE, sequence = 0;
        for (int left = refused; spot == CORE_ID_NONE;) {
            assert_true(sequence < 400);
            look(&l, job, &sequence);
            spot = intended(&l, MARKET_SPOT);
            if (spot == CORE_ID_NONE || left-- == 0)
                continue;
            lab_apply(&l,
                (struct event){.type = EV_LAUNCH_REFUSED, .refused = {spot, true, "no capacity"}});
            spot = CORE_ID_NONE;
        }
        lab_launched(&l, spot);
        for (int64_t ms = 0; ms < BOOT_MS; ms += MINUTE_MS / 10) {
            look(&l, job, &sequence);
            assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_SPOT);
        }
        lab_join_instance(&l, spot, 4);
        lab_plan(&l);
        assert_int_equal(job_attempt(model_job(l.m, job))->row.stop_reason, END_EVICTED);
        lab_deinit(&l);
    }
}

/* Saved work counts, whatever happens to the rest; and reported progress overrides the estimate. */
static void work_that_is_saved_or_shown_counts(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 2 * HOUR_MS, 20 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    lab_bring_up(&l, intended(&l, MARKET_SPOT), 4);
    lab_plan(&l);
    lab_started(&l, job);
    lab_wait(&l, 20 * MINUTE_MS);
    lab_saved(&l, job, 1, PROGRESS_NONE);
    int64_t done = model_job(l.m, job)->row.done_ms;
    assert_in_range(done, 20 * MINUTE_MS - 1000, 20 * MINUTE_MS);
    lab_wait(&l, 10 * MINUTE_MS);
    lab_saved(&l, job, 2, PROGRESS_NONE);
    done = model_job(l.m, job)->row.done_ms;
    assert_in_range(done, 30 * MINUTE_MS - 1000, 30 * MINUTE_MS);
    lab_wait(&l, 5 * MINUTE_MS);
    lab_ended(&l, job, END_RECLAIMED, 0);
    assert_int_equal(model_job(l.m, job)->row.done_ms, done);
    lab_deinit(&l);
}

/* Work since the last report counts at the same rate. */
static void between_two_reports_the_remaining_work_decreases(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 3 * HOUR_MS, 20 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    lab_bring_up(&l, intended(&l, MARKET_SPOT), 4);
    lab_plan(&l);
    lab_started(&l, job);
    lab_wait(&l, 12 * MINUTE_MS);
    lab_apply(&l, (struct event){.type = EV_PROGRESS,
                      .progress = {.job = job, .attempt = 1, .done = 10, .total = 100}});
    lab_wait(&l, 30 * MINUTE_MS);
    procurement_look(l.m, model_job(l.m, job), l.now);
    procurement_due(l.m, l.now, &ev);
    assert_string_equal(ev.procurement.text, "only spot for now: about 1h18m of work, 19h18m left");
    /* a checkpoint's work was done when it was taken: 50 in half an hour, and 40 are left */
    lab_saved(&l, job, 1, 60);
    assert_in_range(model_job(l.m, job)->row.shown_ms, 65 * MINUTE_MS, 66 * MINUTE_MS);
    lab_deinit(&l);
}

static void tells(struct lab *l, int64_t job, int64_t attempt, int64_t done)
{
    lab_apply(l, (struct event){.type = EV_PROGRESS,
                     .progress = {.job = job, .attempt = attempt, .done = done, .total = 100}});
}

static int64_t left_ms(const struct lab *l, int64_t job)
{
    return procurement_work_left(l->m, model_job(l->m, job), l->now.wall).ms;
}

/* The program has been paused for pause_ms, and goes on. */
static void saved_with_pause(
    struct lab *l, int64_t job, int64_t sequence, int64_t progress, int64_t pause_ms)
{
    struct event ev = {.type = EV_CHECKPOINT,
        .checkpoint = {.job = job,
            .node = job_attempt(model_job(l->m, job))->row.node,
            .ref = {model_job(l->m, job)->row.attempts, sequence},
            .took_ms = pause_ms,
            .pause_ms = pause_ms,
            .progress = progress,
            .saved_at = l->now.wall,
            .cause = "periodic"}};
    lab_apply(l, ev);
}

/* The program loads for ten minutes, then does a hundredth in one minute: an hour and 40 minutes of
 * work. Another start would take ten minutes again. */
static void what_a_program_takes_to_begin_is_not_work(void **state)
{
    (void)state;
    int64_t took[2];
    for (int forgets = 0; forgets < 2; forgets++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, 3 * HOUR_MS, 20 * HOUR_MS);
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        lab_bring_up(&l, intended(&l, MARKET_SPOT), 4);
        lab_plan(&l);
        lab_started(&l, job);
        lab_wait(&l, 10 * MINUTE_MS);
        tells(&l, job, 1, 0);
        assert_int_equal(model_job(l.m, job)->row.shown_ms, 0);
        lab_wait(&l, 10 * MINUTE_MS);
        tells(&l, job, 1, 10);
        assert_in_range(left_ms(&l, job), 90 * MINUTE_MS - 1000, 90 * MINUTE_MS);
        assert_in_range(procurement_work_warm_ms(model_job(l.m, job)), 10 * MINUTE_MS - 1000,
            10 * MINUTE_MS + 1000);
        assert_int_equal(procurement_work_warming_ms(model_job(l.m, job), l.now.wall), 0);
        saved_with_pause(&l, job, 1, 10, 0);
        lab_ended(&l, job, END_RECLAIMED, 0);
        lab_plan(&l);
        lab_bring_up(&l, intended(&l, MARKET_SPOT), 4);
        lab_plan(&l);
        lab_started(&l, job);
        lab_wait(&l, 4 * MINUTE_MS); /* it loads again: no work is done */
        assert_in_range(left_ms(&l, job), 90 * MINUTE_MS - 1000, 90 * MINUTE_MS);
        assert_in_range(procurement_work_warming_ms(model_job(l.m, job), l.now.wall),
            6 * MINUTE_MS - 1000, 6 * MINUTE_MS + 1000);
        lab_wait(&l, 10 * MINUTE_MS);
        assert_in_range(left_ms(&l, job), 86 * MINUTE_MS - 2000, 86 * MINUTE_MS);
        /* it was fast, or is slower here: the old rate holds until measured */
        tells(&l, job, 2, 11);
        assert_in_range(left_ms(&l, job), 89 * MINUTE_MS - 1000, 89 * MINUTE_MS);
        lab_saved(&l, job, 1, 11);
        lab_ended(&l, job, END_RECLAIMED, 0);
        lab_plan(&l);
        if (forgets)
            job_make_side(model_job(l.m, job))->seen.warm_ms = 0;
        took[forgets] = until_procurement(&l, job, PROCURE_ON_DEMAND, 20 * HOUR_MS);
        lab_deinit(&l);
    }
    assert_true(took[0] < took[1]); /* it must start earlier */
}

static void progress_that_shows_more_work_brings_on_demand_earlier(void **state)
{
    (void)state;
    int64_t took[2];
    for (int shown = 0; shown < 2; shown++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, 2 * HOUR_MS, 20 * HOUR_MS);
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        lab_bring_up(&l, intended(&l, MARKET_SPOT), 4);
        lab_plan(&l);
        lab_started(&l, job);
        lab_wait(&l, 30 * MINUTE_MS);
        if (shown) /* a tenth in half an hour: five hours, not two */
            lab_apply(&l, (struct event){.type = EV_PROGRESS,
                              .progress = {.job = job, .attempt = 1, .done = 10, .total = 100}});
        lab_saved(&l, job, 1, shown ? 10 : PROGRESS_NONE);
        lab_ended(&l, job, END_RECLAIMED, 0);
        lab_plan(&l);
        took[shown] = until_procurement(&l, job, PROCURE_ON_DEMAND, 20 * HOUR_MS);
        lab_deinit(&l);
    }
    assert_true(took[1] < took[0]);
}

static void assert_work_left(
    const struct lab *l, int64_t job, int64_t minutes, int64_t worst_minutes)
{
    const struct work_left w = procurement_work_left(l->m, model_job(l->m, job), l->now.wall);
    assert_in_range(w.ms, minutes * MINUTE_MS - 2000, minutes * MINUTE_MS + 2000);
    assert_in_range(w.worst_ms, (worst_minutes - 1) * MINUTE_MS, (worst_minutes + 1) * MINUTE_MS);
}

static void begins(struct lab *l, int64_t job)
{
    lab_bring_up(l, intended(l, MARKET_SPOT), 4);
    lab_plan(l);
    lab_started(l, job);
}

/* Ten hours, at six minutes per hundredth; twelve on the next machine. */
static void more_observed_progress_gets_more_weight(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 10 * HOUR_MS, 60 * HOUR_MS);
    r.spec.ckpt_every_ms = HOUR_MS; /* pauses of saves are of no account */
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    begins(&l, job);
    tells(&l, job, 1, 0);
    assert_work_left(&l, job, 600, 1200);
    lab_wait(&l, 6 * MINUTE_MS);
    tells(&l, job, 1, 1);
    assert_work_left(&l, job, 594, 594 + 148); /* five times 5 % */
    lab_wait(&l, 12 * MINUTE_MS);
    tells(&l, job, 1, 3);
    assert_work_left(&l, job, 582, 582 + 46); /* 8 % */
    lab_wait(&l, 42 * MINUTE_MS);
    tells(&l, job, 1, 10);
    assert_work_left(&l, job, 540, 540 + 27);
    lab_saved(&l, job, 1, 10);
    lab_ended(&l, job, END_RECLAIMED, 0);
    lab_plan(&l);
    begins(&l, job);
    tells(&l, job, 2, 10);
    lab_wait(&l, 24 * MINUTE_MS);
    tells(&l, job, 2, 12); /* too little, with the known rate */
    assert_work_left(&l, job, 528, 528 + 26);
    lab_wait(&l, 36 * MINUTE_MS);
    tells(&l, job, 2, 15);
    assert_work_left(&l, job, 1020, 1020 + 51);
    tells(&l, job, 2, 15);
    lab_wait(&l, 10 * MINUTE_MS);
    /* it works on the next hundredth: a repeated report does not lower the rate */
    tells(&l, job, 2, 15);
    assert_work_left(&l, job, 1010, 1010 + 50);
    lab_wait(&l, 998 * MINUTE_MS);
    tells(&l, job, 2, 99); /* at least a hundredth of the whole, which took this long with both */
    const struct work_left w = procurement_work_left(l.m, model_job(l.m, job), l.now.wall);
    assert_in_range(w.ms, 12 * MINUTE_MS - 2000, 12 * MINUTE_MS + 2000);
    assert_in_range(w.worst_ms - w.ms, 10 * MINUTE_MS, 12 * MINUTE_MS);
    lab_deinit(&l);
}

#define EVERY_MS (30 * MINUTE_MS)
#define PAUSE_MS (2 * MINUTE_MS)

static void assert_ends_at(const struct lab *l, int64_t job, int64_t at_ms)
{
    assert_in_range(l->now.wall.ms + left_ms(l, job), at_ms - 2000, at_ms + 2000);
}

/* Ten hours of run time, by --time or as the program shows, and a pause of two minutes after each
 * half an hour of it: 19 saves, and 38 minutes more. The expected end stays, whether the program
 * runs or is paused. */
static void pauses_of_saves_are_in_the_work_left(void **state)
{
    (void)state;
    for (int shows = 0; shows < 2; shows++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, 0, 60 * HOUR_MS);
        r.spec.time_limit_ms = (shows ? 100 : 10) * HOUR_MS;
        r.spec.ckpt_every_ms = EVERY_MS;
        int64_t job = lab_submit(&l, &r);
        if (!shows) /* none has been measured yet; two minutes in the worst case */
            assert_work_left(&l, job, 600, 638);
        lab_plan(&l);
        begins(&l, job);
        const int64_t end_ms = l.now.wall.ms + 638 * MINUTE_MS;
        if (shows)
            tells(&l, job, 1, 0);
        for (int saves = 1; saves <= 3; saves++) {
            lab_wait(&l, EVERY_MS);
            if (shows)
                tells(&l, job, 1, 5 * saves);
            if (saves > 1)
                assert_ends_at(&l, job, end_ms);
            lab_wait(&l, PAUSE_MS / 2);
            if (saves > 1)
                assert_ends_at(&l, job, end_ms);
            lab_wait(&l, PAUSE_MS / 2);
            saved_with_pause(&l, job, saves, shows ? 5 * saves : PROGRESS_NONE, PAUSE_MS);
            assert_ends_at(&l, job, end_ms);
        }
        const struct work_left w = procurement_work_left(l.m, model_job(l.m, job), l.now.wall);
        assert_in_range(w.unsaved_ms, 0, 1000);
        assert_in_range(model_job(l.m, job)->row.done_ms, 90 * MINUTE_MS - 2000, 90 * MINUTE_MS);
        if (!shows) /* the worst case is never less than what is expected */
            assert_int_equal(w.worst_ms, w.ms);
        lab_deinit(&l);
    }
}

static void passes(struct lab *l, int64_t ms)
{
    for (int64_t end_ms = l->now.wall.ms + ms; l->now.wall.ms < end_ms;) {
        lab_wait(l, MINUTE_MS / 4);
        lab_heartbeats(l);
        lab_plan(l);
    }
}

/* The Uniform Progress baseline asks where the job may ask and uses the job's observations: it runs
 * where the job's machine is, loses it with the job, and both are paid for. */
static void the_baseline_sees_what_the_job_sees(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 2 * HOUR_MS, 20 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    const struct baseline_row *v = &model_job(l.m, job)->row.baseline;
    assert_true(v->at_ms > 0);
    assert_int_equal(v->on, SPOT); /* not observed yet, but it may be asked */
    int64_t machine = intended(&l, MARKET_SPOT);
    lab_bring_up(&l, machine, 4);
    lab_plan(&l);
    lab_started(&l, job);
    passes(&l, HOUR_MS);
    assert_int_equal(v->on, SPOT);
    assert_in_range(v->done_ms, 45 * MINUTE_MS, HOUR_MS);
    assert_in_range(v->paid_uusd, v->job_paid_uusd / 10 * 8, v->job_paid_uusd);
    assert_true(v->job_paid_uusd > 0);
    /* after a reload it is the same job */
    const struct baseline_row later =
        procurement_baseline_now(v, 2 * HOUR_MS, 0, (struct wall){v->at_ms + 30 * MINUTE_MS});
    assert_int_equal(later.done_ms - v->done_ms, 30 * MINUTE_MS - v->starting_ms);
    assert_int_equal(later.paid_uusd - v->paid_uusd, v->price_uusd_h / 2);
    assert_int_equal(
        procurement_baseline_now(v, v->done_ms, 0, (struct wall){v->at_ms + HOUR_MS}).done_ms,
        v->done_ms);
    lab_apply(&l, (struct event){.type = EV_INSTANCE_GONE,
                      .gone = {.instance = machine, .reclaimed = true, .ended_at = WALL_NONE}});
    assert_int_equal(v->starting_ms, 0);
    passes(&l, MINUTE_MS);
    assert_true(v->on != SPOT || v->starting_ms > 0); /* it must start again */
    assert_int_equal(v->last, SPOT);
    lab_deinit(&l);
}

/* What it waits for, why it pays for on-demand, and the expected result are explained, for every
 * rule. */
static void what_is_decided_is_explained_by_all_rules(void **state)
{
    static const struct {
        enum deadline_rule rule;
        int64_t in_ms;
        const char *waits, *pays; /* parts of the explanation at first, and near its deadline */
    } all[] = {{DEADLINE_PLANNED, 10 * HOUR_MS, "it uses only spot for now, burst/",
                   "it uses on-demand: "},
        {DEADLINE_UNIFORM_STICKY, 10 * HOUR_MS, "it uses only spot for now, burst/",
            "it is behind schedule"},
        {DEADLINE_UNIFORM, 10 * HOUR_MS, "it uses only spot for now, burst/",
            "it is behind schedule"},
        {DEADLINE_UNIFORM_PLAIN, 10 * HOUR_MS, "it uses only spot for now, burst/",
            "it is behind schedule"},
        {DEADLINE_RC_CR, 10 * HOUR_MS, "it uses only spot for now, burst/",
            "it is behind schedule"},
        {DEADLINE_RC_CR_PLAIN, 10 * HOUR_MS, "it uses only spot for now, burst/",
            "it is behind schedule"},
        {DEADLINE_GREEDY, 10 * HOUR_MS, "it uses only spot for now, burst/",
            "it has waited for spot for the maximum time"},
        {DEADLINE_ON_DEMAND, 10 * HOUR_MS, "on-demand from the start was chosen",
            "on-demand from the start was chosen"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct lab l;
        char why[CORE_TEXT_MAX];
        struct procurement_outlook at_first, late;
        struct procurement_options o = procurement_usual;
        o.rule = all[i].rule;
        lab_init_procurement(&l, &o);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, HOUR_MS, all[i].in_ms);
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        assert_true(core_procurement_why(l.m, model_job(l.m, job), l.now, why, sizeof why));
        assert_non_null(strstr(why, all[i].waits));
        assert_true(core_procurement_expects(l.m, model_job(l.m, job), l.now, &at_first));
        assert_true(at_first.median_ms >= HOUR_MS && at_first.p95_ms >= at_first.median_ms &&
                    at_first.p95_ms <= all[i].in_ms);
        assert_true(at_first.uusd > 0);
        if (all[i].rule != DEADLINE_ON_DEMAND)
            until_procurement(&l, job, PROCURE_ON_DEMAND, 10 * HOUR_MS);
        assert_true(core_procurement_why(l.m, model_job(l.m, job), l.now, why, sizeof why));
        assert_non_null(strstr(why, all[i].pays));
        assert_true(core_procurement_expects(l.m, model_job(l.m, job), l.now, &late));
        assert_true(late.uusd >= at_first.uusd);
        lab_deinit(&l);
    }
}

static void without_on_demand_it_takes_any_offer(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    struct job_row r = job_by(&l, HOUR_MS, 10 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, job), node);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_FREE);
    lab_deinit(&l);
}

static const struct reason *reason_of(struct lab *l, int64_t job, const char *code)
{
    static struct reason why[16];
    size_t n = core_explain(l->m, l->now, job, why, 16);
    for (size_t i = 0; i < n; i++)
        if (str_eq(why[i].code, code))
            return &why[i];
    fail_msg("nothing is said of %s", code);
    return NULL;
}

/* Markets excluded by procurement are reported as available, and no drill would help; expected
 * lateness is reported in advance. */
static void the_reported_figures_are_true(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, HOUR_MS, 10 * HOUR_MS);
    int64_t waits = lab_submit(&l, &r);
    r.spec.finish_ms = l.now.wall.ms + 30 * MINUTE_MS;
    int64_t late = lab_submit(&l, &r);
    r.spec.finish_ms = l.now.wall.ms + HOUR_MS + 10 * MINUTE_MS;
    int64_t sure = lab_submit(&l, &r);
    lab_plan(&l);
    const int64_t jobs[] = {waits, late, sure};
    for (int i = 0; i < 3; i++) {
        assert_false(lab_has_reason(&l, jobs[i], "drill-required", ""));
        assert_false(lab_has_reason(&l, jobs[i], "market", ""));
        assert_int_equal(lab_has_reason(&l, jobs[i], "late", ""), jobs[i] == late);
    }
    assert_non_null(strstr(reason_of(&l, waits, "finish-by")->text,
        "its finish time is in 10h00m; it uses only spot for now"));
    assert_non_null(strstr(reason_of(&l, sure, "finish-by")->text, "it uses on-demand: "));
    assert_string_equal(reason_of(&l, late, "finish-by")->text,
        "its finish time is in 30m00s; it uses on-demand: no other offer is as early");
    assert_non_null(
        strstr(reason_of(&l, late, "late")->text, "it is expected to be late: it takes about 1h"));
    lab_wait(&l, 31 * MINUTE_MS);
    assert_string_equal(reason_of(&l, late, "finish-by")->text,
        "its finish time was 1m00s ago; it uses on-demand: no other offer is as early");
    assert_non_null(strstr(reason_of(&l, late, "late")->text, "it is late, and takes about 1h"));
    lab_deinit(&l);
}

static enum procurement procured(struct lab *l, struct job_row r)
{
    int64_t job = lab_submit(l, &r);
    lab_plan(l);
    return model_job(l->m, job)->row.procurement;
}

/* A printed remedy is one: the job so changed uses spot, and a little less of a change does not
 * help. */
static void the_margin_and_what_would_shrink_it_are_named(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 6 * HOUR_MS, 8 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_ON_DEMAND);
    assert_string_equal(reason_of(&l, job, "work-margin")->text,
        "about 6h00m of work (--work) are left, reckoned as up to 12h00m (work_margin 100 %) until "
        "its program reports progress; it could use spot with --time 7h, after which it is ended, "
        "or once its progress shows a twentieth of the work");
    assert_non_null(strstr(reason_of(&l, job, "finish-by")->text,
        "it uses on-demand: that is expected to meet the deadline, but in the worst case takes "
        "12h"));
    r.spec.time_limit_ms = 7 * HOUR_MS;
    assert_int_equal(procured(&l, r), PROCURE_SPOT);
    r.spec.time_limit_ms = 8 * HOUR_MS;
    assert_int_equal(procured(&l, r), PROCURE_ON_DEMAND);
    /* on spot already, it is only said what is reckoned with */
    r = job_by(&l, 6 * HOUR_MS, 20 * HOUR_MS);
    r.spec.time_limit_ms = 7 * HOUR_MS;
    assert_string_equal(reason_of(&l, lab_submit(&l, &r), "work")->text,
        "about 6h00m of work (--work) are left, reckoned as up to 7h00m, its time limit (--time), "
        "until its program reports progress");
    r.spec.work_ms = 0;
    assert_string_equal(reason_of(&l, lab_submit(&l, &r), "work")->text,
        "its work is reckoned as what is left of its time limit (--time), 7h00m, because --work is "
        "not given");
    lab_deinit(&l);
}

/* Six hours of work, a margin of as much, and pauses of six minutes each half an hour. The time
 * limit includes them, unless the job is retried after it. */
static void pauses_of_saves_are_in_the_time_limit(void **state)
{
    static const struct {
        int64_t limit_ms;
        int32_t retries;
        const char *said;
    } measured[] = {
        {15 * HOUR_MS, 0,
            "about 6h30m of work (--work) are left, reckoned as up to 13h42m (work_margin 100 %) "
            "until its program reports progress"},
        {10 * HOUR_MS, 0,
            "about 6h30m of work (--work) are left, reckoned as up to 9h24m, its time limit "
            "(--time), until its program reports progress"},
        {10 * HOUR_MS, 1,
            "about 6h30m of work (--work) are left, reckoned as up to 11h18m, its time limit "
            "(--time) and 1h48m of pauses of its saves, until its program reports progress"},
        {380 * MINUTE_MS, 0,
            "about 6h30m of work (--work) are left, reckoned as up to 6h30m, its time limit "
            "(--time), until its program reports progress"}};
    (void)state;
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, 6 * HOUR_MS, 40 * HOUR_MS);
        r.spec.ckpt_every_ms = EVERY_MS;
        r.spec.time_limit_ms = measured[i].limit_ms;
        r.spec.retries.n[RETRY_TIMEOUT] = measured[i].retries;
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        begins(&l, job);
        lab_wait(&l, EVERY_MS + 3 * PAUSE_MS);
        saved_with_pause(&l, job, 1, PROGRESS_NONE, 3 * PAUSE_MS);
        assert_string_equal(reason_of(&l, job, "work")->text, measured[i].said);
        r.spec.time_limit_ms = 365 * MINUTE_MS;
        assert_string_equal(reason_of(&l, lab_submit(&l, &r), "work")->text,
            "about 6h00m of work (--work) are left, reckoned as up to 6h22m with 22m00s of pauses "
            "until one of its saves has been measured");
        lab_deinit(&l);
    }
}

/* Without interruptions a job ends within its time limit, so at each save its worst case is what is
 * left of that: 6 hours of work and 12 pauses of two minutes are 6 h 22 min of 6 h 30. */
static void a_time_limit_that_includes_the_pauses_leaves_the_slack_as_it_is(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 6 * HOUR_MS, 8 * HOUR_MS);
    r.spec.ckpt_every_ms = EVERY_MS;
    r.spec.time_limit_ms = 390 * MINUTE_MS;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    begins(&l, job);
    const int64_t end_ms = l.now.wall.ms + r.spec.time_limit_ms;
    for (int saves = 1; saves <= 4; saves++) {
        lab_wait(&l, EVERY_MS + PAUSE_MS);
        saved_with_pause(&l, job, saves, PROGRESS_NONE, PAUSE_MS);
        const struct work_left w = procurement_work_left(l.m, model_job(l.m, job), l.now.wall);
        assert_in_range(l.now.wall.ms + w.worst_ms, end_ms - 2000, end_ms + 2000);
        assert_true(w.worst_ms > w.ms);
    }
    lab_deinit(&l);
}

/* The other remedy: a hundredth is not enough, a twentieth is. */
static void reported_progress_shrinks_the_margin_as_is_said(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 6 * HOUR_MS, 475 * MINUTE_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_non_null(strstr(reason_of(&l, job, "work-margin")->text,
        "once its progress shows a twentieth of the work"));
    lab_bring_up(&l, intended(&l, MARKET_ON_DEMAND), 4);
    lab_plan(&l);
    lab_started(&l, job);
    tells(&l, job, 1, 0);
    lab_wait(&l, 6 * HOUR_MS / 100);
    tells(&l, job, 1, 1);
    assert_true(lab_has_reason(&l, job, "work-margin", "as its progress shows"));
    lab_wait(&l, 6 * HOUR_MS / 25);
    saved_with_pause(&l, job, 1, 1, 0); /* saves do not pause it; unknown, that is a margin too */
    tells(&l, job, 1, 5);
    assert_false(lab_has_reason(&l, job, "work-margin", ""));
    assert_true(lab_has_reason(&l, job, "work", "as its progress shows"));
    lab_deinit(&l);
}

/* For a job that is not submitted the same is said, and the offer is that which it would get, also
 * while spot machines of other jobs are coming. */
static void an_estimate_has_the_deadline_in_it(void **state)
{
    (void)state;
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct lab l;
    struct estimate *t = calloc(1, sizeof *t);
    assert_non_null(t);
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, HOUR_MS, 20 * HOUR_MS);
    lab_submit(&l, &r);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, SPOT), 1);
    r = job_by(&l, 6 * HOUR_MS, 0);
    r.spec.finish_ms = -8 * HOUR_MS; /* from the submit */
    struct event ev = {.type = EV_SUBMIT, .now = l.now, .submit = {.job = &r, .texts = &texts}};
    assert_int_equal(core_estimate(l.m, &ev, t, &l.e), 0);
    assert_int_equal(t->start.offer, ON_DEMAND);
    assert_int_equal(t->expected_ms, 6 * HOUR_MS);
    assert_in_range(t->expected_uusd, 18000000, 18500000); /* $3 an hour */
    size_t i = 0;
    while (i < t->n_reasons && !str_eq(t->reasons[i].code, "work-margin"))
        i++;
    assert_true(i + 1 < t->n_reasons);
    assert_non_null(strstr(t->reasons[i].text, "; it could use spot with --time 7h, "));
    assert_non_null(
        strstr(t->reasons[i + 1].text, "its finish time is in 8h00m; it uses on-demand: "));
    free(t);
    lab_deinit(&l);
}

/* "(--finish-by +16h)", or in minutes. */
static int proposed_minutes(const char *text)
{
    int n = 0;
    char unit = ' ';
    const char *at = strstr(text, "(--finish-by +");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "(--finish-by +%d%c)", &n, &unit), 2);
    return unit == 'h' ? 60 * n : n;
}

/* With too little time for any limit above the work, only a later deadline helps. */
static void a_deadline_that_would_allow_spot_is_found(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 460 * MINUTE_MS, 8 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    const char *said = strstr(reason_of(&l, job, "work-margin")->text, "; it could use spot with ");
    assert_non_null(said);
    int minutes = proposed_minutes(said);
    assert_in_range(minutes, 2 * 460, 2 * 460 + 90);
    assert_int_equal(procured(&l, job_by(&l, 460 * MINUTE_MS, minutes * MINUTE_MS)), PROCURE_SPOT);
    assert_int_equal(
        procured(&l, job_by(&l, 460 * MINUTE_MS, (minutes - 10) * MINUTE_MS)), PROCURE_ON_DEMAND);
    lab_deinit(&l);
}

static void an_infeasible_deadline_is_said_to_be_so_by_how_much(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 10 * HOUR_MS, 6 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    const char *text = reason_of(&l, job, "late")->text;
    assert_non_null(strstr(text, " and 6h00m are left, so the deadline is infeasible by 4h0"));
    int minutes = proposed_minutes(text);
    assert_false(lab_has_reason(&l, job, "work-margin", ""));
    assert_false(lab_has_reason(&l, job, "work", ""));
    assert_in_range(minutes, 10 * 60, 10 * 60 + 10);
    for (int less = 0; less <= 5; less += 5) {
        r.spec.finish_ms = l.now.wall.ms + (minutes - less) * MINUTE_MS;
        assert_int_equal(lab_has_reason(&l, lab_submit(&l, &r), "late", ""), less > 0);
    }
    lab_deinit(&l);
}

static void a_time_limit_below_the_work_is_said_to_end_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 3 * HOUR_MS, 10 * HOUR_MS);
    for (int hours = 2; hours <= 3; hours++) {
        r.spec.time_limit_ms = hours * HOUR_MS;
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        assert_int_equal(lab_has_reason(&l, job, "time-limit",
                             "it is ended after 2h00m (--time), before its work of 3h00m"),
            hours == 2);
    }
    r.spec.time_limit_ms = 2 * HOUR_MS;
    r.spec.retries.n[RETRY_TIMEOUT] = 3;
    assert_false(lab_has_reason(&l, lab_submit(&l, &r), "time-limit", ""));
    lab_deinit(&l);
}

/* Only owned machines: on-demand is not spoken of, and a job that runs is late too. */
static void on_owned_machines_a_job_is_said_to_be_late(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row r = job_by(&l, 10 * HOUR_MS, 6 * HOUR_MS);
    int64_t job = lab_submit(&l, &r);
    for (int is_placed = 0; is_placed <= 1; is_placed++) {
        if (is_placed) {
            lab_join(&l, "n1", 4);
            lab_plan(&l);
        }
        assert_int_equal(job_attempt(model_job(l.m, job)) != NULL, is_placed);
        const char *text = reason_of(&l, job, "late")->text;
        assert_non_null(strstr(text, " if it runs from now on, and 6h00m are left, so the "));
        assert_non_null(strstr(text, " is infeasible by 4h0"));
        assert_non_null(strstr(text, "; it is expected to meet a deadline 10h"));
        assert_null(strstr(text, "on-demand"));
    }
    r.spec.finish_ms = l.now.wall.ms + 11 * HOUR_MS;
    lab_join(&l, "n2", 4);
    job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_non_null(job_attempt(model_job(l.m, job)));
    assert_false(lab_has_reason(&l, job, "late", ""));
    lab_deinit(&l);
}

/* Spot costs $1 per hour, on-demand $3; a job of half a machine pays half. */
static void what_costs_more_than_it_takes_is_not_looked_at(void **state)
{
    (void)state;
    for (int32_t cpus = 2; cpus <= 4; cpus += 2) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 2, "m4", 4);
        struct job_row r = job_by(&l, HOUR_MS, HOUR_MS + 10 * MINUTE_MS);
        r.spec.need.cpus = cpus;
        r.spec.max_uusd_h = 2000000;
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        bool is_sure = cpus == 2;
        assert_int_equal(
            model_job(l.m, job)->row.procurement, is_sure ? PROCURE_ON_DEMAND : PROCURE_FREE);
        assert_int_equal(lab_launches(&l, ON_DEMAND), is_sure ? 1 : 0);
        assert_int_equal(lab_launches(&l, SPOT), is_sure ? 0 : 1);
        if (!is_sure)
            assert_non_null(strstr(reason_of(&l, job, "finish-by")->text,
                "only on-demand guarantees the deadline, for $3.00 an hour or more, but its "
                "maximum is $2.00 (--max-usd-per-hour)"));
        lab_deinit(&l);
    }
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct resources dear = {.cpus = 4, .memory_mib = 4 * 4096};
    lab_offer(&l, "burst", "m4x", MARKET_SPOT, 0, dear, 900000);
    struct job_row r = job_by(&l, HOUR_MS, 10 * HOUR_MS);
    r.spec.max_uusd_h = 3000000;
    int64_t job = lab_submit(&l, &r);
    struct event price = {.type = EV_PRICE,
        .price = {
            .region = "r1", .zone = "z1", .type = "m4x", .market = MARKET_SPOT, .uusd_h = 3500000}};
    lab_apply(&l, price);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_SPOT);
    assert_non_null(strstr(reason_of(&l, job, "finish-by")->text, "burst/z1/m4:"));
    lab_deinit(&l);
}

static void a_cost_cap_is_reported_with_the_expected_cost(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, HOUR_MS, HOUR_MS + 10 * MINUTE_MS);
    int64_t free = lab_submit(&l, &r);
    r.spec.max_uusd = 2000000;
    r.spec.method = CKPT_COOP;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_null(strstr(reason_of(&l, free, "expected")->text, "more than"));
    assert_non_null(strstr(reason_of(&l, job, "expected")->text,
        ": more than is left of the $2.00 that it may cost (--max-usd), so it is parked before"));
    lab_deinit(&l);
}

/* All machines of a gang are paid for; of an array, those of one task are named. */
static void the_expected_cost_is_that_of_all_nodes_or_of_a_task(void **state)
{
    (void)state;
    int64_t uusd[3];
    struct lab l;
    struct procurement_outlook o;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m4", 4);
    for (int32_t nodes = 1; nodes <= 3; nodes++) {
        struct job_row r = job_by(&l, HOUR_MS, HOUR_MS + 10 * MINUTE_MS);
        r.spec.nodes = nodes;
        int64_t job = lab_submit(&l, &r);
        lab_plan(&l);
        assert_true(core_procurement_expects(l.m, model_job(l.m, job), l.now, &o));
        uusd[nodes - 1] = o.uusd;
    }
    assert_in_range(uusd[0], 3000000, 3200000); /* on-demand */
    assert_in_range(uusd[1], 2 * uusd[0] - 2, 2 * uusd[0] + 2);
    assert_in_range(uusd[2], 3 * uusd[0] - 3, 3 * uusd[0] + 3);
    struct job_row r = job_by(&l, HOUR_MS, 10 * HOUR_MS);
    struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct ranges set;
    assert_int_equal(ranges_parse("1-100", &set, &l.e), 0);
    int64_t one = lab_submit(&l, &r),
            tasks = lab_apply(&l, (struct event){.type = EV_SUBMIT,
                                      .submit = {.job = &r, .texts = &texts, .tasks = &set}});
    lab_plan(&l);
    assert_non_null(strstr(reason_of(&l, one, "expected")->text, "it is expected to end in "));
    assert_non_null(
        strstr(reason_of(&l, tasks, "expected")->text, "each of its tasks is expected to end in "));
    lab_deinit(&l);
}

/* The cap is a part of the cost on on-demand, not of that of Uniform Progress. */
static void the_cap_is_named_with_what_it_is_a_part_of(void **state)
{
    (void)state;
    struct lab l;
    char why[CORE_TEXT_MAX] = "";
    struct procurement_options o = procurement_usual;
    o.cap_pct = 1;
    lab_init_procurement(&l, &o);
    lab_elastic(&l, "burst", 2, "m4", 4);
    struct job_row r = job_by(&l, 10 * HOUR_MS, 40 * HOUR_MS);
    int64_t job = lab_submit(&l, &r), began_ms = l.now.wall.ms;
    lab_plan(&l);
    while (!strstr(why, " the cap")) {
        assert_true(l.now.wall.ms - began_ms < 20 * HOUR_MS);
        no_spot_for_a_while(&l);
        assert_true(core_procurement_why(l.m, model_job(l.m, job), l.now, why, sizeof why));
    }
    assert_string_equal(why,
        "it uses on-demand: waiting for spot might cost more than Uniform Progress by over the "
        "cap, 1 % of what its work costs on on-demand");
    lab_deinit(&l);
}

static void change(struct lab *l, int64_t job, uint64_t fields, struct job_row to)
{
    lab_apply(l, (struct event){.type = EV_UPDATE,
                     .update = {.job = job, .by = "ann", .fields = fields, .to = &to}});
    lab_plan(l);
}

static void a_deadline_can_be_set_changed_and_removed_later(void **state)
{
    (void)state;
    const uint64_t finish = UPDATE_BIT(UPDATE_FINISH), work = UPDATE_BIT(UPDATE_WORK);
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m4", 4);
    struct job_row r = lab_job(4), to = job_by(&l, HOUR_MS, 10 * HOUR_MS),
                   late = job_by(&l, HOUR_MS, HOUR_MS + 10 * MINUTE_MS);
    int64_t job = lab_submit(&l, &r);
    change(&l, job, finish | work, to);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_SPOT);
    lab_apply(&l, (struct event){.type = EV_LAUNCH_REFUSED,
                      .refused = {intended(&l, MARKET_SPOT), true, "no capacity"}});
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, ON_DEMAND), 0);
    change(&l, job, finish, late);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_ON_DEMAND);
    assert_int_equal(lab_launches(&l, ON_DEMAND), 1);
    /* removed, and set again, while it runs */
    lab_bring_up(&l, intended(&l, MARKET_ON_DEMAND), 4);
    lab_plan(&l);
    lab_started(&l, job);
    change(&l, job, finish, r);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_FREE);
    assert_false(procurement_is_looked_at(model_job(l.m, job)));
    lab_wait(&l, MINUTE_MS);
    lab_saved(&l, job, 1, 10);
    to.spec.finish_ms += 20 * HOUR_MS;
    change(&l, job, finish, to);
    assert_true(procurement_is_looked_at(model_job(l.m, job)));
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_SPOT);
    /* values refused in a submit are refused here, and nothing changes */
    struct err before = l.e;
    struct event bad = {
        .type = EV_UPDATE, .update = {.job = job, .by = "ann", .fields = work, .to = &r}};
    assert_int_equal(lab_try(&l, &bad, NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "add --work (such as 6h) or --time"));
    r.spec.finish_ms = l.now.wall.ms - 1;
    bad.update.fields = finish;
    assert_int_equal(lab_try(&l, &bad, NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "has passed"));
    l.e = before;
    assert_int_equal(model_job(l.m, job)->row.spec.finish_ms, to.spec.finish_ms);
    lab_deinit(&l);
}

static void a_relative_deadline_counts_from_the_submit_or_the_change(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m4", 4);
    struct job_row r = job_by(&l, HOUR_MS, 0);
    r.spec.finish_ms = -5 * HOUR_MS;
    lab_wait(&l, MINUTE_MS);
    int64_t job = lab_submit(&l, &r);
    assert_int_equal(model_job(l.m, job)->row.spec.finish_ms, l.now.wall.ms + 5 * HOUR_MS);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, job)->row.procurement, PROCURE_SPOT);
    lab_wait(&l, HOUR_MS);
    change(&l, job, UPDATE_BIT(UPDATE_FINISH), r);
    assert_int_equal(model_job(l.m, job)->row.spec.finish_ms, l.now.wall.ms + 5 * HOUR_MS);
    r.spec.market = WISH_SPOT;
    lab_refused(&l, &r, "remove --market");
    lab_deinit(&l);
}

static void what_cannot_be_meant_is_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    struct job_row over = job_by(&l, HOUR_MS, -1), spot = job_by(&l, HOUR_MS, HOUR_MS),
                   unknown = job_by(&l, 0, HOUR_MS);
    spot.spec.market = WISH_SPOT;
    lab_refused(&l, &over, "has passed");
    lab_refused(&l, &spot, "remove --market");
    lab_refused(&l, &unknown, "add --work (such as 6h) or --time");
    unknown.spec.time_limit_ms = HOUR_MS;
    lab_submit(&l, &unknown);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(with_time_only_spot_is_bought),
        cmocka_unit_test(without_time_it_is_on_demand_at_once),
        cmocka_unit_test(a_job_that_waits_for_spot_in_vain_is_not_late),
        cmocka_unit_test(behind_the_line_it_goes_on_demand_and_ahead_of_it_back),
        cmocka_unit_test(it_moves_to_the_spot_that_it_was_granted),
        cmocka_unit_test(work_that_is_saved_or_shown_counts),
        cmocka_unit_test(between_two_reports_the_remaining_work_decreases),
        cmocka_unit_test(progress_that_shows_more_work_brings_on_demand_earlier),
        cmocka_unit_test(what_a_program_takes_to_begin_is_not_work),
        cmocka_unit_test(more_observed_progress_gets_more_weight),
        cmocka_unit_test(pauses_of_saves_are_in_the_work_left),
        cmocka_unit_test(the_baseline_sees_what_the_job_sees),
        cmocka_unit_test(what_is_decided_is_explained_by_all_rules),
        cmocka_unit_test(without_on_demand_it_takes_any_offer),
        cmocka_unit_test(the_reported_figures_are_true),
        cmocka_unit_test(the_margin_and_what_would_shrink_it_are_named),
        cmocka_unit_test(pauses_of_saves_are_in_the_time_limit),
        cmocka_unit_test(a_time_limit_that_includes_the_pauses_leaves_the_slack_as_it_is),
        cmocka_unit_test(reported_progress_shrinks_the_margin_as_is_said),
        cmocka_unit_test(an_estimate_has_the_deadline_in_it),
        cmocka_unit_test(a_deadline_that_would_allow_spot_is_found),
        cmocka_unit_test(an_infeasible_deadline_is_said_to_be_so_by_how_much),
        cmocka_unit_test(a_time_limit_below_the_work_is_said_to_end_it),
        cmocka_unit_test(on_owned_machines_a_job_is_said_to_be_late),
        cmocka_unit_test(what_costs_more_than_it_takes_is_not_looked_at),
        cmocka_unit_test(a_cost_cap_is_reported_with_the_expected_cost),
        cmocka_unit_test(the_expected_cost_is_that_of_all_nodes_or_of_a_task),
        cmocka_unit_test(the_cap_is_named_with_what_it_is_a_part_of),
        cmocka_unit_test(a_deadline_can_be_set_changed_and_removed_later),
        cmocka_unit_test(a_relative_deadline_counts_from_the_submit_or_the_change),
        cmocka_unit_test(what_cannot_be_meant_is_refused)};
    return cmocka_run_group_tests_name("procurement", tests, NULL, NULL);
}
