/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs with --finish-by through the whole core: with any wrong declaration or wrongly learned
 * market, a job is not late if on-demand could meet the deadline. Prints the cost, next to those of
 * Uniform Progress and of on-demand only.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/minmax.h"
#include "base/prng.h"
#include "base/str.h"
#include "replay/replay.h"
#include <stdio.h>

#define MINUTE ((int64_t)60000)
#define HOUR (60 * MINUTE)
#define TICKS 288 /* of ten minutes */
#define ZONES 2
#define STARTS 3
#define SPOT_UUSD_H 300000
#define SURE_UUSD_H 1000000
#define WORK (4 * HOUR)
#define WITHIN (11 * HOUR)

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
    .by_price = true,
};

struct recorded {
    int32_t counts[ZONES][TICKS];
    int64_t prices[TICKS];
    struct trace traces[ZONES];
};

struct wrong {
    const char *what;
    double declared; /* declared work, relative to the actual work */
    int64_t boot_ms, notice_ms;
    /* After two hours the price of spot triples, or spot ends for good; or spot alternates between
     * ten minutes of availability and an hour without. */
    bool triples, ends, interruptions;
};

static void make_market(const struct wrong *x, struct recorded *m)
{
    struct prng prng;
    prng_init(&prng, 11);
    for (size_t z = 0; z < ZONES; z++) {
        bool up = z == 0;
        for (size_t i = 0; i < TICKS; i++) {
            up = prng_chance(&prng, up ? 0.08 : 0.12) ? !up : up;
            bool is_up = x->interruptions ? (i + 3 * z) % 7 == 0 : up;
            m->counts[z][i] = x->ends && i >= 12 ? 0 : is_up;
            m->prices[i] = x->triples && i >= 12 ? 3 * SPOT_UUSD_H : SPOT_UUSD_H;
        }
        m->traces[z] = (struct trace){
            .gap_ms = 10 * MINUTE, .n = TICKS, .counts = m->counts[z], .prices_uusd_h = m->prices};
    }
}

static struct offer_row offer(enum market market)
{
    bool is_spot = market == MARKET_SPOT;
    return (struct offer_row){.pool = "burst",
        .type = "m5",
        .market = market,
        .rank = !is_spot,
        .total = {.cpus = 4, .memory_mib = 16384},
        .price_uusd_h = is_spot ? SPOT_UUSD_H : SURE_UUSD_H,
        .on_demand_uusd_h = SURE_UUSD_H};
}

/* Returns the cost; fails if the job is late. */
static int64_t play(const struct wrong *x, struct recorded *m, enum deadline_rule rule, int start)
{
    static const char *const zones[ZONES + 1] = {"z1", "z2", "z1"};
    struct replay_offer offers[ZONES + 1];
    struct procurement_options procurement = procurement_usual;
    struct replay_result r;
    struct replay_outcome out;
    struct err e;
    procurement.rule = rule;
    for (size_t i = 0; i <= ZONES; i++) {
        bool is_spot = i < ZONES;
        offers[i] = (struct replay_offer){.row = offer(is_spot ? MARKET_SPOT : MARKET_ON_DEMAND),
            .trace = is_spot ? &m->traces[i] : NULL,
            .trace_from_ms = x->ends || x->triples ? start * 5 * MINUTE : start * 9 * HOUR,
            .prices_too = is_spot,
            .notice_ms = x->notice_ms};
        STR_COPY(offers[i].row.zone, zones[i]);
    }
    struct replay_job job = {.need = {.cpus = 4, .memory_mib = 1024},
        .work_ms = WORK,
        .declared_ms = (int64_t)(x->declared * WORK),
        .save_ms = 5000,
        .ckpt_bytes = 1 << 20,
        .finish_ms = WITHIN};
    struct replay_options o = {.pools = &burst,
        .n_pools = 1,
        .offers = offers,
        .n_offers = ZONES + 1,
        .jobs = &job,
        .n_jobs = 1,
        .limits.procurement = &procurement,
        .boot_ms = x->boot_ms,
        .restore_ms = 30000,
        .until_ms = 3 * 24 * HOUR,
        .runs_out = true,
        .seed = 1,
        .outcomes = &out};
    if (replay_run(&o, &r, &e) != 0)
        fail_msg("%s", e.text);
    if (r.finished != 1 || out.ended_ms > WITHIN)
        fail_msg("%s, rule %d, start %d: done after %lld minutes of %lld", x->what, (int)rule,
            start, (long long)(out.ended_ms / MINUTE), (long long)(WITHIN / MINUTE));
    return r.uusd[MARKET_SPOT] + r.uusd[MARKET_ON_DEMAND];
}

static void wrong_inputs_do_not_make_a_job_late(void **state)
{
    static const struct wrong all[] = {
        {"all as declared", 1, 2 * MINUTE, 2 * MINUTE, false, false, false},
        {"half of the work declared", 0.5, 2 * MINUTE, 2 * MINUTE, false, false, false},
        {"twice the work declared", 2, 2 * MINUTE, 2 * MINUTE, false, false, false},
        {"boots take three times as long", 1, 270000, 2 * MINUTE, false, false, false},
        {"prices triple", 1, 2 * MINUTE, 2 * MINUTE, true, false, false},
        {"spot is gone for good", 1, 2 * MINUTE, 2 * MINUTE, false, true, false},
        {"spot as it was never seen", 1, 2 * MINUTE, 2 * MINUTE, false, false, true},
        {"no notice", 1, 2 * MINUTE, 0, false, false, false}};
    /* the first is belayd's rule, under belayd's cap unless another is given */
    enum { PLANNED, STICKY, UNIFORM, ON_DEMAND, RULES };
    static const enum deadline_rule rules[RULES] = {
        DEADLINE_PLANNED, DEADLINE_UNIFORM_STICKY, DEADLINE_UNIFORM, DEADLINE_ON_DEMAND};
    (void)state;
    printf("%-32s %10s %10s %10s %10s  dollars, mean of %d\n", "", "planned", "sticky", "uniform",
        "on-demand", STARTS);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct recorded m;
        int64_t uusd[RULES] = {0};
        make_market(&all[i], &m);
        for (int start = 0; start < STARTS; start++)
            for (size_t k = 0; k < RULES; k++)
                uusd[k] += play(&all[i], &m, rules[k], start);
        printf("%-32s", all[i].what);
        for (size_t k = 0; k < RULES; k++)
            printf(" %10.2f", (double)uusd[k] / STARTS / 1e6);
        printf("\n");
        assert_true(uusd[PLANNED] <= uusd[ON_DEMAND] + uusd[ON_DEMAND] / 20);
    }
}

#define LONG_WORK (48 * HOUR)
#define LONG_WITHIN (52 * HOUR)
#define LONG_TICKS 360 /* of ten minutes */

static int64_t play_paused(
    const struct trace *trace, enum deadline_rule rule, struct replay_outcome *ret_outcome)
{
    struct procurement_options procurement = procurement_usual;
    struct replay_offer offers[2];
    struct replay_result r;
    struct err e;
    procurement.rule = rule;
    offers[0] =
        (struct replay_offer){.row = offer(MARKET_SPOT), .trace = trace, .notice_ms = 2 * MINUTE};
    offers[1] = (struct replay_offer){.row = offer(MARKET_ON_DEMAND)};
    STR_COPY(offers[0].row.zone, "z1");
    STR_COPY(offers[1].row.zone, "z1");
    struct replay_job job = {.need = {.cpus = 4, .memory_mib = 1024},
        .work_ms = LONG_WORK,
        .time_limit_ms = LONG_WORK,
        .save_ms = 2 * MINUTE,
        .ckpt_bytes = 1 << 20,
        .finish_ms = LONG_WITHIN};
    struct replay_options o = {.pools = &burst,
        .n_pools = 1,
        .offers = offers,
        .n_offers = 2,
        .jobs = &job,
        .n_jobs = 1,
        .limits.procurement = &procurement,
        .boot_ms = 2 * MINUTE,
        .restore_ms = 30000,
        .until_ms = 5 * 24 * HOUR,
        .runs_out = true,
        .seed = 1,
        .outcomes = ret_outcome};
    if (replay_run(&o, &r, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(r.finished, 1);
    return r.uusd[MARKET_SPOT] + r.uusd[MARKET_ON_DEMAND];
}

/* 48 hours of work, which is also the job's time limit, within 52; saves of two minutes take more
 * than three hours in all. On-demand needs 51 hours and a quarter. */
static void pauses_of_saves_do_not_make_a_job_late(void **state)
{
    enum { JOBS = 12 };
    /* chances that spot ends, and that it comes back, within ten minutes */
    static const struct {
        const char *what;
        double ends, returns;
    } markets[] = {{"flapping", 0.3, 0.6}, {"calm", 0.01, 0.03}};
    (void)state;
    for (size_t m = 0; m < sizeof markets / sizeof markets[0]; m++) {
        int64_t uusd = 0, sure_uusd = 0, late = 0, late_ms = 0;
        for (int i = 0; i < JOBS; i++) {
            static int32_t counts[LONG_TICKS];
            const struct trace trace = {.gap_ms = 10 * MINUTE, .n = LONG_TICKS, .counts = counts};
            struct replay_outcome out;
            struct prng prng;
            bool up = i % 2 == 0;
            prng_init(&prng, 100 + (uint64_t)i);
            for (size_t k = 0; k < LONG_TICKS; k++) {
                up = prng_chance(&prng, up ? markets[m].ends : markets[m].returns) ? !up : up;
                counts[k] = up;
            }
            sure_uusd += play_paused(&trace, DEADLINE_ON_DEMAND, &out);
            assert_true(out.ended_ms <= LONG_WITHIN);
            uusd += play_paused(&trace, DEADLINE_PLANNED, &out);
            late += out.ended_ms > LONG_WITHIN;
            late_ms = max_i64(late_ms, out.ended_ms - LONG_WITHIN);
        }
        printf("pauses of saves, %s: %d of %d jobs late, by up to %d minutes; %.3f of on-demand\n",
            markets[m].what, (int)late, JOBS, (int)(late_ms / MINUTE),
            (double)uusd / (double)sure_uusd);
        assert_int_equal(late, 0);
        assert_true(uusd < sure_uusd);
    }
}

#define OBSERVED_TICKS (20 * 144) /* of ten minutes */

static int64_t play_observed(const struct trace *observed)
{
    /* ten minutes of every hour */
    static int32_t counts[TICKS];
    const struct trace trace = {.gap_ms = 10 * MINUTE, .n = TICKS, .counts = counts};
    struct replay_outcome out;
    struct replay_offer offers[2] = {
        {.row = offer(MARKET_SPOT), .trace = &trace, .observed = observed, .notice_ms = 2 * MINUTE},
        {.row = offer(MARKET_ON_DEMAND)}};
    struct replay_job job = {.need = {.cpus = 4, .memory_mib = 1024},
        .work_ms = WORK,
        .time_limit_ms = WORK,
        .save_ms = 5000,
        .ckpt_bytes = 1 << 20,
        .finish_ms = WITHIN};
    struct replay_options o = {.pools = &burst,
        .n_pools = 1,
        .offers = offers,
        .n_offers = 2,
        .jobs = &job,
        .n_jobs = 1,
        .boot_ms = 2 * MINUTE,
        .restore_ms = 30000,
        .until_ms = 3 * 24 * HOUR,
        .runs_out = true,
        .seed = 1,
        .outcomes = &out};
    struct replay_result r;
    struct err e;
    for (size_t i = 0; i < TICKS; i++)
        counts[i] = i % 6 == 0;
    STR_COPY(offers[0].row.zone, "z1");
    STR_COPY(offers[1].row.zone, "z1");
    if (replay_run(&o, &r, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(r.finished, 1);
    assert_true(out.ended_ms <= WITHIN);
    return r.uusd[MARKET_SPOT] + r.uusd[MARKET_ON_DEMAND];
}

/* Starts that do not pay back are not tried when it is known that spot stays for ten minutes only.
 */
static void what_was_observed_before_the_first_job_is_learned(void **state)
{
    static int32_t lasting[OBSERVED_TICKS], rare[OBSERVED_TICKS];
    const struct trace good = {.gap_ms = 10 * MINUTE, .n = OBSERVED_TICKS, .counts = lasting},
                       bad = {.gap_ms = 10 * MINUTE, .n = OBSERVED_TICKS, .counts = rare};
    (void)state;
    for (size_t i = 0; i < OBSERVED_TICKS; i++) {
        lasting[i] = i % 150 >= 6;
        rare[i] = i % 31 == 0;
    }
    const int64_t good_uusd = play_observed(&good), bad_uusd = play_observed(&bad),
                  none_uusd = play_observed(NULL);
    printf("observed before: lasting spot %.2f dollars, rare spot %.2f, nothing %.2f\n",
        (double)good_uusd / 1e6, (double)bad_uusd / 1e6, (double)none_uusd / 1e6);
    assert_true(bad_uusd < none_uusd - none_uusd / 20);
    assert_true(bad_uusd < good_uusd - good_uusd / 20);
    assert_int_equal(play_observed(&bad), bad_uusd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_inputs_do_not_make_a_job_late),
        cmocka_unit_test(what_was_observed_before_the_first_job_is_learned),
        cmocka_unit_test(pauses_of_saves_do_not_make_a_job_late)};
    return cmocka_run_group_tests_name("paced", tests, NULL, NULL);
}
