/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of jobs after their submit: allowed changes, their effects, and that a refusal changes
 * nothing.
 */
#include "tests/core/lifecycle/updates.h"

#include "base/str.h"
#include "scheduler/core/placement/constraints.h"
#include "scheduler/core/queue/arrays.h"
#include <signal.h>

#define HOUR_MS 3600000LL

static void a_pending_job_runs_where_it_fits_after_the_update(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), big = lab_submit_cpus(&l, 8);
    assert_int_equal(lab_plan(&l), 0);
    updates_apply(&l, big, BIT(CPUS) | BIT(MEMORY) | BIT(NAME),
        (struct job_row){.spec.need = {.cpus = 3, .memory_mib = 7}, .spec.name = "less"});
    const struct job_row *r = &model_job(l.m, big)->row;
    assert_int_equal(r->spec.need.cpus, 3);
    assert_int_equal(r->spec.need.memory_mib, 7);
    assert_string_equal(r->spec.name, "less");
    lab_take(&l);
    assert_non_null(lab_row(&l, big));
    assert_string_equal(
        lab_history(&l, "updated")->text, "ann changed it: name less, cpus 3, memory_mib 7");
    assert_int_equal(lab_plan(&l), 1);
    assert_int_equal(lab_node_of(&l, big), node);
    lab_deinit(&l);
}

static void the_history_has_the_new_value_of_each_option(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    const int64_t j = lab_submit_cpus(&l, 8);
    struct job_row to = lab_job(3);
    to.spec.time_limit_ms = 2 * HOUR_MS;
    to.spec.nice = 5;
    to.spec.deadline_ms = l.now.wall.ms + 9 * HOUR_MS;
    to.spec.begin_at.ms = l.now.wall.ms + HOUR_MS;
    to.spec.max_uusd = 1250000;
    to.spec.market = WISH_ON_DEMAND;
    to.spec.nodes = 4;
    to.spec.on_loss = LOSS_WAIT;
    const uint64_t fields = BIT(TIME_LIMIT) | BIT(NICE) | BIT(DEADLINE) | BIT(BEGIN) |
                            BIT(MAX_USD) | BIT(MAX_USD_H) | BIT(MARKET) | BIT(POOL) | BIT(TEAM) |
                            BIT(WINDOW) | BIT(NODES) | BIT(ON_LOSS);
    updates_apply(&l, j, fields, to);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "updated")->text,
        "ann changed it: time_limit_ms 2h00m, nice 5, deadline_at_ms, max_uusd $1.25, "
        "max_uusd_per_hour none, pool any, market on-demand, team ann, begin_at_ms, window none, "
        "nodes 4, on_loss wait");
    updates_apply(&l, j, BIT(TIME_LIMIT) | BIT(DEADLINE), lab_job(3));
    lab_take(&l);
    assert_string_equal(
        lab_history(&l, "updated")->text, "ann changed it: time_limit_ms none, deadline_at_ms");
    lab_deinit(&l);
}

static void an_updated_job_keeps_its_position_among_equal_requests(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t first = lab_submit_cpus(&l, 4);
    lab_wait(&l, 1000);
    int64_t second = lab_submit_cpus(&l, 2);
    lab_wait(&l, 1000);
    updates_apply(&l, first, BIT(CPUS), lab_job(2));
    lab_join(&l, "n1", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && !lab_runs(&l, second));
    updates_apply(&l, second, BIT(NICE), (struct job_row){.spec.nice = 60});
    int64_t third = lab_submit_cpus(&l, 2);
    lab_join(&l, "n2", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, third) && !lab_runs(&l, second));
    updates_apply(&l, second, BIT(NICE), (struct job_row){.spec.nice = 0});
    lab_join(&l, "n3", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

static void an_update_changes_all_or_nothing(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join_with(&l, "n1", 4, ",ib,", "lego:2");
    int64_t j = lab_submit_asking(&l,
        &(struct job_row){.spec.name = "a",
            .user = "ann",
            .spec.nodes = 1,
            .spec.need = {2, 0, 5},
            .spec.ckpt_signal = SIGUSR1,
            .spec.ckpt_keep = 1},
        "constraint=ib licences=matlab:1");
    struct job_row to = lab_job(3);
    to.spec.time_limit_ms = 1;
    to.spec.need.cpus = 0;
    updates_refuse(
        &l, j, BIT(TIME_LIMIT) | BIT(CPUS), to, ERR_INVALID, "cpus: expected 1 to 4096, found 0");
    to.spec.need.cpus = 3;
    to.spec.nice = -1;
    updates_refuse(&l, j, BIT(TIME_LIMIT) | BIT(CPUS) | BIT(NICE), to, ERR_INVALID,
        "nice: expected 0 to 10000000, found -1");
    to.spec.nice = 0;
    to.spec.nodes = 2;
    to.spec.nodes_min = 3;
    updates_refuse(&l, j, BIT(TIME_LIMIT) | BIT(NODES), to, ERR_INVALID,
        "minimum number of nodes must be 1 to 2");
    updates_refuse(&l, j, BIT(NAME) | BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = 5},
        ERR_INVALID, "name: expected a name");
    updates_refuse(&l, j, 0, to, ERR_INVALID, "no changes are given");
    struct event ev = updates_event(j, BIT(CPUS) | BIT(CONSTRAINT), &to);
    ev.update.constraints = "constraint=never";
    updates_refuse_event(&l, ev, ERR_INVALID, "never");
    ev.update.fields = BIT(CPUS) | BIT(LICENCES);
    ev.update.constraints = "licences=matlab:5";
    updates_refuse_event(&l, ev, ERR_INVALID, "matlab");
    ev.update.fields = BIT(CPUS) | BIT(GPU_MODEL);
    ev.update.constraints = "gpu=a100";
    updates_refuse_event(&l, ev, ERR_INVALID, "it requests no GPUs");
    updates_refuse(&l, j + 1, BIT(NICE), to, ERR_NOT_FOUND, "neither queued nor running");
    ev.update.fields = BIT(CPUS) | BIT(RESOURCES) | BIT(CONSTRAINT) | BIT(EXCLUSIVE);
    ev.update.constraints = "resources=lego:2 exclusive=yes";
    lab_apply(&l, ev);
    char text[CONSTRAINTS_TEXT_MAX];
    constraints_format(model_constraints(l.m, model_job(l.m, j)->row.constraints), text);
    assert_string_equal(text, "resources=lego:2 licences=matlab:1 exclusive=yes");
    ev.update.fields = BIT(INPUT);
    ev.update.constraints = "input=aws/us-east-1:1024";
    lab_apply(&l, ev);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "updated")->text, "ann changed it: input 1024");
    constraints_format(model_constraints(l.m, model_job(l.m, j)->row.constraints), text);
    assert_string_equal(
        text, "resources=lego:2 licences=matlab:1 exclusive=yes input=aws/us-east-1:1024");
    ev.update.constraints = NULL;
    lab_apply(&l, ev);
    constraints_format(model_constraints(l.m, model_job(l.m, j)->row.constraints), text);
    assert_string_equal(text, "resources=lego:2 licences=matlab:1 exclusive=yes");
    lab_plan(&l);
    assert_true(lab_runs(&l, j));
    lab_deinit(&l);
}

static void a_running_job_changes_only_what_does_not_affect_its_node(void **state)
{
    (void)state;
    static const struct {
        int32_t field;
        const char *name;
    } fixed[] = {{BIT(CPUS), "cpus:"}, {BIT(POOL), "pool:"}, {BIT(QOS), "qos:"},
        {BIT(TEAM), "team:"}, {BIT(NODES), "nodes:"}, {BIT(CONSTRAINT), "constraint:"},
        {BIT(DEPENDS), "depends:"}, {BIT(BEGIN), "begin_at_ms:"}, {BIT(MARKET), "market:"}};
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t j = lab_submit_nodes(&l, 1, 2, HOUR_MS);
    lab_plan(&l);
    lab_started(&l, j);
    for (size_t k = 0; k < sizeof fixed / sizeof fixed[0]; k++)
        updates_refuse(&l, j, BIT(NAME) | fixed[k].field, lab_job(1), ERR_CONFLICT, fixed[k].name);
    updates_refuse(&l, j, BIT(AT_ONCE), lab_job(1), ERR_CONFLICT, "no array");
    lab_take(&l);
    struct job_row to = lab_job(1);
    to.spec.time_limit_ms = 2 * HOUR_MS;
    STR_COPY(to.spec.name, "longer");
    to.spec.retries.n[RETRY_FAILED] = 3;
    updates_apply(&l, j, BIT(NAME) | BIT(TIME_LIMIT) | BIT(RETRIES), to);
    lab_take(&l);
    assert_int_equal(l.c.n_attempts, 1); /* so that its agent receives it */
    assert_int_equal(lab_row(&l, j)->spec.time_limit_ms, 2 * HOUR_MS);
    assert_int_equal(lab_row(&l, j)->spec.retries.n[RETRY_FAILED], 3);
    assert_string_equal(lab_row(&l, j)->spec.name, "longer");
    lab_ended(&l, j, END_TIMEOUT, 143);
    updates_refuse(&l, j, BIT(NAME), to, ERR_NOT_FOUND, "neither queued nor running");
    lab_deinit(&l);
}

static void a_job_that_is_being_cancelled_cannot_be_updated(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t j = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, j);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = j, .by = "ann"}});
    updates_refuse(&l, j, BIT(TIME_LIMIT), lab_job(1), ERR_CONFLICT, "is being cancelled");
    lab_deinit(&l);
}

static void a_reservation_that_its_time_limit_breaks_is_made_anew(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_join(&l, "a", 4), on_a = lab_submit_nodes(&l, 1, 3, HOUR_MS);
    lab_plan(&l);
    int64_t big = lab_submit_nodes(&l, 1, 4, HOUR_MS),
            small = lab_submit_nodes(&l, 1, 1, HOUR_MS / 2);
    lab_plan(&l);
    assert_true(
        model_node(l.m, a)->reserved_for == model_job(l.m, big)->shape && lab_runs(&l, small));
    updates_apply(&l, on_a, BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = 3 * HOUR_MS});
    lab_ended(&l, small, END_SUCCEEDED, 0);
    int64_t next = lab_submit_nodes(&l, 1, 1, 2 * HOUR_MS);
    lab_plan(&l); /* two of its now three hours pass */
    assert_true(
        model_node(l.m, a)->reserved_for == model_job(l.m, big)->shape && lab_runs(&l, next));
    lab_ended(&l, next, END_SUCCEEDED, 0);
    int64_t late = lab_submit_nodes(&l, 1, 1, 4 * HOUR_MS);
    lab_plan(&l);
    assert_false(lab_runs(&l, late));
    updates_apply(&l, late, BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = HOUR_MS});
    lab_plan(&l);
    assert_true(lab_runs(&l, late));
    lab_deinit(&l);
}

static struct event tasks_event(
    int64_t job, uint64_t fields, const struct job_row *to, const char *tasks, struct ranges *set)
{
    struct err e;
    struct event ev = updates_event(job, fields, to);
    assert_int_equal(ranges_parse(tasks, set, &e), 0);
    ev.update.tasks = set;
    return ev;
}

static void throttle(struct lab *l, int64_t job, int32_t at_once)
{
    const struct job_row none = {0};
    struct event ev = updates_event(job, BIT(AT_ONCE), &none);
    ev.update.at_once = at_once;
    lab_apply(l, ev);
}

static void the_last_limit_of_concurrent_tasks_is_in_force(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 8);
    int64_t j = updates_submit_array(&l, "0-5", 2);
    assert_int_equal(lab_plan(&l), 2);
    throttle(&l, j, 4);
    assert_int_equal(lab_plan(&l), 2);
    throttle(&l, j, 1); /* running tasks continue */
    shelf_restart(&s, &l);
    assert_int_equal(lab_plan(&l), 0);
    for (int32_t i = 0; i < 4; i++) {
        int64_t t = array_task(model_job(l.m, j), i)->row.id;
        lab_started(&l, t);
        lab_ended(&l, t, END_SUCCEEDED, 0);
        assert_int_equal(lab_plan(&l), i == 3);
    }
    throttle(&l, j, 0);
    assert_int_equal(lab_plan(&l), 1);
    updates_refuse(&l, j, BIT(NICE), lab_job(1), ERR_CONFLICT, "all tasks of array 1 have begun");
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void an_update_of_an_array_is_for_tasks_that_have_not_begun(void **state)
{
    (void)state;
    struct lab l;
    struct ranges set;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t j = updates_submit_array(&l, "0-3", 0);
    assert_int_equal(lab_plan(&l), 2);
    struct job_row to = {.spec.time_limit_ms = HOUR_MS, .spec.need.cpus = 2};
    updates_apply(&l, j, BIT(TIME_LIMIT) | BIT(CPUS), to);
    const struct job *parent = model_job(l.m, j);
    assert_int_equal(array_task(parent, 0)->row.spec.time_limit_ms, 0);
    updates_refuse_event(&l, tasks_event(j, BIT(TIME_LIMIT), &to, "0-2", &set), ERR_CONFLICT,
        "task 2 of array 1 has not begun");
    updates_refuse_event(
        &l, tasks_event(j, BIT(TIME_LIMIT), &to, "9", &set), ERR_NOT_FOUND, "no task 9");
    updates_refuse_event(
        &l, tasks_event(j, BIT(CPUS), &to, "0", &set), ERR_CONFLICT, "cpus: job 1_0 runs");
    assert_int_equal(array_task(parent, 0)->row.spec.time_limit_ms, 0);
    to.spec.time_limit_ms = 2 * HOUR_MS;
    lab_apply(&l, tasks_event(j, BIT(TIME_LIMIT), &to, "0-1", &set));
    assert_int_equal(array_task(parent, 0)->row.spec.time_limit_ms, 2 * HOUR_MS);
    assert_int_equal(array_task(parent, 1)->row.spec.time_limit_ms, 2 * HOUR_MS);
    for (int32_t i = 0; i < 2; i++) {
        int64_t t = array_task(parent, i)->row.id;
        lab_started(&l, t);
        lab_ended(&l, t, END_SUCCEEDED, 0);
    }
    updates_refuse_event(
        &l, tasks_event(j, BIT(TIME_LIMIT), &to, "0", &set), ERR_CONFLICT, "has ended");
    assert_int_equal(lab_plan(&l), 1); /* it now has two cpus */
    assert_int_equal(array_task(parent, 2)->row.spec.time_limit_ms, HOUR_MS);
    int64_t alone = array_task(parent, 2)->row.id;
    lab_started(&l, alone);
    lab_ended(&l, alone, END_FAILED, 1); /* pending, to be retried */
    updates_refuse_event(
        &l, updates_depends(alone, NULL, 0, false), ERR_CONFLICT, "is a task of an array");
    to.spec.need.cpus = 1;
    updates_apply(&l, alone, BIT(CPUS), to);
    assert_int_equal(model_job(l.m, alone)->row.spec.need.cpus, 1);
    assert_int_equal(parent->row.spec.need.cpus, 2);
    lab_deinit(&l);
}

static void a_job_moved_to_another_team_counts_there(void **state)
{
    (void)state;
    static struct policy_user red_users[] = {{.name = "ann", .shares = 1}},
                              blue_users[] = {{.name = "ann", .shares = 1},
                                  {.name = "bob", .shares = 1}},
                              green_users[] = {{.name = "bob", .shares = 1}};
    static struct policy_team teams[] = {
        {.name = "red", .shares = 1, .users = red_users, .n_users = 1},
        {.name = "blue",
            .shares = 1,
            .users = blue_users,
            .n_users = 2,
            .limits = {.is_set = {[LIMIT_SUBMITTED] = true, [LIMIT_RUNNING] = true},
                .max = {[LIMIT_SUBMITTED] = 2, [LIMIT_RUNNING] = 1}}},
        {.name = "green", .shares = 1, .users = green_users, .n_users = 1}};
    static struct policy_qos classes[] = {{.name = "high", .boost_ms = 1}};
    struct queue_policy o = queue_policy_defaults;
    struct lab l;
    struct shelf s = {.policy = &o};
    o.teams = teams;
    o.n_teams = 3;
    o.qos = classes;
    o.n_qos = 1;
    lab_init_policy(&l, &o);
    int64_t a = lab_submit_cpus(&l, 1), b = lab_submit_cpus(&l, 1),
            array = updates_submit_array(&l, "0-1", 0);
    assert_string_equal(model_job(l.m, a)->row.spec.team, "red");
    updates_apply(
        &l, a, BIT(TEAM) | BIT(QOS), (struct job_row){.spec.team = "blue", .spec.qos = "high"});
    updates_refuse(
        &l, b, BIT(TEAM), (struct job_row){.spec.team = "green"}, ERR_DENIED, "not a member");
    updates_refuse(
        &l, b, BIT(TEAM), (struct job_row){.spec.team = "grey"}, ERR_INVALID, "no team 'grey'");
    updates_refuse(
        &l, b, BIT(QOS), (struct job_row){.spec.qos = "low"}, ERR_INVALID, "no QOS 'low'");
    updates_refuse(
        &l, array, BIT(TEAM), (struct job_row){.spec.team = "blue"}, ERR_CONFLICT, "max_submitted");
    updates_apply(&l, b, BIT(TEAM), (struct job_row){.spec.team = "blue"});
    shelf_restart(&s, &l);
    lab_join(&l, "n1", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, a) && !lab_runs(&l, b)); /* one job of blue runs at a time */
    updates_apply(&l, b, BIT(TEAM), (struct job_row){.spec.team = "red"});
    lab_plan(&l);
    assert_true(lab_runs(&l, b));
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void the_last_retries_are_in_force(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 1);
    struct job_row r = lab_job(1), never = {0};
    r.spec.retries.n[RETRY_FAILED] = 3;
    int64_t j = lab_submit(&l, &r);
    for (int k = 0; k < 2; k++) {
        lab_plan(&l);
        lab_started(&l, j);
        lab_ended(&l, j, END_FAILED, 1);
    }
    assert_int_equal(model_job(l.m, j)->row.used[RETRY_FAILED], 2);
    lab_wait(&l, 3000); /* an immediate failure is retried with a delay */
    lab_plan(&l);
    lab_started(&l, j);
    for (int k = 0; k < RETRY_KINDS; k++)
        never.spec.retries.n[k] = RETRIES_NEVER;
    updates_apply(&l, j, BIT(RETRIES), never);
    shelf_restart(&s, &l);
    assert_true(retries_are_none(&model_job(l.m, j)->row));
    lab_ended(&l, j, END_FAILED, 1);
    assert_null(model_job(l.m, j));
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void the_number_of_nodes_can_be_changed(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 2);
    lab_join(&l, "n2", 2);
    int64_t j = lab_submit_nodes(&l, 3, 2, 0);
    assert_int_equal(lab_plan(&l), 0);
    updates_apply(&l, j, BIT(NODES), (struct job_row){.spec.nodes = 2});
    lab_plan(&l);
    assert_int_equal(model_job(l.m, j)->row.ranks, 2);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = j, .by = "ann"}});
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue = {.job = j, .by = "ann"}});
    while (job_attempt(model_job(l.m, j)))
        lab_ended(&l, j, END_CANCELLED, 0);
    updates_apply(
        &l, j, BIT(NODES) | BIT(CPUS), (struct job_row){.spec.nodes = 1, .spec.need.cpus = 1});
    shelf_restart(&s, &l);
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release = {.job = j, .by = "ann"}});
    int64_t other = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, j)->row.ranks, 1);
    assert_true(lab_runs(&l, other)); /* nothing is reserved for it any more */
    updates_apply(&l, j, BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = 1});
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void the_begin_time_can_be_changed_and_removed(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 1);
    struct job_row r = lab_job(1);
    r.spec.begin_at.ms = l.now.wall.ms + 10 * HOUR_MS;
    int64_t j = lab_submit(&l, &r);
    assert_int_equal(lab_plan(&l), 0);
    updates_apply(&l, j, BIT(BEGIN), (struct job_row){.spec.begin_at.ms = l.now.wall.ms + HOUR_MS});
    lab_heartbeats(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + LAB_LEASE_MS);
    lab_wait(&l, HOUR_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_true(lab_runs(&l, j));
    int64_t other = lab_submit(&l, &r);
    updates_apply(&l, other, BIT(BEGIN), (struct job_row){.spec.begin_at = WALL_NONE});
    assert_false(updates_waits(&l, other));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pending_job_runs_where_it_fits_after_the_update),
        cmocka_unit_test(the_history_has_the_new_value_of_each_option),
        cmocka_unit_test(an_updated_job_keeps_its_position_among_equal_requests),
        cmocka_unit_test(an_update_changes_all_or_nothing),
        cmocka_unit_test(a_running_job_changes_only_what_does_not_affect_its_node),
        cmocka_unit_test(a_job_that_is_being_cancelled_cannot_be_updated),
        cmocka_unit_test(a_reservation_that_its_time_limit_breaks_is_made_anew),
        cmocka_unit_test(the_last_limit_of_concurrent_tasks_is_in_force),
        cmocka_unit_test(an_update_of_an_array_is_for_tasks_that_have_not_begun),
        cmocka_unit_test(a_job_moved_to_another_team_counts_there),
        cmocka_unit_test(the_last_retries_are_in_force),
        cmocka_unit_test(the_number_of_nodes_can_be_changed),
        cmocka_unit_test(the_begin_time_can_be_changed_and_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
