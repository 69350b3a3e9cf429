/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of the HTTP server's connections and bytes, counted by class and, within a class, by
 * party. A party is an address until a request has been authenticated, and that identity from then
 * on. So the limits of an address do not count against authenticated clients behind it. No I/O
 * here.
 *
 * A full class is shared max-min fair: the party that has the most gives way, with its oldest
 * holder. A newcomer is refused only if no party can give way.
 *
 * Invariants
 *   1. Every holder is in exactly one party, in order of arrival.
 *   2. The bytes of a party are those of its holders, those of a class those of its parties.
 *   3. A party is freed with its last holder, so there are never more parties than connections.
 */
#ifndef BELAY_BASE_UV_HTTP_ADMISSION_H
#define BELAY_BASE_UV_HTTP_ADMISSION_H

#include "base/list.h"
#include "base/map.h"
#include "base/uv/http_server.h"

struct http_party {
    struct link link; /* in its class */
    enum http_class class;
    char name[HTTP_PARTY_NAME_MAX];
    struct list holders; /* oldest first */
    int n_holders;
    size_t bytes;
    /* see http_turns.h: its position, and the holders that wait, in order */
    struct link turn;
    struct list turns, events;
    bool is_oldest_next;
};

/* Represents a connection. Zeroed: in no party. */
struct http_holder {
    struct link link;
    struct link turn; /* in its party, while it waits for the loop, */
    uint64_t since;   /* in this order */
    struct http_party *party;
    size_t bytes;
    bool may_give_way; /* its connection may be closed to make space for others */
};

struct http_class_use {
    struct http_class_limits limits;
    struct list parties;
    int n_holders;
    size_t bytes;
};

struct http_admission {
    struct http_class_use classes[HTTP_CLASSES];
    struct smap parties; /* "class:name" */
};

enum http_verdict {
    HTTP_ADMITTED,
    HTTP_GIVES_WAY,  /* *ret_victim must be closed first; call again afterwards */
    HTTP_PARTY_FULL, /* this party is at its limit */
    HTTP_CLASS_FULL, /* and no party can give way */
};

void http_admission_deinit(struct http_admission *a); /* all holders must have left */

/* Moves h, with its bytes, to the party of that class and name, or adds it if it is in none.
 * Changes nothing unless it returns HTTP_ADMITTED. */
enum http_verdict http_admission_enter(struct http_admission *a, struct http_holder *h,
    enum http_class class, const char *name, struct http_holder **ret_victim);
void http_admission_leave(
    struct http_admission *a, struct http_holder *h); /* no-op if it is in none */

/* The holder that would give way first in that class; NULL if none can. */
struct http_holder *http_admission_victim(const struct http_admission *a, enum http_class class);

/* Counts n more bytes for h. */
enum http_verdict http_admission_take(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim);
/* The same for a reply: a party, or a class, that has nothing else may exceed its limit. */
enum http_verdict http_admission_take_reply(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim);
/* The same regardless of limits, for bytes already present. */
void http_admission_add(struct http_admission *a, struct http_holder *h, size_t n);
void http_admission_give_back(struct http_admission *a, struct http_holder *h, size_t n);

#endif
