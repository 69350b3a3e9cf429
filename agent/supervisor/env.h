/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a task, from scratch: the user's basics, then what the job brings, then what
 * belay promises (docs: the job contract), each overriding what came before. Pure.
 */
#ifndef BELAY_AGENT_SUPERVISOR_ENV_H
#define BELAY_AGENT_SUPERVISOR_ENV_H

#include "agent/supervisor/user.h"
#include "agent/task/record.h"
#include "base/wire/wire.h"

/* belayd's address and the attempt's token: in the task's directory, or in a container's control
 * directory */
#define TASK_JOB "job.json"
/* in the control directory: the same, and the nodes */
#define TASK_STEPS "steps.json"
#define TASK_STDIN "stdin" /* name in the task's directory: a pipe to which belay attach writes */
/* in the same directory: a pipe; a byte written to it ends the input. Exists until then */
#define TASK_STDIN_END TASK_STDIN ".end"

struct task_env {
    const struct wire_desired_attempt *spec;
    const struct job_user *user;
    const char *node;                   /* its name */
    const char *cwd;                    /* its working directory, if it was sent with the job */
    const char *dir;                    /* the task's, absolute, as the task sees it */
    const char *checkpoint;             /* name of BELAY_CHECKPOINT_DIR in dir */
    bool own_tmp;                       /* BELAY_CHECKPOINT_DIR is also TMPDIR */
    const char *bin, *python;           /* struct tools */
    enum gpu_maker gpu_maker;           /* from struct task_state, as is gpus */
    const char *gpus;                   /* borrowed */
    const struct wire_secrets *secrets; /* of_job; may be NULL */
    const char *secrets_dir;            /* where the files of these are; NULL = none */
    bool restored;
    int64_t restored_ranks; /* how many ranks' restored saves are in dir/ranks; 0 = none */
    int64_t grace_ms;       /* time for the program to write its state after a notice */
};

/* "NAME=value" texts, NULL-terminated, each name once. Free with mem_free_texts. */
char **env_build(const struct task_env *t);

#endif
