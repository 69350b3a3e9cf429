/* SPDX-License-Identifier: Apache-2.0
 *
 * struct supervisor, for supervisor.c (a task from its records to exit.json) and supervisor_files.c
 * (what its program reads and writes).
 *
 * One a task, on the stack of the process that is its supervisor. It owns what it points to, but
 * for the room, dir and node.
 */
#ifndef BELAY_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H
#define BELAY_AGENT_SUPERVISOR_SUPERVISOR_PRIVATE_H

#include "agent/supervisor/image.h"
#include "agent/supervisor/launch.h"
#include "agent/supervisor/namespaces.h"
#include "agent/supervisor/supervise_loop.h"
#include "agent/supervisor/supervisor.h"
#include "agent/supervisor/user.h"
#include "agent/task/output_writer.h"
#include "agent/task/record.h"

struct supervisor {
    const struct supervisor_room *room;
    const char *dir, *node;
    int agent_fd; /* the socket with the agent; -1: that has let go of it */
    struct wire_desired spec;
    const struct wire_desired_attempt *task;
    struct task_state state;
    struct job_user user;
    struct proc_group *group;
    struct launched launched;
    struct namespaces *namespaces; /* of this process, kept from task to task */
    struct supervise_loop loop;
    struct task_exit exit;
    int64_t started_at; /* wall ms; 0: it has not */
    int64_t children_before_ms, children_before_user_ms;
    /* the end: no process that was below this one is left; the init, if there is one, ended by
     * itself */
    bool is_whole;
    int pid_file;
    struct output_writer writer;
    char *output, *error, *input; /* files of the user's; NULL if none */
    char *workdir;                /* what was sent with the job; NULL: nothing */
    char **env;                   /* the program's */
    char name[PROC_NAME_MAX + 1]; /* of its group, and its container */
    struct image_run image;       /* how its container is made; image NULL: it has none */
};

/* supervisor.c */
const char *supervisor_work_dir(const struct supervisor *s); /* the program's; borrowed */
bool supervisor_holds(
    const struct supervisor *s); /* it has no script: it holds the place for steps */

/* supervisor_files.c: the program's output and error, and in s the names of its files and who
 * writes them. The descriptors stay open: this process ends with its task. */
int supervisor_open_files(struct supervisor *s, int *ret_out, int *ret_error, struct err *e);

#endif
