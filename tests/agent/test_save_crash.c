/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves of real tasks during drains, crashes of the agent, later attempts and with missing stores.
 */
#include "saving.h"

#include "agent/task/record.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ckpt/ckpt.h"
#include "ckpt/store/marker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- stops, crashes ---- */

static void a_drain_saves_and_ends_drained(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    a->want = WIRE_SAVE_STOP;
    a->reason = WIRE_END_DRAINED;
    world_go(w);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_DRAINED);
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_DRAIN);
    assert_non_null(strstr(world_output(w, 1), "\"reason\":\"evict\""));
}

static void a_commit_made_while_there_is_no_agent_is_served_by_the_next(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1,
        "#!/bin/sh\n"
        "echo up\n"
        "while [ ! -e \"$BELAY_CONTROL_DIR/go\" ]; do sleep 0.02; done\n"
        "echo state >\"$BELAY_CHECKPOINT_DIR/state\"\n"
        "echo '{\"progress\":5}' >\"$BELAY_CONTROL_DIR/c\"; mv \"$BELAY_CONTROL_DIR/c\" "
        "\"$BELAY_CONTROL_DIR/commit.1\"\n"
        "while [ ! -e \"$BELAY_CONTROL_DIR/result.1\" ]; do sleep 0.02; done\n"
        "cat \"$BELAY_CONTROL_DIR/result.1\"; echo\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_kill_agent(w, SIGKILL);
    world_task_write(w, 1, 1, "control/go", "");
    world_until(w, has_committed, 1, "the program has committed");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the program had its answer");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_int_equal(world_reported(w, 1)->checkpoints[0].progress, 5);
}

/* The agent was killed between the store's commit and its own record. */
static void a_stored_save_that_was_not_reported_is_reported_by_the_next_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct task_state s;
    struct err e;
    want_coop(w, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, output_has_result, 1, "the save is done");
    world_kill_agent(w, SIGKILL);
    char *path = world_task_path(w, 1, 1, "state.json");
    assert_int_equal(record_read_state(path, &s, &e), 0);
    assert_int_equal(s.reported.n_checkpoints, 1);
    s.reported.n_checkpoints = 0;
    s.saving = true;
    assert_int_equal(record_write_state(path, &s, &e), 0);
    record_deinit_state(&s);
    free(path);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    assert_int_equal(world_reported(w, 1)->checkpoints[0].sequence, 1);
    assert_int_equal(world_reported(w, 1)->checkpoints[0].progress, 5);
}

static void an_older_attempt_cannot_save_over_a_later_one(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    struct store *store; /* a later attempt may use another store */
    struct err e;
    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1};
    assert_int_equal(ckpt_fence(&j, 2, &e), 0);
    store_close(store);
    world_task_write(w, 1, 1, "control/request", "{}"); /* makes the program commit */
    world_until(w, has_ended, 1, "the stale attempt ended");
    assert_end(w, WIRE_END_NODE_LOST);
    assert_non_null(strstr(world_reported(w, 1)->text, "fenced"));
    assert_int_equal(stored_checkpoints(w).n, 0);
}

static void a_node_that_is_left_alone_saves_and_ends(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\norphan_timeout: 1s\n");
    char *mark = mem_printf("%s/powered-off", w->dir);
    char *old = world_read(w->config);
    char *text = mem_printf("%spower_off: touch %s\n", old, mark);
    world_write(w->config, text);
    w->lease_ms = 500;
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    w->deaf = true;
    world_go(w);
    assert_int_equal(world_wait_agent(w), 3);
    assert_int_equal(stored_checkpoints(w).n, 1);
    assert_true(access(mark, F_OK) == 0);
    free(mark);
    free(old);
    free(text);
}

/* Runs one attempt that expects the store to belong to this cluster. Returns how it ended. */
static enum wire_end end_with_store(struct world *w, int64_t attempt)
{
    struct wire_desired_attempt *a = want_coop(w, attempt, resume_script);
    STR_COPY(a->store_uid, "0123456789abcdef");
    a->store_wait_ms = 500;
    if (attempt == 1)
        world_start_agent(w);
    else
        world_go(w);
    world_until(w, has_ended, 1, "it ended");
    return world_reported(w, 1)->end;
}

/* The directory is missing (a missing mount), or has no marker. Another node may have it. */
static void a_store_missing_on_a_node_is_a_fault_of_that_node(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *dir = mem_printf("%s/store", w->dir);
    struct err e;

    fs_remove_tree(dir, &e);
    assert_int_equal(end_with_store(w, 1), WIRE_END_STORE_AWAY);
    assert_non_null(strstr(world_reported(w, 1)->text, "no such directory"));
    assert_non_null(strstr(world_reported(w, 1)->text, "mount it on this node"));
    assert_int_equal(fs_mkdirs(dir, 0700, &e), 0);
    assert_int_equal(end_with_store(w, 2), WIRE_END_STORE_AWAY);
    assert_non_null(strstr(world_reported(w, 1)->text, "no marker"));
    free(dir);
}

/* Every node would find the same: the job is held, and not tried elsewhere. */
static void another_clusters_store_is_no_fault_of_the_node(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct store *store;
    struct err e;

    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    assert_int_equal(
        marker_write(store, "lab", &(struct marker){0}, "fedcba9876543210", 0, 1, &e), 0);
    store_close(store);
    assert_int_equal(end_with_store(w, 1), WIRE_END_STORE);
    assert_non_null(strstr(world_reported(w, 1)->text, "another cluster"));
    assert_non_null(strstr(world_reported(w, 1)->text, "belay release 1"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(a_drain_saves_and_ends_drained),
        world_test(a_commit_made_while_there_is_no_agent_is_served_by_the_next),
        world_test(a_stored_save_that_was_not_reported_is_reported_by_the_next_agent),
        world_test(a_store_missing_on_a_node_is_a_fault_of_that_node),
        world_test(another_clusters_store_is_no_fault_of_the_node),
        world_test(an_older_attempt_cannot_save_over_a_later_one),
        world_test(a_node_that_is_left_alone_saves_and_ends),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
