/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by this node's network stores: connections and credentials. Credentials are fetched on the
 * loop from the node's own role, a credentials file or the agent's environment, when a save or a
 * restore first needs them and again before they expire. They stay in this process: the environment
 * of jobs is built from scratch (env.h), and no file holds them.
 *
 * Where belayd hands out credentials for each job's part of the store, the job has its own
 * store_net with only those: the node's credentials are never used instead.
 */
#ifndef BELAY_AGENT_TASK_STORE_CREDENTIALS_H
#define BELAY_AGENT_TASK_STORE_CREDENTIALS_H

#include "agent/config.h"
#include "base/http.h"
#include "base/timers.h"
#include "base/wire/wire.h"
#include "ckpt/store/store_net.h"
#include <uv.h>

struct store_credentials;

/* Everything is borrowed until stop. Sends no request yet. */
struct store_credentials *store_credentials_create(
    uv_loop_t *loop, struct timers *timers, struct http_client *http, const struct config *config);
struct store_net *store_credentials_net(struct store_credentials *s); /* valid until destroy */

/* For one job. A request for credentials after the last ones have expired fails at once: a save
 * must not wait for belayd. Destroy it with store_net_destroy. */
struct store_net *store_credentials_create_of_job(void);
/* Sets the credentials from belayd (s->store_token is not NULL) for the store at url. May be called
 * while the net is in use. */
void store_credentials_give_job(
    struct store_net *net, const char *url, const struct wire_secrets *s);

/* Stops fetching; pending requests fail. Call before the HTTP client is destroyed. */
void store_credentials_stop(struct store_credentials *s);
/* Call after stop, when no store is open. Run the loop afterwards. NULL is allowed. */
void store_credentials_destroy(struct store_credentials *s);

#endif
