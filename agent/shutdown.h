/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether this machine is shutting down: asked once, when the agent is told to end, which an
 * upgrade
 * of the agent does too. What `systemctl is-system-running` says:
 *
 *   "stopping"                 yes
 *   another state of systemd's no
 *   nothing in time            yes: a shutdown taken for a restart loses work, the reverse does not
 *   no systemctl, "offline"    as the run level in utmp says: 0 or 6 yes
 */
#ifndef BELAY_AGENT_SHUTDOWN_H
#define BELAY_AGENT_SHUTDOWN_H

#include "base/runner.h"
#include <stdbool.h>

/* Runs once, not inside shutdown_ask. why: for the log. */
typedef void (*shutdown_fn)(void *ctx, bool is_shutdown, const char *why);

struct shutdown {
    shutdown_fn done;
    void *ctx;
    struct run *run; /* NULL: nothing is asked */
};

/* s and the runner live until done has run, inside uv_runner_destroy at the latest. */
void shutdown_ask(struct shutdown *s, struct runner *runner, shutdown_fn done, void *ctx);

/* Pure: what the answer of systemctl means; n bytes. */
enum shutdown_answer { SHUTDOWN_NO, SHUTDOWN_YES, SHUTDOWN_UNKNOWN };
enum shutdown_answer shutdown_read_answer(const char *text, size_t n);

#endif
