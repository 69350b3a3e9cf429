/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of what jobs depend on after their submit: by number, by name and in another team.
 */
#include "tests/core/lifecycle/updates.h"

#include "base/prng.h"
#include "base/str.h"
#include "scheduler/core/model/model_access.h"
#include "scheduler/core/queue/arrays.h"
#include "scheduler/core/queue/dependencies.h"
#include "scheduler/core/queue/namesakes.h"
#include <inttypes.h>
#include <string.h>

static int64_t n_depends(const struct lab *l, int64_t job)
{
    int64_t n = 0;
    LIST_FOREACH (&job_side(model_job(l->m, job))->depends, k)
        n++;
    return n;
}

static void dependencies_are_replaced_at_both_ends(void **state)
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
    lab_apply(&l, updates_depends(third, &on_first, 1, false));
    assert_true(model_job(l.m, third)->is_waiting);
    lab_apply(&l, updates_depends(third, on_both, 2, true));
    shelf_restart(&s, &l);
    assert_int_equal(n_depends(&l, third), 2);
    lab_apply(&l, updates_depends(third, &on_both[1], 1, false));
    shelf_restart(&s, &l);
    assert_int_equal(n_depends(&l, third), 1);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = first, .by = "ann"}});
    lab_ended(&l, first, END_CANCELLED, 1); /* no job waits for it any more */
    assert_false(updates_waits(&l, second));
    assert_true(model_job(l.m, third)->is_waiting);
    lab_apply(&l, updates_depends(third, NULL, 0, false));
    assert_false(model_job(l.m, third)->is_waiting);
    /* again: with a previously dropped row */
    lab_apply(&l, updates_depends(third, &on_both[1], 1, false));
    shelf_restart(&s, &l);
    assert_true(model_job(l.m, third)->is_waiting);
    updates_refuse_event(&l,
        updates_depends(
            second, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = third}, 1, false),
        ERR_INVALID, "submitted before it");
    updates_refuse_event(&l,
        updates_depends(third, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = third}, 1, false),
        ERR_INVALID, "submitted before it");
    updates_refuse_event(&l,
        updates_depends(third,
            &(struct depend_ask){
                .kind = DEPEND_AFTEROK, .on = first, .has_ended = true, .end = END_CANCELLED},
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
    updates_apply(l, job, BIT(NAME), to);
}

static void singletons_count_by_the_name_after_a_rename(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    lab_init(&l);
    int64_t a = lab_submit_cpus(&l, 1), b = singleton(&l, "train"), c = singleton(&l, "train"),
            other = lab_submit_cpus(&l, 1), d = singleton(&l, "eval");
    assert_true(updates_waits(&l, b) && updates_waits(&l, c) && !updates_waits(&l, d));
    rename_to(&l, b, "eval"); /* c waited for a only through b */
    assert_true(!updates_waits(&l, b) && updates_waits(&l, c));
    shelf_restart(&s, &l);
    rename_to(&l, a, "eval");
    assert_true(!updates_waits(&l, c) &&
                !updates_waits(&l, b)); /* it had no job to wait for at its submit */
    rename_to(&l, other, "eval");
    int64_t e = singleton(&l, "eval");
    assert_true(updates_waits(&l, e));
    rename_to(&l, c, "eval"); /* e waits for all earlier jobs of that name */
    assert_int_equal(n_depends(&l, e), 5);
    shelf_restart(&s, &l);
    rename_to(&l, e, "alone");
    assert_false(updates_waits(&l, e));
    shelf_deinit(&s);
    lab_deinit(&l);
}

static void a_removed_singleton_passes_its_dependencies_to_the_next(void **state)
{
    (void)state;
    struct lab l;
    lab_init(&l);
    int64_t a = lab_submit_cpus(&l, 1), b = singleton(&l, "train"), c = singleton(&l, "train"),
            d = singleton(&l, "train");
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = b, .by = "ann"}});
    assert_true(updates_waits(&l, c));
    lab_apply(&l, updates_depends(c, NULL, 0, false));
    assert_true(!updates_waits(&l, c) && updates_waits(&l, d));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = c, .by = "ann"}});
    assert_true(updates_waits(&l, d));
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = a, .by = "ann"}});
    assert_false(updates_waits(&l, d));
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
    int64_t first = lab_submit_nodes(&l, 1, 9, 0), j = updates_submit_array(&l, "0-3", 1);
    lab_plan(&l);
    lab_apply(&l,
        updates_depends(j, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = first}, 1, false));
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
static void an_array_drops_its_dependencies_when_its_pending_tasks_are_cancelled(void **state)
{
    (void)state;
    struct lab l;
    struct shelf s = {0};
    struct ranges rest;
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t first = lab_submit_nodes(&l, 1, 9, 0), j = updates_submit_array(&l, "0-3", 1);
    lab_plan(&l);
    lab_apply(&l,
        updates_depends(j, &(struct depend_ask){.kind = DEPEND_AFTEROK, .on = first}, 1, false));
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
    assert_true(updates_waits(l, last));
    lab_apply(l, (struct event){.type = EV_CANCEL, .cancel = {.job = first, .by = "ann"}});
    assert_false(updates_waits(l, last));
    shelf_deinit(&s);
}

static void an_array_that_no_longer_waits_passes_its_dependencies_to_the_next(void **state)
{
    (void)state;
    for (int is_given_up = 0; is_given_up < 2; is_given_up++) {
        struct lab l;
        struct ranges rest;
        lab_init(&l);
        lab_join(&l, "n1", 2);
        int64_t first = lab_submit_cpus(&l, 9), other = lab_submit_cpus(&l, 9),
                j = updates_submit_array(&l, "0-3", 1);
        rename_to(&l, other, "other");
        lab_plan(&l);
        const struct depend_ask asks[] = {
            {.kind = DEPEND_SINGLETON}, {.kind = DEPEND_AFTEROK, .on = other}};
        lab_apply(&l, updates_depends(j, asks, 2, false));
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

/* The limit on dependencies per user and team, like all other counts. */
static void dependencies_count_in_the_team_that_a_job_moves_to(void **state)
{
    (void)state;
    static struct policy_user users[] = {{.name = "ann", .shares = 1}};
    static struct policy_team teams[] = {{.name = "red", .shares = 1, .users = users, .n_users = 1},
        {.name = "blue", .shares = 1, .users = users, .n_users = 1}};
    struct queue_policy o = queue_policy_defaults;
    struct lab l;
    struct shelf s = {.policy = &o};
    o.teams = teams;
    o.n_teams = 2;
    lab_init_policy(&l, &o);
    int64_t first = lab_submit_cpus(&l, 1), second = lab_submit_cpus(&l, 1),
            job = lab_submit_cpus(&l, 1);
    const struct depend_ask asks[] = {
        {.kind = DEPEND_AFTEROK, .on = first}, {.kind = DEPEND_AFTERANY, .on = second}};
    lab_apply(&l, updates_depends(job, asks, 2, false));
    const struct account *red = model_job(l.m, job)->account;
    assert_int_equal(red->n_waits, 2);
    updates_apply(&l, job, BIT(TEAM), (struct job_row){.spec.team = "blue"});
    assert_int_equal(red->n_waits, 0);
    assert_int_equal(model_job(l.m, job)->account->n_waits, 2);
    shelf_restart(&s, &l);
    lab_apply(&l, (struct event){.type = EV_CANCEL, .cancel = {.job = second, .by = "ann"}});
    assert_int_equal(model_job(l.m, job)->account->n_waits, 1);
    updates_apply(&l, job, BIT(TEAM), (struct job_row){.spec.team = "red"});
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

static void a_rename_has_the_dependencies_and_limits_of_a_submit(void **state)
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
        updates_apply(&l, id, BIT(NAME), to);
        assert_int_equal(n_depends(&l, id), NAMESAKES + all);
    }
    assert_in_range(all, 100, RENAMED - 1);
    updates_refuse(&l, id, BIT(NAME), to, ERR_CONFLICT, "allowed");
    assert_in_range(
        a->n_waits, DEPENDENCIES_OF_ACCOUNT_MAX - NAMESAKES - all, DEPENDENCIES_OF_ACCOUNT_MAX);
    updates_refuse_event(&l,
        (struct event){.type = EV_UPDATE,
            .update = {.job = id,
                .by = "ann",
                .fields = BIT(NAME) | BIT(DEPENDS),
                .to = &(struct job_row){.spec.name = "train", .spec.depends_any = true},
                .depends = &(struct depend_ask){.kind = DEPEND_SINGLETON},
                .n_depends = 1}},
        ERR_CONFLICT, "allowed");
    updates_apply(
        &l, id, BIT(NAME), (struct job_row){.spec.name = "another"}); /* no dependent jobs */
    assert_false(updates_waits(&l, id));
    lab_deinit(&l);
}

/* And in another team for jobs without dependencies there. */
static void at_the_limit_dependencies_can_still_be_reduced(void **state)
{
    (void)state;
    static struct policy_user users[] = {{.name = "ann", .shares = 1}};
    static struct policy_team teams[] = {{.name = "red", .shares = 1, .users = users, .n_users = 1},
        {.name = "blue", .shares = 1, .users = users, .n_users = 1}};
    struct queue_policy o = queue_policy_defaults;
    struct lab l;
    struct job_row to_red = {.spec.team = "red"}, to_blue = {.spec.team = "blue"};
    int64_t last = 0, id;
    o.teams = teams;
    o.n_teams = 2;
    lab_init_policy(&l, &o);
    int64_t first = lab_submit_cpus(&l, 1), other = lab_submit_cpus(&l, 1);
    const struct depend_ask ask = {.kind = DEPEND_AFTEROK, .on = first};
    lab_apply(&l, updates_depends(other, &ask, 1, false));
    updates_apply(&l, other, BIT(TEAM), to_blue);
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
    updates_refuse(&l, other, BIT(TEAM), to_red, ERR_CONFLICT, "allowed");
    int64_t had = n_depends(&l, last);
    lab_apply(&l, updates_depends(last, &ask, 1, false));
    assert_int_equal(red->n_waits, DEPENDENCIES_OF_ACCOUNT_MAX - had + 1);
    updates_apply(&l, other, BIT(TEAM), to_red);
    assert_int_equal(red->n_waits, DEPENDENCIES_OF_ACCOUNT_MAX - had + 2);
    updates_apply(&l, last - 1, BIT(TEAM), to_blue);
    assert_int_equal(model_job(l.m, last - 1)->account->n_waits, n_depends(&l, last - 1));
    lab_deinit(&l);
}

/* Later jobs came to wait for it when none of them was a singleton. The first of them inherits its
 * dependencies, and stands for the rest. */
static void a_renamed_singleton_passes_its_dependencies_to_one_job(void **state)
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
    lab_apply(&l, updates_depends(stands, &by_name, 1, false));
    for (id = last; id > stands; id--)
        lab_apply(&l, updates_depends(id, &by_name, 1, false));
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

static void a_singleton_waits_for_all_of_its_name_after_any_update(void **state)
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
            struct event ev = updates_event(id,
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dependencies_are_replaced_at_both_ends),
        cmocka_unit_test(singletons_count_by_the_name_after_a_rename),
        cmocka_unit_test(a_removed_singleton_passes_its_dependencies_to_the_next),
        cmocka_unit_test(tasks_that_have_begun_outlive_what_the_rest_depends_on),
        cmocka_unit_test(an_array_drops_its_dependencies_when_its_pending_tasks_are_cancelled),
        cmocka_unit_test(an_array_that_no_longer_waits_passes_its_dependencies_to_the_next),
        cmocka_unit_test(dependencies_count_in_the_team_that_a_job_moves_to),
        cmocka_unit_test(a_rename_has_the_dependencies_and_limits_of_a_submit),
        cmocka_unit_test(at_the_limit_dependencies_can_still_be_reduced),
        cmocka_unit_test(a_renamed_singleton_passes_its_dependencies_to_one_job),
        cmocka_unit_test(a_singleton_waits_for_all_of_its_name_after_any_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
