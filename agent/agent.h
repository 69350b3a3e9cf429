/* SPDX-License-Identifier: Apache-2.0
 *
 * The node agent: joins the cluster, keeps the link to belayd, runs the tasks that belayd assigns
 * and watches for the provider's notices. When belayd stays away for good, it saves every task and
 * exits.
 */
#ifndef BELAY_AGENT_AGENT_H
#define BELAY_AGENT_AGENT_H

#include "agent/config.h"
#include <uv.h>

/* Runs until it is asked to end, or until its cluster no longer knows it (an elastic node). On
 * SIGTERM or SIGINT tasks keep running under their supervisors; on SIGTERM during a shutdown of the
 * machine, or with sigterm_notice, they are saved and ended first. Returns the process's exit code.
 * config is borrowed. */
int agent_run(uv_loop_t *loop, struct config *config);

#endif
