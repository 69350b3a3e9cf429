/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of real tasks: asked for, committed, stored, restored; and notices.
 */
#include "world.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "agent/keyring.h"
#include "agent/task/record.h"
#include "ckpt/ckpt.h"
#include "ckpt/store/owner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A cooperative program: on a request it writes its state, commits, and stops when it is told
 * to. */
static const char coop[] =
    "#!/bin/sh\n"
    "n=0\n"
    "[ \"$BELAY_RESTORED\" = 1 ] && n=$(cat \"$BELAY_CHECKPOINT_DIR/n\")\n"
    "echo start $n\n"
    "k=1\n"
    "while [ $n -lt 100000 ]; do\n"
    "  n=$((n + 1))\n"
    "  echo \"{\\\"done\\\":$n,\\\"total\\\":100000}\" >\"$BELAY_CONTROL_DIR/p\"\n"
    "  mv \"$BELAY_CONTROL_DIR/p\" \"$BELAY_CONTROL_DIR/progress\"\n"
    "  if [ -e \"$BELAY_CONTROL_DIR/request\" ]; then\n"
    "    cat \"$BELAY_CONTROL_DIR/request\" 2>/dev/null; echo\n"
    "    echo $n >\"$BELAY_CHECKPOINT_DIR/n\"\n"
    "    echo \"{\\\"progress\\\":$n,\\\"total\\\":null}\" >\"$BELAY_CONTROL_DIR/c\"\n"
    "    mv \"$BELAY_CONTROL_DIR/c\" \"$BELAY_CONTROL_DIR/commit.$k\"\n"
    "    while [ ! -e \"$BELAY_CONTROL_DIR/result.$k\" ]; do sleep 0.02; done\n"
    "    cat \"$BELAY_CONTROL_DIR/result.$k\"; echo\n"
    "    grep -q '\"stop\":true' \"$BELAY_CONTROL_DIR/result.$k\" && exit 85\n"
    "    k=$((k + 1))\n"
    "  fi\n"
    "  sleep 0.02\n"
    "done\n";

/* Commits once of its own accord, then waits. */
static const char commit_once[] =
    "#!/bin/sh\n"
    "echo state >\"$BELAY_CHECKPOINT_DIR/state\"\n"
    "echo '{\"progress\":5}' >\"$BELAY_CONTROL_DIR/c\"\n"
    "ln \"$BELAY_CONTROL_DIR/c\" \"$BELAY_CONTROL_DIR/commit.1\"\n"
    "while [ ! -e \"$BELAY_CONTROL_DIR/result.1\" ]; do sleep 0.02; done\n"
    "cat \"$BELAY_CONTROL_DIR/result.1\"; echo\n"
    "sleep 1000\n";

static const char resume[] = "#!/bin/sh\n"
                             "echo \"$BELAY_RESTORED $(cat \"$BELAY_CHECKPOINT_DIR/state\")\"\n";

static bool is_saving(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_told(w, job);
    return s && s->phase == WIRE_SAVING;
}

static struct wire_desired_attempt *want_coop(struct world *w, int64_t attempt, const char *script)
{
    struct wire_desired_attempt *a = world_want(w, 1, attempt, script);
    a->method = WIRE_METHOD_COOP;
    return a;
}

static void notice_in(struct world *w, int64_t ms)
{
    char iso[TIME_ISO_MAX];
    time_format_iso((struct wall){clock_wall(&clock_system).ms + ms}, iso);
    buf_clear(&w->action);
    buf_printf(&w->action, "{\"action\": \"terminate\", \"time\": \"%.19sZ\"}", iso);
}

static void assert_end(struct world *w, enum wire_end end)
{
    const struct wire_attempt_status *s = world_told(w, 1);
    if (s->end != end)
        fail_msg("ended as %s (%s), output: %s", wire_word_name(wire_end_names, (int)s->end),
            s->text, world_output(w, 1));
}

static bool output_has_result(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "\"ok\":") != NULL;
}

static void a_commit_is_stored_told_and_restored(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1, commit_once);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is told");
    const struct wire_checkpoint *c = &world_told(w, 1)->checkpoints[0];
    assert_int_equal(c->sequence, 1);
    assert_int_equal(c->progress, 5);
    assert_int_equal(c->bytes, 6);
    assert_int_equal(c->cause, WIRE_CAUSE_PROGRAM);
    world_until(w, output_has_result, 1, "the program has its answer");
    assert_non_null(
        strstr(world_output(w, 1), "{\"ok\":true,\"attempt\":1,\"sequence\":1,\"stop\":false}"));
    want_coop(w, 2, resume);
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state\n");
    assert_int_equal(world_told(w, 1)->restored_attempt, 1);
    assert_int_equal(world_told(w, 1)->restored_sequence, 1);
    assert_int_equal(world_told(w, 1)->restored_progress, 5);
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
    want_coop(w, 1, commit_once);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is told");
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is cleared away");
    world_until(w, is_kept, 1, "what it left is told");
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
    want_coop(w, 2, resume);
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state\n");
    assert_int_equal(world_told(w, 1)->restored_bytes, 6);
    assert_int_equal(world_told(w, 1)->reused_bytes, 6);
    assert_int_equal(world_told(w, 1)->damaged, 0);
}

static void what_is_kept_goes_when_its_job_has_ended(void **state)
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

static void an_acknowledged_checkpoint_is_not_told_again(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, commit_once);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is told");
    a->acked_sequence = 1;
    world_go(w);
    world_until(w, has_no_checkpoint, 1, "it is told no more");
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

static bool has_committed(struct world *w, int64_t job)
{
    char *path = world_task_path(w, job, 1, "control/commit.1");
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

static bool has_secrets(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_told(w, job);
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

/* A task with secrets, of which belayd tells nothing any more when its agent is another. */
static struct wire_desired_attempt *start_and_restart(struct world *w, bool keeps)
{
    struct wire_desired_attempt *a = want_coop(w, 1, commit_late);
    a->needs_secrets = true;
    a->secrets = secrets;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_true(has_secrets(w, 1));
    world_kill_agent(w, SIGKILL);
    world_forget_told(w);
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
    char *go = world_task_path(w, 1, 1, "checkpoint/go");
    world_write(go, "");
    free(go);
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
    world_until(w, has_checkpoint, 1, "the checkpoint is told");
    assert_int_equal(world_told(w, 1)->failed_saves, 0);
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
    assert_int_equal(world_told(w, 1)->secrets, 0);
    let_it_commit(w);
    world_until(w, has_committed, 1, "the program has committed");
    world_go(w);
    world_until(w, is_saving, 1, "the agent has taken the commit");
    assert_int_equal(world_told(w, 1)->failed_saves, 0);
    a->secrets = secrets;
    world_go(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is told");
    assert_int_equal(world_told(w, 1)->failed_saves, 0);
    assert_true(has_secrets(w, 1));
    /* The store has it encrypted, and the key is in no file, log or environment. */
    assert_false(is_nowhere(w, "node", "state-of-the-job"));
    assert_true(is_nowhere(w, "store", "state-of-the-job"));
    assert_true(is_nowhere(w, ".", key));
    assert_non_null(strstr(world_output(w, 1), "BELAY_ATTEMPT="));
    assert_null(strstr(world_output(w, 1), key));
    a = want_coop(w, 2, resume);
    a->needs_secrets = true;
    a->secrets = secrets;
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_string_equal(world_output(w, 1), "1 state-of-the-job\n");
    assert_int_equal(world_told(w, 1)->damaged, 0);
}

static void a_task_without_checkpoints_is_told_so(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, commit_once);
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
    assert_int_equal(world_told(w, 1)->exit_code, 85);
    assert_non_null(strstr(
        world_told(w, 1)->text, "--checkpoint none: submit it with --checkpoint signal or coop"));
}

static bool has_two_checkpoints(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_told(w, job);
    return s && s->n_checkpoints >= 2 && s->checkpoints[s->n_checkpoints - 1].sequence >= 4;
}

struct kept {
    int n;
    bool has_third, has_first;
    int64_t newest;
};

static int note_kept(void *ctx, const struct ckpt_info *info)
{
    struct kept *k = ctx;
    k->n++;
    k->has_third |= info->id.sequence == 3;
    k->has_first |= info->id.sequence == 1;
    k->newest = info->id.sequence > k->newest ? info->id.sequence : k->newest;
    return 0;
}

static struct kept stored(struct world *w)
{
    struct store *store;
    struct err e;
    struct kept n = {0};
    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1};
    assert_int_equal(ckpt_list(&j, note_kept, &n, &e), 0);
    store_close(store);
    return n;
}

/* The newest two, those that 3 divides, and for a moment one more. */
static bool few_are_stored(struct world *w, int64_t unused)
{
    (void)unused;
    struct kept k = stored(w);
    return k.newest >= 6 && k.has_third && !k.has_first && k.n <= 3 + k.newest / 3;
}

static bool tells_what_is_kept(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_told(w, job);
    return s && s->kept_bytes > 0;
}

static void saves_are_asked_for_from_time_to_time_and_old_ones_are_cleared_away(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop);
    a->ckpt_every_ms = 100;
    a->ckpt_keep = 2;
    a->ckpt_keep_every = 3;
    world_start_agent(w);
    world_until(w, has_two_checkpoints, 1, "several saves are told");
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_PERIODIC);
    assert_true(world_told(w, 1)->done > 0);
    assert_int_equal(world_told(w, 1)->total, 100000);
    world_until(w, few_are_stored, 0, "old ones are cleared away");
    world_until(w, tells_what_is_kept, 1, "how much the store has then is told");
}

static void an_interval_that_changes_holds_at_once(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop);
    a->ckpt_every_ms = 3600000;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    a->ckpt_every_ms = 100;
    world_go(w);
    world_until(w, has_two_checkpoints, 1, "several saves are told");
}

/* It is asked, goes on, and is ended by its limit with what it had saved. */
static void before_its_time_limit_a_task_is_saved(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop);
    a->ckpt_every_ms = 3600000;
    a->time_limit_ms = 3000; /* so after half of it */
    a->kill_wait_ms = 200;
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "a checkpoint is told");
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_LIMIT);
    assert_int_equal(world_told(w, 1)->phase, WIRE_RUNNING);
    world_until(w, has_ended, 1, "the time limit ends the job");
    assert_end(w, WIRE_END_TIMEOUT);
    assert_int_equal(world_told(w, 1)->n_checkpoints, 1); /* asked once */
    const char *request = strstr(world_output(w, 1), "\"reason\":\"limit\",\"deadline_ms\":");
    assert_non_null(request);
    assert_null(strstr(request, "null"));
}

static bool has_daily_checkpoint(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_told(w, job);
    return s && s->n_checkpoints > 0 &&
           s->checkpoints[s->n_checkpoints - 1].cause == WIRE_CAUSE_DAILY;
}

static bool has_user_checkpoints(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_told(w, job);
    int n = 0;
    for (size_t i = 0; s && i < s->n_checkpoints; i++)
        n += s->checkpoints[i].cause == WIRE_CAUSE_USER;
    return n == world_find(w, job)->a.saves_asked;
}

static bool output_has_user_request(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "\"reason\":\"user\",\"deadline_ms\":null") != NULL;
}

static void a_save_that_a_user_asks_for_is_made_once(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop);
    a->ckpt_every_ms = 3600000;
    a->saves_asked = 1; /* before it runs */
    world_start_agent(w);
    world_until(w, has_user_checkpoints, 1, "the save is told");
    world_until(w, output_has_user_request, 1, "the program was told who asks");
    world_go(w); /* said again */
    world_kill_agent(w, SIGKILL);
    world_forget_told(w);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "it is told by the next agent");
    a->saves_asked = 2;
    world_go(w);
    world_until(w, has_user_checkpoints, 1, "the second is told");
    assert_int_equal(
        world_told(w, 1)->checkpoints[world_told(w, 1)->n_checkpoints - 1].sequence, 2);
    assert_int_equal(world_told(w, 1)->phase, WIRE_RUNNING);
}

/* No agent was there at the time. */
static void a_time_of_the_day_that_was_missed_is_made_up_for(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct task_state s;
    struct err e;
    struct wire_desired_attempt *a = want_coop(w, 1, coop);
    int64_t day_ms = 24 * 3600000LL;
    a->ckpt_every_ms = 30 * day_ms;
    a->saves_asked = 1;
    STR_COPY(a->ckpt_at, "00:00,12:00");
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "a checkpoint is told");
    world_kill_agent(w, SIGKILL);
    char *path = world_task_path(w, 1, 1, "state.json");
    assert_int_equal(record_read_state(path, &s, &e), 0);
    s.last_saved_at -= day_ms;
    assert_int_equal(record_write_state(path, &s, &e), 0);
    record_deinit_state(&s);
    free(path);
    world_start_agent(w);
    world_until(w, has_daily_checkpoint, 1, "it was saved");
}

static void a_save_that_fails_is_answered_and_told(void **state)
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
    world_until(w, has_failed_save, 1, "the failure is told");
    assert_non_null(strstr(world_told(w, 1)->save_error, "pipe"));
    world_until(w, output_has_result, 1, "the program has its answer");
    assert_non_null(strstr(world_output(w, 1), "\"ok\":false"));
}

static bool output_has_last_result(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "result 12") != NULL;
}

/* A store that refuses whatever the program commits, at its every step: each commit is answered,
 * and one failure told. */
static void a_save_that_fails_again_for_the_same_reason_is_told_once(void **state)
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
    assert_int_equal(world_told(w, 1)->failed_saves, 1);
    assert_non_null(strstr(world_told(w, 1)->save_error, "pipe"));
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

/* Job 1 does what it can; job 2, which comes after that, is served. */
static void assert_holds_up_nobody(struct world *w, const char *script)
{
    want_coop(w, 1, script);
    world_start_agent(w);
    world_until(w, has_begun, 1, "the first job has begun");
    struct wire_desired_attempt *a = world_want(w, 2, 1, commit_once);
    a->method = WIRE_METHOD_COOP;
    world_go(w);
    world_until(w, has_checkpoint, 2, "the other job's checkpoint is told");
    world_until(w, output_has_result, 2, "the other job has its answer");
}

static void commits_that_cannot_be_removed_hold_up_nobody(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    assert_holds_up_nobody(w, "#!/bin/sh\n"
                              "cd \"$BELAY_CONTROL_DIR\"\n"
                              "echo begun\n"
                              "mkdir .agent-new commit.1 commit.1/x commit.2\n"
                              "sleep 1000\n");
}

static void a_storm_of_commits_and_names_holds_up_nobody(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    assert_holds_up_nobody(w, "#!/bin/sh\n"
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

/* A program that saves at its every step is not held up by what holds up a storm. */
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

/* ---- notices ---- */

static bool is_noticed(struct world *w, int64_t unused)
{
    (void)unused;
    return w->noticed_at != 0;
}

static void a_notice_is_put_to_the_program_saved_and_the_attempt_ends_reclaimed(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    int64_t begun = clock_mono(&clock_system).ms;
    notice_in(w, 60000);
    world_until(w, is_noticed, 0, "belayd is told of the notice");
    assert_true(w->noticed_at - begun < 3000); /* it looks every second */
    char *path = world_task_path(w, 1, 1, "control/notice"), *text = world_read(path);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"kind\":\"reclaim\""));
    assert_non_null(strstr(text, "\"seconds_left\":"));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    int64_t took_ms = st.st_mtim.tv_sec * 1000LL + st.st_mtim.tv_nsec / 1000000 - w->served_at;
    printf("from the notice to the program: %lld ms\n",
        took_ms < 0 ? 0 : (long long)took_ms); /* coarse file times */
    assert_true(took_ms < 1000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_true(clock_mono(&clock_system).ms - begun < 10000);
    assert_end(w, WIRE_END_RECLAIMED);
    assert_true(has_checkpoint(w, 1));
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    assert_non_null(strstr(world_output(w, 1), "\"reason\":\"notice\""));
    assert_non_null(strstr(world_output(w, 1), "\"stop\":true"));
    assert_int_equal(world_told(w, 1)->exit_code, 85);
    free(text);
    free(path);
}

static void the_saves_of_two_tasks_at_a_notice_are_both_stored(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    want_coop(w, 1, coop);
    world_want(w, 2, 1, coop)->method = WIRE_METHOD_COOP;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_until(w, is_running, 2, "the other runs");
    notice_in(w, 60000);
    for (int64_t job = 1; job <= 2; job++) {
        world_until(w, has_ended, job, "the attempt ended");
        assert_int_equal(world_told(w, job)->end, WIRE_END_RECLAIMED);
        assert_true(has_checkpoint(w, job));
        assert_int_equal(world_told(w, job)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    }
}

static void a_program_that_does_not_answer_a_notice_is_stopped_before_the_deadline(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    want_coop(w, 1, "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.1; done\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    notice_in(w, 5000);
    int64_t deadline = clock_mono(&clock_system).ms + 5000;
    world_until(w, has_ended, 1, "the attempt ended");
    assert_true(clock_mono(&clock_system).ms < deadline);
    assert_end(w, WIRE_END_RECLAIMED);
    assert_int_equal(world_told(w, 1)->exit_code, 137);
}

static void a_task_without_checkpoints_may_finish_during_a_notice(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_want(w, 1, 1,
        "#!/bin/sh\nwhile [ ! -e \"$BELAY_NOTICE_FILE\" ]; do sleep 0.02; done\necho bye\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    notice_in(w, 60000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
}

static void a_task_that_is_wanted_after_a_notice_is_not_started(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    notice_in(w, 60000);
    world_start_agent(w);
    world_until(w, is_noticed, 0, "belayd is told of the notice");
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_go(w);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
}

/* ---- shutdowns: SIGTERM that is not a restart of the agent ---- */

static const char stopping[] = "#!/bin/sh\n[ $1 = is-system-running ] && echo stopping\nexit 1\n";
static const char running[] = "#!/bin/sh\n[ $1 = is-system-running ] && echo running\n";

static void assert_saved_in_shutdown(struct world *w)
{
    kill(w->agent, SIGTERM);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    assert_true(has_checkpoint(w, 1));
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    assert_int_equal(w->status.notice.kind, WIRE_NOTICE_RECLAIM);
    world_forget(w, 1); /* belayd has it durably */
    world_go(w);
    assert_int_equal(world_wait_agent(w), 0);
}

static void sigterm_in_a_shutdown_saves_first(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_systemctl(w, stopping);
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_saved_in_shutdown(w);
    assert_in_range(w->status.notice.deadline - w->status.notice.seen, 120000, 120000);
}

static void sigterm_without_an_answer_of_systemd_saves_first(void **state)
{
    struct world *w = world_create(state, "token: t\nshutdown_timeout: 30s\n");
    world_systemctl(w, "#!/bin/sh\nexec sleep 1000\n");
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_saved_in_shutdown(w);
    assert_in_range(w->status.notice.deadline - w->status.notice.seen, 30000, 30000);
}

/* The machine does not know yet that it goes; the metadata service does. */
static void sigterm_together_with_a_notice_saves_first(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_systemctl(w, running);
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    notice_in(w, 60000);
    assert_saved_in_shutdown(w);
}

/* What the notice leaves is less than the save needs: a shutdown brings it nearer still. */
static void a_shutdown_under_a_notice_is_the_nearer_deadline(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\nshutdown_timeout: 4s\n");
    world_systemctl(w, stopping);
    want_coop(w, 1, "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.1; done\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    notice_in(w, 100000);
    world_until(w, is_noticed, 0, "belayd is told of the notice");
    int64_t begun = clock_mono(&clock_system).ms;
    kill(w->agent, SIGTERM);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_true(clock_mono(&clock_system).ms - begun < 5000);
    assert_end(w, WIRE_END_RECLAIMED);
    world_until_said(w, "the machine goes sooner than was announced");
    assert_int_equal(world_wait_agent(w), 0); /* although belayd wants it still */
}

static void a_restart_of_the_agent_leaves_the_task(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_systemctl(w, running);
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    int64_t begun = clock_mono(&clock_system).ms;
    world_kill_agent(w, SIGTERM);
    assert_true(clock_mono(&clock_system).ms - begun < 4000); /* it did not wait in vain */
    world_forget_told(w);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs still");
    assert_false(has_checkpoint(w, 1));
    assert_int_equal(w->status.notice.kind, WIRE_NOTICE_NONE);
}

/* ---- signals ---- */

/* sh does not handle SIGUSR1 and would die of it. */
static const char on_signal[] = "#!/bin/sh\n"
                                "cat >\"$BELAY_CHECKPOINT_DIR/../control/p.py\" <<'END'\n"
                                "import os, signal, sys, time\n"
                                "d = os.environ['BELAY_CHECKPOINT_DIR']\n"
                                "def on(n, f):\n"
                                "    open(d + '/state', 'w').write('saved')\n"
                                "    if MODE == 'exit':\n"
                                "        sys.exit(85)\n"
                                "    open(d + '/.done', 'w').close()\n"
                                "MODE = sys.argv[1]\n"
                                "signal.signal(signal.SIGUSR1, on)\n"
                                "print('up', flush=True)\n"
                                "while True:\n"
                                "    time.sleep(0.02)\n"
                                "END\n"
                                "python3 \"$BELAY_CONTROL_DIR/p.py\" $1\n";

static struct wire_desired_attempt *want_signal(struct world *w, char **mode)
{
    struct wire_desired_attempt *a = world_want(w, 1, 1, on_signal);
    a->method = WIRE_METHOD_SIGNAL;
    a->ckpt_signal = SIGUSR1;
    a->args = mode;
    a->n_args = 1;
    return a;
}

static void a_signal_asks_and_done_commits(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char mode[] = "done", *modes[] = {mode};
    want_signal(w, modes)->ckpt_every_ms = 300;
    world_start_agent(w);
    world_until(w, has_two_checkpoints, 1, "several saves are told");
    assert_true(is_running(w, 1) || world_told(w, 1)->phase == WIRE_SAVING);
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_PERIODIC);
}

static void exit_85_outside_a_stop_saves_and_ends_checkpointed(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char mode[] = "exit", *modes[] = {mode};
    want_signal(w, modes)->ckpt_every_ms = 300;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_CHECKPOINTED);
    assert_true(has_checkpoint(w, 1));
    world_want(w, 1, 2, resume);
    world_find(w, 1)->a.method = WIRE_METHOD_SIGNAL;
    world_go(w);
    world_until(w, has_ended, 1, "the second attempt ended");
    assert_string_equal(world_output(w, 1), "1 saved\n");
}

static void exit_85_during_a_notice_saves_and_ends_reclaimed(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    char mode[] = "exit", *modes[] = {mode};
    want_signal(w, modes);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    notice_in(w, 60000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    assert_true(has_checkpoint(w, 1));
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
}

static void done_during_a_notice_saves_and_ends_reclaimed(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    char mode[] = "done", *modes[] = {mode};
    want_signal(w, modes);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    notice_in(w, 60000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    assert_true(has_checkpoint(w, 1));
}

/* ---- stops, crashes ---- */

static void a_drain_saves_and_ends_drained(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    a->want = WIRE_SAVE_STOP;
    a->reason = WIRE_END_DRAINED;
    world_go(w);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_DRAINED);
    assert_int_equal(world_told(w, 1)->checkpoints[0].cause, WIRE_CAUSE_DRAIN);
    assert_non_null(strstr(world_output(w, 1), "\"reason\":\"evict\""));
}

static bool has_commit_file(struct world *w, int64_t job)
{
    char *path = world_task_path(w, job, 1, "control/commit.1");
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
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
    char *path = world_task_path(w, 1, 1, "control/go");
    world_write(path, "");
    free(path);
    world_until(w, has_commit_file, 1, "the program has committed");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the program had its answer");
    assert_end(w, WIRE_END_SUCCEEDED);
    assert_int_equal(world_told(w, 1)->checkpoints[0].progress, 5);
}

/* The agent was killed between the store's commit and its own record. */
static void a_save_that_was_stored_but_not_told_is_told_by_the_next_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct task_state s;
    struct err e;
    want_coop(w, 1, commit_once);
    world_start_agent(w);
    world_until(w, output_has_result, 1, "the save is done");
    world_kill_agent(w, SIGKILL);
    char *path = world_task_path(w, 1, 1, "state.json");
    assert_int_equal(record_read_state(path, &s, &e), 0);
    assert_int_equal(s.told.n_checkpoints, 1);
    s.told.n_checkpoints = 0;
    s.saving = true;
    assert_int_equal(record_write_state(path, &s, &e), 0);
    record_deinit_state(&s);
    free(path);
    world_forget_told(w);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the checkpoint is told");
    assert_int_equal(world_told(w, 1)->checkpoints[0].sequence, 1);
    assert_int_equal(world_told(w, 1)->checkpoints[0].progress, 5);
}

static void an_older_attempt_cannot_save_over_a_later_one(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    struct store *store; /* a later attempt starts somewhere else */
    struct err e;
    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1};
    assert_int_equal(ckpt_fence(&j, 2, &e), 0);
    store_close(store);
    char *path = world_task_path(w, 1, 1, "control/request");
    world_write(path, "{}"); /* makes it commit */
    free(path);
    world_until(w, has_ended, 1, "the stale attempt ended");
    assert_end(w, WIRE_END_NODE_LOST);
    assert_non_null(strstr(world_told(w, 1)->text, "fenced"));
    assert_int_equal(stored(w).n, 0);
}

static void a_node_that_is_left_alone_saves_and_ends(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\norphan_timeout: 1s\n");
    char *mark = mem_printf("%s/powered-off", w->dir);
    char *old = world_read(w->config);
    char *text = mem_printf("%spower_off: touch %s\n", old, mark);
    world_write(w->config, text);
    w->lease_ms = 500;
    want_coop(w, 1, coop);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    w->deaf = true;
    world_go(w);
    assert_int_equal(world_wait_agent(w), 3);
    assert_int_equal(stored(w).n, 1);
    assert_true(access(mark, F_OK) == 0);
    free(mark);
    free(old);
    free(text);
}

/* One attempt that expects the store to be of this cluster. Returns how it ended. */
static enum wire_end end_with_store(struct world *w, int64_t attempt)
{
    struct wire_desired_attempt *a = want_coop(w, attempt, resume);
    STR_COPY(a->store_uid, "0123456789abcdef");
    a->store_wait_ms = 500;
    if (attempt == 1)
        world_start_agent(w);
    else
        world_go(w);
    world_until(w, has_ended, 1, "it ended");
    return world_told(w, 1)->end;
}

/* No directory (a mount that is missing), or one without the marker. Another node may have it. */
static void a_store_that_is_not_on_its_node_is_a_fault_of_that_node(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *dir = mem_printf("%s/store", w->dir);
    struct err e;

    fs_remove_tree(dir, &e);
    assert_int_equal(end_with_store(w, 1), WIRE_END_STORE_AWAY);
    assert_non_null(strstr(world_told(w, 1)->text, "no such directory"));
    assert_non_null(strstr(world_told(w, 1)->text, "mount it on this node"));
    assert_int_equal(fs_mkdirs(dir, 0700, &e), 0);
    assert_int_equal(end_with_store(w, 2), WIRE_END_STORE_AWAY);
    assert_non_null(strstr(world_told(w, 1)->text, "no marker"));
    free(dir);
}

/* Every node would find it: the job is held, and tried nowhere else. */
static void another_clusters_store_is_a_fault_of_no_node(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct store *store;
    struct err e;

    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    assert_int_equal(
        owner_write(store, "lab", &(struct owner_mark){0}, "fedcba9876543210", 1, &e), 0);
    store_close(store);
    assert_int_equal(end_with_store(w, 1), WIRE_END_STORE);
    assert_non_null(strstr(world_told(w, 1)->text, "another cluster"));
    assert_non_null(strstr(world_told(w, 1)->text, "belay release 1"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(a_commit_is_stored_told_and_restored),
        world_test(the_next_attempt_on_the_same_node_fetches_nothing),
        world_test(what_is_kept_goes_when_its_job_has_ended),
        world_test(an_acknowledged_checkpoint_is_not_told_again),
        world_test(after_a_restart_of_the_agent_a_save_waits_for_the_secrets_to_come_again),
        world_test(after_a_restart_of_the_agent_it_saves_without_belayd),
        world_test(a_task_without_checkpoints_is_told_so),

        world_test(an_exit_that_asks_to_be_continued_needs_a_method),
        world_test(saves_are_asked_for_from_time_to_time_and_old_ones_are_cleared_away),
        world_test(an_interval_that_changes_holds_at_once),
        world_test(a_save_that_a_user_asks_for_is_made_once),
        world_test(a_time_of_the_day_that_was_missed_is_made_up_for),
        world_test(before_its_time_limit_a_task_is_saved),
        world_test(a_save_that_fails_is_answered_and_told),
        world_test(a_save_that_fails_again_for_the_same_reason_is_told_once),
        world_test(a_malformed_commit_is_answered),
        world_test(commits_that_cannot_be_removed_hold_up_nobody),
        world_test(a_storm_of_commits_and_names_holds_up_nobody),
        world_test(commits_at_every_step_are_all_answered),
        world_test(a_notice_is_put_to_the_program_saved_and_the_attempt_ends_reclaimed),
        world_test(the_saves_of_two_tasks_at_a_notice_are_both_stored),
        world_test(a_program_that_does_not_answer_a_notice_is_stopped_before_the_deadline),
        world_test(a_task_without_checkpoints_may_finish_during_a_notice),
        world_test(a_task_that_is_wanted_after_a_notice_is_not_started),
        world_test(a_signal_asks_and_done_commits),
        world_test(exit_85_outside_a_stop_saves_and_ends_checkpointed),
        world_test(sigterm_in_a_shutdown_saves_first),
        world_test(sigterm_without_an_answer_of_systemd_saves_first),
        world_test(sigterm_together_with_a_notice_saves_first),
        world_test(a_shutdown_under_a_notice_is_the_nearer_deadline),
        world_test(a_restart_of_the_agent_leaves_the_task),
        world_test(exit_85_during_a_notice_saves_and_ends_reclaimed),
        world_test(done_during_a_notice_saves_and_ends_reclaimed),
        world_test(a_drain_saves_and_ends_drained),
        world_test(a_commit_made_while_there_is_no_agent_is_served_by_the_next),
        world_test(a_save_that_was_stored_but_not_told_is_told_by_the_next_agent),
        world_test(a_store_that_is_not_on_its_node_is_a_fault_of_that_node),
        world_test(another_clusters_store_is_a_fault_of_no_node),
        world_test(an_older_attempt_cannot_save_over_a_later_one),
        world_test(a_node_that_is_left_alone_saves_and_ends),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
