/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts the program below the supervisor, with one process or two:
 *
 *     supervisor --fork--> script
 *         in a cgroup, which lists all processes that the script starts
 *     supervisor --fork--> init --fork--> script
 *         without a cgroup, and in sandboxes and containers
 *
 * Without an init the supervisor itself waits for the script and for the processes that it leaves
 * (supervise_loop.h). It knows the cgroup before the script is forked, so nothing needs to be
 * recorded in between.
 *
 * The init is a subreaper of all that the script starts, has no files open and ignores signals, so
 * that after a supervisor's sudden death the whole tree can still be found below it where there are
 * no cgroups. It waits at a gate until the supervisor has recorded its pid, reports the script's
 * end, and ends with the last process below it. With a sandbox there is one more process between
 * the two, the first of the script's pid namespace, which then reports the end.
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
    int output;            /* becomes stdout, and stderr unless `error` differs */
    int error;             /* becomes stderr */
    const char *input;     /* becomes stdin, opened by the user in cwd; NULL for /dev/null */
    int64_t input_wait_ms; /* how long it may take to open (open_in_time.h) */
    /* the task's directory, to run the script in its own sandbox (criu_sandbox.h); NULL if none.
     * The output is then a pipe, and error the same one */
    const char *sandbox;
    bool alone; /* start without an init; never with a sandbox or has_no_script */
    /* no script: starts a process that waits to be killed, so that steps can be started in the
     * task */
    bool has_no_script;
    /* with a sandbox: the criu program that restores the script instead of a start; may be NULL */
    const char *restore;
};

enum launch_step {
    /* not final: from now on a signal reaches the script; before, none does */
    LAUNCH_READY,
    LAUNCH_ENDED,
    LAUNCH_GROUP,
    LAUNCH_SANDBOX,
    LAUNCH_RESTORE, /* restore.log says why */
    LAUNCH_FORK,
    LAUNCH_USER,
    LAUNCH_CWD,
    LAUNCH_FILES,
    LAUNCH_INPUT,
    LAUNCH_EXEC,
    LAUNCH_CLOSED, /* the user may execute no file of the task's directory: the node is at fault */
    LAUNCH_SILENT
};

/* What the report pipe carries: LAUNCH_READY, then one of the others. If the pipe ends without one
 * (LAUNCH_SILENT), the init was killed. For a script without an init: why it could not start, or
 * nothing. */
struct launch_report {
    enum launch_step step;
    /* LAUNCH_READY: the script's pid, in the sandbox's pid namespace if there is one; LAUNCH_ENDED:
     * wait status; otherwise errno of the failure */
    int value;
};

struct launched {
    pid_t init;   /* 0 = none */
    pid_t script; /* set only without an init */
    int report;   /* read end, non-blocking */
    /* write a byte to let the script start; closed without one, it never does. -1 = it starts at
     * once, there is no init */
    int gate;
};

/* For a child between fork and exec: resets all signals to their defaults and unblocks them; and
 * takes the user's identity (user_become), with the usual score for the out-of-memory killer. */
void launch_reset_signals(void);
int launch_become_user(const struct job_user *u);

/* For a child that does not exec: closes all descriptors of its parent except these. */
void launch_close_all_but(int a, int b, int c, int d);
/* Closes all descriptors from `from` on, except the n in keep, which it sorts. */
void launch_close_from(int from, int *keep, size_t n);

/* The caller must be single-threaded. */
int launch_start(const struct launch *l, struct launched *ret_launched, struct err *e);

#endif
