/* SPDX-License-Identifier: Apache-2.0
 *
 * What a start of the agent would only log and try again, or find out later. `belay-agent --check`
 * refuses it. Nothing is changed: a script that is executed in `dir` is removed (dir_trial.h).
 */
#ifndef BELAY_AGENT_CHECKS_H
#define BELAY_AGENT_CHECKS_H

#include "agent/config.h"

/* Checks that `ca` is a certificate, that `dir` can be made or written and `criu` executed by this
 * user, that jobs can be executed in `dir`, that a node without a valid certificate of this cluster
 * has a token that may be one, that `system_users` exist, and that the host of `server` resolves.
 * Returns the error of the first that fails; it names the key. Logs a `server` without a port and
 * more `memory` than the machine has. Blocks for as long as the resolver does. */
int agent_check_node(const struct config *c, struct err *e);

#endif
