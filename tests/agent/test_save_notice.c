/* SPDX-License-Identifier: Apache-2.0
 *
 * Real tasks under notices and in shutdowns of their machine.
 */
#include "saving.h"

#include "base/time.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- notices ---- */

static bool is_noticed(struct world *w, int64_t unused)
{
    (void)unused;
    return w->noticed_at != 0;
}

static void a_notice_reaches_the_program_which_saves_and_ends_reclaimed(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    int64_t begun = clock_mono(&clock_system).ms;
    world_notice_in(w, 60000);
    world_until(w, is_noticed, 0, "belayd knows of the notice");
    assert_true(w->noticed_at - begun < 3000); /* it polls every second */
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
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    assert_non_null(strstr(world_output(w, 1), "\"reason\":\"notice\""));
    assert_non_null(strstr(world_output(w, 1), "\"stop\":true"));
    assert_int_equal(world_reported(w, 1)->exit_code, 85);
    free(text);
    free(path);
}

static struct world *work_on_under_a_notice(void **state, int64_t notice_ms, int64_t save_ms)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\nnotice_reserve: 1s\n");
    want_coop(w, 1, coop_script)->save_ms = save_ms;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_notice_in(w, notice_ms);
    world_until(w, is_noticed, 0, "belayd knows of the notice");
    return w;
}

static void with_a_reserve_a_task_saves_at_once_and_works_on_until_it_is_needed(void **state)
{
    int64_t begun = clock_mono(&clock_system).ms;
    struct world *w = work_on_under_a_notice(state, 10000, 10);
    world_until(w, has_checkpoint, 1, "what was done before the notice is saved");
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_REBALANCE);
    int64_t first = world_reported(w, 1)->checkpoints[0].progress;
    world_until(w, has_ended, 1, "the attempt ended");
    int64_t took_ms = clock_mono(&clock_system).ms - begun;
    assert_end(w, WIRE_END_RECLAIMED);
    assert_in_range(took_ms, 8000, 60000);
    const struct wire_attempt_status *s = world_reported(w, 1);
    const struct wire_checkpoint *last = &s->checkpoints[s->n_checkpoints - 1];
    assert_int_equal(last->cause, WIRE_CAUSE_NOTICE);
    assert_true(last->progress > first + 10);
    assert_int_equal(s->exit_code, 85); /* it was not killed */
}

/* Nothing says how long a save takes: the reserve may not suffice. */
static void with_a_reserve_a_task_that_never_saved_stops_at_once(void **state)
{
    struct world *w = work_on_under_a_notice(state, 60000, 0);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    assert_int_equal(world_reported(w, 1)->n_checkpoints, 1);
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
}

/* A last save that takes two thirds of the notice leaves no time for another before it. */
static void with_a_reserve_slow_saves_stop_a_task_at_once(void **state)
{
    struct world *w = work_on_under_a_notice(state, 60000, 18000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
}

/* Saves all the time, more than a moment each. */
static const char busy_saver[] = "#!/bin/sh\n"
                                 "cd \"$BELAY_CONTROL_DIR\"\n"
                                 "k=1\n"
                                 "while :; do\n"
                                 "  head -c 24000000 /dev/urandom >\"$BELAY_CHECKPOINT_DIR/bulk\"\n"
                                 "  echo \"{\\\"progress\\\":$k}\" >c\n"
                                 "  mv c commit.$k\n"
                                 "  while [ ! -e result.$k ]; do sleep 0.01; done\n"
                                 "  grep -q '\"stop\":true' result.$k && exit 85\n"
                                 "  k=$((k + 1))\n"
                                 "done\n";

#define SAVERS 4 /* at any moment, some of them are being saved */

static int64_t newest(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->n_checkpoints > 0 ? s->checkpoints[s->n_checkpoints - 1].sequence : 0;
}

static bool has_saved_thrice(struct world *w, int64_t before)
{
    for (int64_t job = 1; job <= SAVERS; job++)
        if (newest(w, job) < before + 3)
            return false;
    return true;
}

static void with_a_reserve_tasks_that_are_being_saved_work_on(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\nnotice_reserve: 1s\n");
    int64_t most = 0;
    for (int64_t job = 1; job <= SAVERS; job++) {
        struct wire_desired_attempt *a = world_want(w, job, 1, busy_saver);
        a->method = WIRE_METHOD_COOP;
        a->save_ms = 500;
    }
    world_start_agent(w);
    for (int64_t job = 1; job <= SAVERS; job++)
        world_until(w, has_checkpoint, job, "all are saved, again and again");
    world_notice_in(w, 60000);
    world_until(w, is_noticed, 0, "belayd knows of the notice");
    for (int64_t job = 1; job <= SAVERS; job++)
        most = newest(w, job) > most ? newest(w, job) : most;
    /* the save under way, the one that the notice asks for, and another */
    world_until(w, has_saved_thrice, most, "all programs go on");
}

static void a_shutdown_ends_the_work_under_a_notice(void **state)
{
    struct world *w = work_on_under_a_notice(state, 100000, 10);
    world_until(w, has_checkpoint, 1, "what was done before the notice is saved");
    assert_true(is_running(w, 1));
    kill(w->agent, SIGTERM);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    const struct wire_attempt_status *s = world_reported(w, 1);
    assert_int_equal(s->checkpoints[s->n_checkpoints - 1].cause, WIRE_CAUSE_NOTICE);
}

static void the_saves_of_two_tasks_at_a_notice_are_both_stored(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    want_coop(w, 1, coop_script);
    world_want(w, 2, 1, coop_script)->method = WIRE_METHOD_COOP;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_until(w, is_running, 2, "the other runs");
    world_notice_in(w, 60000);
    for (int64_t job = 1; job <= 2; job++) {
        world_until(w, has_ended, job, "the attempt ended");
        assert_int_equal(world_reported(w, job)->end, WIRE_END_RECLAIMED);
        assert_true(has_checkpoint(w, job));
        assert_int_equal(world_reported(w, job)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    }
}

static void a_program_that_does_not_answer_a_notice_is_stopped_before_the_deadline(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    want_coop(w, 1, "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.1; done\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_notice_in(w, 5000);
    int64_t deadline = clock_mono(&clock_system).ms + 5000;
    world_until(w, has_ended, 1, "the attempt ended");
    assert_true(clock_mono(&clock_system).ms < deadline);
    assert_end(w, WIRE_END_RECLAIMED);
    assert_int_equal(world_reported(w, 1)->exit_code, 137);
}

static void a_task_without_checkpoints_may_finish_during_a_notice(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_want(w, 1, 1,
        "#!/bin/sh\nwhile [ ! -e \"$BELAY_NOTICE_FILE\" ]; do sleep 0.02; done\necho bye\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_notice_in(w, 60000);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_SUCCEEDED);
}

static void a_task_that_is_wanted_after_a_notice_is_not_started(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_notice_in(w, 60000);
    world_start_agent(w);
    world_until(w, is_noticed, 0, "belayd knows of the notice");
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
    assert_int_equal(world_reported(w, 1)->checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    assert_int_equal(w->status.notice.kind, WIRE_NOTICE_RECLAIM);
    world_forget(w, 1); /* belayd has it durably */
    world_go(w);
    assert_int_equal(world_wait_agent(w), 0);
}

static void sigterm_in_a_shutdown_saves_first(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_systemctl(w, stopping);
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_saved_in_shutdown(w);
    assert_in_range(w->status.notice.deadline - w->status.notice.seen, 120000, 120000);
}

static void sigterm_without_an_answer_of_systemd_saves_first(void **state)
{
    struct world *w = world_create(state, "token: t\nshutdown_timeout: 30s\n");
    world_systemctl(w, "#!/bin/sh\nexec sleep 1000\n");
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_saved_in_shutdown(w);
    assert_in_range(w->status.notice.deadline - w->status.notice.seen, 30000, 30000);
}

/* The metadata service announces the end before the machine shuts down. */
static void sigterm_together_with_a_notice_saves_first(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_systemctl(w, running);
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_notice_in(w, 60000);
    assert_saved_in_shutdown(w);
}

/* The notice leaves less time than the save needs, and a shutdown leaves even less. */
static void a_shutdown_under_a_notice_is_the_nearer_deadline(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\nshutdown_timeout: 4s\n");
    world_systemctl(w, stopping);
    want_coop(w, 1, "#!/bin/sh\ntrap '' TERM\necho up\nwhile :; do sleep 0.1; done\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    world_notice_in(w, 100000);
    world_until(w, is_noticed, 0, "belayd knows of the notice");
    int64_t begun = clock_mono(&clock_system).ms;
    kill(w->agent, SIGTERM);
    world_until(w, has_ended, 1, "the attempt ended");
    assert_true(clock_mono(&clock_system).ms - begun < 5000);
    assert_end(w, WIRE_END_RECLAIMED);
    world_until_said(w, "the machine ends earlier than announced");
    assert_int_equal(world_wait_agent(w), 0); /* although belayd still wants the job to run */
}

/* ---- sigterm_notice: SIGTERM of another scheduler ---- */

static void sigterm_of_a_scheduler_is_a_notice_with_its_time(void **state)
{
    struct world *w = world_create(state, "token: t\nsigterm_notice: 25s\n");
    world_systemctl(w, running); /* the machine stays */
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    assert_saved_in_shutdown(w);
    assert_in_range(w->status.notice.deadline - w->status.notice.seen, 25000, 25000);
}

static void sigterm_of_a_scheduler_leaves_the_time_for_work_that_a_notice_does(void **state)
{
    struct world *w = world_create(state, "token: t\nsigterm_notice: 10s\nnotice_reserve: 1s\n");
    want_coop(w, 1, coop_script)->save_ms = 10;
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    kill(w->agent, SIGTERM);
    world_until(w, has_checkpoint, 1, "what was done before the notice is saved");
    int64_t first = world_reported(w, 1)->checkpoints[0].progress;
    kill(w->agent, SIGTERM); /* once more: no hurry */
    world_until(w, has_ended, 1, "the attempt ended");
    assert_end(w, WIRE_END_RECLAIMED);
    const struct wire_attempt_status *s = world_reported(w, 1);
    assert_true(s->checkpoints[s->n_checkpoints - 1].progress > first + 10);
    world_forget(w, 1);
    world_go(w);
    assert_int_equal(world_wait_agent(w), 0);
}

static void sigterm_of_a_scheduler_is_reported_without_tasks_too(void **state)
{
    struct world *w = world_create(state, "token: t\nsigterm_notice: 25s\n");
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "belayd and the agent have met");
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the node is empty");
    kill(w->agent, SIGTERM);
    assert_int_equal(world_wait_agent(w), 0);
    assert_int_equal(w->status.notice.kind, WIRE_NOTICE_RECLAIM);
}

static void a_restart_of_the_agent_leaves_the_task(void **state)
{
    struct world *w = world_create(state, "token: t\nprovider: aws\n");
    world_systemctl(w, running);
    want_coop(w, 1, coop_script);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs");
    int64_t begun = clock_mono(&clock_system).ms;
    world_kill_agent(w, SIGTERM);
    assert_true(clock_mono(&clock_system).ms - begun < 4000); /* it did not wait for the deadline */
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task runs still");
    assert_false(has_checkpoint(w, 1));
    assert_int_equal(w->status.notice.kind, WIRE_NOTICE_NONE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(a_notice_reaches_the_program_which_saves_and_ends_reclaimed),
        world_test(with_a_reserve_a_task_saves_at_once_and_works_on_until_it_is_needed),
        world_test(with_a_reserve_a_task_that_never_saved_stops_at_once),
        world_test(with_a_reserve_slow_saves_stop_a_task_at_once),
        world_test(with_a_reserve_tasks_that_are_being_saved_work_on),
        world_test(a_shutdown_ends_the_work_under_a_notice),
        world_test(the_saves_of_two_tasks_at_a_notice_are_both_stored),
        world_test(a_program_that_does_not_answer_a_notice_is_stopped_before_the_deadline),
        world_test(a_task_without_checkpoints_may_finish_during_a_notice),
        world_test(a_task_that_is_wanted_after_a_notice_is_not_started),
        world_test(sigterm_in_a_shutdown_saves_first),
        world_test(sigterm_without_an_answer_of_systemd_saves_first),
        world_test(sigterm_together_with_a_notice_saves_first),
        world_test(a_shutdown_under_a_notice_is_the_nearer_deadline),
        world_test(sigterm_of_a_scheduler_is_a_notice_with_its_time),
        world_test(sigterm_of_a_scheduler_leaves_the_time_for_work_that_a_notice_does),
        world_test(sigterm_of_a_scheduler_is_reported_without_tasks_too),
        world_test(a_restart_of_the_agent_leaves_the_task),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
