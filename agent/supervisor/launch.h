/* SPDX-License-Identifier: Apache-2.0
 *
 * From the supervisor to the program, one process or two:
 *
 *     supervisor --fork--> script
 *         in a cgroup, which lists all processes that the script starts
 *     supervisor --fork--> init --fork--> script
 *         without a cgroup, and when something surrounds the script (rooms, containers)
 *
 * Without an init the supervisor is the one that waits for the script, and for what that leaves
 * (supervise_loop.h). It knows the group before the script is forked, so there is nothing to write
 * down in between.
 *
 * The init is a subreaper of all that the script starts, holds no files and ignores signals, so
 * that after a supervisor's sudden death the whole tree can still be found below it where there are
 * no cgroups. It waits at a gate until the supervisor has written down who it is, tells the
 * script's end, and ends with the last process below it. With a room there is a process more
 * between the two, the first of the script's namespace, which tells the end then.
 */
#ifndef BELAY_AGENT_SUPERVISOR_LAUNCH_H
#define BELAY_AGENT_SUPERVISOR_LAUNCH_H

#include "agent/supervisor/user.h"
#include "base/uv/proc.h"

struct launch {
    const struct proc_group *group;
    const struct job_user *user;
    const char *script; /* absolute path */
    char *const *argv;  /* argv[0] the script */
    char *const *env;
    const char *cwd;
    int output;        /* becomes stdout, and stderr unless error is another */
    int error;         /* becomes stderr; the same as output, or without a room another */
    const char *input; /* becomes stdin, opened by the user in cwd; NULL: /dev/null */
    /* the task's directory: the script gets a room of its own (criu_room.h), in which script and
     * output.log are looked for; NULL if none */
    const char *room;
    bool alone; /* without an init; never with a room or holds */
    /* no script: a process that waits to be killed, so that others may be started beside it */
    bool holds;
    /* with a room: the criu that brings the script back, instead of a start; NULL */
    const char *restore;
};

enum launch_step {
    /* not the last word: from now on a signal reaches the script; before, none does */
    LAUNCH_READY,
    LAUNCH_ENDED,
    LAUNCH_GROUP,
    LAUNCH_ROOM,
    LAUNCH_RESTORE, /* restore.log says why */
    LAUNCH_FORK,
    LAUNCH_USER,
    LAUNCH_CWD,
    LAUNCH_FILES,
    LAUNCH_INPUT,
    LAUNCH_EXEC,
    LAUNCH_SILENT
};

/* What comes out of the report pipe, whole: LAUNCH_READY, then one of the others; its end without
 * that (LAUNCH_SILENT): the init was killed. Of a script alone: why it could not start, or
 * nothing. */
struct launch_report {
    enum launch_step step;
    /* LAUNCH_READY: the script's process, by its number in the room if it has one; LAUNCH_ENDED:
     * wait status; else errno of what failed */
    int value;
};

struct launched {
    pid_t init;   /* 0 = none */
    pid_t script; /* without an init */
    int report;   /* read end, non-blocking */
    /* write a byte to let the script start; closed without one it never does. -1: it does at once,
     * there is no init */
    int gate;
};

/* For a child between fork and exec: every signal as it is by default and none blocked; and the
 * user's identity (-1, errno). */
void launch_reset_signals(void);
int launch_become_user(const struct job_user *u);

/* For a child that stays without an exec: nothing else of its parent's is held open by it. */
void launch_close_all_but(int a, int b, int c, int d);
/* From the descriptor `from` on, but for n of them, which are sorted. */
void launch_close_from(int from, int *keep, size_t n);

/* The caller must have a single thread. */
int launch_start(const struct launch *l, struct launched *ret_launched, struct err *e);

#endif
