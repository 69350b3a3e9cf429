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
#include "tests/core/lab.h"
#include "tests/core/shelf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_MS 3600000LL
#define USD 1000000LL
#define NOV_1 1793491200000LL /* 2026-11-01T00:00Z */
#define DEC_1 (NOV_1 + 30 * 24 * HOUR_MS)

static struct budget_options monthly(int64_t usd, enum budget_action at_limit)
{
    return (struct budget_options){.name = "all",
        .period = BUDGET_MONTH,
        .zone = &zone_utc,
        .cap_uusd = usd * USD,
        .at_limit = at_limit,
        .alert_pct = {50, 80, 100},
        .n_alerts = 3};
}

/* One pool at $1 per node-hour; the lease of a node is longer than any test. */
static void begin(struct lab *l, const struct budget_options *b, size_t n)
{
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 100000 * HOUR_MS,
        .budgets = b,
        .n_budgets = n};
    struct pool_row base = {.name = "base", .usd_per_hour_uusd = USD};
    *l = (struct lab){
        .m = model_create(&o), .p = planner_create(), .now = {.wall = {NOV_1}, .mono = {5000}}};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
}

static struct job_row job_of(const char *user, int32_t cpus, int64_t limit_ms)
{
    struct job_row r = lab_job(cpus);
    STR_COPY(r.user, user);
    r.spec.time_limit_ms = limit_ms;
    return r;
}

static int64_t submit(struct lab *l, const char *user, int32_t cpus, int64_t limit_ms)
{
    struct job_row r = job_of(user, cpus, limit_ms);
    return lab_submit(l, &r);
}

static struct budget_view view(const struct lab *l, size_t i)
{
    struct budget_view v;
    core_budget(l->m, i, l->now.wall, &v);
    return v;
}

/* Each stopping job has saved and ended 10 s later. */
static void serve(struct lab *l)
{
    int64_t stopping[256];
    size_t n = 0;
    const struct job *j;
    for (size_t pos = 0; (j = model_next_job(l->m, &pos)) != NULL;)
        if (job_attempt(j) && job_attempt(j)->row.state == ATTEMPT_STOPPING && n < 256)
            stopping[n++] = j->row.id;
    if (n == 0)
        return;
    lab_wait(l, 10000);
    for (size_t k = 0; k < n; k++) {
        lab_saved(l, stopping[k], job_attempt(model_job(l->m, stopping[k]))->row.sequence + 1, 1);
        lab_ended(l, stopping[k], END_EVICTED, 0);
    }
}

/* As belayd: wakes when a decision is due. */
static void run_until(struct lab *l, struct wall at)
{
    lab_plan(l);
    while (l->now.wall.ms < at.ms) {
        struct mono wake = plan_wake(l->p, l->m, l->now);
        int64_t ms = at.ms - l->now.wall.ms;
        if (mono_is_set(wake) && wake.ms - l->now.mono.ms < ms)
            ms = wake.ms - l->now.mono.ms;
        lab_wait(l, ms);
        lab_plan(l);
        serve(l);
        lab_plan(l);
    }
}

static void run_for(struct lab *l, int64_t ms)
{
    run_until(l, (struct wall){l->now.wall.ms + ms});
}

static int n_letters(const struct lab *l, int32_t pct)
{
    int n = 0;
    for (const struct outbox_row *r = NULL; (r = core_outbox_next(l->m, r)) != NULL;)
        n += r->kind == NOTIFY_BUDGET && r->pct == pct;
    return n;
}

/* ---- admission ---- */

static void what_is_expected_is_set_aside_and_given_back(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(10, BUDGET_STOP_NEW);
    begin(&l, &b, 1);
    lab_join(&l, "a", 8);
    lab_join(&l, "b", 8);
    int64_t first = submit(&l, "ann", 8, 6 * HOUR_MS), second = submit(&l, "ann", 8, 6 * HOUR_MS);
    lab_plan(&l);
    assert_true(lab_runs(&l, first));
    assert_false(lab_runs(&l, second)); /* 6 + 6 are more than 10 */
    assert_int_equal(view(&l, 0).aside_uusd, 6 * USD);
    assert_true(lab_has_reason(&l, second, "budget",
        "budget all: of $10.00 in this month $0.00 are spent and $6.00 set aside for what runs; to "
        "begin it $6.11 more are needed; the next month begins in 30d"));
    lab_started(&l, first);
    run_for(&l, HOUR_MS);
    lab_ended(&l, first, END_SUCCEEDED, 0); /* for $1 */
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    assert_int_equal(view(&l, 0).spent_uusd, USD);
    lab_deinit(&l);
}

/* Reading 10 GiB at $0.50: reserved before the start, spent afterwards. */
static void what_is_to_be_read_is_set_aside_until_it_is(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(10, BUDGET_STOP_NEW);
    begin(&l, &b, 1);
    struct pool_row base = lab_pool(&l, "base");
    base.egress_uusd_gib = USD / 2;
    lab_set_pool(&l, base);
    lab_join(&l, "a", 8);
    struct job_row r = job_of("ann", 8, HOUR_MS), capped = r;
    lab_submit_asking(&l, &r, "input=store:32212254720");
    lab_plan(&l);
    assert_false(lab_runs(&l, 1)); /* 30 GiB are $15 */
    assert_true(lab_has_reason(&l, 1, "budget",
        "it would cost $16.00 at $1.00 an hour, with $15.00 for reading its input, and budget all "
        "has $10.00 for all of a month: machines nearer to what it reads would help"));
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
    assert_int_equal(view(&l, 0).aside_uusd, 6 * USD);
    assert_int_equal(view(&l, 0).spent_uusd, 0);
    lab_wait(&l, 3600); /* $0.001 */
    lab_started(&l, third);
    lab_plan(&l);
    assert_int_equal(view(&l, 0).spent_uusd, 5 * USD + 1000);
    assert_int_equal(view(&l, 0).aside_uusd, USD - 1000);
    lab_ended(&l, third, END_SUCCEEDED, 0);
    assert_int_equal(view(&l, 0).spent_uusd, 5 * USD + 1000);
    assert_int_equal(view(&l, 0).aside_uusd, 0);
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
static void what_the_store_keeps_is_spent(void **state)
{
    (void)state;
    struct budget_options b[] = {
        monthly(10, BUDGET_STOP_NEW), monthly(10, BUDGET_STOP_NEW), monthly(10, BUDGET_STOP_NEW)};
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = 100000 * HOUR_MS,
        .budgets = b,
        .n_budgets = 3,
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
    struct job_row r = job_of("ann", 8, 0);
    r.spec.ckpt_after = AFTER_ALL;
    int64_t id = lab_submit(&l, &r);
    lab_plan(&l);
    lab_started(&l, id);
    save_gib(&l, id, 2);
    lab_wait(&l, 1000 * 1000);
    lab_ended(&l, id, END_SUCCEEDED, 0);
    assert_int_equal(view(&l, 0).spent_uusd, 2000);
    cleaned(&l, id, 2);
    lab_take(&l);
    assert_int_equal(lab_row(&l, id)->cost_uusd, 2000);
    shelf_put(&s, &l.c);
    model_destroy(l.m);
    planner_destroy(l.p);
    l.m = shelf_load(&s, l.now);
    l.p = planner_create();
    lab_plan(&l);
    assert_int_equal(view(&l, 0).spent_uusd, 2000);
    assert_int_equal(n_letters(&l, 50), 0);
    /* it was measured, and no data is left */
    run_until(&l, (struct wall){DEC_1 + 1001 * 1000});
    assert_int_equal(view(&l, 0).spent_uusd, 2 * 30 * 24 * 3600);
    assert_int_equal(n_letters(&l, 50), 1);
    lab_take(&l);
    shelf_put(&s, &l.c); /* compares each job's cost with the ledger */
    assert_int_equal(view(&l, 1).spent_uusd, 0);
    assert_int_equal(view(&l, 2).spent_uusd, 0);
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* Input still to be read does not park the job repeatedly: reservations are released exactly as
 * they were made. */
static void a_parked_job_that_never_read_gives_back_what_was_held_for_it(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(10, BUDGET_PARK);
    begin(&l, &b, 1);
    struct pool_row base = lab_pool(&l, "base");
    base.egress_uusd_gib = USD / 2;
    lab_set_pool(&l, base);
    lab_join(&l, "a", 8);
    struct job_row r = job_of("ann", 8, 100 * HOUR_MS);
    r.spec.method = CKPT_COOP;
    for (int k = 0; k < 5; k++) { /* $8 are reserved for its input and released each time */
        int64_t id = lab_submit_asking(&l, &r, "input=store:17179869184");
        lab_plan(&l);
        assert_true(lab_runs(&l, id));
        assert_true(budgets_at(l.m, 0)->held >= 8 * USD && budgets_at(l.m, 0)->held < 9 * USD);
        lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = id});
        lab_ended(&l, id, END_USER, 0);
        assert_true(budgets_at(l.m, 0)->held < USD / 100);
    }
    assert_int_equal(view(&l, 0).spent_uusd, 0);
    lab_deinit(&l);
}

static void what_fits_passes_what_does_not_and_what_costs_nothing_runs_anyway(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(10, BUDGET_STOP_NEW);
    struct pool_row free_pool = {.name = "free"};
    begin(&l, &b, 1);
    lab_join(&l, "a", 8);
    int64_t large = submit(&l, "ann", 8, 40 * HOUR_MS), small = submit(&l, "bob", 8, 2 * HOUR_MS);
    lab_plan(&l);
    assert_false(lab_runs(&l, large));
    assert_true(lab_runs(&l, small));
    assert_true(lab_has_reason(&l, large, "budget",
                    "it would cost $40.00 at $1.00 an hour, and budget all has $10.00 for all of a "
                    "month: a shorter --time would help") ||
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

static void a_job_counts_where_all_that_is_said_matches(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b[5];
    for (int k = 0; k < 5; k++) {
        b[k] = monthly(10, BUDGET_ALERT);
        snprintf(b[k].name, sizeof b[k].name, "b%d", k);
    }
    STR_COPY(b[0].team, "nlp");
    STR_COPY(b[1].user, "ann");
    b[2].n_labels = 2;
    b[2].labels[0] = (struct budget_label){"project", "x"};
    b[2].labels[1] = (struct budget_label){"team", "nlp"};
    STR_COPY(b[3].job, "train");
    STR_COPY(b[3].user, "bob");
    struct order_user nlps[] = {{.name = "cho", .shares = 1}, {.name = "ann", .shares = 1}},
                      others[] = {{.name = "ann", .shares = 1}, {.name = "bob", .shares = 1}};
    struct order_team teams[] = {{.name = "rest", .shares = 1, .users = others, .n_users = 2},
        {.name = "nlp", .shares = 1, .users = nlps, .n_users = 2}};
    struct order_options order = order_defaults;
    order.teams = teams;
    order.n_teams = 2;
    struct model_options o = {.cluster_uid = "0123456789abcdef",
        .lease_ms = HOUR_MS,
        .budgets = b,
        .n_budgets = 5,
        .order = &order};
    l = (struct lab){
        .m = model_create(&o), .p = planner_create(), .now = {.wall = {NOV_1}, .mono = {5000}}};
    struct job_row ann = job_of("ann", 1, 0), bob = job_of("bob", 1, 0), nlp = job_of("cho", 1, 0);
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

static void a_budget_of_a_pool_is_in_nobody_s_way_elsewhere(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(5, BUDGET_STOP_NEW);
    struct pool_row other = {.name = "other", .usd_per_hour_uusd = 3 * USD};
    STR_COPY(b.pool, "base");
    begin(&l, &b, 1);
    lab_apply(&l, (struct event){.type = EV_POOL, .pool = &other});
    struct node_row r = {
        .name = "o", .pool = "other", .key_hash = "key-o", .total = {16, 0, 1 << 20}};
    lab_join(&l, "a", 8);
    int64_t job = submit(&l, "ann", 8, 6 * HOUR_MS);
    lab_plan(&l);
    assert_false(lab_runs(&l, job));
    lab_apply(&l, (struct event){.type = EV_JOIN, .join = {.node = &r}});
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    assert_int_equal(view(&l, 0).jobs, 0);
    lab_deinit(&l);
}

/* Machines are launched for as many jobs as can be paid, not for all that wait. */
static void launches_are_for_what_can_be_paid(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(7, BUDGET_STOP_NEW);
    begin(&l, &b, 1);
    lab_elastic(&l, "burst", 50, "m5.large", 4); /* spot at $1 */
    for (int k = 0; k < 40; k++) {
        struct job_row r = job_of("ann", 4, 2 * HOUR_MS);
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

/* ---- parks ---- */

static void what_runs_is_saved_before_all_is_spent_and_goes_on_next_month(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(100, BUDGET_PARK);
    int64_t jobs[4];
    begin(&l, &b, 1);
    for (int k = 0; k < 4; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(&l, name, 8);
        jobs[k] = submit(&l, "ann", 8, 0);
    }
    lab_plan(&l);
    for (int k = 0; k < 4; k++)
        lab_started(&l, jobs[k]);
    run_for(&l, 24 * HOUR_MS); /* $96 */
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, jobs[k]));
    run_for(&l, 2 * HOUR_MS);
    for (int k = 0; k < 4; k++) {
        assert_false(lab_runs(&l, jobs[k]));
        assert_int_equal(model_job(l.m, jobs[k])->row.end, END_BUDGET);
        assert_int_equal(model_job(l.m, jobs[k])->row.lost_ms, 0);
    }
    struct budget_view v = view(&l, 0);
    print_message("spent $%.4f of $100\n", (double)v.spent_uusd / 1e6);
    assert_true(v.is_closed && v.spent_uusd <= 100 * USD && v.spent_uusd > 99 * USD);
    assert_true(lab_has_reason(
        &l, jobs[0], "budget", "budget all is used up: of $100.00 in this month $99.9"));
    run_until(&l, (struct wall){DEC_1 - 1});
    assert_false(lab_runs(&l, jobs[0]));
    run_until(&l, (struct wall){DEC_1 + 1});
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, jobs[k]));
    assert_int_equal(n_letters(&l, 50), 0); /* no recipient: there is no webhook */
    lab_deinit(&l);
}

/* A job that cannot be saved is not stopped: its money stays reserved, and others are stopped
 * earlier. */
static void who_cannot_be_saved_is_not_stopped_and_is_paid_for(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = monthly(20, BUDGET_PARK);
    begin(&l, &b, 1);
    lab_join(&l, "a", 8);
    lab_join(&l, "b", 8);
    struct job_row none = job_of("ann", 8, 12 * HOUR_MS);
    none.spec.method = CKPT_NONE;
    int64_t stays = lab_submit(&l, &none), goes = submit(&l, "ann", 8, 0), late;
    lab_plan(&l);
    lab_started(&l, stays);
    lab_started(&l, goes);
    late = lab_submit(&l, &none);
    run_for(&l, 9 * HOUR_MS);
    assert_true(lab_runs(&l, stays));
    assert_false(lab_runs(&l, goes)); /* $8 for it, $12 for the other */
    assert_false(lab_runs(&l, late));
    lab_wait(&l, 3 * HOUR_MS);
    lab_ended(&l, stays, END_TIMEOUT, 0);
    lab_plan(&l);
    assert_true(view(&l, 0).spent_uusd <= 20 * USD);
    assert_false(lab_runs(&l, late)); /* no job starts any more */
    lab_deinit(&l);
}

static void hours_and_windows_begin_anew(void **state)
{
    (void)state;
    struct lab l;
    const struct window night = {
        .name = "night", .days = 0x7f, .from_min = 20 * 60, .to_min = 6 * 60, .zone = &zone_utc};
    struct budget_options b[2] = {monthly(3, BUDGET_PARK), monthly(12, BUDGET_PARK)};
    b[0].period = BUDGET_HOUR;
    STR_COPY(b[0].user, "ann");
    STR_COPY(b[1].name, "night");
    STR_COPY(b[1].user, "bob");
    b[1].period = BUDGET_WINDOW;
    b[1].window = &night;
    begin(&l, b, 2);
    int64_t anns[4], bobs[2];
    for (int k = 0; k < 6; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(&l, name, 8);
    }
    for (int k = 0; k < 4; k++)
        anns[k] = submit(&l, "ann", 8, 0);
    for (int k = 0; k < 2; k++)
        bobs[k] = submit(&l, "bob", 8, 0);
    lab_plan(&l);
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, anns[k]));
    run_for(&l, 30 * 60000); /* at $4 per hour $3 last for 45 minutes */
    assert_true(lab_runs(&l, anns[0]));
    run_for(&l, 20 * 60000);
    for (int k = 0; k < 4; k++)
        assert_false(lab_runs(&l, anns[k]));
    run_for(&l, 11 * 60000);
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, anns[k]));
    /* Night: at $2 per hour $12 are used up before 6. By day no cost counts. */
    assert_true(view(&l, 1).is_open && lab_runs(&l, bobs[0]));
    run_until(&l, (struct wall){NOV_1 + 5 * HOUR_MS + HOUR_MS / 2});
    assert_true(lab_runs(&l, bobs[0]));
    run_until(&l, (struct wall){NOV_1 + 7 * HOUR_MS});
    assert_true(!view(&l, 1).is_open && lab_runs(&l, bobs[0]));
    run_until(&l, (struct wall){NOV_1 + 21 * HOUR_MS});
    assert_true(view(&l, 1).is_open && lab_runs(&l, bobs[0]));
    assert_int_equal(view(&l, 1).since.ms, NOV_1 + 20 * HOUR_MS);
    run_until(&l, (struct wall){NOV_1 + 26 * HOUR_MS + 60000});
    assert_true(!lab_runs(&l, bobs[0]) && view(&l, 1).is_closed);
    run_until(&l, (struct wall){NOV_1 + 30 * HOUR_MS + 60000});
    assert_true(lab_runs(&l, bobs[0]));
    lab_deinit(&l);
}

/* ---- a job's own cap ---- */

static void a_job_that_has_cost_what_it_may_is_parked_until_it_may_cost_more(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL, 0);
    lab_join(&l, "a", 8);
    struct job_row r = job_of("ann", 8, 0);
    r.spec.max_uusd = 3 * USD;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    lab_started(&l, job);
    run_for(&l, 4 * HOUR_MS);
    assert_false(lab_runs(&l, job));
    int64_t cost = model_job(l.m, job)->row.cost_uusd;
    assert_true(cost <= 3 * USD && cost > 3 * USD - USD / 50);
    assert_true(lab_has_reason(&l, job, "max-usd",
        "of at most $3.00 (--max-usd): the rest does not pay for ten minutes at $1.00 an hour; "
        "belay update"));
    assert_true(lab_has_reason(&l, job, "max-usd", "max-usd=USD lets it continue"));
    struct forecast f;
    assert_true(core_forecast(l.m, l.now, job, &f));
    assert_false(wall_is_set(f.median)); /* unknown whether it will be */
    r.spec.max_uusd = 5 * USD;
    lab_apply(&l, (struct event){.type = EV_UPDATE,
                      .update = {.job = job, .fields = UPDATE_BIT(UPDATE_MAX_USD), .to = &r}});
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    lab_started(&l, job);
    r.spec.max_uusd = 4 * USD; /* while it runs */
    lab_apply(&l, (struct event){.type = EV_UPDATE,
                      .update = {.job = job, .fields = UPDATE_BIT(UPDATE_MAX_USD), .to = &r}});
    run_for(&l, 4 * HOUR_MS);
    assert_false(lab_runs(&l, job));
    assert_true(model_job(l.m, job)->row.cost_uusd <= 4 * USD &&
                model_job(l.m, job)->row.cost_uusd > 4 * USD - USD / 25);
    struct job_row tiny = job_of("ann", 8, 0);
    tiny.spec.max_uusd = 100;
    job = lab_submit(&l, &tiny);
    lab_plan(&l);
    assert_true(
        lab_has_reason(&l, job, "max-usd", "it has cost $0.00, of at most $0.0001 (--max-usd)"));
    r = job_of("ann", 1, 0);
    r.spec.max_uusd = -1;
    lab_refused(&l, &r, "max_uusd: expected 0 to 1000000000000000, found -1");
    r.spec.max_uusd = USD;
    for (int k = 0; k < RETRY_KINDS; k++)
        r.spec.retries.n[k] = RETRIES_NEVER;
    lab_refused(&l, &r, "cannot have a cap of its own (max_usd): it would end when that is spent");
    lab_deinit(&l);
}

static void a_job_waits_for_a_price_that_it_takes(void **state)
{
    (void)state;
    struct lab l;
    begin(&l, NULL, 0);
    lab_elastic(&l, "burst", 4, "m5.large", 4); /* spot at $1, on-demand at $3 */
    struct job_row r = job_of("ann", 4, 0);
    r.spec.max_uusd_h = USD / 2;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    assert_null(list_first(model_instances(l.m)));
    assert_true(lab_has_reason(&l, job, "max-usd-per-hour",
        "costs $1.00 an hour now, above its maximum of $0.50 (--max-usd-per-hour): it waits for a "
        "lower price"));
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

/* ---- a whole month ---- */

#define NODES 20
#define JOBS 200
#define RESTARTS 50

struct month {
    struct lab l;
    struct shelf shelf;
    struct budget_options b;
    int notified[3], months;
    int64_t left_ms[JOBS + 1]; /* remaining work of each; initial work */
    int64_t began_ms[JOBS + 1];
    size_t n_done;
};

static void keep(struct month *w)
{
    struct lab *l = &w->l;
    lab_take(l);
    shelf_put(&w->shelf, &l->c);
    for (size_t k = 0; k < l->c.n_history; k++)
        for (int i = 0; str_eq(l->c.history[k].kind, "budget") && i < 3; i++)
            w->notified[i] += l->c.history[k].a == w->b.alert_pct[i];
}

static void restart(struct month *w)
{
    keep(w);
    model_destroy(w->l.m);
    planner_destroy(w->l.p);
    lab_wait(&w->l, 3000);
    w->shelf.lease_ms = 100000 * HOUR_MS;
    w->shelf.budget_options = &w->b;
    w->shelf.n_budget_options = 1;
    w->l.m = shelf_load(&w->shelf, w->l.now);
    w->l.p = planner_create();
    lab_heartbeats(&w->l);
}

/* Starts placed jobs, ends finished ones, saves stopping ones. */
static bool serve_all(struct month *w)
{
    struct lab *l = &w->l;
    bool any = false;
    for (int64_t id = 1; id <= JOBS; id++) {
        const struct job *j = model_job(l->m, id);
        const struct attempt *a = j ? job_attempt(j) : NULL;
        if (!a)
            continue;
        int64_t did = l->now.wall.ms - w->began_ms[id];
        if (a->row.state == ATTEMPT_ASSIGNED) {
            lab_started(l, id);
            w->began_ms[id] = l->now.wall.ms;
        } else if (a->row.state == ATTEMPT_STOPPING) {
            lab_saved(l, id, a->row.sequence + 1, 1);
            lab_ended(l, id, END_EVICTED, 0);
            w->left_ms[id] -= did;
        } else if (did >= w->left_ms[id]) {
            lab_ended(l, id, END_SUCCEEDED, 0);
            w->n_done++;
        } else {
            continue;
        }
        any = true;
    }
    return any;
}

/* Until something is due, and a little longer: belayd may be late. */
static int64_t next_ms(const struct month *w, int64_t at_ms)
{
    const struct lab *l = &w->l;
    struct mono wake = plan_wake(l->p, l->m, l->now);
    int64_t ms = at_ms - l->now.wall.ms;
    if (mono_is_set(wake) && wake.ms - l->now.mono.ms < ms)
        ms = wake.ms - l->now.mono.ms;
    for (int64_t id = 1; id <= JOBS; id++) {
        const struct job *j = model_job(l->m, id);
        int64_t left =
            j && job_attempt(j) ? w->left_ms[id] - (l->now.wall.ms - w->began_ms[id]) : INT64_MAX;
        ms = left < ms ? left : ms;
    }
    return (ms > 0 ? ms : 0) + 1 + l->now.wall.ms % 5000;
}

/* A budget of $1000 per month against three times that load: 200 jobs of 15 hours at $1 per
 * hour. */
static void a_budget_against_three_times_its_load_over_fifty_restarts(void **state)
{
    (void)state;
    struct month w = {.b = monthly(1000, BUDGET_PARK)};
    struct lab *l = &w.l;
    int64_t restart_every = 98 * 24 * HOUR_MS / RESTARTS, restarted = NOV_1;
    int restarts = 0;
    double worst = 0;
    begin(l, &w.b, 1);
    for (int k = 0; k < NODES; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(l, name, 8);
    }
    for (int64_t k = 1; k <= JOBS; k++) {
        assert_int_equal(submit(l, k % 2 ? "ann" : "bob", 8, 0), k);
        w.left_ms[k] = 15 * HOUR_MS;
    }
    int64_t end = NOV_1 + 100 * 24 * HOUR_MS, spent_sum = 0;
    struct wall until = WALL_NONE;
    while (l->now.wall.ms < end) {
        do
            lab_plan(l);
        while (serve_all(&w));
        struct budget_view v = view(l, 0);
        if (wall_is_set(until) && v.until.ms != until.ms)
            w.months++;
        until = v.until;
        double over = (double)v.spent_uusd / (double)w.b.cap_uusd - 1;
        worst = over > worst ? over : worst;
        if (l->now.wall.ms - restarted >= restart_every && restarts < RESTARTS) {
            restart(&w);
            restarted = l->now.wall.ms;
            restarts++;
            continue;
        }
        lab_wait(l, next_ms(&w, restarts < RESTARTS ? restarted + restart_every : end));
    }
    keep(&w);
    for (int64_t k = 1; k <= JOBS; k++)
        spent_sum += w.shelf.jobs[k].cost_uusd;
    print_message("%zu jobs done, $%.2f spent over %d months, worst overshoot %.3f %%, notified "
                  "%d/%d/%d times, %d restarts\n",
        w.n_done, (double)spent_sum / 1e6, w.months + 1, 100 * worst, w.notified[0], w.notified[1],
        w.notified[2], restarts);
    for (int64_t k = 1; k <= JOBS; k++) {
        assert_int_equal(w.shelf.jobs[k].state, JOB_ENDED);
        assert_int_equal(w.shelf.jobs[k].lost_ms, 0);
    }
    assert_int_equal(restarts, RESTARTS);
    assert_int_equal(w.n_done, JOBS);
    assert_true(worst < 0.01);
    /* in November, December and January; the rest is done in February */
    assert_int_equal(w.notified[0], 3);
    assert_int_equal(w.notified[1], 3);
    assert_int_equal(w.notified[2], 3);
    shelf_deinit(&w.shelf);
    lab_deinit(l);
}

static void a_cap_that_is_raised_lets_those_go_on_that_were_parked(void **state)
{
    (void)state;
    struct month w = {.b = monthly(10, BUDGET_PARK)};
    struct lab *l = &w.l;
    begin(l, &w.b, 1);
    lab_join(l, "a", 8);
    int64_t job = submit(l, "ann", 8, 0);
    lab_plan(l);
    lab_started(l, job);
    run_for(l, 12 * HOUR_MS);
    assert_false(lab_runs(l, job));
    restart(&w);
    lab_plan(l);
    assert_false(lab_runs(l, job)); /* a restart does not add money */
    w.b.cap_uusd = 20 * USD;
    restart(&w);
    lab_plan(l);
    assert_true(lab_runs(l, job));
    keep(&w);
    assert_int_equal(w.notified[0], 1);
    run_for(l, 30 * 60000);
    keep(&w);
    assert_int_equal(w.notified[0], 2); /* half of 20 is a different amount */
    STR_COPY(w.b.user, "bob");          /* now it is another budget */
    restart(&w);
    lab_plan(l);
    assert_int_equal(view(l, 0).spent_uusd, 0);
    shelf_deinit(&w.shelf);
    lab_deinit(l);
}

static void months_and_days_are_those_of_the_zone(void **state)
{
    (void)state;
    struct zone_span spans[] = {{INT64_MIN, 3600}, {1800000000, 7200}}; /* 2027-01-15 */
    const struct time_zone z = {.name = "X", .n = 2, .spans = spans};
    struct budget_options b = monthly(1, BUDGET_ALERT);
    struct wall since, until;
    b.zone = &z;
    assert_true(budget_period_at(&b, (struct wall){NOV_1 - 1}, &since, &until));
    assert_int_equal(since.ms, NOV_1 - HOUR_MS);
    assert_int_equal(until.ms, DEC_1 - HOUR_MS);
    assert_true(budget_period_at(&b, (struct wall){1800000000000}, &since, &until));
    /* January began before the clock change */
    assert_int_equal(since.ms, 1798761600000 - HOUR_MS);
    assert_int_equal(until.ms, 1801440000000 - 2 * HOUR_MS);
    b.zone = &zone_utc;
    /* each day is in one month, and months are contiguous */
    for (int64_t day = 0; day < 365 * 200; day += 17) {
        struct wall at = {day * 24 * HOUR_MS + 5}, next, unused;
        assert_true(
            budget_period_at(&b, at, &since, &until) && since.ms <= at.ms && at.ms < until.ms);
        assert_true(budget_period_at(&b, until, &next, &unused) && next.ms == until.ms);
        assert_true(
            until.ms - since.ms >= 28 * 24 * HOUR_MS && until.ms - since.ms <= 31 * 24 * HOUR_MS);
    }
    b.period = BUDGET_DAY;
    assert_true(budget_period_at(&b, (struct wall){NOV_1 + 1}, &since, &until) &&
                since.ms == NOV_1 && until.ms == NOV_1 + 24 * HOUR_MS);
    b.period = BUDGET_HOUR;
    assert_true(budget_period_at(&b, (struct wall){NOV_1 + HOUR_MS}, &since, &until) &&
                since.ms == NOV_1 + HOUR_MS);
}

/* Regression: "it is expected to start in 45s" next to "budget has $0.02 left". */
static void no_start_is_promised_that_a_budget_does_not_pay_for(void **state)
{
    (void)state;
    struct budget_options b = monthly(3, BUDGET_STOP_NEW);
    b.cap_uusd += USD / 2; /* expected times are rounded up */
    struct forecast f;
    struct lab l;
    begin(&l, &b, 1);
    lab_join(&l, "n1", 4);
    lab_plan(&l);
    int64_t runs_now = submit(&l, "ann", 4, 2 * HOUR_MS), paid = submit(&l, "ann", 4, HOUR_MS),
            unpaid = submit(&l, "ann", 4, HOUR_MS);
    lab_plan(&l);
    assert_true(lab_runs(&l, runs_now));
    assert_true(core_forecast(l.m, l.now, paid, &f));
    assert_true(wall_is_set(f.median));
    /* the one before it uses the last dollar */
    assert_true(core_forecast(l.m, l.now, unpaid, &f));
    assert_false(wall_is_set(f.median) || wall_is_set(f.latest) || f.is_now);
    assert_non_null(strstr(f.why, "budget all"));
    int64_t large = submit(&l, "bob", 4, 20 * HOUR_MS); /* exceeds the whole budget */
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
        cmocka_unit_test(what_is_expected_is_set_aside_and_given_back),
        cmocka_unit_test(what_the_store_keeps_is_spent),
        cmocka_unit_test(what_is_to_be_read_is_set_aside_until_it_is),
        cmocka_unit_test(a_parked_job_that_never_read_gives_back_what_was_held_for_it),
        cmocka_unit_test(what_fits_passes_what_does_not_and_what_costs_nothing_runs_anyway),
        cmocka_unit_test(a_job_counts_where_all_that_is_said_matches),
        cmocka_unit_test(a_budget_of_a_pool_is_in_nobody_s_way_elsewhere),
        cmocka_unit_test(launches_are_for_what_can_be_paid),
        cmocka_unit_test(what_runs_is_saved_before_all_is_spent_and_goes_on_next_month),
        cmocka_unit_test(who_cannot_be_saved_is_not_stopped_and_is_paid_for),
        cmocka_unit_test(hours_and_windows_begin_anew),
        cmocka_unit_test(a_job_that_has_cost_what_it_may_is_parked_until_it_may_cost_more),
        cmocka_unit_test(a_job_waits_for_a_price_that_it_takes),
        cmocka_unit_test(a_budget_against_three_times_its_load_over_fifty_restarts),
        cmocka_unit_test(a_cap_that_is_raised_lets_those_go_on_that_were_parked),
        cmocka_unit_test(months_and_days_are_those_of_the_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
