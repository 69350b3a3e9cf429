/* SPDX-License-Identifier: Apache-2.0
 *
 * The link to belayd (protocol: base/wire/wire.h): one parked sync brings belayd's changes down.
 * When something changes here meanwhile, an urgent sync, which belayd answers at once, reports it
 * on another connection. Both directions carry whole states, so a lost or repeated message does no
 * harm and no queue is needed: a status is built when it is sent.
 */
#ifndef BELAY_AGENT_UPLINK_H
#define BELAY_AGENT_UPLINK_H

#include "agent/peer.h"
#include "base/prng.h"
#include "base/timers.h"

struct uplink_slot {
    struct uplink *owner;
    struct http_call *call;
    bool waits; /* the parked sync */
};

struct uplink {
    /* set by the caller */
    struct peer *peer;
    struct timers *timers;
    struct prng *prng;
    int64_t incarnation; /* incarnation.h */
    /* Fills notice, load, attempts and kept (shallow arrays, freed by the link with free()), and
     * tails (freed with their texts). */
    void (*fill)(void *ctx, struct wire_status *status);
    /* Called with a desired state that is not older than any before. */
    void (*desired)(void *ctx, const struct wire_desired *d);
    /* belayd refuses the certificate (ERR_DENIED) or does not know the node (ERR_NOT_FOUND). Return
     * false to keep the link retrying.
     */
    bool (*refused)(void *ctx, const struct err *e);
    void *ctx;
    /* readable */
    /* When belayd was last heard: a good answer, or one that says it is unavailable (its disk is
     * full). Initially the start. */
    struct mono heard;
    int64_t lease_ms; /* 0 = not known yet */
    /* private */
    int64_t seq, rev, sync_ms;
    struct uplink_slot parked, urgent;
    struct timer retry, coalesce;
    bool running, dirty;
    int failures;
};

void uplink_init(struct uplink *u);
void uplink_start(struct uplink *u); /* no-op when running */
/* Stops the link; the object must live until the HTTP client is destroyed. */
void uplink_stop(struct uplink *u);

/* Something that belayd should know has changed. Reported at once, or with `later` within a second,
 * together with other changes. */
void uplink_changed(struct uplink *u);
void uplink_changed_later(struct uplink *u);
/* Whether belayd was told of every change so far. */
bool uplink_is_reported(const struct uplink *u);

#endif
