/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure's notices: the Scheduled Events of the instance metadata service. The first call switches
 * the service on and may take two minutes; after that it is polled once a second by default. An
 * empty list is the healthy answer.
 *
 * Preempt is a reclaim with at most 30 s of notice. Terminate, Reboot and Redeploy are reclaims
 * too, with minutes of notice, because memory is lost; so is any unknown type, because it may end
 * the machine. Freeze, a pause of seconds, is a maintenance. An acknowledgement (StartRequests)
 * lets Azure go ahead at once.
 */
#ifndef BELAY_CLOUD_AZURE_NOTICE_H
#define BELAY_CLOUD_AZURE_NOTICE_H

#include "cloud/notice_reader.h"

#define AZURE_EVENT_ID_MAX 128 /* bytes including the NUL */

extern const struct notice_provider azure_notice_provider;

struct azure_event {
    char id[AZURE_EVENT_ID_MAX];
    char type[32];          /* Azure's name, cut */
    bool is_unknown;        /* unknown type: treated as a reclaim, and never approved */
    enum notice_kind kind;  /* NOTICE_RECLAIM or NOTICE_MAINTENANCE */
    int64_t least_ms;       /* the shortest notice of its type; 30 s once begun */
    int64_t notice_ms;      /* the longest notice */
    struct wall not_before; /* WALL_NONE if it has begun */
};

/* Zeroed: empty. */
struct azure_events {
    struct azure_event *list;
    size_t n, cap;
};

/* Pure: the events in a reply that concern this machine (case-insensitive name; NULL for all); only
 * the size of the reply limits their number. ERR_INVALID with the reason; if only some of the
 * events are malformed, *ret_events has the others. Free with azure_events_deinit. */
int azure_notice_parse_events(const char *body, size_t n, const char *machine,
    struct azure_events *ret_events, struct err *e);
void azure_events_deinit(struct azure_events *events);

#endif
