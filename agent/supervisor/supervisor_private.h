/* SPDX-License-Identifier: Apache-2.0
 *
 * struct supervisor, shared by supervisor.c (a task from its records to exit.json) and the files of
 * its parts: supervisor_files.c (the program's input and output), supervisor_start.c and
 * supervisor_end.c.
 *
 * One per task, on the stack of its supervisor process. It owns what it points to, except common,
 * dir and node.
 */
#ifndef BELAY_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define BELAY_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "agent/supervisor/image.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/mask.h"
#include "agent/supervisor/output_pump.h"
#include "agent/supervisor/namespaces.h"
#include "agent/supervisor/supervise_loop.h"
#include "agent/supervisor/supervisor.h"
#include "agent/supervisor/user.h"
#include "agent/task/output_writer.h"
#include "agent/task/record.h"

#define FILE_WAIT_MS 30000 /* limit for opening the files of --output, --error and --input */

struct supervisor {
    const struct supervisor_common *common;
    const char *dir, *node;
    uint64_t own_ticks; /* start time of this process, as proc_start_ticks returns it */
    int agent_fd;       /* the socket with the agent; -1 = the agent has closed it */
    struct wire_desired spec;
    const struct wire_desired_attempt *task;
    struct task_state state;
    struct job_user user;
    struct proc_group *group;
    struct launched launched;
    struct namespaces *namespaces; /* of this process, kept from task to task */
    struct supervise_loop loop;
    struct task_exit exit;
    int64_t started_at; /* wall ms; 0 = not started */
    bool has_run;       /* something of the task, here or under an earlier supervisor */
    int64_t children_before_ms, children_before_user_ms;
    /* clean end: no descendant of this process is left, and the init, if any, ended by itself */
    bool has_left_nothing;
    int pid_file;
    struct output_writer writer;
    struct output_pump pump;
    char *output, *error, *input; /* the user's files; NULL if none */
    char *workdir;                /* the directory sent with the job; NULL if none */
    char **env;                   /* the program's environment */
    struct wire_secrets secrets;  /* of_job only, until the program has started */
    char *secrets_dir;            /* of their files; NULL = none */
    struct mask *mask;            /* hides them in the output; NULL = none */
    char name[PROC_NAME_MAX + 1]; /* name of its cgroup and its container */
    struct image_run image;       /* its container; image.image is NULL if it has none */
};

/* ---- supervisor.c ---- */

/* The program's working directory; borrowed. */
const char *supervisor_work_dir(const struct supervisor *s);
/* Whether the task has no script and only keeps the allocation for steps. */
bool supervisor_has_no_script(const struct supervisor *s);
int64_t supervisor_memory_limit_mib(const struct supervisor *s); /* 0 = none */

/* ---- supervisor_files.c ---- */

/* Opens the program's output and error, and sets the names of its files, the output writer and the
 * pump in s. The caller closes the two descriptors, which may be the same, when the program has
 * been started. */
int supervisor_open_files(struct supervisor *s, int *ret_out, int *ret_error, struct err *e);

/* ---- supervisor_start.c ---- */

/* Opens the cgroup of the task, with its limits. */
int supervisor_open_group(struct supervisor *s, struct err *e);
/* Starts the program in that cgroup. */
int supervisor_start_program(struct supervisor *s, struct err *e);

/* ---- supervisor_end.c ---- */

/* Reads the usage of all reaped descendants, including those of earlier tasks. Used if no cgroup
 * counts it. */
void supervisor_read_children(int64_t *ret_cpu_ms, int64_t *ret_user_ms);
/* Notes the end of the program, as its launch reports it, in s->exit. */
void supervisor_note_report(struct supervisor *s, const struct launch_report *r);
/* Waits shortly for the processes that the script left, and sets s->has_left_nothing. */
void supervisor_await_rest(struct supervisor *s);
/* Kills these processes. A process that cannot be killed (state D) does not delay the job's end,
 * but is reported. */
void supervisor_kill_rest(struct supervisor *s, int64_t wait_ms);
void supervisor_forget_container(struct supervisor *s);
/* Notes in s->exit what the task has used. */
void supervisor_note_usage(struct supervisor *s);
/* Writes exit.json. Waits while the disk is full, so that the end of a program is not lost. */
int supervisor_write_exit_when_space(struct supervisor *s, struct err *e);

#endif
