/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor: a small process per task that outlives the agent. It starts the program, contains
 * it, enforces its time limit, takes the agent's commands, and when the program ends, kills the
 * processes that it left behind and writes exit.json.
 *
 * It is forked by belay-supervisor (supervisor_pool.h), with its end of a socket with the agent as
 * descriptor 3. On that it sends lines:
 *
 *     ok      it has the task, and takes commands
 *     free    the task is over: exit.json is written, no process is left, and "task NAME" makes it
 *             take another one, NAME in the same directory of tasks. Only after a task that
 *             ended cleanly, and while the agent runs; otherwise the supervisor ends
 *     no-space WHY  the node's disk is full, and nothing of the task was started; it ends
 *     others  why it has not taken the task, or that nothing was left to do; it ends
 *
 * If DIR shows that an earlier supervisor had the task and died, it kills the processes that are
 * left and writes exit.json ("lost") instead.
 *
 * When the agent's end is closed it listens on ctl.sock in DIR (stream), where a restarted agent
 * finds it. Commands, there and on the first socket, are one a line; the connection ends when the
 * supervisor ends:
 *
 *     ready                    answers "ready\n" once the script runs: at once, or when it has been
 *                              restored
 *     signal N                 to every process of the task that handles N; answers "signalled
 *                              COUNT\n"
 *     terminate DELAY GRACE    from now on the task counts as stopped; SIGTERM after DELAY ms
 *                              unless it has ended, SIGKILL GRACE ms later. A repeated one can only
 *                              hasten it
 *     kill                     SIGKILL to all of it
 *     shell                    with a descriptor: a command for the task (shells.h). No
 *                              answer
 *     shipped N                belayd has N bytes of output.log on its disk: they may be released
 *                              (output_pump.h). No answer
 *     limit MS                 its time limit from its start on, in place of that of spec.json; 0 =
 *                              none. The signal before the limit moves with it
 */
#ifndef BELAY_AGENT_SUPERVISOR_SUPERVISOR_H
#define BELAY_AGENT_SUPERVISOR_SUPERVISOR_H

#include "agent/supervisor/limits.h"
#include "agent/supervisor/output_shares.h"
#include "agent/tools.h"
#include "base/uv/proc.h"

#define SUPERVISOR_AGENT_FD 3
#define SUPERVISOR_LINE_MAX 64 /* length of "task NAME" in bytes */
#define SUPERVISOR_NO_SPACE "no-space "

/* Settings common to all tasks, looked up once by the process that forks supervisors. */
struct supervisor_common {
    struct proc_home *home;
    struct tools tools;
    struct limits limits;
    struct limits_warned *warned; /* shared with all supervisors */
    struct output_shares *shares; /* shared with all supervisors; may be NULL */
};

/* Runs until it has neither a task nor an agent. Returns the process's exit code. */
int supervisor_main(const struct supervisor_common *common, const char *dir, const char *node);

#endif
