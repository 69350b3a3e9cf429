/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's hold on a task's supervisor: starts it, or finds the one that an earlier agent
 * started, gives it commands, and says when the task has ended. One way for all cases (a new task,
 * an agent that came back, a supervisor that was killed), because a supervisor looks itself what
 * there is to do:
 *
 *      +--> exit.json there? --yes--> ended
 *      |        | no
 *      |    ctl.sock answers? --yes--> up ... connection ends --+
 *      |        | no (of a new task: not looked at)             |
 *      |    ask for a supervisor --"ok"--> up ... "free", end --+
 *      +--------+<----------------------------------------------+
 */
#ifndef BELAY_AGENT_SUPERVISOR_SUPERVISOR_CLIENT_H
#define BELAY_AGENT_SUPERVISOR_SUPERVISOR_CLIENT_H

#include "agent/supervisor/supervisor_pool.h"
#include "base/timers.h"
#include <uv.h>

struct supervisor_client {
    /* set by the caller; borrowed */
    uv_loop_t *loop;
    struct timers *timers;
    struct supervisor_pool *supervisors;
    const char *dir;       /* the task's */
    const char *node;      /* this node's name */
    bool is_new;           /* it never had a supervisor */
    void (*up)(void *ctx); /* commands reach the supervisor; the program was or is being started */
    void (*signalled)(void *ctx, int count); /* the answer to supervisor_client_signal */
    void (*ready)(void *ctx);                /* the answer to supervisor_client_await_ready */
    /* once. NULL: exit.json is there; else no supervisor can be had */
    void (*ended)(void *ctx, const struct err *e);
    void *ctx;
    /* private */
    struct timer timer;
    uv_pipe_t *ctl; /* to the supervisor: its own socket, or ctl.sock */
    bool is_own;
    int dirfd; /* of dir, once it is needed */
    int tries, waits;
    bool started, is_up;
    char said[256]; /* by a supervisor that did not take the task */
    char line[256];
    size_t n_line;
};

/* Completions run later, never inside. */
void supervisor_client_start(struct supervisor_client *k);

/* Commands; lost if the supervisor is not up (its end is told then). */
void supervisor_client_signal(struct supervisor_client *k, int signum);
void supervisor_client_terminate(struct supervisor_client *k, int64_t delay_ms, int64_t grace_ms);
/* The program's time limit, from its start on; 0 = none. */
void supervisor_client_limit(struct supervisor_client *k, int64_t ms);
void supervisor_client_kill(struct supervisor_client *k);
void supervisor_client_await_ready(struct supervisor_client *k);
/* One end of a socket pair (shells.h), which stays the caller's. 0 or -errno. */
int supervisor_client_shell(struct supervisor_client *k, int fd);

/* Lets go of the supervisor, which goes on. No callback runs after it. */
void supervisor_client_stop(struct supervisor_client *k);

#endif
