/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether this machine is shutting down. Asked once, when the agent receives SIGTERM, which an
 * upgrade of the agent sends too. By the output of `systemctl is-system-running`:
 *
 *   "stopping"                 yes
 *   another systemd state      no
 *   nothing in time            yes: a shutdown taken for a restart loses work, the reverse does not
 *   no systemctl, "offline"    by the run level in utmp: 0 or 6 yes
 */
#ifndef BELAY_AGENT_SHUTDOWN_H
#define BELAY_AGENT_SHUTDOWN_H

#include "base/runner.h"
#include <stdbool.h>

/* Runs once, never inside shutdown_ask. `why` is for the log. */
typedef void (*shutdown_fn)(void *ctx, bool is_shutdown, const char *why);

struct shutdown {
    shutdown_fn done;
    void *ctx;
    struct run *run; /* NULL when no question is under way */
};

/* s and the runner must live until `done` has run, at the latest inside uv_runner_destroy. */
void shutdown_ask(struct shutdown *s, struct runner *runner, shutdown_fn done, void *ctx);

/* Pure: interprets the n bytes that systemctl printed. */
enum shutdown_answer { SHUTDOWN_NO, SHUTDOWN_YES, SHUTDOWN_UNKNOWN };
enum shutdown_answer shutdown_read_answer(const char *text, size_t n);

#endif
