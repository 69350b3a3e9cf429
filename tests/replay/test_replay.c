/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole days of decisions in virtual time: the cost of a pool, the number of its launches, and its
 * behaviour in a drought.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "bench/lost_reclaims.h"
#include "replay/replay.h"
#include <stdlib.h>

#define MINUTE ((int64_t)60000)
#define HOUR (60 * MINUTE)
#define SPOT_UUSD_H 300000
#define ON_DEMAND_UUSD_H 1000000

static const struct pool_row burst = {
    .name = "burst",
    .elastic = true,
    .provider = "sim",
    .region = "r1",
    .max_nodes = 20,
    .idle_timeout_ms = 2 * MINUTE,
    .cooldown_ms = 2 * MINUTE,
    .boot_timeout_ms = 10 * MINUTE,
    .refusal_backoff_ms = MINUTE / 2,
    .min_paid_ms = MINUTE,
    .spread_pct = 10,
    .return_ms = 30 * MINUTE,
};

static struct replay_offer offer(enum market m, const char *zone, const struct trace *t)
{
    struct replay_offer o = {.row = {.pool = "burst",
                                 .type = "m5",
                                 .market = m,
                                 .rank = m == MARKET_ON_DEMAND,
                                 .total = {.cpus = 4, .memory_mib = 16384},
                                 .price_uusd_h = m == MARKET_SPOT ? SPOT_UUSD_H : ON_DEMAND_UUSD_H,
                                 .on_demand_uusd_h = ON_DEMAND_UUSD_H},
        .trace = t,
        .trace_times = 1,
        .notice_ms = 2 * MINUTE};
    STR_COPY(o.row.zone, zone);
    return o;
}

static struct replay_job job(int64_t submit_ms, int32_t cpus, int64_t work_ms)
{
    return (struct replay_job){.submit_ms = submit_ms,
        .need = {.cpus = cpus, .memory_mib = 1024},
        .work_ms = work_ms,
        .save_ms = 5000,
        .ckpt_bytes = 1 << 20};
}

static struct replay_result replay(const struct replay_offer *offers, size_t n_offers,
    const struct replay_job *jobs, size_t n_jobs, int64_t until_ms)
{
    struct replay_options o = {.pools = &burst,
        .n_pools = 1,
        .offers = offers,
        .n_offers = n_offers,
        .jobs = jobs,
        .n_jobs = n_jobs,
        .boot_ms = MINUTE,
        .restore_ms = 5000,
        .until_ms = until_ms,
        .seed = 1};
    struct replay_result r;
    struct err e;
    if (replay_run(&o, &r, &e) != 0)
        fail_msg("%s", e.text);
    return r;
}

/* Up for the first `up` hours, down for the next `down` hours, then up; one tick is an hour. */
static struct trace drought(int up, int down, int32_t *counts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        counts[i] = (int)i < up || (int)i >= up + down ? 100 : 0;
    return (struct trace){.gap_ms = HOUR, .n = n, .counts = counts};
}

static void an_undisturbed_job_costs_boot_run_and_saves(void **state)
{
    (void)state;
    struct replay_offer o = offer(MARKET_SPOT, "z1", NULL);
    struct replay_job j = job(0, 4, HOUR);
    struct replay_result r = replay(&o, 1, &j, 1, 24 * HOUR);
    assert_int_equal(r.finished, 1);
    assert_int_equal(r.launches, 1);
    assert_int_equal(r.attempts, 1);
    assert_int_equal(r.wait_ms, MINUTE + 2000);
    assert_int_equal(r.ms[LEDGER_USEFUL], HOUR);
    assert_int_equal(r.end_ms, MINUTE + 2000 + HOUR + r.ms[LEDGER_SAVE]);
    assert_true(r.ms[LEDGER_SAVE] >= 5000 && r.ms[LEDGER_SAVE] <= 12 * 5000);
    assert_int_equal(r.on_demand_uusd, ON_DEMAND_UUSD_H);
    assert_int_equal(r.uusd[MARKET_SPOT], core_cost_uusd(r.end_ms - 2000, SPOT_UUSD_H));
    j.every_ms = 7 * MINUTE;
    r = replay(&o, 1, &j, 1, 24 * HOUR);
    assert_int_equal(r.ms[LEDGER_SAVE], 8 * 5000);
}

#define BOOTS 400

static int by_wait(const void *a, const void *b)
{
    const struct replay_outcome *x = a, *y = b;
    return (x->started_ms > y->started_ms) - (x->started_ms < y->started_ms);
}

/* Jobs at once, each with a machine of its own. */
static void boot_all(int64_t p95_ms, uint64_t seed, struct replay_outcome *outcomes)
{
    struct pool_row wide = burst;
    struct replay_offer o = offer(MARKET_ON_DEMAND, "z1", NULL);
    struct replay_job jobs[BOOTS];
    struct replay_result r;
    struct err e;
    wide.max_nodes = BOOTS;
    for (size_t i = 0; i < BOOTS; i++)
        jobs[i] = job(0, 4, HOUR);
    struct replay_options options = {.pools = &wide,
        .n_pools = 1,
        .offers = &o,
        .n_offers = 1,
        .jobs = jobs,
        .n_jobs = BOOTS,
        .boot_ms = MINUTE,
        .boot_p95_ms = p95_ms,
        .restore_ms = 5000,
        .until_ms = 24 * HOUR,
        .outcomes = outcomes,
        .seed = seed};
    if (replay_run(&options, &r, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(r.finished, BOOTS);
    qsort(outcomes, BOOTS, sizeof *outcomes, by_wait);
}

static void boots_vary_by_their_median_and_95th_percentile(void **state)
{
    struct replay_outcome outcomes[BOOTS], again[BOOTS];
    size_t longer = 0;
    (void)state;
    boot_all(0, 1, outcomes);
    assert_int_equal(outcomes[0].started_ms, MINUTE + 2000);
    assert_int_equal(outcomes[BOOTS - 1].started_ms, MINUTE + 2000);
    boot_all(3 * MINUTE, 1, outcomes);
    for (size_t i = 0; i < BOOTS; i++)
        longer += outcomes[i].started_ms > 3 * MINUTE + 2000;
    assert_in_range(outcomes[BOOTS / 2].started_ms, 54000 + 2000, 66000 + 2000);
    assert_in_range(longer, BOOTS / 20 - 8, BOOTS / 20 + 8);
    assert_true(outcomes[0].started_ms < MINUTE / 3);
    boot_all(3 * MINUTE, 1, again);
    for (size_t i = 0; i < BOOTS; i++)
        assert_int_equal(again[i].started_ms, outcomes[i].started_ms);
    boot_all(3 * MINUTE, 2, again);
    assert_true(again[BOOTS / 2].started_ms != outcomes[BOOTS / 2].started_ms);
}

static void a_reclaim_with_notice_loses_nothing_and_one_without_at_most_the_interval(void **state)
{
    (void)state;
    int32_t counts[] = {1, 0, 1};
    struct trace t = {.gap_ms = 20 * MINUTE, .n = 3, .counts = counts};
    struct replay_offer o = offer(MARKET_SPOT, "z1", &t);
    struct replay_job j = job(0, 4, HOUR);
    struct replay_result r = replay(&o, 1, &j, 1, 24 * HOUR);
    assert_int_equal(r.finished, 1);
    assert_true(r.reclaims >= 1);
    assert_int_equal(r.ms[LEDGER_LOST], 0);
    o.notice_ms = 0;
    struct replay_options no_notice = {.pools = &burst,
        .n_pools = 1,
        .offers = &o,
        .n_offers = 1,
        .jobs = &j,
        .n_jobs = 1,
        .boot_ms = MINUTE,
        .restore_ms = 5000,
        .until_ms = 24 * HOUR};
    assert_int_equal(replay_run(&no_notice, &r, NULL), 0);
    assert_int_equal(r.finished, 1);
    assert_true(r.ms[LEDGER_LOST] > 0 && r.ms[LEDGER_LOST] <= r.reclaims * 31 * MINUTE);
}

/* A thousand reclaims; scripts/bench lost prints the distribution of their cost. */
static void no_reclaim_costs_more_than_its_bound(void **state)
{
    /* in ms: none; Google's and Azure's; Amazon's */
    static const int64_t notices[] = {0, 30 * 1000, 2 * MINUTE};
    static const size_t counts[] = {500, 250, 250};
    struct lost_reclaim *r = mem_array(500, sizeof *r);
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        size_t fit = 0, late = 0, lost = 0;
        lost_sample(k, notices[k], counts[k], r);
        for (size_t i = 0; i < counts[k]; i++) {
            const struct replay_loss *l = &r[i].loss;
            fit += lost_fits(&r[i]);
            late += notices[k] > 0 && !lost_fits(&r[i]);
            lost += l->work_ms > 0;
            int64_t bound = lost_bound_ms(&r[i]), until_gone = lost_fits(&r[i]) ? 0 : notices[k];
            if (l->work_ms < 0 || l->work_ms > bound || l->counted_ms < l->work_ms ||
                l->counted_ms > bound + until_gone)
                fail_msg("notice %d ms, save %d ms, interval %d ms: %d ms are lost, %d counted",
                    (int)notices[k], (int)l->save_ms, (int)l->interval_ms, (int)l->work_ms,
                    (int)l->counted_ms);
        }
        print_message("notice %d ms: %d reclaims, %d fit, %d lose\n", (int)notices[k],
            (int)counts[k], (int)fit, (int)lost);
        assert_true(notices[k] == 0 ? fit == 0 && lost > 450 : fit > 100 && late > 20 && lost > 0);
    }
    free(r);
}

/* A steady load fills four machines. One more job comes and goes every few minutes for a day. */
static void demand_around_a_boundary_does_not_cause_flapping(void **state)
{
    (void)state;
    for (int64_t period = 2; period <= 12; period += 2) {
        struct replay_offer o = offer(MARKET_SPOT, "z1", NULL);
        struct replay_job jobs[4 + 24 * 30];
        size_t n = 0;
        for (; n < 4; n++)
            jobs[n] = job(0, 4, 25 * HOUR);
        for (int64_t at = 10 * MINUTE; at < 24 * HOUR; at += period * MINUTE)
            jobs[n++] = job(at, 4, period * MINUTE / 2);
        struct replay_result r = replay(&o, 1, jobs, n, 30 * HOUR);
        /* one surplus machine at a time: it boots for a minute and lives at least for the
         * cooldown */
        int64_t bound = HOUR / (burst.cooldown_ms + MINUTE) + 1;
        print_message("every %2d minutes: %d launches in a day, at most %d in an hour (bound %d)\n",
            (int)period, (int)r.launches, (int)r.launches_in_hour, (int)bound);
        assert_int_equal(r.finished, n);
        assert_true(r.launches_in_hour - (r.launches_in_hour > 4 ? 4 : 0) <= bound);
        if (period * MINUTE / 2 <= burst.idle_timeout_ms)
            assert_true(r.launches <= 4 + 24); /* the machine stays warm */
    }
}

static void in_a_drought_jobs_run_on_demand_and_return_to_spot(void **state)
{
    (void)state;
    int32_t counts[48];
    struct trace t = drought(4, 2, counts, 48);
    struct replay_offer offers[] = {
        offer(MARKET_SPOT, "z1", &t), offer(MARKET_ON_DEMAND, "z1", NULL)};
    struct replay_job jobs[6];
    for (int k = 0; k < 6; k++)
        jobs[k] = job(0, 4, 12 * HOUR);
    struct replay_result r = replay(offers, 2, jobs, 6, 48 * HOUR);
    int64_t least = 6 * core_cost_uusd(2 * HOUR, ON_DEMAND_UUSD_H);
    assert_int_equal(r.finished, 6);
    assert_int_equal(r.moves, 6);
    assert_int_equal(r.ms[LEDGER_LOST], 0);
    print_message("drought of 2 h for 6 machines: on-demand %.2f of at least %.2f, launches %d\n",
        (double)r.uusd[MARKET_ON_DEMAND] / 1e6, (double)least / 1e6, (int)r.launches);
    assert_true(r.uusd[MARKET_ON_DEMAND] >= least * 9 / 10);
    /* at most the longest avoidance, plus the return */
    assert_true(r.uusd[MARKET_ON_DEMAND] <= least * 13 / 10);
    assert_true(r.end_ms <= 13 * HOUR);
}

static void without_a_fallback_jobs_wait_for_the_end_of_a_drought(void **state)
{
    (void)state;
    int32_t counts[48];
    struct trace t = drought(4, 2, counts, 48);
    struct replay_offer o = offer(MARKET_SPOT, "z1", &t);
    struct replay_job j = job(0, 4, 12 * HOUR);
    struct replay_result r = replay(&o, 1, &j, 1, 48 * HOUR);
    assert_int_equal(r.finished, 1);
    assert_true(r.end_ms >= 14 * HOUR && r.end_ms <= 15 * HOUR);
}

static void the_same_input_gives_the_same_result(void **state)
{
    (void)state;
    int32_t counts[] = {3, 1, 2, 0, 3};
    struct trace t = {.gap_ms = 7 * MINUTE, .n = 5, .counts = counts};
    struct replay_offer offers[] = {
        offer(MARKET_SPOT, "z1", &t), offer(MARKET_ON_DEMAND, "z1", NULL)};
    struct replay_job jobs[40];
    for (int k = 0; k < 40; k++)
        jobs[k] = job(k * 3 * MINUTE, 1 + k % 4, (5 + k) * MINUTE);
    struct replay_result a = replay(offers, 2, jobs, 40, 48 * HOUR),
                         b = replay(offers, 2, jobs, 40, 48 * HOUR);
    assert_int_equal(a.finished, 40);
    assert_memory_equal(&a, &b, sizeof a);
}

/* A job on two nodes; the zone of one node goes down for a while, with a notice and without. */
static void a_gang_that_loses_a_node_resumes_from_its_last_checkpoint(void **state)
{
    (void)state;
    int32_t up[] = {2, 1, 2};
    struct trace t = {.gap_ms = HOUR, .n = 3, .counts = up};
    for (int64_t notice_ms = 0; notice_ms <= 2 * MINUTE; notice_ms += 2 * MINUTE) {
        struct replay_offer o = offer(MARKET_SPOT, "z1", &t);
        struct replay_job j = job(0, 4, 2 * HOUR);
        struct replay_outcome out;
        struct replay_pool pool = {0};
        struct series series = {0};
        struct replay_result r;
        struct err e;
        o.notice_ms = notice_ms;
        j.nodes = 2;
        struct replay_options options = {.pools = &burst,
            .n_pools = 1,
            .offers = &o,
            .n_offers = 1,
            .jobs = &j,
            .n_jobs = 1,
            .boot_ms = MINUTE,
            .restore_ms = 5000,
            .until_ms = 48 * HOUR,
            .outcomes = &out,
            .by_pool = &pool,
            .series = &series};
        if (replay_run(&options, &r, &e) != 0)
            fail_msg("%s", e.text);
        assert_int_equal(r.finished, 1);
        assert_int_equal(out.started_ms, MINUTE + 2000);
        assert_int_equal(out.ended_ms, r.end_ms);
        assert_true(out.reclaims >= 1 && out.attempts == out.reclaims + 1);
        if (notice_ms > 0)
            assert_int_equal(out.lost_ms, 0);
        else
            assert_true(out.lost_ms > 0);
        /* the costs of all kinds of time add up to the total, and so do the costs over time */
        int64_t spent = 0;
        double over_time = 0;
        for (int k = 0; k < LEDGER_KINDS; k++)
            spent += pool.spent[k];
        for (size_t i = 0; i < series.n; i++)
            over_time += series.uusd[i];
        assert_int_equal(spent, r.uusd[MARKET_SPOT]);
        assert_int_equal(spent, pool.uusd);
        assert_true(over_time > (double)spent - 1 && over_time < (double)spent + 1);
        assert_int_equal(pool.launches, r.launches);
        assert_true(
            pool.used_ms[0] >= 2.0 * 4 * 2 * (double)HOUR && pool.used_ms[0] < pool.have_ms[0]);
    }
}

/* The cheaper zone has no capacity. If the provider may choose, it launches in the other zone, at
 * that zone's price. */
static void a_fleet_launches_where_there_is_capacity(void **state)
{
    (void)state;
    int32_t none[] = {0};
    struct trace down = {.gap_ms = HOUR, .n = 1, .counts = none};
    struct pool_row pool = burst;
    struct replay_offer offers[] = {
        offer(MARKET_SPOT, "z1", &down), offer(MARKET_SPOT, "z2", NULL)};
    struct replay_job j = job(0, 4, HOUR);
    struct replay_options o = {.pools = &pool,
        .n_pools = 1,
        .offers = offers,
        .n_offers = 2,
        .jobs = &j,
        .n_jobs = 1,
        .boot_ms = MINUTE,
        .until_ms = 24 * HOUR};
    struct replay_result r;
    struct err e;
    offers[1].row.price_uusd_h = SPOT_UUSD_H + 1000;
    for (int fleet = 0; fleet <= 1; fleet++) {
        pool.fleet = fleet;
        if (replay_run(&o, &r, &e) != 0)
            fail_msg("%s", e.text);
        assert_int_equal(r.finished, 1);
        assert_int_equal(r.refusals, fleet ? 0 : 1);
        assert_int_equal(r.launches, fleet ? 1 : 2);
        assert_int_equal(
            r.uusd[MARKET_SPOT], core_cost_uusd(r.end_ms - 2000 * r.launches, SPOT_UUSD_H + 1000));
    }
}

static void options_that_the_core_refuses_are_an_error(void **state)
{
    (void)state;
    struct replay_offer o = offer(MARKET_SPOT, "z1", NULL);
    struct replay_options none = {.offers = &o, .n_offers = 1, .until_ms = HOUR};
    struct replay_result r;
    struct err e;
    assert_int_equal(replay_run(&none, &r, &e), ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undisturbed_job_costs_boot_run_and_saves),
        cmocka_unit_test(boots_vary_by_their_median_and_95th_percentile),
        cmocka_unit_test(a_reclaim_with_notice_loses_nothing_and_one_without_at_most_the_interval),
        cmocka_unit_test(no_reclaim_costs_more_than_its_bound),
        cmocka_unit_test(demand_around_a_boundary_does_not_cause_flapping),
        cmocka_unit_test(in_a_drought_jobs_run_on_demand_and_return_to_spot),
        cmocka_unit_test(without_a_fallback_jobs_wait_for_the_end_of_a_drought),
        cmocka_unit_test(the_same_input_gives_the_same_result),
        cmocka_unit_test(a_gang_that_loses_a_node_resumes_from_its_last_checkpoint),
        cmocka_unit_test(a_fleet_launches_where_there_is_capacity),
        cmocka_unit_test(options_that_the_core_refuses_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
