/* SPDX-License-Identifier: Apache-2.0
 *
 * Forecasts of starts, compared with the actual starts.
 */
#include "tests/core/lab.h"

#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/forecast/job_runtimes.h"
#include "scheduler/core/forecast/estimate.h"
#include "scheduler/core/placement/maintenance.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)
#define USERS 5
#define JOBS_MAX 2000
#define CPUS 8

/* A cluster in virtual time, without the lab's checks, which examine everything after every
 * event. */
struct town {
    struct model *m;
    struct planner *p;
    struct stamp now;
    struct prng prng;
    int64_t runs_ms[JOBS_MAX]; /* actual run time, by job number */
    int64_t started_ms[JOBS_MAX];
    int64_t n_jobs;
};

static int64_t apply(struct town *t, struct event ev)
{
    struct outcome out = {0};
    struct err e;
    ev.now = t->now;
    if (core_apply(t->m, &ev, &out, &e) != 0)
        fail_msg("%s: %s", event_type_names[ev.type], e.text);
    return out.id;
}

static void decide(struct town *t)
{
    struct changes c = {0};
    struct event ev;
    while (plan_next(t->p, t->m, t->now, &ev)) {
        apply(t, ev);
        if (ev.type == EV_PLACE)
            t->started_ms[ev.place.job] = t->now.wall.ms;
    }
    model_take_changes(t->m, &c);
    changes_deinit(&c);
}

static const struct attempt *next_end(const struct town *t, int64_t *ret_at)
{
    const struct attempt *first = NULL;
    LIST_FOREACH (model_nodes(t->m), ln) {
        const struct node *n = LIST_ENTRY(ln, struct node, in_all);
        LIST_FOREACH (&n->attempts, la) {
            const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
            int64_t at = a->row.assigned_at.ms + t->runs_ms[a->row.job];
            if (!first || at < *ret_at) {
                first = a;
                *ret_at = at;
            }
        }
    }
    return first;
}

static void go_to(struct town *t, int64_t at_ms)
{
    if (at_ms <= t->now.wall.ms)
        return;
    t->now.mono.ms += at_ms - t->now.wall.ms;
    t->now.wall.ms = at_ms;
}

/* Ends all jobs with the earliest end. False: none runs. */
static bool one_end(struct town *t)
{
    int64_t at;
    const struct attempt *a = next_end(t, &at);
    if (!a)
        return false;
    const struct job *j = a->job;
    go_to(t, at);
    for (struct link *l = list_first(&j->ranks), *next; l; l = next) {
        const struct attempt *r = LIST_ENTRY(l, struct attempt, in_job);
        next = list_next(&j->ranks, l);
        bool whole =
            t->runs_ms[r->row.job] >= j->row.spec.time_limit_ms && j->row.spec.time_limit_ms > 0;
        apply(t, (struct event){.type = EV_ATTEMPT_ENDED,
                     .ended = {.job = r->row.job,
                         .attempt = r->row.attempt,
                         .node = r->row.node,
                         .end = whole ? END_TIMEOUT : END_SUCCEEDED}});
    }
    decide(t);
    return true;
}

static const struct queue_policy first_come = {
    .half_life_ms = 7 * 24 * HOUR_MS, .age_max_ms = 60LL * 24 * HOUR_MS, .reserve = 8};

static void town_init(struct town *t, uint64_t seed, int nodes, const struct queue_policy *policy)
{
    struct model_options o = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 100000 * HOUR_MS, .policy = policy};
    struct pool_row pool = {.name = "own"};
    *t = (struct town){.m = model_create(&o),
        .p = planner_create(),
        .now = {.wall = {1700000000000}, .mono = {1}}};
    prng_init(&t->prng, seed);
    apply(t, (struct event){.type = EV_POOL, .pool = &pool});
    for (int k = 0; k < nodes; k++) {
        struct node_row n = {.pool = "own", .total = {CPUS, 0, 65536}};
        snprintf(n.name, sizeof n.name, "n%d", k);
        snprintf(n.key_hash, sizeof n.key_hash, "k%d", k);
        apply(t, (struct event){.type = EV_JOIN, .join = {.node = &n}});
    }
}

static void town_deinit(struct town *t)
{
    planner_destroy(t->p);
    model_destroy(t->m);
}

/* Users have typical fractions of their limits. One job in ten reaches its limit. */
static int64_t submit(struct town *t)
{
    static const int32_t cpus[] = {1, 1, 2, 4, CPUS};
    static const int64_t limits[] = {10, 20, 30, 60, 120, 240};
    struct job_row r = {.spec.name = "job",
        .spec.nodes = 1,
        .spec.ckpt_signal = SIGUSR1,
        .spec.ckpt_keep = 1,
        .spec.retries.n[RETRY_TIMEOUT] = RETRIES_NEVER};
    int user = (int)prng_below(&t->prng, USERS);
    double from = 0.15 * user, part = from + 0.3 * prng_unit(&t->prng);
    r.spec.need.cpus = cpus[prng_below(&t->prng, sizeof cpus / sizeof *cpus)];
    r.spec.need.memory_mib = 100;
    if (r.spec.need.cpus == CPUS && prng_below(&t->prng, 3) == 0)
        r.spec.nodes = 2;
    r.spec.time_limit_ms = MINUTE_MS * limits[prng_below(&t->prng, sizeof limits / sizeof *limits)];
    snprintf(r.user, sizeof r.user, "user%d", user);
    int64_t job = apply(t, (struct event){.type = EV_SUBMIT, .submit.job = &r});
    assert_true(job < JOBS_MAX);
    t->runs_ms[job] = prng_chance(&t->prng, 0.1)
                          ? r.spec.time_limit_ms
                          : (int64_t)(part * (double)r.spec.time_limit_ms) + 1;
    t->n_jobs = job;
    return job;
}

struct score {
    int64_t n, in_time, before_median, unknown;
    double error, wait; /* sums: error of the median; actual wait */
};

static void one_town(uint64_t seed, const struct queue_policy *policy, struct score *s)
{
    static struct forecast predicted[JOBS_MAX];
    struct town t;
    town_init(&t, seed, 6, policy);
    for (int k = 0; k < 250; k++) { /* training */
        submit(&t);
        decide(&t);
        if (k >= 50)
            one_end(&t);
    }
    for (int k = 0; k < 60; k++)
        submit(&t);
    decide(&t);
    int64_t now_ms = t.now.wall.ms;
    for (int64_t job = 1; job <= t.n_jobs; job++) {
        const struct job *j = model_job(t.m, job);
        predicted[job] = (struct forecast){0};
        if (j && !job_attempt(j))
            assert_true(core_forecast(t.m, t.now, job, &predicted[job]));
    }
    while (one_end(&t))
        ;
    for (int64_t job = 1; job <= t.n_jobs; job++) {
        const struct forecast *f = &predicted[job];
        if (f->median.ms == 0)
            continue;
        assert_true(t.started_ms[job] > 0);
        s->n++;
        if (!wall_is_set(f->median) || !wall_is_set(f->latest)) {
            s->unknown++;
            continue;
        }
        s->in_time += t.started_ms[job] <= f->latest.ms;
        s->before_median += t.started_ms[job] <= f->median.ms;
        s->error += (double)(f->median.ms - t.started_ms[job]);
        s->wait += (double)(t.started_ms[job] - now_ms);
    }
    town_deinit(&t);
}

static struct score towns(const struct queue_policy *policy, int n)
{
    struct score s = {0};
    for (int k = 0; k < n; k++)
        one_town(1000 + (uint64_t)k, policy, &s);
    print_message("%" PRId64 " jobs: %.1f %% in time, %.1f %% before the median, which is off by "
                  "%+.1f %% of the wait; %" PRId64 " unknown\n",
        s.n, 100.0 * (double)s.in_time / (double)s.n, 100.0 * (double)s.before_median / (double)s.n,
        100 * s.error / s.wait, s.unknown);
    return s;
}

static void starts_happen_as_forecast(void **state)
{
    (void)state;
    struct score s = towns(&first_come, 12);
    assert_true(s.n > 500);
    assert_int_equal(s.unknown, 0);
    assert_true(s.in_time >= s.n * 90 / 100);
    assert_true(s.before_median >= s.n * 40 / 100 && s.before_median <= s.n * 60 / 100);
    assert_true(s.error < 0.1 * s.wait && s.error > -0.1 * s.wait);
}

static struct forecast predicted(const struct lab *l, int64_t job)
{
    struct forecast f;
    assert_true(core_forecast(l->m, l->now, job, &f));
    return f;
}

static void unknown_starts_are_reported_as_unknown(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(4), held = lab_job(1);
    struct forecast f;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    lab_submit(&l, &r); /* without a limit */
    lab_plan(&l);
    int64_t job = lab_submit(&l, &r), large = lab_submit_cpus(&l, 9);
    held.hold = HOLD_USER;
    int64_t waits = lab_submit(&l, &held);
    lab_plan(&l);
    f = predicted(&l, job);
    assert_true(wall_is_set(f.median) && !wall_is_set(f.latest));
    assert_string_equal(f.why, "a job before it has no time limit");
    f = predicted(&l, large);
    assert_false(wall_is_set(f.median));
    assert_string_equal(f.why, "no existing or launchable machine fits");
    assert_string_equal(predicted(&l, waits).why, "it is held");
    assert_false(core_forecast(l.m, l.now, 1, &f)); /* it runs */
    assert_false(core_forecast(l.m, l.now, 4711, &f));
    lab_deinit(&l);
}

static void a_machine_to_come_takes_as_long_as_machines_take(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    int64_t job = lab_submit_cpus(&l, 4), second = lab_submit_cpus(&l, 4);
    lab_plan(&l);
    struct forecast f = predicted(&l, job);
    assert_int_equal(f.node, CORE_ID_NONE);
    assert_string_equal(model_offer(l.m, f.offer)->row.type, "m5");
    assert_int_equal(f.median.ms, l.now.wall.ms + 90000); /* the prior */
    assert_int_equal(f.latest.ms, l.now.wall.ms + 180000);
    f = predicted(&l, second);
    assert_true(f.median.ms > l.now.wall.ms + 90000); /* after the first end */
    assert_false(wall_is_set(f.latest));
    lab_deinit(&l);
}

static void a_job_starts_no_earlier_than_its_begin_time(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(1), runs = lab_job(4);
    lab_init(&l);
    lab_join(&l, "n1", 4);
    r.spec.begin_at.ms = l.now.wall.ms + HOUR_MS;
    int64_t job = lab_submit(&l, &r);
    assert_int_equal(predicted(&l, job).median.ms, r.spec.begin_at.ms);
    runs.spec.time_limit_ms = 3 * HOUR_MS;
    lab_submit(&l, &runs);
    lab_plan(&l);
    assert_int_equal(predicted(&l, job).latest.ms, l.now.wall.ms + 3 * HOUR_MS);
    lab_deinit(&l);
}

static void a_limit_is_waited_for(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy policy = queue_policy_defaults;
    struct job_row r = lab_job(1);
    for (int k = 0; k < LIMIT_KINDS; k++)
        policy.each_user.max[k] = k == LIMIT_RUNNING ? 1 : LIMIT_NONE;
    policy.each_user.is_set[LIMIT_RUNNING] = true;
    lab_init_policy(&l, &policy);
    lab_join(&l, "n1", 4);
    r.spec.time_limit_ms = HOUR_MS;
    lab_submit(&l, &r);
    lab_submit(&l, &r);
    int64_t third = lab_submit(&l, &r);
    lab_plan(&l);
    int64_t wait_ms = predicted(&l, third).latest.ms - l.now.wall.ms;
    /* demand classes round time limits up */
    assert_in_range(wait_ms, 2 * HOUR_MS, 2 * HOUR_MS + HOUR_MS / 8);
    lab_deinit(&l);
}

static int64_t submit_unsavable(struct lab *l, int64_t limit_ms)
{
    struct job_row row = lab_job(1);
    row.spec.method = CKPT_NONE;
    row.spec.time_limit_ms = limit_ms;
    return lab_submit(l, &row);
}

static void reserve_for_maintenance(struct lab *l, bool is_weekly)
{
    struct maintenance_row r = {
        .from_at = {l->now.wall.ms + HOUR_MS}, .for_ms = 2 * HOUR_MS, .is_weekly = is_weekly};
    STR_COPY(r.name, "disks");
    STR_COPY(r.nodes, "n1");
    STR_COPY(r.zone, ZONE_UTC);
    lab_apply(l, (struct event){.type = EV_RESERVATION_ADD, .reservation = &r});
}

static void what_maintenance_would_stop_starts_after_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, &queue_policy_defaults, 0);
    lab_join(&l, "n1", 4);
    reserve_for_maintenance(&l, false);
    const int64_t end_ms = l.now.wall.ms + 3 * HOUR_MS;
    int64_t job = submit_unsavable(&l, 2 * HOUR_MS), none = submit_unsavable(&l, 0),
            before = submit_unsavable(&l, HOUR_MS / 2);
    assert_int_equal(predicted(&l, job).median.ms, end_ms);
    assert_int_equal(predicted(&l, job).latest.ms, end_ms);
    assert_int_equal(predicted(&l, none).median.ms, end_ms);
    assert_true(predicted(&l, before).is_now);
    assert_true(lab_has_reason(&l, job, "maintenance", ", so it can begin there at "));
    lab_wait(&l, HOUR_MS); /* it has begun, and no node takes work */
    lab_plan(&l);
    assert_int_equal(core_maintenance(l.m, 0)->row.state, MAINTENANCE_OPEN);
    assert_int_equal(predicted(&l, job).median.ms, end_ms);
    lab_deinit(&l);
}

/* It fits before the start only if what runs there now ends early enough. */
static void what_runs_until_maintenance_delays_a_job_beyond_it(void **state)
{
    (void)state;
    struct lab l;
    struct job_row runs = lab_job(4);
    lab_init(&l);
    lab_join(&l, "n1", 4);
    runs.spec.time_limit_ms = HOUR_MS / 2;
    lab_submit(&l, &runs);
    lab_plan(&l);
    reserve_for_maintenance(&l, false);
    const int64_t end_ms = l.now.wall.ms + 3 * HOUR_MS;
    int64_t fits = submit_unsavable(&l, HOUR_MS / 4), job = submit_unsavable(&l, HOUR_MS * 3 / 4);
    assert_int_equal(predicted(&l, fits).latest.ms, l.now.wall.ms + HOUR_MS / 2);
    assert_int_equal(predicted(&l, job).latest.ms, end_ms);
    lab_deinit(&l);
}

static void what_never_fits_between_two_weeks_has_no_start(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    reserve_for_maintenance(&l, true);
    int64_t never = submit_unsavable(&l, 7 * 24 * HOUR_MS);
    assert_false(wall_is_set(predicted(&l, never).median));
    assert_int_equal(
        predicted(&l, submit_unsavable(&l, 24 * HOUR_MS)).median.ms, l.now.wall.ms + 3 * HOUR_MS);
    lab_deinit(&l);
}

static int estimate(struct lab *l, const struct job_row *row, struct estimate *ret_estimate)
{
    struct event ev = {.type = EV_SUBMIT, .now = l->now, .submit.job = row};
    return core_estimate(l->m, &ev, ret_estimate, &l->e);
}

/* After a restart, or as jobs end. */
static void earlier_runs_predict_the_run_time(void **state)
{
    (void)state;
    static struct estimate t;
    struct lab l;
    struct job_row r = lab_job(1), ended;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    r.spec.time_limit_ms = 4 * HOUR_MS;
    assert_int_equal(estimate(&l, &r, &t), 0);
    assert_int_equal(t.expected_ms, 2 * HOUR_MS); /* unknown */
    ended = r;
    ended.spec.time_limit_ms = HOUR_MS;
    ended.end = END_SUCCEEDED;
    for (int k = 0; k < 3; k++)
        model_load_runtime(l.m, &ended, HOUR_MS / 4);
    ended.end = END_NODE_LOST; /* not representative */
    model_load_runtime(l.m, &ended, 1);
    assert_int_equal(estimate(&l, &r, &t), 0);
    assert_int_equal(t.expected_ms, HOUR_MS);
    assert_int_equal(t.least_ms, HOUR_MS);
    assert_int_equal(t.most_ms, 4 * HOUR_MS);
    STR_COPY(r.spec.name, "other");
    assert_int_equal(estimate(&l, &r, &t), 0);
    assert_int_equal(t.expected_ms, 2 * HOUR_MS); /* three are too few for other jobs */
    lab_deinit(&l);
}

/* In another place than its input, the transfer is part of the estimated cost, once per task. */
static void the_cost_of_reading_the_input_is_estimated(void **state)
{
    (void)state;
    static struct estimate t;
    static const struct ranges tasks = {1, {{0, 9, 1}}};
    struct lab l;
    struct job_row r = lab_job(4);
    const struct job_texts texts = {.constraints = "input=gcp/us-central1:150323855360"},
                           none = {0};
    struct event ev = {.type = EV_SUBMIT, .submit = {.job = &r, .texts = &texts}};
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5", 4); /* of aws */
    r.spec.time_limit_ms = 2 * HOUR_MS;
    ev.now = l.now;
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_int_equal(t.input_uusd, 140 * 120000);
    assert_int_equal(t.most_uusd >= 2 * t.uusd_h + t.input_uusd && t.least_uusd >= t.input_uusd &&
                         t.expected_uusd > t.input_uusd,
        true);
    int64_t with = t.expected_uusd, near;
    ev.submit.texts = &none;
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    near = t.expected_uusd;
    /* expected reclaims read it again */
    assert_true(with > near + 140 * 120000);
    ev.submit.texts = &texts;
    ev.submit.tasks = &tasks;
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_int_equal(t.input_uusd, 10 * 140 * 120000);
    struct forecast f;
    int64_t id = lab_submit_asking(&l, &r, texts.constraints); /* no capacity yet */
    assert_true(core_forecast(l.m, l.now, id, &f));
    assert_int_equal(f.input_uusd, 140 * 120000);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = id});
    lab_join(&l, "here", 4); /* reading is free there */
    ev.submit.tasks = NULL;
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_int_equal(t.input_uusd, 0);
    lab_deinit(&l);
}

static void a_submit_can_be_asked_about(void **state)
{
    (void)state;
    static struct estimate t;
    struct lab l;
    struct job_row r = lab_job(2);
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4);
    r.spec.time_limit_ms = 2 * HOUR_MS;
    assert_int_equal(estimate(&l, &r, &t), 0);
    assert_int_equal(t.job, 1);
    assert_true(t.start.is_now);
    assert_int_equal(t.start.node, node);
    assert_int_equal(t.n_reasons, 0);
    assert_int_equal(t.uusd_h, 250000); /* half a node at $0.50 */
    assert_int_equal(t.most_uusd, 500000);
    assert_int_equal(t.expected_uusd, 250000);
    struct model_counts c;
    model_counts(l.m, &c);
    assert_int_equal(c.pending + c.shapes, 0);
    struct job_row whole = lab_job(4);
    whole.spec.time_limit_ms = HOUR_MS;
    lab_submit(&l, &whole);
    lab_plan(&l);
    assert_int_equal(estimate(&l, &r, &t), 0);
    assert_false(t.start.is_now);
    assert_int_equal(t.start.latest.ms, l.now.wall.ms + HOUR_MS);
    assert_true(t.n_reasons > 0);
    r.spec.need.cpus = 0;
    assert_int_equal(estimate(&l, &r, &t), ERR_INVALID);
    lab_deinit(&l);
}

/* As for a submitted job: with depends_any the first satisfied dependency suffices. */
static void what_a_submit_would_wait_for_is_asked_about_too(void **state)
{
    (void)state;
    static struct estimate t;
    struct lab l;
    struct job_row r = lab_job(1);
    lab_init(&l);
    lab_join(&l, "n1", 4);
    r.spec.time_limit_ms = HOUR_MS;
    int64_t runs = lab_submit(&l, &r);
    lab_plan(&l);
    r.hold = HOLD_USER;
    int64_t held = lab_submit(&l, &r);
    r.hold = HOLD_NONE;
    struct depend_ask on[] = {
        {.kind = DEPEND_AFTERANY, .on = runs}, {.kind = DEPEND_AFTERANY, .on = held}};
    struct event ev = {
        .type = EV_SUBMIT, .now = l.now, .submit = {.job = &r, .depends = on, .n_depends = 2}};
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_non_null(strstr(t.start.why, "which has not started"));
    r.spec.depends_any = true;
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_string_equal(t.start.why, "");
    assert_int_equal(t.start.latest.ms, l.now.wall.ms + HOUR_MS);
    /* never */
    on[0] = (struct depend_ask){
        .kind = DEPEND_AFTERNOTOK, .on = 900, .has_ended = true, .end = END_SUCCEEDED};
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_non_null(strstr(t.start.why, "which has not started"));
    on[0].kind = DEPEND_AFTEROK;
    assert_int_equal(core_estimate(l.m, &ev, &t, &l.e), 0);
    assert_true(t.start.is_now);
    lab_deinit(&l);
}

static void the_usual_run_time_is_the_median_of_the_last_of_that_name(void **state)
{
    (void)state;
    struct lab l;
    struct job_row ended = lab_job(1);
    lab_init(&l);
    assert_int_equal(runtimes_median(NULL), 0);
    assert_null(runtimes_of_name(l.m, ended.user, ended.spec.name));
    ended.end = END_SUCCEEDED;
    static const int64_t minutes[] = {50, 10, 40, 20, 30};
    for (size_t k = 0; k < 5; k++)
        model_load_runtime(l.m, &ended, minutes[k] * 60000);
    assert_int_equal(
        runtimes_median(runtimes_of_name(l.m, ended.user, ended.spec.name)), 30 * 60000);
    assert_null(runtimes_of_name(l.m, ended.user, "other"));
    assert_null(runtimes_of_name(l.m, "other", ended.spec.name));
    for (int k = 0; k < RUNTIMES_KEPT; k++) /* the old ones are forgotten */
        model_load_runtime(l.m, &ended, HOUR_MS);
    assert_int_equal(runtimes_median(runtimes_of_name(l.m, ended.user, ended.spec.name)), HOUR_MS);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_run_time_is_the_median_of_the_last_of_that_name),
        cmocka_unit_test(starts_happen_as_forecast),
        cmocka_unit_test(unknown_starts_are_reported_as_unknown),
        cmocka_unit_test(a_machine_to_come_takes_as_long_as_machines_take),
        cmocka_unit_test(a_job_starts_no_earlier_than_its_begin_time),
        cmocka_unit_test(a_limit_is_waited_for),
        cmocka_unit_test(what_maintenance_would_stop_starts_after_it),
        cmocka_unit_test(what_runs_until_maintenance_delays_a_job_beyond_it),
        cmocka_unit_test(what_never_fits_between_two_weeks_has_no_start),
        cmocka_unit_test(earlier_runs_predict_the_run_time),
        cmocka_unit_test(the_cost_of_reading_the_input_is_estimated),
        cmocka_unit_test(a_submit_can_be_asked_about),
        cmocka_unit_test(what_a_submit_would_wait_for_is_asked_about_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
