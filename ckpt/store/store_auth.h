/* SPDX-License-Identifier: Apache-2.0
 *
 * Holder of the credentials of network stores, between their source (keys_source.h, or belayd's
 * messages, on the loop) and the worker threads that use them. It does not know the source. Secrets
 * are wiped when replaced, and never appear in an error or a log line.
 */
#ifndef BELAY_CKPT_STORE_STORE_AUTH_H
#define BELAY_CKPT_STORE_STORE_AUTH_H

#include "base/time.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The provider of the credentials; a store uses one kind. */
enum store_keys_kind {
    STORE_KEYS_AWS,    /* access_key, secret_key, optionally a session token */
    STORE_KEYS_GOOGLE, /* a bearer token */
    STORE_KEYS_AZURE,  /* a bearer token, or a shared access signature */
    STORE_KEYS_KINDS
};

struct store_keys {
    enum store_keys_kind kind;
    /* of STORE_KEYS_AZURE: token is the query "sv=...&sig=..." without a '?' */
    bool is_signature;
    char access_key[129]; /* these two only for STORE_KEYS_AWS */
    char secret_key[257];
    char token[8193];    /* "" = none */
    struct wall expires; /* WALL_NONE = never */
    uint64_t number;     /* set by the holder: counts from 1 */
};

void store_keys_wipe(struct store_keys *k);
/* Makes keys of a bearer token that expires in left_ms. ERR_INVALID: too long. */
int store_keys_of_token(enum store_keys_kind kind, const char *token, int64_t left_ms,
    struct store_keys *ret_keys, struct err *e);

struct store_auth; /* thread-safe */

/* Called on a thread that needs credentials when there are none, when they expire within
 * STORE_AUTH_EARLY_MS, or when they were refused; possibly often. It must neither block nor call
 * the holder, but trigger the source. */
typedef void (*store_auth_want_fn)(void *ctx);
#define STORE_AUTH_EARLY_MS SECONDS_MS(10 * 60)

/* want may be NULL: then only what is set is used. */
struct store_auth *store_auth_create(store_auth_want_fn want, void *ctx);
void store_auth_destroy(struct store_auth *a); /* NULL is allowed */

/* copies; k->number does not matter */
void store_auth_set(struct store_auth *a, const struct store_keys *k);
/* Reports why credentials cannot be fetched now. Waiting calls fail with that error; credentials
 * that have not expired are still used. */
void store_auth_fail(struct store_auth *a, const struct err *why);

/* Whether the last credentials have been refused since they were set; true only once per refusal.
 * For the source. */
bool store_auth_take_refusal(struct store_auth *a);

/* Gets the credentials, waiting up to timeout_ms. refused: number of the credentials that the store
 * rejected (0 = none), which are not returned again. cancel may be NULL. Errors: store_auth_fail's,
 * ERR_CONFIG (none were ever set), ERR_TIMEOUT, ERR_CANCELLED, ERR_DENIED (rejected, and no others
 * available). Wipe *ret_keys. */
int store_auth_get(struct store_auth *a, uint64_t refused, int64_t timeout_ms,
    const atomic_int *cancel, struct store_keys *ret_keys, struct err *e);

#endif
