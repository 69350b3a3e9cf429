/* SPDX-License-Identifier: Apache-2.0
 *
 * The link to belayd (protocol: base/wire/wire.h): one parked sync brings news down; when something
 * changes here while it is parked, an urgent sync that does not wait takes it up on another
 * connection. Both directions tell states, so a lost or repeated message does no harm, and there is
 * no queue: a status is made when it is sent.
 */
#ifndef BELAY_AGENT_UPLINK_H
#define BELAY_AGENT_UPLINK_H

#include "agent/peer.h"
#include "base/prng.h"
#include "base/timers.h"

struct uplink_slot {
    struct uplink *owner;
    struct http_call *call;
    bool waits; /* the parked one */
};

struct uplink {
    /* to be filled by the caller */
    struct peer *peer;
    struct timers *timers;
    struct prng *prng;
    int64_t incarnation; /* incarnation.h */
    /* Fills notice, load, attempts and kept (shallow arrays, freed by the link with free()), and
     * tails (freed with their texts). */
    void (*fill)(void *ctx, struct wire_status *status);
    /* A desired that is not older than one seen before. */
    void (*desired)(void *ctx, const struct wire_desired *d);
    /* belayd refuses us: ERR_DENIED the certificate, ERR_NOT_FOUND the node. False: the link goes
     * on trying.
     */
    bool (*refused)(void *ctx, const struct err *e);
    void *ctx;
    /* readable */
    /* The last answer of a belayd that is there: a good one, or that it can do nothing for now (its
     * disk is full). The start before. */
    struct mono heard;
    int64_t lease_ms; /* 0: not told yet */
    /* private */
    int64_t seq, rev, sync_ms;
    struct uplink_slot parked, urgent;
    struct timer retry, coalesce;
    bool running, dirty;
    int failures;
};

void uplink_init(struct uplink *u);
void uplink_start(struct uplink *u); /* harmless when running */
/* Stops talking; the object must live until the HTTP client is destroyed. */
void uplink_stop(struct uplink *u);

/* Something that belayd should know has changed: told at once, or (later) within a second with what
 * else changes. */
void uplink_changed(struct uplink *u);
void uplink_changed_later(struct uplink *u);

#endif
