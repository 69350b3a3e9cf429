/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of `belay-agent --check`, for errors that a start of the agent would only log and retry,
 * or notice later. Nothing is changed: the script that is executed in `dir` is removed
 * (dir_trial.h).
 */
#ifndef BELAY_AGENT_CHECKS_H
#define BELAY_AGENT_CHECKS_H

#include "agent/config.h"

/* Checks that `ca` is a certificate, that this user can create or write `dir` and execute `criu`,
 * that jobs can be executed in `dir`, that a node without a valid certificate of this cluster has a
 * well-formed token, that `system_users` exist, and that the host of `server` resolves. Returns the
 * first error, which names the key. Logs a `server` without a port, and more `memory` than the
 * machine has. Blocks for as long as the resolver does. */
int agent_check_node(const struct config *c, struct err *e);

#endif
