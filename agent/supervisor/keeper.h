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
#ifndef BELAY_AGENT_SUPERVISOR_KEEPER_H
#define BELAY_AGENT_SUPERVISOR_KEEPER_H

#include "agent/supervisor/nursery.h"
#include "base/timers.h"
#include <uv.h>

struct keeper {
    /* to be filled by the caller; borrowed */
    uv_loop_t *loop;
    struct timers *timers;
    struct nursery *nursery;
    const char *dir;       /* the task's */
    const char *node;      /* this node's name */
    bool is_new;           /* it never had a supervisor */
    void (*up)(void *ctx); /* commands reach the supervisor; the program was or is being started */
    void (*signalled)(void *ctx, int count); /* the answer to keeper_signal */
    void (*ready)(void *ctx);                /* the answer to keeper_await_ready */
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
void keeper_start(struct keeper *k);

/* Commands; lost if the supervisor is not up (its end is told then). */
void keeper_signal(struct keeper *k, int signum);
void keeper_terminate(struct keeper *k, int64_t delay_ms, int64_t grace_ms);
void keeper_limit(struct keeper *k, int64_t ms); /* its time limit, from its start on; 0: none */
void keeper_kill(struct keeper *k);
void keeper_await_ready(struct keeper *k);
/* One end of a pair of sockets (shells.h), which stays the caller's. 0 or -errno. */
int keeper_shell(struct keeper *k, int fd);

/* Lets go of the supervisor, which goes on. No callback runs after it. */
void keeper_stop(struct keeper *k);

#endif
