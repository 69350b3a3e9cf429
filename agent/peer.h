/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to belayd: over TLS, trusting exactly the configured authority, with the node's
 * certificate once it has one.
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

/* POSTs body (copied) to path. done as in http.h. */
struct http_call *peer_post(const struct peer *p, const char *path, const void *body, size_t n,
    int64_t timeout_ms, http_done_fn done, void *ctx);

/* 0 if the reply is a 200; otherwise what went wrong, in belayd's own words where it gave any:
 * ERR_DENIED for 401 and 403, ERR_NOT_FOUND only if belayd itself said so. */
int peer_check(const struct err *failed, const struct http_reply *reply, struct err *e);

#endif
