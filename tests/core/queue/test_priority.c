/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the queue: accounts with little usage for their share come first, waiting time and
 * boosts count as well, and no job starves.
 */
#include "base/str.h"
#include "scheduler/core/model/text.h"
#include "scheduler/core/queue/priority.h"
#include "tests/core/lab.h"
#include "tests/core/shelf.h"

#include <inttypes.h>
#include <string.h>

#define MINUTE_MS 60000LL
#define HOUR_MS (60 * MINUTE_MS)

static int64_t submit(struct lab *l, const char *user, int32_t cpus)
{
    struct job_row r = lab_job(cpus);
    STR_COPY(r.user, user);
    return lab_submit(l, &r);
}

static const struct account *account(const struct lab *l, const char *team, const char *user)
{
    LIST_FOREACH (model_teams(l->m), lt) {
        LIST_FOREACH (&LIST_ENTRY(lt, struct team, in_all)->accounts, la) {
            const struct account *a = LIST_ENTRY(la, struct account, in_team);
            if (str_eq(a->row.team, team) && str_eq(a->row.user, user))
                return a;
        }
    }
    fail_msg("%s has no account in %s", user, team);
    return NULL;
}

static double cpu_hours(const struct lab *l, const char *team, const char *user)
{
    return (double)account_used(l->m, account(l, team, user), l->now.wall) / 3.6e9;
}

static void halving_is_exact_enough_and_never_adds(void **state)
{
    (void)state;
    const int64_t much = 1LL << 62;
    assert_int_equal(priority_halve(much, 0), much);
    assert_int_equal(priority_halve(much, PRIORITY_STEPS), much / 2);
    assert_int_equal(priority_halve(much, 61 * PRIORITY_STEPS), 2);
    assert_int_equal(priority_halve(much, 1000LL * PRIORITY_STEPS), 0);
    assert_int_equal(priority_halve(1000000000, PRIORITY_STEPS / 2), 707106781);
    for (int64_t k = 1; k < 3 * PRIORITY_STEPS; k++)
        assert_true(priority_halve(much, k) < priority_halve(much, k - 1));
}

static void usage_grows_while_jobs_run_and_decays(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "a", 8);
    int64_t job = submit(&l, "ann", 4);
    lab_plan(&l);
    lab_wait(&l, HOUR_MS);
    assert_true(cpu_hours(&l, "ann", "ann") > 3.98 && cpu_hours(&l, "ann", "ann") < 4.001);
    lab_ended(&l, job, END_SUCCEEDED, 0);
    lab_wait(&l, 7 * DAY_MS);
    assert_true(cpu_hours(&l, "ann", "ann") > 1.985 && cpu_hours(&l, "ann", "ann") < 2.001);
    lab_wait(&l, 70 * DAY_MS);
    assert_true(cpu_hours(&l, "ann", "ann") < 0.002);
    lab_deinit(&l);
}

/* For any times of evaluation, and any number of restarts. */
static void usage_is_the_same_after_a_restart(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "a", 8);
    int64_t first = submit(&l, "ann", 4);
    submit(&l, "bob", 3);
    lab_plan(&l);
    lab_wait(&l, 5 * HOUR_MS);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_wait(&l, 3 * DAY_MS + 12345);
    lab_take(&l);
    shelf_put(&s, &l.c);
    shelf_compare(&s, l.m);
    int64_t ann = account_used(l.m, account(&l, "ann", "ann"), l.now.wall);
    int64_t bob = account_used(l.m, account(&l, "bob", "bob"), l.now.wall);
    struct lab again = {.m = shelf_load(&s, l.now)};
    assert_int_equal(account_used(again.m, account(&again, "ann", "ann"), l.now.wall), ann);
    assert_int_equal(account_used(again.m, account(&again, "bob", "bob"), l.now.wall), bob);
    assert_true(bob > ann && ann > 0);
    model_destroy(again.m);
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void users_with_less_usage_come_first(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    lab_join(&l, "a", 4);
    int64_t first = submit(&l, "ann", 4), anns[3], bobs[3];
    lab_plan(&l);
    lab_wait(&l, HOUR_MS);
    for (int k = 0; k < 3; k++)
        anns[k] = submit(&l, "ann", 4);
    lab_wait(&l, HOUR_MS);
    for (int k = 0; k < 3; k++)
        bobs[k] = submit(&l, "bob", 4);
    lab_plan(&l);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, bobs[0])); /* although ann has waited an hour longer */
    lab_wait(&l, HOUR_MS);
    lab_ended(&l, bobs[0], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, bobs[1])); /* 2 cpu-hours of bob's so far and 8 of ann's */
    lab_wait(&l, 2 * HOUR_MS);
    lab_ended(&l, bobs[1], END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_true(lab_runs(&l, anns[0]));
    assert_true(!lab_runs(&l, anns[1]) && !lab_runs(&l, bobs[2]));
    lab_deinit(&l);
}

static void one_user_alone_is_served_in_turn(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    int64_t jobs[6];
    for (int k = 0; k < 6; k++) {
        jobs[k] = submit(&l, "ann", 1 + k % 3);
        lab_wait(&l, k % 2 ? DAY_MS : 1);
    }
    for (int k = 0; k < 6; k++) {
        char name[8];
        text_format(name, sizeof name, "n%d", k);
        lab_join(&l, name, 3);
        lab_plan(&l);
        assert_true(lab_runs(&l, jobs[k]) || k > 0); /* the small ones share the rest */
    }
    lab_deinit(&l);
}

static struct policy_user members[] = {{"ann", 3}, {"bob", 1}};
static struct policy_team teams[] = {
    {.name = "red", .shares = 75, .users = members, .n_users = 2}, {.name = "blue", .shares = 25}};
static struct policy_qos classes[] = {{"urgent", DAY_MS}, {"spare", -DAY_MS}};

static struct queue_policy configured(void)
{
    struct queue_policy o = queue_policy_defaults;
    o.teams = teams;
    o.n_teams = 2;
    o.qos = classes;
    o.n_qos = 2;
    return o;
}

static int try(struct lab *l, const char *user, const char *team, const char *qos, int32_t nice)
{
    struct job_row r = lab_job(1);
    STR_COPY(r.user, user);
    STR_COPY(r.spec.team, team);
    STR_COPY(r.spec.qos, qos);
    r.spec.nice = nice;
    struct event ev = {.type = EV_SUBMIT, .submit.job = &r};
    return lab_try(l, &ev, NULL);
}

static void teams_and_classes_are_those_configured(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy o = configured();
    lab_init_for_days(&l, &o, 0);
    assert_int_equal(try(&l, "ann", "red", "urgent", 0), 0);
    assert_int_equal(try(&l, "ann", "green", "", 0), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "there is no team 'green'"));
    assert_int_equal(try(&l, "cho", "red", "", 0), ERR_DENIED);
    assert_non_null(strstr(l.e.text, "cho is not a member of team 'red'"));
    assert_int_equal(try(&l, "cho", "blue", "", 0), 0); /* no member is named */
    assert_int_equal(try(&l, "ann", "", "fast", 0), ERR_INVALID);
    assert_int_equal(try(&l, "ann", "", "", -1), ERR_INVALID);
    assert_int_equal(try(&l, "ann", "", "", (int32_t)job_attribute_max("nice")), 0);
    assert_string_equal(model_job(l.m, 3)->row.spec.team, "red");
    assert_int_equal(try(&l, "dee", "", "", 0), 0);
    assert_string_equal(model_job(l.m, 4)->row.spec.team, "dee");
    assert_int_equal(try(&l, "dee", "", "normal", 0), 0); /* Slurm's name for none */
    assert_string_equal(model_job(l.m, 5)->row.spec.qos, "");
    lab_deinit(&l);
    lab_init_for_days(&l, NULL, 0); /* without any, names in scripts are ignored */
    assert_int_equal(try(&l, "ann", "proj-7", "normal", 0), 0);
    assert_string_equal(model_job(l.m, 1)->row.spec.team, "ann");
    assert_string_equal(model_job(l.m, 1)->row.spec.qos, "");
    lab_deinit(&l);
}

static int64_t submit_as(struct lab *l, const char *user, const char *qos, int32_t nice)
{
    struct job_row r = lab_job(4);
    STR_COPY(r.user, user);
    STR_COPY(r.spec.qos, qos);
    r.spec.nice = nice;
    return lab_submit(l, &r);
}

static void boosts_count_as_waiting(void **state)
{
    (void)state;
    struct lab l;
    struct queue_policy o = configured();
    lab_init_for_days(&l, &o, 0);
    int64_t spare = submit_as(&l, "ann", "spare", 0), plain = submit_as(&l, "ann", "", 0);
    lab_wait(&l, 2 * HOUR_MS);
    int64_t nice = submit_as(&l, "ann", "", 61), later = submit_as(&l, "ann", "", 0);
    lab_wait(&l, HOUR_MS);
    int64_t last = submit_as(&l, "ann", "", 0), urgent = submit_as(&l, "ann", "urgent", 0);
    const int64_t want[] = {urgent, plain, later, last, nice, spare};
    lab_join(&l, "a", 4);
    for (size_t k = 0; k < 6; k++) {
        lab_plan(&l);
        assert_true(lab_runs(&l, want[k]));
        lab_ended(&l, want[k], END_SUCCEEDED, 0);
    }
    lab_deinit(&l);
}

static void a_priority_is_the_sum_of_its_reported_parts(void **state)
{
    (void)state;
    struct lab l;
    struct priority p;
    struct queue_policy o = configured();
    o.size_ms = 10 * MINUTE_MS;
    lab_init_for_days(&l, &o, 0);
    int64_t job = submit_as(&l, "ann", "urgent", 30);
    submit(&l, "dee", 1);
    lab_wait(&l, HOUR_MS);
    lab_plan(&l);
    core_priority(l.m, model_job(l.m, job), l.now.wall, &p);
    assert_int_equal(p.age_ms, HOUR_MS);
    assert_int_equal(p.nice_ms, -30 * MINUTE_MS);
    assert_int_equal(p.qos_ms, DAY_MS);
    assert_int_equal(p.size_ms, 20 * MINUTE_MS); /* 4 cpus */
    assert_int_equal(p.fair_ms, 75 * DAY_MS);    /* no usage yet */
    assert_int_equal(p.total_ms, p.age_ms + p.nice_ms + p.qos_ms + p.size_ms + p.fair_ms);
    struct reason why[EXPLAIN_REASONS_MAX];
    size_t n;
    lab_join(&l, "a", 4);
    n = core_explain(l.m, l.now, job, why, EXPLAIN_REASONS_MAX);
    assert_string_equal(why[n - 1].code, "priority");
    assert_string_equal(why[n - 1].text, "its priority equals a wait of 76d00h: its own wait "
                                         "1h00m, fair share 75d00h, QOS 1d00h, size 20m00s, "
                                         "less nice 30m00s; belay shares lists who used how much");
    lab_wait(&l, 21 * HOUR_MS + 30 * MINUTE_MS);
    core_priority(l.m, model_job(l.m, job), l.now.wall, &p);
    /* six, and a sixteenth of the other sixteen */
    assert_int_equal(p.age_ms + p.nice_ms, 7 * HOUR_MS);
    lab_deinit(&l);
}

/* ---- a busy cluster ---- */

/* Every user always has eight pending jobs. Nodes of 4 cpus; jobs use 1 to 4 of them for 10 to 70
 * minutes. */
struct busy {
    struct lab l;
    uint64_t random;
    const char *const *users;
    size_t n_users;
};

static uint64_t draw(struct busy *b, uint64_t below)
{
    b->random = b->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (b->random >> 33) % below;
}

static void decide(struct busy *b)
{
    struct event ev;
    while (plan_next(b->l.p, b->l.m, b->l.now, &ev))
        assert_int_equal(core_apply(b->l.m, &ev, NULL, &b->l.e), 0);
}

static int64_t pending_of(const struct busy *b, size_t user)
{
    LIST_FOREACH (model_teams(b->l.m), lt) {
        LIST_FOREACH (&LIST_ENTRY(lt, struct team, in_all)->accounts, la) {
            const struct account *a = LIST_ENTRY(la, struct account, in_team);
            if (str_eq(a->row.user, b->users[user]))
                return a->n_pending;
        }
    }
    return 0;
}

static void refill(struct busy *b)
{
    for (size_t u = 0; u < b->n_users; u++)
        while (pending_of(b, u) < 8) {
            struct job_row r = lab_job((int32_t)(1 + draw(b, 4)));
            STR_COPY(r.user, b->users[u]);
            struct event ev = {.type = EV_SUBMIT, .now = b->l.now, .submit.job = &r};
            assert_int_equal(core_apply(b->l.m, &ev, NULL, &b->l.e), 0);
        }
}

static void run_busy(struct busy *b, int n_nodes, int64_t days)
{
    for (int k = 0; k < n_nodes; k++) {
        char name[16];
        text_format(name, sizeof name, "n%d", k);
        lab_join(&b->l, name, 4);
    }
    for (int64_t minute = 0; minute < days * 1440; minute += 10) {
        refill(b);
        decide(b);
        LIST_FOREACH (model_nodes(b->l.m), ln) {
            const struct node *n = LIST_ENTRY(ln, struct node, in_all);
            LIST_FOREACH (&n->attempts, la) {
                const struct attempt *a = LIST_ENTRY(la, struct attempt, on_node);
                struct event ev = {.type = EV_ATTEMPT_ENDED,
                    .now = b->l.now,
                    .ended = {a->row.job, a->row.attempt, a->row.node, END_SUCCEEDED, 0, ""}};
                if (draw(b, 4) == 0)
                    assert_int_equal(core_apply(b->l.m, &ev, NULL, &b->l.e), 0);
            }
        }
        lab_wait(&b->l, 10 * MINUTE_MS);
        lab_take(&b->l);
    }
    assert_int_equal(model_check(b->l.m, &b->l.e), 0);
}

static void assert_about(double got, double want)
{
    if (got < want * 0.95 || got > want * 1.05)
        fail_msg("%.3f is not about %.3f", got, want);
}

static void users_with_a_constant_backlog_use_their_shares(void **state)
{
    (void)state;
    static const char *const users[] = {"ann", "bob", "cho"};
    struct queue_policy o = configured();
    struct busy b = {.random = 7, .users = users, .n_users = 3};
    o.default_team[0] = '\0';
    STR_COPY(o.default_team, "blue");
    lab_init_for_days(&b.l, &o, 0);
    run_busy(&b, 10, 7);
    double ann = cpu_hours(&b.l, "red", "ann"), bob = cpu_hours(&b.l, "red", "bob");
    double cho = cpu_hours(&b.l, "blue", "cho"), all = ann + bob + cho;
    print_message("red %.1f %%: ann %.1f %%, bob %.1f %%; blue %.1f %%\n", 100 * (ann + bob) / all,
        100 * ann / all, 100 * bob / all, 100 * cho / all);
    assert_about(cho / all, 0.25);
    assert_about(ann / (ann + bob), 0.75);
    lab_deinit(&b.l);
}

/* One user has used everything for a month; another arrives with unlimited demand. The first user's
 * jobs still start. */
static void no_job_starves(void **state)
{
    (void)state;
    static const char *const first[] = {"ann"}, *const both[] = {"ann", "bob"};
    struct busy b = {.random = 3, .users = first, .n_users = 1};
    lab_init_for_days(&b.l, NULL, 0);
    run_busy(&b, 4, 14);
    int64_t job = submit(&b.l, "ann", 4);
    b.users = both;
    b.n_users = 2;
    run_busy(&b, 0, 8);
    assert_true(model_job(b.l.m, job) == NULL || lab_runs(&b.l, job));
    lab_deinit(&b.l);
}

static void old_usage_is_loaded_or_refused(void **state)
{
    (void)state;
    struct lab l;
    lab_init_for_days(&l, NULL, 0);
    struct account_row r = {.team = "ann", .user = "ann", .used = 5, .at = {1}},
                       bad[] = {r, r, r, r};
    assert_int_equal(model_load_account(l.m, &r, &l.e), 0);
    bad[1].user[0] = '\0';
    bad[2].used = -1;
    bad[3].at = WALL_NONE;
    for (size_t k = 0; k < 4; k++) /* the first submits twice */
        assert_int_equal(model_load_account(l.m, &bad[k], &l.e), ERR_CORRUPT);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halving_is_exact_enough_and_never_adds),
        cmocka_unit_test(usage_grows_while_jobs_run_and_decays),
        cmocka_unit_test(usage_is_the_same_after_a_restart),
        cmocka_unit_test(users_with_less_usage_come_first),
        cmocka_unit_test(one_user_alone_is_served_in_turn),
        cmocka_unit_test(teams_and_classes_are_those_configured),
        cmocka_unit_test(boosts_count_as_waiting),
        cmocka_unit_test(a_priority_is_the_sum_of_its_reported_parts),
        cmocka_unit_test(users_with_a_constant_backlog_use_their_shares),
        cmocka_unit_test(no_job_starves),
        cmocka_unit_test(old_usage_is_loaded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
