/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens for a store in Google's or Azure's object storage, in the identity of this process:
 * from its environment, or from the identity of this machine. cloud/oauth.h caches the token. As
 * with the providers' own tools, the environment may override the address: AZURE_AUTHORITY_HOST
 * (https, or this machine), GCE_METADATA_HOST (HOST[:PORT], unless metadata_url is set).
 */
#ifndef BELAY_CLOUD_BEARER_H
#define BELAY_CLOUD_BEARER_H

#include "base/http.h"
#include "base/timers.h"
#include <stdbool.h>

struct bearer_options {
    bool is_azure;            /* else Google's */
    const char *metadata_url; /* NULL for the default address */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct bearer;
struct oauth;

/* Copies what it needs; sends no request yet. ERR_CONFIG. */
int bearer_create(const struct bearer_options *o, struct bearer **ret_bearer, struct err *e);
void bearer_destroy(struct bearer *b); /* drops a pending wait; b may be NULL */

/* Exactly one of e and token is NULL; both are borrowed for the call. left_ms: the token lasts at
 * least this long. */
typedef void (*bearer_fn)(void *ctx, const struct err *e, const char *token, int64_t left_ms);

/* done runs once, not inside the call. One wait at a time: returns false, and does nothing else,
 * while one is pending. */
bool bearer_get(struct bearer *b, bearer_fn done, void *ctx);
/* Reports that the store refused the token given to the last wait, which has ended. */
void bearer_refused(struct bearer *b);
/* The underlying token cache, for a caller with several concurrent waits. */
struct oauth *bearer_tokens(struct bearer *b);

#endif
