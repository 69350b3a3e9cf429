/* SPDX-License-Identifier: Apache-2.0
 *
 * What survives the end of the agent, a supervisor or belayd.
 */
#include "world.h"

#include "agent/task/record.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/proc.h"
#include "base/uv/proc_table.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Waits for a file "go" in the checkpoint directory between two lines. */
static const char two_lines[] =
    "#!/bin/sh\n"
    "echo $$ first\n"
    "while ! test -e \"$BELAY_CHECKPOINT_DIR/go\"; do sleep 0.02; done\n"
    "echo second\n"
    "exit 7\n";

static void let_go(struct world *w, int64_t job)
{
    world_task_write(w, job, 1, "checkpoint/go", "");
}

static bool has_first_line(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "first\n") != NULL;
}

static bool has_exit_record(struct world *w, int64_t job)
{
    return world_task_has(w, job, 1, "exit.json");
}

static void assert_kept(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    assert_int_equal(s->end, WIRE_END_FAILED);
    assert_int_equal(s->exit_code, 7);
    assert_true(str_ends(world_output(w, job), "first\nsecond\n"));
    assert_int_equal(strlen(world_output(w, job)), s->output_bytes);
}

static void a_killed_agent_does_not_harm_its_task(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, two_lines);
    world_start_agent(w);
    world_until(w, has_first_line, 1, "the first line is shipped");
    world_kill_agent(w, SIGKILL);
    world_start_agent(w);
    world_until(w, is_running, 1, "the task is taken over");
    assert_true(kill(atoi(world_output(w, 1)), 0) == 0);
    let_go(w, 1);
    world_until(w, has_ended, 1, "the task ended");
    assert_kept(w, 1);
}

static const char tell_gpus[] =
    "#!/bin/sh\necho \"gpus [$BELAY_GPUS] [$CUDA_VISIBLE_DEVICES] first\"\nexec sleep 1000\n";

static void want_gpus(struct world *w, int64_t job, int64_t gpus)
{
    world_want(w, job, 1, tell_gpus)->gpus = gpus;
    world_go(w);
}

static bool lacks_gpus(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->phase == WIRE_STARTING && world_log_has(w, "which has 3");
}

static void a_gpu_is_never_given_to_two(void **state)
{
    struct world *w = world_create(state, "token: t\ngpus: 3\n");
    want_gpus(w, 1, 2);
    world_start_agent(w);
    world_until(w, has_first_line, 1, "the first has its GPUs");
    assert_string_equal(world_output(w, 1), "gpus [0,1] [0,1] first\n");
    world_kill_agent(w, SIGKILL);
    world_start_agent(w);
    want_gpus(w, 2, 1);
    world_until(w, has_first_line, 2, "a second has one beside it");
    assert_string_equal(world_output(w, 2), "gpus [2] [2] first\n");
    want_gpus(w, 3, 0);
    world_until(w, has_first_line, 3, "a third needs none");
    assert_string_equal(world_output(w, 3), "gpus [] [] first\n");
    want_gpus(w, 4, 1); /* belayd considers the first lost, but it still runs */
    world_until(w, lacks_gpus, 4, "a fourth waits for one");
    world_forget(w, 1);
    world_go(w);
    world_until(w, has_first_line, 4, "the fourth has what the first has left");
    assert_string_equal(world_output(w, 4), "gpus [0] [0] first\n");
}

/* Starts an agent with a fake nvidia-smi. */
static void start_agent_with_listing(struct world *w)
{
    char *dir = mem_printf("%s/bin", w->dir), *program = mem_printf("%s/nvidia-smi", dir);
    char *before = mem_strdup(getenv("PATH")), *path = mem_printf("%s:%s", dir, before);
    assert_int_equal(mkdir(dir, 0755), 0);
    world_write(program, "#!/bin/sh\ntest \"$*\" = -L || exit 1\n"
                         "echo 'GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaa)'\n"
                         "echo '  MIG 1g.10gb     Device  0: (UUID: MIG-0001)'\n"
                         "echo '  MIG 1g.10gb     Device  1: (UUID: MIG-0002)'\n"
                         "echo 'GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-bbbb)'\n");
    assert_int_equal(chmod(program, 0755), 0);
    setenv("PATH", path, 1);
    world_start_agent(w);
    setenv("PATH", before, 1);
    free(dir);
    free(program);
    free(before);
    free(path);
}

static void slices_of_gpus_are_given_to_one_each(void **state)
{
    struct world *w = world_create(state, "token: t\nresources: {lego: 3}\n");
    STR_COPY(world_want(w, 1, 1, tell_gpus)->resources, "1g.10gb:1,lego:2");
    STR_COPY(world_want(w, 2, 1, tell_gpus)->resources, "1g.10gb:1");
    world_want(w, 3, 1, tell_gpus)->gpus = 1;
    start_agent_with_listing(w);
    for (int64_t job = 1; job <= 3; job++)
        world_until(w, has_first_line, job, "it runs");
    assert_int_equal(w->join.gpus, 1);
    assert_string_equal(w->join.resources, "1g.10gb:2,lego:3");
    assert_string_equal(world_output(w, 1), "gpus [MIG-0001] [MIG-0001] first\n");
    assert_string_equal(world_output(w, 2), "gpus [MIG-0002] [MIG-0002] first\n");
    assert_string_equal(world_output(w, 3), "gpus [GPU-bbbb] [GPU-bbbb] first\n");
}

static bool waits_to_be_alone(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->phase == WIRE_STARTING &&
           world_log_has(w, "job 2 needs this node exclusively, and job 1 has not ended here yet");
}

static void an_exclusive_task_waits_until_the_node_is_empty(void **state)
{
    struct world *w = world_create(state, "token: t\ngpus: 3\n");
    want_gpus(w, 1, 0);
    world_start_agent(w);
    world_until(w, has_first_line, 1, "one runs");
    world_want(w, 2, 1, tell_gpus)->exclusive = true; /* belayd has given up the other */
    world_go(w);
    world_until(w, waits_to_be_alone, 2, "it waits");
    world_forget(w, 1);
    world_go(w);
    world_until(w, has_first_line, 2, "it runs");
    assert_string_equal(world_output(w, 2), "gpus [0,1,2] [0,1,2] first\n");
}

static void a_task_that_waits_for_a_gpu_can_be_stopped(void **state)
{
    struct world *w = world_create(state, "token: t\ngpus: 3\n");
    want_gpus(w, 1, 4);
    world_start_agent(w);
    world_until(w, lacks_gpus, 1, "it waits for one that is not there");
    struct wire_desired_attempt *a = &world_find(w, 1)->a;
    a->want = WIRE_STOP;
    a->reason = WIRE_END_CANCELLED;
    world_go(w);
    world_until(w, has_ended, 1, "it is stopped");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_CANCELLED);
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "it is forgotten");
}

static void the_next_agent_reports_a_task_that_ended_without_an_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, two_lines);
    world_start_agent(w);
    world_until(w, has_first_line, 1, "the first line is shipped");
    world_kill_agent(w, SIGKILL);
    let_go(w, 1);
    world_until(w, has_exit_record, 1, "the supervisor has written the end");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the end is reported");
    assert_kept(w, 1);
}

static void an_end_that_was_reported_is_reported_again_by_the_next_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nexit 7\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the end is reported");
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, has_ended, 1, "the end is reported again");
    assert_int_equal(world_reported(w, 1)->exit_code, 7);
    assert_string_equal(world_reported(w, 1)->text, "exit code 7");
}

static bool has_set_its_trap(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "up") != NULL;
}

static bool has_got_term(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "TERM") != NULL;
}

static void the_next_agent_remembers_a_requested_stop(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(
        w, 1, 1, "#!/bin/sh\ntrap 'echo TERM' TERM\necho up\nwhile :; do sleep 0.05; done\n");
    a->kill_wait_ms = 1000;
    world_start_agent(w);
    world_until(w, has_set_its_trap, 1, "the task has set its trap");
    a->want = WIRE_STOP;
    a->reason = WIRE_END_EVICTED;
    world_go(w);
    world_until(w, has_got_term, 1, "the program has got its SIGTERM");
    world_kill_agent(w, SIGKILL);
    a->want = WIRE_RUN; /* as if belayd had not repeated the stop yet */
    world_start_agent(w);
    world_until(w, has_ended, 1, "the task ended");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_EVICTED);
}

/* ---- supervisors ---- */

static const char daemons[] = "#!/bin/sh\n"
                              "echo $$\n"
                              "setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 1000' &\n"
                              "(setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 1000' &)\n"
                              "sleep 1000\n";

static int count_lines(const char *s)
{
    int n = 0;
    while ((s = strchr(s, '\n'))) {
        n++;
        s++;
    }
    return n;
}

static bool has_three_pids(struct world *w, int64_t job)
{
    return count_lines(world_output(w, job)) == 3;
}

static pid_t supervisor_of(struct world *w, int64_t job)
{
    char *path = world_task_path(w, job, 1, "supervisor.pid");
    char *text = world_read(path);
    assert_non_null(text);
    pid_t pid = atoi(text);
    free(text);
    free(path);
    return pid;
}

static void kill_supervisor(struct world *w, int64_t job)
{
    assert_int_equal(kill(supervisor_of(w, job), SIGKILL), 0);
}

static void assert_all_dead(const char *output)
{
    for (const char *p = output; *p; p = strchr(p, '\n') + 1)
        if (proc_start_ticks(atoi(p)) != 0) /* a zombie of an init that does not reap is dead */
            fail_msg("process %d lives on", atoi(p));
}

static void kill_a_supervisor(struct world *w)
{
    world_want(w, 1, 1, daemons);
    world_start_agent(w);
    world_until(w, has_three_pids, 1, "all processes are up");
    kill_supervisor(w, 1);
    world_until(w, has_ended, 1, "the end is reported");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_NODE_LOST);
    assert_string_equal(world_reported(w, 1)->text, "supervisor died");
    assert_all_dead(world_output(w, 1));
}

static void nothing_outlives_a_killed_supervisor(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    kill_a_supervisor(w);
}

/* An agent that is not root has no cgroups here. */
static void nothing_outlives_a_killed_supervisor_without_cgroups(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_be_nobody(w);
    kill_a_supervisor(w);
}

static void the_next_agent_notices_a_supervisor_killed_with_its_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, daemons);
    world_start_agent(w);
    world_until(w, has_three_pids, 1, "all processes are up");
    world_kill_agent(w, SIGKILL);
    kill_supervisor(w, 1);
    world_start_agent(w);
    world_until(w, has_ended, 1, "the end is reported");
    assert_string_equal(world_reported(w, 1)->text, "supervisor died");
    assert_all_dead(world_output(w, 1));
}

static void the_process_that_forks_supervisors_may_be_killed(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct proc_entry supervisor;
    world_want(w, 1, 1, two_lines);
    world_start_agent(w);
    world_until(w, has_first_line, 1, "the first task runs");
    assert_true(proc_read_entry(supervisor_of(w, 1), &supervisor));
    assert_true(supervisor.ppid != w->agent);
    assert_int_equal(kill(supervisor.ppid, SIGKILL), 0);
    world_want(w, 2, 1, "#!/bin/sh\nexit 7\n");
    world_go(w);
    world_until(w, has_ended, 2, "another was started for the next");
    assert_int_equal(world_reported(w, 2)->exit_code, 7);
    let_go(w, 1);
    world_until(w, has_ended, 1, "the first was not harmed");
    assert_kept(w, 1);
}

static pid_t run_two_lines(struct world *w, int64_t job)
{
    world_want(w, job, 1, two_lines);
    world_go(w);
    world_until(w, has_first_line, job, "its first line is shipped");
    return supervisor_of(w, job);
}

static void a_supervisor_takes_the_next_task(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_start_agent(w);
    pid_t first = run_two_lines(w, 1);
    let_go(w, 1);
    world_until(w, has_ended, 1, "the first task ended");
    assert_kept(w, 1);
    assert_int_equal(run_two_lines(w, 2), first);
    assert_true(run_two_lines(w, 3) != first); /* it already has one */
    world_kill_agent(w, SIGKILL);
    world_start_agent(w);
    let_go(w, 2);
    world_until(w, has_ended, 2, "the second task, which an agent to come has found, ended");
    assert_kept(w, 2);
    world_until(w, is_process_gone, first, "the supervisor, which has no agent any more, ended");
}

static void a_supervisor_without_a_task_ends_with_its_agent(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_start_agent(w);
    pid_t first = run_two_lines(w, 1);
    let_go(w, 1);
    world_until(w, has_ended, 1, "the task ended");
    assert_true(proc_start_ticks(first) != 0);
    world_kill_agent(w, SIGKILL);
    world_until(w, is_process_gone, first, "it ends");
}

/* A supervisor that had to kill processes gets no other task. */
static void a_supervisor_whose_task_left_processes_takes_no_other_task(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1,
        "#!/bin/sh\nsetsid sleep 1000 &\necho $! first\nwhile ! test -e "
        "\"$BELAY_CHECKPOINT_DIR/go\"; do sleep 0.02; done\n");
    world_start_agent(w);
    world_until(w, has_first_line, 1, "its first line is shipped");
    pid_t first = supervisor_of(w, 1);
    let_go(w, 1);
    world_until(w, has_ended, 1, "the first task ended");
    assert_all_dead(world_output(w, 1));
    assert_true(run_two_lines(w, 2) != first);
    world_until(w, is_process_gone, first, "it has ended");
}

static pid_t init_of(struct world *w, int64_t job)
{
    char *path = world_task_path(w, job, 1, "supervisor.pid");
    struct task_start start;
    struct err e;
    assert_int_equal(record_read_start(path, &start, &e), 0);
    assert_true(start.init_pid > 1);
    free(path);
    return (pid_t)start.init_pid;
}

/* Without cgroups the ancestor of the task's processes is belay's init: its death is not the
 * program's failure. */
static void nothing_outlives_a_killed_init(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_be_nobody(w);
    world_want(w, 1, 1, daemons);
    world_start_agent(w);
    world_until(w, has_three_pids, 1, "all processes are up");
    assert_int_equal(kill(init_of(w, 1), SIGKILL), 0);
    world_until(w, has_ended, 1, "the end is reported");
    assert_int_equal(world_reported(w, 1)->end, WIRE_END_NODE_LOST);
    assert_all_dead(world_output(w, 1));
}

/* ---- belayd ---- */

/* Its spec is written last, and may be incomplete. */
static void a_start_that_a_killed_agent_had_begun_is_repeated(void **state)
{
    static const char *const parts[] = {
        "", "{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1,\"attempts\":[{\"job\":2,"};
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\necho first\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the agent works");
    world_kill_agent(w, SIGKILL);
    for (int64_t job = 2; job <= 3; job++) {
        char *dir = world_task_path(w, job, 1, ""), *spec = world_task_path(w, job, 1, "spec.json"),
             *script = world_task_path(w, job, 1, "script");
        assert_int_equal(mkdir(dir, 0700), 0);
        world_write(script, "#!/bin/sh\nexit 9\n");
        world_write(spec, parts[job - 2]);
        free(dir);
        free(spec);
        free(script);
        world_want(w, job, 1, "#!/bin/sh\necho first\n");
    }
    world_start_agent(w);
    for (int64_t job = 2; job <= 3; job++) {
        world_until(w, has_ended, job, "it has run");
        assert_int_equal(world_reported(w, job)->end, WIRE_END_SUCCEEDED);
        assert_string_equal(world_output(w, job), "first\n");
    }
}

static bool has_heard_nothing(struct world *w, int64_t unused)
{
    (void)unused;
    return world_log_has(w, "belayd cannot be reached");
}

static void a_task_continues_while_belayd_is_down(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, two_lines);
    world_start_agent(w);
    world_until(w, has_first_line, 1, "the first line is shipped");
    w->deaf = true;
    world_go(w);
    world_until(w, has_heard_nothing, 0, "the agent misses belayd");
    let_go(w, 1);
    world_until(w, has_exit_record, 1, "the task ended");
    w->deaf = false;
    world_until(w, has_ended, 1, "the end is reported");
    assert_kept(w, 1);
}

static void a_second_agent_in_the_same_directory_is_refused(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the agent works");
    pid_t first = w->agent;
    w->agent = 0;
    world_start_agent(w);
    assert_int_equal(world_wait_agent(w), 1);
    assert_true(world_log_has(w, "another agent is running with the directory"));
    w->agent = first;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_killed_agent_does_not_harm_its_task),
        world_test(a_gpu_is_never_given_to_two),
        world_test(slices_of_gpus_are_given_to_one_each),
        world_test(an_exclusive_task_waits_until_the_node_is_empty),
        world_test(a_task_that_waits_for_a_gpu_can_be_stopped),
        world_test(the_next_agent_reports_a_task_that_ended_without_an_agent),
        world_test(an_end_that_was_reported_is_reported_again_by_the_next_agent),
        world_test(the_next_agent_remembers_a_requested_stop),
        world_test(a_supervisor_takes_the_next_task),
        world_test(a_supervisor_without_a_task_ends_with_its_agent),
        world_test(a_supervisor_whose_task_left_processes_takes_no_other_task),
        world_test(nothing_outlives_a_killed_supervisor),
        world_test(nothing_outlives_a_killed_supervisor_without_cgroups),
        world_test(the_next_agent_notices_a_supervisor_killed_with_its_agent),
        world_test(the_process_that_forks_supervisors_may_be_killed),
        world_test(nothing_outlives_a_killed_init),
        world_test(a_start_that_a_killed_agent_had_begun_is_repeated),
        world_test(a_task_continues_while_belayd_is_down),
        world_test(a_second_agent_in_the_same_directory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
