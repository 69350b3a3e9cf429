/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stores over a network share in one process, however often each is opened: connections,
 * credentials, and what was found out about the servers.
 */
#ifndef BELAY_CKPT_STORE_STORE_NET_H
#define BELAY_CKPT_STORE_STORE_NET_H

#include "base/net/http_blocking.h"
#include "ckpt/store/store_auth.h"

/* Of one server; never forgotten. Any thread may read and write it. */
struct store_facts {
    struct store_facts *next;
    char *root;
    atomic_bool no_conditional_put;  /* it answered 501 to If-None-Match */
    atomic_bool no_conditional_copy; /* the same of a copy */
    atomic_llong clock_ahead_ms;     /* of ours; 0 until it said that our clock is off */
    atomic_llong backoff_ms;         /* the first pause before a request is sent again */
    /* an object of over twice as many is sent in parts of so many, where there are parts */
    atomic_size_t part_bytes;
};

struct store_net;

/* What store_auth_want_fn is, of one kind. */
typedef void (*store_net_want_fn)(void *ctx, enum store_keys_kind kind);

/* It has a holder for each kind of credentials; want as of store_auth_create. */
struct store_net *store_net_create(store_net_want_fn want, void *ctx);
/* every store that was opened with it is closed; NULL is allowed */
void store_net_destroy(struct store_net *n);

/* All of these are valid until destroy. */
struct store_auth *store_net_auth(struct store_net *n, enum store_keys_kind kind);
struct http_pool *store_net_http(struct store_net *n);
struct store_facts *store_net_facts(struct store_net *n, const char *root); /* thread-safe */

#endif
