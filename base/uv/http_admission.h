/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may hold how much of the HTTP server: connections and bytes, counted by class and, within a
 * class, by party. A party is an address until a request has shown who sends it, and that identity
 * from then on. So the limits of an address never count against those who share it and have a
 * certificate or a token. No I/O here.
 *
 * A class that is full is shared max-min: the party that holds most gives way, by what of it is
 * oldest. A newcomer is refused only when nothing can be taken from anybody.
 *
 * Invariants
 *  1. Every holder is in exactly one party, in the order in which it came there.
 *  2. The bytes of a party are those of its holders, those of a class those of its parties.
 *  3. A party is freed with its last holder, so there are never more parties than connections.
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
};

/* What stands for a connection. Zeroed: in no party. */
struct http_holder {
    struct link link;
    struct http_party *party;
    size_t bytes;
    bool may_give_way; /* its connection may be closed for another's sake */
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
    HTTP_GIVES_WAY,  /* *ret_victim has to go first; ask again afterwards */
    HTTP_PARTY_FULL, /* this party has its limit */
    HTTP_CLASS_FULL, /* and nobody can give way */
};

void http_admission_deinit(struct http_admission *a); /* all holders have left */

/* Moves h, with its bytes, to the party of that class and name, or adds it if it is in none. Only
 * HTTP_ADMITTED changes anything. */
enum http_verdict http_admission_enter(struct http_admission *a, struct http_holder *h,
    enum http_class class, const char *name, struct http_holder **ret_victim);
void http_admission_leave(
    struct http_admission *a, struct http_holder *h); /* harmless if it is in none */

/* Who would give way first in that class; NULL: nobody can. */
struct http_holder *http_admission_victim(const struct http_admission *a, enum http_class class);

/* n more bytes for h. */
enum http_verdict http_admission_take(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim);
/* The same of a reply: a party, or a class, that holds nothing else may exceed its limit. */
enum http_verdict http_admission_take_reply(
    struct http_admission *a, struct http_holder *h, size_t n, struct http_holder **ret_victim);
/* The same, whatever the limits say: of bytes that are there already. */
void http_admission_add(struct http_admission *a, struct http_holder *h, size_t n);
void http_admission_give_back(struct http_admission *a, struct http_holder *h, size_t n);

#endif
