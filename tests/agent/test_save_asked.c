/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves of real tasks on request: periodic, by users, before a time limit, by signals.
 */
#include "saving.h"

#include "agent/task/record.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/ckpt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The newest two, every third, and briefly one more. */
static bool few_are_stored(struct world *w, int64_t unused)
{
    (void)unused;
    struct kept k = stored_checkpoints(w);
    return k.newest >= 6 && k.has_third && !k.has_first && k.n <= 3 + k.newest / 3;
}

static bool has_kept_bytes(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->kept_bytes > 0;
}

static void saves_are_requested_periodically_and_old_ones_are_removed(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop_script);
    a->ckpt_every_ms = 100;
    a->options.ckpt_keep = 2;
    a->options.ckpt_keep_every = 3;
    world_start_agent(w);
    world_until(w, has_two_checkpoints, 1, "several saves are reported");
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_PERIODIC);
    assert_true(world_reported(w, 1)->done > 0);
    assert_int_equal(world_reported(w, 1)->total, 100000);
    world_until(w, few_are_stored, 0, "old ones are cleared away");
    world_until(w, has_kept_bytes, 1, "the stored bytes are reported after the cleaning");
}

static void a_changed_interval_applies_at_once(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop_script);
    a->ckpt_every_ms = 3600000;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    a->ckpt_every_ms = 100;
    world_go(w);
    world_until(w, has_two_checkpoints, 1, "several saves are reported");
}

/* The task gets a request, continues, and is ended by its limit with the saved state. */
static void before_its_time_limit_a_task_is_saved(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = want_coop(w, 1, coop_script);
    a->ckpt_every_ms = 3600000;
    a->options.time_limit_ms = 3000; /* so after half of it */
    a->kill_wait_ms = 200;
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "a checkpoint is reported");
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_LIMIT);
    assert_int_equal(world_reported(w, 1)->phase, WIRE_RUNNING);
    world_until(w, has_ended, 1, "the time limit ends the job");
    assert_end(w, WIRE_END_TIMEOUT);
    assert_int_equal(world_reported(w, 1)->n_checkpoints, 1); /* requested once */
    const char *request = strstr(world_output(w, 1), "\"reason\":\"limit\",\"deadline_ms\":");
    assert_non_null(request);
    assert_null(strstr(request, "null"));
}

static bool has_daily_checkpoint(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->n_checkpoints > 0 &&
           s->checkpoints[s->n_checkpoints - 1].cause == WIRE_CAUSE_DAILY;
}

static bool has_user_checkpoints(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
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
    struct wire_desired_attempt *a = want_coop(w, 1, coop_script);
    a->ckpt_every_ms = 3600000;
    a->saves_asked = 1; /* before it runs */
    world_start_agent(w);
    world_until(w, has_user_checkpoints, 1, "the save is reported");
    world_until(w, output_has_user_request, 1, "the program knows who asks");
    world_go(w); /* repeated */
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "the next agent reports it");
    a->saves_asked = 2;
    world_go(w);
    world_until(w, has_user_checkpoints, 1, "the second is reported");
    assert_int_equal(
        world_reported(w, 1)->checkpoints[world_reported(w, 1)->n_checkpoints - 1].sequence, 2);
    assert_int_equal(world_reported(w, 1)->phase, WIRE_RUNNING);
}

/* The agent was down at that time. */
static void a_missed_time_of_day_is_made_up_for(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct task_state s;
    struct err e;
    struct wire_desired_attempt *a = want_coop(w, 1, coop_script);
    int64_t day_ms = 24 * 3600000LL;
    a->ckpt_every_ms = 30 * day_ms;
    a->saves_asked = 1;
    STR_COPY(a->options.ckpt_at, "00:00,12:00");
    world_start_agent(w);
    world_until(w, has_checkpoint, 1, "a checkpoint is reported");
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
    a->options.ckpt_signal = SIGUSR1;
    a->args = mode;
    a->n_args = 1;
    return a;
}

static void a_signal_requests_and_done_commits(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char mode[] = "done", *modes[] = {mode};
    want_signal(w, modes)->ckpt_every_ms = 300;
    world_start_agent(w);
    world_until(w, has_two_checkpoints, 1, "several saves are reported");
    assert_true(is_running(w, 1) || world_reported(w, 1)->phase == WIRE_SAVING);
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_PERIODIC);
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
    world_want(w, 1, 2, resume_script);
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
    world_notice_in(w, 60000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    assert_true(has_checkpoint(w, 1));
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
}

static void done_during_a_notice_saves_and_ends_reclaimed(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    char mode[] = "done", *modes[] = {mode};
    want_signal(w, modes);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_notice_in(w, 60000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    assert_true(has_checkpoint(w, 1));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(saves_are_requested_periodically_and_old_ones_are_removed),
        world_test(a_changed_interval_applies_at_once),
        world_test(a_save_that_a_user_asks_for_is_made_once),
        world_test(a_missed_time_of_day_is_made_up_for),
        world_test(before_its_time_limit_a_task_is_saved),
        world_test(a_signal_requests_and_done_commits),
        world_test(exit_85_outside_a_stop_saves_and_ends_checkpointed),
        world_test(exit_85_during_a_notice_saves_and_ends_reclaimed),
        world_test(done_during_a_notice_saves_and_ends_reclaimed),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
