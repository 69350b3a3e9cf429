/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent that is root sets up on a machine that belay launched, before any job can start
 * there: the machine's metadata service, which hands out the credentials of its role, answers root
 * alone.
 */
#ifndef BELAY_AGENT_NODE_GUARD_H
#define BELAY_AGENT_NODE_GUARD_H

#include "base/err.h"

/* TCP connections to the metadata services of all providers are refused (EACCES) unless root of
 * this machine makes them: those of other users and those that are forwarded, from containers with
 * a network of their own. Port 53 stays open, for Google's and Azure's name servers have the same
 * addresses. Rules of the kernel's routing (fib rules, Linux 4.18), set by netlink: no program of
 * the image is needed, a repeat adds nothing. What was set is looked at: ERR_UNSUPPORTED when a
 * user would still get through. */
int node_guard_metadata(struct err *e);

#endif
