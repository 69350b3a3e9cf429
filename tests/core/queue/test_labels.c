/* SPDX-License-Identifier: Apache-2.0
 *
 * Labels: a pool with required labels accepts only jobs that have them. Jobs that fit elsewhere run
 * there; others are refused, with the labels to add.
 */
#include "base/str.h"
#include "tests/core/lab.h"

#include <stdio.h>
#include <string.h>

static int try_submit(struct lab *l, const struct job_row *r, const char *labels, int64_t *ret_id)
{
    struct job_texts texts = lab_texts(labels);
    return lab_try(
        l, &(struct event){.type = EV_SUBMIT, .submit = {.job = r, .texts = &texts}}, ret_id);
}

static int64_t submit(struct lab *l, const struct job_row *r, const char *labels)
{
    int64_t id;
    assert_int_equal(try_submit(l, r, labels, &id), 0);
    return id;
}

static void set_required_labels(struct lab *l, const char *pool, const char *labels)
{
    struct pool_row row = lab_pool(l, pool);
    STR_COPY(row.required_labels, labels);
    lab_set_pool(l, row);
}

static void jobs_with_the_labels_run_in_the_pool_and_others_elsewhere(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(2);
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5.large", 4);
    set_required_labels(&l, "burst", ",team,project,");
    lab_join(&l, "n1", 2);
    int64_t first = submit(&l, &r, "{\"team\":\"nlp\"}"),
            second = submit(&l, &r, "{\"team\":\"nlp\"}");
    lab_plan(&l);
    assert_int_not_equal(lab_node_of(&l, first), CORE_ID_NONE);
    assert_int_equal(lab_node_of(&l, second), CORE_ID_NONE);
    assert_null(list_first(model_instances(l.m))); /* no launch for it */
    assert_true(lab_has_reason(&l, second, "required-labels",
        "pool burst requires further labels of its jobs: project; it runs elsewhere"));
    int64_t third = submit(&l, &r, "{\"project\":\"x\",\"team\":\"nlp\"}");
    lab_plan(&l);
    assert_non_null(list_first(model_instances(l.m)));
    assert_false(lab_has_reason(&l, third, "required-labels", ""));
    set_required_labels(&l, "burst", "");
    lab_plan(&l);
    assert_false(lab_has_reason(&l, second, "required-labels", ""));
    lab_deinit(&l);
}

static void a_job_that_could_run_nowhere_else_is_refused_with_the_labels_to_add(void **state)
{
    (void)state;
    struct lab l;
    struct job_row small = lab_job(1), large = lab_job(4), there = lab_job(1);
    lab_init(&l);
    lab_elastic(&l, "burst", 4, "m5.large", 4);
    lab_join(&l, "n1", 2);
    set_required_labels(&l, "burst", ",team,project,");
    STR_COPY(there.spec.pool, "burst");
    assert_int_equal(try_submit(&l, &large, "{\"team\":\"a\"}", NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "pool burst requires further labels of its jobs: project "
                                     "(--label NAME=VALUE, for each); no other pool"));
    assert_int_equal(try_submit(&l, &there, "{}", NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "of its jobs: team, project (--label NAME=VALUE, for each)"));
    submit(&l, &large, "{\"team\":\"a\",\"project\":\"b\",\"more\":\"c\"}");
    submit(&l, &there, "{\"project\":\"\",\"team\":\"a\"}");
    int64_t job = submit(&l, &small, "{}");
    struct event to_pool = {
        .type = EV_UPDATE, .update = {.job = job, .fields = UPDATE_BIT(UPDATE_POOL), .to = &there}};
    assert_int_equal(lab_try(&l, &to_pool, NULL), ERR_INVALID);
    assert_non_null(strstr(l.e.text, "pool burst requires further labels"));
    lab_deinit(&l);
}

/* A pool gets required labels: running jobs continue, pending ones do not start there. */
static void a_pool_may_require_labels_later(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(2);
    lab_init(&l);
    lab_join(&l, "n1", 2);
    int64_t first = submit(&l, &r, "{}"), second = submit(&l, &r, "{}"),
            third = submit(&l, &r, "{\"team\":\"a\"}");
    lab_plan(&l);
    set_required_labels(&l, "base", ",team,");
    lab_plan(&l);
    assert_int_not_equal(lab_node_of(&l, first), CORE_ID_NONE);
    lab_ended(&l, first, END_SUCCEEDED, 0);
    lab_plan(&l);
    assert_int_equal(lab_node_of(&l, second), CORE_ID_NONE);
    assert_int_not_equal(lab_node_of(&l, third), CORE_ID_NONE);
    assert_true(lab_has_reason(&l, second, "required-labels", "no other pool fits"));
    lab_deinit(&l);
}

/* Only names distinguish jobs: values add no demand classes. Tasks of an array have its labels. */
static void labels_are_shared_and_those_of_arrays_are_their_tasks(void **state)
{
    (void)state;
    struct lab l;
    struct job_row r = lab_job(1);
    struct job_texts texts = lab_texts("{\"b\":\"1\",\"a\":\"1\"}");
    struct ranges tasks;
    lab_init(&l);
    assert_int_equal(ranges_parse("0-3", &tasks, NULL), 0);
    int64_t one = submit(&l, &r, "{\"a\":\"1\",\"b\":\"2\"}"),
            other = submit(&l, &r, "{\"b\":\"x\",\"a\":\"y\"}"), none = submit(&l, &r, "{}");
    int64_t array = lab_apply(&l,
        (struct event){.type = EV_SUBMIT, .submit = {.job = &r, .texts = &texts, .tasks = &tasks}});
    assert_ptr_equal(model_job(l.m, one)->labels, model_job(l.m, other)->labels);
    assert_ptr_equal(model_job(l.m, one)->shape, model_job(l.m, other)->shape);
    assert_ptr_equal(model_job(l.m, array)->labels, model_job(l.m, one)->labels);
    assert_null(model_job(l.m, none)->labels);
    assert_string_equal(model_job(l.m, one)->labels->names, ",a,b,");
    lab_join(&l, "n1", 8);
    lab_plan(&l); /* the tasks begin; model_check verifies the references */
    assert_int_equal(model_job(l.m, one)->labels->n_jobs, 7);
    lab_deinit(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_with_the_labels_run_in_the_pool_and_others_elsewhere),
        cmocka_unit_test(a_job_that_could_run_nowhere_else_is_refused_with_the_labels_to_add),
        cmocka_unit_test(a_pool_may_require_labels_later),
        cmocka_unit_test(labels_are_shared_and_those_of_arrays_are_their_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
