/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of real tasks: committed, stored, reported, restored; kept on the node; with secrets;
 * with a control directory that is made expensive.
 */
#include "saving.h"

#include "agent/keyring.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/time.h"
#include "ckpt/chunk.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_commit_is_stored_reported_and_restored(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    const struct wire_checkpoint *c = &world_reported(w, 1)->checkpoints[0];
    assert_int_equal(c->sequence, 1);
    assert_int_equal(c->progress, 5);
    assert_int_equal(c->bytes, 6);
    assert_int_equal(c->cause, WIRE_CAUSE_PROGRAM);
    world_until(w, output_has_result, 1, "the program has its answer");
    assert_non_null(
        strstr(world_output(w, 1), "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false}"));
    want_coop(w, 2, resume_script);
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state\n");
    assert_int_equal(world_reported(w, 1)->restored_attempt, 1);
    assert_int_equal(world_reported(w, 1)->restored_sequence, 1);
    assert_int_equal(world_reported(w, 1)->restored_progress, 5);
}

static bool is_restored_and_asks_for_its_workdir(struct world *w, int64_t job)
{
    return w->asked_workdir && world_task_has(w, job, 2, "checkpoint/state");
}

static void want_resume_in(struct world *w, const char *workdir)
{
    struct wire_desired_attempt *a = want_coop(w, 2, resume_script);
    chunk_hash(workdir, strlen(workdir), a->workdir);
    world_go(w);
}

/* The one comes from belayd, the other from the store: belayd answers only when the other is
 * there. */
static void a_workdir_is_fetched_while_the_checkpoint_is_restored(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    w->workdir = "belay-workdir 1\nd 755 src\n";
    want_resume_in(w, w->workdir);
    world_until(w, is_restored_and_asks_for_its_workdir, 1,
        "the checkpoint is restored while the working directory is not there");
    assert_false(world_task_has(w, 1, 2, "workdir/src"));
    world_send_workdir(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state\n");
    assert_int_equal(world_reported(w, 1)->restored_sequence, 1);
}

static void a_missing_workdir_ends_the_attempt_although_it_is_restored(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    want_resume_in(w, "belay-workdir 1\n");
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_ended(w, 1, WIRE_END_FAILED, 126, "no such working directory");
    assert_string_equal(world_output(w, 1), "");
}

static bool is_kept(struct world *w, int64_t job)
{
    return w->status.n_kept == 1 && w->status.kept[0].job == job;
}

static bool is_not_kept(struct world *w, int64_t job)
{
    char *path = mem_printf("%s/node/kept/%lld-1", w->dir, (long long)job);
    bool there = fs_exists(path);
    free(path);
    return !there;
}

static void save_once_and_end(struct world *w)
{
    want_coop(w, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is cleared away");
    world_until(w, is_kept, 1, "the directories that it left are reported");
}

static void the_next_attempt_on_the_same_node_fetches_nothing(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct err e;
    save_once_and_end(w);
    char *chunks = mem_printf("%s/store/lab/jobs/1/chunks", w->dir);
    assert_true(fs_exists(chunks));
    assert_int_equal(fs_remove_tree(chunks, &e), 0);
    free(chunks);
    want_coop(w, 2, resume_script);
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state\n");
    assert_int_equal(world_reported(w, 1)->restored_bytes, 6);
    assert_int_equal(world_reported(w, 1)->reused_bytes, 6);
    assert_int_equal(world_reported(w, 1)->damaged, 0);
}

static void kept_directories_are_removed_when_their_job_has_ended(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    save_once_and_end(w);
    w->ended = 1;
    world_go(w);
    world_until(w, is_not_kept, 1, "it is removed");
}

static bool has_no_checkpoint(struct world *w, int64_t job)
{
    return !has_checkpoint(w, job);
}

static void an_acknowledged_checkpoint_is_not_reported_again(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    a->acked_sequence = 1;
    world_go(w);
    world_until(w, has_no_checkpoint, 1, "it is no longer reported");
}

/* Waits for the test before it commits. */
static const char commit_late[] =
    "#!/bin/sh\n"
    "env\n"
    "echo state-of-the-job >\"$BELAY_CHECKPOINT_DIR/state\"\n"
    "while [ ! -e \"$BELAY_CHECKPOINT_DIR/go\" ]; do sleep 0.02; done\n"
    "echo '{\"progress\":5}' >\"$BELAY_CONTROL_DIR/c\"\n"
    "ln \"$BELAY_CONTROL_DIR/c\" \"$BELAY_CONTROL_DIR/commit.1\"\n"
    "while [ ! -e \"$BELAY_CONTROL_DIR/result.1\" ]; do sleep 0.02; done\n"
    "sleep 1000\n";

static bool has_secrets(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->secrets == 7;
}

/* Nothing below what is in the scratch directory has the text, nor has the agent's log. */
static bool is_nowhere(struct world *w, const char *where, const char *text)
{
    char *command = mem_printf("grep -rqF -- '%s' '%s/%s'", text, w->dir, where);
    int status = system(command);
    free(command);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 1 && !world_log_has(w, text);
}

static char key[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static char *keys[] = {key};
static const struct wire_secrets secrets = {
    .version = 7, .checkpoint_keys = keys, .n_checkpoint_keys = 1, .encrypts = true};

static char *task_dir(struct world *w)
{
    char *dir = world_task_path(w, 1, 1, "");
    dir[strlen(dir) - 1] = '\0';
    return dir;
}

/* A task with secrets, which belayd does not send again to the next agent. */
static struct wire_desired_attempt *start_and_restart(struct world *w, bool keeps)
{
    struct wire_desired_attempt *a = want_coop(w, 1, commit_late);
    a->needs_secrets = true;
    a->secrets = secrets;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_true(has_secrets(w, 1));
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    a->secrets = (struct wire_secrets){0};
    char *dir = task_dir(w);
    if (!keeps)
        keyring_drop(dir);
    free(dir);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task is taken over");
    return a;
}

static void let_it_commit(struct world *w)
{
    world_task_write(w, 1, 1, "checkpoint/go", "");
}

static bool is_in_keyring(struct world *w)
{
    struct wire_secrets s = {0};
    struct err e;
    char *dir = task_dir(w);
    int rc = keyring_get(dir, clock_wall(&clock_system), &s, &e);
    wire_secrets_wipe(&s);
    free(dir);
    return rc == 0;
}

static bool is_out_of_keyring(struct world *w, int64_t job)
{
    (void)job;
    return !is_in_keyring(w);
}

static void after_a_restart_of_the_agent_it_saves_without_belayd(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct err e;
    char *dir = task_dir(w);
    int rc = keyring_put(dir, &secrets, clock_wall(&clock_system), &e);
    free(dir);
    if (rc == ERR_UNSUPPORTED || rc == ERR_DENIED) {
        print_message("no keyrings here: %s\n", e.text);
        return;
    }
    start_and_restart(w, true);
    assert_true(has_secrets(w, 1));
    let_it_commit(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    assert_int_equal(world_reported(w, 1)->failed_saves, 0);
    assert_true(is_nowhere(w, "store", "state-of-the-job"));
    assert_true(is_nowhere(w, ".", key));
    assert_true(is_in_keyring(w));
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_out_of_keyring, 1, "they go with the attempt");
}

static void after_a_restart_of_the_agent_a_save_waits_for_the_secrets_to_come_again(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = start_and_restart(w, false);
    assert_int_equal(world_reported(w, 1)->secrets, 0);
    let_it_commit(w);
    world_until(w, has_committed, 1, "the program has committed");
    world_go(w);
    world_until(w, is_saving, 1, "the agent has taken the commit");
    assert_int_equal(world_reported(w, 1)->failed_saves, 0);
    a->secrets = secrets;
    world_go(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is reported");
    assert_int_equal(world_reported(w, 1)->failed_saves, 0);
    assert_true(has_secrets(w, 1));
    /* The store has it encrypted, and the key is in no file, log or environment. */
    assert_false(is_nowhere(w, "node", "state-of-the-job"));
    assert_true(is_nowhere(w, "store", "state-of-the-job"));
    assert_true(is_nowhere(w, ".", key));
    assert_non_null(strstr(world_output(w, 1), "BELAY_ATTEMPT="));
    assert_null(strstr(world_output(w, 1), key));
    a = want_coop(w, 2, resume_script);
    a->needs_secrets = true;
    a->secrets = secrets;
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state-of-the-job\n");
    assert_int_equal(world_reported(w, 1)->damaged, 0);
}

static void a_commit_of_a_job_without_checkpoints_is_refused_with_the_reason(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, commit_once_script);
    world_start_agent(w);
    world_until(w, output_has_result, 1, "the program has its answer");
    assert_non_null(strstr(world_output(w, 1), "--checkpoint none"));
}

static void an_exit_that_asks_to_be_continued_needs_a_method(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nexit 85\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_FAILED);
    assert_int_equal(world_reported(w, 1)->exit_code, 85);
    assert_non_null(strstr(world_reported(w, 1)->text,
        "--checkpoint none: submit it with --checkpoint signal or coop"));
}

static void a_failed_save_is_answered_and_reported(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1,
        "#!/bin/sh\n"
        "mkfifo \"$BELAY_CHECKPOINT_DIR/pipe\"\n"
        "echo '{}' >\"$BELAY_CONTROL_DIR/c\"; mv \"$BELAY_CONTROL_DIR/c\" "
        "\"$BELAY_CONTROL_DIR/commit.1\"\n"
        "while [ ! -e \"$BELAY_CONTROL_DIR/result.1\" ]; do sleep 0.02; done\n"
        "cat \"$BELAY_CONTROL_DIR/result.1\"; echo\n"
        "sleep 1000\n");
    world_start_agent(w);
    world_until(w, has_failed_save, 1, "the failure is reported");
    assert_non_null(strstr(world_reported(w, 1)->save_error, "pipe"));
    world_until(w, output_has_result, 1, "the program has its answer");
    assert_non_null(strstr(world_output(w, 1), "\"ok\":false"));
}

static bool output_has_last_result(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "result 12") != NULL;
}

/* A store that refuses whatever the program commits, at its every step: each commit is answered,
 * and one failure reported. */
static void a_save_that_fails_again_for_the_same_reason_is_reported_once(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1,
        "#!/bin/sh\n"
        "mkfifo \"$BELAY_CHECKPOINT_DIR/pipe\"\n"
        "k=1\n"
        "while [ $k -le 12 ]; do\n"
        "  echo '{}' >\"$BELAY_CONTROL_DIR/c\"; mv \"$BELAY_CONTROL_DIR/c\" "
        "\"$BELAY_CONTROL_DIR/commit.$k\"\n"
        "  while [ ! -e \"$BELAY_CONTROL_DIR/result.$k\" ]; do sleep 0.02; done\n"
        "  grep -q '\"ok\":false' \"$BELAY_CONTROL_DIR/result.$k\" && echo \"result $k\"\n"
        "  k=$((k+1))\n"
        "done\n"
        "sleep 1000\n");
    world_start_agent(w);
    world_until(w, output_has_last_result, 1, "the program has all of its answers");
    assert_int_equal(world_reported(w, 1)->failed_saves, 1);
    assert_non_null(strstr(world_reported(w, 1)->save_error, "pipe"));
}

static void a_malformed_commit_is_answered(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1,
        "#!/bin/sh\n"
        "echo '{\"progress\":\"many\"}' >\"$BELAY_CONTROL_DIR/c\"; mv \"$BELAY_CONTROL_DIR/c\" "
        "\"$BELAY_CONTROL_DIR/commit.1\"\n"
        "while [ ! -e \"$BELAY_CONTROL_DIR/result.1\" ]; do sleep 0.02; done\n"
        "cat \"$BELAY_CONTROL_DIR/result.1\"; echo\n"
        "sleep 1000\n");
    world_start_agent(w);
    world_until(w, output_has_result, 1, "the program has its answer");
    assert_non_null(strstr(world_output(w, 1), "commit.1"));
    assert_non_null(strstr(world_output(w, 1), "progress"));
}

/* ---- programs that make their control directory expensive ---- */

static bool has_begun(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "begun") != NULL;
}

/* Job 1 runs the script; job 2, which starts later, is served. */
static void assert_delays_no_other_job(struct world *w, const char *script)
{
    want_coop(w, 1, script);
    world_start_agent(w);
    world_until(w, has_begun, 1, "the first job has begun");
    struct wire_desired_attempt *a = world_want(w, 2, 1, commit_once_script);
    a->method = WIRE_METHOD_COOP;
    world_go(w);
    world_until(w, has_checkpoint, 2, "the other job's checkpoint is reported");
    world_until(w, output_has_result, 2, "the other job has its answer");
}

static void commits_that_cannot_be_removed_delay_no_other_job(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    assert_delays_no_other_job(w, "#!/bin/sh\n"
                                  "cd \"$BELAY_CONTROL_DIR\"\n"
                                  "echo begun\n"
                                  "mkdir .agent-new commit.1 commit.1/x commit.2\n"
                                  "sleep 1000\n");
}

static void a_storm_of_commits_and_names_delays_no_other_job(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    assert_delays_no_other_job(w, "#!/bin/sh\n"
                                  "cd \"$BELAY_CONTROL_DIR\"\n"
                                  "seq -f commit.%.0f 2 20000 | xargs touch\n"
                                  "seq -f %0240.0f 1 20000 | xargs touch\n"
                                  "mkfifo progress\n"
                                  "truncate -s 1T commit.1\n"
                                  "echo begun\n"
                                  "while :; do for i in 1 2 3 4 5 6 7 8 9; do\n"
                                  "  : >x$i; : >commit.3000$i\n"
                                  "done; rm x*; done\n");
}

/* The limits for storms of commits do not delay a program that saves at each step. */
static bool has_many_results(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "saved 30") != NULL;
}

static void commits_at_every_step_are_all_answered(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1,
        "#!/bin/sh\n"
        "cd \"$BELAY_CONTROL_DIR\"\n"
        "for k in $(seq 1 30); do\n"
        "  echo $k >\"$BELAY_CHECKPOINT_DIR/k\"\n"
        "  echo '{\"wait\":false}' >c; mv c commit.$k\n"
        "  while [ ! -e result.$k ]; do sleep 0.01; done\n"
        "  echo saved $k\n"
        "done\n"
        "sleep 1000\n");
    world_start_agent(w);
    world_until(w, has_many_results, 1, "all are answered");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(a_commit_is_stored_reported_and_restored),
        world_test(a_workdir_is_fetched_while_the_checkpoint_is_restored),
        world_test(a_missing_workdir_ends_the_attempt_although_it_is_restored),
        world_test(the_next_attempt_on_the_same_node_fetches_nothing),
        world_test(kept_directories_are_removed_when_their_job_has_ended),
        world_test(an_acknowledged_checkpoint_is_not_reported_again),
        world_test(after_a_restart_of_the_agent_a_save_waits_for_the_secrets_to_come_again),
        world_test(after_a_restart_of_the_agent_it_saves_without_belayd),
        world_test(a_commit_of_a_job_without_checkpoints_is_refused_with_the_reason),
        world_test(an_exit_that_asks_to_be_continued_needs_a_method),
        world_test(a_failed_save_is_answered_and_reported),
        world_test(a_save_that_fails_again_for_the_same_reason_is_reported_once),
        world_test(a_malformed_commit_is_answered),
        world_test(commits_that_cannot_be_removed_delay_no_other_job),
        world_test(a_storm_of_commits_and_names_delays_no_other_job),
        world_test(commits_at_every_step_are_all_answered),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
