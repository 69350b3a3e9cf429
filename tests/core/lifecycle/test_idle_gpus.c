/* SPDX-License-Identifier: Apache-2.0
 *
 * Jobs that hold GPUs without using them: their owners are notified, and they are saved and held.
 */
#include "tests/core/lifecycle/running.h"

#include "base/str.h"

#define MINUTE_MS 60000

static void set_policy(struct running *r, enum idle_gpus_then then)
{
    struct pool_row pool = lab_pool(&r->l, "base");
    pool.idle_gpus = (struct idle_gpus_policy){
        .then = then, .busy_pct = 5, .for_ms = 30 * MINUTE_MS, .grace_ms = 15 * MINUTE_MS};
    lab_set_pool(&r->l, pool);
}

/* A job that runs on its own node, in a pool with this policy. */
static void start_idle(struct running *r, enum idle_gpus_then then, const struct job_row *job)
{
    lab_init_for_days(&r->l, NULL, 500000);
    set_policy(r, then);
    r->node = lab_join(&r->l, "n1", 4);
    r->job = lab_submit(&r->l, job);
    lab_plan(&r->l);
    lab_started(&r->l, r->job);
    lab_wait(&r->l, 1000);
    lab_plan(&r->l);
}

static void report(struct running *r, bool is_idle)
{
    lab_apply(&r->l, (struct event){.type = EV_GPUS,
                         .gpus = {.job = r->job,
                             .attempt = row(r)->attempts,
                             .node = r->node,
                             .idle_since = is_idle ? r->l.now.wall : WALL_NONE}});
}

static void pass(struct running *r, int64_t ms)
{
    lab_wait(&r->l, ms);
    lab_plan(&r->l);
}

static bool is_notified(const struct running *r)
{
    return wall_is_set(model_job(r->l.m, r->job)->row.idle_gpus_told_at);
}

static const struct outbox_row *notification(const struct running *r)
{
    for (size_t i = 0; i < r->l.c.n_outbox; i++)
        if (r->l.c.outbox[i].kind == NOTIFY_IDLE_GPUS)
            return &r->l.c.outbox[i];
    return NULL;
}

static void an_owner_is_notified_and_after_the_grace_the_job_is_saved_and_held(void **state)
{
    (void)state;
    struct running r;
    struct job_row job = lab_job(4);
    start_idle(&r, IDLE_GPUS_PARK, &job);
    report(&r, true);
    int64_t since_ms = r.l.now.wall.ms;
    pass(&r, 30 * MINUTE_MS - 1);
    assert_false(is_notified(&r));
    lab_take(&r.l);
    pass(&r, 1);
    lab_take(&r.l);
    const struct outbox_row *n = notification(&r);
    assert_non_null(n);
    assert_string_equal(n->target, "mail"); /* although the job asked for none */
    assert_int_equal(n->idle_since.ms, since_ms);
    assert_int_equal(n->parks_at.ms, since_ms + 45 * MINUTE_MS);
    assert_int_equal(n->spent_uusd, 500000);
    assert_true(lab_has_reason(&r.l, r.job, "idle-gpus", "in 15m00s it is saved and held"));
    pass(&r, 15 * MINUTE_MS - 1);
    assert_int_equal(row(&r)->hold, HOLD_NONE);
    lab_take(&r.l);
    pass(&r, 1);
    assert_int_equal(row(&r)->hold, HOLD_IDLE_GPUS);
    assert_true(lab_has_reason(&r.l, r.job, "idle-gpus", "is being saved"));
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.state, ATTEMPT_RUNNING);
    lab_saved(&r.l, r.job, 1, 7);
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.state, ATTEMPT_STOPPING);
    lab_ended(&r.l, r.job, END_CANCELLED, 0);
    lab_take(&r.l);
    assert_null(notification(&r));
    pass(&r, 60 * MINUTE_MS);
    assert_int_equal(row(&r)->state, JOB_PENDING);
    assert_int_equal(row(&r)->last_good_progress, 7);
    assert_true(lab_has_reason(&r.l, r.job, "idle-gpus", "it is parked"));
    lab_apply(&r.l, (struct event){.type = EV_RELEASE, .release = {.job = r.job, .by = "ann"}});
    lab_plan(&r.l);
    assert_int_equal(row(&r)->state, JOB_RUNNING);
    lab_started(&r.l, r.job);
    pass(&r, 120 * MINUTE_MS); /* what the attempt before did is over */
    assert_false(is_notified(&r));
    lab_deinit(&r.l);
}

/* It continues, and its owner is notified again before it is parked. */
static void a_hold_by_a_user_ends_the_parking(void **state)
{
    (void)state;
    struct running r;
    struct job_row job = lab_job(4);
    start_idle(&r, IDLE_GPUS_PARK, &job);
    report(&r, true);
    pass(&r, 30 * MINUTE_MS);
    pass(&r, 15 * MINUTE_MS);
    assert_int_equal(row(&r)->hold, HOLD_IDLE_GPUS);
    lab_apply(&r.l, (struct event){.type = EV_HOLD, .hold = {.job = r.job, .by = "ann"}});
    assert_int_equal(row(&r)->hold, HOLD_USER);
    assert_false(is_notified(&r));
    lab_saved(&r.l, r.job, 1, 7);
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.state, ATTEMPT_RUNNING);
    lab_apply(&r.l, (struct event){.type = EV_RELEASE, .release = {.job = r.job, .by = "ann"}});
    pass(&r, 16 * MINUTE_MS);
    assert_int_equal(row(&r)->hold, HOLD_NONE);
    lab_deinit(&r.l);
}

static void a_job_that_uses_its_gpus_again_is_left_alone(void **state)
{
    (void)state;
    struct running r;
    struct job_row job = lab_job(4);
    start_idle(&r, IDLE_GPUS_PARK, &job);
    report(&r, true);
    pass(&r, 44 * MINUTE_MS);
    assert_true(is_notified(&r));
    report(&r, false);
    assert_false(is_notified(&r));
    pass(&r, 60 * MINUTE_MS);
    assert_int_equal(row(&r)->hold, HOLD_NONE);
    /* also while it is saved: the request is dropped */
    report(&r, true);
    pass(&r, 30 * MINUTE_MS);
    pass(&r, 15 * MINUTE_MS);
    assert_int_equal(row(&r)->hold, HOLD_IDLE_GPUS);
    report(&r, false);
    assert_int_equal(row(&r)->hold, HOLD_NONE);
    lab_saved(&r.l, r.job, 1, 7);
    assert_int_equal(job_attempt(model_job(r.l.m, r.job))->row.state, ATTEMPT_RUNNING);
    lab_deinit(&r.l);
}

static void a_job_that_cannot_be_saved_is_never_held(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct running r;
        struct job_row job = lab_job(4);
        if (k == 0)
            job.spec.method = CKPT_NONE;
        if (k == 1)
            for (int i = 0; i < RETRY_KINDS; i++)
                job.spec.retries.n[i] = RETRIES_NEVER;
        start_idle(&r, k == 2 ? IDLE_GPUS_TELL : IDLE_GPUS_PARK, &job);
        report(&r, true);
        lab_take(&r.l);
        pass(&r, 30 * MINUTE_MS);
        lab_take(&r.l);
        assert_non_null(notification(&r));
        assert_false(wall_is_set(notification(&r)->parks_at));
        pass(&r, 600 * MINUTE_MS);
        lab_take(&r.l);
        assert_null(notification(&r)); /* only once */
        assert_int_equal(row(&r)->hold, HOLD_NONE);
        lab_deinit(&r.l);
    }
}

static void an_owner_may_keep_the_gpus_and_an_operator_end_the_policy(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct running r;
        struct job_row job = lab_job(4);
        start_idle(&r, IDLE_GPUS_PARK, &job);
        report(&r, true);
        pass(&r, 30 * MINUTE_MS);
        pass(&r, 15 * MINUTE_MS);
        assert_int_equal(row(&r)->hold, HOLD_IDLE_GPUS);
        struct job_row to = *row(&r);
        to.spec.idle_gpus = IDLE_GPUS_KEEP;
        if (k == 0)
            lab_apply(&r.l, (struct event){.type = EV_UPDATE,
                                .update = {.job = r.job,
                                    .by = "ann",
                                    .fields = UPDATE_BIT(UPDATE_IDLE_GPUS),
                                    .to = &to}});
        else
            set_policy(&r, IDLE_GPUS_IGNORE);
        assert_int_equal(row(&r)->hold, HOLD_NONE);
        pass(&r, 600 * MINUTE_MS);
        assert_int_equal(row(&r)->hold, HOLD_NONE);
        assert_int_equal(row(&r)->state, JOB_RUNNING);
        lab_deinit(&r.l);
    }
}

static void a_failed_save_loses_nothing_and_begins_anew(void **state)
{
    (void)state;
    struct running r;
    struct job_row job = lab_job(4);
    start_idle(&r, IDLE_GPUS_PARK, &job);
    report(&r, true);
    pass(&r, 30 * MINUTE_MS);
    pass(&r, 15 * MINUTE_MS);
    lab_apply(&r.l, (struct event){.type = EV_SAVE_FAILED,
                        .save_failed = {.job = r.job,
                            .attempt = row(&r)->attempts,
                            .node = r.node,
                            .text = "the store is full"}});
    assert_int_equal(row(&r)->hold, HOLD_NONE);
    assert_int_equal(row(&r)->state, JOB_RUNNING);
    pass(&r, 29 * MINUTE_MS);
    assert_false(is_notified(&r));
    pass(&r, MINUTE_MS);
    assert_true(is_notified(&r));
    pass(&r, 15 * MINUTE_MS);
    assert_int_equal(row(&r)->hold, HOLD_IDLE_GPUS);
    lab_deinit(&r.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_is_notified_and_after_the_grace_the_job_is_saved_and_held),
        cmocka_unit_test(a_hold_by_a_user_ends_the_parking),
        cmocka_unit_test(a_job_that_uses_its_gpus_again_is_left_alone),
        cmocka_unit_test(a_job_that_cannot_be_saved_is_never_held),
        cmocka_unit_test(an_owner_may_keep_the_gpus_and_an_operator_end_the_policy),
        cmocka_unit_test(a_failed_save_loses_nothing_and_begins_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
