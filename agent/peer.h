/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to belayd: over TLS, trusting only the configured authority, with the node's certificate
 * after the join.
 */
#ifndef BELAY_AGENT_PEER_H
#define BELAY_AGENT_PEER_H

#include "agent/config.h"
#include "agent/identity.h"
#include "base/http.h"

struct peer {
    struct http_client *http;
    const struct config *config;
    const struct identity *id;
};

/* POSTs body (copied) to path. `done` runs as http.h says. */
struct http_call *peer_post(const struct peer *p, const char *path, const void *body, size_t n,
    int64_t timeout_ms, http_done_fn done, void *ctx);

/* Returns 0 for a 200. Otherwise fills e, with belayd's error text if the reply has one: ERR_DENIED
 * for 401 and 403 only, ERR_NOT_FOUND only if belayd itself said so, ERR_UNAVAILABLE if this side
 * does not accept belayd's certificate. */
int peer_check(const struct err *failed, const struct http_reply *reply, struct err *e);

#endif
