/* SPDX-License-Identifier: Apache-2.0
 *
 * Enrolment: joins with the one-use token, renews the certificate at 2/3 of its life, and joins
 * again when belayd refuses the certificate and a token is left. Retries without limit, with
 * backoff, because belayd may come back.
 */
#ifndef BELAY_AGENT_ENROLL_H
#define BELAY_AGENT_ENROLL_H

#include "agent/criu/criu.h"
#include "agent/peer.h"
#include "agent/gpu/resources.h"
#include "base/prng.h"
#include "base/timers.h"

struct enroll {
    /* set by the caller */
    struct peer *peer;
    struct config *config;
    struct identity *id;
    struct node_resources resources;
    const struct criu *criu; /* borrowed */
    struct timers *timers;
    struct prng *prng;
    /* called after a join, not after a renewal */
    void (*on_joined)(void *ctx);
    void *ctx;
    char provider[16], instance_id[64]; /* from the metadata service, before enroll_start */
    /* private */
    struct timer timer;
    struct http_call *call;
    int tries;
    bool renewing, stopped, warned_of_clock;
};

/* Joins, or schedules the renewal if the node has a certificate. */
void enroll_start(struct enroll *en);

/* Call when belayd refuses the certificate. True: joining again, on_joined will follow. False: no
 * token is left. */
bool enroll_refused(struct enroll *en);

/* The object must live until the HTTP client is destroyed. */
void enroll_stop(struct enroll *en);

#endif
