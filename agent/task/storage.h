/* SPDX-License-Identifier: Apache-2.0
 *
 * What this node's stores over a network share: connections, and credentials, which are got on the
 * loop from the node's own role, a credentials file or the agent's environment, when a save or a
 * restore first needs them, and again before they end. They stay in this process: the environment
 * of jobs is made from nothing (env.h), and no file holds them.
 *
 * Where belayd hands out credentials for each job's part of the store, the job has a store_net of
 * its own, filled with those and nothing else: the node's are not tried in their place.
 */
#ifndef BELAY_AGENT_TASK_STORAGE_H
#define BELAY_AGENT_TASK_STORAGE_H

#include "agent/config.h"
#include "base/http.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include "ckpt/store/store_net.h"
#include <uv.h>

struct storage;

/* Everything is borrowed until stop; nothing is asked of anybody yet. */
struct storage *storage_create(
    uv_loop_t *loop, struct timers *timers, struct http_client *http, const struct config *config);
struct store_net *storage_net(struct storage *s); /* valid until destroy */

/* Of one job. Who needs credentials when those that came last have ended is refused at once: a save
 * must not wait for belayd. Destroy it with store_net_destroy. */
struct store_net *storage_create_of_job(void);
/* What belayd gave (s->store_token is not NULL), for the store at url. May be called while the net
 * is in use. */
void storage_give_job(struct store_net *net, const char *url, const struct wire_secrets *s);

/* Nothing is got any more, and who waits for it is told so. Before the HTTP client goes. */
void storage_stop(struct storage *s);
/* After it was stopped and no store is open. Run the loop afterwards. NULL is allowed. */
void storage_destroy(struct storage *s);

#endif
