/* SPDX-License-Identifier: Apache-2.0
 *
 * The credentials that stores over a network sign with: a holder between whoever gets them (the
 * agent, on its loop) and the worker threads that use them. Nothing here knows where they come
 * from. Secrets are wiped when they are replaced, and never get into an error or a log line.
 */
#ifndef BELAY_CKPT_STORE_STORE_AUTH_H
#define BELAY_CKPT_STORE_STORE_AUTH_H

#include "base/time.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whose they are; a store takes those of one kind. */
enum store_keys_kind {
    STORE_KEYS_AWS,    /* access_key, secret_key, perhaps a session's token */
    STORE_KEYS_GOOGLE, /* a bearer token */
    STORE_KEYS_AZURE,  /* a bearer token, or a shared access signature */
    STORE_KEYS_KINDS
};

struct store_keys {
    enum store_keys_kind kind;
    /* of STORE_KEYS_AZURE: token is the query "sv=...&sig=..." without a '?' */
    bool is_signature;
    char access_key[129]; /* these two of STORE_KEYS_AWS only */
    char secret_key[257];
    char token[8193];    /* "" = none */
    struct wall expires; /* WALL_NONE: they last */
    uint64_t number;     /* the holder's: 1 for the first it was given, and so on */
};

void store_keys_wipe(struct store_keys *k);
/* A bearer token that lasts for left_ms from now. ERR_INVALID: too long. */
int store_keys_of_token(enum store_keys_kind kind, const char *token, int64_t left_ms,
    struct store_keys *ret_keys, struct err *e);

struct store_auth; /* all of it may be called on any thread */

/* Called on a thread that needs credentials when there are none, when those there end within
 * STORE_AUTH_EARLY_MS, or when they were refused; possibly often. It must not block, nor call the
 * holder: it makes whoever fills the holder do so. */
typedef void (*store_auth_want_fn)(void *ctx);
#define STORE_AUTH_EARLY_MS SECONDS_MS(10 * 60)

/* want NULL: nobody gets new ones; what is set counts. */
struct store_auth *store_auth_create(store_auth_want_fn want, void *ctx);
void store_auth_destroy(struct store_auth *a); /* NULL is allowed */

/* copies; k->number does not matter */
void store_auth_set(struct store_auth *a, const struct store_keys *k);
/* There are none to be had now, and why. Who waits gets that; what was set and has not ended is
 * still used. */
void store_auth_fail(struct store_auth *a, const struct err *why);

/* Whether those that were set last have been refused since; it is told once. For who fills the
 * holder. */
bool store_auth_take_refusal(struct store_auth *a);

/* The credentials, waiting for them as long as timeout_ms. refused: the number of those that the
 * store did not take (0 = none); they do not count. cancel may be NULL. Errors: store_auth_fail's,
 * ERR_CONFIG (nobody has set any), ERR_TIMEOUT, ERR_CANCELLED, ERR_DENIED (refused, and no others
 * to be had). Wipe *ret_keys. */
int store_auth_get(struct store_auth *a, uint64_t refused, int64_t timeout_ms,
    const atomic_int *cancel, struct store_keys *ret_keys, struct err *e);

#endif
