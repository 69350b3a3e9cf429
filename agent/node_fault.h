/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with the node: a fault of a GPU, a prolog or epilog that failed. It is reported
 * with every status until the agent ends, and belayd drains the node (struct wire_status). Every
 * text has the time of the fault, so that belayd distinguishes a new fault from a repeated report.
 */
#ifndef BELAY_AGENT_NODE_FAULT_H
#define BELAY_AGENT_NODE_FAULT_H

#include "base/time.h"
#include "base/wire/wire.h"

struct node_fault {
    char text[WIRE_FAULT_MAX]; /* the newest; "" = none */
};

/* why has no data of users: all of them can read it. */
void node_fault_set(struct node_fault *f, struct wall now, const char *why);

#endif
