/* SPDX-License-Identifier: Apache-2.0
 *
 * Where supervisors are forked. Each task has one, so it is started with every job: to execute the agent's program anew
 * costs some 7 ms of processor time, most of it to load forty libraries; to fork a small process that has loaded what a
 * supervisor needs costs a twentieth.
 *
 * That process is belay-supervisor, which stands beside belay-agent. Its descriptor 3 is a socket (SOCK_SEQPACKET) on which
 * each message is "DIR\0NODE\0" with a descriptor, the hand-shake pipe (supervisor.h). It forks once for each, with the
 * agent's standard error, and ends when the agent's end of the socket is closed; the supervisors, in sessions of their own, go on.
 */
#ifndef BELAY_AGENT_NURSERY_H
#define BELAY_AGENT_NURSERY_H

#include "base/err.h"
#include <stdbool.h>
#include <uv.h>

#define NURSERY_FD 3
#define NURSERY_MESSAGE_MAX 8192 /* bytes */

struct nursery;

/* Starts nothing yet. */
struct nursery *nursery_create(uv_loop_t *loop);

/* Asks for a supervisor; the descriptor stays the caller's. Starts the process when there is none; does not block. Whether
 * the supervisor came to be is told on the hand-shake pipe. ERR_IO: there is no process, or it died just now: to be tried
 * again. */
int nursery_fork(struct nursery *n, const char *dir, const char *node, int handshake_fd, struct err *e);

/* Ends the process; supervisors go on. The loop has to be turned until nursery_is_idle, and then once more. */
void nursery_stop(struct nursery *n);
bool nursery_is_idle(const struct nursery *n);

void nursery_destroy(struct nursery *n); /* NULL is fine */

#endif
