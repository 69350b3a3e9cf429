/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens for a store in Google's buckets or Azure's blobs, of whoever this process is: by
 * its environment, or by the identity of this machine. The token is cached by cloud/oauth.h. As
 * with the providers' own tools, the environment may name where to ask: AZURE_AUTHORITY_HOST
 * (https, or this machine), GCE_METADATA_HOST (HOST[:PORT], unless metadata_url is set).
 */
#ifndef BELAY_CLOUD_BEARER_H
#define BELAY_CLOUD_BEARER_H

#include "base/http.h"
#include "base/timers.h"
#include <stdbool.h>

struct bearer_options {
    bool is_azure;            /* else Google's */
    const char *metadata_url; /* NULL: the usual one */
    struct http_client *http; /* borrowed until destroy, like timers */
    struct timers *timers;
};

struct bearer;
struct oauth;

/* Copies what it needs; nothing is asked of anybody yet. ERR_CONFIG. */
int bearer_create(const struct bearer_options *o, struct bearer **ret_bearer, struct err *e);
void bearer_destroy(struct bearer *b); /* a wait under way is dropped; NULL is fine */

/* Exactly one of e and token is NULL; both borrowed for the call. left_ms: until the token's end,
 * at least. */
typedef void (*bearer_fn)(void *ctx, const struct err *e, const char *token, int64_t left_ms);

/* done runs once, not inside the call. One wait at a time: while one is under way, false and
 * nothing else happens. */
bool bearer_get(struct bearer *b, bearer_fn done, void *ctx);
/* The store refused the token that the last wait, now over, was given. */
void bearer_refused(struct bearer *b);
/* What is behind it, for who has several waits. */
struct oauth *bearer_tokens(struct bearer *b);

#endif
