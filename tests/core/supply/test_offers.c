/* SPDX-License-Identifier: Apache-2.0
 *
 * Effective prices of machines, and their limits.
 */
#include "tests/core/lab.h"

#include "base/str.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/core/lifecycle/save_interval.h"
#include "scheduler/core/supply/offers.h"
#include <stdlib.h>
#include <string.h>

#define HOUR 3600000

static int64_t offer(
    struct lab *l, const char *zone, enum market market, int32_t rank, int32_t cpus, int64_t uusd_h)
{
    struct offer_row r = {.pool = "burst",
        .type = "m5",
        .market = market,
        .rank = rank,
        .total = {.cpus = cpus, .memory_mib = cpus * 4096},
        .price_uusd_h = uusd_h,
        .on_demand_uusd_h = LAB_ON_DEMAND_UUSD_H};
    STR_COPY(r.zone, zone);
    return lab_apply(l, (struct event){.type = EV_OFFER, .offer = &r});
}

/* Sets the offer's counts as if observed. */
static void set_counts(struct lab *l, int64_t id, int64_t reclaims, int64_t up_ms)
{
    struct offer *o = model_offer(l->m, id);
    o->row.reclaims = reclaims;
    o->row.up_ms = up_ms;
}

static void an_offer_that_is_reclaimed_often_costs_what_it_loses(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t calm = offer(&l, "z2", MARKET_SPOT, 0, 4, 1030000);
    set_counts(&l, 1, 200, 100 * HOUR); /* two per hour */
    set_counts(&l, calm, 0, 100 * HOUR);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 0);
    assert_int_equal(lab_launches(&l, calm), 1);
    struct job_row j = {.save_ms = 60000};
    struct offer *o = model_offer(l.m, 1);
    /* (200 + 1) / (100 + 20) per hour; each costs 90 s of boot and a minute each of save and
     * restore. */
    double expected = 1000000 * (1 + 201.0 / 120 * (90 + 120) / 3600);
    assert_true(llabs(offer_effective_uusd_h(o, &j) - (int64_t)expected) <= 1);
    o->row.market = MARKET_ON_DEMAND;
    assert_int_equal(offer_effective_uusd_h(o, &j), 1000000); /* never reclaimed */
    o->row.market = MARKET_SPOT;
    lab_deinit(&l);
}

static void score(struct lab *l, const char *zone, int32_t value)
{
    struct event ev = {.type = EV_SCORE, .score = {.pool = "burst", .type = "m5", .score = value}};
    STR_COPY(ev.score.zone, zone);
    lab_apply(l, ev);
}

static void a_score_is_worth_five_percent_at_most(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    struct offer *o = model_offer(l.m, 1);
    assert_int_equal(offer_hinted_uusd_h(o, 1000000), 1000000);
    int64_t before = INT64_MAX;
    for (int32_t k = 1; k <= OFFER_SCORE_MAX; k++) {
        score(&l, "z1", k);
        assert_int_equal(o->score, k);
        assert_true(offer_hinted_uusd_h(o, 1000000) < before);
        before = offer_hinted_uusd_h(o, 1000000);
    }
    assert_int_equal(before, 975000);
    score(&l, "z1", 1);
    assert_int_equal(offer_hinted_uusd_h(o, 1000000), 1025000);
    assert_int_equal(offer_hinted_uusd_h(o, 1000000000000000), 1025000000000000);
    assert_int_equal(
        core_offer_effective_uusd_h(o), offer_effective_uusd_h(o, &(struct job_row){0}));
    o->pool->row.by_price = true;
    assert_int_equal(offer_hinted_uusd_h(o, 1000000), 1000000);
    o->pool->row.by_price = false;
    score(&l, "z1", OFFER_SCORE_NONE);
    assert_int_equal(offer_hinted_uusd_h(o, 1000000), 1000000);
    lab_deinit(&l);
}

/* The second zone costs 1 % more, a third 10 %. */
static void scores_decide_between_offers_that_cost_nearly_the_same(void **state)
{
    (void)state;
    static const struct {
        int32_t first, second, third;
        bool by_price;
        int expected;
    } cases[] = {
        {0, 0, 0, false, 0},
        {5, 5, 5, false, 0},
        /* without a score: the middle */
        {3, 9, 0, false, 1},
        {0, 10, 0, false, 1},
        {1, 0, 0, false, 1},
        /* 0.6 % do not outweigh 1 % */
        {9, 10, 0, false, 0},
        {1, 1, 10, false, 0}, /* nor 5 % outweigh 10 % */
        {1, 10, 0, true, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 10, "m5", 4);
        int64_t ids[] = {1, offer(&l, "z2", MARKET_SPOT, 0, 4, 1010000),
            offer(&l, "z3", MARKET_SPOT, 0, 4, 1100000)};
        struct pool_row p = lab_pool(&l, "burst");
        p.by_price = cases[k].by_price;
        lab_set_pool(&l, p);
        score(&l, "z1", cases[k].first);
        score(&l, "z2", cases[k].second);
        score(&l, "z3", cases[k].third);
        lab_submit_cpus(&l, 4);
        lab_plan(&l);
        for (int i = 0; i < 3; i++)
            assert_int_equal(lab_launches(&l, ids[i]), i == cases[k].expected);
        lab_deinit(&l);
    }
}

/* Scores apply to spot offers only, and to existing ones; the market's rank has precedence. */
static void scores_of_what_is_not_there_change_nothing(void **state)
{
    (void)state;
    struct lab l;
    struct outcome outcome;
    struct err e;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    score(&l, "z9", 10);
    lab_apply(&l, (struct event){.type = EV_SCORE, .score = {"nowhere", "z1", "m5", 10}});
    assert_int_equal(model_offer(l.m, 1)->score, OFFER_SCORE_NONE);
    score(&l, "z1", 1);
    assert_int_equal(model_offer(l.m, 1)->score, 1);
    assert_int_equal(model_offer(l.m, 2)->row.market, MARKET_ON_DEMAND);
    assert_int_equal(model_offer(l.m, 2)->score, OFFER_SCORE_NONE);
    for (int32_t wrong = -1; wrong <= 11; wrong += 12) {
        struct event bad = {.type = EV_SCORE, .now = l.now, .score = {"burst", "z1", "m5", wrong}};
        assert_int_equal(core_apply(l.m, &bad, &outcome, &e), ERR_INVALID);
    }
    assert_int_equal(model_offer(l.m, 1)->score, 1);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 1);
    lab_deinit(&l);
}

static void data_that_lies_elsewhere_is_paid_for(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.egress_uusd_gib = 90000;
    lab_set_pool(&l, p);
    struct job_row j = {.ckpt_bytes = 2LL << 30};
    struct offer *o = model_offer(l.m, 2);
    assert_int_equal(offer_effective_uusd_h(o, &j), LAB_ON_DEMAND_UUSD_H);
    j.last_good.attempt = 1;
    assert_int_equal(offer_effective_uusd_h(o, &j), LAB_ON_DEMAND_UUSD_H + 2 * 90000);
    lab_deinit(&l);
}

static int64_t submit_input(struct lab *l, const char *input, int64_t limit_ms)
{
    struct job_row r = lab_job(4);
    r.spec.time_limit_ms = limit_ms;
    return lab_submit_asking(l, &r, input);
}

/* Pool near, with offers 1, spot at $1, and 2; and far, with 4 cpus per machine, with offers 3 and
 * 4. */
static void near_and_far(struct lab *l, int32_t near_cpus)
{
    lab_init(l);
    lab_elastic(l, "near", 10, "m5", near_cpus);
    lab_elastic(l, "far", 10, "n2", 4);
    struct pool_row near = lab_pool(l, "near"), far = lab_pool(l, "far");
    STR_COPY(near.provider, "aws");
    STR_COPY(near.region, "us-east-1");
    STR_COPY(far.provider, "gcp");
    STR_COPY(far.region, "us-central1");
    far.egress_uusd_gib = 90000;
    lab_set_pool(l, near);
    lab_set_pool(l, far);
}

/* A cheaper far offer loses if the transfer costs more; it wins with near data, or little data. */
static void what_its_input_costs_is_part_of_an_offers_price(void **state)
{
    (void)state;
    static const struct {
        const char *input;
        int64_t limit_ms;
        bool far_wins;
    } cases[] = {
        {"", 0, true},
        /* data at the far one: 140 GiB at $0.12 to the other */
        {"input=gcp/us-central1:150323855360", 10 * 3600000, true},
        /* $12.60, and repeated reads after reclaims, over ten hours, to save $0.20 per hour */
        {"input=aws/us-east-1:150323855360", 10 * 3600000, false},
        /* repeated reads after reclaims alone outweigh it */
        {"input=aws/us-east-1:150323855360", 400 * 3600000, false},
        {"input=aws/us-east-1:1073741824", 10 * 3600000, true}, /* 9 cents */
        /* the pools' prices for the store */
        {"input=store:150323855360", 10 * 3600000, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct lab l;
        near_and_far(&l, 4);
        lab_apply(&l, (struct event){.type = EV_PRICE,
                          .price = {.region = "us-central1",
                              .zone = "z1",
                              .type = "n2",
                              .market = MARKET_SPOT,
                              .uusd_h = 800000}});
        submit_input(&l, cases[i].input, cases[i].limit_ms);
        lab_plan(&l);
        if (lab_launches(&l, 3) != cases[i].far_wins || lab_launches(&l, 1) != !cases[i].far_wins)
            fail_msg("%s: near %lld, far %lld", cases[i].input, (long long)lab_launches(&l, 1),
                (long long)lab_launches(&l, 3));
        lab_deinit(&l);
    }
}

/* This many idle nodes of each pool: far ones with less free, so that jobs without input use them
 * first. */
static void idle_nodes(struct lab *l, int n)
{
    int64_t jobs = 0;
    near_and_far(l, 8);
    for (int k = 0; k < n; k++) {
        jobs = lab_submit_pool(l, 8, "near", WISH_ANY);
        jobs = lab_submit_pool(l, 4, "far", WISH_ANY);
    }
    lab_plan(l);
    for (int64_t i = 1; i <= jobs; i++)
        lab_bring_up(l, i, str_eq(model_instance(l->m, i)->row.pool, "near") ? 8 : 4);
    lab_plan(l);
    for (int64_t i = 1; i <= jobs; i++) {
        lab_started(l, i);
        lab_ended(l, i, END_SUCCEEDED, 0);
    }
}

static const char *pool_of(const struct lab *l, int64_t job)
{
    int64_t node = lab_node_of(l, job);
    return node == CORE_ID_NONE ? "none" : model_node(l->m, node)->pool->row.name;
}

/* Of existing nodes, those with the lowest cost of reading come first, also for a gang. */
static void jobs_with_input_prefer_free_nodes_near_it(void **state)
{
    (void)state;
    static const struct {
        const char *input, *alone, *gang;
    } cases[] = {
        {"", "far", "near"}, /* the tightest; the first pool */
        {"input=aws/us-east-1:150323855360", "near", "near"},
        {"input=gcp/us-central1:150323855360", "far", "far"},
        {"input=aws/us-west-2:150323855360", "near", "near"}, /* to another region, or out */
        {"input=store:150323855360", "near", "near"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int nodes = 1; nodes <= 2; nodes++) {
            struct lab l;
            idle_nodes(&l, 2);
            struct job_row r = lab_job(2);
            r.spec.nodes = nodes;
            int64_t job = lab_submit_asking(&l, &r, cases[i].input);
            lab_plan(&l);
            assert_string_equal(pool_of(&l, job), nodes == 1 ? cases[i].alone : cases[i].gang);
            lab_deinit(&l);
        }
    }
}

/* Jobs start when they can: none waits for a nearer machine, or prefers a rented node to an owned
 * one. */
static void a_far_node_is_better_than_none(void **state)
{
    (void)state;
    struct lab l;
    idle_nodes(&l, 1);
    struct job_row r = lab_job(4);
    int64_t first = lab_submit_asking(&l, &r, "input=aws/us-east-1:150323855360"),
            second = lab_submit_asking(&l, &r, "input=aws/us-east-1:150323855360");
    int64_t third = lab_submit_asking(&l, &r, "input=aws/us-east-1:150323855360");
    lab_plan(&l);
    assert_string_equal(pool_of(&l, first), "near");
    assert_string_equal(pool_of(&l, second), "near");
    assert_string_equal(pool_of(&l, third), "far");
    struct pool_row base = lab_pool(&l, "base");
    base.egress_uusd_gib = 90000;
    lab_set_pool(&l, base);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_join(&l, "rack1", 4);
    int64_t owned = lab_submit_asking(&l, &r, "input=store:1073741824");
    lab_plan(&l);
    assert_string_equal(pool_of(&l, owned), "base");
    lab_deinit(&l);
}

static void boots_are_learned(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_launched(&l, 1);
    lab_wait(&l, 30000);
    lab_join_instance(&l, 1, 4);
    assert_int_equal(offer_boot_ms(model_offer(l.m, 1)), (90000 + 30000) / 2);
    lab_deinit(&l);
}

static void see_boot(struct offer *o, int64_t took_ms)
{
    o->row.boots++;
    o->row.boot_ms += took_ms;
    o->row.boot_ms2 += took_ms * took_ms;
}

/* Alike boots bring the worst one down to the usual one, however long they take. One that takes
 * long is remembered. */
static void the_worst_boot_follows_the_spread_of_boots(void **state)
{
    (void)state;
    struct pool pool = {.row = {.boot_timeout_ms = 600000}};
    struct offer o = {.pool = &pool};
    assert_int_equal(offer_boot_worst_ms(&o), 3 * 90000);
    int64_t before_ms = offer_boot_worst_ms(&o);
    see_boot(&o, 120000);
    /* a boot that takes a third longer than assumed hardly raises it */
    assert_in_range(offer_boot_worst_ms(&o), 120000, before_ms * 11 / 10);
    for (int i = 0; i < 200; i++)
        see_boot(&o, 120000);
    assert_in_range(offer_boot_worst_ms(&o), 120000, 150000);
    for (int i = 0; i < 10; i++)
        see_boot(&o, 400000);
    assert_in_range(offer_boot_worst_ms(&o), 300000, 400000);
}

/* Three zones at nearly one price: with a premium for sharing an offer, ten machines are spread
 * over all of them. */
static void machines_are_spread_as_far_as_the_premium_goes(void **state)
{
    (void)state;
    for (int spread = 0; spread <= 10; spread += 10) {
        struct lab l;
        lab_init(&l);
        lab_elastic(&l, "burst", 20, "m5", 4);
        int64_t second = offer(&l, "z2", MARKET_SPOT, 0, 4, 1010000),
                third = offer(&l, "z3", MARKET_SPOT, 0, 4, 1020000);
        int64_t dear = offer(&l, "z4", MARKET_SPOT, 0, 4, 1200000);
        struct pool_row p = lab_pool(&l, "burst");
        p.spread_pct = spread;
        lab_set_pool(&l, p);
        for (int k = 0; k < 10; k++)
            lab_submit_cpus(&l, 4);
        lab_plan(&l);
        assert_int_equal(
            lab_launches(&l, 1) + lab_launches(&l, second) + lab_launches(&l, third), 10);
        assert_int_equal(lab_launches(&l, dear), 0);
        if (spread == 0)
            assert_int_equal(lab_launches(&l, 1), 10);
        else
            assert_true(lab_launches(&l, 1) <= 5 && lab_launches(&l, second) >= 2 &&
                        lab_launches(&l, third) >= 2);
        lab_deinit(&l);
    }
}

static void no_pool_exceeds_its_limits(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.max_uusd_h = 3500000; /* three and a half spot machines */
    lab_set_pool(&l, p);
    for (int k = 0; k < 8; k++)
        lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, 1), 3);
    assert_int_equal(lab_launches(&l, 2), 0);
    struct reason r[EXPLAIN_REASONS_MAX];
    size_t n = core_explain(l.m, l.now, 1, r, EXPLAIN_REASONS_MAX);
    bool has_limit = false;
    for (size_t k = 0; k < n; k++)
        has_limit = has_limit || strcmp(r[k].code, "limit") == 0;
    assert_true(has_limit);
    struct event ev = {.type = EV_LAUNCH, .launch.offer = 1};
    assert_int_equal(lab_try(&l, &ev, NULL), ERR_CONFLICT);
    lab_apply(
        &l, (struct event){.type = EV_PRICE, .price = {"r1", "z1", "m5", MARKET_SPOT, 500000}});
    lab_plan(&l); /* running machines are cheaper too: there is capacity for four more */
    assert_int_equal(lab_launches(&l, 1), 7);
    lab_deinit(&l);
}

static void all_pools_together_have_a_limit(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    model_destroy(l.m);
    l.m = model_create(&(struct model_options){.cluster_uid = "0123456789abcdef",
        .lease_ms = LAB_LEASE_MS,
        .max_nodes = 5,
        .max_gpus = 6});
    lab_elastic(&l, "one", 4, "m5", 4);
    lab_elastic(&l, "two", 4, "m5", 4);
    for (int k = 0; k < 9; k++)
        lab_submit_cpus(&l, 4);
    lab_plan(&l);
    assert_int_equal(model_pool(l.m, "one")->n_nodes + model_pool(l.m, "two")->n_nodes, 5);
    assert_int_equal(model_used(l.m).nodes, 5);
    struct event bad = {.type = EV_LIMITS, .limits = {.max_gpus = -1}};
    assert_int_equal(lab_try(&l, &bad, NULL), ERR_INVALID);
    lab_apply(&l, (struct event){.type = EV_LIMITS, .limits = {.max_nodes = 7}});
    lab_plan(&l);
    assert_int_equal(model_used(l.m).nodes, 7);
    lab_apply(&l, (struct event){.type = EV_LIMITS});
    lab_plan(&l);
    assert_int_equal(model_used(l.m).nodes, 8); /* each pool has its own limit */
    lab_deinit(&l);
}

static bool is_promised(const struct lab *l, int64_t job)
{
    struct forecast f;
    assert_true(core_forecast(l->m, l->now, job, &f));
    assert_true(wall_is_set(f.median) || f.why[0]);
    return wall_is_set(f.median);
}

/* A pool's price and GPU limits, the limit of all pools, and a pool without nodes: each forbids the
 * only machine that could run the job. */
static void no_start_is_promised_that_a_limit_forbids(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    const int64_t job = lab_submit_cpus(&l, 4);
    const struct pool_row usual = lab_pool(&l, "burst");
    assert_true(is_promised(&l, job));
    struct pool_row p = usual;
    p.max_uusd_h = LAB_SPOT_UUSD_H - 1;
    lab_set_pool(&l, p);
    assert_false(is_promised(&l, job));
    p = usual;
    p.max_nodes = 0;
    lab_set_pool(&l, p);
    assert_false(is_promised(&l, job));
    lab_set_pool(&l, usual);
    assert_true(is_promised(&l, job));
    lab_apply(&l, (struct event){.type = EV_LIMITS, .limits = {.max_uusd_h = LAB_SPOT_UUSD_H - 1}});
    assert_false(is_promised(&l, job));
    lab_apply(&l, (struct event){.type = EV_LIMITS});
    assert_true(is_promised(&l, job));
    lab_deinit(&l);
}

static void gpus_are_limited_too(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 10, "m5", 4);
    int64_t g =
        lab_offer(&l, "burst", "g6", MARKET_SPOT, 0, (struct resources){4, 4, 16384}, 2000000);
    struct pool_row p = lab_pool(&l, "burst");
    p.max_gpus = 10;
    lab_set_pool(&l, p);
    for (int k = 0; k < 4; k++) {
        struct job_row j = lab_job(1);
        j.spec.need.gpus = 4;
        lab_submit(&l, &j);
    }
    lab_plan(&l);
    assert_int_equal(lab_launches(&l, g), 2);
    lab_deinit(&l);
}

/* It boots while the save runs, also in a pool of one. */
static void a_replacement_is_launched_at_the_notice(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_notice(&l, 1, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(lab_plan(&l), 1);
    assert_non_null(model_instance(l.m, 2));
    assert_int_equal(lab_plan(&l), 0); /* and no third */
    lab_deinit(&l);
}

static void a_machine_is_kept_for_its_minimum_paid_time(void **state)
{
    (void)state;
    struct lab l;
    struct event ev;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    struct pool_row p = lab_pool(&l, "burst");
    p.idle_timeout_ms = p.cooldown_ms = 1000;
    p.min_paid_ms = HOUR;
    lab_set_pool(&l, p);
    int64_t job = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    lab_plan(&l);
    for (int64_t waited = 0; waited < HOUR - 10000; waited += 10000) {
        lab_wait(&l, 10000);
        lab_heartbeats(&l);
        assert_false(lab_decision(&l, &ev));
    }
    lab_wait(&l, 10000);
    assert_true(lab_decision(&l, &ev));
    assert_int_equal(ev.type, EV_END_INSTANCE);
    lab_deinit(&l);
}

static void a_rebalance_that_comes_true_makes_saves_more_frequent(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4);
    lab_submit_cpus(&l, 4);
    lab_plan(&l);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    const struct attempt *a = job_attempt(model_job(l.m, 1));
    double before = core_reclaims_per_hour(model_node(l.m, 1));
    int64_t every = core_interval_ms(a);
    lab_notice(&l, 1, NOTICE_TYPE_REBALANCE, 0);
    double after = core_reclaims_per_hour(model_node(l.m, 1));
    assert_true(core_interval_ms(a) < every / 2);
    /* no data: assumed to be one half */
    assert_true(after > before + 1);
    assert_int_equal(model_node(l.m, 1)->row.state, NODE_UP); /* and no job has to leave */
    lab_notice(&l, 1, NOTICE_TYPE_RECLAIM, 120000);
    assert_int_equal(model_offer(l.m, 1)->row.rebalances, 1);
    assert_int_equal(model_offer(l.m, 1)->row.rebalances_true, 1);
    model_offer(l.m, 1)->row.rebalances = 1000; /* of an offer with many false recommendations */
    assert_true(core_reclaims_per_hour(model_node(l.m, 1)) < before + 0.1);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_that_is_reclaimed_often_costs_what_it_loses),
        cmocka_unit_test(a_score_is_worth_five_percent_at_most),
        cmocka_unit_test(scores_decide_between_offers_that_cost_nearly_the_same),
        cmocka_unit_test(scores_of_what_is_not_there_change_nothing),
        cmocka_unit_test(data_that_lies_elsewhere_is_paid_for),
        cmocka_unit_test(what_its_input_costs_is_part_of_an_offers_price),
        cmocka_unit_test(jobs_with_input_prefer_free_nodes_near_it),
        cmocka_unit_test(a_far_node_is_better_than_none),
        cmocka_unit_test(boots_are_learned),
        cmocka_unit_test(machines_are_spread_as_far_as_the_premium_goes),
        cmocka_unit_test(no_pool_exceeds_its_limits),
        cmocka_unit_test(all_pools_together_have_a_limit),
        cmocka_unit_test(no_start_is_promised_that_a_limit_forbids),
        cmocka_unit_test(the_worst_boot_follows_the_spread_of_boots),
        cmocka_unit_test(gpus_are_limited_too),
        cmocka_unit_test(a_replacement_is_launched_at_the_notice),
        cmocka_unit_test(a_machine_is_kept_for_its_minimum_paid_time),
        cmocka_unit_test(a_rebalance_that_comes_true_makes_saves_more_frequent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
