/* SPDX-License-Identifier: Apache-2.0
 *
 * Where supervisors come from. Each task has one to itself. To execute the agent's program anew for
 * it costs some 7 ms of processor time, most of it to load forty libraries; to fork a small process
 * that has loaded what a supervisor needs half a millisecond; one whose task has ended, and has
 * left nothing, costs nothing: it takes the next.
 *
 * That small process is belay-supervisor, which stands beside belay-agent. Its descriptor 3 is a
 * socket (SOCK_SEQPACKET) on which each message is "DIR\0NODE\0" with a descriptor, the
 * supervisor's end of its own socket with the agent (supervisor.h). It forks once for each, with
 * the agent's standard error, and ends when the agent's end of the socket is closed; the
 * supervisors, in sessions of their own, go on with what they have.
 */
#ifndef BELAY_AGENT_SUPERVISOR_SUPERVISOR_POOL_H
#define BELAY_AGENT_SUPERVISOR_SUPERVISOR_POOL_H

#include "agent/supervisor/limits.h"
#include "base/err.h"
#include "base/timers.h"
#include <stdbool.h>
#include <uv.h>

#define SUPERVISOR_POOL_FD 3
#define SUPERVISOR_POOL_MESSAGE_MAX 8192 /* bytes */

struct supervisor_pool;

/* Starts nothing yet. limits: of all tasks of its supervisors. */
struct supervisor_pool *supervisor_pool_create(
    uv_loop_t *loop, struct timers *timers, const struct limits *limits);

/* Asks for a supervisor of the task in dir; does not block. *ret_pipe is on the heap, the caller's,
 * not read yet: what the supervisor says comes there (supervisor.h), and its end without a word is
 * its death. Starts the process when there is none. ERR_IO: there is no process, or it died just
 * now: to be tried again. */
int supervisor_pool_ask(struct supervisor_pool *n, const char *dir, const char *node,
    uv_pipe_t **ret_pipe, struct err *e);

/* The supervisor behind it has said "free": it is kept for the next task, or let go when there are
 * enough. Takes the pipe. */
void supervisor_pool_keep(struct supervisor_pool *n, uv_pipe_t *pipe);

/* Ends the process; supervisors go on, those without a task end. The loop has to be turned until
 * supervisor_pool_is_idle, and then once more. */
void supervisor_pool_stop(struct supervisor_pool *n);
bool supervisor_pool_is_idle(const struct supervisor_pool *n);

void supervisor_pool_destroy(struct supervisor_pool *n); /* NULL is allowed */

#endif
