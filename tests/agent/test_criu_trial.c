/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent reports only those features of CRIU that a trial has saved and restored. Scripts in the
 * test's own /usr/local replace criu, cuda-checkpoint and nvidia-smi; a library replaces CUDA's.
 * Needs root, namespaces and mounts, and is skipped otherwise.
 */
#include "agent/criu/criu_gpu.h"
#include "rights.h"
#include "agent/criu/criu_sandbox.h"
#include "agent/criu/criu_trial.h"

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
/* after the three above */
#include <cmocka.h>

#define LOCAL "/usr/local/"

/* The mode is a word of dump.mode or restore.mode, with "cpu" or "gpu" before it: which of the
 * trials it is for. */
static const char criu[] =
    "#!/bin/sh\n"
    "sandbox=/run/belay-task\n"
    "case $(tr '\\0' ' ' </proc/1000/cmdline) in *criu-subject*) kind=gpu ;; *) kind=cpu ;; esac\n"
    "[ \"$1\" = dump ] && echo $kind >$sandbox/kind\n"
    "mode=$1-$(cat $sandbox/kind)-$(cat " LOCAL "mode)\n"
    "case $mode in\n"
    "--version-*) echo 'Version: 4.1' ;;\n"
    "dump-*-fails-all | dump-gpu-fails) echo 'Error (x.c:1): cannot seize 1000' "
    ">$sandbox/dump.log; "
    "exit 1 ;;\n"
    "dump-cpu-*) tr '\\0' '\\n' </proc/1000/cmdline | tail -n 1 >$sandbox/text ;;\n"
    "dump-*) tr '\\0' '\\n' <$sandbox/text >$sandbox/text.new; mv $sandbox/text.new $sandbox/text "
    ";;\n"
    "restore-gpu-fails-later) echo 'Error (y.c:1): no such plugin' >$sandbox/restore.log; exit 1 "
    ";;\n"
    "restore-*)\n"
    "  [ $mode = restore-gpu-forgets ] && echo 0123456789abcdef0123456789abcdef >$sandbox/text\n"
    "  echo 999 >/proc/sys/kernel/ns_last_pid\n"
    "  [ $mode = restore-gpu-dies ] && { true & exit 0; }\n"
    "  (cd $sandbox; while [ ! -e go ]; do sleep 0.05; done; mv text answer) &\n"
    "esac\n"
    "exit 0\n";

/* Replaces /usr/local for this process and its children. criu gets this PATH and searches nowhere
 * else. */
static bool have_own_local(void)
{
    return access("/proc/sys/kernel/ns_last_pid", W_OK) == 0 && enter_own_mounts() &&
           mount("none", "/usr/local", "tmpfs", 0, NULL) == 0;
}

static void put(const char *path, const char *text, mode_t mode)
{
    struct err e;
    assert_int_equal(fs_write_atomic(path, text, strlen(text), mode, &e), 0);
}

static void set_mode(const char *mode)
{
    put(LOCAL "mode", mode, 0644);
}

static void set_gpus(const char *csv)
{
    char *script = mem_printf("#!/bin/sh\nprintf '%s'\n", csv);
    put(LOCAL "bin/nvidia-smi", script, 0755);
    free(script);
}

static int begin(void **state)
{
    static bool is_ours;
    struct err e;
    (void)state;
    is_ours = is_ours || have_own_local();
    if (!is_ours)
        return 0;
    fs_mkdirs(LOCAL "bin", 0755, &e);
    fs_mkdirs(LOCAL "lib/criu", 0755, &e);
    fs_mkdirs(LOCAL "agent", 0755, &e);
    fs_mkdirs(LOCAL "nvidia/lib64", 0755, &e);
    unlink(LOCAL "nvidia/lib64/libcuda.so.1");
    assert_int_equal(symlink(getenv("BELAY_STAND_IN_CUDA"), LOCAL "nvidia/lib64/libcuda.so.1"), 0);
    unlink(LOCAL "no-gpu");
    put(LOCAL "bin/criu", criu, 0755);
    put(LOCAL "bin/cuda-checkpoint", "#!/bin/sh\nexit 1\n", 0755);
    put(LOCAL "lib/criu/cuda_plugin.so", "", 0644);
    set_gpus("570.124.06, Disabled, 100\\n");
    set_mode("well");
    return 0;
}

static bool can_be_tried(void)
{
    return access(LOCAL "agent", F_OK) == 0;
}

static void check(enum wire_criu can, const char *text)
{
    struct criu c;
    if (!can_be_tried())
        skip();
    criu_probe(LOCAL "bin/criu", &c);
    criu_trial(&c);
    assert_string_equal(c.text, text);
    assert_int_equal(c.can, can);
    assert_false(fs_exists("/run/belay-task/kind")); /* no leftovers */
}

static void a_trial_that_saved_and_restored_is_announced(void **state)
{
    (void)state;
    check(WIRE_CRIU_GPU, "4.1");
}

static void a_trial_that_fails_is_not_announced_and_has_its_reason(void **state)
{
    static const char failed[] = "4.1; not for programs with GPUs: saving and restoring a program "
                                 "on trial failed with exit code 1: ";
    static const struct {
        const char *mode, *why;
    } cases[] = {{"fails", "criu dump failed with exit code 1: cannot seize 1000"},
        {"fails-later", "criu restore failed with exit code 1: no such plugin"},
        {"forgets", "the program on trial came back with other memory than it had"},
        {"dies", "the program on trial ended without making /run/belay-task/answer"}};
    (void)state;
    for (size_t i = 0; can_be_tried() && i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = mem_printf("%s%s", failed, cases[i].why);
        set_mode(cases[i].mode);
        check(WIRE_CRIU_CPU, text);
        free(text);
    }
    set_mode("fails-all");
    check(WIRE_CRIU_NO,
        "4.1; saving and restoring a program on trial failed with exit code 1: criu dump "
        "failed with exit code 1: "
        "cannot seize 1000");
}

static void a_gpu_that_no_program_can_use_is_named(void **state)
{
    (void)state;
    if (can_be_tried())
        put(LOCAL "no-gpu", "", 0644);
    check(WIRE_CRIU_CPU,
        "4.1; not for programs with GPUs: saving and restoring a program on trial failed "
        "with exit code 1: no GPU "
        "can be used: CUDA error 100");
}

static void drivers_that_lose_programs_are_not_tried(void **state)
{
    static const struct {
        const char *csv, *why;
    } cases[] = {{"565.57.01, Disabled, 0\\n", "the NVIDIA driver is older than 570"},
        {"580.65.06, [N/A], 0\\n550.90.07, [N/A], 0\\n", "the NVIDIA driver is older than 570"},
        {"580.65.06, Enabled, 0\\n", "GPUs in MIG mode cannot be checkpointed"},
        {"No devices were found\\n", "nvidia-smi lists no GPU"}};
    (void)state;
    for (size_t i = 0; can_be_tried() && i < sizeof(cases) / sizeof(*cases); i++) {
        char *text = mem_printf("4.1; not for programs with GPUs (%s)", cases[i].why);
        set_gpus(cases[i].csv);
        check(WIRE_CRIU_CPU, text);
        free(text);
    }
}

static void programs_are_looked_for_where_criu_looks(void **state)
{
    char *path = mem_printf(LOCAL "elsewhere:%s", getenv("PATH"));
    struct err e;
    (void)state;
    if (!can_be_tried())
        skip();
    fs_mkdirs(LOCAL "elsewhere", 0755, &e);
    assert_int_equal(rename(LOCAL "bin/cuda-checkpoint", LOCAL "elsewhere/cuda-checkpoint"), 0);
    setenv("PATH", path, 1);
    free(path);
    check(WIRE_CRIU_CPU, "4.1; not for programs with GPUs (cuda-checkpoint is not in " CRIU_PATH
                         ", where criu looks for it)");
}

static void device_memory_has_to_fit_into_the_task(void **state)
{
    struct err e = {0};
    (void)state;
    if (!can_be_tried())
        skip();
    put(LOCAL "memory.current", "1073741824\n", 0644);
    put(LOCAL "memory.max", "4294967296\n", 0644);
    set_gpus("570.124.06, Disabled, 2000\\n570.124.06, Disabled, 1000\\n");
    assert_int_equal(criu_gpu_check_memory("0,1", LOCAL "memory.current", &e), 0);
    set_gpus("570.124.06, Disabled, 2000\\n570.124.06, Disabled, 1100\\n");
    assert_int_equal(criu_gpu_check_memory("0,1", LOCAL "memory.current", &e), ERR_NO_SPACE);
    assert_string_equal(e.text, "the job's GPUs hold 3100 MiB, which a dump copies into its node's "
                                "memory first, and 3072 MiB "
                                "are left for it there: ask for more (--mem)");
    put(LOCAL "memory.max", "max\n", 0644);
    assert_int_equal(criu_gpu_check_memory("0,1", LOCAL "memory.current", &e), 0);
    set_gpus("570.124.06, Disabled, 900000000\\n"); /* more than any node has */
    assert_int_equal(criu_gpu_check_memory("*", "", &e), ERR_NO_SPACE);
    set_gpus("");
    /* unknown: accepted */
    assert_int_equal(criu_gpu_check_memory("0,1", LOCAL "memory.current", &e), 0);
}

/* Reads its states from one file, and writes the requests that it gets to another. */
static const char checkpointer[] =
    "#!/bin/sh\n"
    "cd " LOCAL "\n"
    "case $1 in\n"
    "--get-state) cat state; [ -s state ] ;;\n"
    "--action) echo $2 >>actions; [ -e stuck ] && exit 1\n"
    "  case $2 in restore) echo locked ;; unlock) echo running ;; esac >state ;;\n"
    "esac\n";

/* Runs while a process of a sandbox is in the state that a failed dump left it in. */
static int release_in_sandbox(const char *state_text)
{
    int status = 0;
    put(LOCAL "bin/cuda-checkpoint", checkpointer, 0755);
    put(LOCAL "state", state_text, 0644);
    unlink(LOCAL "actions");
    pid_t outside = fork();
    if (outside == 0) {
        struct err e;
        if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
            _exit(99);
        pid_t first = fork();
        if (first == 0) {
            if (mount("proc", "/proc", "proc", 0, NULL) < 0 || criu_sandbox_prepare_pid() < 0)
                _exit(98);
            pid_t task = fork();
            if (task == 0)
                for (;;)
                    pause();
            int rc = criu_gpu_release(LOCAL "bin/cuda-checkpoint", &e);
            _exit(rc == 0 ? 0 : rc == ERR_CORRUPT ? 1 : 97);
        }
        waitpid(first, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 96);
    }
    waitpid(outside, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 95;
}

static void check_actions(const char *want)
{
    struct buf text = {0};
    struct err e;
    int rc = fs_read(LOCAL "actions", 4096, &text, &e);
    assert_string_equal(rc ? "" : buf_str(&text), want);
    buf_deinit(&text);
}

static void processes_that_a_failed_dump_left_locked_are_released(void **state)
{
    (void)state;
    if (!can_be_tried())
        skip();
    assert_int_equal(release_in_sandbox(""), 0); /* no CUDA */
    check_actions("");
    assert_int_equal(release_in_sandbox("running\n"), 0);
    check_actions("");
    assert_int_equal(release_in_sandbox("locked\n"), 0);
    check_actions("unlock\n");
    assert_int_equal(release_in_sandbox("checkpointed\n"), 0);
    check_actions("restore\nunlock\n");
    assert_int_equal(release_in_sandbox("failed\n"), 1);
    put(LOCAL "stuck", "", 0644);
    assert_int_equal(release_in_sandbox("locked\n"), 1);
    check_actions("unlock\n");
    unlink(LOCAL "stuck");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_trial_that_saved_and_restored_is_announced, begin),
        cmocka_unit_test_setup(a_trial_that_fails_is_not_announced_and_has_its_reason, begin),
        cmocka_unit_test_setup(a_gpu_that_no_program_can_use_is_named, begin),
        cmocka_unit_test_setup(drivers_that_lose_programs_are_not_tried, begin),
        cmocka_unit_test_setup(programs_are_looked_for_where_criu_looks, begin),
        cmocka_unit_test_setup(device_memory_has_to_fit_into_the_task, begin),
        cmocka_unit_test_setup(processes_that_a_failed_dump_left_locked_are_released, begin),
    };
    if (argc > 1 && str_eq(argv[1], "criu-trial")) /* as belay-agent runs itself */
        return criu_trial_main(argc, argv);
    if (argc > 1 && str_eq(argv[1], "criu-subject"))
        return criu_subject_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
