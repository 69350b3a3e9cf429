/* SPDX-License-Identifier: Apache-2.0
 *
 * The node: joins, keeps the link, runs the tasks that belayd wants, watches for the provider's
 * notices, and when belayd is gone for good saves everything and ends.
 */
#ifndef BELAY_AGENT_AGENT_H
#define BELAY_AGENT_AGENT_H

#include "agent/config.h"
#include <uv.h>

/* Runs until it is told to end or has nothing to live for (an elastic node that its cluster does
 * not know any more). Told to end (SIGTERM, SIGINT) tasks go on under their supervisors; by SIGTERM
 * while the machine goes, they are saved and ended first. Returns the process's exit code. config
 * is borrowed. */
int agent_run(uv_loop_t *loop, struct config *config);

#endif
