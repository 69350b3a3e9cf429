/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts that are withheld from their agents, because the store cannot be used.
 */
#include "tests/core/lifecycle/running.h"
#include "scheduler/core/forecast/explain.h"

#include "base/str.h"
#include <string.h>

static void withhold(struct running *r, enum withheld why, const char *text)
{
    struct event ev = {.type = EV_WITHHELD,
        .withheld = {.job = r->job, .attempt = row(r)->attempts, .node = r->node, .why = why}};
    STR_COPY(ev.withheld.text, text);
    lab_apply(&r->l, ev);
}

/* The attempt is assigned, but withheld from its agent. */
static void start_withheld(struct running *r, enum withheld why)
{
    start(r);
    lab_ended(&r->l, r->job, END_CANCELLED, 0);
    lab_plan(&r->l);
    withhold(r, why, "the issuer gives none; to do: give some");
}

/* Seconds until its attempt has ended, or more than most_s. */
static int64_t ends_in_s(struct running *r, int64_t most_s)
{
    int64_t s = 0;
    for (; s <= most_s && row(r)->state == JOB_RUNNING; s++) {
        lab_wait(&r->l, 1000);
        lab_heartbeats(&r->l);
        lab_plan(&r->l);
    }
    return s;
}

static void a_withheld_attempt_ends_after_its_time_or_a_fifth_if_it_is_denied(void **state)
{
    (void)state;
    for (int denied = 0; denied < 2; denied++) {
        struct running r;
        start_withheld(&r, denied ? WITHHELD_DENIED : WITHHELD_AWAY);
        assert_int_equal(ends_in_s(&r, 700), denied ? 120 : 600);
        assert_int_equal(row(&r)->state, JOB_PENDING);
        assert_int_equal(row(&r)->end, END_STORE_AWAY);
        assert_int_equal(row(&r)->used[RETRY_FAILED] + row(&r)->used[RETRY_NODE_LOST], 0);
        assert_true(list_is_empty(&model_node(r.l.m, r.node)->attempts));
        lab_deinit(&r.l);
    }
}

static void a_job_is_held_after_three_withheld_attempts(void **state)
{
    (void)state;
    struct running r;
    start_withheld(&r, WITHHELD_DENIED);
    for (int n = 1; n < JOB_STORE_MAX; n++) {
        assert_int_equal(ends_in_s(&r, 700), 120);
        assert_int_equal(row(&r)->hold, HOLD_NONE);
        lab_wait(&r.l, row(&r)->spec.begin_at.ms - r.l.now.wall.ms);
        lab_heartbeats(&r.l);
        lab_plan(&r.l);
        withhold(&r, WITHHELD_DENIED, "the issuer gives none");
    }
    assert_int_equal(ends_in_s(&r, 700), 120);
    assert_int_equal(row(&r)->hold, HOLD_STORE);
    lab_take(&r.l);
    assert_non_null(
        strstr(lab_history(&r.l, "ended")->text, "belayd tried for 2m00s: the issuer gives"));
    lab_deinit(&r.l);
}

/* Once per cause in the history; `why` has it, with the remaining time, until the attempt is
 * delivered. */
static void a_withheld_attempt_says_so_until_it_is_given(void **state)
{
    (void)state;
    struct reason reasons[EXPLAIN_REASONS_MAX];
    struct running r;
    start_withheld(&r, WITHHELD_AWAY);
    withhold(&r, WITHHELD_AWAY, "the issuer gives none; to do: give some");
    lab_take(&r.l);
    int n_rows = 0;
    for (size_t i = 0; i < r.l.c.n_history; i++)
        n_rows += str_eq(r.l.c.history[i].kind, "store-refused");
    assert_int_equal(n_rows, 1);
    lab_wait(&r.l, 60000);
    assert_true(core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX) > 0);
    assert_string_equal(reasons[0].code, "store-refused");
    assert_non_null(strstr(
        reasons[0].text, "waits 9m00s more for belayd: the issuer gives none; to do: give some"));
    withhold(&r, WITHHELD_NO, "");
    core_explain(r.l.m, r.l.now, r.job, reasons, EXPLAIN_REASONS_MAX);
    assert_string_equal(reasons[0].code, "running");
    assert_int_equal(ends_in_s(&r, 1000), 1001); /* the agent's own deadline applies now */
    struct event late = {.type = EV_WITHHELD_DUE,
        .withheld_due = {.job = r.job, .attempt = row(&r)->attempts, .node = r.node}};
    assert_int_equal(lab_try(&r.l, &late, NULL), ERR_CONFLICT);
    lab_deinit(&r.l);
}

/* As after a restart of belayd: by the time of assignment, but one failure alone ends nothing. */
static void an_attempt_withheld_late_is_tried_for_half_a_minute(void **state)
{
    (void)state;
    for (int waited_s = 500; waited_s <= 1500; waited_s += 500) {
        struct running r;
        start(&r);
        lab_ended(&r.l, r.job, END_CANCELLED, 0);
        lab_plan(&r.l);
        for (int s = 0; s < waited_s; s += 10) {
            lab_wait(&r.l, 10000);
            lab_heartbeats(&r.l);
            lab_plan(&r.l);
        }
        withhold(&r, WITHHELD_AWAY, "the issuer gives none");
        assert_int_equal(ends_in_s(&r, 700), waited_s < 570 ? 600 - waited_s : 30);
        lab_deinit(&r.l);
    }
}

static void a_running_or_stopping_attempt_is_not_withheld(void **state)
{
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        struct running r;
        start_withheld(&r, WITHHELD_DENIED);
        if (stops)
            lab_apply(
                &r.l, (struct event){.type = EV_CANCEL, .cancel = {.job = r.job, .by = "ann"}});
        else
            lab_started(&r.l, r.job);
        withhold(&r, WITHHELD_DENIED, "the issuer gives none");
        for (int k = 0; k < 100; k++) {
            lab_wait(&r.l, 10000);
            lab_heartbeats(&r.l);
            lab_plan(&r.l);
        }
        assert_int_equal(row(&r)->state, stops ? JOB_CANCELLING : JOB_RUNNING);
        lab_deinit(&r.l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_withheld_attempt_ends_after_its_time_or_a_fifth_if_it_is_denied),
        cmocka_unit_test(a_job_is_held_after_three_withheld_attempts),
        cmocka_unit_test(a_withheld_attempt_says_so_until_it_is_given),
        cmocka_unit_test(an_attempt_withheld_late_is_tried_for_half_a_minute),
        cmocka_unit_test(a_running_or_stopping_attempt_is_not_withheld),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
