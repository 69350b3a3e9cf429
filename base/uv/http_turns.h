/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the connection that the loop serves next. Waiting connections take turns fairly: by
 * class, within a class by party, within a party by order. The latency of a request therefore
 * depends on the number of parties, not on how many connections one of them has.
 *
 *   class    HTTP_STRANGER, HTTP_USER, HTTP_NODE       the one that has used the least time
 *    party   an address, a user or a node              the first of the list, which then moves to
 *                                                      its end
 *     holder a connection                              the one that has waited longest,
 *                                                      or, for strangers, as follows
 *
 * Classes share the time, not the number of turns: a user's request may take a hundred times as
 * long as a node's, and each node would wait for one of them. A class that had nothing waiting gets
 * no credit for it: when it waits again, its used time is raised to the least used time of the
 * classes that wait.
 *
 * For connections that are not authenticated yet (HTTP_STRANGER), a party alternates between the
 * newest event and the connection that has waited longest. These connections include handshakes,
 * the most expensive step, which need no token. In a burst of handshakes from one address, a new
 * connection from that address is therefore served soon. In a lasting flood every connection is
 * served before its deadline: with N older ones before it, it gets one of the next 2 N + 2 turns of
 * its party.
 *
 * Invariants: a party is in its class's list exactly while it has waiting connections. Both lists
 * of a party are in order of `since`.
 */
#ifndef BELAY_BASE_UV_HTTP_TURNS_H
#define BELAY_BASE_UV_HTTP_TURNS_H

#include "base/uv/http_admission.h"

struct http_turns {
    struct list parties[HTTP_CLASSES]; /* the next one first */
    int64_t used_us[HTTP_CLASSES];
    /* the class after that of the last turn; goes first among classes with equal times */
    enum http_class next;
    int n; /* waiting connections */
    uint64_t n_added;
};

/* No-op if h already waits. is_event: data or an event has arrived for h, so a stranger's
 * connection may go first; otherwise h has just had a turn. */
void http_turns_add(struct http_turns *t, struct http_holder *h, bool is_event);
/* No-op if h does not wait. Call before h changes its party or leaves it. */
void http_turns_remove(struct http_turns *t, struct http_holder *h);
/* Removes and returns the next; NULL if none waits. */
struct http_holder *http_turns_next(struct http_turns *t);
/* The turn that http_turns_next gave last has taken so long. */
void http_turns_used(struct http_turns *t, int64_t us);

#endif
