/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's connection to a task's supervisor: starts one, or finds the one that an earlier agent
 * started, sends it commands, and reports the task's end. All cases (a new task, a restarted agent,
 * a killed supervisor) take the same path, because a supervisor finds out by itself what there is
 * to do:
 *
 *      +--> exit.json there? --yes--> ended
 *      |        | no
 *      |    ctl.sock answers? --yes--> up ... connection ends --+
 *      |        | no (a new task: not tried)                    |
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
    const char *dir;       /* the task's directory */
    const char *node;      /* the node's name */
    bool is_new;           /* the task never had a supervisor */
    void (*up)(void *ctx); /* commands reach the supervisor; the program was or is being started */
    void (*signalled)(void *ctx, int count); /* the answer to supervisor_client_signal */
    void (*ready)(void *ctx);                /* the answer to supervisor_client_await_ready */
    /* once. e is NULL if exit.json is written; otherwise no supervisor can be started.
     * ERR_NO_SPACE: the node's disk is full, and the program was not started */
    void (*ended)(void *ctx, const struct err *e);
    void *ctx;
    /* private */
    struct timer timer;
    uv_pipe_t *ctl; /* to the supervisor: the first socket, or ctl.sock */
    bool is_own;
    int dirfd; /* of dir, opened on first use */
    int tries, waits;
    bool started, is_up, has_no_space;
    bool is_old;       /* an older supervisor that lacks a command */
    char message[256]; /* message of a supervisor that did not take the task */
    char line[256];
    size_t n_line;
};

/* Callbacks run later, never inside. */
void supervisor_client_start(struct supervisor_client *k);

/* Commands; lost if the supervisor is not up (its end is reported then). */
void supervisor_client_signal(struct supervisor_client *k, int signum);
void supervisor_client_terminate(struct supervisor_client *k, int64_t delay_ms, int64_t grace_ms);
/* The program's time limit, from its start on; 0 = none. */
void supervisor_client_limit(struct supervisor_client *k, int64_t ms);
/* Reports how many bytes of the output are on belayd's disk. */
void supervisor_client_shipped(struct supervisor_client *k, int64_t bytes);
void supervisor_client_kill(struct supervisor_client *k);
void supervisor_client_await_ready(struct supervisor_client *k);
/* Sends fd, one end of a socket pair (shells.h); the caller keeps its own. Returns 0 or -errno. */
int supervisor_client_shell(struct supervisor_client *k, int fd);

/* Detaches from the supervisor, which continues. No callback runs afterwards. */
void supervisor_client_stop(struct supervisor_client *k);

#endif
