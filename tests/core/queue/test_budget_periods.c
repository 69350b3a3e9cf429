/* SPDX-License-Identifier: Apache-2.0
 *
 * Periods of budgets: jobs that are parked when a cap is reached and resumed when more may be
 * spent.
 */
#include "tests/core/queue/spending.h"
#include "tests/core/shelf.h"

#include "base/str.h"
#include "scheduler/core/forecast/forecast.h"
#include "scheduler/core/model/changes.h"
#include <stdio.h>
#include <string.h>

static void running_jobs_are_saved_before_a_budget_is_used_up_and_continue_next_month(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(100, BUDGET_PARK);
    int64_t jobs[4];
    spending_begin(&l, &b, 1);
    for (int k = 0; k < 4; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(&l, name, 8);
        jobs[k] = spending_submit(&l, "ann", 8, 0);
    }
    lab_plan(&l);
    for (int k = 0; k < 4; k++)
        lab_started(&l, jobs[k]);
    spending_run_for(&l, 24 * HOUR_MS); /* $96 */
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, jobs[k]));
    spending_run_for(&l, 2 * HOUR_MS);
    for (int k = 0; k < 4; k++) {
        assert_false(lab_runs(&l, jobs[k]));
        assert_int_equal(model_job(l.m, jobs[k])->row.end, END_BUDGET);
        assert_int_equal(model_job(l.m, jobs[k])->row.lost_ms, 0);
    }
    struct budget_view v = spending_view(&l, 0);
    print_message("spent $%.4f of $100\n", (double)v.spent_uusd / 1e6);
    assert_true(v.is_closed && v.spent_uusd <= 100 * USD && v.spent_uusd > 99 * USD);
    assert_true(lab_has_reason(&l, jobs[0], "budget", "budget all is used up: $99.9"));
    assert_true(lab_has_reason(&l, jobs[0], "budget", " of $100.00 are spent in this month"));
    spending_run_until(&l, (struct wall){DEC_1 - 1});
    assert_false(lab_runs(&l, jobs[0]));
    spending_run_until(&l, (struct wall){DEC_1 + 1});
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, jobs[k]));
    assert_int_equal(spending_letters(&l, 50), 0); /* no recipient: there is no webhook */
    lab_deinit(&l);
}

/* A job that cannot be saved is not stopped. Its money stays reserved, and others are stopped
 * earlier. */
static void jobs_without_checkpoints_are_not_parked_but_charged(void **state)
{
    (void)state;
    struct lab l;
    struct budget_options b = spending_monthly(20, BUDGET_PARK);
    spending_begin(&l, &b, 1);
    lab_join(&l, "a", 8);
    lab_join(&l, "b", 8);
    struct job_row none = spending_job("ann", 8, 12 * HOUR_MS);
    none.spec.method = CKPT_NONE;
    int64_t stays = lab_submit(&l, &none), goes = spending_submit(&l, "ann", 8, 0), late;
    lab_plan(&l);
    lab_started(&l, stays);
    lab_started(&l, goes);
    late = lab_submit(&l, &none);
    spending_run_for(&l, 9 * HOUR_MS);
    assert_true(lab_runs(&l, stays));
    assert_false(lab_runs(&l, goes)); /* $8 for it, $12 for the other */
    assert_false(lab_runs(&l, late));
    lab_wait(&l, 3 * HOUR_MS);
    lab_ended(&l, stays, END_TIMEOUT, 0);
    lab_plan(&l);
    assert_true(spending_view(&l, 0).spent_uusd <= 20 * USD);
    assert_false(lab_runs(&l, late)); /* no job starts any more */
    lab_deinit(&l);
}

static void hours_and_windows_begin_anew(void **state)
{
    (void)state;
    struct lab l;
    const struct window night = {
        .name = "night", .days = 0x7f, .from_min = 20 * 60, .to_min = 6 * 60, .zone = &zone_utc};
    struct budget_options b[2] = {
        spending_monthly(3, BUDGET_PARK), spending_monthly(12, BUDGET_PARK)};
    b[0].period = BUDGET_HOUR;
    STR_COPY(b[0].user, "ann");
    STR_COPY(b[1].name, "night");
    STR_COPY(b[1].user, "bob");
    b[1].period = BUDGET_WINDOW;
    b[1].window = &night;
    spending_begin(&l, b, 2);
    int64_t anns[4], bobs[2];
    for (int k = 0; k < 6; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(&l, name, 8);
    }
    for (int k = 0; k < 4; k++)
        anns[k] = spending_submit(&l, "ann", 8, 0);
    for (int k = 0; k < 2; k++)
        bobs[k] = spending_submit(&l, "bob", 8, 0);
    lab_plan(&l);
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, anns[k]));
    spending_run_for(&l, 30 * 60000); /* at $4 per hour $3 last for 45 minutes */
    assert_true(lab_runs(&l, anns[0]));
    spending_run_for(&l, 20 * 60000);
    for (int k = 0; k < 4; k++)
        assert_false(lab_runs(&l, anns[k]));
    spending_run_for(&l, 11 * 60000);
    for (int k = 0; k < 4; k++)
        assert_true(lab_runs(&l, anns[k]));
    /* Night: at $2 per hour $12 are used up before 6. By day no cost counts. */
    assert_true(spending_view(&l, 1).is_open && lab_runs(&l, bobs[0]));
    spending_run_until(&l, (struct wall){NOV_1 + 5 * HOUR_MS + HOUR_MS / 2});
    assert_true(lab_runs(&l, bobs[0]));
    spending_run_until(&l, (struct wall){NOV_1 + 7 * HOUR_MS});
    assert_true(!spending_view(&l, 1).is_open && lab_runs(&l, bobs[0]));
    spending_run_until(&l, (struct wall){NOV_1 + 21 * HOUR_MS});
    assert_true(spending_view(&l, 1).is_open && lab_runs(&l, bobs[0]));
    assert_int_equal(spending_view(&l, 1).since.ms, NOV_1 + 20 * HOUR_MS);
    spending_run_until(&l, (struct wall){NOV_1 + 26 * HOUR_MS + 60000});
    assert_true(!lab_runs(&l, bobs[0]) && spending_view(&l, 1).is_closed);
    spending_run_until(&l, (struct wall){NOV_1 + 30 * HOUR_MS + 60000});
    assert_true(lab_runs(&l, bobs[0]));
    lab_deinit(&l);
}

static void a_job_at_its_own_cost_limit_is_parked_until_the_limit_is_raised(void **state)
{
    (void)state;
    struct lab l;
    spending_begin(&l, NULL, 0);
    lab_join(&l, "a", 8);
    struct job_row r = spending_job("ann", 8, 0);
    r.spec.max_uusd = 3 * USD;
    int64_t job = lab_submit(&l, &r);
    lab_plan(&l);
    lab_started(&l, job);
    spending_run_for(&l, 4 * HOUR_MS);
    assert_false(lab_runs(&l, job));
    int64_t cost = model_job(l.m, job)->row.cost_uusd;
    assert_true(cost <= 3 * USD && cost > 3 * USD - USD / 50);
    assert_true(lab_has_reason(&l, job, "max-usd",
        "of at most $3.00 (--max-usd): what is left does not pay for ten minutes at $1.00 an hour; "
        "belay update"));
    assert_true(lab_has_reason(&l, job, "max-usd", "max-usd=USD lets it continue"));
    struct forecast f;
    assert_true(core_forecast(l.m, l.now, job, &f));
    assert_false(wall_is_set(f.median)); /* unknown whether it will be spent */
    r.spec.max_uusd = 5 * USD;
    lab_apply(&l, (struct event){.type = EV_UPDATE,
                      .update = {.job = job, .fields = UPDATE_BIT(UPDATE_MAX_USD), .to = &r}});
    lab_plan(&l);
    assert_true(lab_runs(&l, job));
    lab_started(&l, job);
    r.spec.max_uusd = 4 * USD; /* while it runs */
    lab_apply(&l, (struct event){.type = EV_UPDATE,
                      .update = {.job = job, .fields = UPDATE_BIT(UPDATE_MAX_USD), .to = &r}});
    spending_run_for(&l, 4 * HOUR_MS);
    assert_false(lab_runs(&l, job));
    assert_true(model_job(l.m, job)->row.cost_uusd <= 4 * USD &&
                model_job(l.m, job)->row.cost_uusd > 4 * USD - USD / 25);
    struct job_row tiny = spending_job("ann", 8, 0);
    tiny.spec.max_uusd = 100;
    job = lab_submit(&l, &tiny);
    lab_plan(&l);
    assert_true(
        lab_has_reason(&l, job, "max-usd", "it has cost $0.00, of at most $0.0001 (--max-usd)"));
    r = spending_job("ann", 1, 0);
    r.spec.max_uusd = -1;
    lab_refused(&l, &r, "max_uusd: expected 0 to 1000000000000000, found -1");
    r.spec.max_uusd = USD;
    for (int k = 0; k < RETRY_KINDS; k++)
        r.spec.retries.n[k] = RETRIES_NEVER;
    lab_refused(
        &l, &r, "cannot have a cap of its own (max_usd): it would end when the cap is spent");
    lab_deinit(&l);
}

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
    struct month w = {.b = spending_monthly(1000, BUDGET_PARK)};
    struct lab *l = &w.l;
    int64_t restart_every = 98 * 24 * HOUR_MS / RESTARTS, restarted = NOV_1;
    int restarts = 0;
    double worst = 0;
    spending_begin(l, &w.b, 1);
    for (int k = 0; k < NODES; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(l, name, 8);
    }
    for (int64_t k = 1; k <= JOBS; k++) {
        assert_int_equal(spending_submit(l, k % 2 ? "ann" : "bob", 8, 0), k);
        w.left_ms[k] = 15 * HOUR_MS;
    }
    int64_t end = NOV_1 + 100 * 24 * HOUR_MS, spent_sum = 0;
    struct wall until = WALL_NONE;
    while (l->now.wall.ms < end) {
        do
            lab_plan(l);
        while (serve_all(&w));
        struct budget_view v = spending_view(l, 0);
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

static void parked_jobs_continue_when_the_cap_is_raised(void **state)
{
    (void)state;
    struct month w = {.b = spending_monthly(10, BUDGET_PARK)};
    struct lab *l = &w.l;
    spending_begin(l, &w.b, 1);
    lab_join(l, "a", 8);
    int64_t job = spending_submit(l, "ann", 8, 0);
    lab_plan(l);
    lab_started(l, job);
    spending_run_for(l, 12 * HOUR_MS);
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
    spending_run_for(l, 30 * 60000);
    keep(&w);
    assert_int_equal(w.notified[0], 2); /* half of 20 is a different amount */
    STR_COPY(w.b.user, "bob");          /* now it is another budget */
    restart(&w);
    lab_plan(l);
    assert_int_equal(spending_view(l, 0).spent_uusd, 0);
    shelf_deinit(&w.shelf);
    lab_deinit(l);
}

static void months_and_days_are_those_of_the_zone(void **state)
{
    (void)state;
    struct zone_span spans[] = {{INT64_MIN, 3600}, {1800000000, 7200}}; /* 2027-01-15 */
    const struct time_zone z = {.name = "X", .n = 2, .spans = spans};
    struct budget_options b = spending_monthly(1, BUDGET_ALERT);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_jobs_are_saved_before_a_budget_is_used_up_and_continue_next_month),
        cmocka_unit_test(jobs_without_checkpoints_are_not_parked_but_charged),
        cmocka_unit_test(hours_and_windows_begin_anew),
        cmocka_unit_test(a_job_at_its_own_cost_limit_is_parked_until_the_limit_is_raised),
        cmocka_unit_test(a_budget_against_three_times_its_load_over_fifty_restarts),
        cmocka_unit_test(parked_jobs_continue_when_the_cap_is_raised),
        cmocka_unit_test(months_and_days_are_those_of_the_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
