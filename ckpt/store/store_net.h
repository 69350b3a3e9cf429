/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by all network stores of a process: connections, credentials, and facts learned about
 * servers.
 */
#ifndef BELAY_CKPT_STORE_STORE_NET_H
#define BELAY_CKPT_STORE_STORE_NET_H

#include "base/net/http_blocking.h"
#include "ckpt/store/store_auth.h"

/* Facts about one server, kept for ever. Any thread may read and write them. */
struct store_facts {
    struct store_facts *next;
    char *root;
    atomic_bool no_conditional_put;  /* the server answered 501 to If-None-Match */
    atomic_bool no_conditional_copy; /* likewise for a copy */
    /* its clock minus ours; 0 until it reported that our clock is wrong */
    atomic_llong clock_ahead_ms;
    atomic_llong backoff_ms; /* first pause before a retry */
    /* objects of more than twice this size are sent in parts of this size, where parts are
     * supported */
    atomic_size_t part_bytes;
};

struct store_net;

/* As store_auth_want_fn, for one kind. */
typedef void (*store_net_want_fn)(void *ctx, enum store_keys_kind kind);

/* Has a holder for each kind of credentials; want as in store_auth_create. */
struct store_net *store_net_create(store_net_want_fn want, void *ctx);
/* close every store opened with it first; NULL is allowed */
void store_net_destroy(struct store_net *n);

/* The results are valid until destroy. */
struct store_auth *store_net_auth(struct store_net *n, enum store_keys_kind kind);
struct http_pool *store_net_http(struct store_net *n);
struct store_facts *store_net_facts(struct store_net *n, const char *root); /* thread-safe */

#endif
