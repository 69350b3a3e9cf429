/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of jobs after their submit: allowed changes, their effects, and that a refusal changes
 * nothing.
 */
#include "tests/core/shelf.h"

#include "base/mem.h"
#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HOUR_MS 3600000LL

/* An update with these fields; callers may add to it. */
static struct event update(int64_t job, uint64_t fields, const struct job_row *to)
{
    return (struct event){
        .type = EV_UPDATE, .update = {.job = job, .by = "ann", .fields = fields, .to = to}};
}

static void change(struct lab *l, int64_t job, uint64_t fields, struct job_row to)
{
    lab_apply(l, update(job, fields, &to));
}

/* It is refused with this reason; nothing has changed. */
static void refuse_event(struct lab *l, struct event ev, int kind, const char *why)
{
    const struct job *j = model_job(l->m, ev.update.job);
    const struct job_row before = j ? j->row : (struct job_row){0};
    const size_t n_history = model_final_rows(l->m)->n_history;
    assert_int_equal(lab_try(l, &ev, NULL), kind);
    if (!strstr(l->e.text, why))
        fail_msg("\"%s\" is not in: %s", why, l->e.text);
    assert_true(!j || memcmp(&before, &j->row, sizeof before) == 0);
    assert_int_equal(model_final_rows(l->m)->n_history, n_history);
}

static void refuse(
    struct lab *l, int64_t job, uint64_t fields, struct job_row to, int kind, const char *why)
{
    refuse_event(l, update(job, fields, &to), kind, why);
}

#define BIT(field) UPDATE_BIT(UPDATE_##field)

static void a_waiting_job_runs_where_it_fits_by_then(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t node = lab_join(&l, "n1", 4), big = lab_submit_cpus(&l, 8);
    assert_int_equal(lab_plan(&l), 0);
    change(&l, big, BIT(CPUS) | BIT(MEMORY) | BIT(NAME),
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

static void the_history_says_of_each_option_what_it_is_now(void **state)
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
    change(&l, j, fields, to);
    lab_take(&l);
    assert_string_equal(lab_history(&l, "updated")->text,
        "ann changed it: time_limit_ms 2h00m, nice 5, deadline_at_ms, max_uusd $1.25, "
        "max_uusd_per_hour none, pool any, market on-demand, team ann, begin_at_ms, window none, "
        "nodes 4, on_loss wait");
    change(&l, j, BIT(TIME_LIMIT) | BIT(DEADLINE), lab_job(3));
    lab_take(&l);
    assert_string_equal(
        lab_history(&l, "updated")->text, "ann changed it: time_limit_ms none, deadline_at_ms");
    lab_deinit(&l);
}

static void it_keeps_its_place_among_those_that_ask_for_the_same(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t first = lab_submit_cpus(&l, 4);
    lab_wait(&l, 1000);
    int64_t second = lab_submit_cpus(&l, 2);
    lab_wait(&l, 1000);
    change(&l, first, BIT(CPUS), lab_job(2));
    lab_join(&l, "n1", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, first) && !lab_runs(&l, second));
    change(&l, second, BIT(NICE), (struct job_row){.spec.nice = 60});
    int64_t third = lab_submit_cpus(&l, 2);
    lab_join(&l, "n2", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, third) && !lab_runs(&l, second));
    change(&l, second, BIT(NICE), (struct job_row){.spec.nice = 0});
    lab_join(&l, "n3", 2);
    lab_plan(&l);
    assert_true(lab_runs(&l, second));
    lab_deinit(&l);
}

static void all_of_it_changes_or_nothing(void **state)
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
    refuse(
        &l, j, BIT(TIME_LIMIT) | BIT(CPUS), to, ERR_INVALID, "cpus: expected 1 to 4096, found 0");
    to.spec.need.cpus = 3;
    to.spec.nice = -1;
    refuse(&l, j, BIT(TIME_LIMIT) | BIT(CPUS) | BIT(NICE), to, ERR_INVALID,
        "nice: expected 0 to 10000000, found -1");
    to.spec.nice = 0;
    to.spec.nodes = 2;
    to.spec.nodes_min = 3;
    refuse(&l, j, BIT(TIME_LIMIT) | BIT(NODES), to, ERR_INVALID, "nodes at least");
    refuse(&l, j, BIT(NAME) | BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = 5},
        ERR_INVALID, "name: expected a name");
    refuse(&l, j, 0, to, ERR_INVALID, "no changes are given");
    struct event ev = update(j, BIT(CPUS) | BIT(CONSTRAINT), &to);
    ev.update.constraints = "constraint=never";
    refuse_event(&l, ev, ERR_INVALID, "never");
    ev.update.fields = BIT(CPUS) | BIT(LICENCES);
    ev.update.constraints = "licences=matlab:5";
    refuse_event(&l, ev, ERR_INVALID, "matlab");
    ev.update.fields = BIT(CPUS) | BIT(GPU_MODEL);
    ev.update.constraints = "gpu=a100";
    refuse_event(&l, ev, ERR_INVALID, "it requests no GPUs");
    refuse(&l, j + 1, BIT(NICE), to, ERR_NOT_FOUND, "neither queued nor running");
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

static void what_runs_changes_in_what_does_not_touch_its_place(void **state)
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
        refuse(&l, j, BIT(NAME) | fixed[k].field, lab_job(1), ERR_CONFLICT, fixed[k].name);
    refuse(&l, j, BIT(AT_ONCE), lab_job(1), ERR_CONFLICT, "no array");
    lab_take(&l);
    struct job_row to = lab_job(1);
    to.spec.time_limit_ms = 2 * HOUR_MS;
    STR_COPY(to.spec.name, "longer");
    to.spec.retries.n[RETRY_FAILED] = 3;
    change(&l, j, BIT(NAME) | BIT(TIME_LIMIT) | BIT(RETRIES), to);
    lab_take(&l);
    assert_int_equal(l.c.n_attempts, 1); /* so that its agent gets it */
    assert_int_equal(lab_row(&l, j)->spec.time_limit_ms, 2 * HOUR_MS);
    assert_int_equal(lab_row(&l, j)->spec.retries.n[RETRY_FAILED], 3);
    assert_string_equal(lab_row(&l, j)->spec.name, "longer");
    lab_ended(&l, j, END_TIMEOUT, 143);
    refuse(&l, j, BIT(NAME), to, ERR_NOT_FOUND, "neither queued nor running");
    lab_deinit(&l);
}

static void what_is_being_cancelled_stays_as_it_is(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 4);
    int64_t j = lab_submit_cpus(&l, 1);
    lab_plan(&l);
    lab_started(&l, j);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = j, .by = "ann"}});
    refuse(&l, j, BIT(TIME_LIMIT), lab_job(1), ERR_CONFLICT, "is being cancelled");
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
    change(&l, on_a, BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = 3 * HOUR_MS});
    lab_ended(&l, small, END_SUCCEEDED, 0);
    int64_t next = lab_submit_nodes(&l, 1, 1, 2 * HOUR_MS);
    lab_plan(&l); /* two of its now three hours pass */
    assert_true(
        model_node(l.m, a)->reserved_for == model_job(l.m, big)->shape && lab_runs(&l, next));
    lab_ended(&l, next, END_SUCCEEDED, 0);
    int64_t late = lab_submit_nodes(&l, 1, 1, 4 * HOUR_MS);
    lab_plan(&l);
    assert_false(lab_runs(&l, late));
    change(&l, late, BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = HOUR_MS});
    lab_plan(&l);
    assert_true(lab_runs(&l, late));
    lab_deinit(&l);
}

static struct event depends(int64_t job, const struct depend_ask *asks, size_t n, bool any)
{
    static struct job_row to;
    to.spec.depends_any = any;
    struct event ev = update(job, BIT(DEPENDS), &to);
    ev.update.depends = asks;
    ev.update.n_depends = n;
    return ev;
}

static int64_t n_depends(const struct lab *l, int64_t job)
{
    int64_t n = 0;
    LIST_FOREACH (&job_side(model_job(l->m, job))->depends, k)
        n++;
    return n;
}

static bool waits(const struct lab *l, int64_t job)
{
    return model_job(l->m, job)->is_waiting;
}

static void what_it_depends_on_is_replaced_from_both_ends(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 1);
    int64_t first = lab_submit_cpus(&l, 1), second = lab_submit_cpus(&l, 1),
            third = lab_submit_cpus(&l, 1);
    const struct depend_ask on_first = {.kind = DEPEND_AFTEROK, .on = first},
                            on_both[] = {on_first, {.kind = DEPEND_AFTERANY, .on = second}};
    lab_plan(&l);
    lab_apply(&l, depends(third, &on_first, 1, false));
    assert_true(model_job(l.m, third)->is_waiting);
    lab_apply(&l, depends(third, on_both, 2, true));
    shelf_restart(&s, &l);
    assert_int_equal(n_depends(&l, third), 2);
    lab_apply(&l, depends(third, &on_both[1], 1, false));
    shelf_restart(&s, &l);
    assert_int_equal(n_depends(&l, third), 1);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = first, .by = "ann"}});
    lab_ended(&l, first, END_USER, 1); /* no job waits for it any more */
    assert_false(waits(&l, second));
    assert_true(model_job(l.m, third)->is_waiting);
    lab_apply(&l, depends(third, NULL, 0, false));
    assert_false(model_job(l.m, third)->is_waiting);
    /* again: with a previously dropped row */
    lab_apply(&l, depends(third, &on_both[1], 1, false));
    shelf_restart(&s, &l);
    assert_true(model_job(l.m, third)->is_waiting);
    refuse_event(&l,
        depends(second, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = third}, 1, false),
        ERR_INVALID, "submitted before it");
    refuse_event(&l,
        depends(third, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = third}, 1, false),
        ERR_INVALID, "submitted before it");
    refuse_event(&l,
        depends(third,
            &(struct depend_ask){
                .kind = DEPEND_AFTEROK, .on = first, .has_ended = true, .end = END_USER},
            1, false),
        ERR_CONFLICT, "can never be satisfied");
    shelf_deinit(&s);
    lab_deinit(&l);
}

static int64_t singleton(struct lab *l, const char *name)
{
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct job_row r = lab_job(1);
    const struct depend_ask ask = {.kind = DEPEND_SINGLETON};
    STR_COPY(r.spec.name, name);
    return lab_apply(
        l, (struct event){.type = EV_SUBMIT,
               .submit = {.job = &r, .texts = &texts, .depends = &ask, .n_depends = 1}});
}

static void rename_to(struct lab *l, int64_t job, const char *name)
{
    struct job_row to = {0};
    STR_COPY(to.spec.name, name);
    change(l, job, BIT(NAME), to);
}

static void one_of_a_name_at_a_time_whatever_they_were_called_before(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    int64_t a = lab_submit_cpus(&l, 1), b = singleton(&l, "train"), c = singleton(&l, "train"),
            other = lab_submit_cpus(&l, 1), d = singleton(&l, "eval");
    assert_true(waits(&l, b) && waits(&l, c) && !waits(&l, d));
    rename_to(&l, b, "eval"); /* c waited for a only through b */
    assert_true(!waits(&l, b) && waits(&l, c));
    shelf_restart(&s, &l);
    rename_to(&l, a, "eval");
    assert_true(!waits(&l, c) && !waits(&l, b)); /* it had no job to wait for at its submit */
    rename_to(&l, other, "eval");
    int64_t e = singleton(&l, "eval");
    assert_true(waits(&l, e));
    rename_to(&l, c, "eval"); /* e waits for all earlier jobs of that name */
    assert_int_equal(n_depends(&l, e), 5);
    shelf_restart(&s, &l);
    rename_to(&l, e, "alone");
    assert_false(waits(&l, e));
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void who_stood_for_others_of_its_name_leaves_them_to_who_waited_for_it(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_submit_cpus(&l, 1), b = singleton(&l, "train"), c = singleton(&l, "train"),
            d = singleton(&l, "train");
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = b, .by = "ann"}});
    assert_true(waits(&l, c));
    lab_apply(&l, depends(c, NULL, 0, false));
    assert_true(!waits(&l, c) && waits(&l, d));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = c, .by = "ann"}});
    assert_true(waits(&l, d));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = a, .by = "ann"}});
    assert_false(waits(&l, d));
    lab_deinit(&l);
}

static int64_t submit_array(struct lab *l, const char *tasks, int32_t at_once)
{
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    struct job_row r = lab_job(1);
    struct ranges set;
    assert_int_equal(ranges_parse(tasks, &set, &l->e), 0);
    return lab_apply(
        l, (struct event){.type = EV_SUBMIT,
               .submit = {.job = &r, .texts = &texts, .tasks = &set, .at_once = at_once}});
}

static struct event tasks_event(
    int64_t job, uint64_t fields, const struct job_row *to, const char *tasks, struct ranges *set)
{
    struct err e;
    struct event ev = update(job, fields, to);
    assert_int_equal(ranges_parse(tasks, set, &e), 0);
    ev.update.tasks = set;
    return ev;
}

static void throttle(struct lab *l, int64_t job, int32_t at_once)
{
    const struct job_row none = {0};
    struct event ev = update(job, BIT(AT_ONCE), &none);
    ev.update.at_once = at_once;
    lab_apply(l, ev);
}

static void so_many_tasks_run_at_once_as_is_said_last(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 8);
    int64_t j = submit_array(&l, "0-5", 2);
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
    refuse(&l, j, BIT(NICE), lab_job(1), ERR_CONFLICT, "all tasks of array 1 have begun");
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void an_array_changes_as_far_as_it_has_not_begun(void **state)
{
    (void)state;
    struct lab l;
    struct ranges set;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t j = submit_array(&l, "0-3", 0);
    assert_int_equal(lab_plan(&l), 2);
    struct job_row to = {.spec.time_limit_ms = HOUR_MS, .spec.need.cpus = 2};
    change(&l, j, BIT(TIME_LIMIT) | BIT(CPUS), to);
    const struct job *parent = model_job(l.m, j);
    assert_int_equal(array_task(parent, 0)->row.spec.time_limit_ms, 0);
    refuse_event(&l, tasks_event(j, BIT(TIME_LIMIT), &to, "0-2", &set), ERR_CONFLICT,
        "task 2 of array 1 has not begun");
    refuse_event(&l, tasks_event(j, BIT(TIME_LIMIT), &to, "9", &set), ERR_NOT_FOUND, "no task 9");
    refuse_event(&l, tasks_event(j, BIT(CPUS), &to, "0", &set), ERR_CONFLICT, "cpus: job 2 runs");
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
    refuse_event(&l, tasks_event(j, BIT(TIME_LIMIT), &to, "0", &set), ERR_CONFLICT, "has ended");
    assert_int_equal(lab_plan(&l), 1); /* of two cpus now */
    assert_int_equal(array_task(parent, 2)->row.spec.time_limit_ms, HOUR_MS);
    int64_t alone = array_task(parent, 2)->row.id;
    lab_started(&l, alone);
    lab_ended(&l, alone, END_FAILED, 1); /* pending, to be retried */
    refuse_event(&l, depends(alone, NULL, 0, false), ERR_CONFLICT, "is a task of array 1");
    to.spec.need.cpus = 1;
    change(&l, alone, BIT(CPUS), to);
    assert_int_equal(model_job(l.m, alone)->row.spec.need.cpus, 1);
    assert_int_equal(parent->row.spec.need.cpus, 2);
    lab_deinit(&l);
}

/* If submitted with it, no task can have begun. */
static void tasks_that_have_begun_outlive_what_the_rest_depends_on(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t first = lab_submit_nodes(&l, 1, 9, 0), j = submit_array(&l, "0-3", 1);
    lab_plan(&l);
    lab_apply(&l, depends(j, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = first}, 1, false));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = first, .by = "ann"}});
    lab_plan(&l);
    assert_int_equal(model_job(l.m, j)->row.state, JOB_UNFOLDED);
    shelf_restart(&s, &l);
    int64_t t = array_task(model_job(l.m, j), 0)->row.id;
    lab_started(&l, t);
    lab_ended(&l, t, END_SUCCEEDED, 0);
    lab_take(&l);
    assert_int_equal(lab_row(&l, j)->end, END_DEPENDENCY);
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* The remaining tasks are cancelled: their dependencies are dropped, also after a restart. */
static void an_array_whose_rest_is_cancelled_depends_on_nothing(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    struct ranges rest;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t first = lab_submit_nodes(&l, 1, 9, 0), j = submit_array(&l, "0-3", 1);
    lab_plan(&l);
    lab_apply(&l, depends(j, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = first}, 1, false));
    assert_int_equal(ranges_parse("1-3", &rest, &l.e), 0);
    lab_apply(
        &l, (struct event){.type = EV_CANCEL, .cancel = {.job = j, .by = "ann", .tasks = &rest}});
    lab_plan(&l);
    assert_int_equal(model_job(l.m, j)->row.state, JOB_UNFOLDED);
    assert_int_equal(n_depends(&l, j), 0);
    shelf_restart(&s, &l);
    int64_t t = array_task(model_job(l.m, j), 0)->row.id;
    lab_started(&l, t);
    lab_ended(&l, t, END_SUCCEEDED, 0);
    assert_null(model_job(l.m, j));
    assert_non_null(model_job(l.m, first));
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* A job that waits for a job of 9 cpus, which never runs, only through an array still waits when
 * that array has no dependencies any more while one of its tasks runs. */
static void check_still_waits(struct lab *l, int64_t first, int64_t j, int64_t last)
{
    struct shelf s = {0};
    lab_plan(l);
    assert_int_equal(model_job(l->m, j)->row.state, JOB_UNFOLDED);
    assert_int_equal(n_depends(l, j), 0);
    shelf_restart(&s, l);
    int64_t t = array_task(model_job(l->m, j), 0)->row.id;
    lab_started(l, t);
    lab_ended(l, t, END_SUCCEEDED, 0);
    assert_null(model_job(l->m, j));
    assert_true(waits(l, last));
    lab_apply(l, (struct event){.type = EV_CANCEL, .cancel = {.job = first, .by = "ann"}});
    assert_false(waits(l, last));
    shelf_deinit(&s);
}

static void an_array_that_waits_no_more_leaves_those_of_its_name_to_who_waited_for_it(void **state)
{
    (void)state;
    for (int is_given_up = 0; is_given_up < 2; is_given_up++) {
        struct lab l;
        struct ranges rest;
        lab_init(&l);
        lab_join(&l, "n1", 2);
        int64_t first = lab_submit_cpus(&l, 9), other = lab_submit_cpus(&l, 9),
                j = submit_array(&l, "0-3", 1);
        rename_to(&l, other, "other");
        lab_plan(&l);
        const struct depend_ask asks[] = {
            {.kind = DEPEND_SINGLETON}, {.kind = DEPEND_AFTEROK, .on = other}};
        lab_apply(&l, depends(j, asks, 2, false));
        int64_t last = singleton(&l, model_job(l.m, j)->row.spec.name);
        assert_int_equal(n_depends(&l, last), 1);
        assert_int_equal(ranges_parse("1-3", &rest, &l.e), 0);
        struct event ev = {.type = EV_CANCEL, .cancel = {.job = other, .by = "ann"}};
        if (!is_given_up)
            ev.cancel.job = j, ev.cancel.tasks = &rest;
        lab_apply(&l, ev);
        check_still_waits(&l, first, j, last);
        lab_deinit(&l);
    }
}

static void in_another_team_it_counts_there(void **state)
{
    (void)state;
    static struct order_user red_users[] = {{.name = "ann", .shares = 1}},
                             blue_users[] = {{.name = "ann", .shares = 1},
                                 {.name = "bob", .shares = 1}},
                             green_users[] = {{.name = "bob", .shares = 1}};
    static struct order_team teams[] = {
        {.name = "red", .shares = 1, .users = red_users, .n_users = 1},
        {.name = "blue",
            .shares = 1,
            .users = blue_users,
            .n_users = 2,
            .limits = {.is_set = {[LIMIT_SUBMITTED] = true, [LIMIT_RUNNING] = true},
                .most = {[LIMIT_SUBMITTED] = 2, [LIMIT_RUNNING] = 1}}},
        {.name = "green", .shares = 1, .users = green_users, .n_users = 1}};
    static struct order_qos classes[] = {{.name = "high", .boost_ms = 1}};
    struct order_options o = order_defaults;
    struct lab l;
    struct shelf s = {.order = &o};
    o.teams = teams;
    o.n_teams = 3;
    o.qos = classes;
    o.n_qos = 1;
    lab_init_order(&l, &o);
    int64_t a = lab_submit_cpus(&l, 1), b = lab_submit_cpus(&l, 1),
            array = submit_array(&l, "0-1", 0);
    assert_string_equal(model_job(l.m, a)->row.spec.team, "red");
    change(&l, a, BIT(TEAM) | BIT(QOS), (struct job_row){.spec.team = "blue", .spec.qos = "high"});
    refuse(&l, b, BIT(TEAM), (struct job_row){.spec.team = "green"}, ERR_DENIED, "not a member");
    refuse(&l, b, BIT(TEAM), (struct job_row){.spec.team = "grey"}, ERR_INVALID, "no team 'grey'");
    refuse(&l, b, BIT(QOS), (struct job_row){.spec.qos = "low"}, ERR_INVALID, "no QOS 'low'");
    refuse(
        &l, array, BIT(TEAM), (struct job_row){.spec.team = "blue"}, ERR_CONFLICT, "max_submitted");
    change(&l, b, BIT(TEAM), (struct job_row){.spec.team = "blue"});
    shelf_restart(&s, &l);
    lab_join(&l, "n1", 4);
    lab_plan(&l);
    assert_true(lab_runs(&l, a) && !lab_runs(&l, b)); /* of blue one runs at a time */
    change(&l, b, BIT(TEAM), (struct job_row){.spec.team = "red"});
    lab_plan(&l);
    assert_true(lab_runs(&l, b));
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* The limit on dependencies per user and team, like all other counts. */
static void in_another_team_what_it_waits_for_counts_there(void **state)
{
    (void)state;
    static struct order_user users[] = {{.name = "ann", .shares = 1}};
    static struct order_team teams[] = {{.name = "red", .shares = 1, .users = users, .n_users = 1},
        {.name = "blue", .shares = 1, .users = users, .n_users = 1}};
    struct order_options o = order_defaults;
    struct lab l;
    struct shelf s = {.order = &o};
    o.teams = teams;
    o.n_teams = 2;
    lab_init_order(&l, &o);
    int64_t first = lab_submit_cpus(&l, 1), second = lab_submit_cpus(&l, 1),
            job = lab_submit_cpus(&l, 1);
    const struct depend_ask asks[] = {
        {.kind = DEPEND_AFTEROK, .on = first}, {.kind = DEPEND_AFTERANY, .on = second}};
    lab_apply(&l, depends(job, asks, 2, false));
    const struct account *red = model_job(l.m, job)->account;
    assert_int_equal(red->n_waits, 2);
    change(&l, job, BIT(TEAM), (struct job_row){.spec.team = "blue"});
    assert_int_equal(red->n_waits, 0);
    assert_int_equal(model_job(l.m, job)->account->n_waits, 2);
    shelf_restart(&s, &l);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = second, .by = "ann"}});
    assert_int_equal(model_job(l.m, job)->account->n_waits, 1);
    change(&l, job, BIT(TEAM), (struct job_row){.spec.team = "red"});
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = job, .by = "ann"}});
    shelf_deinit(&s);
    lab_deinit(&l);
}

/* Without checking the model, for very many. */
static int try_unchecked(struct lab *l, struct event ev, int64_t *ret_id)
{
    struct outcome o = {0};
    ev.now = l->now;
    int rc = core_apply(l->m, &ev, &o, &l->e);
    *ret_id = o.id;
    return rc;
}

static int try_named(struct lab *l, const char *name, bool waits, int64_t *ret_id)
{
    const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
    const struct depend_ask ask = {.kind = DEPEND_SINGLETON};
    struct job_row r = lab_job(1);
    STR_COPY(r.spec.name, name);
    r.spec.depends_any = waits;
    return try_unchecked(l,
        (struct event){.type = EV_SUBMIT,
            .submit = {.job = &r, .texts = &texts, .depends = &ask, .n_depends = waits}},
        ret_id);
}

#define NAMESAKES 3000
#define RENAMED 200

static void a_new_name_is_waited_for_as_at_a_submit(void **state)
{
    (void)state;
    struct lab l;
    struct job_row to = {.spec.name = "train"};
    int64_t id, first = 0, all = 0;
    lab_init(&l);
    for (int k = 0; k < NAMESAKES; k++)
        assert_int_equal(try_named(&l, "train", false, &id), 0);
    for (int k = 0; k <= RENAMED; k++) {
        assert_int_equal(try_named(&l, "few", k > 0, &id), 0);
        first = k == 0 ? id : first;
    }
    const struct account *a = model_job(l.m, first)->account;
    for (id = first + 1; a->n_waits + NAMESAKES + all <= DEPENDENCIES_OF_ACCOUNT_MAX; id++, all++) {
        change(&l, id, BIT(NAME), to);
        assert_int_equal(n_depends(&l, id), NAMESAKES + all);
    }
    assert_in_range(all, 100, RENAMED - 1);
    refuse(&l, id, BIT(NAME), to, ERR_CONFLICT, "allowed");
    assert_in_range(
        a->n_waits, DEPENDENCIES_OF_ACCOUNT_MAX - NAMESAKES - all, DEPENDENCIES_OF_ACCOUNT_MAX);
    refuse_event(&l,
        (struct event){.type = EV_UPDATE,
            .update = {.job = id,
                .by = "ann",
                .fields = BIT(NAME) | BIT(DEPENDS),
                .to = &(struct job_row){.spec.name = "train", .spec.depends_any = true},
                .depends = &(struct depend_ask){.kind = DEPEND_SINGLETON},
                .n_depends = 1}},
        ERR_CONFLICT, "allowed");
    change(&l, id, BIT(NAME), (struct job_row){.spec.name = "another"}); /* no dependent jobs */
    assert_false(waits(&l, id));
    lab_deinit(&l);
}

/* And in another team for jobs without dependencies there. */
static void at_the_limit_a_job_may_wait_for_less(void **state)
{
    (void)state;
    static struct order_user users[] = {{.name = "ann", .shares = 1}};
    static struct order_team teams[] = {{.name = "red", .shares = 1, .users = users, .n_users = 1},
        {.name = "blue", .shares = 1, .users = users, .n_users = 1}};
    struct order_options o = order_defaults;
    struct lab l;
    struct job_row to_red = {.spec.team = "red"}, to_blue = {.spec.team = "blue"};
    int64_t last = 0, id;
    o.teams = teams;
    o.n_teams = 2;
    lab_init_order(&l, &o);
    int64_t first = lab_submit_cpus(&l, 1), other = lab_submit_cpus(&l, 1);
    const struct depend_ask ask = {.kind = DEPEND_AFTEROK, .on = first};
    lab_apply(&l, depends(other, &ask, 1, false));
    change(&l, other, BIT(TEAM), to_blue);
    while (try_named(&l, "train", true, &id) == 0)
        last = id;
    const struct account *red = model_job(l.m, last)->account;
    assert_int_equal(l.e.kind, ERR_CONFLICT);
    assert_true(n_depends(&l, last) > DEPENDENCIES_OF_ACCOUNT_MAX - red->n_waits);
    while (red->n_waits < DEPENDENCIES_OF_ACCOUNT_MAX) {
        struct job_row r = lab_job(1);
        const struct job_texts texts = {"#!/bin/sh\n", "[]", "{}", "/", "{}"};
        struct event ev = {.type = EV_SUBMIT,
            .submit = {.job = &r, .texts = &texts, .depends = &ask, .n_depends = 1}};
        assert_int_equal(try_unchecked(&l, ev, &id), 0);
    }
    refuse(&l, other, BIT(TEAM), to_red, ERR_CONFLICT, "allowed");
    int64_t had = n_depends(&l, last);
    lab_apply(&l, depends(last, &ask, 1, false));
    assert_int_equal(red->n_waits, DEPENDENCIES_OF_ACCOUNT_MAX - had + 1);
    change(&l, other, BIT(TEAM), to_red);
    assert_int_equal(red->n_waits, DEPENDENCIES_OF_ACCOUNT_MAX - had + 2);
    change(&l, last - 1, BIT(TEAM), to_blue);
    assert_int_equal(model_job(l.m, last - 1)->account->n_waits, n_depends(&l, last - 1));
    lab_deinit(&l);
}

/* Later jobs came to wait for it when none of them was a singleton. The first of them inherits its
 * dependencies, and stands for the rest. */
static void who_no_longer_stands_for_others_has_one_heir(void **state)
{
    (void)state;
    enum { BEFORE = 4500, AFTER = 100 };
    struct lab l;
    struct depend_ask by_name = {.kind = DEPEND_SINGLETON};
    int64_t last, id;
    lab_init(&l);
    for (int k = 0; k < BEFORE + 1 + AFTER; k++)
        assert_int_equal(try_named(&l, "train", false, &last), 0);
    int64_t stands = last - AFTER;
    lab_apply(&l, depends(stands, &by_name, 1, false));
    for (id = last; id > stands; id--)
        lab_apply(&l, depends(id, &by_name, 1, false));
    assert_int_equal(n_depends(&l, stands), BEFORE);
    assert_int_equal(n_depends(&l, last), AFTER);
    int64_t before = model_job(l.m, stands)->account->n_waits;
    rename_to(&l, stands, "another");
    assert_int_equal(n_depends(&l, stands + 1), BEFORE);
    assert_int_equal(model_job(l.m, stands)->account->n_waits, before - AFTER);
    lab_deinit(&l);
}

/* Whether a singleton waits for that job, directly or through other singletons. */
static bool waits_for(const struct lab *l, const struct job *j, int64_t on)
{
    LIST_FOREACH (&job_side(j)->depends, k) {
        const struct dependency *d = LIST_ENTRY(k, struct dependency, of_job);
        if (d->row.kind != DEPEND_SINGLETON || d->row.on < on)
            continue;
        if (d->row.on == on ||
            (!d->on->row.spec.depends_any && job_waits_for_name(d->on) && waits_for(l, d->on, on)))
            return true;
    }
    return false;
}

static void check_names(const struct lab *l, int64_t last)
{
    for (int64_t id = 1; id <= last; id++) {
        const struct job *j = model_job(l->m, id), *older;
        if (!j || j->row.spec.depends_any || !job_waits_for_name(j))
            continue;
        for (int64_t on = 1; on < id; on++)
            if ((older = model_job(l->m, on)) && str_eq(older->row.spec.name, j->row.spec.name) &&
                !waits_for(l, j, on))
                fail_msg("job %" PRId64 " of name %s does not wait for job %" PRId64, id,
                    j->row.spec.name, on);
    }
}

static void who_waits_for_all_of_its_name_does_so_whatever_changes(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b"};
    const struct depend_ask by_name = {.kind = DEPEND_SINGLETON};
    struct prng p;
    prng_init(&p, 19);
    for (int round = 0; round < 40; round++) {
        struct lab l;
        int64_t last = 0, id;
        lab_init(&l);
        for (int k = 0; k < 120; k++) {
            int64_t what = (int64_t)prng_below(&p, 10);
            struct job_row to = {.spec.depends_any = prng_below(&p, 4) == 0};
            STR_COPY(to.spec.name, names[prng_below(&p, 2)]);
            id = 1 + (int64_t)prng_below(&p, (uint64_t)last + 1);
            struct event ev = update(id,
                what < 6   ? BIT(NAME)
                : what < 8 ? BIT(DEPENDS)
                           : BIT(NAME) | BIT(DEPENDS),
                &to);
            ev.update.depends = &by_name;
            ev.update.n_depends = what == 6 ? 0 : 1;
            if (last < 6 || (what < 4 && last < 30))
                assert_int_equal(try_named(&l, to.spec.name, to.spec.depends_any, &last), 0);
            else if (what < 9)
                (void)lab_try(&l, &ev, NULL); /* or it has ended */
            else if (model_job(l.m, id))
                lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = id}});
            check_names(&l, last);
        }
        lab_deinit(&l);
    }
}

static void it_is_queued_again_as_often_as_is_said_last(void **state)
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
    change(&l, j, BIT(RETRIES), never);
    shelf_restart(&s, &l);
    assert_true(retries_are_none(&model_job(l.m, j)->row));
    lab_ended(&l, j, END_FAILED, 1);
    assert_null(model_job(l.m, j));
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void a_job_of_several_nodes_may_need_others(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    lab_join(&l, "n1", 2);
    lab_join(&l, "n2", 2);
    int64_t j = lab_submit_nodes(&l, 3, 2, 0);
    assert_int_equal(lab_plan(&l), 0);
    change(&l, j, BIT(NODES), (struct job_row){.spec.nodes = 2});
    lab_plan(&l);
    assert_int_equal(model_job(l.m, j)->row.ranks, 2);
    lab_apply(&l, (struct event){.type = EV_HOLD, .hold = {.job = j, .by = "ann"}});
    lab_apply(&l, (struct event){.type = EV_REQUEUE, .requeue = {.job = j, .by = "ann"}});
    while (job_attempt(model_job(l.m, j)))
        lab_ended(&l, j, END_USER, 0);
    change(&l, j, BIT(NODES) | BIT(CPUS), (struct job_row){.spec.nodes = 1, .spec.need.cpus = 1});
    shelf_restart(&s, &l);
    lab_apply(&l, (struct event){.type = EV_RELEASE, .release = {.job = j, .by = "ann"}});
    int64_t other = lab_submit_cpus(&l, 2);
    lab_plan(&l);
    assert_int_equal(model_job(l.m, j)->row.ranks, 1);
    assert_true(lab_runs(&l, other)); /* nothing is reserved for it any more */
    change(&l, j, BIT(TIME_LIMIT), (struct job_row){.spec.time_limit_ms = 1});
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void its_time_to_begin_is_another(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    lab_join(&l, "n1", 1);
    struct job_row r = lab_job(1);
    r.spec.begin_at.ms = l.now.wall.ms + 10 * HOUR_MS;
    int64_t j = lab_submit(&l, &r);
    assert_int_equal(lab_plan(&l), 0);
    change(&l, j, BIT(BEGIN), (struct job_row){.spec.begin_at.ms = l.now.wall.ms + HOUR_MS});
    lab_heartbeats(&l);
    assert_int_equal(plan_wake(l.p, l.m, l.now).ms, l.now.mono.ms + LAB_LEASE_MS);
    lab_wait(&l, HOUR_MS);
    lab_heartbeats(&l);
    lab_plan(&l);
    assert_true(lab_runs(&l, j));
    int64_t other = lab_submit(&l, &r);
    change(&l, other, BIT(BEGIN), (struct job_row){.spec.begin_at = WALL_NONE});
    assert_false(waits(&l, other));
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_job_runs_where_it_fits_by_then),
        cmocka_unit_test(the_history_says_of_each_option_what_it_is_now),
        cmocka_unit_test(it_keeps_its_place_among_those_that_ask_for_the_same),
        cmocka_unit_test(all_of_it_changes_or_nothing),
        cmocka_unit_test(what_runs_changes_in_what_does_not_touch_its_place),
        cmocka_unit_test(what_is_being_cancelled_stays_as_it_is),
        cmocka_unit_test(a_reservation_that_its_time_limit_breaks_is_made_anew),
        cmocka_unit_test(what_it_depends_on_is_replaced_from_both_ends),
        cmocka_unit_test(one_of_a_name_at_a_time_whatever_they_were_called_before),
        cmocka_unit_test(who_stood_for_others_of_its_name_leaves_them_to_who_waited_for_it),
        cmocka_unit_test(so_many_tasks_run_at_once_as_is_said_last),
        cmocka_unit_test(an_array_changes_as_far_as_it_has_not_begun),
        cmocka_unit_test(tasks_that_have_begun_outlive_what_the_rest_depends_on),
        cmocka_unit_test(an_array_whose_rest_is_cancelled_depends_on_nothing),
        cmocka_unit_test(an_array_that_waits_no_more_leaves_those_of_its_name_to_who_waited_for_it),
        cmocka_unit_test(in_another_team_it_counts_there),
        cmocka_unit_test(in_another_team_what_it_waits_for_counts_there),
        cmocka_unit_test(a_new_name_is_waited_for_as_at_a_submit),
        cmocka_unit_test(at_the_limit_a_job_may_wait_for_less),
        cmocka_unit_test(who_no_longer_stands_for_others_has_one_heir),
        cmocka_unit_test(who_waits_for_all_of_its_name_does_so_whatever_changes),
        cmocka_unit_test(it_is_queued_again_as_often_as_is_said_last),
        cmocka_unit_test(a_job_of_several_nodes_may_need_others),
        cmocka_unit_test(its_time_to_begin_is_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
