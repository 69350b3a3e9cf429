/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor: a small process per task that outlives the agent. It starts the program, contains it,
 * enforces its time limit, takes the agent's commands, and when the program ends kills what it left behind
 * and writes exit.json.
 *
 * It is forked by belay-supervisor (nursery.h), with the hand-shake pipe as descriptor 3. On that it writes "ok\n" when
 * ctl.sock takes commands, or what went wrong, and closes it. If DIR says that an earlier supervisor had the task and died, it
 * kills what is left and writes exit.json ("lost") instead.
 *
 * ctl.sock (stream, one command a line; the end of the connection is the end of the supervisor):
 *
 *     ready                    answers "ready\n" once the script runs: at once, or when it has been restored
 *     signal N                 to every process of the task that handles N; answers "signalled COUNT\n"
 *     terminate DELAY GRACE    from now on the task counts as stopped; SIGTERM after DELAY ms unless it has
 * ended, SIGKILL GRACE ms later. A repeated one can only hasten it. kill                     SIGKILL to all
 * of it
 *     limit MS                 its time limit from its start on, in place of that of spec.json; 0: none. The signal before it
 *                              comes before this one
 */
#ifndef BELAY_AGENT_SUPERVISOR_H
#define BELAY_AGENT_SUPERVISOR_H

#include "agent/tools.h"
#include "base/uv/proc.h"

#define SUPERVISOR_HANDSHAKE_FD 3

/* What is the same for every task: looked up once, by who forks them. */
struct supervisor_room {
    struct proc_home *home;
    struct tools tools;
};

/* Returns the process's exit code. */
int supervisor_main(const struct supervisor_room *room, const char *dir, const char *node);

#endif
