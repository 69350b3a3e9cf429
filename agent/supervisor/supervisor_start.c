/* SPDX-License-Identifier: Apache-2.0
 *
 * The start of a task's program: its cgroup, environment, command, and the namespaces around it.
 */
#include "agent/supervisor/supervisor_private.h"

#include "agent/criu/criu.h"
#include "agent/gpu/gpu_devices.h"
#include "agent/supervisor/env.h"
#include "agent/supervisor/limits.h"
#include "base/fs_user.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "ckpt/ckpt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* longest notice of a provider, and the time of a stop without a notice */
#define NOTICE_WINDOW_MS 120000

/* Jobs of several clusters (or of several agents in a test) may run on one machine: a hash of the
 * directory distinguishes them. */
static void group_name(const struct supervisor *s, char *out, size_t size)
{
    snprintf(out, size, "belay-%lld-%lld-%016llx", (long long)s->task->job,
        (long long)s->task->attempt, (unsigned long long)hash_text(s->dir));
}

int supervisor_open_group(struct supervisor *s, struct err *e)
{
    struct proc_device denied[PROC_DEVICES_MAX];
    struct proc_limits limits = {.memory_bytes = supervisor_memory_limit_mib(s) << 20,
        .cpus_milli = s->task->cpus * 1000,
        .pids_max = s->common->limits.pids,
        .denied = denied};
    if (s->state.gpu_maker != GPU_MAKER_NONE) /* the node has GPUs */
        limits.n_denied = gpu_devices_denied("", s->state.gpus, denied, PROC_DEVICES_MAX);
    group_name(s, s->name, sizeof(s->name));
    int rc = proc_group_open_in(s->common->home, s->name, &limits, &s->group, e);
    if (!rc)
        limits_warn(s->common->warned, s->group);
    return rc;
}

static char **build_argv(const struct supervisor *s, char *script)
{
    char **argv = mem_array(s->task->n_args + 2, sizeof(*argv));
    argv[0] = script;
    for (size_t i = 0; i < s->task->n_args; i++)
        argv[i + 1] = s->task->args[i];
    return argv;
}

/* Time for the program to write its state: the notice, minus what the rest of a save takes. */
static int64_t grace_ms(const struct supervisor *s)
{
    int64_t grace = NOTICE_WINDOW_MS - s->task->save_ms;
    return grace < 1000 ? 1000 : grace;
}

/* How many ranks' saves are in ranks/: those of a checkpoint made by another number of ranks
 * (struct ckpt_restore_with). 0 = none. */
static int64_t restored_ranks(void)
{
    int64_t n = 0;
    for (bool there = true; there && n < CKPT_GANG_MAX; n += there) {
        char *dir = mem_printf("ranks/rank-%04lld", (long long)n);
        there = fs_has_name(dir);
        free(dir);
    }
    return n;
}

/* Wraps the command to run in its container. The runtime is looked up now, because it may have been
 * installed since the agent's start. */
static int wrap(struct supervisor *s, char **argv, char ***ret_argv, struct err *e)
{
    struct image_runtimes runtimes;
    image_runtimes_find(&runtimes);
    s->image = (struct image_run){.image = s->task->image,
        .name = s->name,
        .dir = s->dir,
        .cwd = supervisor_work_dir(s),
        .bin = s->common->tools.bin,
        .python = s->common->tools.python,
        .secrets = s->secrets_dir,
        .env = s->env,
        .is_root = s->user.uid == 0,
        .gpus = s->state.gpu_maker == GPU_MAKER_NVIDIA && *s->state.gpus ? s->state.gpus : NULL};
    struct image_run r = s->image;
    r.runtimes = &runtimes;
    r.argv = argv;
    int rc = image_command(&r, ret_argv, e);
    image_runtimes_deinit(&runtimes);
    return rc;
}

/* Whether the cgroup suffices to contain the task, without an init. Not with an output writer: the
 * script must be the supervisor's only child. */
static bool runs_alone(const struct supervisor *s)
{
    return proc_group_mode(s->group) != PROC_SUBREAPER && s->task->method != WIRE_METHOD_CRIU &&
           !supervisor_has_no_script(s) && !s->task->image && s->writer.pid == 0;
}

static int fork_program(struct supervisor *s, int output, int error, struct err *e)
{
    bool in_sandbox = s->task->method == WIRE_METHOD_CRIU,
         is_restored = s->state.reported.restored_attempt > 0;
    const char *seen = in_sandbox ? CRIU_SANDBOX : s->dir; /* path as the task sees it */
    char *script = mem_printf("%s/script", seen);
    char **argv = build_argv(s, script);
    const struct task_env t = {.spec = s->task,
        .user = &s->user,
        .node = s->node,
        .cwd = supervisor_work_dir(s),
        .dir = seen,
        .checkpoint = in_sandbox ? "scratch" : "checkpoint",
        .own_tmp = in_sandbox,
        .gpu_maker = s->state.gpu_maker,
        .gpus = s->state.gpus,
        .bin = s->common->tools.bin,
        .python = s->common->tools.python,
        .secrets = &s->secrets,
        .secrets_dir = s->secrets_dir,
        .restored = is_restored,
        .restored_ranks = restored_ranks(),
        .grace_ms = grace_ms(s)};
    char **env = env_build(&t);
    s->env = env; /* kept for users' commands, until this process ends with its task */
    char **wrapped = NULL;
    int rc = s->task->image ? wrap(s, argv, &wrapped, e) : 0;
    const struct launch l = {.group = s->group,
        .user = &s->user,
        .script = wrapped ? wrapped[0] : script,
        .argv = wrapped ? wrapped : argv,
        .env = env,
        .cwd = supervisor_work_dir(s),
        .output = output,
        .error = error,
        .input = s->input,
        .input_wait_ms = FILE_WAIT_MS,
        .alone = runs_alone(s),
        .has_no_script = supervisor_has_no_script(s),
        .sandbox = in_sandbox ? s->dir : NULL,
        .restore = in_sandbox && is_restored ? s->state.criu : NULL};
    if (!rc)
        rc = launch_start(&l, &s->launched, e);
    mem_free_texts(wrapped);
    free(argv);
    free(script);
    return rc;
}

static int note_start(struct supervisor *s, struct err *e)
{
    struct task_start start = {.started_at = s->started_at, .init_pid = s->launched.init};
    if (s->launched.init > 0)
        start.init_ticks = (int64_t)proc_start_ticks(s->launched.init);
    proc_group_usage_files(s->group, &start.usage);
    return record_add_start(s->pid_file, &start, e);
}

static bool is_in_shm(const char *path)
{
    return path && str_starts(path, "/dev/shm/");
}

/* Everything that is started for the task from here on is inside the namespaces. Not with CRIU,
 * whose images expect those of the node. */
static void separate(struct supervisor *s)
{
    const struct limits *l = &s->common->limits;
    /* a private /dev/shm would cover the task's own directories there */
    const struct namespaces_want want = {
        .ipc = l->private_ipc && !is_in_shm(s->dir) && !is_in_shm(s->secrets_dir),
        .hides_processes = l->hides_processes,
        .shm_mib = supervisor_memory_limit_mib(s)};
    struct err e;
    if (geteuid() != 0 || s->task->method == WIRE_METHOD_CRIU ||
        (!want.ipc && !want.hides_processes)) {
        namespaces_leave(s->namespaces);
        return;
    }
    if (namespaces_enter(s->namespaces, &want, &e))
        log_warn("a task is not isolated from the node's shared memory and processes",
            log_i("job", s->task->job), log_err(&e));
    if (chdir(s->dir) < 0) /* leaving the namespaces of the task before leads to / */
        log_error("a task's directory cannot be entered", log_s("dir", s->dir));
}

/* Closes our copies of the program's ends, so that its output ends with the program. */
static void close_ends(int output, int error)
{
    close(output);
    if (error != output)
        close(error);
}

static int start_with(struct supervisor *s, int output, int error, struct err *e)
{
    int rc;
    s->started_at = clock_wall(&clock_system).ms;
    if (runs_alone(s)) {
        rc = note_start(s, e);
        return rc ? rc : fork_program(s, output, error, e);
    }
    rc = fork_program(s, output, error, e);
    if (rc)
        return rc;
    rc = note_start(s, e);
    if (!rc && write(s->launched.gate, "g", 1) != 1)
        rc = err_errno(e, errno, "opening the gate for the program");
    close(s->launched.gate);
    return rc;
}

int supervisor_start_program(struct supervisor *s, struct err *e)
{
    int output, error;
    separate(s);
    int rc = supervisor_open_files(s, &output, &error, e);
    if (s->writer.pid > 0) /* after the program's end it copies the last output */
        proc_group_spare(s->group, s->writer.pid);
    if (rc)
        return rc;
    rc = start_with(s, output, error, e);
    close_ends(output, error);
    return rc;
}
