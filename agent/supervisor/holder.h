/* SPDX-License-Identifier: Apache-2.0
 *
 * The holder of a host's claim (agent/host.h).
 */
#ifndef BELAY_AGENT_SUPERVISOR_HOLDER_H
#define BELAY_AGENT_SUPERVISOR_HOLDER_H

/* Runs the internal `belay-agent holder DIR`. Returns the exit code. */
int holder_main(const char *dir);

#endif
