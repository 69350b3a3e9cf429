/* SPDX-License-Identifier: Apache-2.0
 *
 * Quotas of teams: a team gets its quota by preemption of borrowing jobs, of those that lose least
 * and were not preempted recently; and no job is preempted in vain.
 */
#include "base/str.h"
#include "scheduler/core/planner.h"
#include "tests/core/lab.h"
#include "tests/core/shelf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

static struct policy_team teams[] = {{.name = "red", .shares = 1, .quota_mcpu = 8000},
    {.name = "blue", .shares = 1, .quota_mcpu = 8000}, {.name = "grey", .shares = 1}};

static struct queue_policy options(void)
{
    struct queue_policy o = queue_policy_defaults;
    o.gib_mcpu = 0;
    o.teams = teams;
    o.n_teams = sizeof teams / sizeof teams[0];
    return o;
}

static void begin(struct lab *l, const struct queue_policy *policy, int n_nodes, int32_t cpus)
{
    struct model_options o = {
        .cluster_uid = "0123456789abcdef", .lease_ms = 1000 * 24 * HOUR_MS, .policy = policy};
    struct pool_row base = {.name = "base"};
    *l = (struct lab){.m = model_create(&o),
        .p = planner_create(),
        .now = {.wall = {1700000000000}, .mono = {5000}}};
    lab_apply(l, (struct event){.type = EV_POOL, .pool = &base});
    for (int k = 0; k < n_nodes; k++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", k);
        lab_join(l, name, cpus);
    }
}

static struct job_row job_of(const char *team, int32_t cpus)
{
    struct job_row r = lab_job(cpus);
    STR_COPY(r.spec.team, team);
    STR_COPY(r.user, team);
    return r;
}

static int64_t submit(struct lab *l, const char *team, int32_t cpus)
{
    struct job_row r = job_of(team, cpus);
    return lab_submit(l, &r);
}

static bool is_evicted(const struct lab *l, int64_t job)
{
    const struct attempt *a = job_attempt(model_job(l->m, job));
    return a && a->row.state == ATTEMPT_STOPPING && a->row.stop_reason == END_EVICTED;
}

/* The agent has saved and stopped it. */
static void gone(struct lab *l, int64_t job)
{
    const struct job *j = model_job(l->m, job);
    assert_true(is_evicted(l, job) && job_attempt(j)->row.save_first);
    while (job_attempt(j))
        lab_ended(l, job, END_EVICTED, 0);
    assert_int_equal(j->row.state, JOB_PENDING);
}

static void unused_quota_is_lent_and_reclaimed(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    int64_t reds[4];
    begin(&l, &o, 4, 4);
    for (int k = 0; k < 4; k++)
        reds[k] = submit(&l, "red", 4);
    lab_plan(&l);
    for (int k = 0; k < 4; k++) {
        assert_true(lab_runs(&l, reds[k])); /* twice red's quota */
        lab_started(&l, reds[k]);
        lab_wait(&l, MINUTE_MS);
    }
    lab_saved(&l, reds[1], 1, 10);
    lab_take(&l);
    int64_t blue = submit(&l, "blue", 4);
    lab_plan(&l);
    assert_true(is_evicted(&l, reds[1])); /* it has just saved */
    for (int k = 0; k < 4; k++)
        assert_true(k == 1 || !is_evicted(&l, reds[k]));
    lab_take(&l);
    assert_non_null(strstr(lab_history(&l, "reclaim")->text, "team blue claims its quota"));
    assert_true(
        lab_has_reason(&l, blue, "reclaim", "1 job beyond a quota is being saved and stopped"));
    int64_t another = submit(&l, "red", 4); /* it must not take the place */
    gone(&l, reds[1]);
    assert_int_equal(lab_plan(&l), 1);
    assert_true(lab_runs(&l, blue));
    assert_false(lab_runs(&l, another) || lab_runs(&l, reds[1]));
    lab_ended(&l, blue, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, reds[1])); /* at its old position in the queue; it resumes */
    lab_check_wake(&l);
    lab_deinit(&l);
}

/* Order: the team furthest above its quota, then jobs that can save, then the smallest loss. */
static void the_job_that_loses_least_is_preempted(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    struct job_row none = job_of("grey", 4);
    begin(&l, &o, 6, 4);
    none.spec.method = CKPT_NONE;
    int64_t cannot = lab_submit(&l, &none);
    lab_plan(&l);
    int64_t reds[3], greys[2];
    for (int k = 0; k < 3; k++)
        reds[k] = submit(&l, "red", 4);
    for (int k = 0; k < 2; k++)
        greys[k] = submit(&l, "grey", 4);
    lab_plan(&l);
    lab_wait(&l, HOUR_MS);
    for (int k = 0; k < 2; k++)
        lab_started(&l, greys[k]);
    lab_wait(&l, HOUR_MS);
    lab_started(&l, cannot);
    for (int k = 0; k < 3; k++)
        lab_started(&l, reds[k]);
    lab_saved(&l, greys[1], 1, 10);
    lab_wait(&l, MINUTE_MS);
    int64_t first = submit(&l, "blue", 4);
    lab_plan(&l); /* grey has 12 cpus beyond its quota, red 4 */
    assert_true(is_evicted(&l, greys[1]));
    gone(&l, greys[1]);
    lab_plan(&l);
    assert_true(lab_runs(&l, first));
    int64_t second = submit(&l, "blue", 4);
    lab_plan(&l);
    /* two hours of work, but the other could not save at all */
    assert_true(is_evicted(&l, greys[0]));
    assert_false(is_evicted(&l, cannot));
    gone(&l, greys[0]);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

static void no_job_is_preempted_for_one_that_could_not_start_or_has_no_quota(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    begin(&l, &o, 3, 4);
    for (int k = 0; k < 3; k++)
        submit(&l, "red", 4);
    lab_plan(&l);
    submit(&l, "blue", 6);                /* no node is this large */
    int64_t grey = submit(&l, "grey", 4); /* has no quota */
    struct job_row gang = job_of("blue", 4);
    gang.spec.nodes = gang.spec.nodes_min = 3; /* 12 cpus, of 8 */
    lab_submit(&l, &gang);
    submit(&l, "red", 1); /* its own team's */
    lab_plan(&l);
    for (int64_t j = 1; j <= 3; j++)
        assert_false(is_evicted(&l, j));
    assert_true(lab_has_reason(
        &l, grey, "quota", "team grey has no quota of its own; it uses spare capacity"));
    lab_deinit(&l);
}

/* Red's quota covers two of its three: only one is preempted, for any demand. */
static void jobs_within_a_quota_are_not_preempted(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    begin(&l, &o, 3, 4);
    int64_t reds[3], blues[3];
    for (int k = 0; k < 3; k++)
        reds[k] = submit(&l, "red", 4);
    lab_plan(&l);
    for (int k = 0; k < 3; k++)
        blues[k] = submit(&l, "blue", 4);
    lab_plan(&l);
    int n = 0;
    for (int k = 0; k < 3; k++)
        n += is_evicted(&l, reds[k]);
    assert_int_equal(n, 1);
    for (int k = 0; k < 3; k++)
        if (is_evicted(&l, reds[k]))
            gone(&l, reds[k]);
    lab_plan(&l);
    assert_true(lab_runs(&l, blues[0]));
    for (int k = 0; k < 3; k++)
        assert_true(!lab_runs(&l, reds[k]) || !is_evicted(&l, reds[k]));
    lab_deinit(&l);
}

/* A node with two small jobs, of which one suffices; and one with a large job that has less to lose
 * than both together. */
static void no_more_jobs_are_preempted_than_needed(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    begin(&l, &o, 1, 8);
    int64_t small[4];
    for (int k = 0; k < 4; k++)
        small[k] = submit(&l, "grey", 2);
    lab_plan(&l);
    for (int k = 0; k < 4; k++) {
        lab_started(&l, small[k]);
        lab_wait(&l, MINUTE_MS);
    }
    submit(&l, "blue", 3);
    lab_plan(&l);
    assert_true(!is_evicted(&l, small[0]) && !is_evicted(&l, small[1]));
    assert_true(is_evicted(&l, small[2]) && is_evicted(&l, small[3])); /* the youngest */
    int64_t another = submit(&l, "blue", 1);                           /* then it fits next to it */
    lab_plan(&l);
    assert_true(!is_evicted(&l, small[0]) && !is_evicted(&l, small[1]));
    gone(&l, small[2]);
    gone(&l, small[3]);
    lab_plan(&l);
    assert_true(lab_runs(&l, another));
    lab_deinit(&l);
}

static void preemption_frees_capacity_for_a_whole_gang_or_not_at_all(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    struct job_row gang = job_of("blue", 4), other = job_of("grey", 2);
    begin(&l, &o, 4, 4);
    other.spec.nodes = other.spec.nodes_min = 2;
    int64_t pair = lab_submit(&l, &other), whole[3];
    for (int k = 0; k < 2; k++)
        whole[k] = submit(&l, "grey", 4);
    lab_plan(&l);
    gang.spec.nodes = gang.spec.nodes_min = 2;
    int64_t blue = lab_submit(&l, &gang);
    lab_plan(&l);
    assert_true(is_evicted(&l, pair) != (is_evicted(&l, whole[0]) && is_evicted(&l, whole[1])));
    if (is_evicted(&l, pair)) {
        gone(&l, pair);
    } else {
        gone(&l, whole[0]);
        assert_false(lab_runs(&l, blue));
        gone(&l, whole[1]);
    }
    lab_plan(&l);
    assert_true(lab_runs(&l, blue));
    assert_int_equal(model_job(l.m, blue)->row.ranks, 2);
    lab_deinit(&l);
}

/* Jobs within a quota start before borrowing ones, so that none is started only to be stopped. */
static void jobs_within_their_quota_are_placed_first(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    begin(&l, &o, 2, 4);
    int64_t reds[6];
    for (int k = 0; k < 6; k++)
        reds[k] = submit(&l, "red", 4);
    lab_wait(&l, HOUR_MS);
    int64_t blue = submit(&l, "blue", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, reds[0]) && lab_runs(&l, reds[1])); /* its quota */
    lab_join(&l, "more", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, blue));
    lab_deinit(&l);
}

/* Two teams always want more than their quotas, on a cluster of exactly both: no job is preempted
 * more than once in 15 minutes, and rarely at all. */
static void two_teams_do_not_preempt_each_other_in_turn(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    int64_t evictions[64] = {0}, last[64] = {0}, all = 0, n = 0;
    begin(&l, &o, 4, 4);
    for (; n < 24;)
        n = submit(&l, n % 2 ? "red" : "blue", 1 + (int32_t)(n % 4));
    for (int minute = 0; minute < 240; minute++) {
        lab_plan(&l);
        for (int64_t j = 1; j <= n; j++) {
            const struct attempt *a = model_job(l.m, j) ? job_attempt(model_job(l.m, j)) : NULL;
            if (!a)
                continue;
            if (is_evicted(&l, j)) {
                assert_true(evictions[j] == 0 || l.now.wall.ms - last[j] >= 15 * MINUTE_MS);
                evictions[j]++;
                last[j] = l.now.wall.ms;
                all++;
                gone(&l, j);
            } else if (a->row.state == ATTEMPT_ASSIGNED) {
                lab_started(&l, j);
            } else if ((minute + j) % 7 == 0) {
                const char *team = model_job(l.m, j)->row.spec.team;
                char was[CORE_NAME_MAX];
                STR_COPY(was, team);
                lab_ended(&l, j, END_SUCCEEDED, 0);
                if (n < 63)
                    n = submit(&l, was, 1 + (int32_t)(j % 4));
            }
        }
        lab_wait(&l, MINUTE_MS);
    }
    print_message("%" PRId64 " evictions of %" PRId64 " jobs in four hours\n", all, n);
    assert_true(all <= n);
    lab_deinit(&l);
}

static void a_preempted_job_is_spared_for_a_while_also_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    const struct queue_policy o = options();
    s.policy = &o;
    begin(&l, &o, 1, 4);
    int64_t grey = submit(&l, "grey", 4);
    lab_plan(&l);
    int64_t blue = submit(&l, "blue", 4);
    lab_plan(&l);
    gone(&l, grey);
    lab_plan(&l);
    lab_ended(&l, blue, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, grey));
    lab_take(&l);
    shelf_put(&s, &l.c);
    model_destroy(l.m);
    planner_destroy(l.p);
    l.m = shelf_load(&s, l.now);
    l.p = planner_create();
    submit(&l, "blue", 4);
    lab_plan(&l);
    assert_false(is_evicted(&l, grey));
    lab_check_wake(&l);
    lab_wait(&l, 15 * MINUTE_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_true(is_evicted(&l, grey));
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* Places for many jobs of one shape are made at the same time. */
static void a_team_gets_its_whole_quota_at_once(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    int64_t greys[16], blues[16];
    int n = 0;
    begin(&l, &o, 2, 8);
    for (int k = 0; k < 16; k++)
        greys[k] = submit(&l, "grey", 1);
    lab_plan(&l);
    for (int k = 0; k < 16; k++)
        blues[k] = submit(&l, "blue", 1);
    lab_plan(&l);
    for (int k = 0; k < 16; k++)
        n += is_evicted(&l, greys[k]);
    assert_int_equal(n, 8);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = blues[15]});
    for (int k = 0; k < 16; k++)
        if (is_evicted(&l, greys[k]))
            gone(&l, greys[k]);
    lab_plan(&l);
    for (int k = 0; k < 8; k++)
        assert_true(lab_runs(&l, blues[k]));
    for (int k = 8; k < 15; k++)
        /* above the quota it is treated like any other team */
        assert_false(lab_runs(&l, blues[k]));
    lab_deinit(&l);
}

static void no_job_is_preempted_for_one_that_a_launch_will_serve(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = options();
    begin(&l, &o, 1, 4);
    int64_t grey = submit(&l, "grey", 4);
    lab_plan(&l);
    lab_elastic(&l, "burst", 1, "m5", 4);
    submit(&l, "blue", 4);
    assert_int_equal(lab_plan(&l), 1); /* a launch */
    assert_false(is_evicted(&l, grey));
    int64_t second = submit(&l, "blue", 4);
    lab_bring_up(&l, 1, 4);
    lab_plan(&l);
    assert_true(is_evicted(&l, grey)); /* the pool is at its limit */
    gone(&l, grey);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

static void a_team_without_borrowing_stays_within_its_quota(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy o = options();
    struct policy_team strict = teams[0];
    strict.limits.is_set[LIMIT_MCPU] = true;
    strict.limits.max[LIMIT_MCPU] = strict.quota_mcpu;
    o.teams = &strict;
    o.n_teams = 1;
    begin(&l, &o, 4, 4);
    for (int k = 0; k < 4; k++)
        submit(&l, "red", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, 1) && lab_runs(&l, 2) && !lab_runs(&l, 3) && !lab_runs(&l, 4));
    assert_true(
        lab_has_reason(&l, 3, "max-cpus", "it needs 4 cpus; team red uses 8, of at most 8"));
    lab_deinit(&l);
}

/* ---- preempting classes ---- */

static uint64_t both = 6, last = 4; /* bit sets */
static struct policy_qos classes[] = {{.name = "urgent", .preempts = {&both, 3}},
    {.name = "normal", .preempts = {&last, 3}}, {.name = "spare"}};

static struct queue_policy class_options(bool quotas)
{
    struct queue_policy o = options();
    o.qos = classes;
    o.n_qos = sizeof classes / sizeof classes[0];
    if (!quotas)
        o.n_teams = 0;
    return o;
}

static int64_t submit_qos(struct lab *l, const char *team, const char *qos, int32_t cpus)
{
    struct job_row r = job_of(team, cpus);
    STR_COPY(r.spec.qos, qos);
    return lab_submit(l, &r);
}

/* The victim has the least to lose, of any account; it resumes; jobs without a class, or of the
 * same one, stay. */
static void a_qos_preempts_jobs_of_lower_ones(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = class_options(false);
    begin(&l, &o, 4, 4);
    int64_t spares[2], urgent = submit_qos(&l, "red", "urgent", 4), none = submit(&l, "grey", 4);
    for (int k = 0; k < 2; k++)
        spares[k] = submit_qos(&l, k ? "red" : "blue", "spare", 4);
    lab_plan(&l);
    for (int k = 0; k < 2; k++)
        lab_started(&l, spares[k]);
    lab_wait(&l, HOUR_MS);
    lab_saved(&l, spares[1], 1, 10);
    lab_take(&l);
    int64_t wants = submit_qos(&l, "red", "urgent", 4);
    lab_plan(&l);
    assert_true(is_evicted(&l, spares[1])); /* of its own user */
    assert_false(is_evicted(&l, spares[0]) || is_evicted(&l, none) || is_evicted(&l, urgent));
    lab_take(&l);
    assert_non_null(strstr(lab_history(&l, "preempt")->text,
        "QOS urgent preempts QOS spare: this job's place is for job"));
    assert_true(lab_has_reason(&l, wants, "preempts",
        "1 of their jobs is being saved and stopped to make places for 1 like it"));
    int64_t slips = submit(&l, "blue", 4);
    gone(&l, spares[1]);
    assert_int_equal(lab_plan(&l), 1);
    assert_true(lab_runs(&l, wants) && !lab_runs(&l, slips));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = slips});
    lab_ended(&l, urgent, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, spares[1])); /* at its old position; it resumes */
    int64_t again = submit_qos(&l, "red", "urgent", 4);
    lab_plan(&l);
    /* the other one was preempted earlier */
    assert_true(is_evicted(&l, spares[0]) && !is_evicted(&l, spares[1]));
    gone(&l, spares[0]);
    lab_plan(&l);
    assert_true(lab_runs(&l, again));
    int64_t last_one = submit_qos(&l, "red", "urgent", 4);
    lab_plan(&l);
    assert_false(is_evicted(&l, spares[1])); /* not within 15 minutes */
    assert_true(
        lab_has_reason(&l, last_one, "preempts", "no running job can free capacity for it now"));
    lab_check_wake(&l);
    lab_wait(&l, 15 * MINUTE_MS);
    lab_plan(&l);
    assert_true(is_evicted(&l, spares[1]));
    lab_deinit(&l);
}

static void no_job_is_preempted_by_a_qos_in_vain(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = class_options(false);
    begin(&l, &o, 2, 4);
    int64_t spare = submit_qos(&l, "red", "spare", 4), normal = submit_qos(&l, "red", "normal", 4);
    lab_plan(&l);
    submit_qos(&l, "blue", "spare", 4);
    submit_qos(&l, "blue", "urgent", 6); /* no node is this large */
    submit(&l, "blue", 4);               /* without a class */
    lab_plan(&l);
    assert_false(is_evicted(&l, spare) || is_evicted(&l, normal));
    submit_qos(&l, "blue", "normal", 1);
    lab_plan(&l);
    assert_true(is_evicted(&l, spare) && !is_evicted(&l, normal));
    gone(&l, spare);
    lab_plan(&l);
    assert_false(lab_runs(&l, spare)); /* it is below all */
    lab_elastic(&l, "burst", 1, "m5", 4);
    submit_qos(&l, "grey", "urgent", 4);
    assert_true(lab_plan(&l) > 0); /* a launch */
    assert_false(is_evicted(&l, normal));
    lab_deinit(&l);
}

static void a_gang_of_a_preempting_qos_gets_all_its_nodes(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = class_options(false);
    struct job_row gang = job_of("blue", 4);
    begin(&l, &o, 3, 4);
    int64_t spares[2];
    for (int k = 0; k < 2; k++)
        spares[k] = submit_qos(&l, "red", "spare", 4);
    int64_t none = submit(&l, "red", 4);
    lab_plan(&l);
    STR_COPY(gang.spec.qos, "urgent");
    gang.spec.nodes = gang.spec.nodes_min = 3;
    lab_submit(&l, &gang);
    lab_plan(&l);
    assert_false(is_evicted(&l, spares[0]) || is_evicted(&l, spares[1])); /* it could not start */
    gang.spec.nodes = gang.spec.nodes_min = 2;
    int64_t pair = lab_submit(&l, &gang);
    lab_plan(&l);
    gone(&l, spares[0]);
    gone(&l, spares[1]);
    lab_plan(&l);
    assert_true(lab_runs(&l, pair) && lab_runs(&l, none));
    assert_int_equal(model_job(l.m, pair)->row.ranks, 2);
    lab_deinit(&l);
}

/* Only red itself preempts jobs within red's quota; and jobs within a quota go before any class. */
static void quotas_come_before_preemption_by_qos(void **state)
{
    (void)state;
    struct lab l;
    const struct queue_policy o = class_options(true);
    begin(&l, &o, 3, 4);
    int64_t reds[3];
    for (int k = 0; k < 2; k++)
        reds[k] = submit_qos(&l, "red", "spare", 4); /* its quota */
    lab_plan(&l);
    int64_t grey = submit_qos(&l, "grey", "spare", 4);
    lab_plan(&l);
    int64_t first = submit_qos(&l, "grey", "urgent", 4);
    lab_plan(&l);
    assert_true(is_evicted(&l, grey) && !is_evicted(&l, reds[0]) && !is_evicted(&l, reds[1]));
    gone(&l, grey);
    lab_plan(&l);
    assert_true(lab_runs(&l, first));
    int64_t second = submit_qos(&l, "grey", "urgent", 4);
    lab_plan(&l);
    assert_false(is_evicted(&l, reds[0]) || is_evicted(&l, reds[1]));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel.job = second});
    reds[2] = submit_qos(&l, "red", "urgent", 4); /* beyond the quota, but its own jobs */
    lab_plan(&l);
    assert_true(is_evicted(&l, reds[0]) != is_evicted(&l, reds[1]));
    assert_false(is_evicted(&l, first));
    int64_t blue = submit(&l, "blue", 4);
    lab_plan(&l);
    assert_true(is_evicted(&l, first));
    gone(&l, first);
    lab_plan(&l);
    assert_true(lab_runs(&l, blue));
    lab_deinit(&l);
}

/* Jobs of two sizes by these users fill all nodes and the queue. Returns the number of classes
 * examined after one end. */
static int64_t tried_at_an_end(int users)
{
    struct lab l;
    const struct queue_policy o = options();
    int64_t first = CORE_ID_NONE, before;
    begin(&l, &o, 4, 4);
    for (int k = 0; k < 2 * users; k++) {
        struct job_row r = job_of(teams[k / 2 % 3].name, k % 2 ? 4 : 2);
        snprintf(r.user, sizeof r.user, "u%d", k / 2);
        int64_t job = lab_submit(&l, &r);
        first = first == CORE_ID_NONE ? job : first;
    }
    lab_plan(&l);
    assert_true(lab_runs(&l, first));
    before = l.p->n_tried;
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_false(model_job(l.m, first));
    int64_t tried = l.p->n_tried - before;
    lab_deinit(&l);
    return tried;
}

static void an_end_costs_the_same_however_many_users_wait(void **state)
{
    (void)state;
    int64_t few = tried_at_an_end(12), many = tried_at_an_end(300);
    print_message("%" PRId64 " kinds were tried with 12 users, %" PRId64 " with 300\n", few, many);
    assert_true(few > 0);
    assert_true(many <= 2 * few);
    assert_true(many < 60);
}

/* All need more than one end frees, with different demands, except one job at the end of the
 * queue. */
static int64_t tried_before_one_that_fits(int kinds)
{
    struct lab l;
    const struct queue_policy o = options();
    begin(&l, &o, 4, 4);
    int64_t small = submit(&l, "grey", 2);
    for (int k = 0; k < 7; k++) /* their quotas are less than their demand then */
        submit(&l, teams[k % 2].name, 2);
    lab_plan(&l);
    for (int k = 0; k < kinds; k++) {
        struct job_row r = job_of(teams[k % 3].name, 4);
        r.spec.time_limit_ms = (k + 1) * HOUR_MS;
        lab_submit(&l, &r);
    }
    int64_t behind = submit(&l, "grey", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, small) && !lab_runs(&l, behind));
    int64_t before = l.p->n_tried;
    lab_ended(&l, small, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, behind));
    int64_t tried = l.p->n_tried - before;
    lab_deinit(&l);
    return tried;
}

static void an_end_costs_the_same_however_many_kinds_do_not_fit(void **state)
{
    (void)state;
    int64_t few = tried_before_one_that_fits(12), many = tried_before_one_that_fits(300);
    print_message("%" PRId64 " kinds were tried where 12 do not fit, %" PRId64
                  " where 300 do not\n",
        few, many);
    assert_true(few > 0);
    /* a constant number is examined per team with a quota */
    assert_true(many < 100);
}

/* The team's first shape is at a limit: shapes of other users behind it still get the quota. */
static void a_team_at_its_limit_does_not_hold_up_others(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy o = options();
    struct policy_team limited[3];
    memcpy(limited, teams, sizeof teams);
    o.teams = limited;
    limited[0].each_user.is_set[LIMIT_RUNNING] = true;
    limited[0].each_user.max[LIMIT_RUNNING] = 1;
    begin(&l, &o, 2, 4);
    struct job_row r = job_of("red", 4);
    STR_COPY(r.user, "ann");
    int64_t first = lab_submit(&l, &r);
    lab_plan(&l);
    int64_t grey = submit(&l, "grey", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && lab_runs(&l, grey));
    int64_t second = lab_submit(&l, &r);
    STR_COPY(r.user, "bob");
    int64_t other = lab_submit(&l, &r);
    lab_started(&l, grey);
    lab_wait(&l, MINUTE_MS);
    lab_plan(&l);
    assert_true(is_evicted(&l, grey)); /* its place is for bob: ann is at her limit */
    gone(&l, grey);
    lab_plan(&l);
    assert_true(lab_runs(&l, other));
    assert_false(lab_runs(&l, second));
    assert_true(lab_has_reason(&l, second, "max-running", "ann"));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_costs_the_same_however_many_users_wait),
        cmocka_unit_test(an_end_costs_the_same_however_many_kinds_do_not_fit),
        cmocka_unit_test(a_team_at_its_limit_does_not_hold_up_others),
        cmocka_unit_test(unused_quota_is_lent_and_reclaimed),
        cmocka_unit_test(the_job_that_loses_least_is_preempted),
        cmocka_unit_test(no_job_is_preempted_for_one_that_could_not_start_or_has_no_quota),
        cmocka_unit_test(jobs_within_a_quota_are_not_preempted),
        cmocka_unit_test(no_more_jobs_are_preempted_than_needed),
        cmocka_unit_test(preemption_frees_capacity_for_a_whole_gang_or_not_at_all),
        cmocka_unit_test(jobs_within_their_quota_are_placed_first),
        cmocka_unit_test(two_teams_do_not_preempt_each_other_in_turn),
        cmocka_unit_test(a_preempted_job_is_spared_for_a_while_also_after_a_restart),
        cmocka_unit_test(a_team_gets_its_whole_quota_at_once),
        cmocka_unit_test(no_job_is_preempted_for_one_that_a_launch_will_serve),
        cmocka_unit_test(a_team_without_borrowing_stays_within_its_quota),
        cmocka_unit_test(a_qos_preempts_jobs_of_lower_ones),
        cmocka_unit_test(no_job_is_preempted_by_a_qos_in_vain),
        cmocka_unit_test(a_gang_of_a_preempting_qos_gets_all_its_nodes),
        cmocka_unit_test(quotas_come_before_preemption_by_qos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
