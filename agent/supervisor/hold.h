/* SPDX-License-Identifier: Apache-2.0
 *
 * The holder of a host's claim (agent/host.h).
 */
#ifndef BELAY_AGENT_SUPERVISOR_HOLD_H
#define BELAY_AGENT_SUPERVISOR_HOLD_H

/* Runs the internal `belay-agent hold DIR`. Returns the exit code. */
int host_hold_main(const char *dir);

#endif
