/* SPDX-License-Identifier: Apache-2.0
 *
 * Set up by a root agent on a machine that belay launched, before any job can start: the machine's
 * metadata service, which hands out the credentials of its role, answers only root.
 */
#ifndef BELAY_AGENT_NODE_GUARD_H
#define BELAY_AGENT_NODE_GUARD_H

#include "base/err.h"

/* Refuses (EACCES) all TCP connections to the metadata services of all providers, except those made
 * by root on this machine. Other users' connections and forwarded ones, from containers with their
 * own network, are refused. Port 53 stays open, because Google's and Azure's name servers share the
 * addresses. Uses routing rules (fib rules, Linux 4.18) set over netlink, so no program of the
 * image is needed; a repeat adds nothing. Verifies the result: ERR_UNSUPPORTED when a user would
 * still get through. */
int node_guard_metadata(struct err *e);

#endif
