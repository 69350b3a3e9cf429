/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts and reuses supervisors; each task has its own. Executing the agent's program again for one
 * costs some 7 ms of CPU time, most of it to load forty libraries. Forking a small process that has
 * loaded what a supervisor needs costs half a millisecond. A supervisor whose task has ended
 * cleanly costs nothing: it takes the next task.
 *
 * That small process is belay-supervisor, installed next to belay-agent. Its descriptor 3 is a
 * socket (SOCK_SEQPACKET) on which each message is "DIR\0NODE\0" with a descriptor, the
 * supervisor's end of its own socket with the agent (supervisor.h). It forks once for each, with
 * the agent's standard error, and ends when the agent's end of the socket is closed. The
 * supervisors, in their own sessions, continue with their tasks.
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

/* Starts no process yet. limits apply to all tasks of its supervisors. */
struct supervisor_pool *supervisor_pool_create(
    uv_loop_t *loop, struct timers *timers, const struct limits *limits);

/* Asks for a supervisor of the task in dir; does not block. *ret_pipe is on the heap and belongs to
 * the caller; reading has not started. It carries the supervisor's messages (supervisor.h); its end
 * without a message means that the supervisor died. Starts belay-supervisor if it is not running.
 * ERR_IO: it cannot be started or just died; retry. */
int supervisor_pool_request(struct supervisor_pool *n, const char *dir, const char *node,
    uv_pipe_t **ret_pipe, struct err *e);

/* Call when the supervisor behind the pipe has sent "free": keeps it for the next task, or lets it
 * end when there are enough. Takes the pipe. */
void supervisor_pool_return(struct supervisor_pool *n, uv_pipe_t *pipe);

/* Ends belay-supervisor. Supervisors with a task continue, the others end. Run the loop until
 * supervisor_pool_is_idle, and then once more. */
void supervisor_pool_stop(struct supervisor_pool *n);
bool supervisor_pool_is_idle(const struct supervisor_pool *n);

void supervisor_pool_destroy(struct supervisor_pool *n); /* NULL is allowed */

#endif
