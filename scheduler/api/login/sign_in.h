/* SPDX-License-Identifier: Apache-2.0
 *
 * What a sign-in leaves: a token (a row of the table tokens with `login`) with the role and the
 * teams that the user's groups give, for the time token_lifetime of oidc:. A renewal asks the
 * provider again and replaces the token of the same row, with the groups of that moment.
 *
 * belayd issues a token of its own, and does not accept the provider's ID token at each call. Its
 * own is in the list of tokens and can be revoked at once, the audit log names it, and no call
 * waits for the provider's keys. The provider's refresh token is sealed (secrets/seal.h) and kept
 * by the client: belayd stores nothing of the provider's.
 */
#ifndef BELAY_SCHEDULER_API_LOGIN_SIGN_IN_H
#define BELAY_SCHEDULER_API_LOGIN_SIGN_IN_H

#include "scheduler/api/api_private.h"
#include "scheduler/oidc/oidc.h"

#define SIGN_IN_TOKEN_MAX 64

struct sign_in;
/* Answers x, which is not NULL. e NULL: s has the token. */
typedef void (*sign_in_fn)(const struct sign_in *s, struct http_exchange *x, const struct err *e);

/* A sign-in in progress; freed by its end. */
struct sign_in {
    struct api *api;
    struct deferred_reply *deferred;
    struct tick_call *call; /* of the request; may be NULL */
    sign_in_fn answer;
    bool is_device; /* OIDC_PENDING is an answer */
    enum oidc_state state;
    int64_t renews;       /* the token's row; 0: a new one */
    char *next;           /* where a browser goes then; NULL: none */
    char *user, *subject; /* of a renewal: who it must be */
    struct oidc_identity id;
    struct token_row row;
    char token[SIGN_IN_TOKEN_MAX];
    char *refresh; /* sealed; NULL: the provider gave none */
};

/* Defers the answer of q. */
struct sign_in *sign_in_begin(struct request *q, sign_in_fn answer);
/* Ends one whose exchange could not be begun. */
void sign_in_fail(struct sign_in *s, const struct err *e);
/* An oidc_user_fn whose ctx is a struct sign_in. */
void sign_in_on_user(void *ctx, const struct err *e, enum oidc_state state,
    const struct oidc_identity *id, const char *refresh);
/* {"token": ..., "refresh": ..., ...}: the answer to a command line. */
json_t *sign_in_json(const struct sign_in *s);

/* Reads the sealed refresh token of a client into s (renews, user, subject) and *ret_refresh, which
 * the caller wipes. ERR_DENIED. */
int sign_in_open_refresh(struct sign_in *s, const char *sealed, char **ret_refresh, struct err *e);

/* Gives all users the teams of their last sign-in; at the start. */
void sign_in_load_teams(const struct api *a);

/* Whether this address may make another call without a user. False after an error reply. */
bool sign_in_pace(struct request *q);
/* False after an error reply: nobody signs in at this belayd. */
bool sign_in_is_configured(struct request *q);

#endif
