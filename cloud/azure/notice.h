/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure's notices: the Scheduled Events of the instance metadata service. Its first call switches
 * the service on and may take two minutes; from then on it is looked at once a second by default.
 * An empty list is the healthy answer.
 *
 * Preempt is a reclaim of 30 s at best. Terminate, Reboot and Redeploy are reclaims too, with
 * minutes: what is in memory is lost; any other type is taken for one, for it may end the machine.
 * Freeze, a pause of seconds, is a maintenance. An acknowledgement (StartRequests) lets Azure go
 * ahead at once.
 */
#ifndef BELAY_CLOUD_AZURE_NOTICE_H
#define BELAY_CLOUD_AZURE_NOTICE_H

#include "cloud/notice_reader.h"

#define AZURE_EVENT_ID_MAX 128 /* bytes including the NUL */
#define AZURE_EVENTS_MAX 16    /* of one machine; more are left out */

extern const struct notice_provider azure_notice_provider;

struct azure_event {
    char id[AZURE_EVENT_ID_MAX];
    char type[32];          /* as Azure calls it, cut */
    bool is_unknown;        /* the type: taken for a reclaim, and never approved */
    enum notice_kind kind;  /* NOTICE_RECLAIM or NOTICE_MAINTENANCE */
    int64_t least_ms;       /* the shortest that its type is announced before; 30 s once begun */
    int64_t notice_ms;      /* the longest */
    struct wall not_before; /* WALL_NONE: it has begun */
};

struct azure_events {
    struct azure_event list[AZURE_EVENTS_MAX];
    size_t n;
};

/* Pure: the events in a reply that concern the machine of this name (compared without case; NULL:
 * all). ERR_INVALID with why. */
int azure_notice_parse_events(const char *body, size_t n, const char *machine,
    struct azure_events *ret_events, struct err *e);

#endif
