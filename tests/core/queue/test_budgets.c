/* SPDX-License-Identifier: Apache-2.0
 *
 * Budgets: jobs that are not paid for do not start, running jobs are saved before the money is used
 * up and continue with more; each threshold is notified once.
 */
#include "base/str.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/core/model/changes.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/queue_access.h"
#include "tests/core/queue/spending.h"
#include "tests/core/shelf.h"

#include <stdio.h>
#include <string.h>

static void expected_costs_are_reserved_and_returned(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(10, BUDGET_STOP_NEW);
    spending_begin(&l, &b, 1);
    lab_join(&l, "a", 8);
    lab_join(&l, "b", 8);
    int64_t first = spending_submit(&l, "ann", 8, 6 * HOUR_MS),
            second = spending_submit(&l, "ann", 8, 6 * HOUR_MS);
    lab_plan(&l);
    assert_true(lab_runs(&l, first));
    assert_false(lab_runs(&l, second)); /* 6 + 6 are more than 10 */
    assert_int_equal(spending_view(&l, 0).reserved_uusd, 6 * USD);
    assert_true(lab_has_reason(&l, second, "budget",
        "budget all: of its $10.00 for this month, $0.00 are spent and $6.00 are set aside for "
        "running jobs; this job needs $6.12 to start; the next month begins in 30d"));
    lab_started(&l, first);
    spending_run_for(&l, HOUR_MS);
    lab_ended(&l, first, END_SUCCEEDED, 0); /* for $1 */
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    assert_int_equal(spending_view(&l, 0).spent_uusd, USD);
    lab_deinit(&l);
}

/* Reading 10 GiB at $0.50: reserved before the start, spent afterwards. */
static void the_cost_of_reading_the_input_is_reserved_until_it_is_read(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(10, BUDGET_STOP_NEW);
    spending_begin(&l, &b, 1);
    struct pool_row base = lab_pool(&l, "base");
    base.egress_uusd_gib = USD / 2;
    lab_set_pool(&l, base);
    lab_join(&l, "a", 8);
    struct job_row r = spending_job("ann", 8, HOUR_MS), capped = r;
    lab_submit_asking(&l, &r, "input=store:32212254720");
    lab_plan(&l);
    assert_false(lab_runs(&l, 1)); /* 30 GiB are $15 */
    assert_true(lab_has_reason(&l, 1, "budget",
        "it would cost $16.00 at $1.00 an hour, with $15.00 for reading its input, and budget all "
        "has only $10.00 for a whole month: machines nearer to its input would help"));
    capped.spec.max_uusd = 5 * USD;
    int64_t second = lab_submit_asking(&l, &capped, "input=store:10737418240");
    lab_plan(&l);
    assert_false(lab_runs(&l, second)); /* $5, and its first ten minutes */
    assert_true(lab_has_reason(&l, second, "max-usd",
        "does not pay for ten minutes at $1.00 an hour, with $5.00 for reading its input; belay "
        "update"));
    int64_t third = lab_submit_asking(&l, &r, "input=store:10737418240");
    lab_plan(&l);
    assert_true(lab_runs(&l, third));
    assert_int_equal(spending_view(&l, 0).reserved_uusd, 6 * USD);
    assert_int_equal(spending_view(&l, 0).spent_uusd, 0);
    lab_wait(&l, 3600); /* $0.001 */
    lab_started(&l, third);
    lab_plan(&l);
    assert_int_equal(spending_view(&l, 0).spent_uusd, 5 * USD + 1000);
    assert_int_equal(spending_view(&l, 0).reserved_uusd, USD - 1000);
    lab_ended(&l, third, END_SUCCEEDED, 0);
    assert_int_equal(spending_view(&l, 0).spent_uusd, 5 * USD + 1000);
    assert_int_equal(spending_view(&l, 0).reserved_uusd, 0);
    lab_deinit(&l);
}

#define GIB (1LL << 30)
#define GIB_MONTH_UUSD 2629800LL /* one micro-dollar per second and GiB */

static void save_gib(struct lab *l, int64_t job, int64_t gib)
{
    lab_apply(l, (struct event){.type = EV_CHECKPOINT,
                     .checkpoint = {.job = job,
                         .node = lab_node_of(l, job),
                         .ref = {1, 1},
                         .bytes = gib * GIB,
                         .stored_bytes = gib * GIB,
                         .saved_at = l->now.wall,
                         .cause = "periodic"}});
}

static void cleaned(struct lab *l, int64_t job, int64_t gib)
{
    struct event ev;
    while (lab_decision(l, &ev) && ev.type != EV_CLEAN)
        lab_apply(l, ev);
    lab_apply(l, ev);
    lab_apply(
        l, (struct event){.type = EV_CLEANED, .cleaned = {.job = job, .kept_bytes = gib * GIB}});
}

/* While the job runs, after its end, and after a restart: storage is spent by budgets that the job
 * matches, except those of a pool. A threshold reached this way is notified although no job
 * runs. */
static void kept_checkpoints_are_charged_to_the_budget(void **state)
{
    (void)state;
    struct budget_options b[] = {spending_monthly(10, BUDGET_STOP_NEW),
        spending_monthly(10, BUDGET_STOP_NEW), spending_monthly(10, BUDGET_STOP_NEW)};
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 100000 * HOUR_MS,
        .tables.budgets = b,
        .tables.n_budgets = 3,
        .store_uusd_gib_month = GIB_MONTH_UUSD};
    struct pool_row free_pool = {.name = "base"};
    struct shelf s = {.budget_options = b,
        .n_budget_options = 3,
        .store_uusd_gib_month = GIB_MONTH_UUSD,
        .lease_ms = o.lease_ms};
    struct lab l = {.p = planner_create(), .now = {.wall = {NOV_1}, .mono = {5000}}};
    for (int k = 0; k < 3; k++)
        snprintf(b[k].name, sizeof b[k].name, "b%d", k);
    STR_COPY(b[0].user, "ann");
    STR_COPY(b[1].user, "bob");
    STR_COPY(b[2].pool, "base");
    b[0].n_mails = 1;
    l.m = model_create(&o);
    lab_apply(&l, (struct event){.type = EV_POOL, .pool = &free_pool});
    lab_join(&l, "a", 8);
    struct job_row r = spending_job("ann", 8, 0);
    r.spec.ckpt_after = AFTER_ALL;
    int64_t id = lab_submit(&l, &r);
    lab_plan(&l);
    lab_started(&l, id);
    save_gib(&l, id, 2);
    lab_wait(&l, 1000 * 1000);
    lab_ended(&l, id, END_SUCCEEDED, 0);
    assert_int_equal(spending_view(&l, 0).spent_uusd, 2000);
    cleaned(&l, id, 2);
    lab_take(&l);
    assert_int_equal(lab_row(&l, id)->cost_uusd, 2000);
    shelf_put(&s, &l.c);
    model_destroy(l.m);
    planner_destroy(l.p);
    l.m = shelf_load(&s, l.now);
    l.p = planner_create();
    lab_plan(&l);
    assert_int_equal(spending_view(&l, 0).spent_uusd, 2000);
    assert_int_equal(spending_letters(&l, 50), 0);
    /* it was measured, and no data is left */
    spending_run_until(&l, (struct wall){DEC_1 + 1001 * 1000});
    assert_int_equal(spending_view(&l, 0).spent_uusd, 2 * 30 * 24 * 3600);
    assert_int_equal(spending_letters(&l, 50), 1);
    lab_take(&l);
    shelf_put(&s, &l.c); /* compares each job's cost with the ledger */
    assert_int_equal(spending_view(&l, 1).spent_uusd, 0);
    assert_int_equal(spending_view(&l, 2).spent_uusd, 0);
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* Input still to be read does not park the job repeatedly: reservations are released exactly as
 * they were made. */
static void a_parked_job_returns_the_reserved_cost_of_its_input(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(10, BUDGET_PARK);
    spending_begin(&l, &b, 1);
    struct pool_row base = lab_pool(&l, "base");
    base.egress_uusd_gib = USD / 2;
    lab_set_pool(&l, base);
    lab_join(&l, "a", 8);
    struct job_row r = spending_job("ann", 8, 100 * HOUR_MS);
    r.spec.method = CKPT_COOP;
    for (int k = 0; k < 5; k++) { /* $8 are reserved for its input and released each time */
        int64_t id = lab_submit_asking(&l, &r, "input=store:17179869184");
        lab_plan(&l);
        assert_true(lab_runs(&l, id));
        assert_true(
            budgets_at(l.m, 0)->reserved >= 8 * USD && budgets_at(l.m, 0)->reserved < 9 * USD);
        lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = id});
        lab_ended(&l, id, END_CANCELLED, 0);
        assert_true(budgets_at(l.m, 0)->reserved < USD / 100);
    }
    assert_int_equal(spending_view(&l, 0).spent_uusd, 0);
    lab_deinit(&l);
}

static void jobs_that_fit_the_budget_overtake_and_free_nodes_are_always_used(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(10, BUDGET_STOP_NEW);
    struct pool_row free_pool = {.name = "free"};
    spending_begin(&l, &b, 1);
    lab_join(&l, "a", 8);
    int64_t large = spending_submit(&l, "ann", 8, 40 * HOUR_MS),
            small = spending_submit(&l, "bob", 8, 2 * HOUR_MS);
    lab_plan(&l);
    assert_false(lab_runs(&l, large));
    assert_true(lab_runs(&l, small));
    assert_true(lab_has_reason(&l, large, "budget",
                    "it would cost $40.00 at $1.00 an hour, and budget all has only $10.00 for a "
                    "whole month: a shorter --time would help") ||
                lab_has_reason(&l, large, "nodes-busy", ""));
    lab_apply(&l, (struct event){.type = EV_POOL, .pool = &free_pool});
    struct node_row r = {
        .name = "f", .pool = "free", .key_hash = "key-f", .total = {8, 0, 1 << 20}};
    lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    lab_plan(&l);
    assert_true(lab_runs(&l, large));
    lab_deinit(&l);
}

static uint64_t matched(struct lab *l, const struct job_row *r, const char *labels)
{
    struct job_texts texts = lab_texts(labels);
    int64_t id =
        lab_apply(l, (struct event){.type = EV_SUBMIT, .submit = {.job = r, .texts = &texts}});
    return model_job(l->m, id)->shape->in_budgets;
}

static int refused(struct lab *l, const struct job_row *r, const char *labels)
{
    struct job_texts texts = lab_texts(labels);
    struct event ev = {.type = EV_SUBMIT, .submit = {.job = r, .texts = &texts}};
    return lab_try(l, &ev, NULL);
}

static void a_job_counts_in_budgets_whose_conditions_all_match(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b[5];
    for (int k = 0; k < 5; k++) {
        b[k] = spending_monthly(10, BUDGET_ALERT);
        snprintf(b[k].name, sizeof b[k].name, "b%d", k);
    }
    STR_COPY(b[0].team, "nlp");
    STR_COPY(b[1].user, "ann");
    b[2].n_labels = 2;
    b[2].labels[0] = (struct budget_label){"project", "x"};
    b[2].labels[1] = (struct budget_label){"team", "nlp"};
    STR_COPY(b[3].job, "train");
    STR_COPY(b[3].user, "bob");
    struct policy_user nlps[] = {{.name = "cho", .shares = 1}, {.name = "ann", .shares = 1}},
                       others[] = {{.name = "ann", .shares = 1}, {.name = "bob", .shares = 1}};
    struct policy_team teams[] = {{.name = "rest", .shares = 1, .users = others, .n_users = 2},
        {.name = "nlp", .shares = 1, .users = nlps, .n_users = 2}};
    struct queue_policy policy = queue_policy_defaults;
    policy.teams = teams;
    policy.n_teams = 2;
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = HOUR_MS,
        .tables.budgets = b,
        .tables.n_budgets = 5,
        .policy = &policy};
    l = (struct lab){
        .m = model_create(&o), .p = planner_create(), .now = {.wall = {NOV_1}, .mono = {5000}}};
    struct job_row ann = spending_job("ann", 1, 0), bob = spending_job("bob", 1, 0),
                   nlp = spending_job("cho", 1, 0);
    STR_COPY(nlp.spec.team, "nlp");
    STR_COPY(nlp.spec.name, "other");
    assert_int_equal(matched(&l, &ann, "{}"), 1 << 1 | 1 << 4);
    assert_int_equal(matched(&l, &bob, "{}"), 1 << 3 | 1 << 4);
    assert_int_equal(matched(&l, &bob, "{\"project\":\"x\"}"), 1 << 3 | 1 << 4);
    assert_int_equal(matched(&l, &nlp, "{}"), 1 << 0 | 1 << 4);
    STR_COPY(nlp.user, "ann"); /* member of both teams */
    STR_COPY(nlp.spec.team, "rest");
    /* the label selects the team */
    assert_int_equal(matched(&l, &nlp, "{\"team\":\"nlp\"}"), 1 << 0 | 1 << 1 | 1 << 4);
    assert_int_equal(matched(&l, &ann, "{\"project\":\"x\",\"team\":\"nlp\"}"),
        1 << 0 | 1 << 1 | 1 << 2 | 1 << 4);
    /* the other team's budget */
    assert_int_equal(refused(&l, &bob, "{\"team\":\"nlp\"}"), ERR_DENIED);
    /* nor outside every budget */
    assert_int_equal(refused(&l, &bob, "{\"team\":\"nosuch\"}"), ERR_INVALID);
    lab_deinit(&l);
}

static void a_budget_of_one_pool_does_not_affect_others(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(5, BUDGET_STOP_NEW);
    struct pool_row other = {.name = "other", .usd_per_hour_uusd = 3 * USD};
    STR_COPY(b.pool, "base");
    spending_begin(&l, &b, 1);
    lab_apply(&l, (struct event){.type = EV_POOL, .pool = &other});
    struct node_row r = {
        .name = "o", .pool = "other", .key_hash = "key-o", .total = {16, 0, 1 << 20}};
    lab_join(&l, "a", 8);
    int64_t job = spending_submit(&l, "ann", 8, 6 * HOUR_MS);
    lab_plan(&l);
    assert_false(lab_runs(&l, job));
    lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    assert_int_equal(spending_view(&l, 0).jobs, 0);
    lab_deinit(&l);
}

/* Machines are launched for as many jobs as can be paid, not for all that wait. */
static void machines_are_launched_only_for_jobs_that_can_be_paid(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(7, BUDGET_STOP_NEW);
    spending_begin(&l, &b, 1);
    lab_elastic(&l, "burst", 50, "m5.large", 4); /* spot at $1 */
    for (int k = 0; k < 40; k++) {
        struct job_row r = spending_job("ann", 4, 2 * HOUR_MS);
        STR_COPY(r.spec.pool, "burst");
        lab_submit(&l, &r);
    }
    lab_plan(&l);
    int n = 0;
    LIST_FOREACH (model_instances(l.m), k)
        n++;
    assert_int_equal(n, 3); /* $6 of $7 */
    lab_deinit(&l);
}

static void a_job_waits_until_a_price_is_within_its_maximum(void **state)
{
    (void)state;
    struct lab l;
    spending_begin(&l, NULL, 0);
    lab_elastic(&l, "burst", 4, "m5.large", 4); /* spot at $1, on-demand at $3 */
    struct job_row r = spending_job("ann", 4, 0);
    r.spec.max_uusd_h = USD / 2;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_null(list_first(model_instances(l.m)));
    assert_true(lab_has_reason(&l, job, "max-usd-per-hour",
        "costs $1.00 an hour now, above its maximum of $0.50 (--max-usd-per-hour): it waits for a "
        "lower price"));
    struct event rise = {.type = EV_PRICE,
        .price = {.region = "r1",
            .zone = "z1",
            .type = "m5.large",
            .market = MARKET_SPOT,
            .uusd_h = 1006000}};
    lab_apply(&l, rise);
    assert_true(lab_has_reason(&l, job, "max-usd-per-hour", "costs $1.01 an hour now"));
    struct forecast f;
    assert_true(core_forecast(l.m, l.now, job, &f));
    assert_false(wall_is_set(f.median));
    assert_string_equal(f.why, "no existing or launchable machine fits within its maximum price");
    struct event price = {.type = EV_PRICE,
        .price = {.region = "r1",
            .zone = "z1",
            .type = "m5.large",
            .market = MARKET_SPOT,
            .uusd_h = USD / 4}};
    lab_apply(&l, price);
    assert_true(core_forecast(l.m, l.now, job, &f));
    assert_true(wall_is_set(f.median));
    lab_plan(&l);
    const struct link *first = list_first(model_instances(l.m));
    assert_non_null(first);
    const struct instance *i = LIST_ENTRY(first, struct instance, in_all);
    assert_int_equal(i->row.market, MARKET_SPOT);
    lab_bring_up(&l, i->row.id, 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    lab_deinit(&l);
}

/* Regression: "it is expected to start in 45s" next to "budget has $0.02 left". */
static void no_start_is_promised_that_a_budget_does_not_pay_for(void **state)
{
    (void)state;
    struct budget_options b = spending_monthly(3, BUDGET_STOP_NEW);
    b.cap_uusd += USD / 2; /* expected times are rounded up */
    struct forecast f;
    struct lab l;
    spending_begin(&l, &b, 1);
    lab_join(&l, "n1", 4);
    lab_plan(&l);
    int64_t runs_now = spending_submit(&l, "ann", 4, 2 * HOUR_MS),
            paid = spending_submit(&l, "ann", 4, HOUR_MS),
            unpaid = spending_submit(&l, "ann", 4, HOUR_MS);
    lab_plan(&l);
    assert_true(lab_runs(&l, runs_now));
    assert_true(core_forecast(l.m, l.now, paid, &f));
    assert_true(wall_is_set(f.median));
    /* the one before it uses the last dollar */
    assert_true(core_forecast(l.m, l.now, unpaid, &f));
    assert_false(wall_is_set(f.median) || wall_is_set(f.latest) || f.is_now);
    assert_non_null(strstr(f.why, "budget all"));
    int64_t large = spending_submit(&l, "bob", 4, 20 * HOUR_MS); /* exceeds the whole budget */
    lab_plan(&l);
    assert_true(core_forecast(l.m, l.now, large, &f));
    assert_false(wall_is_set(f.median) || wall_is_set(f.latest));
    assert_non_null(strstr(f.why, "budget all"));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_start_is_promised_that_a_budget_does_not_pay_for),
        cmocka_unit_test(expected_costs_are_reserved_and_returned),
        cmocka_unit_test(kept_checkpoints_are_charged_to_the_budget),
        cmocka_unit_test(the_cost_of_reading_the_input_is_reserved_until_it_is_read),
        cmocka_unit_test(a_parked_job_returns_the_reserved_cost_of_its_input),
        cmocka_unit_test(jobs_that_fit_the_budget_overtake_and_free_nodes_are_always_used),
        cmocka_unit_test(a_job_counts_in_budgets_whose_conditions_all_match),
        cmocka_unit_test(a_budget_of_one_pool_does_not_affect_others),
        cmocka_unit_test(machines_are_launched_only_for_jobs_that_can_be_paid),
        cmocka_unit_test(a_job_waits_until_a_price_is_within_its_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
