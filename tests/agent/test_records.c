/* SPDX-License-Identifier: Apache-2.0
 *
 * A task's records, its environment, its states.
 */
#include "agent/supervisor/env.h"
#include "agent/incarnation.h"
#include "agent/task/record.h"
#include "agent/task/task.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static int make_dir(void **state)
{
    char *dir = mem_strdup("/tmp/belay-records-XXXXXX");
    *state = dir;
    return mkdtemp(dir) ? chdir(dir) : -1;
}

static int leave_dir(void **state)
{
    struct err e;
    int rc = chdir("/");
    rc |= fs_remove_tree(*state, &e);
    free(*state);
    return rc;
}

static void a_state_survives_a_round_trip(void **state)
{
    struct task_state s, back;
    struct err e;
    (void)state;
    record_init_state(&s, 42, 3);
    s.reported.checkpoints = mem_array(1, sizeof(*s.reported.checkpoints));
    s.reported.checkpoints[0] = (struct wire_checkpoint){
        .sequence = 4, .progress = WIRE_NONE, .saved_at = 9, .cause = WIRE_CAUSE_NOTICE};
    s.reported.n_checkpoints = 1;
    s.prepared = s.saving = true;
    s.sequence = 5;
    s.last_saved_at = 1760000000000;
    s.stop = WIRE_END_RECLAIMED;
    STR_COPY(s.gpus, "0,3");
    assert_int_equal(record_write_state("state.json", &s, &e), 0);
    assert_int_equal(record_read_state("state.json", &back, &e), 0);
    assert_int_equal(back.reported.job, 42);
    assert_int_equal(back.reported.attempt, 3);
    assert_true(back.reported.started_at == WIRE_NONE);
    assert_int_equal(back.reported.n_checkpoints, 1);
    assert_int_equal(back.reported.checkpoints[0].cause, WIRE_CAUSE_NOTICE);
    assert_true(back.prepared && back.saving);
    assert_int_equal(back.sequence, 5);
    assert_true(back.last_saved_at == s.last_saved_at);
    assert_int_equal(back.stop, WIRE_END_RECLAIMED);
    assert_string_equal(back.gpus, "0,3");
    record_deinit_state(&s);
    record_deinit_state(&back);
}

/* A word of a newer agent: the stop remains, however often the state is written. */
static void a_stop_for_an_unknown_reason_is_still_one(void **state)
{
    static const char text[] = "{\"told\":{\"job\":42,\"attempt\":3,\"phase\":\"ending\"},"
                               "\"stop\":\"whim\"}";
    struct task_state s, back;
    struct err e;
    (void)state;
    assert_int_equal(record_put("state.json", text, strlen(text), 0600, &e), 0);
    assert_int_equal(record_read_state("state.json", &s, &e), 0);
    assert_int_equal(record_write_state("state.json", &s, &e), 0);
    assert_int_equal(record_read_state("state.json", &back, &e), 0);
    assert_int_equal(back.stop, WIRE_END_CANCELLED);
    record_deinit_state(&s);
    record_deinit_state(&back);
}

static void an_exit_and_a_start_survive_a_round_trip(void **state)
{
    struct task_exit x = {.cause = EXIT_TIMEOUT,
                         .code = 137,
                         .signal = 9,
                         .ended_at = 5,
                         .text = "too long"},
                     x2;
    struct task_start s = {.started_at = 7, .init_pid = 8, .init_ticks = 9}, s2;
    struct err e;
    (void)state;
    assert_int_equal(record_write_exit("exit.json", &x, true, &e), 0);
    assert_int_equal(record_read_exit("exit.json", &x2, &e), 0);
    assert_int_equal(x2.cause, EXIT_TIMEOUT);
    assert_int_equal(x2.code, 137);
    assert_string_equal(x2.text, "too long");
    assert_int_equal(record_put_new("supervisor.pid", "17 4711\n", 8, 0600, &e), 0);
    assert_int_equal(record_read_start("supervisor.pid", &s2, &e), ERR_NOT_FOUND);
    int fd = open("supervisor.pid", O_WRONLY | O_APPEND);
    assert_int_equal(record_add_start(fd, &s, &e), 0);
    assert_int_equal(record_read_start("supervisor.pid", &s2, &e), 0);
    assert_memory_equal(&s, &s2, sizeof(s));
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(ftruncate(fd, st.st_size - 1), 0); /* killed in the middle */
    assert_int_equal(record_read_start("supervisor.pid", &s2, &e), ERR_NOT_FOUND);
    close(fd);
    assert_int_equal(record_read_start("nothing", &s2, &e), ERR_NOT_FOUND);
    assert_int_equal(
        record_put_new("supervisor.pid", "17 4711\n{\"started_at\":x}\n", 25, 0600, &e), 0);
    assert_int_equal(record_read_start("supervisor.pid", &s2, &e), ERR_INVALID);
}

static void a_spec_is_kept_from_others(void **state)
{
    char script[] = "#!/bin/sh\n", key[] = "5ec4e7", *keys[] = {key}, token[] = "j1.1.70ce";
    struct wire_desired_attempt a = {.job = 1,
        .attempt = 1,
        .script = script,
        .cwd = "/",
        .needs_secrets = true,
        .job_token = token,
        .secrets = {
            .version = 7, .checkpoint_keys = keys, .n_checkpoint_keys = 1, .encrypts = true}};
    struct wire_desired back;
    struct stat st;
    struct buf text = {0};
    struct err e;
    (void)state;
    assert_int_equal(record_write_spec("spec.json", &a, &e), 0);
    assert_int_equal(stat("spec.json", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(record_read_spec("spec.json", &back, &e), 0);
    assert_string_equal(back.attempts[0].script, script);
    assert_true(back.attempts[0].needs_secrets);
    assert_int_equal(back.attempts[0].secrets.version, 0);
    assert_int_equal(fs_read("spec.json", 1 << 20, &text, &e), 0);
    assert_null(strstr(buf_str(&text), key));
    assert_null(strstr(buf_str(&text), token));
    buf_deinit(&text);
    wire_desired_deinit(&back);
}

static void missing_and_malformed_records_are_distinguished(void **state)
{
    struct task_state s;
    struct task_exit x;
    struct wire_desired spec;
    struct err e;
    (void)state;
    assert_int_equal(record_read_state("state.json", &s, &e), ERR_NOT_FOUND);
    static const char *const bad[] = {
        "", "{", "{}", "{\"told\":{}}", "{\"told\":{\"job\":1,\"attempt\":1,\"phase\":\"x\"}}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(record_put("state.json", bad[i], strlen(bad[i]), 0600, &e), 0);
        assert_int_equal(record_read_state("state.json", &s, &e), ERR_INVALID);
        assert_non_null(strstr(e.text, "state.json"));
    }
    static const char exit_bad[] = "{\"cause\":\"by-itself\",\"code\":256,\"ended_at\":1}";
    assert_int_equal(record_put("exit.json", exit_bad, strlen(exit_bad), 0600, &e), 0);
    assert_int_equal(record_read_exit("exit.json", &x, &e), ERR_INVALID);
    static const char none[] = "{\"rev\":1,\"sync_ms\":0,\"lease_ms\":1}";
    assert_int_equal(record_put("spec.json", none, strlen(none), 0600, &e), 0);
    assert_int_equal(record_read_spec("spec.json", &spec, &e), ERR_INVALID);
}

static void an_incarnation_is_greater_than_the_one_before(void **state)
{
    const char *dir = *state;
    int64_t first, second, third, fourth;
    struct err e;
    assert_int_equal(incarnation_next(dir, 1760000000000, &first, &e), 0);
    assert_int_equal(incarnation_next(dir, 1760000005000, &second, &e), 0);
    /* the clock was set back */
    assert_int_equal(incarnation_next(dir, 1750000000000, &third, &e), 0);
    assert_true(first == 1760000000000 && second == 1760000005000 && third == second + 1);
    assert_int_equal(record_put("incarnation", "rubbish", 7, 0600, &e), 0);
    assert_int_equal(incarnation_next(dir, 1760000009000, &fourth, &e), 0);
    assert_true(fourth == 1760000009000);
}

/* ---- environment ---- */

static const char *value_of(char **env, const char *name)
{
    size_t n = strlen(name);
    const char *found = NULL;
    for (char **p = env; *p; p++)
        if (strncmp(*p, name, n) == 0 && (*p)[n] == '=') {
            if (found)
                fail_msg("%s is there twice", name);
            found = *p + n + 1;
        }
    return found;
}

static char **build_on(
    struct wire_desired_attempt *a, bool restored, enum gpu_maker gpu_maker, const char *gpus)
{
    static const struct job_user user = {.name = "ann", .home = "/home/ann", .shell = "/bin/zsh"};
    const struct task_env t = {.spec = a,
        .user = &user,
        .node = "n1",
        .checkpoint = "checkpoint",
        .dir = "/var/tasks/42-3",
        .gpu_maker = gpu_maker,
        .gpus = gpus,
        .restored = restored,
        .grace_ms = 117900};
    return env_build(&t);
}

static char **build(struct wire_desired_attempt *a, bool restored)
{
    return build_on(a, restored, GPU_MAKER_NONE, "");
}

static void belays_variables_override_those_of_the_job(void **state)
{
    char home[] = "HOME", own_home[] = "/scratch", id[] = "BELAY_JOB_ID", forged[] = "1",
         a1[] = "A", v1[] = "x=y";
    struct wire_env env[] = {{home, own_home}, {id, forged}, {a1, v1}};
    struct wire_desired_attempt a = {
        .job = 42, .attempt = 3, .options.name = "train", .cwd = "/w", .env = env, .n_env = 3};
    (void)state;
    char **e = build(&a, true);
    assert_string_equal(value_of(e, "HOME"), "/scratch");
    assert_string_equal(value_of(e, "BELAY_JOB_ID"), "42");
    assert_string_equal(value_of(e, "A"), "x=y");
    assert_string_equal(value_of(e, "USER"), "ann");
    assert_string_equal(value_of(e, "SHELL"), "/bin/zsh");
    assert_string_equal(value_of(e, "BELAY_ATTEMPT"), "3");
    assert_string_equal(value_of(e, "BELAY_RESTORED"), "1");
    assert_string_equal(value_of(e, "BELAY_GRACE_S"), "117");
    assert_string_equal(value_of(e, "BELAY_CHECKPOINT_DIR"), "/var/tasks/42-3/checkpoint");
    assert_string_equal(value_of(e, "BELAY_NOTICE_FILE"), "/var/tasks/42-3/control/notice");
    assert_null(value_of(e, "SLURM_JOB_ID"));
    mem_free_texts(e);
}

static void scripts_of_slurm_find_its_variables(void **state)
{
    struct wire_desired_attempt a = {.job = 42,
        .attempt = 3,
        .options.name = "train",
        .cwd = "/w",
        .cpus = 4,
        .memory_mib = 512,
        .cluster = "lab",
        .pool = "burst",
        .tasks = 2,
        .cpus_per_task = 2,
        .slurm_env = true};
    (void)state;
    char **e = build(&a, false);
    assert_string_equal(value_of(e, "SLURM_JOB_ID"), "42");
    assert_string_equal(value_of(e, "SLURM_CPUS_PER_TASK"), "2");
    assert_string_equal(value_of(e, "SLURM_CPUS_ON_NODE"), "4");
    assert_string_equal(value_of(e, "SLURM_NTASKS"), "2");
    assert_string_equal(value_of(e, "SLURM_TASKS_PER_NODE"), "2");
    assert_string_equal(value_of(e, "SLURM_RESTART_COUNT"), "2");
    assert_string_equal(value_of(e, "SLURM_SUBMIT_DIR"), "/w");
    assert_string_equal(value_of(e, "SLURM_MEM_PER_NODE"), "512");
    assert_string_equal(value_of(e, "SLURM_JOB_PARTITION"), "burst");
    assert_string_equal(value_of(e, "SLURM_CLUSTER_NAME"), "lab");
    assert_string_equal(value_of(e, "SLURM_JOB_NODELIST"), "n1");
    assert_string_equal(value_of(e, "BELAY_RESTORED"), "0");
    mem_free_texts(e);
}

static void a_job_sees_the_gpus_that_are_its_own_and_no_others(void **state)
{
    char cuda[] = "CUDA_VISIBLE_DEVICES", all[] = "0,1,2,3";
    struct wire_env env[] = {{cuda, all}};
    struct wire_desired_attempt a = {
        .job = 42, .attempt = 1, .cwd = "/w", .gpus = 2, .slurm_env = true, .env = env, .n_env = 1};
    (void)state;
    char **e = build_on(&a, false, GPU_MAKER_NVIDIA, "1,3");
    assert_string_equal(value_of(e, "BELAY_GPUS"), "1,3");
    assert_string_equal(value_of(e, "CUDA_VISIBLE_DEVICES"), "1,3");
    assert_string_equal(value_of(e, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    assert_string_equal(value_of(e, "SLURM_JOB_GPUS"), "1,3");
    assert_string_equal(value_of(e, "SLURM_STEP_GPUS"), "1,3");
    assert_string_equal(value_of(e, "SLURM_GPUS_ON_NODE"), "2");
    assert_null(value_of(e, "ROCR_VISIBLE_DEVICES"));
    mem_free_texts(e);
    e = build_on(&a, false, GPU_MAKER_NVIDIA, "GPU-1,MIG-1,MIG-2");
    /* CUDA cannot use both kinds */
    assert_string_equal(value_of(e, "CUDA_VISIBLE_DEVICES"), "GPU-1");
    assert_string_equal(value_of(e, "BELAY_GPUS"), "GPU-1,MIG-1,MIG-2");
    mem_free_texts(e);
    a.gpus = 0;
    e = build_on(&a, false, GPU_MAKER_NVIDIA, "MIG-1,MIG-2");
    assert_string_equal(value_of(e, "CUDA_VISIBLE_DEVICES"), "MIG-1,MIG-2");
    assert_string_equal(value_of(e, "SLURM_GPUS_ON_NODE"), "2");
    mem_free_texts(e);
    a.gpus = 2;
    a.n_env = 0;
    e = build_on(&a, false, GPU_MAKER_AMD, "1,3");
    assert_string_equal(value_of(e, "ROCR_VISIBLE_DEVICES"), "1,3");
    assert_null(value_of(e, "CUDA_VISIBLE_DEVICES")); /* HIP renumbers by it what ROCm leaves */
    mem_free_texts(e);
    a.gpus = 0;
    e = build_on(&a, false, GPU_MAKER_NVIDIA, "");
    assert_string_equal(value_of(e, "CUDA_VISIBLE_DEVICES"), "");
    assert_string_equal(value_of(e, "BELAY_GPUS"), "");
    assert_null(value_of(e, "SLURM_JOB_GPUS"));
    mem_free_texts(e);
    e = build_on(&a, false, GPU_MAKER_NONE, "");
    assert_null(value_of(e, "CUDA_VISIBLE_DEVICES"));
    assert_null(value_of(e, "BELAY_GPUS"));
    mem_free_texts(e);
}

static void a_script_on_the_first_of_several_nodes_has_the_task_variables_of_slurm(void **state)
{
    struct wire_peer peers[] = {{"n1", "10.0.0.1"}, {"n2", "10.0.0.2"}, {"n3", "10.0.0.3"}};
    struct wire_desired_attempt a = {.job = 42,
        .attempt = 1,
        .cwd = "/w",
        .cpus = 4,
        .cpus_per_task = 2,
        .tasks = 2,
        .all_tasks = 5,
        .peers = peers,
        .n_peers = 3,
        .script_on_first = true,
        .slurm_env = true};
    (void)state;
    char **e = build(&a, false);
    assert_string_equal(value_of(e, "SLURM_NTASKS"), "5");
    assert_non_null(value_of(e, "HOSTNAME"));
    assert_string_equal(value_of(e, "SLURM_TASKS_PER_NODE"), "2(x2),1");
    assert_string_equal(value_of(e, "SLURM_JOB_CPUS_PER_NODE"), "4(x3)");
    assert_string_equal(value_of(e, "SLURM_NNODES"), "3");
    assert_string_equal(value_of(e, "SLURM_JOB_NODELIST"), "n1,n2,n3");
    assert_string_equal(value_of(e, "MASTER_ADDR"), "10.0.0.1");
    assert_null(value_of(e, "RANK"));
    assert_null(value_of(e, "SLURM_NTASKS_PER_NODE"));
    mem_free_texts(e);
    a.all_tasks = a.tasks = 0;
    e = build(&a, false);
    assert_null(value_of(e, "SLURM_NTASKS")); /* not specified by the job */
    assert_string_equal(value_of(e, "SLURM_TASKS_PER_NODE"), "2(x3)");
    mem_free_texts(e);
    a.tasks = 1;
    e = build(&a, false);
    assert_string_equal(value_of(e, "SLURM_NTASKS"), "3");
    assert_string_equal(value_of(e, "SLURM_NTASKS_PER_NODE"), "1");
    mem_free_texts(e);
}

/* ---- states ---- */

static void every_state_can_end_and_the_end_is_final(void **state)
{
    (void)state;
    for (int s = WIRE_STARTING; s < WIRE_ENDED; s++) {
        assert_true(sm_allowed(&task_sm, s, WIRE_ENDED));
        assert_false(sm_allowed(&task_sm, WIRE_ENDED, s));
    }
    assert_false(sm_allowed(&task_sm, WIRE_ENDING, WIRE_RUNNING));
    assert_false(sm_allowed(&task_sm, WIRE_RESTORING, WIRE_SAVING));
    assert_string_equal(sm_name(&task_sm, WIRE_ENDED), "ended");
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, make_dir, leave_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        dir_test(a_state_survives_a_round_trip),
        dir_test(a_stop_for_an_unknown_reason_is_still_one),
        dir_test(an_exit_and_a_start_survive_a_round_trip),
        dir_test(a_spec_is_kept_from_others),
        dir_test(missing_and_malformed_records_are_distinguished),
        dir_test(an_incarnation_is_greater_than_the_one_before),
        cmocka_unit_test(belays_variables_override_those_of_the_job),
        cmocka_unit_test(scripts_of_slurm_find_its_variables),
        cmocka_unit_test(a_job_sees_the_gpus_that_are_its_own_and_no_others),
        cmocka_unit_test(a_script_on_the_first_of_several_nodes_has_the_task_variables_of_slurm),
        cmocka_unit_test(every_state_can_end_and_the_end_is_final),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
