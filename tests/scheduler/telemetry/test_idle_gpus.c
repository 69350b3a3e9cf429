/* SPDX-License-Identifier: Apache-2.0
 *
 * From minutes that a node reports to the state of a job: when its GPUs count as idle, and that a
 * restart of belayd changes nothing.
 */
#include "scheduler/idle_gpus.h"

#include "base/str.h"
#include "scheduler/core/lifecycle/idle_gpus.h"
#include "tests/scheduler/lab.h"
#include <signal.h>

#define MINUTE_MS 60000

struct reporter {
    struct lab *lab;
    int64_t node, no, started_ms;
};

/* Job 1 runs with two GPUs on a node of a pool with a policy. */
static struct reporter begin(struct lab *lab)
{
    struct pool_row pool = {.max_nodes = 10,
        .idle_gpus = {.then = IDLE_GPUS_PARK,
            .busy_pct = 5,
            .for_ms = 5 * MINUTE_MS,
            .grace_ms = 3 * MINUTE_MS}};
    struct node_row node = {.name = "n",
        .key_hash = "k",
        .pool = "base",
        .total = {.cpus = 4, .gpus = 2, .memory_mib = 4096}};
    struct job_row job = {.user = "ann",
        .spec = {.name = "j",
            .need = {.cpus = 1, .gpus = 2, .memory_mib = 64},
            .nodes = 1,
            .method = CKPT_SIGNAL,
            .ckpt_signal = SIGUSR1,
            .ckpt_keep = 3}};
    struct job_texts texts = {.script = "exit 0", .env_json = "{}", .labels_json = "{}"};
    struct lab_reply r = {0};
    STR_COPY(pool.name, "base");
    lab_post(lab, (struct event){.type = EV_POOL, .pool = &pool}, NULL);
    lab_tick(lab);
    lab_post(lab,
        (struct event){.type = EV_JOIN, .join = {.node = &node, .instance = CORE_ID_NONE}}, &r);
    lab_tick(lab);
    assert_int_equal(r.rc, 0);
    struct reporter t = {.lab = lab, .node = r.id};
    job.spec.retries = job_spec_default.retries;
    lab_post(lab, (struct event){.type = EV_SUBMIT, .submit = {.job = &job, .texts = &texts}}, &r);
    lab_tick(lab);
    if (r.rc != 0)
        fail_msg("%s", r.e.text);
    lab_post(lab,
        (struct event){.type = EV_ATTEMPT_STARTED,
            .started =
                {.job = 1, .attempt = 1, .node = t.node, .restored_progress = PROGRESS_NONE}},
        &r);
    lab_tick(lab);
    assert_int_equal(r.rc, 0);
    t.started_ms = clock_wall(lab->vt.timers.clock).ms;
    return t;
}

/* Reports a minute that began `age_ms` ago; the busy part of each GPU in percent, -1: not
 * reported, -2: a slice, which reports no utilisation. */
static void report(struct reporter *t, int64_t age_ms, int a_pct, int b_pct)
{
    struct wire_gpu_load loads[2] = {0};
    struct wire_status st = {.gpu_loads = loads};
    const int of[] = {a_pct, b_pct};
    struct wall now = clock_wall(t->lab->vt.timers.clock);
    int64_t above = t->no;
    for (size_t i = 0; i < 2; i++) {
        if (of[i] == -1)
            continue;
        struct wire_gpu_load *l = &loads[st.n_gpu_loads++];
        *l = (struct wire_gpu_load){.no = ++t->no,
            .at = now.ms - age_ms,
            .index = (int64_t)i,
            .job = 1,
            .attempt = 1,
            .is_slice = of[i] == -2,
            .load = {.ms = MINUTE_MS}};
        STR_COPY(l->gpu, i ? "GPU-b" : "GPU-a");
        if (of[i] >= 0) {
            l->load.known_ms = MINUTE_MS;
            l->load.busy_ms = MINUTE_MS * of[i] / 100;
        }
    }
    idle_gpus_take(t->lab->tick, t->node, &st, above, now);
    lab_tick(t->lab);
}

static struct wall since(const struct reporter *t)
{
    return idle_gpus_since(model_job(t->lab->model, 1));
}

static void pass(struct reporter *t, int64_t minutes)
{
    for (int64_t i = 0; i < minutes * 6; i++) {
        lab_advance(t->lab, MINUTE_MS / 6);
        lab_post(t->lab, (struct event){.type = EV_HEARTBEAT, .heartbeat.node = t->node}, NULL);
        lab_tick(t->lab);
    }
}

static void all_gpus_have_to_be_idle_and_known_to_be(void **state)
{
    struct reporter t = begin(*state);
    pass(&t, 2);
    report(&t, MINUTE_MS, 0, -1);
    assert_false(wall_is_set(since(&t)));
    report(&t, MINUTE_MS, 0, -2);
    assert_false(wall_is_set(since(&t)));
    report(&t, MINUTE_MS, 0, 5);
    assert_false(wall_is_set(since(&t)));
    report(&t, 3 * MINUTE_MS, 0, 0); /* it began before the job */
    assert_false(wall_is_set(since(&t)));
    report(&t, MINUTE_MS, 0, 4);
    assert_int_equal(since(&t).ms, clock_wall(t.lab->vt.timers.clock).ms - MINUTE_MS);
    pass(&t, 1);
    report(&t, MINUTE_MS, 0, 0);
    assert_int_equal(since(&t).ms, clock_wall(t.lab->vt.timers.clock).ms - 2 * MINUTE_MS);
    report(&t, MINUTE_MS, -1, -1);
    assert_true(wall_is_set(since(&t)));
    report(&t, MINUTE_MS, 90, -1); /* one that is busy suffices */
    assert_false(wall_is_set(since(&t)));
}

static void what_was_seen_before_a_restart_still_counts(void **state)
{
    struct reporter t = begin(*state);
    pass(&t, 2);
    report(&t, MINUTE_MS, 0, 0);
    struct wall idle = since(&t);
    lab_restart(t.lab);
    lab_tick(t.lab);
    assert_int_equal(since(&t).ms, idle.ms);
    pass(&t, 4);
    const struct job *j = model_job(t.lab->model, 1);
    assert_true(wall_is_set(j->row.idle_gpus_told_at));
    struct wall told = j->row.idle_gpus_told_at;
    lab_restart(t.lab);
    lab_tick(t.lab);
    j = model_job(t.lab->model, 1);
    assert_int_equal(j->row.idle_gpus_told_at.ms, told.ms);
    pass(&t, 2);
    assert_int_equal(j->row.hold, HOLD_NONE);
    pass(&t, 1);
    assert_int_equal(j->row.hold, HOLD_IDLE_GPUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            all_gpus_have_to_be_idle_and_known_to_be, lab_setup, lab_teardown),
        cmocka_unit_test_setup_teardown(
            what_was_seen_before_a_restart_still_counts, lab_setup, lab_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
