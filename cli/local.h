/* SPDX-License-Identifier: Apache-2.0
 *
 * A belayd and an agent on this machine, in the user's own directory, for `belay up` and `belay
 * down`.
 *
 * HOME (BELAY_HOME or ~/.local/share/belay, 0700): belayd.yaml, belayd.log, belayd.json (written by
 * belayd), agent.yaml, agent.token, agent.log, agent.pid, agent/ (the agent's own), and belayd's
 * state.
 */
#ifndef BELAY_CLI_LOCAL_H
#define BELAY_CLI_LOCAL_H

#include "cli/cli.h"
#include <sys/types.h>

/* Makes everything that follows talk to the belayd in home. ERR_CONFIG when BELAY_SERVER says
 * otherwise. To be called again once a belayd has been started: only then it is known where it
 * listens. */
int local_use(const char *home, struct err *e);

/* Where the belayd in home listens, or did when it last ran (belayd.json): its configuration may
 * say anywhere. If none ever did, where it would without a configuration. The caller frees. */
char *local_socket(const char *home);

/* The number of the node that home's agent became when it last joined; 0: it has not. */
int64_t local_node(const char *home);

/* The path of another program of belay's: beside our own executable, in the build tree beside it,
 * or on the PATH. The caller frees. */
char *local_program(const char *name);

/* The process named in file (JSON with "pid", or a bare number) if it runs and its name is
 * `program`; else 0.
 */
pid_t local_pid(const char *file, const char *program);

/* True when a job of home's agent runs on this machine, whether or not the agent does: its
 * supervisor outlives it. */
bool local_has_tasks(const char *home);

/* Starts argv as a daemon: own session, no terminal, output appended to log. *ret_pid is its
 * pid. */
int local_spawn(const char *const *argv, const char *log, pid_t *ret_pid, struct err *e);

/* Asks the process to end (SIGTERM). *ret_fd: for local_stop_wait; -1: it had ended. */
int local_stop_begin(pid_t pid, int *ret_fd, struct err *e);
/* Waits for its end; after timeout_ms ERR_TIMEOUT. Closes fd. */
int local_stop_wait(pid_t pid, int fd, int64_t timeout_ms, struct err *e);

/* Tries `ready` every 20 ms until it is true, the process ends (ERR_IO) or timeout_ms pass
 * (ERR_TIMEOUT). */
int local_wait(pid_t pid, int64_t timeout_ms, bool (*ready)(void *ctx), void *ctx, struct err *e);

#endif
