/* SPDX-License-Identifier: Apache-2.0
 *
 * Becoming and staying a node: joins with the one-use token, renews the certificate at 2/3 of its
 * life, and joins again when belayd refuses the certificate and there is a token. Tries for ever,
 * with backoff: belayd may come back.
 */
#ifndef BELAY_AGENT_ENROLL_H
#define BELAY_AGENT_ENROLL_H

#include "agent/criu/criu.h"
#include "agent/peer.h"
#include "agent/gpu/resources.h"
#include "base/prng.h"
#include "base/timers.h"

struct enroll {
    /* to be filled by the caller */
    struct peer *peer;
    struct config *config;
    struct identity *id;
    struct node_resources resources;
    const struct criu *criu; /* borrowed */
    struct timers *timers;
    struct prng *prng;
    /* there is a new certificate: after a join, not after a renewal */
    void (*on_joined)(void *ctx);
    void *ctx;
    char provider[16], instance_id[64]; /* from the metadata service, before enroll_start */
    /* private */
    struct timer timer;
    struct http_call *call;
    int tries;
    bool renewing, stopped;
};

/* Joins, or if the node has a certificate watches over it. */
void enroll_start(struct enroll *en);

/* belayd does not accept our certificate. True: joining again, on_joined will follow. False: there
 * is no token. */
bool enroll_refused(struct enroll *en);

/* The object must live until the HTTP client is destroyed. */
void enroll_stop(struct enroll *en);

#endif
