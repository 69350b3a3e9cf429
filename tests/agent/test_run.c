/* SPDX-License-Identifier: Apache-2.0
 *
 * Real tasks of a real agent: how they start, run and end.
 */
#include "rights.h"
#include "world.h"

#include "agent/task/record.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_script_runs_with_its_environment_and_its_output_is_shipped(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(w, 42, 1,
        "#!/bin/sh\n"
        "#SBATCH -J job\n"
        "echo "
        "\"$1,$2,$BELAY_JOB_ID,$BELAY_ATTEMPT,$BELAY_JOB_NAME,$BELAY_RESTORED,$SEED,$SLURM_JOB_ID,$"
        "(pwd)\"\n"
        "test -d \"$BELAY_CHECKPOINT_DIR\" && test -d \"$BELAY_CONTROL_DIR\" || echo missing\n"
        "echo oops >&2\n"
        "env | cut -d= -f1 | sort | tr '\\n' ' '\n"
        "exit 3\n");
    char one[] = "a b", two[] = "", name[] = "SEED", value[] = "7";
    char *args[] = {one, two};
    struct wire_env env = {name, value};
    a->args = args;
    a->n_args = 2;
    a->env = &env;
    a->n_env = 1;
    a->slurm_env = true;
    world_start_agent(w);
    world_until(w, has_ended, 42, "the script ended");
    assert_ended(w, 42, WIRE_END_FAILED, 3, "exit code 3");
    assert_true(world_reported(w, 42)->started_at > 0);
    const char *out = world_output(w, 42);
    if (!str_starts(out, "a b,,42,1,job,0,7,42,/tmp\noops\n"))
        fail_msg("%s", out);
    assert_null(strstr(out, "BELAY_AGENT"));
    assert_null(strstr(out, "missing"));
    assert_non_null(strstr(out, " HOME "));
}

static bool has_reported_cpu_time(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->usage.cpu_ms >= 500 && s->usage.cpu_milli > 0;
}

static void usage_is_reported_while_a_program_runs_and_at_its_end(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *path = NULL;
    world_want(w, 42, 1,
        "#!/usr/bin/python3\n"
        "import os, time\n"
        "held = bytearray(32 << 20)\n"
        "while time.process_time() < 0.5: pass\n"
        "control = os.environ['BELAY_CONTROL_DIR']\n"
        "while not os.path.exists(control + '/go'): time.sleep(0.05)\n");
    world_start_agent(w);
    world_until(w, is_running, 42, "the program runs");
    path = world_task_path(w, 42, 1, "supervisor.pid");
    char *start = world_read(path);
    bool counts = start && strstr(start, "\"usage\"");
    free(start);
    free(path);
    world_until(w, has_reported_cpu_time, 42, "the CPU time is reported");
    assert_true(counts || world_reported(w, 42)->usage.memory_bytes >= 32 << 20);
    world_task_write(w, 42, 1, "control/go", "");
    world_until(w, has_ended, 42, "it ended");
    assert_ended(w, 42, WIRE_END_SUCCEEDED, 0, "");
    const struct wire_usage *u = &world_reported(w, 42)->usage;
    assert_true(u->cpu_ms >= 500 && u->cpu_ms < 15000 && u->cpu_milli == 0);
    assert_true(!counts || (u->cpu_user_ms > 0 && u->cpu_user_ms <= u->cpu_ms));
    assert_true(u->memory_peak_bytes == 0 || u->memory_peak_bytes >= 32 << 20);
}

static void a_joined_node_does_not_join_again(void **state)
{
    struct world *w = world_create(state, "token: t\nname: mynode\ncpus: 3\nmemory: 2G\n");
    world_start_agent(w);
    world_want(w, 1, 1, "#!/bin/sh\nexit 0\n");
    world_until(w, has_ended, 1, "the first job ended");
    assert_ended(w, 1, WIRE_END_SUCCEEDED, 0, "");
    world_kill_agent(w, SIGTERM);
    world_want(w, 2, 1, "#!/bin/sh\nexit 0\n");
    world_start_agent(w);
    world_until(w, has_ended, 2, "the second job ended");
    assert_int_equal(w->n_joins, 1);
    assert_string_equal(w->join.token, "t");
    assert_string_equal(w->join.host, "mynode");
    assert_int_equal(w->join.cpus, 3);
    assert_int_equal(w->join.memory_mib, 2048);
    assert_string_equal(w->join.provider, "");
}

static void an_attempt_that_is_no_longer_desired_is_forgotten(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nexit 0\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the job ended");
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the ended attempt is forgotten");
}

/* Lists files and their owners. */
static const char look_around[] =
    "#!/bin/sh\nls -A \"$BELAY_CHECKPOINT_DIR\" \"$BELAY_CONTROL_DIR\" | grep -v : | tr -d '\\n'\n"
    "stat -c '%i %a' \"$BELAY_CHECKPOINT_DIR\"\n";

static char *run_and_forget(struct world *w, int64_t job, const char *script)
{
    world_want(w, job, 1, script);
    world_go(w);
    world_until(w, has_ended, job, "it ended");
    char *said = mem_strdup(world_output(w, job));
    world_forget(w, job);
    world_go(w);
    world_until(w, is_forgotten, job, "it is forgotten");
    return said;
}

static void an_empty_task_directory_is_reused_by_the_next_task(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char *script = mem_printf("%stouch \"$BELAY_CHECKPOINT_DIR/mine\"\n", look_around);
    world_start_agent(w);
    char *first = run_and_forget(w, 1, look_around);
    char *second = run_and_forget(w, 2, script);
    assert_true(str_ends(first, " 700\n") && strlen(first) < 30);
    assert_string_equal(first, second);
    char *third = run_and_forget(w, 3, look_around);
    /* only a number: it is empty */
    assert_true(str_ends(third, " 700\n") && strlen(third) < 30);
    free(first);
    free(second);
    free(third);
    free(script);
}

static void a_running_attempt_that_is_not_desired_is_killed_at_once(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\ntrap '' TERM\nsetsid sleep 1000 &\nsleep 1000\n");
    world_start_agent(w);
    world_until(w, is_running, 1, "the job runs");
    world_forget(w, 1);
    world_go(w);
    world_until(w, is_forgotten, 1, "the attempt is gone");
}

static bool is_ready(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "ready") != NULL;
}

static void a_stop_sends_sigterm_and_the_end_has_its_reason(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(w, 1, 1,
        "#!/bin/sh\ntrap 'echo got TERM; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
    world_start_agent(w);
    world_until(w, is_ready, 1, "the job has set its trap");
    a->want = WIRE_STOP;
    a->reason = WIRE_END_CANCELLED;
    world_go(w);
    world_until(w, has_ended, 1, "the job is stopped");
    assert_ended(w, 1, WIRE_END_CANCELLED, 0, "");
}

/* A fake podman of a few lines, first in PATH: the agent finds it, and it runs the command
 * directly. */
static void stand_in(struct world *w, const char *text)
{
    char *path = mem_printf("%s/podman", w->dir),
         *all = mem_printf("%s:%s", w->dir, getenv("PATH"));
    struct err e;
    assert_int_equal(fs_write_atomic(path, text, strlen(text), 0755, &e), 0);
    assert_int_equal(chmod(w->dir, 0755), 0);
    setenv("PATH", all, 1);
    free(path);
    free(all);
}

#define RUNS                                                                                       \
    "#!/bin/sh\ntest \"$1\" = image && exit 0\nwhile [ \"$1\" != /bin/sh ]; do shift; done\nexec " \
    "\"$@\"\n"

static void a_script_in_an_image_has_its_environment_its_end_and_its_signals(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char image[] = "lab/tools:1", word[] = "a b", *args[] = {word};
    stand_in(w, RUNS);
    struct wire_desired_attempt *a = world_want(w, 1, 1,
        "#!/bin/sh\necho $1,$BELAY_JOB_ID,$(pwd); test -w \"$BELAY_CHECKPOINT_DIR\" && echo "
        "\"$PATH\" | grep -c /run/belay/bin\nexit 3\n");
    a->image = image;
    a->args = args;
    a->n_args = 1;
    a = world_want(w, 2, 1,
        "#!/bin/sh\ntrap 'echo got TERM; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done\n");
    a->image = image;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the script ended");
    assert_ended(w, 1, WIRE_END_FAILED, 3, "exit code 3");
    assert_string_equal(world_output(w, 1), "a b,1,/tmp\n1\n");
    assert_non_null(strstr(w->join.features, ",podman,"));
    world_until(w, is_ready, 2, "the other has set its trap");
    a->want = WIRE_STOP;
    a->reason = WIRE_END_CANCELLED;
    world_go(w);
    world_until(w, has_ended, 2, "it is stopped");
    assert_ended(w, 2, WIRE_END_CANCELLED, 0, "");
    assert_non_null(strstr(world_output(w, 2), "got TERM"));
}

static void an_unavailable_image_and_a_node_without_podman_end_differently(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    char bad[] = "bad:1", broken[] = "broken:1";
    stand_in(w, "#!/bin/sh\ncase \"$*\" in\n*exists*broken*) exit 0 ;;\nimage*) exit 1 ;;\npull*) "
                "echo 'Error: manifest unknown' >&2; exit 125 ;;\nesac\n"
                "echo 'Error: no storage' >&2\nexit 125\n");
    world_want(w, 1, 1, "#!/bin/sh\necho never\n")->image = bad;
    world_want(w, 2, 1, "#!/bin/sh\necho never\n")->image = broken;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the bad image is reported");
    assert_ended(
        w, 1, WIRE_END_FAILED, 125, "the image bad:1 is not available: Error: manifest unknown");
    world_until(w, has_ended, 2, "the node's failure is reported");
    assert_ended(
        w, 2, WIRE_END_NODE_LOST, 125, "its container could not be started (exit code 125)");
    assert_non_null(strstr(world_output(w, 2), "no storage"));
}

static void a_stop_before_the_start_is_reported_as_an_end(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(w, 1, 1, "#!/bin/sh\n");
    a->want = WIRE_STOP;
    a->reason = WIRE_END_CANCELLED;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the end is reported");
    assert_ended(w, 1, WIRE_END_CANCELLED, 0, "it had not started");
}

static void an_attempt_without_a_record_is_reported_as_lost(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, NULL);
    world_start_agent(w);
    world_until(w, has_ended, 1, "the end is reported");
    assert_ended(w, 1, WIRE_END_NODE_LOST, 0, "no record");
}

static void the_time_limit_ends_what_ignores_sigterm(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a =
        world_want(w, 1, 1, "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n");
    a->options.time_limit_ms = 2000;
    a->kill_wait_ms = 200;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the time limit ends the job");
    assert_ended(w, 1, WIRE_END_TIMEOUT, 137, "longer than its time limit of 2");
}

static bool has_heard(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "got USR1") != NULL;
}

/* Also after a restart of the agent: it repeats the limit to the supervisor, which keeps it. */
static void a_changed_time_limit_counts_from_the_start(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(w, 1, 1, "#!/bin/sh\nsleep 1000\n");
    a->options.time_limit_ms = a->limit_ms = 3600000;
    world_want(w, 2, 1, "#!/bin/sh\nsleep 1000\n")->limit_ms = WIRE_NO_LIMIT;
    a = world_want(w, 3, 1, "#!/bin/sh\nsleep 1.5\n");
    a->options.time_limit_ms = 1000;
    a->limit_ms = 3600000; /* before the start */
    world_start_agent(w);
    for (int job = 1; job <= 2; job++)
        world_until(w, is_running, job, "it runs");
    world_until(w, has_ended, 3, "it has ended");
    assert_ended(w, 3, WIRE_END_SUCCEEDED, 0, "");
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_find(w, 1)->a.limit_ms = 1; /* already over */
    world_find(w, 2)->a.limit_ms = 7200000;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the time limit ends it");
    assert_ended(w, 1, WIRE_END_TIMEOUT, 143, "longer than its time limit of");
    world_kill_agent(w, SIGKILL);
    char *path = world_task_path(w, 2, 1, "state.json");
    struct task_state s;
    struct err e;
    assert_int_equal(record_read_state(path, &s, &e), 0);
    assert_int_equal(s.limit_ms, 7200000);
    record_deinit_state(&s);
    free(path);
    world_find(w, 2)->a.limit_ms = 0; /* not set: the previous one remains */
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, is_running, 2, "it is taken over");
    world_find(w, 2)->a.limit_ms = 10;
    world_go(w);
    world_until(w, has_ended, 2, "the time limit ends it");
    assert_ended(w, 2, WIRE_END_TIMEOUT, 143, "longer than its time limit of");
}

static void the_signal_precedes_the_time_limit_in_force(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a =
        world_want(w, 1, 1, "#!/bin/sh\ntrap 'echo got USR1' USR1\nwhile :; do sleep 0.05; done\n");
    a->options.time_limit_ms = 3600000;
    a->grace_signal = SIGUSR1;
    a->grace_ms = 60000;
    world_start_agent(w);
    world_until(w, is_running, 1, "it runs");
    world_find(w, 1)->a.limit_ms = 59000;
    world_go(w);
    world_until(w, has_heard, 1, "the script is signalled");
    assert_int_equal(world_reported(w, 1)->phase, WIRE_RUNNING);
}

/* The signal is not repeated after a restart, because the supervisor outlives the agent. */
static void the_script_is_signalled_once_before_its_time_limit(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(w, 1, 1,
        "#!/bin/sh\nsh -c \"trap 'echo child got it' USR1; while :; do sleep 0.05; done\" &\n"
        "trap 'echo got USR1' USR1\necho ready\nwhile :; do sleep 0.05; done\n");
    a->options.time_limit_ms = 4000;
    a->kill_wait_ms = 200;
    a->grace_signal = SIGUSR1;
    a->grace_ms = 3000;
    a->grace_to_script = true;
    world_start_agent(w);
    world_until(w, has_heard, 1, "the script is signalled");
    world_kill_agent(w, SIGKILL);
    world_forget_reports(w);
    world_start_agent(w);
    world_until(w, has_ended, 1, "the time limit ends the job");
    assert_ended(w, 1, WIRE_END_TIMEOUT, 143, "longer than its time limit of 4");
    const char *output = world_output(w, 1);
    assert_null(strstr(strstr(output, "got USR1") + 1, "got USR1"));
    assert_null(strstr(output, "child got it"));
}

/* The script continues after its program. */
static void a_sigterm_before_the_time_limit_ends_the_programs_of_a_script(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a =
        world_want(w, 1, 1, "#!/bin/sh\nsleep 1000\necho \"it ended with $?\"\nexit 7\n");
    a->options.time_limit_ms = 60000;
    a->grace_signal = SIGTERM;
    a->grace_ms = 59500;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the job has ended");
    assert_ended(w, 1, WIRE_END_FAILED, 7, "");
    assert_non_null(strstr(world_output(w, 1), "it ended with 143"));
}

/* At first no process handles it; a shell without a handler is left alone. */
static void a_signal_before_the_time_limit_waits_for_a_handler(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    struct wire_desired_attempt *a = world_want(w, 1, 1,
        "#!/bin/sh\nsleep 1\nsh -c \"trap 'echo got USR1; exit 3' USR1; while :; do sleep 0.05; "
        "done\"\nexit $?\n");
    a->options.time_limit_ms = 60000;
    a->grace_signal = SIGUSR1;
    a->grace_ms = 60000;
    world_start_agent(w);
    world_until(w, has_ended, 1, "the job has ended");
    assert_ended(w, 1, WIRE_END_FAILED, 3, "");
    assert_true(has_heard(w, 1));
}

static void a_program_killed_by_a_signal_of_its_own_has_failed(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/bin/sh\nkill -SEGV $$\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the job ended");
    assert_ended(w, 1, WIRE_END_FAILED, 139, "signal 11");
}

static void a_failed_start_has_its_reason(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_want(w, 1, 1, "#!/no/such/interpreter -x\necho\n");
    STR_COPY(world_want(w, 2, 1, "#!/bin/sh\n")->cwd, "/no/such/dir");
    STR_COPY(world_want(w, 3, 1, "#!/bin/sh\n")->user, "nobody-of-that-name");
    world_want(w, 4, 1, "echo no first line\n");
    world_start_agent(w);
    for (int job = 1; job <= 4; job++)
        world_until(w, has_ended, job, "the job ended");
    assert_ended(w, 1, WIRE_END_FAILED, 127, "/no/such/interpreter");
    assert_ended(w, 2, WIRE_END_FAILED, 126, "/no/such/dir");
    assert_ended(w, 3, WIRE_END_FAILED, 126, "nobody-of-that-name");
    for (int job = 1; job <= 4; job++)
        assert_int_equal(world_reported(w, job)->user_refused, job == 3);
    assert_ended(w, 4, WIRE_END_FAILED, 126, "echo no first line");
}

static void leave_a_daemon(struct world *w)
{
    world_want(w, 1, 1,
        "#!/bin/sh\n"
        "cd \"$BELAY_CHECKPOINT_DIR\"\n"
        "mkfifo up\n"
        "(setsid sh -c 'trap \"\" TERM HUP; echo $$; echo >up; sleep 1000' &)\n"
        "read x <up\n"
        "exit 4\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "the job ended");
    assert_ended(w, 1, WIRE_END_FAILED, 4, "");
    int64_t pid = atoll(world_output(w, 1));
    assert_true(pid > 1);
    world_until(w, is_process_gone, pid, "the daemon is dead");
}

static void processes_that_a_script_leaves_are_killed_when_it_ends(void **state)
{
    leave_a_daemon(world_create(state, "token: t\n"));
}

static void processes_that_a_script_leaves_are_killed_without_cgroups_too(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    world_be_nobody(w);
    leave_a_daemon(w);
}

static void a_job_of_another_user_runs_as_that_user(void **state)
{
    struct world *w = world_create(state, "token: t\n");
    if (geteuid() != 0) {
        printf("SKIP: only root can switch users\n");
        return;
    }
    struct wire_desired_attempt *a = world_want(w, 1, 1,
        "#!/bin/sh\nid -un\necho x >\"$BELAY_CHECKPOINT_DIR/x\" && echo y "
        ">\"$BELAY_CONTROL_DIR/y\" && echo "
        "$USER\n");
    char output[] = "as-nobody.%j", refused[] = "../as-nobody.%j";
    char dir[80], file[120];
    struct stat st;
    snprintf(dir, sizeof(dir), "%s/nobodys", w->dir);
    assert_int_equal(mkdir(dir, 0777), 0);
    assert_int_equal(chmod(w->dir, 0755) | chown(dir, 65534, 65534), 0);
    STR_COPY(a->user, "nobody");
    STR_COPY(a->cwd, dir);
    a->output = output;
    a = world_want(w, 2, 1, "#!/bin/sh\necho ran\n");
    STR_COPY(a->user, "nobody");
    STR_COPY(a->cwd, dir);
    a->output = refused; /* in a directory of root */
    world_start_agent(w);
    world_until(w, has_ended, 1, "the job ended");
    world_until(w, has_ended, 2, "the other ended");
    assert_ended(w, 1, WIRE_END_SUCCEEDED, 0, "");
    assert_string_equal(world_output(w, 1), "nobody\nnobody\n");
    assert_file(dir, "as-nobody.1", "nobody\nnobody\n");
    snprintf(file, sizeof(file), "%s/as-nobody.1", dir);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_uid, 65534);
    assert_ended(w, 2, WIRE_END_FAILED, 126,
        "its output cannot be written to ../as-nobody.2: Permission denied");
}

/* ---- shared memory ---- */

/* Two tasks in sequence: neither the node nor the second one sees what the first left. */
static void shared_memory_of_a_task_ends_with_it(void **state)
{
    static const char leaves[] = "#!/bin/sh\n"
                                 "ls /dev/shm | grep -c belay-test; ipcs -m | grep -c ' 4096 '\n"
                                 "echo x >/dev/shm/belay-test-$BELAY_JOB_ID\n"
                                 "ipcmk -M 4096 >/dev/null; ipcs -m | grep -c ' 4096 '\n"
                                 "df -k --output=size /dev/shm | tail -n 1 | tr -d ' '\n";
    struct world *w = world_create(state, "token: t\n");
    if (!may_unshare(CLONE_NEWIPC | CLONE_NEWNS))
        skip();
    world_start_agent(w);
    for (int job = 1; job <= 2; job++) {
        struct wire_desired_attempt *a = world_want(w, job, 1, leaves);
        char path[64];
        a->memory_mib = 64;
        world_go(w);
        world_until(w, has_ended, job, "it has ended");
        assert_string_equal(world_output(w, job), "0\n0\n1\n65536\n");
        snprintf(path, sizeof(path), "/dev/shm/belay-test-%d", job);
        assert_int_equal(access(path, F_OK), -1);
    }
}

static void with_private_ipc_no_a_task_has_the_nodes_shared_memory(void **state)
{
    struct world *w = world_create(state, "token: t\nprivate_ipc: no\n");
    char here[64], theirs[64];
    world_want(w, 1, 1, "#!/bin/sh\nreadlink /proc/self/ns/ipc\n");
    world_start_agent(w);
    world_until(w, has_ended, 1, "it has ended");
    ssize_t n = readlink("/proc/self/ns/ipc", here, sizeof(here) - 1);
    assert_true(n > 0);
    here[n] = '\0';
    snprintf(
        theirs, sizeof(theirs), "%.*s", (int)strcspn(world_output(w, 1), "\n"), world_output(w, 1));
    assert_string_equal(theirs, here);
}

static void missing_namespaces_are_logged_once(void **state)
{
    static const char said[] = "segments that they leave remain";
    struct world *w = world_create(state, "token: t\n");
    const char *agent = getenv("BELAY_AGENT");
    if (!may_unshare(CLONE_NEWIPC | CLONE_NEWNS))
        skip();
    char *without = mem_printf("%s/agent-without", w->dir), *usual = mem_strdup(agent);
    char *script =
        mem_printf("#!/bin/sh\nexec setpriv --inh-caps=-sys_admin --bounding-set=-sys_admin "
                   "%s \"$@\"\n",
            agent);
    world_write(without, script);
    assert_int_equal(chmod(without, 0700), 0);
    setenv("BELAY_AGENT", without, 1);
    world_start_agent(w);
    setenv("BELAY_AGENT", usual, 1);
    for (int job = 1; job <= 2; job++) {
        world_want(w, job, 1, "#!/bin/sh\n");
        world_go(w);
        world_until(w, has_ended, job, "it has ended");
        assert_ended(w, job, WIRE_END_SUCCEEDED, 0, "");
    }
    char *log = world_read(w->log), *first = strstr(log, said);
    assert_true(first && !strstr(first + 1, said) && strstr(log, "CAP_SYS_ADMIN"));
    assert_null(strstr(log, "is not isolated"));
    free(log);
    free(script);
    free(usual);
    free(without);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        world_test(a_script_runs_with_its_environment_and_its_output_is_shipped),
        world_test(usage_is_reported_while_a_program_runs_and_at_its_end),
        world_test(a_joined_node_does_not_join_again),
        world_test(an_attempt_that_is_no_longer_desired_is_forgotten),
        world_test(an_empty_task_directory_is_reused_by_the_next_task),
        world_test(a_running_attempt_that_is_not_desired_is_killed_at_once),
        world_test(a_stop_sends_sigterm_and_the_end_has_its_reason),
        world_test(a_stop_before_the_start_is_reported_as_an_end),
        world_test(an_attempt_without_a_record_is_reported_as_lost),
        world_test(the_time_limit_ends_what_ignores_sigterm),
        world_test(the_script_is_signalled_once_before_its_time_limit),
        world_test(a_changed_time_limit_counts_from_the_start),
        world_test(the_signal_precedes_the_time_limit_in_force),
        world_test(a_sigterm_before_the_time_limit_ends_the_programs_of_a_script),
        world_test(a_signal_before_the_time_limit_waits_for_a_handler),
        world_test(a_program_killed_by_a_signal_of_its_own_has_failed),
        world_test(a_failed_start_has_its_reason),
        world_test(a_script_in_an_image_has_its_environment_its_end_and_its_signals),
        world_test(an_unavailable_image_and_a_node_without_podman_end_differently),
        world_test(processes_that_a_script_leaves_are_killed_when_it_ends),
        world_test(processes_that_a_script_leaves_are_killed_without_cgroups_too),
        world_test(a_job_of_another_user_runs_as_that_user),
        world_test(shared_memory_of_a_task_ends_with_it),
        world_test(with_private_ipc_no_a_task_has_the_nodes_shared_memory),
        world_test(missing_namespaces_are_logged_once),
    };
    return world_run(tests, sizeof(tests) / sizeof(tests[0]), argc, argv);
}
