/* SPDX-License-Identifier: Apache-2.0
 *
 * What this node's stores over a network share: connections, and credentials, which are got on the loop from the node's
 * own role, a credentials file or the agent's environment, when a save or a restore first needs them, and again before
 * they end. They stay in this process: the environment of jobs is made from nothing (env.h), and no file holds them.
 *
 * Credentials that belayd hands out for one job's prefix would come here too: a store_net for each job, filled from
 * what the job's assignment brings.
 */
#ifndef BELAY_AGENT_STORAGE_H
#define BELAY_AGENT_STORAGE_H

#include "agent/config.h"
#include "base/http.h"
#include "base/timers.h"
#include "ckpt/store_net.h"
#include <uv.h>

struct storage;

/* Everything is borrowed until stop; nothing is asked of anybody yet. */
struct storage *storage_create(
    uv_loop_t *loop, struct timers *timers, struct http_client *http, const struct config *config);
struct store_net *storage_net(struct storage *s); /* valid until destroy */

/* Nothing is got any more, and who waits for it is told so. Before the HTTP client goes. */
void storage_stop(struct storage *s);
/* After it was stopped and no store is open. Run the loop afterwards. NULL is fine. */
void storage_destroy(struct storage *s);

#endif
