/* SPDX-License-Identifier: Apache-2.0
 *
 * Bearer tokens (RFC 6750): one cache with at most one fetch in progress, whose outcome goes to all
 * waiters. The provider supplies a request builder and a reply parser. Tokens and requests are
 * wiped when replaced or freed, and never appear in an error or a log line.
 */
#ifndef BELAY_CLOUD_OAUTH_H
#define BELAY_CLOUD_OAUTH_H

#include "base/http.h"
#include "base/list.h"
#include "base/timers.h"

#define OAUTH_TOKEN_MAX 8192
#define OAUTH_REPLY_MAX 65536
#define OAUTH_HEADER_MAX (OAUTH_TOKEN_MAX + sizeof("Authorization: Bearer "))

struct oauth_token {
    char text[OAUTH_TOKEN_MAX + 1]; /* visible ASCII: safe in a header line */
    int64_t expires_in_s;
};

/* One request for a token; zeroed except for what the builder sets. */
struct oauth_request {
    const char *method; /* static, like header */
    const char *header; /* "Name: value"; may be NULL */
    char *url;          /* allocated with mem_*; freed by the cache, like body */
    struct buf body;
    const char *ca_pem; /* borrowed for the call; NULL for the system's store */
    int64_t timeout_ms;
};

struct oauth_ops {
    /* Must not block except for small files. Errors are passed to the waiters unchanged. */
    int (*build)(void *ctx, struct oauth_request *r, struct err *e);
    /* Handles replies of any status. */
    int (*parse)(
        void *ctx, const struct http_reply *reply, struct oauth_token *ret_token, struct err *e);
};

struct oauth;

/* ops is static; ctx, http and timers are borrowed until destroy. */
struct oauth *oauth_create(
    const struct oauth_ops *ops, void *ctx, struct http_client *http, struct timers *timers);
/* Starts renewing tokens this long before they expire, instead of 4 minutes. */
void oauth_renew_before(struct oauth *o, int64_t early_ms);
/* Drops pending waits: their done does not run. Must not be called inside a done. o may be NULL. */
void oauth_destroy(struct oauth *o);

/* On success e is NULL and header is "Authorization: Bearer ...", borrowed for the call. Otherwise
 * e is the error of build, the HTTP client or parse. */
typedef void (*oauth_fn)(void *ctx, const struct err *e, const char *header);

/* A wait for a token; lives inside the object that waits. Private. */
struct oauth_wait {
    struct link link;
    oauth_fn done;
    void *ctx;
    uint64_t generation; /* of the token that was handed out */
};

/* done runs once, not inside the call. A token is fetched if there is none, or from 4 minutes (or a
 * quarter of its life, if that is less) before it expires. A renewal that fails or brings no newer
 * token is retried half a minute later; until it expires the old token is handed out. */
void oauth_get(struct oauth *o, struct oauth_wait *w, oauth_fn done, void *ctx);
/* done will not run. No-op on a wait that is over or zeroed. */
void oauth_cancel(struct oauth_wait *w);
/* Remaining life of the cached token; 0 if there is none. Inside a done it is that of the token
 * passed. */
int64_t oauth_left_ms(const struct oauth *o);
/* Reports that the provider refused the token given to this wait, which has ended: the token is
 * dropped, unless a newer one has replaced it. */
void oauth_refused(struct oauth *o, const struct oauth_wait *w);

/* Pure, for parse: RFC 6749, sections 5.1 and 5.2. expires_in may be a number or, as some servers
 * send it, its text. ERR_INVALID for a malformed reply with status 200. Other statuses:
 * ERR_THROTTLED for 429, ERR_UNAVAILABLE for 5xx, else ERR_DENIED; the error includes `error` and
 * `error_description` if the body has them. */
int oauth_parse_reply(
    int status, const char *body, size_t n, struct oauth_token *ret_token, struct err *e);
/* The same for RFC 8693: a reply without expires_in is valid for life_s (>= 1). */
int oauth_parse_exchange(int status, const char *body, size_t n, int64_t life_s,
    struct oauth_token *ret_token, struct err *e);

#endif
