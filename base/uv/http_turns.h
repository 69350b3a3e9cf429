/* SPDX-License-Identifier: Apache-2.0
 *
 * Which connection has the loop next. Connections that wait for it take turns fairly: by class,
 * within a class by party, within a party by order. So the latency of a request depends on the
 * number of parties, not on how many connections one of them has.
 *
 *   class    HTTP_STRANGER, HTTP_USER, HTTP_NODE       one after the other
 *    party   an address, a user or a node              the one at the head; then it goes to the end
 *     holder a connection                              the one that has waited longest,
 *                                                      or, of strangers, as follows
 *
 * Of connections that are not authenticated yet (HTTP_STRANGER), a party alternates: newest event,
 * then longest-waiting connection. They include handshakes, the most expensive step of all, which
 * need no token. In a burst of them from one address, a new connection from that address is then
 * served soon. In a flood that lasts, none waits for its deadline: behind N older ones it has one
 * of the next 2 N + 2 turns of its party.
 *
 * Invariants: a party is in its class's list exactly while it has waiting connections. Both lists
 * of a party are in order of `since`.
 */
#ifndef BELAY_BASE_UV_HTTP_TURNS_H
#define BELAY_BASE_UV_HTTP_TURNS_H

#include "base/uv/http_admission.h"

struct http_turns {
    struct list parties[HTTP_CLASSES]; /* the next one first */
    enum http_class next;
    int n; /* waiting connections */
    uint64_t n_added;
};

/* No-op if h already waits. is_event: something has arrived for it, so that of a stranger may go
 * first; else it has just had a turn. */
void http_turns_add(struct http_turns *t, struct http_holder *h, bool is_event);
/* No-op if h does not wait. Call before h changes its party or leaves it. */
void http_turns_remove(struct http_turns *t, struct http_holder *h);
/* Removes and returns the next; NULL if none waits. */
struct http_holder *http_turns_next(struct http_turns *t);

#endif
