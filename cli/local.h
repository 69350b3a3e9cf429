/* SPDX-License-Identifier: Apache-2.0
 *
 * A belayd and an agent on this machine, in the user's own directory, for `belay up` and `belay
 * down`.
 *
 * HOME (BELAY_HOME or ~/.local/share/belay, 0700): belayd.yaml, belayd.log, belayd.json (written by
 * belayd), agent.yaml, agent.token, agent.log, agent.pid, agent/ (the agent's state), and belayd's
 * state.
 */
#ifndef BELAY_CLI_LOCAL_H
#define BELAY_CLI_LOCAL_H

#include "cli/cli.h"
#include <sys/types.h>

/* Makes later calls go to the belayd in home. ERR_CONFIG if BELAY_SERVER is set. Call again after
 * starting a belayd: only then its address is known. */
int local_use(const char *home, struct err *e);

/* The socket of the belayd in home, now or when it last ran (belayd.json), because its
 * configuration may set any address. If none ever ran, the default. The caller frees it. */
char *local_socket(const char *home);

/* Node number of home's agent from its last join; 0 = none. */
int64_t local_node(const char *home);

/* Path of another belay program: next to our executable or in ../sbin, in a neighbouring folder of
 * a build tree, or on the PATH. The caller frees it. */
char *local_program(const char *name);

/* The process named in file (JSON with "pid", or a bare number) if it runs and its name is
 * `program`; else 0. */
pid_t local_pid(const char *file, const char *program);

/* Whether a job of home's agent runs on this machine, also without the agent: a supervisor outlives
 * it. */
bool local_has_tasks(const char *home);

/* Starts argv as a daemon: own session, no terminal, output appended to log. *ret_pid is its pid.
 */
int local_spawn(const char *const *argv, const char *log, pid_t *ret_pid, struct err *e);

/* Sends SIGTERM to the process. *ret_fd: for local_stop_wait; -1 if it had ended. */
int local_stop_begin(pid_t pid, int *ret_fd, struct err *e);
/* Waits for its end; ERR_TIMEOUT after timeout_ms. Closes fd. */
int local_stop_wait(pid_t pid, int fd, int64_t timeout_ms, struct err *e);

/* Polls `ready` every 20 ms until it is true, the process ends (ERR_IO) or timeout_ms passes
 * (ERR_TIMEOUT). */
int local_wait(pid_t pid, int64_t timeout_ms, bool (*ready)(void *ctx), void *ctx, struct err *e);

#endif
